"""Tables of databases: a query is run once, reading only, and its rows are kept as those of a stream are.

What a column holds is decided by the type that the database declares for it, never by cells.  Nothing is told of a
failure but its kind: the words of a driver can hold the URL with its password, the query, or a cell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import Any, TypeAlias, cast

from privspan._lib.errors import MissingPackageError, ParameterError
from privspan.rows.damage import UnreadableFileError
from privspan.rows.files.location import Location
from privspan.rows.files.schema import Schema
from privspan.rows.limits import LIMITS, Limits
from privspan.rows.source import RowSource

Reading: TypeAlias = Callable[[Location, str, Schema, Limits], AbstractContextManager[Any]]
"""Runs a statement and hands its rows out as a reader of Arrow batches, until the block ends."""

FAILS_ON_A_RECORD = "an expression in it fails on some record; write it so that it gives null there"
"""Why a query broke off that no record should be able to break off."""

_DOORS = {  # module, and the packages that it needs beside pyarrow
    "duckdb": ("duckdb", ("duckdb",)),
    "postgresql": ("postgresql", ("adbc_driver_manager", "adbc_driver_postgresql")),
    "sqlite": ("sqlite", ()),
}


def open_database(
    place: Location,
    *,
    query: str | None,
    table: str | None,
    columns: Sequence[str] | None,
    schema: Schema,
    limits: Limits = LIMITS,
) -> RowSource:
    """Run a query once, or read a whole table, and keep its rows.

    Parameters
    ----------
    place : Location
    query : str or None
        One statement that selects.
    table : str or None
        In its place, the name of a table or a view; one in another schema is ``schema.table``.
    columns, schema, limits
        As for `open_rows`.

    Returns
    -------
    RowSource

    Raises
    ------
    UnreadableFileError
        If the database cannot be reached, refuses the query, or has no column of numbers.
    """
    from privspan.rows.files.stream import open_stream

    with batches_from(place, query=query, table=table, schema=schema, limits=limits) as reader:
        return open_stream(reader, columns=columns, schema=schema, name=place.name, limits=limits)


def batches_from(
    place: Location, *, query: str | None, table: str | None, schema: Schema, limits: Limits = LIMITS
) -> AbstractContextManager[Any]:
    """Return the rows of a query, or of a whole table, as a reader of Arrow batches, to be read inside the block."""
    if (query is None) == (table is None):
        raise ParameterError("A database needs either {query} or {table}.")
    statement = query if query is not None else f"select * from {_quoted(str(table))}"
    statement = statement.strip().removesuffix(";")
    if not statement:
        raise ParameterError("{query} must be a statement that selects rows.")
    module, packages = _DOORS[place.scheme]
    for package in ("pyarrow", *packages):
        try:
            import_module(package)
        except ImportError:
            raise MissingPackageError(
                "Reading {scheme}:// tables needs {package}: pip install 'privspan[db]'.",
                scheme=place.scheme,
                package=package.replace("_", "-"),
            ) from None
    door = cast(Reading, import_module(f"privspan.rows.files.{module}").batches)
    return door(place, f"{statement}\n", schema, limits)  # whose last line may be a comment


def _quoted(table: str) -> str:
    """Return the name of a table as SQL has it, whatever letters it holds."""
    return ".".join('"' + part.replace('"', '""') + '"' for part in table.split("."))


def worded(schema: Schema) -> set[str]:
    """Return the columns whose cells are read as text if their types allow for it: ids, and words of categories."""
    return {*schema.levels, *([] if schema.person is None else [schema.person])}


def unreachable(place: Location, why: str) -> UnreadableFileError:
    """Return what is told where a database cannot be opened."""
    return UnreadableFileError("The database {name!r} cannot be opened: {why}.", name=place.name, why=why)


def refused(place: Location, why: str | None, failure: Exception) -> UnreadableFileError:
    """Return what is told where a database does not do what it is asked: the reason, if it is one of a known list."""
    if why is None:
        template = "The database {name!r} refused the query ({kind}); try it with the database's own program."
        return UnreadableFileError(template, name=place.name, kind=type(failure).__name__)
    return UnreadableFileError("The database {name!r} refused the query: {why}.", name=place.name, why=why)
