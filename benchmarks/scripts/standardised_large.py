"""Standardised PCA of large tables: what is captured of 200,000 rows, and how long a million rows take.

Run ``python benchmarks/scripts/standardised_large.py``: it prints a line per table and stores them in
``benchmarks/results/standardised_large.csv``.  Columns are in units from a thousandth to ten thousand.  Times are
processor times on one thread over those of scikit-learn's `StandardScaler` and `PCA` in the same process.
"""

from __future__ import annotations

import argparse
import csv
import os
import time
from pathlib import Path

os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

import numpy as np
from sklearn.decomposition import PCA
from sklearn.preprocessing import StandardScaler

from privspan import private_pca

RESULTS = Path(__file__).parents[1] / "results" / "standardised_large.csv"
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
D, K = 20, 3


def table(kind: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """Make correlated columns: normal, with the tails of t with 3 degrees of freedom, or of mixed types."""
    turn = np.linalg.qr(rng.standard_normal((D, D)))[0]
    values = rng.standard_normal((n, D)) / np.sqrt(np.arange(1, D + 1)) @ turn
    values /= values.std(axis=0)
    if kind == "t3":
        values /= np.sqrt(rng.chisquare(3, (n, 1)) / 3)
    if kind == "mixed":
        values[:, ::3] = values[:, ::3] > 1.0
        values[:, 1::3] = np.floor(np.exp(0.7 * values[:, 1::3] + 0.3))
    return values * 10.0 ** rng.uniform(-3, 4, D) + rng.uniform(-5, 5, D)


def captured(values: np.ndarray, runs: int) -> float:
    """Return the least share of the best variance of the standardised table, over some fits."""
    correlations = np.corrcoef(values.T)
    best = np.linalg.eigvalsh(correlations)[-K:].sum()
    bases = [private_pca(values, K, **BUDGET, scale=True, rng=seed).subspace.basis for seed in range(runs)]
    return min(float(np.einsum("ij,ij", basis, correlations @ basis) / best) for basis in bases)


def times_of_scikit_learn(values: np.ndarray, runs: int) -> float:
    """Return the median ratio of processor times."""
    ratios = []
    for _ in range(runs):
        start = time.process_time()
        PCA(K).fit(StandardScaler().fit_transform(values))
        middle = time.process_time()
        private_pca(values, K, **BUDGET, scale=True)
        ratios.append((time.process_time() - middle) / (middle - start))
    return float(np.median(ratios))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, one run, nothing stored")
    quick = parser.parse_args().quick
    rng, runs, part = np.random.default_rng(0), 1 if quick else 5, 10 if quick else 1
    lines = []
    for kind in ("normal", "t3", "mixed"):
        n = 200_000 // part
        lines.append({"table": kind, "n": n, "what": "least captured", "value": captured(table(kind, n, rng), runs)})
    n = 1_000_000 // part
    ratio = times_of_scikit_learn(table("normal", n, rng), runs)
    lines.append({"table": "normal", "n": n, "what": "time over scikit-learn", "value": ratio})
    for line in lines:
        line["value"] = f"{line['value']:.4f}"
        print("{table}, {n:,} rows, {what}: {value}".format(**line))
    if not quick:
        with RESULTS.open("w", newline="") as handle:
            writer = csv.DictWriter(handle, lines[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(lines)


if __name__ == "__main__":
    main()
