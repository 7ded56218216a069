"""A spend ledger: what has been spent on each data set, on disk, shared by all who spend it.

An entry is written **before** the private step begins and counts in full from then on: a run that crashes, is killed
or abstains has spent its budget.  Sums are exact, a spend that would exceed the limit is refused before anything is
read, and a file lock makes concurrent runs take turns.  The file is JSON, replaced as a whole; it holds names,
numbers and dates, nothing from the data (and not how long a run took, which the promise does not cover).
How to use it: docs/howto/keep-a-ledger.md.  Why the sum counts: docs/explanation/accounting.md.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeAlias, get_args

from privspan._lib import checks, strict_json
from privspan._lib.entry import warn
from privspan._lib.whole_file import whole_file
from privspan.ledger.accounts import Account, Amount, Entry, FormatError, State, amount, from_json, to_json
from privspan.privacy import NEIGHBOURS, PERSONS

_Given: TypeAlias = Amount | str
_Cap: TypeAlias = Amount | str | None  # a limit, or none

_ONLY_DATASET = "people"  # of a ledger that is given as a path, and is new
_PATIENCE = 60.0  # seconds to wait for the lock; it is held for milliseconds


class OverspendError(ValueError):
    """The spend, or the new limit, is refused.  Nothing has been written and nothing may be run."""


class DamagedLedgerError(ValueError):
    """The file is not a ledger, or not one that can be kept.  It has not been changed."""


@dataclass
class Spending:
    """A spend under way; set `outcome` before the block ends if it is not "finished"."""

    outcome: State = "finished"


class Ledger:
    """A ledger file; it is created by the first spend.

    Parameters
    ----------
    path : path-like
        The file.  Beside it appears a lock, named like it with ``.lock`` added.

    Notes
    -----
    Amounts may be floats, Decimals or text.  A float counts as the binary number that it stores, and as that ten
    times 0.1 is more than 1; text and Decimal count as the decimal that they show.  To charge Decimal("0.1"), run the
    algorithm with a float that is no larger; the command line does that.

    A limit is stored with the data set by the first spend that names one.  A later spend may lower it, not raise it;
    `set_limit` raises it on purpose.  Names are taken at their word: a data set under two names has two accounts.

    The file may be reached through symbolic links, but has one name: with a second hard link it is refused, because
    the file is replaced as a whole and the other name would keep the old one.

    Guarantee
    ---------
    If every private step on a data set runs inside `spending` and costs no more than it says there, all of them
    together, each chosen after seeing the earlier ones and however they end, cost at most the limit (basic
    composition; for a limit that is not raised on account of a result).  That holds for the neighbours and the unit
    that all entries name: spends for rows and for persons, or for persons by different columns, are not added up, and
    the second is refused under the name of the first.  With budgets fixed
    beforehand they cost at most ``account.spent``.  Proof: docs/explanation/accounting.md.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> ledger = Ledger(f"{folder.name}/budget.json")
    >>> with ledger.spending("survey", "0.4", "1e-6", what="PCA", limit_epsilon="1"):
    ...     pass  # the private step
    >>> print(ledger.account("survey").spent)
    (0.4, 1e-06)-DP, replace-one
    >>> ledger.account("survey").allows(0.7, 1e-6)
    False
    >>> folder.cleanup()
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.realpath(path))

    def __eq__(self, other: object) -> bool:
        return self.path == other.path if isinstance(other, Ledger) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.path)

    def __repr__(self) -> str:
        return f"Ledger({str(self.path)!r})"

    def page(self, dataset: str | None = None, *, limit_epsilon: _Cap = None, limit_delta: _Cap = None) -> Page:
        """Return the page of one data set, to be given to private functions and estimators as ``ledger=``.

        Parameters
        ----------
        dataset : str, optional
            Name of the data set; by default the only one in the ledger, or "people" in a ledger that has none.
        limit_epsilon, limit_delta : optional
            What all spends on this data set may cost together; see `Ledger`.
        """
        if dataset is None:
            known = list(self.accounts())
            if len(known) > 1:
                named = ", ".join(map(repr, known[:3]))
                raise ValueError(f"`ledger` holds {len(known)} data sets ({named}); say which: Ledger(…).page(name).")
            dataset = known[0] if known else _ONLY_DATASET
        return Page(self, dataset, limit_epsilon, limit_delta)

    def accounts(self) -> dict[str, Account]:
        """Return every account by the name of its data set; nothing for a file that does not exist.

        Raises
        ------
        DamagedLedgerError
            If the file is not a ledger.
        """
        try:
            with open(self.path, encoding="utf-8") as handle:
                self._refuse_second_name(handle.fileno())
                text = handle.read()
        except FileNotFoundError:
            return {}
        except UnicodeDecodeError:
            raise self._damaged("it is not text") from None
        try:
            return from_json(strict_json.loads(text))
        except json.JSONDecodeError:
            raise self._damaged("it is not JSON, or only the beginning of it") from None
        except (TypeError, ValueError) as error:
            told = isinstance(error, FormatError | strict_json.AmbiguousError)
            raise self._damaged(str(error) if told else "an entry is missing or of the wrong kind") from None

    def account(self, dataset: str) -> Account:
        """Return the account of one data set, an empty one if nothing was spent on it."""
        return self.accounts().get(dataset, Account())

    def begin(
        self,
        dataset: str,
        epsilon: _Given,
        delta: _Given,
        *,
        what: str = "",
        person: str | None = None,
        limit_epsilon: _Cap = None,
        limit_delta: _Cap = None,
    ) -> str:
        """Write down a spend before it happens and return the identity of its entry.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        epsilon, delta
            What the step will cost at most.
        what : str, optional
            What is run, for readers of the ledger.
        person : str, optional
            If the cost is for replacing one person with all of their rows: the column that says whose each row is,
            "person" where there is none.  By default it is for replacing one row.
        limit_epsilon, limit_delta : optional
            What all spends on this data set may cost together; see `Ledger`.

        Raises
        ------
        OverspendError
            If the sum would exceed the limit, or the limit given that of the ledger, or if the earlier spends are for
            another unit.
        """
        entry = _begun(epsilon, delta, what, person)
        with self._changing() as accounts:
            account = _allowed(dataset, accounts.get(dataset, Account()), entry, (limit_epsilon, limit_delta))
            accounts[dataset] = replace(account, entries=(*account.entries, entry))
        return entry.identity

    def check(
        self,
        dataset: str,
        epsilon: _Given,
        delta: _Given,
        *,
        person: str | None = None,
        limit_epsilon: _Cap = None,
        limit_delta: _Cap = None,
    ) -> None:
        """Raise what `begin` would raise now, and write nothing.  It promises nothing about a moment later."""
        entry = _begun(epsilon, delta, "", person)
        _allowed(dataset, self.account(dataset), entry, (limit_epsilon, limit_delta))

    def end(self, dataset: str, identity: str, outcome: State) -> None:
        """Say how a spend ended.  What it counts does not change."""
        checks.one_of(get_args(State), outcome=outcome)
        with self._changing() as accounts:
            entries = accounts.get(dataset, Account()).entries
            ended = tuple(replace(one, state=outcome) if one.identity == identity else one for one in entries)
            if identity not in {entry.identity for entry in entries}:
                raise ValueError(f"the ledger has no such entry for {dataset!r}; was its file replaced meanwhile?")
            accounts[dataset] = replace(accounts[dataset], entries=ended)

    @contextmanager
    def spending(self, dataset: str, epsilon: _Given, delta: _Given, **options: Any) -> Iterator[Spending]:
        """Begin a spend, run the block, and say how it ended: "interrupted" if an exception leaves the block.

        Parameters are those of `begin`.  If the end cannot be written down there is a ``RuntimeWarning``, not an
        exception that would lose a result: the entry stays "begun", which counts the same.
        """
        identity = self.begin(dataset, epsilon, delta, **options)
        spending = Spending()
        try:
            yield spending
        except BaseException:
            spending.outcome = "interrupted"
            raise
        finally:
            try:
                self.end(dataset, identity, spending.outcome)
            except Exception as error:
                message = f"The ledger goes on saying that this spend has begun: {error}"
                warn(message, RuntimeWarning)

    def set_limit(self, dataset: str, epsilon: _Cap, delta: _Cap) -> None:
        """Set the limit of a data set, up or down; None leaves a part as it is."""
        with self._changing() as accounts:
            account = accounts.get(dataset, Account())
            accounts[dataset] = _limited(dataset, account, (epsilon, delta), may_rise=True)

    @contextmanager
    def _changing(self) -> Iterator[dict[str, Account]]:
        """Hold the lock, read, let the caller change the accounts, and replace the file."""
        try:
            from filelock import FileLock, Timeout
        except ImportError:
            raise ImportError("The ledger needs the package filelock: pip install 'privspan[cli]'.") from None
        lock = FileLock(f"{self.path}.lock")
        self._refuse_strange_lock(Path(lock.lock_file))
        try:
            lock.acquire(timeout=_PATIENCE)
        except Timeout:
            raise TimeoutError(f"another program has locked {str(self.path)!r} for {_PATIENCE:.0f} s.") from None
        except (OSError, NotImplementedError) as error:
            if getattr(error, "filename", None) is not None:  # it says itself what could not be opened
                raise
            reason = (
                os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "it cannot lock files"
            )
            advice = "keep the ledger on a disk of this machine, or on one whose files can be locked"
            raise OSError(f"{str(self.path)!r} cannot be locked ({reason}); {advice}.") from None
        try:
            accounts = self.accounts()
            yield accounts
            text = json.dumps(to_json(accounts), indent=2, ensure_ascii=False)
            with whole_file(self.path) as handle:
                handle.write(f"{text}\n".encode())
        finally:
            with suppress(OSError):  # what was written down counts, and must not look as if it had not been
                lock.release()

    def _refuse_second_name(self, descriptor: int) -> None:
        """Refuse a file with another hard link: to replace one name leaves the other behind, without the spend."""
        if os.fstat(descriptor).st_nlink > 1:
            reason = "the file has a second name (a hard link), under which new spends would be missing"
            raise self._damaged(reason, "Keep one of the names; a symbolic link may stand for it")

    def _refuse_strange_lock(self, lock: Path) -> None:
        """Refuse a lock that is a link: taking it may empty what it leads to, and two locks would be one file."""
        try:
            found = lock.lstat()
        except FileNotFoundError:
            return
        if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
            raise self._damaged(f"{lock.name!r} beside it is a link, or no file at all", "Move it away")

    def _damaged(self, reason: str, advice: str = "Restore it from a copy") -> DamagedLedgerError:
        described = f"cannot use the ledger {str(self.path)!r}: {reason}."
        return DamagedLedgerError(f"{described} {advice}; it has not been changed.")


@dataclass(frozen=True)
class Page:
    """One data set of a ledger, with its limit: where private functions charge what they spend.

    It holds names and limits only, all else is in the file.  So a copy, as ``sklearn.base.clone`` makes, or one in
    another process, charges the same account.

    Attributes
    ----------
    ledger : Ledger
    dataset : str
    limit_epsilon, limit_delta : float, Decimal, str or None
        Stored by the first spend; see `Ledger`.

    Examples
    --------
    >>> import numpy as np, privspan as ps, tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> page = Ledger(f"{folder.name}/budget.json").page("survey", limit_epsilon=1)
    >>> X = np.random.default_rng(0).standard_normal((1_000, 3))
    >>> found = ps.private_mean(X, epsilon=0.75, delta=1e-6, norm_bound=3.0, ledger=page)
    >>> page.account().spent.epsilon
    0.75
    >>> ps.private_mean(X, epsilon=0.75, delta=1e-6, norm_bound=3.0, ledger=page)
    Traceback (most recent call last):
        ...
    privspan.ledger.ledger.OverspendError: the ledger limits 'survey' to epsilon 1, of which epsilon 0.25 is left, ...
    >>> folder.cleanup()
    """

    ledger: Ledger
    dataset: str
    limit_epsilon: _Cap = None
    limit_delta: _Cap = None

    def page(self) -> Page:
        """Return itself: a page is taken wherever a ledger is."""
        return self

    def account(self) -> Account:
        """Return what has been spent, and the limit that is stored."""
        return self.ledger.account(self.dataset)

    def check(self, epsilon: _Given, delta: _Given, *, person: str | None = None) -> None:
        """Raise what a spend would raise now, and write nothing."""
        self.ledger.check(self.dataset, epsilon, delta, person=person, **self._limits)

    def spending(
        self, epsilon: _Given, delta: _Given, *, what: str = "", person: str | None = None
    ) -> AbstractContextManager[Spending]:
        """Begin a spend, run the block, and say how it ended; see `Ledger.spending`."""
        return self.ledger.spending(self.dataset, epsilon, delta, what=what, person=person, **self._limits)

    @property
    def _limits(self) -> dict[str, _Cap]:
        return {"limit_epsilon": self.limit_epsilon, "limit_delta": self.limit_delta}


def _begun(epsilon: _Given, delta: _Given, what: str, person: str | None) -> Entry:
    amounts = amount("epsilon", epsilon), amount("delta", delta)
    checks.budget(*map(float, amounts))
    if person == "":
        raise ValueError("`person` must be the name of the column that says whose each row is.")
    unit = (NEIGHBOURS, "row") if person is None else (PERSONS, str(person))
    now = datetime.now(UTC).isoformat(timespec="seconds")
    return Entry(secrets.token_hex(8), *amounts, "begun", what, now, *unit)


def _allowed(dataset: str, account: Account, entry: Entry, limits: tuple[_Cap, _Cap]) -> Account:
    """Return the account with its limit lowered to the given one, or refuse the spend."""
    account = _limited(dataset, account, limits, may_rise=False)
    earlier = account.entries[0] if account.entries else entry
    if earlier.promised_to != entry.promised_to:
        units = f"{earlier.in_words()}, and this one is {entry.in_words()}"
        raise OverspendError(
            f"the spends on {dataset!r} are {units}: these do not add up, so give it a data set of another name."
        )
    if not account.allows(entry.epsilon, entry.delta):
        raise OverspendError(_refusal(dataset, account, entry.epsilon, entry.delta))
    return account


def _limited(dataset: str, account: Account, limits: tuple[_Cap, _Cap], *, may_rise: bool) -> Account:
    """Return the account with its limit set, or lowered unless it may rise."""
    new: dict[str, Amount] = {}
    for name, given in zip(("epsilon", "delta"), limits, strict=True):
        if given is None:
            continue
        limit, old = amount(f"limit_{name}", given), getattr(account, f"limit_{name}")
        if old is not None and Fraction(limit) > Fraction(old) and not may_rise:
            raise OverspendError(f"the ledger limits {dataset!r} to {name} {old}, and {limit} would raise that.")
        new[f"limit_{name}"] = limit
    return replace(account, **new)  # type: ignore[arg-type]


def _refusal(dataset: str, account: Account, epsilon: Amount, delta: Amount) -> str:
    limit, left, cost = map(_in_words, ((account.limit_epsilon, account.limit_delta), account.left, (epsilon, delta)))
    return f"the ledger limits {dataset!r} to {limit}, of which {left} is left, and this would cost {cost}."


def _in_words(amounts: tuple[Amount | None, Amount | None]) -> str:
    named = zip(("epsilon", "delta"), amounts, strict=True)
    return " and ".join(f"{name} {float(amount):.12g}" for name, amount in named if amount is not None)
