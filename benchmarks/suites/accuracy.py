"""How far the answer is from the truth: three suites on generated data with a known subspace.

The error is the sine of the largest angle between the released subspace and the one that the records were drawn
around. ``gamma_w`` is the square root of the tail's whole energy, over the standard deviation of a signal direction.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from benchmarks.cells import Cell, Suite, Value
from benchmarks.methods import METHODS, check_size, learn
from privspan.datasets import gaussian_subspace, heavy_tailed_subspace, spiked_subspace, with_outliers
from privspan.subspace import Subspace

SETTINGS = ("data", "n", "d", "k", "gamma_w", "epsilon")
BASE: dict[str, Value] = {"data": "flat", "n": 10_000, "d": 100, "k": 3, "gamma_w": 0.1, "epsilon": 1.0}
"""One setting that most people would call ordinary; the accuracy suite changes one number of it at a time."""

VARIATIONS: dict[str, tuple[Value, ...]] = {
    "n": (1_000, 3_000, 10_000, 30_000, 100_000),
    "gamma_w": (1.0, 0.3, 0.03, 0.01, 0.001),
    "epsilon": (0.1, 0.3, 3.0, 10.0),
    "k": (1, 10),
    "data": ("decaying", "student", "lognormal", "5% huge", "5% equal", "5% aligned"),
}
GROWTH_COLUMNS = (30, 100, 300, 1_000, 2_000, 5_000, 10_000, 30_000)
GROWTH_SETTING: dict[str, Value] = {**BASE, "n": 2_000, "gamma_w": 0.001}
MAP_ROWS = (500, 1_000, 2_000, 4_000, 16_000)
MAP_TAILS = (1e-4, 1e-3, 1e-2, 0.1, 1.0)
MAP_COLUMNS = 1_000
MAP_METHODS = ("adaptive", "stable", "approximate", "histogram", "analyze_gauss", "analyze_gauss_gap", "noisy_power")

_QUICK_SETTING: dict[str, Value] = {**BASE, "n": 2_000, "gamma_w": 0.0005}  # a tail that every method bears

Maker = Callable[[int, int, int, float, int], tuple[Any, Subspace]]


def _outliers(kind: str) -> Maker:
    def make(n: int, d: int, k: int, gamma_w: float, seed: int) -> tuple[Any, Subspace]:
        X, truth = gaussian_subspace(n, d, k, gamma_w=gamma_w, rng=seed)
        return with_outliers(X, 0.05, kind, rng=seed), truth  # type: ignore[arg-type]

    return make


DATA: dict[str, Maker] = {
    "flat": lambda n, d, k, w, seed: gaussian_subspace(n, d, k, gamma_w=w, rng=seed),
    "decaying": lambda n, d, k, w, seed: spiked_subspace(n, d, k, gamma_w=w, decay=1.0, rng=seed),
    "student": lambda n, d, k, w, seed: heavy_tailed_subspace(n, d, k, gamma_w=w, law="student", rng=seed),
    "lognormal": lambda n, d, k, w, seed: heavy_tailed_subspace(n, d, k, gamma_w=w, law="lognormal", rng=seed),
    "5% huge": _outliers("huge"),
    "5% equal": _outliers("equal"),
    "5% aligned": _outliers("aligned"),
}


def measure(cell: Cell) -> tuple[dict[str, Value], float]:
    """Draw the data, run the method, return its error."""
    data, n, d, k, gamma_w, epsilon = cell.setting.values()
    n, d, k, gamma_w, epsilon = int(n), int(d), int(k), float(gamma_w), float(epsilon)
    check_size(cell.method, n, d)
    X, truth = DATA[str(data)](n, d, k, gamma_w, cell.seed)
    gamma = gamma_w / math.sqrt(d)
    found, seconds = learn(cell.method, X, k, epsilon=epsilon, seed=1_000 + cell.seed, gamma=gamma)
    return {"error": found.distance(truth)}, seconds


def grid(suite: str, settings: Sequence[Mapping[str, Value]], methods: tuple[str, ...], seeds: int) -> Iterator[Cell]:
    """Yield every method on every setting, all of them with the first seed, then with the next."""
    for seed in range(seeds):
        for setting in settings:
            for method in methods:
                yield Cell(suite, method, setting, seed)


def _accuracy_cells(quick: bool) -> Iterator[Cell]:
    settings = [_QUICK_SETTING] if quick else varied(BASE, VARIATIONS)
    return grid("accuracy", settings, tuple(METHODS), 1 if quick else 3)


def varied(base: dict[str, Value], variations: dict[str, tuple[Value, ...]]) -> list[dict[str, Value]]:
    """Return the base setting and those that differ from it in one number."""
    others = [{**base, name: value} for name, values in variations.items() for value in values]
    return [base, *(setting for setting in others if setting != base)]


def _growth_cells(quick: bool) -> Iterator[Cell]:
    columns = (30, 300, 3_000) if quick else GROWTH_COLUMNS
    methods = ("adaptive", "stable", "analyze_gauss") if quick else tuple(METHODS)
    n = 1_000 if quick else GROWTH_SETTING["n"]
    return grid("growth", [{**GROWTH_SETTING, "n": n, "d": d} for d in columns], methods, 1 if quick else 3)


def _map_cells(quick: bool) -> Iterator[Cell]:
    rows, tails, d = ((500, 1_000), (0.001, 0.1), 200) if quick else (MAP_ROWS, MAP_TAILS, MAP_COLUMNS)
    settings = [{**BASE, "n": n, "d": d, "gamma_w": tail} for n in rows for tail in tails]
    return grid("map", settings, MAP_METHODS, 1 if quick else 3)


def _limit(quick: bool) -> float:
    return 60.0 if quick else 300.0


ACCURACY = Suite(
    "accuracy",
    "How far from the truth is each method in an ordinary setting, and when one number of it changes?",
    SETTINGS, ("error",), _accuracy_cells, measure, _limit,
)  # fmt: skip
GROWTH = Suite(
    "growth",
    "How does the error grow with the number of columns when the number of records stays the same?",
    SETTINGS, ("error",), _growth_cells, measure, _limit,
)  # fmt: skip
MAP = Suite(
    "map",
    "Which method is best, for how many records and how long a tail?",
    SETTINGS, ("error",), _map_cells, measure, _limit,
)  # fmt: skip
