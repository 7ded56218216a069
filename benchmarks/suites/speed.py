"""How long it takes, and how much memory, next to scikit-learn's PCA without privacy.

Every cell runs alone, on one thread. Run this suite on a machine that does nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.cells import Cell, NotAvailableError, Suite, Value
from benchmarks.methods import check_size, learn
from benchmarks.suites.accuracy import grid
from privspan.datasets import gaussian_subspace

SHAPES = ((4_000, 1_000), (4_000, 10_000), (20_000, 1_000), (100_000, 100), (100_000, 500), (1_000_000, 20))
SOLVERS = {"sklearn_full": "full", "sklearn_randomized": "randomized"}
REPETITIONS = 2
METHODS = (*SOLVERS, "adaptive", "analyze_gauss", "approximate", "stable")
_K, _TAIL = 3, 0.01


def measure(cell: Cell) -> tuple[dict[str, Value], float]:
    """Time one method on one table."""
    n, d, k = (int(value) for value in cell.setting.values())
    solver = SOLVERS.get(cell.method)
    if solver is None:
        check_size(cell.method, n, d)
    X, truth = gaussian_subspace(n, d, k, gamma_w=_TAIL, rng=cell.seed)
    if solver is None:
        found, seconds = learn(cell.method, X, k, epsilon=1.0, seed=cell.seed)
        return {"error": found.distance(truth), "data_mb": X.nbytes / 1e6}, seconds
    try:
        from sklearn.decomposition import PCA
    except ImportError:
        raise NotAvailableError("type `pip install scikit-learn`") from None
    if solver == "full" and n > d:
        solver = "covariance_eigh"  # scikit-learn's faster exact solver for long tables
    start = time.perf_counter()
    PCA(k, svd_solver=solver, random_state=cell.seed).fit(X)
    return {"error": 0.0, "data_mb": X.nbytes / 1e6}, time.perf_counter() - start


def _cells(quick: bool) -> Iterator[Cell]:
    shapes = ((2_000, 200),) if quick else SHAPES
    settings: list[dict[str, Value]] = [{"n": n, "d": d, "k": _K} for n, d in shapes]
    return grid("speed", settings, METHODS, 1 if quick else REPETITIONS)


SPEED = Suite(
    "speed",
    "How long does it take, and how much memory, next to scikit-learn's PCA without privacy?",
    ("n", "d", "k"), ("error", "data_mb"), _cells, measure, lambda quick: 60.0 if quick else 300.0, alone=True,
)  # fmt: skip
