"""Queries of SQLite files, by Python's own module.

SQLite declares a type for each column of a table, and lets a cell be of any other.  What a column is read as follows
from what is declared; a cell that does not fit is a gap.  A column of an expression, or of a table without types, has
no declared type: it counts as numbers, like every column of a CSV file.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial

import numpy as np
import pyarrow as pa

from privspan._lib.frames import cell_numbers
from privspan._lib.location import Location
from privspan.rows.files.batches import Batches
from privspan.rows.files.queries import FAILS_ON_A_RECORD, Given, heeding, refused, unreachable, worded
from privspan.rows.files.schema import Schema
from privspan.rows.limits import Limits

_VIEW = "privspan_query"
# What the name of a type holds, in this order, and what its columns are read as.
_DECLARED = (
    ("BOOL", pa.bool_()),
    *((word, pa.date64()) for word in ("DATE", "TIME", "INTERVAL")),
    ("INT", pa.float64()),
    *((word, pa.string()) for word in ("CHAR", "CLOB", "TEXT", "STRING", "JSON", "UUID", "GUID")),
    *((word, pa.float64()) for word in ("REAL", "FLOA", "DOUB", "NUM", "DEC", "MONEY", "ANY")),
)
_WHY = {
    "SQLITE_BUSY": "another program is writing to it",
    "SQLITE_CANTOPEN": "its file cannot be opened",
    "SQLITE_CORRUPT": "its file is damaged",
    "SQLITE_NOTADB": "its file is no SQLite database",
    "SQLITE_READONLY": "it is opened for reading only",
    "SQLITE_ERROR": "it must be one statement that selects, from tables and columns that are there",
}
_WHY_LATER = {**_WHY, "SQLITE_ERROR": FAILS_ON_A_RECORD}  # once it is known to be that


@contextmanager
def batches(place: Location, statement: str, schema: Schema, limits: Limits) -> Iterator[Batches]:
    """Run a statement and hand out its rows, in one transaction that only reads."""
    assert place.path is not None
    if not place.path.is_file():
        raise unreachable(place, "there is no such file")
    with closing(_connected(place)) as connection:
        connection.text_factory = bytes  # one cell of text that is no UTF-8 must not be an error
        try:
            connection.execute("begin")
            # A view is one statement that selects, and it knows the declared types of its columns.
            connection.execute(f"create temp view {_VIEW} as {statement}")
            declared = [row[2].decode() for row in connection.execute(f"pragma table_info({_VIEW})")]
            connection.execute(f"drop view {_VIEW}")
        except (sqlite3.Error, sqlite3.Warning) as failure:
            raise refused(place, _why(failure), failure) from None
        cursor = _told(place, connection, lambda: connection.execute(statement))
        names = [column[0] for column in cursor.description]
        kinds = [_read_as(name, said, schema) for name, said in zip(names, declared, strict=True)]
        types = pa.schema(list(zip(names, kinds, strict=True)))
        yield Batches(types, partial(_batches, place, cursor, types, limits.batch_rows))


def _connected(place: Location) -> sqlite3.Connection:
    assert place.path is not None
    uri = f"{place.path.resolve().as_uri()}?mode=ro"
    return sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)


def _why(failure: Exception, reasons: Mapping[str, str] = _WHY) -> str | None:
    """Return a reason by the code of the failure; where Python itself refuses, there are several statements."""
    code = getattr(failure, "sqlite_errorname", None) or "SQLITE_ERROR"
    return next((why for known, why in reasons.items() if code.startswith(known)), None)


def _read_as(name: str, said: str, schema: Schema) -> pa.DataType:
    kind = declared_type(said)
    text = name == schema.person or (name in worded(schema) and kind == pa.float64())
    return pa.string() if text else kind


def declared_type(said: str) -> pa.DataType:
    """Return the type of Arrow that a column is read as.

    Examples
    --------
    >>> [str(declared_type(said)) for said in ("DOUBLE PRECISION", "decimal(10, 2)", "VARCHAR(20)", "datetime", "")]
    ['double', 'double', 'string', 'date64[ms]', 'double']
    """
    known = (kind for word, kind in _DECLARED if word in said.upper())
    return next(known, pa.binary()) if said else pa.float64()


def _told(place: Location, connection: sqlite3.Connection, call: Callable[[], Given]) -> Given:
    """Wait for a statement that has been found to be one that selects, from what is there."""
    try:
        return heeding(call, connection.interrupt)
    except sqlite3.Error as failure:
        raise refused(place, _why(failure, _WHY_LATER), failure) from None


def _batches(
    place: Location, cursor: sqlite3.Cursor, types: pa.Schema, size: int, wanted: Sequence[str]
) -> Iterator[pa.RecordBatch]:
    fields = [types.field(name) for name in wanted]
    places = [types.get_field_index(name) for name in wanted]
    while rows := _told(place, cursor.connection, lambda: cursor.fetchmany(size)):
        columns = [_column([row[at] for row in rows], field.type) for at, field in zip(places, fields, strict=True)]
        yield pa.record_batch(columns, pa.schema(fields))


def _column(cells: Sequence[object], kind: pa.DataType) -> pa.Array:
    """Make a column of cells of whatever types, each on its own; of a type that is never used, an empty one."""
    if kind == pa.float64():
        return pa.array(np.fromiter(map(_number, cells), np.float64, len(cells)))
    if kind == pa.bool_():
        return pa.array([bool(cell) if cell in (0, 1) else None for cell in cells], kind)
    return pa.array(map(_text, cells), kind) if kind == pa.string() else pa.nulls(len(cells), kind)


def _number(cell: object) -> float:
    """Return a number, also one that is written as text, as float64; NaN for all else."""
    if type(cell) is float:
        return cell
    return (
        float(cell) if type(cell) is int else float(cell_numbers(np.array([cell], object), np.dtype(np.float64))[0])
    )


def _text(cell: object) -> str | None:
    """Return text; of whole numbers the same, whether they are written as 1 or as 1.0."""
    if cell is None:
        return None
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return cell.decode(errors="backslashreplace") if isinstance(cell, bytes) else str(cell)
