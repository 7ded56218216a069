"""How often does the exact subspace come out, and how long does it take?

The rows of the table are the promises of the README: sixty people in any dimension, outliers, larger k, data that
lie in no subspace, and two subspaces with half of the people each. Every run uses fresh data and secure randomness.
``--quick`` makes three runs instead of twenty.
"""

from __future__ import annotations

import argparse
import statistics
import time

import numpy as np

import privspan as ps

EPSILON, DELTA = 1.0, 1e-6


def in_subspace(rng, n, d, k, outliers):
    basis = rng.integers(-1000, 1001, (k, d))
    X = rng.integers(-1000, 1001, (n, k)) @ basis
    X[:outliers] = rng.integers(-1000, 1001, (outliers, d))
    return X, ps.Subspace.from_spanning(basis.T.astype(float))


def in_no_subspace(rng, n, d, k, outliers):
    return rng.integers(-1000, 1001, (n, d)), None


def in_two_subspaces(rng, n, d, k, outliers):
    halves = [in_subspace(rng, n // 2, d, k, 0)[0] for _ in range(2)]
    return np.vstack(halves), None


SETTINGS = [
    # data, n, d, k, outliers, options
    (in_subspace, 60, 10, 3, 0, {}),
    (in_subspace, 60, 100, 3, 0, {}),
    (in_subspace, 60, 1_000, 3, 0, {}),
    (in_subspace, 60, 10_000, 3, 0, {}),
    (in_subspace, 40, 10_000, 3, 0, {}),
    (in_subspace, 100, 10_000, 3, 5, {}),
    (in_subspace, 100, 100, 2, 36, {"rule": "gap"}),
    (in_subspace, 200, 100, 1, 0, {"method": "gap-max"}),
    (in_subspace, 200, 100, 4, 0, {"method": "gap-max"}),
    (in_subspace, 1_000, 2_000, 10, 0, {"method": "votes"}),
    (in_no_subspace, 200, 100, 3, 0, {}),
    (in_two_subspaces, 200, 100, 3, 0, {}),
]


def measure(setting, runs, rng):
    make, n, d, k, outliers, options = setting
    right = wrong = 0
    seconds = []
    for _ in range(runs):
        X, truth = make(rng, n, d, k, outliers)
        start = time.perf_counter()
        found = ps.exact_subspace(X, k, epsilon=EPSILON, delta=DELTA, **options).subspace
        seconds.append(time.perf_counter() - start)
        if found is not None:
            agrees = truth is not None and found.distance(truth) < 1e-9
            right, wrong = right + agrees, wrong + (not agrees)
    return right, wrong, statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--quick", action="store_true", help="three runs each")
    parser.add_argument("--seed", type=int, default=0, help="of the data; the noise is always fresh")
    arguments = parser.parse_args()
    runs = 3 if arguments.quick else arguments.runs
    rng = np.random.default_rng(arguments.seed)
    print(f"epsilon = {EPSILON:g}, delta = {DELTA:g}, {runs} runs each\n")
    print("| data | n | d | k | elsewhere | options | right | wrong | abstained | median s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for setting in SETTINGS:
        right, wrong, seconds = measure(setting, runs, rng)
        make, n, d, k, outliers, options = setting
        name = make.__name__.replace("_", " ")
        chosen = ", ".join(f"{key}={value}" for key, value in options.items()) or "default"
        abstained = runs - right - wrong
        cells = [name, f"{n:,}", f"{d:,}", k, outliers, chosen, right, wrong, abstained, f"{seconds:.2f}"]
        print("|", " | ".join(map(str, cells)), "|", flush=True)


if __name__ == "__main__":
    main()
