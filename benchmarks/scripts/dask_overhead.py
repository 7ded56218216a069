"""What does Dask cost, next to the same run in one process, and what would a billion rows on a hundred workers take?

Run ``python benchmarks/scripts/dask_overhead.py`` (a table of 80 MB, under two minutes), or with ``--full`` for 800
MB. Both sides run on the same cores: one process whose BLAS has as many threads as there are workers, and a
``LocalCluster`` of single-threaded workers with the table persisted in them.  They take turns; the least time of each
counts.  Then the parameters of the model on docs/explanation/scaling.md are measured, and its prediction is printed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import cloudpickle
import dask
import dask.array as da
import numpy as np
from distributed import Client, LocalCluster, wait
from threadpoolctl import threadpool_limits

import privspan as ps
from privspan._lib.watch import watching_rows
from privspan.backends.dask_place import DaskPlace
from privspan.blocks.bases import block_bases
from privspan.rows.door import open_table
from privspan.rows.unit import Rows
from privspan.sums.grid import grid_total
from privspan.sums.lazy_gauss import UnitGram

WORKERS, COLUMNS, K = 2, 1000, 5
DIRECTIONS = K + 7  # that the algorithm looks at in one pass
NETWORK = 1e9  # bytes per second between machines; assumed, there is one machine here
DISK = 1e9  # bytes per second and worker; assumed


def rows_of(number: int, rows: int) -> np.ndarray:
    """Return float64 rows near a subspace, always the same ones for one number."""
    axes = np.linalg.qr(np.random.default_rng(0).standard_normal((COLUMNS, K)))[0].T  # (K, COLUMNS)
    rng = np.random.default_rng([1, number])
    return rng.standard_normal((rows, K)) @ axes + rng.standard_normal((rows, COLUMNS)) * np.sqrt(K / 3.0 / COLUMNS)


def dask_table(partitions: int, rows: int) -> da.Array:
    """Return the table as a Dask array that is made on the workers and stays there."""
    parts = [da.from_delayed(dask.delayed(rows_of)(i, rows), (rows, COLUMNS), dtype=float) for i in range(partitions)]
    table = da.concatenate(parts).persist()
    wait(table)
    return table


def seconds(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def compare(client: Client, partitions: int, rows: int, repeats: int) -> int:
    """Time both sides and count what travels; return the number of passes."""
    away = dask_table(partitions, rows)
    home = np.concatenate([rows_of(i, rows) for i in range(partitions)])
    print(f"{home.nbytes / 1e6:.0f} MB, {partitions} partitions, {WORKERS} workers")
    runs: dict[str, Callable[[Any], Any]] = {
        "adaptive": lambda X: ps.private_subspace(X, K, method="adaptive", epsilon=1.0, delta=1e-6, rng=1),
        "block kernel": lambda X: block_bases(open_table(X), K, 500),
    }
    for name, run in runs.items():
        times: dict[str, list[float]] = {"home": [], "away": []}
        for _ in range(repeats):
            with threadpool_limits(WORKERS, user_api="blas"):
                times["home"].append(seconds(lambda run=run: run(home)))
            times["away"].append(seconds(lambda run=run: run(away)))
        least = {side: min(found) for side, found in times.items()}
        ratio = least["away"] / least["home"]
        print(f"{name:14} one process {least['home']:6.2f} s   Dask {least['away']:6.2f} s   ratio {ratio:.2f}")
    count_bytes(client, lambda: runs["adaptive"](away))
    seen: list[int] = []
    with watching_rows(seen.append):
        runs["adaptive"](home)
    print(f"adaptive: {sum(seen) / len(home):.0f} passes over the rows")
    return round(sum(seen) / len(home))


def sent_bytes(dask_worker: Any) -> int:
    """Return what a worker has sent to other workers so far."""
    return sum(entry["total"] for entry in dask_worker.transfer_outgoing_log)


def count_bytes(client: Client, run: Callable[[], Any]) -> None:
    """Print the size of the functions that were sent, of the totals that came back, and of what workers exchanged."""
    sent, returned = [], []
    send, merge = DaskPlace.map, DaskPlace.merge

    def weighed_map(self: DaskPlace, function: Callable[..., Any], *parts: Any) -> Any:
        sent.append(len(cloudpickle.dumps(function)))
        return send(self, function, *parts)

    def weighed_merge(self: DaskPlace, *arguments: Any) -> Any:
        total = merge(self, *arguments)
        returned.append(len(cloudpickle.dumps(total)))
        return total

    before = client.run(sent_bytes)
    with mock.patch.object(DaskPlace, "map", weighed_map), mock.patch.object(DaskPlace, "merge", weighed_merge):
        run()
    after = client.run(sent_bytes)
    between = max(after[worker] - before[worker] for worker in after)
    out, back = sum(sent) / 1e6, sum(returned) / 1e6
    print(f"adaptive: {len(returned)} totals; to each worker {out:.1f} MB, back to the client {back:.1f} MB")
    print(f"adaptive: the busiest worker sent {between / 1e6:.1f} MB to others")


def parameters(rows: int) -> dict[str, float]:
    """Measure the parameters of the model."""
    piece = rows_of(0, rows)
    block = np.linalg.qr(np.random.default_rng(2).standard_normal((COLUMNS, DIRECTIONS)))[0]

    def one_pass(source: Rows) -> None:
        grid_total(UnitGram(source).products(block), (COLUMNS, DIRECTIONS), 2.0**-30)

    def passes(away: da.Array) -> float:
        gram = UnitGram(open_table(away).rows())
        return min(
            seconds(lambda: grid_total(gram.products(block), (COLUMNS, DIRECTIONS), 2.0**-30)) for _ in range(5)
        )

    with threadpool_limits(1, user_api="blas"):
        kept = Rows(piece).held()
        work = min(seconds(lambda: one_pass(kept)) for _ in range(5)) / piece.size
        cleaning = min(seconds(lambda: one_pass(Rows(piece, keep=False))) for _ in range(5)) / piece.size - work
    few, many = passes(dask_table(8, 20)), passes(dask_table(200, 20))
    return {
        "work": work,
        "cleaning": cleaning,
        "per_partition": max(many - few, 0.0) / 192,
        "per_pass": few,
    }


def predicted(n: float, d: float, workers: int, passes: int, partitions: float, found: dict[str, float]) -> float:
    """Return the seconds that the model predicts for one run of the adaptive algorithm on float32 rows on disk."""
    entries = n * d / workers
    local = entries * (found["work"] + found["cleaning"]) + 4.0 * entries / DISK
    scheduling = partitions * found["per_partition"] + found["per_pass"]  # one scheduler serves all
    directions = 8.0 * d * DIRECTIONS
    known = 8.0 * d * DIRECTIONS * passes / 2.0  # directions asked for earlier, on average
    travel = math.log2(workers) * (directions + known) / NETWORK + 7 * math.log(partitions, 8) * directions / NETWORK
    return passes * (local + scheduling + travel)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="800 MB instead of 80")
    parser.add_argument("--quick", action="store_true", help="80 MB, as without an option")
    full = parser.parse_args().full
    partitions, rows = (16, 6250) if full else (8, 1250)
    print(f"load average before: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    options = {"processes": True, "dashboard_address": None, "memory_limit": 0}
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, **options) as cluster,
        Client(cluster) as client,
    ):
        passes = compare(client, partitions, rows, 3)
        found = parameters(rows)
    print(json.dumps({name: float(f"{value:.3g}") for name, value in found.items()}))
    for workers in (1, 10, 100, 1000):
        hours = predicted(1e7 * workers, 1e4, workers, passes, 1e3 * workers, found) / 3600
        print(f"weak scaling, 1e7 rows of 1e4 columns per worker: {workers:5} workers  {hours:.2f} h")
    for partitions_all in (1e3, 1e4, 1e5, 1e6):
        hours = predicted(1e9, 1e4, 100, passes, partitions_all, found) / 3600
        print(f"1e9 rows of 1e4 columns on 100 workers in {partitions_all:9,.0f} partitions: {hours:.2f} h")


if __name__ == "__main__":
    main()
