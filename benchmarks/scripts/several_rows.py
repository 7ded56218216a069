"""What are several rows a person worth?  The digits of scikit-learn as five pictures of each of 360 people.

Captured variance, as a share of what ordinary PCA of all pictures captures, by four ways to promise privacy for
people: persons with `person=`, at most 8 or 5 rows each; group privacy, which is row by row with a budget so much
smaller that five rows together have the whole; and one picture a person, drawn at random.  Who is whose is drawn for
each run.
One line per way and epsilon; --output stores the runs as CSV.

python benchmarks/scripts/several_rows.py --quick
"""

from __future__ import annotations

import argparse
import csv
import math
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from privspan import PrivatePCA
from privspan.private import UselessPlanWarning

ROWS, COMPONENTS, DELTA = 5, 5, 1e-5
COLUMNS = ("way", "epsilon", "seed", "captured")
Array = NDArray[np.float64]
Fit = Callable[[Array, NDArray[np.intp], float, int], Array]


def fitted(X: Array, epsilon: float, delta: float = DELTA, person: object = None, max_rows: int = 8) -> Array:
    """Return private components, (components, columns)."""
    model = PrivatePCA(COMPONENTS, epsilon=epsilon, delta=delta, max_rows=max_rows)
    return np.asarray(model.fit(X, person=person).components_)


def group_budget(epsilon: float, delta: float, rows: int) -> tuple[float, float]:
    """Return the budget of one row with which so many rows together have at most (epsilon, delta).

    (e, f) for one is (m e, f (exp(m e) - 1) / (exp(e) - 1)) for m, so e = epsilon / m and f follows.
    """
    each = epsilon / rows
    return each, delta * math.expm1(each) / math.expm1(epsilon)


def one_of_each(X: Array, ids: NDArray[np.intp], seed: int) -> Array:
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order[np.unique(ids[order], return_index=True)[1]]]


WAYS: dict[str, Fit] = {
    "person=, max_rows=8": lambda X, ids, epsilon, seed: fitted(X, epsilon, person=ids),
    "person=, max_rows=5": lambda X, ids, epsilon, seed: fitted(X, epsilon, person=ids, max_rows=5),
    "group privacy": lambda X, ids, epsilon, seed: fitted(X, *group_budget(epsilon, DELTA, ROWS)),
    "one row a person": lambda X, ids, epsilon, seed: fitted(one_of_each(X, ids, seed), epsilon),
}


def captured(X: Array, components: Array) -> float:
    """Return the variance along directions, as a share of the most that as many directions have."""
    covariance = np.cov(X.T)
    best = np.linalg.eigvalsh(covariance)[-len(components) :].sum()
    return float(np.trace(components @ covariance @ components.T) / best)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--output", type=Path, help="CSV file to write")
    parser.add_argument("--quick", action="store_true", help="two runs of each")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", UselessPlanWarning)
    X = load_digits().data
    runs = []
    for epsilon in (1.0, 3.0):
        for way, fit in WAYS.items():
            shares = []
            for seed in range(2 if arguments.quick else arguments.runs):
                ids = np.random.default_rng(seed).permutation(len(X)) // ROWS
                shares.append(captured(X, fit(X, ids, epsilon, seed)))
                runs.append((way, epsilon, seed, f"{shares[-1]:.4f}"))
            low, high = np.quantile(shares, (0.1, 0.9))
            print(f"epsilon {epsilon:g}  {way:<20} {np.median(shares):.3f}  ({low:.3f} to {high:.3f})", flush=True)
    if arguments.output is not None:
        with arguments.output.open("w", newline="") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *runs])


if __name__ == "__main__":
    main()
