"""What does a private subspace bring to a private mean, at the same total budget, as the columns grow?

Records lie near a k-dimensional subspace that holds their mean. Without the subspace the whole budget goes to the
mean of all d coordinates; with it, half of mu² learns the subspace and half the mean of the k coordinates in it. The
error is the distance to the true mean, over the length of the true mean. Rows are no longer than a known bound.
Writes ``benchmarks/results/downstream_mean.md``; ``--quick`` stops at d = 1,000.
"""

from __future__ import annotations

import argparse
import statistics
from pathlib import Path

import numpy as np

from privspan.datasets import gaussian_subspace
from privspan.privacy import Budget, share_mu
from privspan.private import private_subspace
from privspan.sums.mean import private_mean

N, K, TAIL = 10_000, 3, 0.05
BOUND = 4.0
BUDGET = Budget(1.0, 1e-6)
HALF = Budget.for_mu(share_mu(BUDGET.mu, 1.0, 1.0)[0], BUDGET.delta)
RESULTS = Path(__file__).parents[1] / "results"


def once(d: int, seed: int) -> tuple[float, float]:
    """Return the relative errors without and with the subspace."""
    X, truth = gaussian_subspace(N, d, K, gamma_w=TAIL, rng=seed)
    mean = truth.basis @ np.ones(K)
    X += mean
    plain = private_mean(X, epsilon=BUDGET.epsilon, delta=BUDGET.delta, norm_bound=BOUND, rng=100 + seed)
    learnt = private_subspace(
        X, K, epsilon=HALF.epsilon, delta=HALF.delta, method="adaptive", rng=200 + seed
    ).subspace
    within = private_mean(
        X, subspace=learnt, epsilon=HALF.epsilon, delta=HALF.delta, norm_bound=BOUND, rng=300 + seed
    )
    centre = X.mean(axis=0)  # the noise is what is compared, not the sampling error that both share
    length = float(np.linalg.norm(mean))
    return tuple(float(np.linalg.norm(release.mean - centre)) / length for release in (plain, within))


def main() -> None:
    """Print and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="up to 1,000 columns")
    quick = parser.parse_args().quick
    print(f"n = {N:,}, k = {K}, tail {TAIL}, {BUDGET.epsilon:g}, {BUDGET.delta:g}; medians of 3, one core\n")
    lines = ["| d | error without | error with | gain |", "|---|---|---|---|"]
    print("\n".join(lines))
    for d in (100, 300, 1_000) if quick else (100, 300, 1_000, 3_000, 10_000):
        runs = [once(d, seed) for seed in range(3)]
        plain, within = (statistics.median(values) for values in zip(*runs, strict=True))
        lines.append(f"| {d:,} | {plain:.4f} | {within:.4f} | {plain / within:.1f} |")
        print(lines[-1], flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "downstream_mean.md").write_text("\n".join(lines) + "\n", "utf-8")


if __name__ == "__main__":
    main()
