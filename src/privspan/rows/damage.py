"""Faults of files: one sentence that quotes no cell."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from privspan._lib.errors import PrivspanError


class UnreadableFileError(PrivspanError, ValueError):
    """A file that cannot be used as a table of numbers; the message is one sentence and quotes no cell."""


@contextmanager
def damage_told(file: str, what: str) -> Iterator[None]:
    """Turn whatever a reader fails with, as the damage leads it to, into one sentence: `what` the file is.

    The reader's own message may quote a cell: it is dropped.  Arrow asks for as much memory as a damaged file says.
    """
    try:
        yield
    except (UnreadableFileError, ImportError):
        raise
    except Exception as failure:
        if isinstance(failure, MemoryError) and not type(failure).__module__.startswith("pyarrow"):
            raise
        raise UnreadableFileError("{file!r} {what}", file=file, what=what) from None


@contextmanager
def refusal_alone() -> Iterator[None]:
    """Let a refusal go out without the failure that it was made of: a driver's words may hold a cell, or a password.

    Those are hidden where the refusal is printed; a program that collects failures may look for them.
    """
    try:
        yield
    except PrivspanError as refusal:
        refusal.__context__ = None
        raise
