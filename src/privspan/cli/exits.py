"""How a command ends: the exit codes, and the exception that carries one with a sentence for the user."""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What the exit code of ``privspan`` says."""

    meaning: str  # in a few words

    OK = 0, "done"
    FAILED = 1, "something else went wrong (disk full, package missing, a fault)"
    USAGE = 2, "a wrong argument or option"
    UNREADABLE = 3, "a file that is missing, damaged or of the wrong kind"
    ABSTAINED = 4, "the private step abstained; its budget is spent"
    REFUSED = 5, "the ledger refuses the spend; nothing was run"
    INTERRUPTED = 130, "interrupted; the budget is spent if the private step had begun"

    def __new__(cls, value: int, meaning: str) -> ExitCode:
        """Make a number that knows its meaning."""
        code = int.__new__(cls, value)
        code._value_, code.meaning = value, meaning
        return code


class Complaint(Exception):
    """A mistake of the user, or of the machine, in one sentence that says what to do about it."""

    def __init__(self, message: str, code: ExitCode = ExitCode.USAGE) -> None:
        super().__init__(message)
        self.code = code
