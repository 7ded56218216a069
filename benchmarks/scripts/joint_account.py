"""What does it save to account for the coin of stable leverage and its noise together?

Two tables: planned noise of `stable_subspace` over that with a Gaussian coin, from public numbers; and errors of
``private_subspace`` with ``account="joint"`` and ``account="mu"`` on the same ten fresh data sets per setting, one
line per run in ``benchmarks/results/joint_account.csv``. ``--quick`` runs one small setting once and stores nothing;
otherwise about ten minutes of one core.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import time
import warnings
from pathlib import Path

from privspan import private_subspace
from privspan.datasets import gaussian_subspace
from privspan.privacy import Budget
from privspan.stable import plan

STORED = Path(__file__).parents[1] / "results" / "joint_account.csv"
FIELDS = ("n", "d", "gamma_w", "seed", "account", "method", "error", "seconds")
EPSILON, DELTA, K = 1.0, 1e-6, 3
FIRST_SEED, RUNS = 34_000, 10
CELLS = {  # where no rounds follow the look, and the error that was to be reached
    (1_000, 5_000, 1e-3): 0.036,
    (2_000, 2_000, 1e-3): 0.0045,
    (4_000, 5_000, 1e-3): 0.0019,
}


def planned(sizes: tuple[int, ...]) -> None:
    """Print the noise of an entry of the basis at a tail of 1e-3, over what it is with a Gaussian coin."""
    for n in sizes:
        split = plan.plan_stable_split(n, K, EPSILON, DELTA)
        norm, share = plan.normal_scales(K, split.norm_quantile)
        gaussian, joint = split.budget(EPSILON, DELTA), plan.record_shares(n, K, Budget(EPSILON, DELTA), {})
        strength = plan.usual_strength(n, share, gaussian.mu_signal / split.signal**0.5, split.signal)
        noise = []
        for shares in (gaussian, joint):
            levels = plan.plan_levels(n, n, strength, 1e-3 / norm, shares.coin.margins(), plan.STABLE.tight)
            assert levels is not None
            noise.append(levels.sensitivity() / shares.mu_noise)
        ratio = noise[1] / noise[0]
        print(f"planned, n {n:5}: {noise[0]:.3e} with a Gaussian coin, {noise[1]:.3e} jointly, {ratio:.3f}")


def run(n: int, d: int, gamma_w: float, seed: int, account: str) -> dict[str, object]:
    """Learn one subspace from one data set."""
    X, truth = gaussian_subspace(n, d, K, gamma_w=gamma_w, rng=seed)
    begun = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = private_subspace(X, K, epsilon=EPSILON, delta=DELTA, account=account, rng=seed + 1_000)
    error, seconds = f"{found.subspace.distance(truth):.6g}", f"{time.perf_counter() - begun:.1f}"
    return dict(zip(FIELDS, (n, d, gamma_w, seed, account, found.method, error, seconds), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    planned((2_000,) if quick else (1_000, 2_000, 4_000))
    if quick:
        print(run(1_000, 200, 1e-3, 1, "joint"))
        return
    lines = []
    for (n, d, gamma_w), bar in CELLS.items():
        for account in ("joint", "mu"):
            runs = [run(n, d, gamma_w, FIRST_SEED + i, account) for i in range(RUNS)]
            lines += runs
            median = statistics.median(float(str(one["error"])) for one in runs)
            print(f"n {n}, d {d}, tail {gamma_w:g}, {account}: median {median:.3g}; to be reached: {bar}", flush=True)
    with STORED.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
