"""How much of the variance of real tables private PCA captures, next to every rival and to what nobody can reach.

Every row counts as one person.  "Captured" is the variance along the private components over that along as many
ordinary ones.  `private_pca` runs as it comes.  The rivals, all of `benchmarks.methods.METHODS` that are not ours,
get the centre and the radius that it would find, at its price: `benchmarks.centred`.  The *envelope* is Analyze Gauss
with the whole budget about the true mean, with the best of unit rows and `QUANTILES` of the lengths to shorten them
to: it is searched for with open eyes and not private, so no honest method of its kind gets there.

A cell is a table, a method and an epsilon, with all repetitions inside: 20, and up to 60 where the standard error of
their mean exceeds `PRECISE`; fewer where they take longer than `PATIENCE`.  An abstention counts as a random
subspace.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from benchmarks import tables
from benchmarks.cells import AbstainedError, Cell, NotApplicableError, Suite, Value
from benchmarks.centred import rival_on
from benchmarks.methods import DELTA, METHODS, check_size
from benchmarks.suites.accuracy import grid
from benchmarks.tables import Case
from privspan.pca import private_pca
from privspan.privacy import Budget

Array = NDArray[np.float64]

OURS, ENVELOPE = "private_pca", "envelope"
RIVALS = tuple(name for name, method in METHODS.items() if not method.ours)
TABLES = (
    *("digits", "breast cancer", "nycflights", "rwm5yr", "Wage", "CPS1985", "ames", "NMES1988", "Boston", "cells"),
    *("CASchools", "sp500_1950_2018", "diamonds", "College", "OJ", "HMDA", "storms", "Computers"),
    *("loans_full_schema", "Gestation", "births14", "diabetes", "ancestry", "Indian Pines", "fermentation", "credit"),
    *("communities", "breast cancer raw", "College raw", "ames raw", "NMES1988 raw", "loans_full_schema raw"),
    *("Boston raw", "cells raw", "credit raw"),
)
CHOSEN_ON = (
    *("digits", "breast cancer raw", "nycflights", "rwm5yr", "Wage", "CPS1985", "ames", "NMES1988", "Boston"),
    *("cells", "CASchools", "College raw", "NMES1988 raw", "Boston raw"),
)
"""Tables on which constants of `private_pca` were chosen, and, on all but the last three, which rows rivals take."""

EPSILONS = (0.1, 0.3, 1.0, 3.0)
REPETITIONS, MOST_REPETITIONS = 20, 60
PRECISE = 0.003
PATIENCE = 25.0  # seconds a cell
QUANTILES = (0.5, 0.75, 0.9, 0.97, 0.995, 1.0)

_QUICK_TABLES = ("breast cancer", "Wage", "ancestry")
_FIRST_SEED = 50_000  # nothing was tuned on these
_SILENT = 3  # abstentions in a row at the start after which a method is not asked again

Run = Callable[[int], Array | None]
"""From a seed to what was captured, in one way or in several (candidates,); None for an abstention."""


def measure(cell: Cell) -> tuple[dict[str, Value], float]:
    """Run all repetitions of a method on one table."""
    case = tables.table(str(cell.setting["table"]))
    n, d = case.values.shape
    budget, near = Budget(float(cell.setting["epsilon"]), DELTA), list[bool]()
    if cell.method == OURS:
        run = _ours(case, budget, near)
    else:
        run = _envelope(case, budget) if cell.method == ENVELOPE else _rival(cell.method, case, budget)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is seeded, and that it may be useless, is known here
        captured, seconds = _repeated(run, case, int(cell.setting["repetitions"]))
    return {
        "n": n,
        "d": d,
        "tail": case.tail,
        "captured": float(captured.mean()),
        "standard_error": _standard_error(captured),
        "runs": len(captured),
        "near": float(np.mean(near)) if near else 0.0,
    }, seconds


def _repeated(run: Run, case: Case, repetitions: int, patience: float = PATIENCE) -> tuple[Array, float]:
    """Return what was captured in every repetition, in the best of several ways, and the median seconds of one."""
    found, seconds, start = list[Array | None](), list[float](), time.perf_counter()
    best = np.zeros(0)
    while len(found) < repetitions or (
        repetitions == REPETITIONS and len(found) < MOST_REPETITIONS and _standard_error(best) > PRECISE
    ):
        before = time.perf_counter()
        found.append(run(_FIRST_SEED + len(found)))
        seconds.append(time.perf_counter() - before)
        if len(found) == min(_SILENT, repetitions) and all(one is None for one in found):
            raise AbstainedError(float(np.median(seconds)))
        several = np.array([np.full(1, case.at_random) if one is None else one for one in found])
        best = several[:, several.mean(axis=0).argmax()]
        if time.perf_counter() - start > patience:
            break
    return best, float(np.median(seconds))


def _standard_error(captured: Array) -> float:
    return float(captured.std(ddof=1) / math.sqrt(len(captured))) if len(captured) > 1 else 0.0


def _ours(case: Case, budget: Budget, near: list[bool]) -> Run:
    def run(seed: int) -> Array:
        release = private_pca(case.values, case.k, epsilon=budget.epsilon, delta=budget.delta, rng=seed)
        assert release.subspace is not None
        near.append(release.parameters["course"] == "near a subspace")
        return np.array([case.share(release.subspace.basis)])

    return run


def _rival(name: str, case: Case, budget: Budget) -> Run:
    check_size(name, *case.values.shape)

    def run(seed: int) -> Array | None:
        try:
            found = rival_on(name, case.values, case.k, budget, seed)
        except ValueError as refusal:  # algorithms raise on public numbers only
            raise NotApplicableError(str(refusal)) from refusal
        return None if found is None else np.array([case.share(found.basis)])

    return run


def _envelope(case: Case, budget: Budget) -> Run:
    moments = list(_moments(case.values - case.values.mean(axis=0)))
    d = case.values.shape[1]

    def run(seed: int) -> Array:
        noise = np.random.default_rng(seed).standard_normal((d, d)) / budget.mu
        noise = (noise + noise.T) / math.sqrt(2.0)
        top = [eigh(moment + noise, subset_by_index=(d - case.k, d - 1))[1] for moment in moments]
        return np.array([case.share(basis) for basis in top])

    return run


def _moments(rows: Array) -> Iterator[Array]:
    """Yield the second moments of unit rows and of rows divided by a quantile of their lengths and shortened to 1."""
    lengths = np.maximum(np.linalg.norm(rows, axis=1), np.finfo(float).tiny)
    for radius in (0.0, *np.quantile(lengths, QUANTILES)):
        scaled = rows / np.maximum(lengths, radius)[:, None]
        yield scaled.T @ scaled


def _cells(quick: bool) -> Iterator[Cell]:
    settings: list[dict[str, Value]] = [
        {"table": name, "k": tables.components(name), "epsilon": epsilon, "repetitions": 1 if quick else REPETITIONS}
        for epsilon in ((1.0,) if quick else EPSILONS)
        for name in (_QUICK_TABLES if quick else TABLES)
    ]
    return grid("real", settings, (OURS, *RIVALS, ENVELOPE), 1)


REAL = Suite(
    "real",
    "How much of the variance of real tables does private PCA capture, next to every rival and to the best there is?",
    ("table", "k", "epsilon", "repetitions"), ("n", "d", "tail", "captured", "standard_error", "runs", "near"),
    _cells, measure, lambda quick: 60.0 if quick else 180.0, prepare=lambda: tables.keep_copies(TABLES),
)  # fmt: skip
