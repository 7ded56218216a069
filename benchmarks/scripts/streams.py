"""How much time and memory does a table take that is read once, next to reading it and nothing else?

Run ``python benchmarks/scripts/streams.py``: a stream of 4 GB of Arrow batches, and 10,000,000 rows of 20 columns in
a DuckDB file (a quarter of an hour, and 6 GB on disk for the while); with ``--quick`` a tenth of both.  Every line is
a process of its own.  "plain" reads all batches and adds up their cells.  "kept" is `open_rows`: it reads them and
writes them into a file without a name.  "fit" is ``PrivatePCA(3).fit``, reading included.  "NumPy" fits the array
that DuckDB makes of the table.  "above" is the peak of resident memory less what the imports and a small fit take;
DuckDB itself may use 512 MB of it.  "processor" is the processor's time, which other work disturbs less.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

BATCH = 50_000
STREAM = 10_000_000, 50  # float64: 4 GB
DUCKDB = 10_000_000, 20
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-9}


def stream(rows: int) -> Any:
    """Return a reader of batches of float64 near a subspace; eight of them are made, and handed out in turn."""
    import pyarrow as pa

    rng, d = np.random.default_rng(0), STREAM[1]
    axes = rng.normal(size=(3, d))
    schema = pa.schema([(f"c{j}", pa.float64()) for j in range(d)])
    made = []
    for _ in range(8):
        cells = rng.normal(size=(BATCH, 3)) @ axes + 0.3 * rng.normal(size=(BATCH, d))
        made.append(pa.record_batch([pa.array(np.ascontiguousarray(column)) for column in cells.T], schema=schema))

    def batches() -> Iterator[Any]:
        for turn in range(rows // BATCH):
            yield made[turn % len(made)]

    return pa.RecordBatchReader.from_batches(schema, batches())


def relation(path: str) -> Any:
    """Return the whole table of a DuckDB file."""
    import duckdb

    connection = duckdb.connect(path, read_only=True, config={"memory_limit": "512MB", "threads": 2})
    return connection.sql("select * from people")


def create(path: Path, rows: int) -> None:
    """Write the DuckDB file."""
    import duckdb

    columns = ", ".join(f"(random() + random() - 1) * {j + 1} as c{j}" for j in range(DUCKDB[1]))
    with duckdb.connect(str(path), config={"memory_limit": "1GB"}) as connection:
        connection.execute(f"create table people as select {columns} from range({rows})")


def resident() -> float:
    """Return the peak of resident memory so far, in MB (Linux)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024


def worker(what: str, given: str) -> dict[str, float]:
    """Do one thing and measure it."""
    from privspan.estimators import PrivatePCA
    from privspan.rows import open_rows

    PrivatePCA(3, **BUDGET).fit(stream(BATCH))  # loads what is loaded on first use
    table = stream(int(given)) if given.isdigit() else relation(given)
    before, start, processor = resident(), time.perf_counter(), time.process_time()
    if what == "plain":
        reader = table if given.isdigit() else table.to_arrow_reader(2**16)
        sums = [(batch.num_rows, sum(column.to_numpy().sum() for column in batch.columns)) for batch in reader]
        rows = sum(count for count, _ in sums)
    elif what == "kept":
        rows = len(open_rows(table))
    elif what == "NumPy":
        rows = PrivatePCA(3, **BUDGET).fit(np.column_stack(list(table.fetchnumpy().values()))).n_samples_
    else:
        rows = PrivatePCA(3, **BUDGET).fit(table).n_samples_
    took = {"seconds": time.perf_counter() - start, "processor": time.process_time() - processor}
    return {"rows": rows, **took, "above": resident() - before}


def measured(what: str, given: str, folder: str) -> dict[str, float]:
    """Run `worker` in a process of its own."""
    command = [sys.executable, __file__, "--worker", what, given]
    environment = {**os.environ, "PRIVSPAN_TMPDIR": folder}
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Parse the command line and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    parser.add_argument("--folder", type=Path, help="where files are written and removed again")
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(worker(*arguments.worker)))
        return
    share = 10 if arguments.quick else 1
    print(f"{'table':>14} {'rows':>12} {'what':>6} {'seconds':>8} {'processor':>9} {'above MB':>9}")
    with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
        path = Path(folder) / "people.duckdb"
        create(path, DUCKDB[0] // share)
        runs = [("stream", str(STREAM[0] // share), ("plain", "kept", "fit"))]
        runs += [("DuckDB", str(path), ("plain", "kept", "fit", "NumPy"))]
        for name, given, whats in runs:
            for what in whats:
                got = measured(what, given, folder)
                about = f"{name:>14} {got['rows']:12,.0f} {what:>6} {got['seconds']:8.1f}"
                print(f"{about} {got['processor']:9.1f} {got['above']:9.0f}", flush=True)


if __name__ == "__main__":
    main()
