"""Tables of which little is read, cleaned or kept at a time."""

from typing import Any

from privspan.rows import RowSource
from privspan.rows.limits import Limits
from privspan.rows.source import as_source


def limited(table: Any, **limits: int) -> RowSource:
    """Return a source of the rows of a table with limits of its own."""
    source = as_source(table)
    source.limits = Limits(**limits)
    return source


def loads_of(source: Any) -> list[int]:
    """Return a list of the windows that a source has loaded since."""
    seen, load = [], source._load
    source._load = lambda window: seen.append(window) or load(window)
    return seen
