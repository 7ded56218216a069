"""What a few rooms ask of a room above them, handed in by the package, which knows all rooms.

A path that is given as `ledger=` becomes a page of a ledger; `Release.save` writes a file whose format knows every
method by name; a table in partitions is opened by the backend of its package.  `privspan/__init__.py` hands in what
loads these rooms, and each is loaded when it is first asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

Load = Callable[[], ModuleType]

_handed: dict[str, Load] = {}


def hand_in(**rooms: Load) -> None:
    """Say what loads a room, by the name under which it is asked for."""
    _handed.update(rooms)


def ledgers() -> ModuleType:
    """Return the room with `Ledger`."""
    return _handed["ledgers"]()


def release_files() -> ModuleType:
    """Return the module with `save_release` and `load_release`."""
    return _handed["release_files"]()


def tables_of(package: str) -> ModuleType:
    """Return the module with `open_table` and `open_column` for tables in partitions of that package."""
    return _handed[package]()
