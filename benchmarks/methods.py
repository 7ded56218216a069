"""Every method of the library under the name that tables and figures use, with the sizes it takes.

All take the rows as they are and are given the same budget. The histogram is told gamma, the size of the tail, which
is the best case for it; the others find out what they need.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.cells import AbstainedError, NotApplicableError
from privspan import baselines
from privspan.approximate import approximate_subspace
from privspan.baselines._common import WIDEST_MATRIX
from privspan.privacy import Release, UselessPlanWarning
from privspan.private import private_subspace
from privspan.stable.records import stable_subspace
from privspan.subspace import Subspace
from privspan.sums.adaptive import adaptive_subspace

DELTA = 1e-6
"""The delta of every cell."""


@dataclass(frozen=True)
class Method:
    """A private algorithm as the benchmark sees it.

    Attributes
    ----------
    label : str
        For people.
    ours : bool
        Whether it is an algorithm of this library and not a prior system.
    call : callable
        ``call(X, k, epsilon=, delta=, rng=)``, plus ``gamma=`` if `told_gamma`.
    most_columns, most_rows : int or None
        Beyond, a cell is "not applicable".
    told_gamma : bool
        Whether the call takes the size of the tail.
    """

    label: str
    ours: bool
    call: Callable[..., Release]
    most_columns: int | None = None
    most_rows: int | None = None
    told_gamma: bool = False


def _histogram(X: object, k: int, **budget: Any) -> Release:
    return approximate_subspace(X, k, aggregate="histogram", **budget)  # type: ignore[arg-type]


METHODS: dict[str, Method] = {
    "auto": Method("private_subspace (auto)", True, private_subspace),
    "adaptive": Method("adaptive", True, adaptive_subspace),
    # Its time grows like the cube of n: minutes from here on.
    "stable": Method("stable leverage", True, stable_subspace, most_rows=4_000),
    "approximate": Method("approximate (groups)", True, approximate_subspace, most_rows=20_000),
    "histogram": Method("histogram, gamma known", True, _histogram, most_columns=20_000, told_gamma=True),
    "analyze_gauss": Method("Analyze Gauss", False, baselines.analyze_gauss),
    "analyze_gauss_gap": Method("Analyze Gauss, gap", False, baselines.analyze_gauss_gap, WIDEST_MATRIX),
    "mod_sulq": Method("MOD-SuLQ", False, baselines.mod_sulq, WIDEST_MATRIX),
    "exponential_pca": Method("exponential mechanism", False, baselines.exponential_pca, WIDEST_MATRIX),
    "eigen_sampling": Method("eigenvector sampling", False, baselines.eigen_sampling, WIDEST_MATRIX),
    "noisy_power": Method("noisy power method", False, baselines.noisy_power),
    "k_dp_pca": Method("k-DP-PCA", False, baselines.k_dp_pca),
    "noisy_range_finder": Method("noisy range finder", False, baselines.noisy_range_finder),
    "johnson_lindenstrauss": Method("Johnson-Lindenstrauss", False, baselines.johnson_lindenstrauss, WIDEST_MATRIX),
    "additive_wishart": Method("additive Wishart", False, baselines.additive_wishart, WIDEST_MATRIX),
    "inverse_wishart": Method("inverse Wishart", False, baselines.inverse_wishart, WIDEST_MATRIX),
    "smooth_sensitivity": Method("smooth sensitivity", False, baselines.smooth_sensitivity, WIDEST_MATRIX),
    "friendly_core": Method("FriendlyCore", False, baselines.friendly_core, WIDEST_MATRIX),
}


def check_size(name: str, n: int, d: int) -> None:
    """Raise `NotApplicableError` if the method does not take tables of this size."""
    method = METHODS[name]
    if method.most_columns is not None and d > method.most_columns:
        raise NotApplicableError(f"takes at most {method.most_columns:,} columns")
    if method.most_rows is not None and n > method.most_rows:
        raise NotApplicableError(f"left out beyond {method.most_rows:,} rows")


def learn(
    name: str, X: Any, k: int, *, epsilon: float, seed: int, delta: float = DELTA, gamma: float | None = None
) -> tuple[Subspace, float]:
    """Run a method and return the subspace and the seconds that it took.

    Parameters
    ----------
    name : str
        A key of `METHODS`.
    X : (n, d) table
    k : int
    epsilon, delta : float
    seed : int
        Of the noise, so that a cell can be repeated; the release is not private.
    gamma : float, optional
        Size of the tail, for methods that are told.

    Raises
    ------
    NotApplicableError
        If the method refuses these public numbers.
    AbstainedError
        If it gave no answer.
    """
    method = METHODS[name]
    options: dict[str, Any] = {"gamma": gamma} if method.told_gamma else {}
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessPlanWarning)
        try:
            release = method.call(X, k, epsilon=epsilon, delta=delta, rng=seed, **options)
        except ValueError as refusal:  # algorithms raise on public numbers only
            raise NotApplicableError(str(refusal)) from refusal
    seconds = time.perf_counter() - start
    if release.subspace is None:
        raise AbstainedError(seconds)
    return release.subspace, seconds
