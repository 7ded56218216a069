"""What queries of all databases have in common: which columns are read as text, and what is told of a refusal.

Nothing is told of a failure but its kind: the words of a driver can hold the URL with its password, the query, or a
cell.
"""

from __future__ import annotations

from privspan._lib.location import Location
from privspan.rows.damage import UnreadableFileError
from privspan.rows.files.schema import Schema

FAILS_ON_A_RECORD = "an expression in it fails on some record; write it so that it gives null there"
"""Why a query broke off that no record should be able to break off."""


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
