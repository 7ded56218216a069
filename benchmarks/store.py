"""Results on disk: one CSV per suite, one line per cell, added the moment the cell has ended.

A line is written with one call and synced, so a run that is killed leaves at most one unfinished line at the end of
the file; opening the store cuts it off. Rewriting a file goes through a new one that takes its place. A lock keeps a
second run out of the same folder, so a cell is never there twice.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any

from benchmarks.cells import Cell, Outcome, Suite
from privspan._lib import strict_json
from privspan._lib.whole_file import whole_file

Row = dict[str, str]


class StoreError(ValueError):
    """The folder of results cannot be used; the message is one sentence and says what to do."""


def columns_of(suite: Suite) -> list[str]:
    """Return the header of the suite's file."""
    return ["method", *suite.settings, "seed", "status", *suite.values, "seconds", "memory_mb", "note"]


def read_rows(folder: Path, suite: Suite) -> list[Row]:
    """Return the finished lines of a suite as dictionaries of strings; none if it was never run."""
    path = folder / f"{suite.name}.csv"
    if not path.exists():
        return []
    complete, _, _ = path.read_text("utf-8").rpartition("\n")
    reader = csv.DictReader(io.StringIO(complete))
    if reader.fieldnames is None:
        return []
    if list(reader.fieldnames) != columns_of(suite):
        raise StoreError(f"`{path}` has other columns than this version writes; give another folder with --output.")
    return list(reader)


class Store:
    """The results of one folder, open for adding.

    Parameters
    ----------
    folder : Path
        Made if it does not exist.
    """

    def __init__(self, folder: Path) -> None:
        import filelock

        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self._lock: Any = filelock.FileLock(folder / ".lock")
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise StoreError(f"Another run is writing to `{folder}`; give another folder with --output.") from None

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._lock.release()

    def missing(self, suite: Suite, cells: Iterable[Cell], again: tuple[str, ...] = ()) -> list[Cell]:
        """Return the cells that have no line yet.

        Parameters
        ----------
        suite : Suite
        cells : iterable of Cell
            Those that are wanted.
        again : tuple of str
            Wanted cells whose line has one of these statuses lose it, and are to be run once more.
        """
        names = ("method", *suite.settings, "seed")
        wanted = {cell.key: cell for cell in cells}
        stored = {tuple(row[name] for name in names): row for row in read_rows(self.folder, suite)}
        kept = {key: row for key, row in stored.items() if key not in wanted or row["status"] not in again}
        self._keep(suite, list(kept.values()))
        return [cell for key, cell in wanted.items() if key not in kept]

    def add(self, suite: Suite, cell: Cell, outcome: Outcome) -> None:
        """Add the line of a cell."""
        measured = [_plain(outcome.values.get(name, "")) for name in suite.values]
        line = [*cell.key, outcome.status, *measured, _rounded(outcome.seconds, 4), _rounded(outcome.memory_mb, 1)]
        text = _csv_text([[*line, " ".join(outcome.note.split())]])
        with open(self.folder / f"{suite.name}.csv", "ab", buffering=0) as file:  # unbuffered: one write
            file.write(text.encode("utf-8"))
            os.fsync(file.fileno())

    def _keep(self, suite: Suite, rows: list[Row]) -> None:
        """Write the file of a suite anew with these lines, unless it holds exactly them already."""
        header = columns_of(suite)
        text = _csv_text([header, *([row[name] for name in header] for row in rows)])
        path = self.folder / f"{suite.name}.csv"
        if not path.exists() or path.read_bytes() != text.encode("utf-8"):
            replace_file(path, text)

    def record_machine(self, suite: Suite, facts: dict[str, Any]) -> None:
        """Note on which machine, with which versions, cells of a suite were run; see `benchmarks.machine`."""
        path = self.folder / "machine.json"
        runs = strict_json.loads(path.read_text("utf-8")) if path.exists() else {}
        earlier = runs.get(suite.name, [])
        if facts not in earlier:
            runs[suite.name] = [*earlier, facts]
            replace_file(path, json.dumps(runs, indent=1, sort_keys=True) + "\n")


def replace_file(path: Path, text: str) -> None:
    """Write a file so that a reader, or a crash, sees either the old text or the new one."""
    with whole_file(path) as file:
        file.write(text.encode("utf-8"))


def _csv_text(lines: list[list[str]]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows(lines)
    return out.getvalue()


def _plain(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _rounded(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"
