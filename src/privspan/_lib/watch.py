"""Lets a display follow how many rows have been looked at: a public number, the same for every table of one shape.

(How many passes an algorithm makes may depend on what it has released, never on more.)
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Watcher = Callable[[int], None]
watchers: list[Watcher] = []
"""Whoever looks on; mostly nobody, and then nothing is told."""
_readers: list[Watcher] = []
_thread = threading.local()


@contextmanager
def watching_rows(advance: Watcher | None = None, *, read: Watcher | None = None) -> Iterator[None]:
    """Call `advance` with the number of rows whenever rows are handed to an algorithm inside the block.

    And `read` whenever rows of a table that is read once have arrived.
    """
    watched = [(watchers, advance), (_readers, read)]
    for listeners, watcher in watched:
        listeners += [] if watcher is None else [watcher]
    try:
        yield
    finally:
        for listeners, watcher in watched:
            if watcher is not None:
                listeners.remove(watcher)


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
    return bool(watchers)


def rows_seen(count: int) -> None:
    """Tell whoever watches."""
    if getattr(_thread, "silent", False):
        return
    for advance in watchers:
        advance(count)


def rows_read(count: int) -> None:
    """Tell whoever watches that rows have arrived."""
    for read in _readers:
        read(count)
