"""How accurate is ``method="auto"``, not told gamma, against the named methods, and does it ever lose by much?

Four tables, one line per run in ``benchmarks/results/one_algorithm.csv`` (a run that is stored is not repeated):

* ``cells``: medians of five fresh data sets per setting, with the bar that each was to stay below;
* ``regret``: the settings of the stored grid (accuracy, growth, map), on the same data, against what is stored there
  for the others; small ones on nine data sets, with the others run anew, because medians of three differ by half;
* ``tails``: heavy tails and outliers, against adaptive and stable leverage on the same data;
* ``large``: 100,000 rows of 20,000 columns in a memory map of 8 GB in a temporary folder.

``--quick`` runs small settings of each once and stores nothing. Otherwise about an hour and a half of one core,
without ``large``.
"""

from __future__ import annotations

import argparse
import csv
import resource
import statistics
import sys
import tempfile
import time
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # the benchmark is no part of the package

from benchmarks.suites.accuracy import (
    BASE,
    DATA,
    GROWTH_COLUMNS,
    GROWTH_SETTING,
    MAP_COLUMNS,
    MAP_ROWS,
    MAP_TAILS,
    VARIATIONS,
    varied,
)
from privspan.datasets import gaussian_subspace, heavy_tailed_subspace, spiked_subspace, with_outliers
from privspan.private import private_subspace
from privspan.subspace import Subspace

RESULTS = Path(__file__).parents[1] / "results"
STORED = RESULTS / "one_algorithm.csv"
FIELDS = ("table", "data", "n", "d", "k", "gamma_w", "epsilon", "seed", "method", "label", "error", "seconds")
DELTA, K = 1e-6, 3
FIRST_SEED = 7_000  # of the cells and tails: data that nothing was tuned on
SMALL = 2_000  # rows and columns
NAMED = ("auto", "adaptive", "stable", "analyze-gauss")
NOISE = 1_000  # added to a seed for the noise, as in the grid

Maker = Callable[[int, int, int, float, int], tuple[Any, Subspace]]


class Setting(NamedTuple):
    """One line of a table before it is run."""

    data: str
    n: int
    d: int
    k: int
    gamma_w: float
    epsilon: float


def _unequal(n: int, d: int, k: int, w: float, seed: int) -> tuple[Any, Subspace]:
    """Return signal variances 10 : 3 : 1, and a tail against the least of them."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((d, k)))[0]
    signal = rng.standard_normal((n, k)) * np.sqrt([10.0, 3.0, 1.0])
    return signal @ axes.T + w / np.sqrt(d) * rng.standard_normal((n, d)), Subspace(axes)


def _spoilt(share: float, kind: str) -> Maker:
    def make(n: int, d: int, k: int, w: float, seed: int) -> tuple[Any, Subspace]:
        X, truth = gaussian_subspace(n, d, k, gamma_w=w, rng=seed)
        return with_outliers(X, share, kind, rng=seed), truth  # type: ignore[arg-type]

    return make


MAKERS: dict[str, Maker] = {
    **DATA,
    "10:3:1": _unequal,
    "1/j": lambda n, d, k, w, seed: spiked_subspace(n, d, k, gamma_w=w, decay=1.0, rng=seed),
    "student": lambda n, d, k, w, seed: heavy_tailed_subspace(n, d, k, gamma_w=w, law="student", rng=seed),
    "lognormal": lambda n, d, k, w, seed: heavy_tailed_subspace(n, d, k, gamma_w=w, law="lognormal", rng=seed),
    **{
        f"{share:.0%} {kind}": _spoilt(share, kind) for share in (0.01, 0.05) for kind in ("huge", "equal", "aligned")
    },
}

BARS: dict[Setting, float | None] = {
    Setting("flat", 4_000, 1_000, K, 1e-3, 1.0): 0.0007,
    Setting("flat", 2_000, 300, K, 1e-3, 1.0): 0.0019,
    Setting("flat", 4_000, 1_000, K, 0.01, 1.0): 0.0045,
    Setting("flat", 4_000, 1_000, K, 0.03, 1.0): 0.012,
    Setting("flat", 12_000, 5_000, K, 1e-3, 1.0): 0.0003,
    Setting("flat", 4_000, 5_000, K, 1e-3, 1.0): 0.0026,
    Setting("flat", 2_000, 2_000, K, 1e-3, 1.0): 0.0080,
    Setting("flat", 1_000, 5_000, K, 1e-3, 1.0): 0.085,
    Setting("flat", 2_000, 300, K, 0.03, 1.0): 0.023,
    Setting("flat", 10_000, 200, K, 0.1, 1.0): None,  # 1.04 times adaptive
    Setting("flat", 10_000, 200, K, 1.0, 1.0): None,
    Setting("10:3:1", 4_000, 300, K, 1e-3, 1.0): 0.0015,
}
TAILS = ("student", "lognormal", "1/j", "1% huge", "1% equal", "1% aligned", "5% huge", "5% equal", "5% aligned")
SHAPES = ((2_000, 2_000), (4_000, 300))


def grid() -> Iterator[Setting]:
    """Yield the settings of the stored grid, each once."""
    columns = [{**GROWTH_SETTING, "d": d} for d in GROWTH_COLUMNS]
    mapped = [{**BASE, "n": n, "d": MAP_COLUMNS, "gamma_w": w} for n in MAP_ROWS for w in MAP_TAILS]
    seen = dict.fromkeys(tuple(one.values()) for one in (*varied(BASE, VARIATIONS), *columns, *mapped))
    for data, n, d, k, gamma_w, epsilon in seen:
        yield Setting(str(data), int(n), int(d), int(k), float(gamma_w), float(epsilon))


class Store:
    """The lines that have been run, kept in a file as they come."""

    def __init__(self, path: Path | None) -> None:
        self._path, self.lines = path, []  # type: ignore[var-annotated]
        if path is not None and path.exists():
            with open(path, encoding="utf-8", newline="") as file:
                self.lines = list(csv.DictReader(file))

    def has(self, table: str, setting: Setting, seed: int, method: str) -> bool:
        """Tell whether a run is stored."""
        wanted = tuple(map(str, (table, *setting, seed, method)))
        return any(tuple(line[name] for name in FIELDS[:9]) == wanted for line in self.lines)

    def add(self, table: str, setting: Setting, *run: object) -> None:
        """Take in one run: its seed, method, label, error and seconds."""
        line = (table, *setting, *(f"{value:.6g}" if isinstance(value, float) else value for value in run))
        self.lines.append(dict(zip(FIELDS, map(str, line), strict=True)))
        if self._path is None:
            return
        fresh = not self._path.exists()
        with open(self._path, "a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if fresh:
                writer.writeheader()
            writer.writerow(self.lines[-1])


def run(store: Store, table: str, setting: Setting, seed: int, methods: tuple[str, ...]) -> None:
    """Run the methods on one data set."""
    left = [method for method in methods if not store.has(table, setting, seed, method)]
    if not left:
        return
    X, truth = MAKERS[setting.data](setting.n, setting.d, setting.k, setting.gamma_w, seed)
    for method in left:
        start = time.perf_counter()
        release = private_subspace(
            X, setting.k, epsilon=setting.epsilon, delta=DELTA, method=method, rng=NOISE + seed  # type: ignore[arg-type]
        )  # fmt: skip
        error = 1.0 if release.subspace is None else release.subspace.distance(truth)
        label = release.method if release.subspace is not None else "abstained"
        label += " after a no" if "not certain" in str(release.parameters.get("course")) else ""
        seconds = round(time.perf_counter() - start, 1)
        store.add(table, setting, seed, method, label, error, seconds)
        print(table, *setting, seed, method, label, f"{error:.5g}", seconds, flush=True)


def medians(store: Store, table: str) -> dict[tuple[str, ...], dict[str, float]]:
    """Return the median error by setting and method."""
    found: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in store.lines:
        if line["table"] == table:
            found[tuple(line[name] for name in FIELDS[1:7])][line["method"]].append(float(line["error"]))
    return {one: {name: statistics.median(all_) for name, all_ in by.items()} for one, by in found.items()}


def tell_cells(store: Store) -> None:
    """Print the medians beside their bars."""
    bars = {tuple(map(str, one)): bar for one, bar in BARS.items()}
    for setting, by in medians(store, "cells").items():
        bar = bars.get(setting) or 1.04 * by["adaptive"]
        print(
            *setting,
            f"auto {by['auto']:.5f} adaptive {by['adaptive']:.5f} bar {bar:.5f}",
            "" if by["auto"] <= bar else "MISSED",
        )


def tell_regret(store: Store) -> None:
    """Print the ratio to the best of our named methods and to Analyze Gauss, from the stored grid."""
    others: dict[tuple[str, ...], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for name in ("accuracy", "growth", "map"):
        with open(RESULTS / f"{name}.csv", encoding="utf-8", newline="") as file:
            for line in csv.DictReader(file):
                key = (
                    line["data"],
                    line["n"],
                    line["d"],
                    line["k"],
                    str(float(line["gamma_w"])),
                    str(float(line["epsilon"])),
                )
                error = float(line["error"]) if line["status"] == "ok" else 1.0
                others[key][line["method"]].append(error)
    worst, losing = 0.0, []
    for setting, by in medians(store, "regret").items():
        named = {name: statistics.median(all_) for name, all_ in others[setting].items() if all_}
        named |= {name.replace("-", "_"): error for name, error in by.items()}
        best = min((named[name] for name in ("adaptive", "stable", "approximate") if name in named), default=1.0)
        plain, auto = named.get("analyze_gauss", 1.0), by["auto"]
        worst = max(worst, auto / best if best < 0.5 else 0.0)
        bad = (best < 0.5 and auto > 1.35 * best) or auto > 1.05 * plain
        losing += [setting] if bad else []
        print(
            *setting,
            f"auto {auto:.5f} best {best:.5f} ({auto / best:.2f}) Analyze Gauss {plain:.5f} ({auto / plain:.2f})",
            "MISSED" if bad else "",
        )
    runs = [line for line in store.lines if (line["table"], line["method"]) == ("regret", "auto")]
    failed = sum("after a no" in line["label"] for line in runs)
    print(f"worst ratio to a useful named method {worst:.2f}; {len(losing)} settings missed")
    print(f"{failed} of {len(runs)} runs after a no")


def tell_tails(store: Store) -> None:
    """Print the ratio to the better of adaptive and stable leverage."""
    for setting, by in medians(store, "tails").items():
        better = min(by["adaptive"], by["stable"])
        bad = "MISSED" if by["auto"] > 1.5 * better else ""
        print(*setting, *(f"{name} {error:.5f}" for name, error in by.items()), f"({by['auto'] / better:.2f})", bad)


def large(store: Store, n: int, d: int, folder: str) -> None:
    """Run on a memory map that another process has written, and tell the memory taken above the interpreter."""
    path = Path(folder) / "large.npy"
    with ProcessPoolExecutor(1) as other:  # so that what is written does not count as memory of this process
        axes = other.submit(write_large, path, n, d).result()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    setting = Setting("memory map", n, d, K, 1e-3, 1.0)
    for method in ("auto", "adaptive"):
        start = time.perf_counter()
        rows = np.load(path, mmap_mode="r")
        release = private_subspace(rows, K, epsilon=1.0, delta=DELTA, method=method, rng=1)  # type: ignore[arg-type]
        error = release.subspace.distance(Subspace(axes)) if release.subspace else 1.0
        taken = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20
        seconds = round(time.perf_counter() - start, 1)
        store.add("large", setting, FIRST_SEED, method, release.method, error, seconds)
        print("large", n, d, method, release.method, f"{error:.3g}", f"{taken:.2f} GB", seconds, flush=True)
    path.unlink()


def write_large(path: Path, n: int, d: int) -> np.ndarray:
    """Write a table of float32 and return the axes of its subspace."""
    rng = np.random.default_rng(FIRST_SEED)
    X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
    axes = np.linalg.qr(rng.standard_normal((d, K)))[0]
    for start in range(0, n, 2_000):
        tail = 1e-3 / np.sqrt(d) * rng.standard_normal((min(2_000, n - start), d), dtype=np.float32)
        X[start : start + 2_000] = rng.standard_normal((len(tail), K)) @ axes.T + tail
    X.flush()
    return axes


def main() -> None:
    """Run the tables that are asked for and print what they show."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--table", choices=("cells", "regret", "tails", "large"), nargs="*", default=("cells", "regret", "tails")
    )
    parser.add_argument("--runs", type=int, default=5, help="data sets per cell; three elsewhere")
    parser.add_argument("--quick", action="store_true", help="small settings, one run, nothing stored")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.quick:
        quick(Store(None))
        return
    store = Store(STORED)
    if "cells" in options.table:
        for setting in sorted(BARS, key=lambda one: one.n * one.d):
            for seed in range(FIRST_SEED, FIRST_SEED + options.runs):
                run(store, "cells", setting, seed, ("auto", "adaptive"))
        tell_cells(store)
    if "regret" in options.table:
        for setting in sorted(grid(), key=lambda one: one.n * one.d):
            small = setting.n <= SMALL and setting.d <= SMALL
            for seed in range(9 if small else 3):  # first those of the grid
                run(store, "regret", setting, seed, NAMED if small else ("auto",))
        tell_regret(store)
    if "tails" in options.table:
        for n, d in SHAPES:
            for data in TAILS:
                for seed in range(FIRST_SEED, FIRST_SEED + 3):
                    run(store, "tails", Setting(data, n, d, K, 1e-3, 1.0), seed, ("auto", "adaptive", "stable"))
        tell_tails(store)
    if "large" in options.table:
        with tempfile.TemporaryDirectory() as folder:
            large(store, 100_000, 20_000, folder)


def quick(store: Store) -> None:
    """Run one small setting of each kind."""
    for data, n, d, w in (("flat", 1_000, 300, 1e-3), ("flat", 1_000, 300, 0.3), ("student", 1_000, 100, 1e-3)):
        run(
            store,
            "cells" if data == "flat" else "tails",
            Setting(data, n, d, K, w, 1.0),
            0,
            ("auto", "adaptive", "stable"),
        )
    for setting, by in medians(store, "cells").items():
        print(*setting, by)
    tell_tails(store)
    with tempfile.TemporaryDirectory() as folder:
        large(Store(None), 6_000, 500, folder)


if __name__ == "__main__":
    main()
