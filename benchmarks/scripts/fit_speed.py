"""How long does `PrivatePCA.fit` take beside scikit-learn's PCA, on one thread?

Ours and its peers fit the same table in turn, in one process, which is a new one for each table, or with
``--together`` one for all of them, as a notebook has; processor time, medians.  A ratio above one means that privacy
costs time.  Passes are rows handed to the algorithm over rows of the table.  The last lines are of people near a
subspace; the very last has that course beside `robust=True`, which was the course of every table before everyday
tables had one of their own.
Writes ``benchmarks/results/fit_speed.csv`` (not with ``--quick`` or ``--together``).
"""

from __future__ import annotations

import argparse
import csv
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA
from threadpoolctl import threadpool_limits

from privspan._lib.watch import watching_rows
from privspan.estimators import PrivatePCA

RESULTS = Path(__file__).parents[1] / "results" / "fit_speed.csv"
COLUMNS = ("table", "n", "d", "k", "dtype", "peer", "ours_s", "peer_s", "ratio", "passes")
FORMER = "robust=True"


@dataclass(frozen=True)
class Case:
    """A table and whom to compare with: the fastest of the peers counts."""

    name: str
    n: int
    d: int
    k: int
    dtype: str
    peers: tuple[str, ...]
    tail: float = 1.0  # standard deviation of every entry off the k directions
    even: float | None = None  # that along each of them; None for some that fall from sqrt(d) to a third of it

    def table(self) -> NDArray[Any]:
        """Return rows with k strong directions about a centre far from zero."""
        rng = np.random.default_rng(0)
        basis = np.linalg.qr(rng.standard_normal((self.d, self.k)))[0].T.astype(np.float32)
        strengths = np.linspace(3.0, 1.0, self.k, dtype=np.float32) * np.float32(np.sqrt(self.d) / 3.0)
        if self.even is not None:
            strengths[:] = self.even
        X = (rng.standard_normal((self.n, self.k), dtype=np.float32) * strengths) @ basis
        X += np.float32(self.tail) * rng.standard_normal((self.n, self.d), dtype=np.float32)
        X += 2.0 * rng.standard_normal(self.d, dtype=np.float32)
        return X.astype(self.dtype)


CASES = (
    Case("many columns", 50_000, 1_000, 10, "float32", ("randomized",)),
    Case("many columns", 50_000, 1_000, 10, "float64", ("randomized",)),
    Case("more columns than rows", 4_000, 10_000, 10, "float64", ("randomized",)),
    Case("few columns", 1_000_000, 20, 3, "float64", ("covariance_eigh", "randomized")),
    Case("hundred columns", 100_000, 100, 3, "float64", ("covariance_eigh", "randomized")),
    Case("near a subspace", 300_000, 20, 3, "float32", ("covariance_eigh", "randomized"), tail=0.1, even=3.0),
    Case("near a subspace", 50_000, 1_000, 10, "float32", ("randomized",), tail=0.1, even=3.0),
    Case("near, uneven", 50_000, 1_000, 10, "float32", ("randomized",), tail=0.1),
    Case("near, uneven", 4_000, 6_000, 10, "float64", ("randomized",), tail=0.1),
    Case("very near", 50_000, 1_000, 10, "float32", (FORMER,), tail=1e-3),
)


def seconds(fit: Callable[[], object]) -> float:
    """Return the processor time of one call."""
    start = time.process_time()
    fit()
    return time.process_time() - start


def passes(fit: Callable[[], object], n: int) -> float:
    """Return how often the rows of a table are handed out, on average."""
    seen = [0]

    def count(rows: int) -> None:
        seen[0] += rows

    with watching_rows(count):
        fit()
    return seen[0] / n


def measured(case: Case, repeats: int) -> dict[str, Any]:
    """Fit in turn, ours and every peer, and return medians."""
    X = case.table()

    def ours() -> object:
        return PrivatePCA(case.k, epsilon=1.0, delta=1e-6, random_state=1).fit(X)

    def peer(name: str) -> object:
        if name == FORMER:
            return PrivatePCA(case.k, epsilon=1.0, delta=1e-6, robust=True, random_state=1).fit(X)
        return PCA(case.k, svd_solver=name, random_state=0).fit(X)

    made = passes(ours, case.n)  # and warms caches
    times: dict[str, list[float]] = {name: [] for name in ("ours", *case.peers)}
    for _ in range(repeats):
        times["ours"].append(seconds(ours))
        for name in case.peers:
            times[name].append(seconds(lambda name=name: peer(name)))
    medians = {name: float(np.median(found)) for name, found in times.items()}
    best = min(case.peers, key=medians.__getitem__)
    own, other = medians["ours"], medians[best]
    row = (case.name, case.n, case.d, case.k, case.dtype, best, own, other, own / other, made)
    return dict(zip(COLUMNS, row, strict=True))


def on_one_thread(case: Case, repeats: int) -> dict[str, Any]:
    """Measure in a process that is used for nothing else."""
    warnings.simplefilter("ignore")
    with threadpool_limits(1):
        return measured(case, repeats)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="fits of each, of which the median counts")
    parser.add_argument("--quick", action="store_true", help="one fit of tables a tenth as long; nothing is written")
    parser.add_argument("--together", action="store_true", help="one process for all tables; nothing is written")
    options = parser.parse_args()
    repeats, rows = 1 if options.quick else options.repeats, []
    for case in CASES:
        if options.quick:
            case = replace(case, n=case.n // 10)
        if options.together:
            row = on_one_thread(case, repeats)
        else:
            with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
                row = alone.submit(on_one_thread, case, repeats).result()
        rows.append(row)
        print(
            f"{row['table']:24} {row['n']:>9,} x {row['d']:<6,} {row['dtype']}  ours {row['ours_s']:6.2f} s, "
            f"{row['peer']:15} {row['peer_s']:6.2f} s, ratio {row['ratio']:5.2f}, {row['passes']:4.1f} passes",
            flush=True,
        )
    if not (options.quick or options.together):
        with RESULTS.open("w", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
            writer.writeheader()
            writer.writerows({**row, **{key: f"{row[key]:.3f}" for key in COLUMNS[6:]}} for row in rows)


if __name__ == "__main__":
    main()
