"""The charge of one fit: written to the ledger before the private step, whatever becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspan.cli import _console
from privspan.cli._options import check_target
from privspan.cli.exits import Complaint

if TYPE_CHECKING:
    from decimal import Decimal

    from privspan.cli._groups import Account, Reading
    from privspan.cli._place import Place
    from privspan.ledger import Spending


@dataclass
class Charge:
    """Where a spend is written down, and whether it has begun.

    A function of the library takes it as its ledger.  It charges the decimals that were typed, not the floats that a
    function spends.
    """

    epsilon: Decimal
    delta: Decimal
    what: str  # is run
    ledger: Path | None
    dataset: str
    options: dict[str, Any]  # limits, and where it is charged
    person: str | None  # the column of persons, if the promise is for them
    begun: bool = False

    def page(self) -> Charge:
        """Return itself."""
        return self

    def check(self, *_: object, **__: object) -> None:
        """Refuse early, before a large file is read, what the ledger would refuse."""
        from privspan.ledger import Ledger

        if self.ledger is not None:
            options = {**self.options, "person": self.person, "maybe_gaussian": True}
            Ledger(self.ledger).check(self.dataset, self.epsilon, self.delta, **options)

    @contextmanager
    def spending(self, *_: object, mu: float | None, aside: float, **__: object) -> Iterator[Spending]:
        """Write the spend down, run the block, and write down how it ended.

        What is known to be Gaussian has its mu, and the delta that it sets aside.
        """
        from privspan.ledger import Ledger, Spending

        self.begun = True  # before the ledger says so: an interrupt in between must not be called free
        if self.ledger is None:
            yield Spending()
            return
        book = Ledger(self.ledger)
        if not book.path.exists():
            _console.note(f"Beginning a new ledger, {self.ledger}.")
        try:
            options = {**self.options, "what": self.what, "person": self.person, "mu": mu, "aside": aside}
            identity = book.begin(self.dataset, self.epsilon, self.delta, **options)
        except Exception:
            self.begun = False
            raise
        spending = Spending("interrupted")
        try:
            yield spending
            spending.outcome = "finished" if spending.outcome == "interrupted" else spending.outcome
        finally:
            try:
                book.end(self.dataset, identity, spending.outcome)
            except Exception:  # no reason to lose the result
                _console.warn(
                    "the ledger cannot be written; this spend stays recorded as begun, which counts the same."
                )

    def told(self) -> tuple[str, ...]:
        """Say for the report what the ledger holds, this spend included; nothing without a ledger."""
        from privspan.ledger import Ledger

        return () if self.ledger is None else Ledger(self.ledger).told(self.dataset)

    def spent(self) -> str:
        """Say what an end before the result has cost."""
        if not self.begun:
            return "The private step had not begun: nothing was spent."
        known = ", and the ledger says so" if self.ledger is not None else ""
        return f"The private step had begun, so its budget counts as spent{known}."


def charge_for(
    epsilon: Decimal, delta: Decimal, what: str, *, place: Place, account: Account, reading: Reading
) -> Charge:
    """Return where a fit of this table is charged, after checks of the options."""
    ledger, dataset = account.ledger, account.dataset
    options = {name: value for name, value in vars(account).items() if name not in ("ledger", "dataset")}
    if ledger is None and (dataset is not None or any(options.values())):
        raise Complaint("--dataset, --part, --pot, --plain and limits need a ledger: add --ledger budget.json.")
    if ledger is not None:
        check_target(ledger, "--ledger", (".json",), spare={"the table": place.path}, overwrite=True)
        if place.is_stdin and dataset is None:
            raise Complaint("standard input has no name for the ledger: add --dataset people.")
    person = _person_of(reading) if ledger else None
    return Charge(epsilon, delta, what, ledger, dataset or place.dataset or "", options, person)


def _person_of(reading: Reading) -> str | None:
    """Return the column that is declared to hold the person ids: before the table is read, as it may be large."""
    from privspan.rows import read_schema

    if reading.person is not None or reading.schema is None:
        return reading.person
    return read_schema(reading.schema).person
