"""What queries of all databases have in common: how they are waited for, which columns are text, what is refused.

Nothing is told of a failure but its kind: the words of a driver can hold the URL with its password, the query, or a
cell.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeVar

from privspan._lib.location import Location
from privspan.rows.damage import UnreadableFileError
from privspan.rows.files.schema import Schema

Given = TypeVar("Given")

_MOMENT = 0.1  # seconds

FAILS_ON_A_RECORD = "an expression in it fails on some record; write it so that it gives null there"
"""Why a query broke off that no record should be able to break off."""


def heeding(call: Callable[[], Given], cancel: Callable[[], object]) -> Given:
    """Return what a call returns that may wait for a database, and end it at once where this thread is interrupted.

    A driver waits in machine code, where Python's handlers of signals do not run.
    """
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(call)
        try:
            while not waiting.done():  # now and then, as the system may wake another thread by a signal
                wait([waiting], timeout=_MOMENT)
        finally:  # where this thread was interrupted; what has not begun yet cannot be cancelled yet
            while not waiting.done():
                with suppress(Exception):
                    cancel()
                wait([waiting], timeout=_MOMENT)
        return waiting.result()


def worded(schema: Schema) -> set[str]:
    """Return the columns whose cells are read as text if their types allow for it: ids, and words of categories."""
    return {*schema.levels, *([] if schema.person is None else [schema.person])}


def unreachable(place: Location, why: str) -> UnreadableFileError:
    """Return what is told where a database cannot be opened."""
    return UnreadableFileError("The database {name!r} cannot be opened: {why}.", name=place.name, why=why)


def refused(place: Location, why: str | None, failure: Exception | None = None) -> UnreadableFileError:
    """Return what is told where a database does not do what it is asked: the reason, if it is one of a known list."""
    if why is None:
        template = "The database {name!r} refused the query ({kind}); try it with the database's own program."
        return UnreadableFileError(template, name=place.name, kind=type(failure).__name__)
    return UnreadableFileError("The database {name!r} refused the query: {why}.", name=place.name, why=why)
