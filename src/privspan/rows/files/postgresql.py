"""Queries of PostgreSQL, by the driver of ADBC: libpq, with its environment, its password file and its services."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import closing, contextmanager

import adbc_driver_postgresql.dbapi as driver
import pyarrow as pa

from privspan._lib.location import Location
from privspan.rows.damage import UnreadableFileError
from privspan.rows.files.batches import Batches, quoted_name
from privspan.rows.files.queries import FAILS_ON_A_RECORD, Given, heeding, refused, unreachable, worded
from privspan.rows.files.schema import Schema
from privspan.rows.files.text import text_numbers
from privspan.rows.limits import Limits

_ONE_SNAPSHOT = "set transaction isolation level repeatable read, read only"
_IN_ORDER_OF_THE_TABLE = "set local enable_indexonlyscan = off"  # a few columns could come in that of a private one
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
def batches(place: Location, statement: str, schema: Schema, limits: Limits) -> Iterator[Batches]:
    """Ask for the types of a statement, and run it for the columns that are wanted; both in a transaction to read.

    Other columns are not sent: the driver gives up at cells that it cannot hold, such as a very long interval.  A
    moment or an interval that is an id is sent as text.
    """
    try:
        connection = driver.connect(place.url)
    except driver.Error:  # which does not tell one from the other, but in words that hold the URL
        why = "the server cannot be reached, or refuses the login; psql with the same URL tells more"
        raise unreachable(place, why) from None
    with closing(connection), closing(connection.cursor()) as cursor:

        def told(call: Callable[[], Given]) -> Given:
            # Everything in another thread: in the main one the driver would take Ctrl-C for itself, and keep it.
            try:
                return heeding(call, cursor.adbc_cancel)
            except driver.Error as failure:
                raise refused(place, _why(failure), failure) from None

        def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
            reader = told(lambda: _answer(cursor, _asked(statement, found.names, columns, spelled)))
            wanted = pa.schema([types.field(name) for name in columns])
            yield from _batches(place, cursor, reader, wanted, numeric)

        found = told(lambda: _types(place, cursor, statement))
        as_text = worded(schema)
        spelled = {field.name for field in found if field.name in as_text and pa.types.is_temporal(field.type)}
        numeric = {field.name for field in found if field.name not in as_text and _is_numeric(field)}
        read_as = dict.fromkeys(spelled, pa.string()) | dict.fromkeys(numeric, pa.float64())
        types = pa.schema([pa.field(field.name, read_as.get(field.name, field.type)) for field in found])
        yield Batches(types, read)


def _types(place: Location, cursor: driver.Cursor, statement: str) -> pa.Schema:
    cursor.execute(_ONE_SNAPSHOT)
    cursor.execute(_IN_ORDER_OF_THE_TABLE)
    types = cursor.adbc_execute_schema(statement)
    if not types.names:  # COPY may write in a transaction that only reads
        raise refused(place, _ONE)
    return types


def _asked(statement: str, names: Sequence[str], columns: Sequence[str], spelled: Collection[str]) -> str:
    """Return a statement that sends some columns only; the one that was given, where that does."""
    if list(columns) == list(names) and not spelled:
        return statement
    quoted = {name: quoted_name(name) for name in columns}
    sent = [f"{column}::text as {column}" if name in spelled else column for name, column in quoted.items()]
    return f"select {', '.join(sent)} from ({statement}) as query"


def _answer(cursor: driver.Cursor, statement: str) -> pa.RecordBatchReader:
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
    place: Location, cursor: driver.Cursor, reader: pa.RecordBatchReader, types: pa.Schema, numeric: Collection[str]
) -> Iterator[pa.RecordBatch]:
    try:
        arriving = iter(reader)
        while (batch := heeding(lambda: next(arriving, None), cursor.adbc_cancel)) is not None:
            named = zip(types.names, batch.columns, strict=True)
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
