"""Do time and memory depend on the values?  Tables of one shape, whose values could not differ more.

Prints processor time (the fastest of several runs, kinds of table in turn) over that of normal records, and the peak
of the memory that NumPy asked for, for Analyze Gauss and the adaptive method.  One thread.
"""

import argparse
import os
import time
import tracemalloc

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when NumPy is imported

import numpy as np

from privspan.baselines import analyze_gauss
from privspan.sums.adaptive import adaptive_subspace

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def tables(n: int, d: int) -> dict[str, np.ndarray]:
    normal = np.random.default_rng(0).normal(size=(n, d))
    return {
        "normal": normal,
        "zeros": np.zeros((n, d)),
        "NaN": np.full((n, d), np.nan),
        "one row, repeated": np.tile(normal[:1], (n, 1)),
        "huge, 1e308": np.clip(normal, -1.0, 1.0) * 1e308,
        "tiny, 1e-308": normal * 1e-308,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="three runs of a small table")
    options = parser.parse_args()
    n, d, repeats = (2_000, 20, 3) if options.quick else (20_000, 50, 9)
    kinds = tables(n, d)
    for function in (analyze_gauss, adaptive_subspace):
        fastest = dict.fromkeys(kinds, np.inf)
        for seed in range(repeats):
            for name, X in kinds.items():
                start = time.process_time()
                function(X, 3, **BUDGET, rng=seed)
                fastest[name] = min(fastest[name], time.process_time() - start)
        print(f"{function.__name__}, {n:,} rows, {d} columns")
        for name, X in kinds.items():
            tracemalloc.start()
            function(X, 3, **BUDGET, rng=0)
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            ratio, more = fastest[name] / fastest["normal"], 1e6 * (fastest[name] - fastest["normal"]) / n
            print(f"  {name:<18} time {ratio:5.2f}, {more:6.2f} µs a row more; peak {peak / X.nbytes:5.2f} tables")


if __name__ == "__main__":
    main()
