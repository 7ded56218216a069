"""Are the defaults of the power method and of the range finder the best of their options? Errors over the default's.

One line per choice: the geometric mean, the least and the most of (its error / the default's) over the settings of
the accuracy suite and further ones, on seeds that the defaults were not chosen on. Three minutes.

python benchmarks/scripts/rival_options.py --quick
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from benchmarks.cells import Value
from benchmarks.methods import DELTA
from benchmarks.suites.accuracy import BASE, DATA, GROWTH_SETTING, VARIATIONS, varied
from privspan import baselines

FURTHER: list[dict[str, Value]] = [
    {**BASE, "n": 5_000, "d": 50, "k": 2, "gamma_w": 0.2},
    {**BASE, "n": 20_000, "d": 200, "k": 5, "epsilon": 0.5, "data": "decaying"},
    {**BASE, "n": 20_000, "d": 400, "k": 4, "gamma_w": 0.05, "epsilon": 2.0},
    {**BASE, "n": 20_000, "d": 300, "k": 8, "gamma_w": 0.3, "data": "student"},
    {**BASE, "n": 10_000, "d": 60, "k": 6, "gamma_w": 0.5, "epsilon": 4.0, "data": "lognormal"},
    {**BASE, "n": 3_000, "d": 40, "k": 1, "epsilon": 0.3},
    *({**GROWTH_SETTING, "d": d} for d in (30, 300, 1_000, 2_000)),
]
SEEDS = range(60, 63)


def choices(d: int, k: int) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield rivals with options: a name of the choice, the rival, what it is called with."""
    for columns in (4, 8, 16, 32, 64):
        yield f"range finder, {columns} k columns", "noisy_range_finder", {"sketch": min(d, columns * k)}
    for rounds, columns in itertools.product((1, 2, 3, 4), (2, 16, 32)):
        options = {"rounds": rounds, "directions": min(d, columns * k)}
        yield f"power method, rounds={rounds}, {columns} k directions", "noisy_power", options


def ratios(setting: Mapping[str, Value], seed: int) -> dict[str, float]:
    """Return the error of every choice over that of the default, on one table."""
    data, n, d, k, gamma_w, epsilon = setting.values()
    d, k = int(d), int(k)
    X, truth = DATA[str(data)](int(n), d, k, float(gamma_w), seed)

    def error(rival: str, options: Mapping[str, Any]) -> float:
        release = getattr(baselines, rival)(X, k, epsilon=float(epsilon), delta=DELTA, rng=1_000 + seed, **options)
        return float(release.subspace.distance(truth))

    defaults = {rival: error(rival, {}) for rival in ("noisy_range_finder", "noisy_power")}
    return {name: error(rival, options) / defaults[rival] for name, rival, options in choices(d, k)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two settings, one seed")
    quick = parser.parse_args().quick
    settings = FURTHER[:2] if quick else [*varied(BASE, VARIATIONS), *FURTHER]
    tables = [ratios(setting, seed) for setting in settings for seed in (SEEDS[:1] if quick else SEEDS)]
    print(f"{'choice':46} {'mean':>6} {'least':>6} {'most':>6}")
    for name in tables[0]:
        seen = np.array([table[name] for table in tables])
        print(f"{name:46} {np.exp(np.log(seen).mean()):6.2f} {seen.min():6.2f} {seen.max():6.2f}")


if __name__ == "__main__":
    main()
