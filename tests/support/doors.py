"""One table in every container, file and stream that a private function takes."""

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import fsspec
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import zarr
from pyarrow import feather, parquet
from streams import STREAMS

from privspan.rows import open_rows
from privspan.rows.limits import LIMITS

SPOOLED = replace(LIMITS, stream_bytes=1)


def matrix(table: pa.Table) -> np.ndarray:
    """Return a table of numbers as an array."""
    columns = [np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.float64) for column in table.columns]
    return np.column_stack(columns)


def _file(name: str, write: Callable[[Any, Path], object], **options: Any) -> Callable[[pa.Table, Path], Any]:
    def opened(table: pa.Table, folder: Path) -> Any:
        write(table, folder / name)
        return open_rows(folder / name, **options)

    return opened


def _write_csv(table: pa.Table, path: Path) -> None:
    rows = [",".join("" if np.isnan(cell) else repr(cell) for cell in row) for row in matrix(table).tolist()]
    path.write_text("\n".join([",".join(table.column_names), *rows, ""]))


def _write_zarr(table: pa.Table, path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)
    zarr.save_array(str(path), matrix(table))


def _write_npz(table: pa.Table, path: Path) -> None:
    np.savez(path, people=matrix(table))


def _in_rows(table: pa.Table, path: Path) -> None:
    parquet.write_table(table, path, row_group_size=7)


def _sqlite(table: pa.Table, folder: Path) -> Any:
    path = folder / "people.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("pragma synchronous = off")
        file.execute(f"create table people ({', '.join(f'{name} real' for name in table.column_names)})")
        marks = ", ".join("?" * table.num_columns)
        file.executemany(f"insert into people values ({marks})", matrix(table).tolist())  # NaN becomes NULL
    return open_rows(f"sqlite:///{path}", query="select * from people order by rowid")


def _duckdb(table: pa.Table, folder: Path) -> Any:
    path = folder / "people.duckdb"
    path.unlink(missing_ok=True)
    with duckdb.connect(path) as file:
        file.register("given", table)
        file.execute("create table people as select * from given")
    return open_rows(f"duckdb:///{path}", table="people")


def _elsewhere(table: pa.Table, folder: Path) -> Any:
    parquet.write_table(table, folder / "elsewhere.parquet")
    fsspec.filesystem("memory").put_file(str(folder / "elsewhere.parquet"), "/people.parquet")
    return open_rows("memory://people.parquet")


DOORS: dict[str, Callable[[pa.Table, Path], Any]] = {
    "NumPy": lambda table, _: matrix(table),
    "NumPy, by columns": lambda table, _: np.asfortranarray(matrix(table)),
    "pandas": lambda table, _: pd.DataFrame(matrix(table), columns=table.column_names),
    "pandas, Arrow types": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, _: pl.from_arrow(table),
    "Arrow": lambda table, _: table,
    "Arrow in chunks": lambda table, _: pa.concat_tables([table.slice(0, 5), table.slice(5)]),
    ".npy": _file("people.npy", lambda table, path: np.save(path, matrix(table))),
    ".npz": _file("people.npz", _write_npz),
    ".csv": _file("people.csv", _write_csv),
    ".zarr": _file("people.zarr", _write_zarr),
    ".feather": _file("people.feather", feather.write_feather),
    ".parquet": _file("people.parquet", parquet.write_table),
    ".parquet in groups": _file("groups.parquet", _in_rows),
    "SQLite": _sqlite,
    "DuckDB": _duckdb,
    "memory://": _elsewhere,
    "stream in memory": lambda table, _: open_rows(table.to_reader(9)),
    "stream in a file": lambda table, _: open_rows(table.to_reader(9), limits=SPOOLED),
    **{kind: lambda table, _, make=make: make(table) for kind, make in STREAMS.items()},
}
"""What a table of Arrow becomes, by name; files are written into a folder."""
