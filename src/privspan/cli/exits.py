"""How a command ends: the exit codes, and the exception that carries one with a sentence for the user."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit code of ``privspan`` says."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNREADABLE = 3
    ABSTAINED = 4
    REFUSED = 5
    INTERRUPTED = 130

    @property
    def meaning(self) -> str:
        """The meaning in a few words."""
        return _MEANINGS[self]


_MEANINGS = {
    ExitCode.OK: "done",
    ExitCode.FAILED: "something else went wrong (disk full, package missing, a fault)",
    ExitCode.USAGE: "a wrong argument or option",
    ExitCode.UNREADABLE: "a file that is missing, damaged or of the wrong kind",
    ExitCode.ABSTAINED: "the private step abstained; its budget is spent",
    ExitCode.REFUSED: "the ledger refuses the spend; nothing was run",
    ExitCode.INTERRUPTED: "interrupted; the budget is spent if the private step had begun",
}


class Complaint(Exception):
    """A mistake of the user, or of the machine, in one sentence that says what to do about it."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code
