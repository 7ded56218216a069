"""How much of the variance of real tables a private PCA captures, next to Analyze Gauss and to PCA itself.

Every row counts as one person. "Captured" is the variance along the private components over that along the same
number of ordinary ones; "error" is the sine of the largest angle between the two subspaces. Centring is private
(differences of pairs, for both methods). One thing is not: the columns of breast cancer, flights and sp500 are
divided by their medians, which stand for units that an owner of the table would know.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np

from benchmarks.cells import Cell, NotAvailableError, Suite, Value
from benchmarks.methods import DELTA
from benchmarks.suites.accuracy import grid
from privspan.datasets import MissingPackageError, load
from privspan.subspace import Subspace

COMPONENTS = {"Indian Pines": 3, "fermentation": 2, "digits": 5, "breast cancer": 2, "flights": 3, "sp500": 1}
"""Tables and the number of components asked for."""

EPSILONS = (0.1, 0.3, 1.0, 3.0)
METHODS = ("auto", "analyze-gauss")
REPETITIONS = 10
_OF_MIXED_UNITS = ("breast cancer", "flights", "sp500")


@lru_cache(maxsize=1)
def table(name: str) -> np.ndarray[Any, Any]:
    """Return a table as the suite uses it."""
    try:
        values = load(name).values
    except MissingPackageError as missing:
        raise NotAvailableError(str(missing)) from missing
    if name not in _OF_MIXED_UNITS:
        return values
    units = np.median(np.abs(values), axis=0)
    return np.asarray(values / np.where(units > 0.0, units, 1.0))


def captured_and_error(X: Any, k: int, epsilon: float, method: Any, seed: int) -> tuple[float, float, float]:
    """Fit a private PCA; return the captured share of variance, the error and the seconds of the fit."""
    from privspan.estimators import PrivatePCA

    covariance = np.cov(X.T)
    ordinary = Subspace(np.linalg.eigh(covariance)[1][:, -k:])
    best = np.trace(ordinary.basis.T @ covariance @ ordinary.basis)
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is seeded, and that it may be useless, is known here
        model = PrivatePCA(k, epsilon=epsilon, delta=DELTA, method=method, random_state=seed).fit(X)
    seconds = time.perf_counter() - start
    captured = np.trace(model.components_ @ covariance @ model.components_.T) / best
    return float(captured), model.subspace_.distance(ordinary), seconds


def measure(cell: Cell) -> tuple[dict[str, Value], float]:
    """Fit one table once."""
    X = table(str(cell.setting["table"]))
    k, epsilon = int(cell.setting["k"]), float(cell.setting["epsilon"])
    captured, error, seconds = captured_and_error(X, k, epsilon, cell.method, cell.seed)
    return {"n": X.shape[0], "d": X.shape[1], "captured": captured, "error": error}, seconds


def _cells(quick: bool) -> Iterator[Cell]:
    settings: list[dict[str, Value]] = [
        {"table": name, "k": k, "epsilon": epsilon}
        for name, k in COMPONENTS.items()
        for epsilon in ((1.0,) if quick else EPSILONS)
    ]
    return grid("real", settings, METHODS, 1 if quick else REPETITIONS)


REAL = Suite(
    "real",
    "How much of the variance of real tables does a private PCA capture?",
    ("table", "k", "epsilon"), ("n", "d", "captured", "error"), _cells, measure, lambda quick: 60.0,
)  # fmt: skip
