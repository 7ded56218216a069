"""Tables of databases: a query is run once, reading only, and its rows are kept as those of a stream are.

What a column holds is decided by the type that the database declares for it, never by cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING

from privspan._lib.errors import MissingPackageError, ParameterError
from privspan._lib.location import Location
from privspan.rows.files.schema import Schema
from privspan.rows.limits import LIMITS, Limits
from privspan.rows.source import RowSource

if TYPE_CHECKING:
    from privspan.rows.files.batches import Batches

_READ_AS_FLOATS = ("postgresql", "sqlite")  # of which some whole numbers are
_PACKAGES = {
    "duckdb": ("pyarrow", "duckdb"),
    "postgresql": ("pyarrow", "adbc_driver_manager", "adbc_driver_postgresql"),
    "sqlite": ("pyarrow",),
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
    with batches_from(place, query=query, table=table, schema=schema, limits=limits) as batches:
        from privspan.rows.files.stream import open_stream

        source = open_stream(batches, columns=columns, schema=schema, name=place.name, limits=limits)
    if schema.person is None and place.scheme in _READ_AS_FLOATS:
        source.read_ids = None  # long ids of several persons could be one float
    return source


def batches_from(
    place: Location, *, query: str | None, table: str | None, schema: Schema, limits: Limits = LIMITS
) -> AbstractContextManager[Batches]:
    """Return the rows of a query, or of a whole table, to be read inside the block."""
    if (query is None) == (table is None):
        raise ParameterError("A database needs either {query} or {table}.")
    if query is not None and not query.strip().removesuffix(";"):
        raise ParameterError("{query} must be a statement that selects rows.")
    _check_packages(place.scheme)
    from privspan.rows.files.batches import quoted_name

    whole = ".".join(map(quoted_name, str(table).split(".")))
    statement = f"select * from {whole}" if query is None else query.strip().removesuffix(";")
    statement = f"{statement}\n"  # whose last line may be a comment
    match place.scheme:
        case "sqlite":
            from privspan.rows.files import sqlite

            return sqlite.batches(place, statement, schema, limits)
        case "duckdb":
            from privspan.rows.files import duckdb

            return duckdb.batches(place, statement, schema, limits)
    from privspan.rows.files import postgresql

    return postgresql.batches(place, statement, schema, limits)


def _check_packages(scheme: str) -> None:
    for package in _PACKAGES[scheme]:
        try:
            import_module(package)
        except ImportError:
            raise MissingPackageError(
                "Reading {scheme}:// tables needs {package}: pip install 'privspan[db]'.",
                scheme=scheme,
                package=package.replace("_", "-"),
            ) from None
