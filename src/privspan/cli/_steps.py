"""The steps of commands that touch their surroundings or take long, in one value that is handed to `main`.

A test of what is told then hands in others, and nothing has to be patched.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privspan._lib.record import Record
    from privspan.cli._groups import Reading
    from privspan.cli._place import Place
    from privspan.cli._progress import Activity
    from privspan.cli._task import Task
    from privspan.planner import Plan
    from privspan.privacy import Release
    from privspan.rows import RowSource
    from privspan.rows.table import Table


class Steps:
    """What a fit does one after the other, and the demonstration."""

    def open(
        self, place: Place, columns: Sequence[str] | None, reading: Reading, shown: Activity
    ) -> AbstractContextManager[RowSource]:
        """Open the table."""
        from privspan.cli._table import open_table

        return open_table(place, columns, reading, shown)

    def learn(self, task: Task, table: Table) -> tuple[Release, Plan | None]:
        """Run the private step."""
        return task.run(table)

    def save(self, path: Path, release: Release, plan: Plan | None, record: Record, overwrite: bool) -> Path:
        """Write the result."""
        from privspan.ledger.release_file import save_release

        return save_release(path, release, plan=plan, record=record, overwrite=overwrite)

    def spare_folder(self) -> Path:
        """Make a folder for a result that could not be written where it should have been."""
        return Path(tempfile.mkdtemp(prefix="privspan-"))

    def tell(self, folder: Path) -> list[Path]:
        """Run the demonstration and return the files that it left."""
        from privspan.demo import tell

        return tell(folder)

    def show(self, page: str) -> None:
        """Open a page in a browser."""
        import webbrowser

        webbrowser.open(page)


@dataclass(frozen=True)
class Invocation:
    """What was typed, and the steps that a command takes."""

    arguments: list[str] = field(default_factory=list)
    steps: Steps = field(default_factory=Steps)
