"""How do weak scaling and a billion rows look when tasks wait for the scheduler and for slow workers?

Run ``python benchmarks/scripts/scaling_simulation.py`` (a minute).  The formula on docs/explanation/scaling.md adds
up costs; this script plays a pass event by event: one scheduler hands out one task at a time, a worker takes the next
task that it may when it has finished one, and the last total is waited for.  Costs are those that
``dask_overhead.py`` prints (``--parameters`` takes its line of JSON; without it they are measured here).  First it is
held against real passes of a ``LocalCluster`` of two workers.  The spread of task times is an assumption: there is
one machine to measure on.
"""

from __future__ import annotations

import argparse
import heapq
import json
import math
from collections.abc import Sequence

import cloudpickle
import dask_overhead
import numpy as np
from dask_overhead import COLUMNS, DIRECTIONS, DISK, NETWORK, WORKERS, dask_table, parameters, predicted, seconds
from distributed import Client, LocalCluster

from privspan.rows.door import open_table
from privspan.sums.grid import grid_total
from privspan.sums.lazy_gauss import UnitGram

PASSES = 7  # of the adaptive algorithm at k = 5
SPREAD = 0.3  # standard deviation of the logarithm of a task's time
CASES: dict[str, dict[str, float]] = {
    "even": {},
    "uneven": {"spread": SPREAD},
    "uneven, one slow": {"spread": SPREAD, "slowest": 2.0},
}


def pass_seconds(
    tasks: np.ndarray, workers: int, found: dict[str, float], *, slowest: float = 1.0, stealing: bool = True
) -> float:
    """Play one pass.

    Parameters
    ----------
    tasks : (partitions,) array
        Seconds that each takes a worker of normal speed.
    workers : int
    found : dict
        The measured parameters.
    slowest : float
        How many times as long one of the workers takes.
    stealing : bool
        Whether an idle worker takes any task, as Dask lets it, or only those of its own partitions.
    """
    slowness = np.ones(workers)
    slowness[0] = slowest
    handed_out = found["per_partition"] * np.arange(1, len(tasks) + 1)
    if stealing:
        free = [(0.0, worker) for worker in range(workers)]
        for task, ready in zip(tasks.tolist(), handed_out.tolist(), strict=True):
            since, worker = heapq.heappop(free)
            heapq.heappush(free, (max(since, ready) + task * slowness[worker], worker))
        ended = max(since for since, _ in free)
    else:
        until = np.zeros(workers)
        for number, (task, ready) in enumerate(zip(tasks.tolist(), handed_out.tolist(), strict=True)):
            worker = number % workers
            until[worker] = max(until[worker], ready) + task * slowness[worker]
        ended = float(until.max())
    return ended + found["per_pass"]


def travel_seconds(d: float, workers: int, partitions: int) -> float:
    """Return how long directions and totals are on their way in one pass, on average over a run."""
    directions = 8.0 * d * DIRECTIONS
    return directions / NETWORK * ((1 + PASSES / 2) * math.log2(workers) + 7 * math.log(partitions, 8))


def run_hours(
    n: float, d: float, workers: int, partitions: int, found: dict[str, float], *, spread: float = 0.0, **case: float
) -> tuple[float, float]:
    """Return the hours of a run with work stealing and without."""
    entries = n * d / partitions
    typical = entries * (found["work"] + found["cleaning"] + 4.0 / DISK)
    rng = np.random.default_rng(0)
    tasks = typical * np.exp(spread * rng.standard_normal(partitions) - spread**2 / 2)  # the mean stays
    whole = [
        PASSES
        * (pass_seconds(tasks, workers, found, stealing=stealing, **case) + travel_seconds(d, workers, partitions))
        for stealing in (True, False)
    ]
    return whole[0] / 3600, whole[1] / 3600


def check(found: dict[str, float], sizes: Sequence[tuple[int, int]]) -> None:
    """Compare simulated with real passes over tables whose cleaned rows are kept by two workers."""
    block = np.linalg.qr(np.random.default_rng(2).standard_normal((COLUMNS, DIRECTIONS)))[0]
    for partitions, rows in sizes:
        table = dask_table(partitions, rows)
        gram = UnitGram(open_table(table).rows())
        real = min(
            seconds(lambda gram=gram: grid_total(gram.products(block), (COLUMNS, DIRECTIONS), 2.0**-30))
            for _ in range(4)
        )
        tasks = np.full(partitions, rows * COLUMNS * found["work"])
        played = pass_seconds(tasks, WORKERS, found)
        print(f"{partitions:4} partitions of {rows:5} rows: real {real:6.3f} s  played {played:6.3f} s")


def main() -> None:
    """Parse the command line and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="no more than a hundred workers")
    parser.add_argument("--parameters", type=json.loads, help="the line of JSON that dask_overhead.py prints")
    options = parser.parse_args()
    cloudpickle.register_pickle_by_value(dask_overhead)  # workers cannot import it
    cluster = {"processes": True, "dashboard_address": None, "memory_limit": 0}
    with (
        LocalCluster(n_workers=WORKERS, threads_per_worker=1, **cluster) as workers,
        Client(workers),
    ):
        found = options.parameters or parameters(5_000)
        print(json.dumps({name: float(f"{value:.3g}") for name, value in found.items()}))
        check(found, ((8, 250), (8, 2_500), (64, 250), (64, 1_000)))
    print(f"{'workers':>7} {'partitions':>10} {'formula':>8}  hours played (with stealing / without)")
    most = 100 if options.quick else 1_000
    scales = [(1e7 * count, count, 1_000 * count) for count in (1, 10, 100, 1_000) if count <= most]
    billion = [(1e9, 100, count) for count in (10_000, 100_000)]
    for n, count, partitions in [*scales, *billion]:
        formula = predicted(n, 1e4, count, PASSES, partitions, found) / 3600
        played = (
            f"{name} {'{:.2f} / {:.2f}'.format(*run_hours(n, 1e4, count, partitions, found, **case))}"
            for name, case in CASES.items()
        )
        print(f"{count:7} {partitions:10,} {formula:8.2f}  {'   '.join(played)}", flush=True)


if __name__ == "__main__":
    main()
