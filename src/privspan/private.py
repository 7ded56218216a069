"""The everyday door: one function that takes the method the planner predicts to be the most accurate.

The choice depends on public numbers only (n, d, k, the budget, `gamma`, and whether the table is sparse), so it costs
nothing, and the guarantee is that of the method taken.  Proof: docs/explanation/planning.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

from privspan._lib import checks
from privspan._lib.entry import entry
from privspan.approximate import approximate_subspace
from privspan.exact.exact import exact_subspace
from privspan.planner import METHODS, plan_within
from privspan.privacy import Budget, Release
from privspan.privacy.randomness import RandomLike
from privspan.rows import PartitionedTable
from privspan.rows.unit import as_rows_input, is_sparse
from privspan.stable.records import stable_subspace
from privspan.sums.adaptive import adaptive_subspace, adaptive_within
from privspan.sums.analyze_gauss import analyze_gauss, analyze_gauss_within

PrivateMethod = Literal["auto", "adaptive", "stable", "approximate", "analyze-gauss", "exact"]

PRIVATE_METHODS: tuple[PrivateMethod, ...] = (
    "auto",
    "adaptive",
    "stable",
    "approximate",
    "analyze-gauss",
    "exact",
)

GAUSSIAN_METHODS: dict[str, Callable[..., Release]] = {
    "adaptive": adaptive_within,
    "analyze-gauss": analyze_gauss_within,
}
"""Methods that are mu-GDP with the mu of a `MuLedger`, which they take first; they also take sparse tables."""

PARTITION_METHODS = ("adaptive", "analyze-gauss", "approximate")
"""Methods that work on tables in partitions."""

_ALGORITHMS: dict[str, Callable[..., Release]] = {
    "adaptive": adaptive_subspace,
    "stable": stable_subspace,
    "approximate": approximate_subspace,
    "analyze-gauss": analyze_gauss,
    "exact": exact_subspace,
}


class UselessPlanWarning(UserWarning):
    """The planner predicts an error so large that the result will tell little, and says how many rows would do."""


@entry
def private_subspace(
    X: object,
    k: int,
    *,
    epsilon: float,
    delta: float,
    method: PrivateMethod = "auto",
    gamma: float | None = None,
    rng: RandomLike = None,
    **options: Any,
) -> Release:
    """Learn the k-dimensional subspace that the rows of X lie near, by the method that suits the numbers.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row.  Sparse tables are never densified; only "adaptive" and "analyze-gauss" take them.
        Rows of Dask tables stay where they are with "adaptive", "analyze-gauss" and "approximate", among which
        "auto" chooses; "stable" and "exact" bring them here, one partition at a time.
        Rows are not centred: see :class:`privspan.PrivatePCA`.
    k : int
        Dimension.
    epsilon, delta : float
        Privacy budget.
    method : {"auto", "adaptive", "stable", "approximate", "analyze-gauss", "exact"}, default="auto"
        "auto" asks :func:`privspan.plan`.  "exact" is run only when asked for.
    gamma : float, optional
        Standard deviation of the tail's largest direction over that of the k-th signal direction, if it is public
        knowledge; used by "auto" and "approximate" only.  It never affects privacy, unless it was read off the data.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.
    **options
        Further keyword arguments of the method that is named; refused with "auto".

    Returns
    -------
    Release
        That of the method; with "auto", ``parameters`` also hold ``predicted_error`` and ``reason``.

    Warns
    -----
    UselessPlanWarning
        If "auto" finds no method that is predicted to do better than an error of .5.
    WeakPrivacyWarning
        If the budget promises little for so many rows, as every private function warns.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy for replace-one neighbours and every data set; n, d and all parameters are
    public.  Assumed: each person is one row, `rng` is None, and what the method taken assumes.
    Proof: docs/explanation/planning.md.

    Examples
    --------
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(5_000, 20, 2, gamma_w=0.1, rng=0)
    >>> release = private_subspace(X, 2, epsilon=1.0, delta=1e-6, rng=1)
    >>> release.method, bool(release.subspace.distance(truth) < 0.05)
    ('adaptive', True)
    """
    checks.one_of(PRIVATE_METHODS, method=method)
    if method != "auto":
        if gamma is not None:
            checks.probability(gamma=gamma)
            options = {**options, "gamma": gamma} if method == "approximate" else options
        return _ALGORITHMS[method](X, k, epsilon=epsilon, delta=delta, rng=rng, **options)
    if options:
        raise TypeError(f'`{next(iter(options))}` must be given only with a method that takes it, not with "auto".')
    source = as_rows_input(X, accept_partitions=True)
    n, d = int(source.shape[0]), int(source.shape[1])
    checks.dimension(k=k, d=d, n=n)
    choice = plan_within(n, d, k, Budget(epsilon, delta), gamma, methods_for(source))
    if not choice.useful:
        warnings.warn(choice.reason, UselessPlanWarning, stacklevel=2)
    release = private_subspace(source, k, epsilon=epsilon, delta=delta, method=choice.method, gamma=gamma, rng=rng)  # type: ignore[arg-type]
    told = {**release.parameters, "predicted_error": choice.error, "reason": choice.reason}
    return replace(release, parameters=told)


def methods_for(source: object) -> tuple[str, ...]:
    """Return the methods that take a table of this kind."""
    if is_sparse(source):
        return tuple(GAUSSIAN_METHODS)
    return PARTITION_METHODS if isinstance(source, PartitionedTable) else METHODS
