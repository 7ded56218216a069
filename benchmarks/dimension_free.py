"""Does the error depend on the number of columns? Hold gamma_w √d fixed and let d grow from 1,000 to 100,000.

The tail energy gamma_w² is spread over d columns and the noise has d rows, so an error that stays flat here is free
of the dimension. Analyze Gauss, whose noise is a d × d matrix, is shown by its first-order error
(√d + √k) k / (mu n), capped at 1; the formula agrees with its measured error where the matrix fits in memory.

Run ``python benchmarks/dimension_free.py --figure dimension_free.png`` (7 GB of memory for the largest d).
"""

from __future__ import annotations

import argparse
import math
import sys
import time

import numpy as np

from privspan.algorithms.approximate import approximate_subspace
from privspan.algorithms.stable import stable_subspace
from privspan.datasets import gaussian_subspace
from privspan.privacy import Budget

N, K = 4_000, 3
EPSILON, DELTA = 1.0, 1e-6
PRODUCT = 1e-3 * math.sqrt(5_000)
METHODS = {"approximate": approximate_subspace, "stable": stable_subspace}

Row = tuple[int, str, float, int, float]


def analyze_gauss_error(d: int) -> float:
    """Return the first-order error of Analyze Gauss on unit rows with K equal signal directions."""
    return min(1.0, (math.sqrt(d) + math.sqrt(K)) * K / (Budget(EPSILON, DELTA).mu * N))


def measure(d: int, methods: list[str], runs: int) -> list[Row]:
    """Return the median error, the abstentions and the seconds per run of each method."""
    errors: dict[str, list[float]] = {name: [] for name in methods}
    seconds = dict.fromkeys(methods, 0.0)
    for seed in range(runs):
        X, truth = gaussian_subspace(N, d, K, gamma_w=PRODUCT / math.sqrt(d), rng=seed)
        for name in methods:
            start = time.perf_counter()
            release = METHODS[name](X, K, epsilon=EPSILON, delta=DELTA, rng=seed)
            seconds[name] += time.perf_counter() - start
            errors[name].append(math.nan if release.subspace is None else release.subspace.distance(truth))
    return [(d, name, *_summary(errors[name]), seconds[name] / runs) for name in methods]


def _summary(errors: list[float]) -> tuple[float, int]:
    answered = [error for error in errors if not math.isnan(error)]
    return (float(np.median(answered)) if answered else math.nan), len(errors) - len(answered)


def draw(rows: list[Row], path: str) -> None:
    """Draw the errors against d on logarithmic axes."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4))
    for name in dict.fromkeys(row[1] for row in rows):
        axes.loglog(*zip(*[(row[0], row[2]) for row in rows if row[1] == name], strict=True), "o-", label=name)
    columns = sorted({row[0] for row in rows})
    axes.loglog(columns, [analyze_gauss_error(d) for d in columns], "k--", label="Analyze Gauss (first order)")
    axes.set(
        xlabel="columns d", ylabel="error (sine of the largest angle)", title=f"n = {N}, k = {K}, ε = 1, δ = 1e-6"
    )
    axes.legend()
    figure.savefig(path, dpi=150, bbox_inches="tight")


def main() -> None:
    """Parse the command line, print a table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--columns", type=int, nargs="+", default=[1_000, 3_000, 10_000, 30_000, 100_000])
    parser.add_argument("--methods", choices=METHODS, nargs="+", default=list(METHODS))
    parser.add_argument("--figure", help="file to write the figure to")
    arguments = parser.parse_args()
    rows: list[Row] = []
    print(f"{'d':>7} {'method':>12} {'error':>9} {'abstained':>9} {'seconds':>8}   Analyze Gauss")
    for d in arguments.columns:
        for row in measure(d, arguments.methods, arguments.runs):
            rows.append(row)
            print("{:7d} {:>12} {:9.5f} {:9d} {:8.1f}".format(*row), f"  {analyze_gauss_error(d):.3f}")
            sys.stdout.flush()
    if arguments.figure:
        draw(rows, arguments.figure)


if __name__ == "__main__":
    main()
