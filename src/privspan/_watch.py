"""Lets a display follow how many rows have been looked at: a public number, the same for every table of one shape.

(How many passes an algorithm makes may depend on what it has released, never on more.)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["rows_seen", "watching_rows"]

_watchers: list[Callable[[int], None]] = []


@contextmanager
def watching_rows(advance: Callable[[int], None]) -> Iterator[None]:
    """Call `advance` with the number of rows whenever rows are handed to an algorithm inside the block."""
    _watchers.append(advance)
    try:
        yield
    finally:
        _watchers.remove(advance)


def rows_seen(count: int) -> None:
    """Tell whoever watches."""
    for advance in _watchers:
        advance(count)
