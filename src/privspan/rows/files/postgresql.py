"""Queries of PostgreSQL, by the driver of ADBC: libpq, with its environment, its password file and its services."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import adbc_driver_postgresql.dbapi as driver
import pyarrow as pa

from privspan._lib.location import Location
from privspan.rows.damage import UnreadableFileError
from privspan.rows.files.queries import FAILS_ON_A_RECORD, heeding, refused, unreachable, worded
from privspan.rows.files.schema import Schema
from privspan.rows.files.text import text_numbers
from privspan.rows.limits import Limits

_ONE_SNAPSHOT = "set transaction isolation level repeatable read, read only"
_ONE = "it must be one statement that selects"
_GONE = "the server went away, or could not go on"
_WHY = {  # by SQLSTATE, or its first letters
    "22": FAILS_ON_A_RECORD,
    "25006": "it is run for reading only",
    "42501": "this user may not read that",
    "42601": f"{_ONE}, without errors of syntax",
    "42703": "a column that it names is not there",
    "42P01": "a table that it names is not there",
    "08": _GONE,
    "57P": _GONE,
    "57014": "it was cancelled, or took longer than the server allows",
}


@contextmanager
def batches(place: Location, statement: str, schema: Schema, limits: Limits) -> Iterator[pa.RecordBatchReader]:
    """Run a statement and hand out its rows, in one transaction that only reads."""
    try:
        connection = driver.connect(place.url)
    except driver.Error:  # which does not tell one from the other, but in words that hold the URL
        why = "the server cannot be reached, or refuses the login; psql with the same URL tells more"
        raise unreachable(place, why) from None
    with closing(connection), closing(connection.cursor()) as cursor:
        try:
            # Everything in another thread: in the main one the driver would take Ctrl-C for itself, and keep it.
            reader = heeding(lambda: _answer(place, cursor, statement), cursor.adbc_cancel)
        except driver.Error as failure:
            raise refused(place, _why(failure), failure) from None
        as_text = worded(schema)
        numeric = {field.name for field in reader.schema if _is_numeric(field) and field.name not in as_text}
        fields = [pa.field(field.name, pa.float64()) if field.name in numeric else field for field in reader.schema]
        types = pa.schema(fields)
        yield pa.RecordBatchReader.from_batches(types, _batches(place, cursor, reader, types, numeric))


def _answer(place: Location, cursor: driver.Cursor, statement: str) -> pa.RecordBatchReader:
    cursor.execute(_ONE_SNAPSHOT)
    if not cursor.adbc_execute_schema(statement).names:  # COPY may write in a transaction that only reads
        raise refused(place, _ONE)
    cursor.execute(statement)
    return cursor.fetch_record_batch()


def _why(failure: Exception) -> str | None:
    state = getattr(failure, "sqlstate", None) or ""
    gone = _GONE if not state and isinstance(failure, driver.OperationalError) else None
    return next((why for known, why in _WHY.items() if state.startswith(known)), gone)


def _is_numeric(field: pa.Field) -> bool:
    """Tell whether a column is NUMERIC, which has no bounds and so is handed out as text."""
    return (field.metadata or {}).get(b"ADBC:postgresql:typname") == b"numeric"


def _batches(
    place: Location, cursor: driver.Cursor, reader: pa.RecordBatchReader, types: pa.Schema, numeric: set[str]
) -> Iterator[pa.RecordBatch]:
    try:
        arriving = iter(reader)
        while (batch := heeding(lambda: next(arriving, None), cursor.adbc_cancel)) is not None:
            named = zip(batch.schema.names, batch.columns, strict=True)
            yield pa.record_batch([_numbers(cells) if name in numeric else cells for name, cells in named], types)
    except (driver.Error, pa.ArrowException, OSError) as failure:  # the reader does not say what the server did
        if (why := _why(failure)) is not None:
            raise refused(place, why) from None
        template = (
            "The database {name!r} broke off while it was read: the server went away, or the query fails on some "
            "record. Nothing was kept."
        )
        raise UnreadableFileError(template, name=place.name) from None


def _numbers(cells: pa.Array) -> pa.Array:
    storage = cells.storage if isinstance(cells.type, pa.BaseExtensionType) else cells
    return pa.array(text_numbers(storage.cast(pa.large_string()).fill_null("")))
