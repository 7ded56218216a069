"""How often the paper's theorems keep their word.

*exact*: the subspace that holds all records comes out; promised is the chance that the plan computes.
*histogram*: the answer is within the plan's error, promised with probability .7.
*boosted*: the answer is within three times that, promised with probability 1 - beta.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cells import Cell, Suite, Value
from benchmarks.methods import DELTA
from benchmarks.suites.accuracy import grid
from privspan.approximate import approximate_subspace
from privspan.blocks.plan import boosting_parts, plan_histogram
from privspan.boosted import boosted_subspace
from privspan.datasets import gaussian_subspace
from privspan.exact.exact import exact_subspace
from privspan.exact.plan import plan_exact
from privspan.privacy import Release
from privspan.subspace import Subspace

BETA = 0.1
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": DELTA}
PLANNED_ERROR = 0.02
_EXACT_TOLERANCE = 1e-9

_EXACT = [{"n": n, "d": d, "k": 3} for d in (10, 1_000) for n in (20, 30, 40, 50, 60, 80)]
_HISTOGRAM = [{"n": 2_000, "d": d, "k": k} for k in (1, 3) for d in (10, 100, 1_000)]
_BOOSTED = [{"n": 17_500, "d": 6, "k": 1}, {"n": 50_000, "d": 100, "k": 3}]


@dataclass(frozen=True)
class _Trial:
    """A release, the truth, the distance within which it counts as a success, and the promised chance of that."""

    release: Release
    truth: Subspace
    within: float
    promised: float


def _exact(n: int, d: int, k: int, seed: int) -> _Trial:
    rng = np.random.default_rng(seed)
    basis = rng.integers(-1_000, 1_001, (k, d))
    X = rng.integers(-1_000, 1_001, (n, k)) @ basis
    promised = plan_exact(n, k, **BUDGET).release_probability
    release = exact_subspace(X, k, rng=seed, **BUDGET)
    return _Trial(release, Subspace.from_spanning(basis.T.astype(float)), _EXACT_TOLERANCE, promised)


def planned_tail(rows: int, d: int, k: int) -> float:
    """Return the gamma for which the histogram's plan promises `PLANNED_ERROR`; its error is linear in gamma."""
    tiny = 1e-12
    plan = plan_histogram(rows, d, k, gamma=tiny, **BUDGET)
    assert plan.side is not None
    return PLANNED_ERROR * tiny / plan.error(d, k, plan.side)


def _histogram(n: int, d: int, k: int, seed: int) -> _Trial:
    gamma = planned_tail(n, d, k)
    X, truth = gaussian_subspace(n, d, k, gamma, rng=seed)
    release = approximate_subspace(X, k, gamma=gamma, aggregate="histogram", rng=1_000 + seed, **BUDGET)
    return _Trial(release, truth, PLANNED_ERROR, 0.7)


def _boosted(n: int, d: int, k: int, seed: int) -> _Trial:
    gamma, alpha = planned_tail(n // boosting_parts(BETA), d, k), 3.0 * PLANNED_ERROR
    X, truth = gaussian_subspace(n, d, k, gamma, rng=seed)
    options: dict[str, Any] = {"gamma": gamma, "aggregate": "histogram", "rng": 1_000 + seed}
    release = boosted_subspace(X, k, alpha=alpha, beta=BETA, **BUDGET, **options)
    return _Trial(release, truth, alpha, 1.0 - BETA)


_TRIALS = {"exact": _exact, "histogram": _histogram, "boosted": _boosted}


def measure(cell: Cell) -> tuple[dict[str, Value], float]:
    """Run a theorem's algorithm once; an abstention is a failure."""
    n, d, k = (int(value) for value in cell.setting.values())
    start = time.perf_counter()
    trial = _TRIALS[cell.method](n, d, k, cell.seed)
    seconds = time.perf_counter() - start
    error = 1.0 if trial.release.subspace is None else trial.release.subspace.distance(trial.truth)
    return {
        "success": int(error <= trial.within),
        "error": error,
        "within": trial.within,
        "promised": trial.promised,
    }, seconds


def _cells(quick: bool) -> Iterator[Cell]:
    first = 1 if quick else None
    runs = 3 if quick else 40
    yield from grid("theorems", _EXACT[-1:] if quick else _EXACT, ("exact",), runs)
    yield from grid("theorems", _HISTOGRAM[:first], ("histogram",), runs)
    yield from grid("theorems", _BOOSTED[:first], ("boosted",), 1 if quick else 20)


THEOREMS = Suite(
    "theorems",
    "How often do the exact, the histogram and the boosted algorithm do what their theorems promise?",
    ("n", "d", "k"), ("success", "error", "within", "promised"), _cells, measure, lambda quick: 60.0,
)  # fmt: skip
