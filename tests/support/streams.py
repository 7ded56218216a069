"""One table in every container that hands out Arrow batches."""

import datetime
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import duckdb
import nanoarrow
import narwhals
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset


def arrow(rows: np.ndarray, names: Any = None) -> pa.Table:
    """Return a table (n, d) of Arrow."""
    names = [f"c{j}" for j in range(rows.shape[1])] if names is None else names
    return pa.table({name: rows[:, j] for j, name in enumerate(names)})


class Cursor:
    """What a cursor of ADBC offers."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def fetch_record_batch(self) -> pa.RecordBatchReader:
        """Return a reader."""
        return self._table.to_reader()


class Offer:
    """A table of a package that we do not know."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)


def relation(table: pa.Table) -> duckdb.DuckDBPyRelation:
    """Return a relation of DuckDB, in a database of its own."""
    connection = duckdb.connect()
    connection.register("people", table)
    return connection.sql("select * from people")


def uneven(table: pa.Table, lengths: Any) -> pa.RecordBatchReader:
    """Return a reader whose batches have these lengths, over and over; some may be empty."""

    def batches() -> Iterator[pa.RecordBatch]:
        start, turn = 0, 0
        while start < table.num_rows:
            rows = lengths[turn % len(lengths)]
            part = table.slice(start, rows).combine_chunks()
            yield from part.to_batches() or [pa.RecordBatch.from_pylist([], schema=table.schema)]
            start, turn = start + rows, turn + 1

    return pa.RecordBatchReader.from_batches(table.schema, batches())


STREAMS: dict[str, Callable[[pa.Table], Any]] = {
    "reader": lambda table: table.to_reader(),
    "reader of odd batches": lambda table: uneven(table, (7, 0, 1, 0, 30)),
    "dataset": pyarrow.dataset.dataset,
    "scanner": lambda table: pyarrow.dataset.dataset(table).scanner(),
    "nanoarrow": nanoarrow.ArrayStream,
    "DuckDB relation": relation,
    "DuckDB reader": lambda table: relation(table).to_arrow_reader(100),
    "cursor": Cursor,
    "lazy frame": lambda table: pl.from_arrow(table).lazy(),
    "narwhals": lambda table: narwhals.from_native(pl.from_arrow(table).lazy()),
    "narwhals of DuckDB": lambda table: narwhals.from_native(relation(table)),
    "unknown": Offer,
}
"""What is read once, made of a table of Arrow."""

DAY = datetime.date(2020, 1, 1)
EVERY_TYPE = pa.table(
    {
        "int8": pa.array([1, None, 3], pa.int8()),
        "uint64": pa.array([2**60, None, 0], pa.uint64()),
        "float16": pa.array(np.array([0.5, 1.5, 2.5], dtype=np.float16)),
        "float32": pa.array([0.25, None, 1e30], pa.float32()),
        "float64": pa.array([0.1, float("nan"), None], pa.float64()),
        "decimal": pa.array([Decimal("1.25"), None, Decimal("-3.50")], pa.decimal128(9, 2)),
        "wide_decimal": pa.array([Decimal("1.25"), None, Decimal("-3.50")], pa.decimal256(50, 2)),
        "boolean": pa.array([True, None, False]),
        "user_id": pa.array([7, 7, 8], pa.int64()),
        "text": pa.array(["a", None, "b"]),
        "large_text": pa.array(["a", None, "b"], pa.large_string()),
        "category": pa.array(["f", None, "m"]).dictionary_encode(),
        "numbered": pa.array([5, None, 6]).dictionary_encode(),
        "day": pa.array([DAY, None, DAY]),
        "moment": pa.array([1, None, 2], pa.timestamp("us")),
        "span": pa.array([1, None, 2], pa.duration("s")),
        "bytes": pa.array([b"a", None, b"b"]),
        "uuid": pa.array([bytes(16), None, bytes(16)], pa.uuid()),
        "lists": pa.array([[1.0], None, [2.0, 3.0]]),
        "vector": pa.array([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float64(), 2)),
        "struct": pa.array([{"x": 1.0}, None, {"x": 2.0}]),
        "nothing": pa.nulls(3),
    }
)
"""Columns of many types, each with a gap where it can have one."""
