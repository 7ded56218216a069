"""What does it cost wide private PCA to stop early where directions stand out of the noise?

Every table is fitted with the rule and without it, with the same seeds: passes over the rows, and the variance that
was captured of what the best components have.  The constant of the rule was chosen with `--tables chosen`; the table
of docs/explanation/everyday-tables.md is of the others, which were made afterwards.  Half an hour on one thread.

    python benchmarks/scripts/wide_stopping.py [--quick] [--tables others|chosen]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from functools import partial

import numpy as np
from sklearn.datasets import load_digits
from sklearn.preprocessing import PolynomialFeatures
from threadpoolctl import threadpool_limits

from privspan._lib.watch import watching_rows
from privspan.estimators import PrivatePCA
from privspan.sums import lazy_looks
from privspan.sums.krylov import KRYLOV, KrylovTuning, leading_pairs


def spiked(n: int, d: int, k: int, weak: float, strong: float, *, seed: int, tail: float = 0.0, heavy: bool = False):
    """Rows with k directions of these deviations on a tail that falls with this power, about a centre off zero."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((d, k)))[0]
    falls = np.arange(1.0, d + 1.0) ** -tail
    X = (rng.standard_normal((n, k)) * np.linspace(strong, weak, k)) @ axes.T
    X += rng.standard_normal((n, d)) * falls * np.sqrt(d / (falls**2).sum())
    if heavy:
        X *= np.sqrt(rng.standard_t(4, size=(n, 1)) ** 2 + 0.3)
    return X + 2.0 * rng.standard_normal(d)


def products(columns: slice) -> np.ndarray:
    """Products of pairs of pixels of handwritten digits, six copies of each: real, skew and many columns."""
    pixels = np.repeat(load_digits().data[:, columns] / 16.0, 6, axis=0)
    return PolynomialFeatures(2, include_bias=False).fit_transform(pixels)


Table = tuple[Callable[[], np.ndarray], int]
TABLES: dict[str, dict[str, Table]] = {
    "chosen": {
        "equal": (lambda: spiked(20_000, 500, 5, 4, 4, seed=0), 5),
        "strong to weak": (lambda: spiked(20_000, 500, 6, 2.5, 10, seed=0), 6),
        "falling tail": (lambda: spiked(20_000, 600, 8, 3, 12, seed=0, tail=0.5), 8),
        "heavy": (lambda: spiked(20_000, 400, 5, 4, 8, seed=0, heavy=True), 5),
        "few rows": (lambda: spiked(8_000, 2_000, 5, 12, 25, seed=0), 5),
        "weak": (lambda: spiked(40_000, 400, 10, 1.5, 6, seed=0), 10),
        "twenty": (lambda: spiked(30_000, 800, 20, 5, 15, seed=0), 20),
        "digits": (lambda: products(slice(2, 32)), 5),
    },
    "others": {
        "equal": (lambda: spiked(30_000, 350, 4, 3, 3, seed=11), 4),
        "strong to weak": (lambda: spiked(15_000, 700, 8, 4, 20, seed=12), 8),
        "falling tail": (lambda: spiked(25_000, 450, 5, 4, 9, seed=13, tail=0.7), 5),
        "heavy": (lambda: spiked(30_000, 300, 3, 3, 9, seed=14, heavy=True), 3),
        "few rows": (lambda: spiked(6_000, 1_500, 3, 15, 30, seed=15), 3),
        "one strong": (lambda: spiked(20_000, 500, 7, 3, 40, seed=16), 7),
        "fifteen": (lambda: spiked(40_000, 600, 15, 4, 12, seed=17), 15),
        "digits": (lambda: products(slice(30, 60)), 6),
    },
}


def captured_and_passes(X: np.ndarray, k: int, epsilon: float, fits: int, rule: float) -> tuple[np.ndarray, float]:
    lazy_looks.leading_pairs = partial(leading_pairs, tuning=KrylovTuning(standing_out=rule))
    moment = np.cov(X.T)
    best, captured, seen = np.linalg.eigvalsh(moment)[-k:].sum(), [], []
    for seed in range(fits):
        with watching_rows(seen.append):
            model = PrivatePCA(k, epsilon=epsilon, delta=1e-6, random_state=seed).fit(X)
        captured.append(np.trace(model.components_ @ moment @ model.components_.T) / best)
    return np.array(captured), sum(seen) / (len(X) * fits)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two fits of one table")
    parser.add_argument("--tables", choices=TABLES, default="others")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    tables = dict(list(TABLES[options.tables].items())[: 1 if options.quick else None])
    print("| table | k | ε | captured without | difference | passes without | with |\n" + 7 * "|---" + "|")
    for name, (made, k) in tables.items():
        X = made()
        for epsilon in (1.0,) if options.quick else (0.3, 1.0, 3.0):
            fits = 2 if options.quick else 8
            before, passes = captured_and_passes(X, k, epsilon, fits, 0.0)
            after, fewer = captured_and_passes(X, k, epsilon, fits, KRYLOV.standing_out)
            change, error = (after - before).mean(), (after - before).std() / np.sqrt(fits)
            row = f"| {name} | {k} | {epsilon:g} | {before.mean():.4f} | {change:+.4f} ± {error:.4f} "
            print(row + f"| {passes:.1f} | {fewer:.1f} |", flush=True)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
