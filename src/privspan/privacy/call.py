"""The door of every public private function: what has to hold for all of them stands here, once.

    with Call("private_mean", epsilon, delta, rng, ledger, X, person) as call:
        source = call.open(call.persons(X, person, max_rows))
        …                                   # whatever can be refused, from public facts alone
        run = call.begin()                  # charged: from here on it counts
        return call.finish(mean_within(run, source, …))

Inside,

* NumPy raises and warns of nothing;
* the budget has been found to lie in the range in which every formula of the package stays within float64, so that
  nothing fails after it has been spent, and to be what the ledger allows, if there is one;
* the caller is told, once, of a budget that promises little for so many rows (`WeakPrivacyWarning`), and of columns
  of a frame that are named like an identifier (`IdentifierWarning`);
* `begin` writes the charge to the ledger before the first look at a value: without the `Run` that it returns there is
  no noise, and so nothing private;
* a warning never costs what was paid for (`warn`): from `begin` on, warnings wait until there is a result.  Where
  warnings are errors the result is that error's `release`, and an estimator is fitted;
* how the call ends is written down, and changes nothing about what it counts.

All of this follows from public facts: parameters, the number of rows, and what the ledger holds.  Functions that one
public function calls of another are those behind its door, which take a `Run`: nothing is charged twice.
tests/privacy/test_call.py finds what spends a budget by its parameters, so that a function without the door fails
there.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import warnings
from collections.abc import Collection
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np

from privspan._lib import above, checks
from privspan._lib.errors import ParameterTypeError
from privspan._lib.rounding import quiet_numpy
from privspan.privacy.mu_ledger import Budget, MuLedger
from privspan.privacy.persons import by_person, for_persons
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Run, open_run
from privspan.privacy.warned import IdentifierWarning, WeakPrivacyWarning
from privspan.rows.categories import Categories
from privspan.rows.door import given_table, open_table, taken, whose
from privspan.rows.identifiers import identifiers
from privspan.rows.persons import PersonTable
from privspan.rows.table import Table

_Result = TypeVar("_Result")

_LARGE_EPSILON = 10.0  # beyond, a message: a result may be 22,000 times as likely with a person's row as without
_LARGE_DELTA = 0.01
_seen: set[str] = set()  # of names, in this process: a cross-validation would hear it for every fold

_PACKAGE = str(Path(__file__).parents[1])


class HasPage(Protocol):
    """A ledger, or a page of one: see `privspan.ledger`."""

    def page(self) -> Any:
        """Return the page to charge."""


LedgerLike: TypeAlias = str | os.PathLike[str] | HasPage | None
"""What the parameter `ledger` of a private function takes."""


class Call:
    """One call of a private function.

    Parameters
    ----------
    name : str
        Of the function or estimator, for readers of the ledger.
    epsilon, delta : float
        What the call costs at most.
    rng : None, int, SeedSequence, Generator, RandomState or RunMaker
    ledger : path, Ledger or Page, optional
    X : table, optional
        As it was handed in: it may have been opened with the column with the person ids.
    person : array-like or str, optional
        Whose each row is, as it was handed in: the charge says for whom the promise is.
    k : int, float or str, optional
        For readers of the ledger.
    """

    def __init__(
        self,
        name: str,
        epsilon: float,
        delta: float,
        rng: RandomLike = None,
        ledger: LedgerLike = None,
        X: object = None,
        person: object = None,
        k: object = None,
    ) -> None:
        self._cost, self._rng, self._ledger = (epsilon, delta), rng, ledger
        of = f", k = {k}" if isinstance(k, int | float | str) else ""
        self._what = f"{name}{of}{'' if rng is None else ', seeded and so not private'}"
        self._person = _person_of(X, person)
        self.rows = 0  # public
        self._page: Any = None
        self._spending: Any = None
        self._told = self._looks = False  # told of a weak budget; it may have seen values, and counts as paid for
        self._given = None if X is None else (X, person)
        self._categories: Collection[str] = ()  # columns that are not used as numbers
        self._waiting: list[tuple[str, type[Warning]]] = []
        self._persons: PersonTable | None = None
        self._result: object = None

    def __enter__(self) -> Self:
        """Refuse a budget that cannot be spent, or that the ledger does not allow; nothing is written yet."""
        with ExitStack() as opened:
            opened.enter_context(quiet_numpy())
            checks.spendable(*self._cost)
            self.budget = Budget(*self._cost)
            if self._ledger is not None:
                self._page = _page(self._ledger)
                self._page.check(*self._cost, person=self._person, maybe_gaussian=True)
            self._ends = opened.pop_all()
        return self

    @property
    def composes(self) -> bool:
        """Whether the call is charged where Gaussian calls compose in mu: public, and read before it begins."""
        return self._page is not None and bool(getattr(self._page, "composes", True))

    # ---- Before the first look -------------------------------------------------------------------------------------

    def taken(self, X: Any, person: object = None, categories: Categories | None = None) -> Any:
        """Return a table with categories as columns of 0 and 1; a stream is read to its end and kept for the call."""
        if categories is None and (isinstance(X, np.ndarray) or given_table(X) is not None):
            return X
        table = taken(X, person, categories)
        self._categories = getattr(table, "levels", ())
        if table is not X and getattr(table, "as_frame", False):
            self._given = (table, person if self._given else False)
            self._ends.callback(table.close)
        return table

    def persons(self, X: Any, person: object, max_rows: int = 1, categories: Categories | None = None) -> Any:
        """Return the table of persons if rows are theirs, or else the table; categories become columns of 0 and 1.

        The result promises for persons then (`finish`).
        """
        X = self.taken(X, person, categories)  # before ids are told apart: a column of words is neither
        person = whose(X, person)
        if person is None:
            return X
        self._persons = by_person(X, person, max_rows, self._rng)
        return self._persons

    def open(self, X: object, *, min_rows: int = 1, accept_sparse: bool = True) -> Table:
        """Return a table as `privspan.rows.door.open_table` does, and tell of a weak budget for so many rows."""
        X = self.taken(X)
        self._given = self._given or (X, False)  # of a function that takes no ids
        source = open_table(X, min_rows=min_rows, accept_sparse=accept_sparse)
        self.counted(source.shape[0])
        return source

    def counted(self, n: int) -> None:
        """Tell the caller, unless that has been done, of a budget that promises little for n rows, and of names."""
        told, self._told = self._told, True  # whatever follows works with parts of the rows
        given = self._given[0] if self._given else None
        if not told and self._given and (hasattr(type(given), "columns") or getattr(given, "as_frame", False)):
            self._tell_of_identifiers(*self._given)
        self.rows = self.rows if told else n
        if not told and (weak := weakness(n, *self._cost)):
            self.warn(weak, WeakPrivacyWarning)

    def _tell_of_identifiers(self, X: object, person: object) -> None:
        """Tell of columns of a frame that are named like an identifier; none is left out.

        `person` is what the caller says of ids: None if nothing, False where that cannot be said.
        """
        known = {*self._categories, person if isinstance(person, str) else None}
        names = [name for name in identifiers(X) if name not in known]
        if names:
            one, listed = len(names) == 1, ", ".join(map(repr, names))
            is_named, it = ("Column {} of X is", "it") if one else ("Columns {} of X are", "them")
            ids = f", or say that the rows of a person share it: person={names[0]!r}" if person is None else ""
            message = (
                f"{is_named.format(listed)} named like an identifier, and used like any other number. "
                f"Drop {it}{ids}. Rename {it} if {it if one else 'they'} hold{'s' if one else ''} measurements."
            )
            if message not in _seen or _wants_all(IdentifierWarning):
                _seen.add(message)
                self.warn(message, IdentifierWarning)

    # ---- From the first look on ------------------------------------------------------------------------------------

    def begin(
        self, account: MuLedger | None = None, *, gaussian: bool = False, vote: float = 0.0, empty: float = 1.0
    ) -> Run:
        """Charge the call and return its run; once, when everything that can be refused has been.

        `account` is that of the whole budget; by default nothing is set aside for tests, and `empty` is what it
        promises for zero-out.  A call that is `gaussian`,
        with all of the account's mu but for a `vote` of that epsilon and what is set aside, is charged so; any other
        by its epsilon and delta.
        """
        if self._looks:
            raise RuntimeError("A call is begun once: other steps get parts of its run.")
        account = MuLedger(self.budget, empty=empty) if account is None else account
        run = open_run(account, self._rng)
        if self._page is not None:
            mu, aside = account.promise(vote) if gaussian else (None, 0.0)
            options = {"mu": mu, "aside": aside, "what": self._what, "person": self._person}
            spent = self._page.spending(*self._cost, **options)
            self._spending = self._ends.enter_context(spent)
        self._looks = True
        return run

    def warn(self, message: str, category: type[Warning] = UserWarning) -> None:
        """Warn whoever called this package: now or, once the call has begun, as soon as it has its result."""
        if self._looks:
            self._waiting.append((message, category))
        else:
            warnings.warn(message, category, stacklevel=outside())

    def finish(self, result: _Result) -> _Result:
        """Return the release, which promises for persons if rows are theirs, and note how the call ended."""
        if self._persons is not None:
            result = for_persons(result, self._persons)
        self._result = result
        if self._spending is not None and getattr(result, "abstained", False):
            self._spending.outcome = "abstained"
        return result

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write down how it ended, and give the warnings that have waited."""
        try:
            self._ends.__exit__(kind, error, trace)
        except Warning as told:  # of a ledger that cannot be written: what was paid for is not lost to it
            self._waiting.append((str(told), type(told)))
        if error is None:
            self._tell()
        else:
            with suppress(Warning):  # none must hide what has happened
                self._tell()

    def _tell(self) -> None:
        """Give the warnings; one that is turned into an error carries the result."""
        for message, category in self._waiting:
            try:
                warnings.warn(message, category, stacklevel=outside())
            except Warning as error:
                error.release = self._result  # type: ignore[attr-defined]
                raise


def _wants_all(category: type[Warning]) -> bool:
    """Tell whether somebody asks for every warning of this kind, or makes errors of them."""
    asked = (rule for rule in warnings.filters if rule[0] not in ("default", "module", "once", "ignore"))
    return any(issubclass(category, rule[2]) for rule in asked)


def _person_of(X: object, person: Any) -> str | None:
    """Return the name of the ids, if a call promises for persons; None if it does for rows."""
    if person is None:
        opened_with = getattr(X, "person", None)
        return opened_with if isinstance(opened_with, str) else None  # of a frame it is a column of that name
    # What an array in chunks calls its name is that of a task.
    name = person if isinstance(person, str) or hasattr(person, "chunks") else getattr(person, "name", None)
    return name if isinstance(name, str) and name else "person"


def _page(ledger: Any) -> Any:
    """Return the page that a parameter `ledger` stands for."""
    if isinstance(ledger, str | os.PathLike):
        ledger = above.ledgers().Ledger(ledger)
    if not callable(getattr(ledger, "page", None)):
        raise ParameterTypeError(
            "{ledger} must be a path, a Ledger or a page of one; got {kind}.", kind=type(ledger).__name__
        )
    return ledger.page()


def weakness(n: int, epsilon: float, delta: float | None = None) -> str | None:
    """Say in plain words what is weak about a budget for n rows; None if nothing is."""
    reasons = []
    if epsilon > _LARGE_EPSILON:
        times = f"{math.exp(epsilon):,.0f}" if epsilon < 16 else f"10^{epsilon / math.log(10.0):.0f}"
        reasons.append(
            f"epsilon = {epsilon:g} lets a result be {times} times as likely with a person's row as with another in "
            "its place, which can give the row away"
        )
    if delta is not None and delta > min(_LARGE_DELTA, 1.0 / n):
        row = "; publishing one random row would still count as private" if delta > 1.0 / n else ""
        reasons.append(f"with delta = {delta:g} the promise may fail altogether once in {1.0 / delta:,.3g} runs{row}")
    if not reasons:
        return None
    usual = f"Usual are an epsilon of at most {_LARGE_EPSILON:g} and a delta well below one over the number of rows"
    return f"This budget promises little: {'; '.join(reasons)}. {usual}."


def outside() -> int:
    """Return the level of the first frame outside this package, to which a warning is attributed."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((_PACKAGE, contextlib.__file__)):
        level, frame = level + 1, frame.f_back
    return level
