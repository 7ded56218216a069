"""Queries of DuckDB files."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

import duckdb
import pyarrow as pa

from privspan._lib.location import Location
from privspan.rows.files.queries import FAILS_ON_A_RECORD, heeding, refused, unreachable
from privspan.rows.files.schema import Schema
from privspan.rows.files.spool import Spool
from privspan.rows.files.stream import room_told
from privspan.rows.limits import Limits

_ONE = "it must be one statement that selects"
_WHY = (
    (duckdb.ParserException, f"{_ONE}, without errors of syntax"),
    (duckdb.CatalogException, "a table or a function that it names is not there"),
    (duckdb.BinderException, "a column that it names is not there, or types do not go together"),
    (
        duckdb.OutOfMemoryException,
        "it needs more memory than it gets here; run it in DuckDB and hand its relation over",
    ),
    ((duckdb.DataError, duckdb.InvalidInputException), FAILS_ON_A_RECORD),
)


@contextmanager
def batches(place: Location, statement: str, schema: Schema, limits: Limits) -> Iterator[pa.RecordBatchReader]:
    """Run a statement and hand out its rows, from a connection that only reads."""
    assert place.path is not None
    if not place.path.is_file():
        raise unreachable(place, "there is no such file")
    with room_told():
        spool = Spool()
    with spool, closing(_connected(place, spool, limits)) as connection:
        reader = heeding(lambda: _answer(place, connection, statement, limits), connection.interrupt)
        yield pa.RecordBatchReader.from_batches(reader.schema, _batches(reader, connection))


def _connected(place: Location, spool: Spool, limits: Limits) -> duckdb.DuckDBPyConnection:
    settings: dict[str, str | bool | int | float | list[str]] = {
        "memory_limit": f"{limits.database_bytes}B",
        "python_enable_replacements": False,  # no variable of ours is a table
        "temp_directory": str(spool.path),  # for what it sorts, in place of a folder beside the file
        "threads": min(limits.database_threads, os.cpu_count() or 1),
    }
    try:
        return duckdb.connect(str(place.path), read_only=True, config=settings)
    except duckdb.Error:
        raise unreachable(place, "another program holds it, or its file is no DuckDB database") from None


def _answer(
    place: Location, connection: duckdb.DuckDBPyConnection, statement: str, limits: Limits
) -> pa.RecordBatchReader:
    try:
        statements = connection.extract_statements(statement)
        if [one.type for one in statements] != [duckdb.StatementType.SELECT]:  # others may write files
            raise refused(place, _ONE)
        relation = connection.sql(statement)
        newer = hasattr(type(relation), "to_arrow_reader")  # since DuckDB 1.5
        return (relation.to_arrow_reader if newer else relation.fetch_arrow_reader)(limits.batch_rows)
    except duckdb.Error as failure:
        raise refused(place, _why(failure), failure) from None


def _batches(reader: pa.RecordBatchReader, connection: duckdb.DuckDBPyConnection) -> Iterator[pa.RecordBatch]:
    batches = iter(reader)
    while (batch := heeding(lambda: next(batches, None), connection.interrupt)) is not None:
        yield batch


def _why(failure: Exception) -> str | None:
    return next((why for kinds, why in _WHY if isinstance(failure, kinds)), None)
