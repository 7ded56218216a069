"""How much memory and time do tables on disk take, next to plain NumPy reading and multiplying the same chunks?

Run ``python benchmarks/scripts/out_of_core.py`` (small tables, two minutes), or with ``--full`` for tables of 8 GB
(written one at a time and removed again; about an hour).  Every line is a process of its own.  "above" is its peak
resident memory less what the interpreter and its imports take.  "plain" reads the file chunk by chunk, turns chunks
into float64 and does the matrix products that the run did (for blocks: the block kernel), and nothing else; the two
take turns, twice.  "ratio" is our time over that, "processor" the same for the processor's time, which other work on
the machine disturbs less, and "own" the processor's time over that of plain products in the precision of ours, which
for looks at float32 tables is float32.  No ratio is given for the wide tables, where drawing the noise, which plain
NumPy does not do, is most of the work.  For small tables the block method spends most of its time on aggregating,
which "plain" leaves out.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from privspan.rows.door import open_table

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

SHAPES = {  # name: (full size, small size, k, file formats, methods)
    "tall": ((2_000_000, 1_000), (60_000, 1_000), 5, ("npy", "parquet"), ("PrivatePCA", "adaptive", "approximate")),
    "wide": ((2_000, 1_000_000), (500, 100_000), 3, ("npy",), ("adaptive", "stable")),
    "large": ((20_000, 100_000), (2_000, 20_000), 5, ("npy",), ("PrivatePCA", "adaptive")),
}
ROW_GROUP = 50_000
EPSILON, DELTA = 1.0, 1e-6
TURNS = 2  # of ours and of plain NumPy


@dataclass(frozen=True)
class Pass:
    """How many columns so many rows are multiplied with, how many sums of them are formed, and whether in float32."""

    inner: int
    outer: int
    rows: int
    single: bool
    gaps: bool = False


# ---- Files ---------------------------------------------------------------------------------------


def chunks_of_data(n: int, d: int, k: int) -> Iterator[np.ndarray]:
    """Yield float32 rows near a k-dimensional subspace, a quarter of their energy off it."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((d, k)))[0].T.astype(np.float32)  # (k, d)
    step = max(1, 2**24 // d)
    for start in range(0, n, step):
        rows = min(step, n - start)
        tail = rng.standard_normal((rows, d), dtype=np.float32) * np.float32(np.sqrt(k / 3.0 / d))
        yield rng.standard_normal((rows, k), dtype=np.float32) @ axes + tail


def write(path: Path, n: int, d: int, k: int) -> None:
    """Write the table, one chunk in memory at a time."""
    if path.suffix == ".npy":
        table = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, d))
        start = 0
        for chunk in chunks_of_data(n, d, k):
            table[start : start + len(chunk)] = chunk
            start += len(chunk)
        table.flush()
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema({f"c{j}": pa.float32() for j in range(d)})
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        held: list[np.ndarray] = []
        for chunk in chunks_of_data(n, d, k):
            held.append(chunk)
            if sum(map(len, held)) >= ROW_GROUP:
                writer.write_table(as_table(np.concatenate(held), schema))
                held = []
        if held:
            writer.write_table(as_table(np.concatenate(held), schema))


def as_table(rows: np.ndarray, schema: Any) -> Any:
    """Return rows as an Arrow table."""
    import pyarrow as pa

    columns = np.ascontiguousarray(rows.T)
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=schema)


# ---- One run, in a process of its own ------------------------------------------------------------


def resident() -> float:
    """Return the peak resident memory of this process so far, in MB (Linux; elsewhere a process may inherit it)."""
    status = Path("/proc/self/status")
    if status.exists():
        return (
            int(next(line for line in status.read_text().splitlines() if line.startswith("VmHWM")).split()[1]) / 1024
        )
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def seconds(action: Callable[[], object]) -> tuple[float, float]:
    """Return the time of one call, and the processor's."""
    start = time.perf_counter(), time.process_time()
    action()
    return time.perf_counter() - start[0], time.process_time() - start[1]


def worker(path: Path, k: int, method: str) -> dict[str, float]:
    """Run one method on one file, then the plain counterpart."""
    import privspan as ps
    from privspan.estimators import PrivatePCA
    from privspan.rows import open_rows
    from privspan.rows.limits import Limits

    numbers: Any = {"epsilon": EPSILON, "delta": DELTA}
    source = open_rows(path, limits=Limits(kept_bytes=0))  # small tables, too, are read anew in every pass
    runs: dict[str, Callable[[Any], object]] = {
        "adaptive": lambda X: ps.private_subspace(X, k, method="adaptive", **numbers),
        "stable": lambda X: ps.stable_subspace(X, k, **numbers),
        "approximate": lambda X: ps.approximate_subspace(X, k, **numbers),
        "PrivatePCA": lambda X: PrivatePCA(k, **numbers).fit(X),
    }
    runs[method](np.random.default_rng(0).standard_normal((4_000, 20)))  # loads what is loaded on first use
    before = resident()
    passes = recorded_passes()
    plain = {"PrivatePCA": plain_passes, "adaptive": plain_passes, "approximate": plain_blocks}.get(method)
    if plain is None or source.shape[1] > source.shape[0]:
        took, _ = seconds(lambda: runs[method](source))
        return {
            "seconds": took,
            "above": resident() - before,
            "plain": math.nan,
            "ratio": math.nan,
            "processor": math.nan,
            "own": math.nan,
        }
    ours, plainly, alike, above = np.zeros(2), np.zeros(2), np.zeros(2), 0.0
    for turn in range(TURNS):
        passes.clear()
        ours += seconds(lambda: runs[method](source))
        above = resident() - before if turn == 0 else above  # before plain NumPy maps the whole file
        plainly += seconds(lambda: plain(path, source.shape, k, [replace(one, single=False) for one in passes]))
        alike += seconds(lambda: plain(path, source.shape, k, passes))
    ratio, processor = (ours / plainly).tolist()
    mean = {"seconds": ours[0] / TURNS, "plain": plainly[0] / TURNS}
    return {**mean, "above": above, "ratio": ratio, "processor": processor, "own": ours[1] / alike[1]}


def recorded_passes() -> list[Pass]:
    """Make `Rows` note every pass over the data: the products it takes, and in which precision."""
    from privspan.rows.unit import Rows
    from privspan.sums import gaps
    from privspan.sums.lazy_gauss import Asked

    passes: list[Pass] = []
    gap_counts = gaps.gap_counts
    asked = [0]  # columns of the last block that was asked for
    seen, lengths, map_rows, coordinates = Asked._seen, Rows.lengths, Rows.map_rows, Rows.coordinates

    def noted_block(self: Any, block: Any, grid: float) -> Any:
        asked[0] = block.shape[1]
        return seen(self, block, grid)

    def noting(map_sums: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def noted_sums(self: Any, function: Any, *per_row: Any, finish: Any = None) -> Iterator[Any]:
            shapes: list[tuple[int, ...]] = []

            def noted(*arguments: Any) -> Any:
                result = function(*arguments)
                shapes.append(result.shape)
                return result

            yield from map_sums(self, noted, *per_row, finish=finish)
            columns = shapes[0][1] if len(shapes[0]) == 2 else 1
            by_a_block = len(shapes[0]) == 2 and not (per_row and per_row[-1].ndim == 2)
            passes.append(Pass(asked[0] if by_a_block else 0, columns, self.shape[0], self.single))

        return noted_sums

    def noted_rows(self: Any, function: Any) -> Any:
        result = map_rows(self, function)
        passes.append(Pass(result.shape[-1] if result.ndim == 2 else 0, 0, self.shape[0], False))
        return result

    def noted_coordinates(self: Any, basis: Any) -> Any:
        before, result = len(passes), coordinates(self, basis)
        if len(passes) == before:  # not by way of `map_rows`
            passes.append(Pass(basis.shape[1], 0, self.shape[0], False))
        return result

    def noted_lengths(self: Any) -> Any:
        passes.append(Pass(0, 0, self.shape[0], self.single))
        return lengths(self)

    def noted_gaps(rows: Any) -> Any:
        if not (passes and passes[-1].gaps):
            passes.append(Pass(0, 0, 0, True, gaps=True))
        passes[-1] = replace(passes[-1], rows=passes[-1].rows + rows.shape[0])
        return gap_counts(rows)

    gaps.gap_counts = noted_gaps
    Asked._seen, Rows.lengths, Rows.map_rows = noted_block, noted_lengths, noted_rows  # type: ignore[method-assign]
    Rows.coordinates = noted_coordinates  # type: ignore[method-assign]
    Rows.map_chunks, Rows.map_folded = noting(Rows.map_chunks), noting(Rows.map_folded)  # type: ignore[method-assign]
    return passes


def plain_windows(path: Path, dealt: bool) -> Iterator[np.ndarray]:
    """Read the file with NumPy, or with PyArrow and NumPy, in the windows that ours reads; `dealt` as for blocks."""
    from privspan.rows import open_rows

    source = open_rows(path)
    rng = np.random.default_rng(0)
    if path.suffix == ".npy":
        table = np.load(path, mmap_mode="r")
        edges = (source.dealt(rng).edges if dealt else None) if len(table) else None
        if edges is None:
            yield from (table[start : start + ROW_GROUP] for start in range(0, len(table), ROW_GROUP))
            return
        run = max(1, 2**16 // (table.shape[1] * table.itemsize))
        starts = rng.permutation(np.arange(0, len(table), run))
        per_window = -(-len(starts) // (len(edges) - 1))
        for first in range(0, len(starts), per_window):
            numbers = (np.sort(starts[first : first + per_window])[:, None] + np.arange(run)).ravel()
            yield table[numbers[numbers < len(table)]]
        return
    import pyarrow.parquet as pq

    rows = int(np.diff(source.edges).max())
    for batch in pq.ParquetFile(path, buffer_size=2**16).iter_batches(batch_size=rows):
        yield np.ascontiguousarray(np.array([column.to_numpy() for column in batch.columns]).T)


def plain_passes(path: Path, shape: tuple[int, int], k: int, passes: list[Pass]) -> None:
    """Read the file as often as the run did, with the same products of pieces of the same size, at their fastest."""
    from privspan.rows.unit import piece_rows

    rng, step = np.random.default_rng(0), piece_rows(shape[1])
    for one in passes:
        dtype = np.float32 if one.single else np.float64
        block = rng.standard_normal((shape[1], one.inner)).astype(dtype)
        left = one.rows
        for window in plain_windows(path, dealt=False):
            for start in range(0, min(len(window), left), step):
                piece = window[start : start + step].astype(dtype)
                if one.inner:
                    piece @ block
                if one.outer:
                    np.ones((one.outer, len(piece)), dtype=dtype) @ piece
            left = max(0, left - len(window))


def plain_blocks(path: Path, shape: tuple[int, int], k: int, passes: object) -> None:
    """Read the file once, in a random order within windows, and run the block kernel on arrays in memory."""
    from privspan.blocks.bases import block_bases
    from privspan.blocks.plan import stable_block_size

    m, rng = stable_block_size(shape[0], k), np.random.default_rng(0)
    left = np.empty((0, shape[1]), dtype=np.float32)
    for window in plain_windows(path, dealt=True):
        rows = np.concatenate([left, window[rng.permutation(len(window))]])
        whole = len(rows) // m * m
        for start in range(0, whole, m):
            block_bases(open_table(rows[start : start + m].astype(np.float64)), k, m)
        left = rows[whole:]


# ---- The table -----------------------------------------------------------------------------------


def measured(path: Path, k: int, method: str) -> dict[str, float]:
    """Run `worker` in a process of its own."""
    command = [sys.executable, __file__, "--worker", str(path), str(k), method]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()[-1])


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--full", action="store_true", help="tables of 8 GB")
    parser.add_argument("--quick", action="store_true", help="a third of the rows of the small tables")
    parser.add_argument("--methods", nargs="*", help="only these")
    parser.add_argument("--shapes", nargs="*", choices=SHAPES, default=list(SHAPES))
    parser.add_argument("--files", nargs="*", choices=("npy", "parquet"), help="only these")
    parser.add_argument("--folder", type=Path, help="where files are written and removed again")
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        path, k, method = arguments.worker
        print(json.dumps(worker(Path(path), int(k), method)))
        return
    print(f"{'table':>20} {'file':>8} {'method':>12} {'above MB':>9} {'seconds':>8} {'plain':>8} ", end="")
    print(f"{'ratio':>6} {'processor':>9} {'own':>5}")
    for name in arguments.shapes:
        full, small, k, formats, methods = SHAPES[name]
        n, d = full if arguments.full else small
        n = n // 3 if arguments.quick else n
        for suffix in [one for one in formats if one in (arguments.files or formats)]:
            with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
                path = Path(folder) / f"people.{suffix}"
                write(path, n, d, k)
                for method in [one for one in methods if one in (arguments.methods or methods)]:
                    got = measured(path, k, method)
                    print(
                        f"{n:>10} x {d:<7} {suffix:>8} {method:>12} {got['above']:9.0f} {got['seconds']:8.1f} "
                        f"{got['plain']:8.1f} {got['ratio']:6.2f} {got['processor']:9.2f} {got['own']:5.2f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
