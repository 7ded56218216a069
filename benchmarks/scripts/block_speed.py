"""How long does the block stage take, next to scikit-learn's randomized PCA on the same matrix?

Run ``python benchmarks/scripts/block_speed.py`` (all cores, 10 GB of memory, two minutes), or with ``--quick`` for
matrices a tenth as tall. The first table compares; the second shows how the time grows with n and with d.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
from sklearn.decomposition import PCA

from privspan.blocks.bases import block_bases
from privspan.blocks.plan import stable_block_size
from privspan.rows.dealing import public_order
from privspan.rows.door import open_table

SHAPES = [(200_000, 1_000, 3), (200_000, 1_000, 10), (20_000, 10_000, 10)]


def seconds(action: Callable[[], object], repeats: int = 3) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def data(n: int, d: int) -> np.ndarray:
    """Return normal records of that shape."""
    return np.random.default_rng(0).standard_normal((n, d))


def compare(shrink: int) -> None:
    """Print both times for the three shapes."""
    print(f"{'n':>8} {'d':>6} {'k':>3} {'m':>3} {'blocks':>8} {'shuffled':>9} {'PCA':>8}  [s]")
    for full, d, k in SHAPES:
        n = full // shrink
        m = stable_block_size(n, k)
        X = data(n, d)
        order = public_order(n, np.random.default_rng(0))
        plain = seconds(lambda X=X, k=k, m=m: block_bases(open_table(X), k, m))
        shuffled = seconds(lambda X=X, k=k, m=m, order=order: block_bases(open_table(X), k, m, order=order))
        pca = seconds(lambda X=X, k=k: PCA(k, svd_solver="randomized", random_state=0).fit(X))
        print(f"{n:8d} {d:6d} {k:3d} {m:3d} {plain:8.2f} {shuffled:9.2f} {pca:8.2f}")


def growth(shrink: int) -> None:
    """Print the time per entry of the matrix while n and d double."""
    print(f"\n{'n':>8} {'d':>6} {'seconds':>8} {'ns per entry':>13}   (k = 3)")
    for n, d in [(25_000, 1_000), (50_000, 1_000), (100_000, 1_000), (25_000, 2_000), (25_000, 4_000)]:
        X = data(n // shrink, d)
        took = seconds(lambda X=X: block_bases(open_table(X), 3, stable_block_size(4_000, 3)))
        print(f"{len(X):8d} {d:6d} {took:8.3f} {took / X.size * 1e9:13.2f}")


def main() -> None:
    """Parse the command line and print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="matrices a tenth as tall")
    shrink = 10 if parser.parse_args().quick else 1
    compare(shrink)
    growth(shrink)


if __name__ == "__main__":
    main()
