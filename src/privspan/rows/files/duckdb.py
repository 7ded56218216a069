"""Queries of DuckDB files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager

import duckdb
import pyarrow as pa

from privspan._lib.location import Location
from privspan.rows.files.batches import Batches, batches_of
from privspan.rows.files.queries import FAILS_ON_A_RECORD, Given, heeding, refused, unreachable
from privspan.rows.files.schema import Schema
from privspan.rows.files.spool import Spool, room_told
from privspan.rows.limits import Limits

_ONE = "it must be one statement that selects"
_MEMORY = "it needs more memory, or room to sort, than it gets here; run it in DuckDB and hand its relation over"
_WHY = (
    (duckdb.ParserException, f"{_ONE}, without errors of syntax"),
    (duckdb.CatalogException, "a table or a function that it names is not there"),
    (duckdb.BinderException, "a column that it names is not there, or types do not go together"),
    (duckdb.OutOfMemoryException, _MEMORY),
    ((duckdb.DataError, duckdb.InvalidInputException), FAILS_ON_A_RECORD),
)
_WHY_LATER = {  # by the first words of what Arrow says
    "Out of Memory Error": _MEMORY,
    **dict.fromkeys(("Conversion Error", "Invalid Input Error", "Out of Range Error"), FAILS_ON_A_RECORD),
}


@contextmanager
def batches(place: Location, statement: str, schema: Schema, limits: Limits) -> Iterator[Batches]:
    """Run a statement and hand out its rows, from a connection that only reads."""
    assert place.path is not None
    if not place.path.is_file():
        raise unreachable(place, "there is no such file")
    with room_told():
        spool = Spool()
    with spool, closing(_connected(place, spool, limits)) as connection:

        def told(call: Callable[[], Given]) -> Given:
            try:
                return heeding(call, connection.interrupt)
            except (duckdb.Error, OSError) as failure:  # Arrow's, which says nothing but in words
                raise refused(place, _why(failure), failure) from None

        def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
            arriving = iter(answer.read(columns))
            while (batch := told(lambda: next(arriving, None))) is not None:
                yield batch

        answer = told(lambda: batches_of(_relation(place, connection, statement), limits))
        yield Batches(answer.types, read)


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


def _relation(place: Location, connection: duckdb.DuckDBPyConnection, statement: str) -> duckdb.DuckDBPyRelation:
    statements = connection.extract_statements(statement)
    if [one.type for one in statements] != [duckdb.StatementType.SELECT]:  # others may write files
        raise refused(place, _ONE)
    return connection.sql(statement)


def _why(failure: Exception) -> str | None:
    if isinstance(failure, OSError):  # it begins with the kind of the failure
        return next((why for kind, why in _WHY_LATER.items() if str(failure).startswith(kind)), None)
    return next((why for kinds, why in _WHY if isinstance(failure, kinds)), None)
