"""How good are the constants of k-DP-PCA, and what does it cost to look at every record once only, as published?

One line per set of constants: its error over that of the code as it is, geometric mean over settings and seeds, on
those that the constants were chosen on and on others. Then the errors themselves on the others. A quarter of an hour.

python benchmarks/scripts/k_dp_pca.py --quick
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmark is no part of the package

from benchmarks.methods import DELTA  # noqa: E402
from benchmarks.suites.accuracy import BASE, DATA  # noqa: E402
from privspan import baselines  # noqa: E402
from privspan.baselines._tuning import RIVALS  # noqa: E402

module: Any = sys.modules["privspan.baselines.k_dp_pca"]  # the package offers a function under its name
AS_IS: dict[str, Any] = {}
CONSTANTS: dict[str, dict[str, Any]] = {
    "as it is": AS_IS,
    "half the steps": {"oja_steps": 4, "oja_steps_alone": 8},
    "1.5 times the steps": {"oja_steps": 12, "oja_steps_alone": 24},
    "two steps forgotten": {"oja_forgotten": 2},
    "spread for 3 % of mu²": {"oja_spread": 0.03},
    "spread for 30 % of mu²": {"oja_spread": 0.3},
    "clip at 0.7 times the spread": {"oja_clip": 0.7},
    "clip at 1.4 times the spread": {"oja_clip": 1.4},
    "single pass": {"single_pass": True},
    "single pass, 2 steps": {"single_pass": True, "steps": 2},
    "single pass, 8 steps": {"single_pass": True, "steps": 8},
}
SMALL: dict[str, Any] = {**BASE, "n": 3_000}
CHOSEN_ON = [
    SMALL,
    *({**SMALL, "k": 1, "gamma_w": tail} for tail in (0.1, 0.01, 1.0)),
    {**SMALL, "k": 10},
    {**SMALL, "epsilon": 0.3},
    {**SMALL, "epsilon": 10.0},
    {**SMALL, "gamma_w": 1.0},
    {**SMALL, "data": "5% equal"},
    {**SMALL, "data": "decaying"},
]
OTHERS = [
    BASE,
    *({**BASE, "k": 1, "gamma_w": tail} for tail in (0.3, 0.03, 0.001)),
    {**BASE, "k": 2, "d": 300},
    {**BASE, "k": 5, "epsilon": 3.0},
    {**BASE, "n": 30_000, "gamma_w": 0.3},
    {**BASE, "data": "student"},
    {**BASE, "data": "5% huge"},
]


def error(setting: dict[str, Any], seed: int, constants: dict[str, Any]) -> float:
    """Run k-DP-PCA with these constants and options on one table."""
    X, truth = _table(setting, seed)
    private = {name: value for name, value in constants.items() if name.startswith("oja_")}
    options = {name: value for name, value in constants.items() if name not in private}
    module.RIVALS = replace(RIVALS, **private)
    try:
        release = baselines.k_dp_pca(
            X, setting["k"], epsilon=setting["epsilon"], delta=DELTA, rng=1_000 + seed, **options
        )
    finally:
        module.RIVALS = RIVALS
    assert release.subspace is not None
    return release.subspace.distance(truth)


def _table(setting: dict[str, Any], seed: int) -> tuple[Any, Any]:
    return DATA[setting["data"]](setting["n"], setting["d"], setting["k"], setting["gamma_w"], seed)


def errors(settings: list[dict[str, Any]], seeds: range) -> dict[str, np.ndarray]:
    """Return the errors of all constants, (settings, seeds) each."""
    return {
        name: np.array([[error(setting, seed, constants) for seed in seeds] for setting in settings])
        for name, constants in CONSTANTS.items()
    }


def rivals(setting: dict[str, Any], seeds: range) -> list[float]:
    """Return the median errors of the noisy power method and of Analyze Gauss."""
    found = []
    for rival in (baselines.noisy_power, baselines.analyze_gauss):
        distances = []
        for seed in seeds:
            X, truth = _table(setting, seed)
            release = rival(X, setting["k"], epsilon=setting["epsilon"], delta=DELTA, rng=1_000 + seed)
            distances.append(release.subspace.distance(truth))
        found.append(float(np.median(distances)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="three settings and one seed")
    quick = parser.parse_args().quick
    most, count = (3, 1) if quick else (None, 3)
    chosen = errors(CHOSEN_ON[:most], range(200, 200 + count))
    others_seeds = range(300, 300 + count)
    others = errors(OTHERS[:most], others_seeds)
    print(f"{'constants':<30} {'chosen on':>10} {'others':>10}")
    for name in CONSTANTS:
        ratios = [np.exp(np.log(part[name] / part["as it is"]).mean()) for part in (chosen, others)]
        print(f"{name:<30} {ratios[0]:>10.2f} {ratios[1]:>10.2f}")
    print(f"\n{'median error on the others':<44} {'k-DP-PCA':>9} {'1 pass':>9} {'power':>9} {'A. Gauss':>9}")
    for i, setting in enumerate(OTHERS[:most]):
        ours = [float(np.median(others[name][i])) for name in ("as it is", "single pass")]
        line = " ".join(f"{value:>9.2g}" for value in (*ours, *rivals(setting, others_seeds)))
        print(f"{', '.join(map(str, setting.values())):<44} {line}")


if __name__ == "__main__":
    main()
