"""Audits of the package's own algorithms, each called as a user would call it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan.approximate import approximate_subspace
from privspan.audit.cases import Case, Outcome, Pair, register
from privspan.audit.tables import (
    HUGE,
    affine_line_pairs,
    last_replaced,
    line_pairs,
    moment_pairs,
    near_axis_pairs,
    slope_pairs,
)
from privspan.blocks.rank import choose_dimension
from privspan.boosted import boosted_subspace
from privspan.exact.exact import exact_subspace
from privspan.pca import private_pca
from privspan.privacy.randomness import RandomLike, open_streams
from privspan.private import private_subspace
from privspan.stable.records import stable_subspace
from privspan.subspace import Subspace
from privspan.sums.adaptive import adaptive_subspace
from privspan.sums.mean import private_mean
from privspan.sums.regression import PrivateRegression, private_regression
from privspan.sums.variance import explained_variance

_EPSILON, _DELTA = 2.0, 0.1
_EXACT_DELTA = 0.2
_FIRST_AXIS = Subspace(np.array([[1.0], [0.0]]))

# A plan whose ramp holds the twelve records of `slope_pairs` that have longer tails.
_SLOPE = {"full_level": 36, "ramp": 12, "movers": 23, "signal": 20.0, "spread": 1.5e-6, "ridge": 1e-5}


def _add(
    name: str,
    algorithm: Callable[..., Outcome],
    pairs: dict[str, Pair],
    *arguments: object,
    delta: float = _DELTA,
    share: float = 1.0,
    **options: object,
) -> None:
    """Register ``algorithm(table, *arguments, epsilon=…, delta=…, rng=…, **options)``."""

    def run(table: NDArray[Any], rng: RandomLike) -> Outcome:
        return algorithm(table, *arguments, epsilon=_EPSILON, delta=delta, rng=rng, **options)

    register(Case(name, _EPSILON, delta, pairs, run, share))


# ---- Exact -----------------------------------------------------------------------------------------------------

_add("exact_subspace (majority)", exact_subspace, line_pairs(), 1, delta=_EXACT_DELTA, method="gap-max")
_add("exact_subspace (gap)", exact_subspace, line_pairs(), 1, delta=_EXACT_DELTA, method="gap-max", rule="gap")
_add("exact_subspace (votes)", exact_subspace, line_pairs(), 1, delta=_EXACT_DELTA, method="votes", block_size=1)
_add(
    "exact_subspace (truncated Laplace)",
    exact_subspace,
    line_pairs(),
    1,
    delta=_EXACT_DELTA,
    method="gap-max",
    release="truncated-laplace",
)
_add("exact_subspace (affine)", exact_subspace, affine_line_pairs(), 1, delta=_EXACT_DELTA, affine=True)

# ---- Close to a subspace ---------------------------------------------------------------------------------------

_add("stable_subspace", stable_subspace, near_axis_pairs(60), 1, share=0.5)
# Margins so small that about a third of the runs abstain.
_add("stable_subspace (threshold)", stable_subspace, near_axis_pairs(40), 1, share=0.5)
_add("stable_subspace (slope)", stable_subspace, slope_pairs(), 1, share=0.5, **_SLOPE)
_add("approximate_subspace (stable)", approximate_subspace, near_axis_pairs(60), 1, share=0.5, block_size=1)
_add(
    "approximate_subspace (histogram)",
    approximate_subspace,
    near_axis_pairs(60, 2),
    1,
    share=0.5,
    block_size=1,
    aggregate="histogram",
    gamma=1e-4,
    options={"references": 2},
)
_add(
    "approximate_subspace (histogram, side chosen)",
    approximate_subspace,
    near_axis_pairs(400, 2),
    1,
    share=0.25,
    block_size=1,
    aggregate="histogram",
    options={"references": 2},
)
_add("boosted_subspace", boosted_subspace, near_axis_pairs(120), 1, share=0.25, alpha=0.9, beta=0.3, block_size=1)

# ---- Choice of the dimension -----------------------------------------------------------------------------------


def _rank_pairs() -> dict[str, Pair]:
    """Three blocks of three rows; the last row decides whether the last block has rank 1 or 2."""
    flat, full = np.tile([[1.0, 0.0, 0.0]], (3, 1)), np.eye(3)[[0, 0, 1]]
    tie = np.vstack([flat, full, flat])
    return {
        "tie": last_replaced(tie, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        "zero row, huge row": last_replaced(tie, (0.0, 0.0, 0.0), (0.0, HUGE, 0.0)),
        "NaN row, unit row": last_replaced(tie, (np.nan, 0.0, 0.0), (0.0, 0.0, 1.0)),
    }


def _one_block_pairs() -> dict[str, Pair]:
    """Six rows, which are one block when there are two dimensions to choose from; its vote is all there is."""
    flat = np.tile([[1.0, 0.0, 0.0]], (6, 1))
    return {
        "only ballot": last_replaced(flat, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        "zero row, huge row": last_replaced(flat, (0.0, 0.0, 0.0), (0.0, HUGE, 0.0)),
        "NaN row, unit row": last_replaced(flat, (np.nan, 0.0, 0.0), (0.0, 0.0, 1.0)),
    }


def _chosen(table: NDArray[Any], rng: RandomLike) -> int:
    return choose_dimension(table, 2, epsilon=_EPSILON, bits=open_streams(rng).noise, block_size=3)


register(Case("choose_dimension", _EPSILON, 1e-9, _rank_pairs(), _chosen))
_add(
    "approximate_subspace (k chosen)",
    approximate_subspace,
    near_axis_pairs(60, 4),
    "auto",
    share=0.25,
    block_size=2,
    max_components=2,
)

# ---- Everyday PCA ----------------------------------------------------------------------------------------------

_add("adaptive_subspace", adaptive_subspace, moment_pairs(), 1, share=0.5)
_add("adaptive_subspace (localised)", adaptive_subspace, near_axis_pairs(40), 1, share=0.25)
_add("private_subspace", private_subspace, moment_pairs(), 1, share=0.25)
_add("explained_variance", explained_variance, moment_pairs(), _FIRST_AXIS, norm_bound=1.0)
_add("explained_variance (bound chosen)", explained_variance, moment_pairs(), _FIRST_AXIS)


def _mean_pairs() -> dict[str, Pair]:
    """The two ends of the ball, and rows that have no length or no value."""
    table = np.zeros((3, 2))
    return {
        "opposite rows": last_replaced(table, (1.0, 0.0), (-1.0, 0.0)),
        "zero row, huge row": last_replaced(table, (0.0, 0.0), (HUGE, 0.0)),
        "NaN row, unit row": last_replaced(table, (np.nan, 0.0), (1.0, 0.0)),
    }


_add("private_mean", private_mean, _mean_pairs(), norm_bound=1.0)
_add("private_mean (bound chosen)", private_mean, _mean_pairs())
_add("private_mean (in a subspace)", private_mean, _mean_pairs(), _FIRST_AXIS, norm_bound=1.0)


def _regression_pairs() -> dict[str, Pair]:
    """Rows with the target in the last column; the first pair attains the sensitivity, the second that on a line."""
    table = np.zeros((3, 3))
    return {
        "opposite targets": last_replaced(table, (1.0, 0.0, -1.0), (0.5, 0.75**0.5, 1.0)),
        "target turned round": last_replaced(table, (1.0, 0.0, -1.0), (1.0, 0.0, 1.0)),
        "zero row, huge row": last_replaced(table, (0.0, 0.0, 0.0), (HUGE, 0.0, HUGE)),
        "NaN target, unit row": last_replaced(table, (1.0, 0.0, np.nan), (1.0, 0.0, 1.0)),
    }


def _regressed(table: NDArray[Any], subspace: Subspace | None = None, **options: Any) -> PrivateRegression:
    return private_regression(table[:, :-1], table[:, -1], subspace, norm_bound=1.0, target_bound=1.0, **options)


_add("private_regression", _regressed, _regression_pairs())
_add("private_regression (in a subspace)", _regressed, _regression_pairs(), _FIRST_AXIS)


_add("private_pca", private_pca, moment_pairs(padding=5), 1, share=0.25)
_add("private_pca (not centred)", private_pca, moment_pairs(), 1, share=0.25, center=False)
_add("private_pca (k chosen)", private_pca, _one_block_pairs(), "auto", share=0.5, center=False, max_components=2)
