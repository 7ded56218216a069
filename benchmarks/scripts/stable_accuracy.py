"""How accurate is stable leverage, from raw records? One line per setting: median error, abstentions, seconds.

python benchmarks/scripts/stable_accuracy.py --quick
python benchmarks/scripts/stable_accuracy.py --table tails --runs 8
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privspan.blocks.bases import block_bases
from privspan.datasets import OUTLIERS, with_outliers
from privspan.privacy import Budget
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.run import open_run
from privspan.rows.dealing import public_order
from privspan.rows.door import open_table
from privspan.stable.groups import stable_group_step
from privspan.stable.records import stable_subspace
from privspan.subspace import Subspace

Array = NDArray[np.float64]
Tail = Callable[[np.random.Generator, int, int], Array]
K, EPSILON, DELTA = 3, 1.0, 1e-6


def normal(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.standard_normal((n, d))


def slow_decay(rng: np.random.Generator, n: int, d: int) -> Array:
    spectrum = 1 / np.arange(1, d + 1)
    return rng.standard_normal((n, d)) * np.sqrt(spectrum * d / spectrum.sum())


def student(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.standard_normal((n, d)) / np.sqrt(rng.chisquare(4, (n, 1)) / 4)


def laplace(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.standard_normal((n, d)) * np.sqrt(rng.exponential(size=(n, 1)))


def lognormal(rng: np.random.Generator, n: int, d: int) -> Array:
    """Not used for tuning."""
    return rng.standard_normal((n, d)) * np.exp(0.5 * rng.standard_normal((n, 1)) - 0.25)


TAILS: dict[str, Tail] = {
    "normal": normal, "1/j": slow_decay, "student-4": student, "laplace": laplace, "lognormal": lognormal,
}  # fmt: skip


def records(
    rng: np.random.Generator, n: int, d: int, gamma_w: float, tail: Tail = normal, condition: float = 1.0
) -> tuple[Array, Subspace]:
    axes = np.linalg.qr(rng.standard_normal((d, K)))[0]
    signal = rng.standard_normal((n, K)) * np.sqrt(np.geomspace(condition, 1, K))
    return signal @ axes.T + gamma_w / np.sqrt(d) * tail(rng, n, d), Subspace(axes)


def measure(label: str, seeds: range, once: Callable[[int], float]) -> None:
    start, errors = time.perf_counter(), np.array([once(seed) for seed in seeds])
    runs = len(seeds)
    seconds = (time.perf_counter() - start) / runs
    answered = errors[~np.isnan(errors)]
    median, worst = (f"{f(answered):.5f}" if len(answered) else "–" for f in (np.median, np.max))
    abstained = f"{runs - len(answered)}/{runs}"
    print(f"{label:54s} median {median:>8s} worst {worst:>8s} abstained {abstained} {seconds:.1f} s", flush=True)


def by_records(n: int, d: int, gamma_w: float, preset: str, *, outliers: tuple[float, str] | None = None,
               tail: Tail = normal) -> Callable[[int], float]:  # fmt: skip
    def once(seed: int) -> float:
        rng = np.random.default_rng(seed)
        X, truth = records(rng, n, d, gamma_w, tail)
        if outliers:
            X = with_outliers(X, *outliers, rng=rng)
        found = stable_subspace(X, K, epsilon=EPSILON, delta=DELTA, preset=preset, rng=seed)
        return np.nan if found.subspace is None else found.subspace.distance(truth)

    return once


def by_groups(n: int, d: int, gamma_w: float, condition: float, block_size: int) -> Callable[[int], float]:
    def once(seed: int) -> float:
        X, truth = records(np.random.default_rng(seed), n, d, gamma_w, condition=condition)
        run = open_run(MuLedger(Budget(EPSILON, DELTA)), seed)
        blocks = block_bases(open_table(X), K, block_size, order=public_order(n, run.streams.public))
        found, _, _ = stable_group_step(blocks.bases, blocks.votes, budget=Budget(EPSILON, DELTA), run=run)
        return np.nan if found is None else found.distance(truth)

    return once


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tables = ["accuracy", "groups", "tails", "outliers", "dimension"]
    parser.add_argument("--table", choices=tables, default="accuracy")
    parser.add_argument("--preset", choices=["auto", "tight", "robust"], default="auto")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1000, help="first seed of data and noise")
    parser.add_argument("--rows", type=int, nargs="*", help="rows of the accuracy table, all by default")
    parser.add_argument("--quick", action="store_true", help="small sizes, three runs")
    options = parser.parse_args()
    preset = options.preset
    seeds = range(options.seed, options.seed + (3 if options.quick else options.runs))
    n, d = (1000, 500) if options.quick else (4000, 5000)
    if options.table == "accuracy":
        sizes = [(5000, 1000, 1e-3), (5000, 2000, 1e-3), (5000, 4000, 1e-3), (20000, 4000, 1e-3), (20000, 4000, 1e-4)]
        chosen = [sizes[row] for row in options.rows or range(len(sizes))]
        for columns, count, gamma_w in [(d, n, 1e-3)] if options.quick else chosen:
            label = f"{preset}: d={columns} n={count} gamma_w={gamma_w:g}"
            measure(label, seeds, by_records(count, columns, gamma_w, preset))
    elif options.table == "groups":
        for condition in (1.0, 100.0):
            label = f"groups of 10: d={d} n={n} condition={condition:g}"
            measure(label, seeds, by_groups(n, d, 1e-3, condition, 10))
    elif options.table == "tails":
        for name, tail in TAILS.items():
            label = f"{preset}: d={d} n={n} tail={name}"
            measure(label, seeds, by_records(n, d, 1e-3, preset, tail=tail))
    elif options.table == "outliers":
        for share in (0.0, 0.01, 0.05):
            for kind in OUTLIERS:
                label = f"{preset}: d={d} n={n} {share:.0%} {kind}"
                measure(label, seeds, by_records(n, d, 1e-3, preset, outliers=(share, kind)))
    else:
        for columns in (1000, 3000, 10000) if options.quick else (1000, 10000, 100000):
            gamma_w = 1e-3 * np.sqrt(5000 / columns)
            label = f"{preset}: d={columns} n={n} gamma_w={gamma_w:.2e}"
            measure(label, seeds, by_records(n, columns, gamma_w, preset))


if __name__ == "__main__":
    main()
