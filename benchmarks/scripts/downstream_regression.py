"""What does a private subspace bring to a private linear regression, at the same total budget, as the columns grow?

Records lie near a k-dimensional subspace, and the target depends on their place in it, plus a little noise. Without
the subspace the whole budget goes to the noisy second moments of all d columns; with it, half of mu² learns the
subspace and half goes to the second moments of the k coordinates. "Coefficients" is the distance to the true ones
over their length, "prediction" the root mean square of its error over that of the target, of which noise in
the target is 0.058; 1 is what all-zero coefficients give. Bounds on rows and targets are known. Without the subspace
the d × d system is not formed beyond d = 3,000.
Writes ``benchmarks/results/downstream_regression.md``; ``--quick`` stops at d = 300.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import numpy as np

from privspan.datasets import gaussian_subspace
from privspan.privacy import Budget, share_mu
from privspan.private import private_subspace
from privspan.subspace import Subspace
from privspan.sums.regression import PrivateRegression, private_regression

N, K, TAIL = 10_000, 3, 0.05
BOUNDS = {"norm_bound": 4.0, "target_bound": 5.0}
BUDGET = Budget(1.0, 1e-6)
HALF = Budget.for_mu(share_mu(BUDGET.mu, 1.0, 1.0)[0], BUDGET.delta)
LARGEST_SYSTEM = 3_000
RESULTS = Path(__file__).parents[1] / "results"


def fitted(X: np.ndarray, y: np.ndarray, within: Subspace | None, budget: Budget, seed: int) -> PrivateRegression:
    return private_regression(X, y, subspace=within, epsilon=budget.epsilon, delta=budget.delta, **BOUNDS, rng=seed)


def once(d: int, seed: int) -> tuple[float, ...]:
    """Return coefficient and prediction error without and with the subspace; NaN where the system is too large."""
    X, truth = gaussian_subspace(N, d, K, gamma_w=TAIL, rng=seed)
    wanted = truth.basis @ np.ones(K)
    y = X @ wanted + 0.1 * np.random.default_rng((seed, 1)).standard_normal(N)
    options = {"epsilon": HALF.epsilon, "delta": HALF.delta, "method": "adaptive", "rng": 200 + seed}
    learnt = private_subspace(X, K, **options).subspace
    errors: list[float] = []
    for within, budget in ((None, BUDGET), (learnt, HALF)):
        if within is None and d > LARGEST_SYSTEM:
            errors += [np.nan, np.nan]
            continue
        found = fitted(X, y, within, budget, 300 + seed).coefficients
        errors.append(float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted)))
        errors.append(float(np.linalg.norm(X @ found - y) / np.linalg.norm(y)))
    return tuple(errors)


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 300 columns")
    quick = parser.parse_args().quick
    print(f"n = {N:,}, k = {K}, tail {TAIL}, {BUDGET.epsilon:g}, {BUDGET.delta:g}; medians of 3, one core\n")
    lines = [
        "| d | coefficients, without | prediction, without | coefficients, with | prediction, with |",
        "|---|---|---|---|---|",
    ]
    print("\n".join(lines))
    for d in (100, 300) if quick else (100, 300, 1_000, 3_000, 10_000):
        runs = [once(d, seed) for seed in range(3)]
        medians = [statistics.median(values) for values in zip(*runs, strict=True)]
        lines.append(f"| {d:,} | " + " | ".join("–" if np.isnan(one) else f"{one:.3f}" for one in medians) + " |")
        print(lines[-1], flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "downstream_regression.md").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
