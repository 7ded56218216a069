"""How much of the variance of real tables does a private PCA capture, next to Analyze Gauss and to PCA itself?

The short form of the suite "real" of ``privspan bench``, with its tables and its way of measuring: every row counts
as one person, delta is 1e-6. "Captured" is the variance along the private components over that along the same number
of ordinary ones; "error" is the sine of the largest angle between the two subspaces. A table whose package is missing
is left out. Writes ``benchmarks/results/real_data.md`` and ``.png``; ``--quick`` takes every third row and one run.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np

from privspan.bench.cells import NotAvailableError
from privspan.bench.suites.real import COMPONENTS, EPSILONS, METHODS, captured_and_error, table

mpl.use("Agg")

RESULTS = Path(__file__).parent / "results"


def tables() -> dict[str, tuple[np.ndarray, int]]:
    """Return name, table and number of components of the tables that are installed."""
    found = {}
    for name, k in COMPONENTS.items():
        try:
            found[name] = table(name), k
        except NotAvailableError as missing:
            print(f"{name} is left out. {missing}", file=sys.stderr)
    return found


def measure(X: np.ndarray, k: int, epsilon: float, method: str, repetitions: int) -> tuple[float, float]:
    """Return the median captured variance and the median error."""
    runs = [captured_and_error(X, k, epsilon, method, seed) for seed in range(repetitions)]
    return statistics.median(run[0] for run in runs), statistics.median(run[1] for run in runs)


def figure(rows: list[tuple]) -> None:
    """Draw captured variance against epsilon, one panel per table."""
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(row[0] for row in rows))
    _, axes = plt.subplots(1, len(names), figsize=(3.2 * len(names), 3), sharey=True, squeeze=False)
    for axis, name in zip(axes[0], names, strict=True):
        mine = [row for row in rows if row[0] == name]
        for column, label in ((5, "PrivatePCA"), (7, "Analyze Gauss")):
            axis.semilogx([row[4] for row in mine], [row[column] for row in mine], "o-", label=label)
        axis.set(
            title=f"{name}\nn = {mine[0][1]:,}, d = {mine[0][2]}, k = {mine[0][3]}", xlabel="epsilon", ylim=(0, 1.02)
        )
    axes[0][0].set_ylabel("captured variance / PCA's")
    axes[0][0].legend(loc="lower right")
    plt.tight_layout()
    plt.savefig(RESULTS / "real_data.png", dpi=120)


def main() -> None:
    """Print and write the table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="every third row, one run")
    quick = parser.parse_args().quick
    RESULTS.mkdir(exist_ok=True)
    rows = []
    lines = [
        "| table | n | d | k | ε | captured | error | captured, Analyze Gauss | error, Analyze Gauss |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for name, (values, k) in tables().items():
        X = values[::3] if quick else values
        for epsilon in EPSILONS:
            numbers = [value for method in METHODS for value in measure(X, k, epsilon, method, 1 if quick else 5)]
            rows.append((name, *X.shape, k, epsilon, *numbers))
            shown = " | ".join(f"{value:.3f}" for value in numbers)
            lines.append(f"| {name} | {X.shape[0]:,} | {X.shape[1]} | {k} | {epsilon:g} | {shown} |")
            print(lines[-1], flush=True)
    (RESULTS / "real_data.md").write_text("\n".join(lines) + "\n", "utf-8")
    figure(rows)


if __name__ == "__main__":
    main()
