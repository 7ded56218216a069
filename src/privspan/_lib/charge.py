"""The charge of one private call: on the disk of a ledger before the call can learn anything from the data.

The door of every private function (`privspan._lib.entry`) opens a `Charge` if it is given a ledger.  That refuses at
once what the limit does not allow, and writes nothing yet: what else is wrong with the call may still be found, and a
refusal costs nothing.  The charge is written when the call opens its randomness, which every private function does
after its checks and before the first look at a value; without randomness nothing private can be released.  How the
call ends is written down too, and changes nothing about what it counts.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from importlib import import_module
from typing import Any, Protocol, TypeAlias


class HasPage(Protocol):
    """A ledger, or a page of one: see `privspan.ledger`."""

    def page(self) -> Any:
        """Return the page to charge."""


LedgerLike: TypeAlias = str | os.PathLike[str] | HasPage | None
"""What the parameter `ledger` of a private function takes."""


class Charge:
    """What a call will write into a ledger, and whether it has.

    Parameters
    ----------
    ledger : path, Ledger or Page
    epsilon, delta : float
        What the call costs at most.
    what : str
        What is run, for readers of the ledger.
    person : str, optional
        Whom the promise is for, if not for rows: see `privspan.ledger.Ledger.begin`.
    """

    def __init__(
        self, ledger: LedgerLike, epsilon: float, delta: float, what: str, person: str | None = None
    ) -> None:
        self._page, self._cost, self._what, self._person = _page(ledger), (epsilon, delta), what, person
        self._page.check(*self._cost, person=person)
        self._ends = ExitStack()
        self._spending: Any = None

    def __enter__(self) -> Charge:
        return self

    def begin(self) -> None:
        """Write the charge down, once; or refuse, if others have spent what was left."""
        if self._spending is None:
            self._spending = self._ends.enter_context(
                self._page.spending(*self._cost, what=self._what, person=self._person)
            )

    def finished(self, result: object) -> None:
        """Take note of what the call is about to return."""
        if self._spending is not None and getattr(getattr(result, "release_", result), "abstained", False):
            self._spending.outcome = "abstained"

    def __exit__(self, *error: Any) -> None:
        """Write down how it ended: what leaves the call as an exception has interrupted it."""
        self._ends.__exit__(*error)


def _page(ledger: Any) -> Any:
    """Return the page that a parameter `ledger` stands for."""
    if isinstance(ledger, str | os.PathLike):
        ledger = import_module("privspan.ledger").Ledger(ledger)  # a room above this one, loaded when it is needed
    if not callable(getattr(ledger, "page", None)):
        raise TypeError(f"`ledger` must be a path, a Ledger or a page of one; got {type(ledger).__name__}.")
    return ledger.page()
