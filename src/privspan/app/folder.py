"""Which files can be reached: those below one folder, found out after every link has been followed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from privspan._lib.errors import PrivspanError
from privspan._lib.readable import readable

TABLES = (".arrow", ".csv", ".feather", ".parquet", ".tsv")
"""Suffixes of tables with column names."""

_DEEPEST = 4  # folders below the one given: deeper files can be typed
_MOST_LISTED = 300  # files on the page; others can be typed
_MOST_SEEN = 20_000  # names looked at, for the time that takes


class OutsideError(PrivspanError):
    """A path leads out of the folder, or to nothing that can be used."""


@dataclass(frozen=True)
class Folder:
    """The folder that was given at the start; its path has no link in it."""

    root: Path

    @classmethod
    def at(cls, path: Path) -> Folder:
        """Return the folder of that path."""
        return cls(path.resolve(strict=True))

    def file(self, typed: str, suffixes: tuple[str, ...]) -> Path:
        """Return the file that was typed, by its real path, or refuse it.

        What lies elsewhere is refused in the same words whether it exists or not.
        """
        try:
            path = (self.root / typed).resolve()
            is_file = path.is_file()
        except (OSError, ValueError, RuntimeError):  # a loop of links, a null byte, a name that is too long
            raise OutsideError("This path cannot be used.") from None
        if not path.is_relative_to(self.root):
            template = (
                "This path leads out of the folder of this app. Start `privspan app --folder` with another one."
            )
            raise OutsideError(template)
        if path.suffix.lower() not in suffixes:
            raise OutsideError("Choose a file that ends in {known}.", known=" or ".join(suffixes))
        if not is_file:
            raise OutsideError("There is no such file below the folder.")
        return path

    def relative(self, path: Path) -> str:
        """Return a path as it is shown and typed."""
        return path.relative_to(self.root).as_posix()

    def listed(self, suffixes: tuple[str, ...]) -> list[str]:
        """Return files below the folder, by name alone: hidden ones, and links that lead out of it, are not shown.

        Nothing else is told of them: a size or a date would follow from the rows.
        """
        found = list(self._names(suffixes))[:_MOST_LISTED]
        return sorted(found, key=lambda name: (name.count("/"), name.lower()))

    def _names(self, suffixes: tuple[str, ...]) -> Iterator[str]:
        seen = 0
        for where, folders, files in os.walk(self.root):
            here = Path(where)
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            if len(here.relative_to(self.root).parts) >= _DEEPEST:
                folders.clear()
            for name in sorted(files):
                seen += 1
                if seen > _MOST_SEEN:
                    return
                if name.startswith(".") or Path(name).suffix.lower() not in suffixes or readable(name) != name:
                    continue  # a name with signs that cannot be shown does not come back from a form as it was
                try:
                    self.file(self.relative(here / name), suffixes)
                except OutsideError:
                    continue
                yield self.relative(here / name)
