"""Lets a display follow how many rows have been looked at: a public number, the same for every table of one shape.

(How many passes an algorithm makes may depend on what it has released, never on more.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_watchers: list[Callable[[int], None]] = []
_thread = threading.local()


@contextmanager
def watching_rows(advance: Callable[[int], None]) -> Iterator[None]:
    """Call `advance` with the number of rows whenever rows are handed to an algorithm inside the block."""
    _watchers.append(advance)
    try:
        yield
    finally:
        _watchers.remove(advance)


@contextmanager
def unwatched() -> Iterator[None]:
    """Do not tell of the rows that this thread sees inside the block: whoever sent the work will."""
    before, _thread.silent = getattr(_thread, "silent", False), True
    try:
        yield
    finally:
        _thread.silent = before


def is_watched() -> bool:
    """Tell whether anybody watches."""
    return bool(_watchers)


def rows_seen(count: int) -> None:
    """Tell whoever watches."""
    if getattr(_thread, "silent", False):
        return
    for advance in _watchers:
        advance(count)
