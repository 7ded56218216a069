"""How much of the variance that PCA captures does everyday private PCA capture, on real tables?

Run ``python benchmarks/scripts/everyday_tables.py`` for the three sets of docs/explanation/everyday-tables.md
(development, A and raw: 36 tables, four budgets, 20 repetitions; some minutes on one core), or with ``--quick`` for
two repetitions of the smaller tables.  Captured variance is that of the private basis, among all rows as they are,
over that of the best basis.  The baseline is Analyze Gauss on unit differences of pairs with 82 % of mu².
``--generated`` adds tables that are made up: 4 % of the people long along one axis, and spiked ones with 500 columns.
Results go to ``benchmarks/results/everyday_tables.csv``, means to the screen.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmark is no part of the package

from benchmarks.tables import Case, table
from privspan.pca import private_pca
from privspan.privacy import Budget, Release, epsilon_from_mu
from privspan.privacy.randomness import open_streams
from privspan.sums.adaptive import adaptive_subspace
from privspan.sums.mean import pair_differences

RESULTS = Path(__file__).parents[1] / "results" / "everyday_tables.csv"
DELTA = 1e-6
EPSILONS = (0.1, 0.3, 1.0, 3.0)
QUICK_ROWS = 5000
ESTIMATED_Z = 0.1

SETS = {
    "development": (
        *("digits", "breast cancer raw", "nycflights", "rwm5yr", "Wage", "CPS1985", "ames", "NMES1988", "Boston"),
        *("cells", "gss_abortion", "CASchools"),
    ),
    "A": (
        *("breast cancer", "sp500_1950_2018", "diamonds", "College", "OJ", "HMDA", "storms", "Computers"),
        *("loans_full_schema", "Gestation", "Caschool", "births14"),
    ),
    "raw": tuple(
        f"{name} raw"
        for name in (
            *("nycflights", "rwm5yr", "College", "diamonds", "ames", "NMES1988", "loans_full_schema", "Boston"),
            *("Wage", "cells", "sp500_1950_2018", "Computers"),
        )
    ),
}
TARGETS = {
    "development": (0.629, 0.840, 0.955, 0.978),
    "A": (0.697, 0.814, 0.947, 0.973),
    "raw": (0.851, 0.942, 0.981, 0.991),
}


def generated() -> Iterator[Case]:
    """Make up tables: few long rows, and spiked ones."""
    rng = np.random.default_rng(2024)
    long_rows = rng.standard_normal((60_000, 20)) * np.r_[3.0, 2.0, np.ones(18)]
    long_rows[:2400, -1] *= 40.0
    yield Case("4 % long rows", long_rows + 5.0, 2)
    for name, spikes, offset in (("spiked 200 100", (200, 100), 0.0), ("spiked, offset 3", (200, 100), 3.0)):
        axes = np.linalg.qr(rng.standard_normal((500, len(spikes))))[0]  # (d, k)
        rows = (
            rng.standard_normal((5000, 500))
            + (rng.standard_normal((5000, len(spikes))) * np.sqrt(np.array(spikes) - 1.0)) @ axes.T
        )
        yield Case(name, rows + offset, len(spikes))


def ours(case: Case, budget: Budget, seed: int) -> Release:
    """Run a private PCA as a user would."""
    return private_pca(case.values, case.k, epsilon=budget.epsilon, delta=budget.delta, rng=seed)


def basis_of(release: Release) -> np.ndarray:
    """Return the components, as columns."""
    assert release.subspace is not None
    return release.subspace.basis


def by_pairs(case: Case, budget: Budget, seed: int) -> np.ndarray:
    """Run Analyze Gauss on differences of pairs."""
    pairs = pair_differences(case.values, open_streams(seed).public)
    epsilon = epsilon_from_mu(math.sqrt(0.82) * budget.mu, budget.delta)
    release = adaptive_subspace(pairs, case.k, epsilon=epsilon, delta=budget.delta, robust=False, rng=seed)
    return basis_of(release)


def measured(case: Case, epsilon: float, repetitions: int, seed: int) -> dict[str, float | str]:
    """Return the means of one table at one budget."""
    budget = Budget(epsilon, DELTA)
    releases = [ours(case, budget, seed + i) for i in range(repetitions)]
    got = np.array([case.share(basis_of(release)) for release in releases])
    off = np.array([release.extras["captured_variance"] for release in releases]) - got
    told: list[Any] = [release.parameters for release in releases]
    pairs = [case.share(by_pairs(case, budget, seed + i)) for i in range(repetitions)]
    courses = [one["course"] for one in told]
    n, d = case.values.shape
    return {
        "table": case.name,
        "n": n,
        "d": d,
        "k": case.k,
        "epsilon": epsilon,
        "z": 2.0 * math.sqrt(d) / (n * budget.mu),
        "captured": got.mean(),
        "captured_se": got.std() / math.sqrt(repetitions),
        "pairs": float(np.mean(pairs)),
        "estimate_off": off.mean(),
        "estimate_within_.05": float((np.abs(off) <= 0.05).mean()),
        "estimate_over_.1": float((off > 0.1).mean()),
        "course": max(set(courses), key=courses.count),
        "rounds": float(np.mean([one["rounds"] for one in told])),
        "passes": float(np.mean([one.get("passes", math.nan) for one in told])),
        "repetitions": repetitions,
    }


def _print_estimates(group: str, rows: list[dict[str, float | str]]) -> None:
    """Print how good the estimates of captured variance were where there was data enough."""
    here = [row for row in rows if float(row["z"]) <= ESTIMATED_Z]
    if here:
        within, over = (np.mean([row[key] for row in here]) for key in ("estimate_within_.05", "estimate_over_.1"))
        text = f"{within:.1%} within .05, {over:.1%} over .1 too high"
        print(f"== {group}, estimates for z <= {ESTIMATED_Z}: {text}")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    parser.add_argument("--generated", action="store_true")
    parser.add_argument("--repetitions", type=int, default=20)
    parser.add_argument("--epsilons", type=float, nargs="*", default=list(EPSILONS))
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, help="by default the stored file, but for --quick")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    repetitions = 2 if arguments.quick else arguments.repetitions
    rows: list[dict[str, float | str]] = []
    groups = {name: (table(item) for item in SETS[name]) for name in arguments.sets}
    if arguments.generated:
        groups["generated"] = generated()
    for group, cases in groups.items():
        of_group = []
        for case in cases:
            if arguments.quick and len(case.values) > QUICK_ROWS:
                continue
            for epsilon in arguments.epsilons:
                row = {"set": group, **measured(case, epsilon, repetitions, arguments.seed)}
                print(
                    f"{case.name:24s} eps {epsilon:4} z {row['z']:.3f} captured {row['captured']:.3f} "
                    f"(pairs {row['pairs']:.3f}, estimate off {row['estimate_off']:+.3f}) {row['course']}",
                    flush=True,
                )
                of_group.append(row)
        rows += of_group
        for epsilon in arguments.epsilons:
            here = [row for row in of_group if row["epsilon"] == epsilon]
            means = {key: float(np.mean([row[key] for row in here])) for key in ("captured", "pairs")}
            target = dict(zip(EPSILONS, TARGETS.get(group, ()), strict=False)).get(epsilon)
            text = f"captured {means['captured']:.3f}, pairs {means['pairs']:.3f}, asked {target}"
            print(f"== {group}, eps {epsilon}: {text}")
        _print_estimates(group, of_group)
    _print_estimates("all", rows)
    output = arguments.output or (None if arguments.quick else RESULTS)
    if output is not None:
        with output.open("w", newline="") as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator="\n")
            writer.writeheader()
            for row in rows:
                writer.writerow(
                    {key: round(value, 4) if isinstance(value, float) else value for key, value in row.items()}
                )


if __name__ == "__main__":
    main()
