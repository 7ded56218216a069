"""Does the error depend on the number of columns? Hold gamma_w √d fixed and let d grow from 1,000 to 100,000.

The tail energy gamma_w² is spread over d columns and the noise has d rows, so an error that stays flat here is free
of the dimension. Analyze Gauss, whose noise is a d × d matrix, is measured up to 10,000 columns; its first-order
error (√d + √k) k / (mu n), capped at 1, is drawn as a dashed line.

Run ``python benchmarks/scripts/dimension_free.py --figure dimension_free.png`` (7 GB of memory for the largest d).
The numbers go to ``benchmarks/results/dimension_free.json``; ``--replot`` draws them again without measuring.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from pathlib import Path

import numpy as np

from privspan.approximate import approximate_subspace
from privspan.datasets import gaussian_subspace
from privspan.privacy import Budget
from privspan.stable.records import stable_subspace
from privspan.sums.analyze_gauss import analyze_gauss

N, K = 4_000, 3
EPSILON, DELTA = 1.0, 1e-6
PRODUCT = 1e-3 * math.sqrt(5_000)
METHODS = {"Analyze Gauss": analyze_gauss, "approximate": approximate_subspace, "stable": stable_subspace}
LARGEST = {"Analyze Gauss": 10_000}  # columns for which a d × d matrix is drawn
NAMES = {"Analyze Gauss": "Analyze Gauss", "approximate": "stable groups", "stable": "stable leverage"}
MEANINGS = {
    "Analyze Gauss": "noise on every pair of columns",
    "approximate": "what groups of people agree on",
    "stable": "noise for what one person can do",
}
COLOURS = {"Analyze Gauss": "0.35", "approximate": "#4b9a6f", "stable": "#2a62a8"}
RESULTS = Path(__file__).parents[1] / "results" / "dimension_free.json"

Row = tuple[int, str, float, int, float]


def analyze_gauss_error(d: int) -> float:
    """Return the first-order error of Analyze Gauss on unit rows with K equal signal directions."""
    return min(1.0, (math.sqrt(d) + math.sqrt(K)) * K / (Budget(EPSILON, DELTA).mu * N))


def measure(d: int, methods: list[str], runs: int) -> list[Row]:
    """Return the median error, the abstentions and the seconds per run of each method."""
    methods = [name for name in methods if d <= LARGEST.get(name, d)]
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
    """Draw the errors against d on logarithmic axes, each line named at its end."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(8.6, 4.2), layout="constrained")
    columns = sorted({row[0] for row in rows})
    axes.axhspan(0.5, 1.0, color="0.93")
    axes.text(columns[0], 0.68, "of no use", color="0.45", va="center")
    axes.loglog(columns, [analyze_gauss_error(d) for d in columns], "--", color=COLOURS["Analyze Gauss"], lw=1.2)
    for name in dict.fromkeys(row[1] for row in rows):
        line = [(row[0], row[2]) for row in rows if row[1] == name]
        axes.loglog(*zip(*line, strict=True), "o-", color=COLOURS[name], lw=2)
        end = (columns[-1], analyze_gauss_error(columns[-1])) if name == "Analyze Gauss" else line[-1]
        for text, below, style in ((NAMES[name], 0, {"weight": "bold"}), (MEANINGS[name], -12, {"fontsize": 8})):
            place = {"xytext": (10, below), "textcoords": "offset points", "va": "center"}
            axes.annotate(text, end, **place, color=COLOURS[name], **style)
    axes.set(xlabel="columns", ylabel="error (0 is perfect, 1 is useless)", ylim=(None, 1.0))
    axes.xaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:,.0f}"))
    axes.yaxis.set_major_formatter(matplotlib.ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.set_title(f"{K} directions learnt from {N:,} people (ε = {EPSILON:g}, δ = {DELTA:g})", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def table(columns: list[int], methods: list[str], runs: int) -> list[Row]:
    """Measure, and print each row as soon as it is there."""
    rows: list[Row] = []
    print(f"{'d':>7} {'method':>13} {'error':>9} {'abstained':>9} {'seconds':>8}   Analyze Gauss")
    for d in columns:
        for row in measure(d, methods, runs):
            rows.append(row)
            print("{:7d} {:>13} {:9.5f} {:9d} {:8.1f}".format(*row), f"  {analyze_gauss_error(d):.3f}")
            sys.stdout.flush()
    return rows


def main() -> None:
    """Parse the command line, print a table, draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--columns", type=int, nargs="+", default=[1_000, 3_000, 10_000, 30_000, 100_000])
    parser.add_argument("--methods", choices=METHODS, nargs="+", default=list(METHODS))
    parser.add_argument("--figure", help="file to write the figure to")
    parser.add_argument("--replot", action="store_true", help="draw the stored numbers again")
    parser.add_argument("--quick", action="store_true", help="one run each, up to 3,000 columns")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.runs, arguments.columns = 1, [1_000, 3_000]
    rows: list[Row] = [tuple(row) for row in json.loads(RESULTS.read_text())] if arguments.replot else []
    if not arguments.replot:
        rows = table(arguments.columns, arguments.methods, arguments.runs)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(rows))
    if arguments.figure:
        draw(rows, arguments.figure)


if __name__ == "__main__":
    main()
