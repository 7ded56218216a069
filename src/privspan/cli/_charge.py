"""The charge of one fit: written to the ledger before the private step, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspan.cli import _console
from privspan.cli._options import STDIN, check_target
from privspan.cli._table import in_flags
from privspan.cli.exits import Complaint

if TYPE_CHECKING:
    from privspan.cli._groups import Account, Reading
    from privspan.cli._task import Task


@dataclass
class Charge:
    """Where the spend is written down, and whether it has begun."""

    ledger: Path | None
    dataset: str
    limits: dict[str, Decimal | None]
    person: str | None  # the column of persons, if the promise is for them
    begun: bool = False

    def check(self, task: Task) -> None:
        """Refuse early, before a large file is read, what the ledger would refuse."""
        from privspan.ledger import Ledger

        if self.ledger is not None:
            Ledger(self.ledger).check(self.dataset, task.epsilon, task.delta, person=self.person, **self.limits)

    @contextmanager
    def spending(self, task: Task) -> Iterator[Any]:
        """Write the spend down, run the block, and write down how it ended."""
        from privspan.ledger import Ledger, Spending

        self.begun = True  # before the ledger says so: an interrupt in between must not be called free
        if self.ledger is None:
            yield Spending()
            return
        book = Ledger(self.ledger)
        if not book.path.exists():
            _console.note(f"Beginning a new ledger, {self.ledger}.")
        try:
            options = {"what": task.describe(), "person": self.person, **self.limits}
            identity = book.begin(self.dataset, task.epsilon, task.delta, **options)  # type: ignore[arg-type]
        except Exception:
            self.begun = False
            raise
        spending = Spending("interrupted")
        try:
            yield spending
        finally:
            try:
                book.end(self.dataset, identity, spending.outcome)
            except Exception:  # no reason to lose the result
                _console.warn(
                    "the ledger cannot be written; it goes on saying that this spend has begun, which counts as much."
                )

    def spent(self) -> str:
        """Say what an end before the result has cost."""
        if not self.begun:
            return "The private step had not begun: nothing was spent."
        known = ", and the ledger says so" if self.ledger is not None else ""
        return f"The private step had begun, so its budget counts as spent{known}."


def charge_for(file: Path, account: Account, reading: Reading) -> Charge:
    """Return where a fit of this table is charged, after checks of the options."""
    ledger, dataset = account.ledger, account.dataset
    limits = {"limit_epsilon": account.limit_epsilon, "limit_delta": account.limit_delta}
    if ledger is None and (dataset, *limits.values()) != (None, None, None):
        raise Complaint("--dataset, --limit-epsilon and --limit-delta need a ledger: add --ledger budget.json.")
    if ledger is not None:
        check_target(ledger, "--ledger", (".json",), spare={"the table": file}, overwrite=True)
        if file == STDIN and dataset is None:
            raise Complaint("standard input has no name for the ledger: add --dataset people.")
    return Charge(ledger, dataset or str(file.resolve()), limits, _person_of(reading) if ledger else None)


def _person_of(reading: Reading) -> str | None:
    """Return the column that is declared to say whose each row is: before the table is read, as it may be large."""
    from privspan.rows import read_schema

    if reading.person is not None or reading.schema is None:
        return reading.person
    with in_flags():
        return read_schema(reading.schema).person
