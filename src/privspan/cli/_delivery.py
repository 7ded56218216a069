"""Handing over the result of a fit: into its file first, then the report, then what people read.

From the end of the private step on the budget is spent, so nothing here gives a result up while there is a place left
to put it: the file, a folder for temporary files, standard output.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from privspan._lib.record import Record
from privspan.cli import _console
from privspan.cli._interrupts import Interrupts
from privspan.cli._steps import Steps
from privspan.cli.exits import Complaint, ExitCode

if TYPE_CHECKING:
    from privspan.ledger.release_file import SavedRelease
    from privspan.planner import Plan
    from privspan.privacy import Release


_GOOD_ENOUGH = 0.25  # the error for which an abstention says how many rows would do


@dataclass
class Delivery:
    """Where the result goes, and where it is."""

    output: Path
    report: Path | None
    json: bool
    overwrite: bool
    interrupts: Interrupts
    record: Record = field(default_factory=Record)
    steps: Steps = field(default_factory=Steps)
    kept: str | None = field(default=None, init=False)  # the sentence that says where the result is

    def save(self, release: Release, plan: Plan | None) -> None:
        """Write the file, or put the result wherever it can be put."""
        from privspan.ledger.release_file import SavedRelease

        if release.subspace is None:
            return
        try:
            self.steps.save(self.output, release, plan, self.record, self.overwrite)
        except Exception as error:
            failed = f"could not write {str(self.output)!r} ({_reason(error)})"
        else:
            self.kept = f"The budget is spent, and the result is in {str(self.output)!r}."
            return
        try:
            spare = self.steps.spare_folder() / self.output.name
            spare = self.steps.save(spare, release, plan, self.record, overwrite=False)
        except Exception:
            where = _on_stdout(SavedRelease(release.subspace, release, plan, self.record))
        else:
            where = f"; the result, which is paid for, is safe in {str(spare)!r}."
        raise Complaint(failed + where, ExitCode.FAILED)

    def tell(self, release: Release, plan: Plan | None) -> ExitCode:
        """Write the report, and tell what was found."""
        from privspan.cli import _describe
        from privspan.ledger.release_file import SavedRelease

        if self.report is not None:
            self._write_report(release, plan, self.report)
        if release.subspace is None:
            if self.json:
                from privspan._lib.frozen import plain

                told = {"output": None, "release": release.to_dict(), "record": plain(self.record)}
                _console.print_json(told)
            need = None if plan is None else plan.needed_n(_GOOD_ENOUGH)
            rows = "`privspan plan` says how many rows would help."
            _console.fail(
                "the private step abstained: it found nothing that it could release safely. "
                f"{release.cost} is spent all the same. "
                f"{rows if need is None else f'About {need:,} rows are predicted to do, for an error of 0.25.'}"
            )
            return ExitCode.ABSTAINED
        saved = SavedRelease(release.subspace, release, plan, self.record)
        if self.json:
            _console.print_json({"output": str(self.output), **_describe.as_json(saved, 5)})
        else:
            _describe.print_saved(saved, self.output, 5)
        return ExitCode.OK

    def _write_report(self, release: Release, plan: Plan | None, report: Path) -> None:
        from privspan.report import write_report

        try:
            write_report(report, release, plan=plan, record=self.record, overwrite=self.overwrite)
        except OSError as error:
            failed = f"could not write {str(report)!r} ({_reason(error)})"
            _console.warn(f"{failed}; privspan report {self.output} makes it again.")
        else:
            _console.note(f"Wrote {report}.")


def _on_stdout(saved: SavedRelease) -> str:
    """Write everything to standard output, where no disk is left, and say so, or that all is lost."""
    from privspan.cli import _describe

    try:
        _console.print_json({"output": None, **_describe.as_json(saved, saved.subspace.ambient_dimension)})
    except Exception:
        return " nor a spare copy; the result is lost and its budget spent."
    return " nor a spare copy; the result, which is paid for, is on standard output, as JSON."


def _reason(error: Exception) -> str:
    """Return why a file was not written: what the system says, or the kind of a fault, whose words may quote data."""
    return os.strerror(error.errno) if isinstance(error, OSError) and error.errno else type(error).__name__
