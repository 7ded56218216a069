"""Queries of DuckDB files."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

import duckdb
import pyarrow as pa

from privspan._lib.location import Location
from privspan.rows.files.queries import FAILS_ON_A_RECORD, refused, unreachable
from privspan.rows.files.schema import Schema
from privspan.rows.limits import Limits

_ONE = "it must be one statement that selects"
_WHY = (
    (duckdb.ParserException, f"{_ONE}, without errors of syntax"),
    (duckdb.CatalogException, "a table or a function that it names is not there"),
    (duckdb.BinderException, "a column that it names is not there, or types do not go together"),
    ((duckdb.DataError, duckdb.InvalidInputException), FAILS_ON_A_RECORD),
)


@contextmanager
def batches(place: Location, statement: str, schema: Schema, limits: Limits) -> Iterator[pa.RecordBatchReader]:
    """Run a statement and hand out its rows, from a connection that only reads."""
    assert place.path is not None
    if not place.path.is_file():
        raise unreachable(place, "there is no such file")
    try:
        connection = duckdb.connect(str(place.path.resolve()), read_only=True)
    except duckdb.Error:
        raise unreachable(place, "another program holds it, or its file is no DuckDB database") from None
    with closing(connection):
        try:
            connection.execute("set python_enable_replacements = false")  # no variable of ours is a table
            statements = connection.extract_statements(statement)
            if [one.type for one in statements] != [duckdb.StatementType.SELECT]:  # others may write files
                raise refused(place, _ONE, TypeError())
            reader = connection.sql(statement).to_arrow_reader(limits.batch_rows)
        except duckdb.Error as failure:
            raise refused(place, _why(failure), failure) from None
        yield reader


def _why(failure: Exception) -> str | None:
    return next((why for kinds, why in _WHY if isinstance(failure, kinds)), None)
