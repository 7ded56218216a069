"""A spend ledger: what has been spent on each data set, on disk, shared by all who spend it.

An entry is written **before** the private step begins and counts in full from then on: a run that crashes, is killed
or abstains has spent its budget.  Sums are exact, a spend that would exceed the limit is refused before anything is
read, and a file lock makes concurrent runs take turns.  The file is JSON, replaced as a whole; it holds names,
numbers and dates, nothing from the data (and not how long a run took, which the promise does not cover).
How to use it: docs/howto/keep-a-ledger.md.  Why the sum counts: docs/explanation/accounting.md.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, get_args

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.ledger.accounts import Account, Pot, State
from privspan.ledger.file import LedgerFile
from privspan.ledger.rules import (
    Cap,
    Given,
    OverspendError,
    allowed,
    begin_account,
    begun,
    check_name,
    limited,
    new_pot,
    refusal,
)
from privspan.ledger.words import sentences
from privspan.privacy import PERSONS, mu_from_budget
from privspan.privacy.call import outside

_ONLY_DATASET = "people"  # of a ledger that is given as a path, and is new


@dataclass
class Spending:
    """A spend under way; set `outcome` before the block ends if it is not "finished"."""

    outcome: State = "finished"


class Ledger(LedgerFile):
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
    `set_limit` raises it on purpose.  Names are not checked: a data set under two names has two accounts.

    With a limit for epsilon and delta, Gaussian spends (those with a mu, such as every private PCA, mean and scale)
    compose in mu: many of them cost far less than the sum of their epsilons.  From the first of them on, all that is
    left of the limit is a pot whose mu is fixed for ever, and what is not Gaussian counts in it by the mu of its
    epsilon.  A limit for one of the two alone, and `plain`, add up, and so does what was spent before there was a
    limit: name it with the first spend.

    The file may be reached through symbolic links, but has one name: with a second hard link it is refused, because
    the file is replaced as a whole and the other name would keep the old one.

    Guarantee
    ---------
    If every private step on a data set runs inside `spending` and costs no more than it says there, all of them
    together, each chosen after seeing the earlier ones and however they end, cost at most the limit (for one that is
    not raised on account of a result).  That holds for the neighbours and the unit that all entries name: spends for
    rows and for persons, or for persons by different columns, are not added up, and the second is refused under the
    name of the first.  With budgets fixed beforehand they cost at most ``account.spent``.
    Proofs: docs/explanation/accounting.md and docs/explanation/pots.md.

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

    def page(
        self,
        dataset: str | None = None,
        *,
        limit_epsilon: Cap = None,
        limit_delta: Cap = None,
        plain: bool = False,
    ) -> Page:
        """Return the page of one data set, to be given to private functions and estimators as ``ledger=``.

        Parameters
        ----------
        dataset : str, optional
            Name of the data set; by default the only one in the ledger, or "people" in a ledger that has none.
        limit_epsilon, limit_delta : optional
            What all spends on this data set may cost together; see `Ledger`.
        plain : bool, default=False
            Whether epsilons and deltas of a new data set are to be added up, and not composed in mu.
        """
        if dataset is None:
            known = list(self.accounts())
            if len(known) > 1:
                named = ", ".join(map(repr, known[:3]))
                template = "{ledger} holds {count} data sets ({named}); say which: Ledger(…).page(name)."
                raise ParameterError(template, count=len(known), named=named)
            dataset = known[0] if known else _ONLY_DATASET
        return Page(self, dataset, limit_epsilon, limit_delta, plain)

    def account(self, dataset: str) -> Account:
        """Return the account of one data set, an empty one if nothing was spent on it."""
        return self.accounts().get(dataset, Account())

    def told(self, dataset: str) -> tuple[str, ...]:
        """Say in sentences what has been spent on a data set: for the ``ledger`` of a record in a report."""
        account = self.account(dataset)
        count = len(account.entries)
        return (
            f"Data set {Path(dataset).name!r}: {count} {'entry' if count == 1 else 'entries'}.",
            *sentences(account),
        )

    def foretold(self, dataset: str, epsilon: Given, delta: Given, mu: float | None = None) -> str:
        """Say what one more spend would add up to, or why it would be refused; writes nothing.

        A Gaussian spend has its `mu`.
        """
        account = self.account(dataset)
        earlier = account.entries[0] if account.entries else None
        person = earlier.unit if earlier is not None and earlier.neighbours == PERSONS else None
        try:
            after = allowed(dataset, account, begun(epsilon, delta, mu, 0.0, "", person, None, None))
        except OverspendError as refused:
            return f"The ledger would refuse this: {refused}"
        return f"In the ledger, {dataset!r} would then have {sentences(after)[0].replace('S', 's', 1)}"

    def begin(
        self,
        dataset: str,
        epsilon: Given,
        delta: Given,
        *,
        mu: float | None = None,
        aside: Given = 0.0,
        what: str = "",
        person: str | None = None,
        part: str | None = None,
        pot: str | None = None,
        plain: bool = False,
        limit_epsilon: Cap = None,
        limit_delta: Cap = None,
    ) -> str:
        """Record a spend before it happens and return the identity of its entry.

        Parameters
        ----------
        dataset : str
            Name of the data set.
        epsilon, delta
            What the step will cost at most.
        mu, aside : float, optional
            If the step is Gaussian: it is mu-GDP but for this part of delta, which is set aside, and composes so.
        what : str, optional
            A description of the run, for readers of the ledger.
        person : str, optional
            If the cost is for replacing one person with all of their rows: the column with the person ids,
            "person" where there is none.  By default it is for replacing one row.
        part : str, optional
            The part of the table that it is spent on, by position; see `Page.part`.
        pot : str, optional
            The pot that pays for it; see `Page.pot`.
        plain : bool, default=False
            Whether epsilons and deltas of a new data set are to be added up, and not composed in mu.
        limit_epsilon, limit_delta : optional
            What all spends on this data set may cost together; see `Ledger`.

        Raises
        ------
        OverspendError
            If the sum would exceed the limit, or the limit given that of the ledger, or if the earlier spends are for
            another unit.
        """
        entry = begun(epsilon, delta, mu, aside, what, person, part, pot)
        with self.changing() as accounts:
            account = begin_account(dataset, accounts.get(dataset, Account()), plain, (limit_epsilon, limit_delta))
            accounts[dataset] = allowed(dataset, account, entry)
        return entry.identity

    def check(
        self, dataset: str, epsilon: Given, delta: Given, *, maybe_gaussian: bool = False, **options: Any
    ) -> None:
        """Raise what `begin` would raise now, and write nothing.  The answer may change a moment later.

        What is `maybe_gaussian` is refused only if there is no room for the least mu that such a budget can have.
        """
        taken = {"mu": None, "aside": 0.0, "what": "", "person": None, "part": None, "pot": None} | options
        limits = taken.pop("limit_epsilon", None), taken.pop("limit_delta", None)
        account = begin_account(dataset, self.account(dataset), bool(taken.pop("plain", False)), limits)
        entry = begun(epsilon, delta, **taken)
        if maybe_gaussian and entry.delta > 0:  # nothing sets more than half of its delta aside
            least = replace(entry, mu=mu_from_budget(float(entry.epsilon), float(entry.delta) / 2))
            entry = entry if account.taking(entry) is not None else least
        allowed(dataset, account, entry)

    def open_pot(
        self,
        dataset: str,
        name: str,
        epsilon: Given | None,
        delta: Given,
        *,
        aside: Given = 0.0,
        mu: float | None = None,
        limit_epsilon: Cap = None,
        limit_delta: Cap = None,
        plain: bool = False,
    ) -> Pot:
        """Open a pot and charge it, or return the one of that name if it has these very numbers; see `Page.pot`."""
        wanted = new_pot(name, epsilon, delta, aside, mu)
        with self.changing() as accounts:
            account = begin_account(dataset, accounts.get(dataset, Account()), plain, (limit_epsilon, limit_delta))
            found = account.pot(name)
            if found is not None:
                if replace(wanted, since=found.since) != found:
                    template = "the pot {name!r} of {dataset!r} is open, and its numbers are fixed for ever."
                    raise OverspendError(template, name=name, dataset=dataset)
                return found
            opened = account.opening(wanted)
            if opened is None:
                raise OverspendError("{why}", why=refusal(dataset, account, wanted.epsilon, wanted.delta))
            accounts[dataset] = opened
        return wanted

    def end(self, dataset: str, identity: str, outcome: State) -> None:
        """Record how a spend ended.  Its cost does not change."""
        checks.one_of(get_args(State), outcome=outcome)
        with self.changing() as accounts:
            entries = accounts.get(dataset, Account()).entries
            ended = tuple(replace(one, state=outcome) if one.identity == identity else one for one in entries)
            if identity not in {entry.identity for entry in entries}:
                raise ParameterError(
                    "the ledger has no such entry for {dataset!r}; was its file replaced meanwhile?", dataset=dataset
                )
            accounts[dataset] = replace(accounts[dataset], entries=ended)

    @contextmanager
    def spending(self, dataset: str, epsilon: Given, delta: Given, **options: Any) -> Iterator[Spending]:
        """Begin a spend, run the block, and record how it ended: "interrupted" if an exception leaves the block.

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
                message = f"This spend stays recorded as begun in the ledger: {error}"
                warnings.warn(message, RuntimeWarning, stacklevel=outside())

    def set_limit(self, dataset: str, epsilon: Cap, delta: Cap) -> None:
        """Set the limit of a data set, up or down; None leaves a part as it is."""
        with self.changing() as accounts:
            account = accounts.get(dataset, Account())
            accounts[dataset] = limited(dataset, account, (epsilon, delta), may_rise=True)


@dataclass(frozen=True)
class Page:
    """One data set of a ledger, with its limit: private functions charge their cost to it.

    It holds names and limits only; everything else is in the file.  So a copy, such as one by ``sklearn.base.clone``
    or in another process, charges the same account.

    Attributes
    ----------
    ledger : Ledger
    dataset : str
    limit_epsilon, limit_delta : float, Decimal, str or None
        Stored by the first spend; see `Ledger`.
    plain : bool
        Whether a new data set is to add epsilons and deltas up.
    in_pot, in_part : str or None
        Set by `pot` and `part`.

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
    privspan.ledger.rules.OverspendError: the ledger limits 'survey' to epsilon 1, of which epsilon 0.25 is left, ...
    >>> folder.cleanup()
    """

    ledger: Ledger
    dataset: str
    limit_epsilon: Cap = None
    limit_delta: Cap = None
    plain: bool = False
    in_pot: str | None = None
    in_part: str | None = None

    def page(self) -> Page:
        """Return itself: a page is taken wherever a ledger is."""
        return self

    def account(self) -> Account:
        """Return what has been spent, and the limit that is stored; of a part, what counts there."""
        account = self.ledger.account(self.dataset)
        return account if self.in_part is None else account.part(self.in_part)

    def part(self, name: str) -> Page:
        """Return the page of one part of the table, such as a region or the rows of a month.

        Spends on one part do not count in another, and spends on the whole table count in every part.  So disjoint
        groups of people may be analysed at the cost of the most expensive one.

        Guarantee
        ---------
        It must be public, **by position**, which row belongs to which part: if a value in a row decides, replacing
        that row can change two parts.  The ledger cannot check this.  Proof: docs/explanation/pots.md.
        """
        check_name(part=name)
        return replace(self, in_part=name)

    def pot(
        self,
        name: str,
        *,
        epsilon: Cap = None,
        delta: Cap = None,
        aside: Given = 0.0,
        mu: float | None = None,
    ) -> Page:
        """Open a pot, a share of the limit in which spends compose in mu, and return the page of it.

        A page with a limit already is one such pot; use this for several pots, or for pots beside plain spends.  The
        pot costs the page (epsilon, delta), once, when it is opened.  It is opened again by its name and the same
        numbers, or by its name alone.

        Parameters
        ----------
        name : str
        epsilon, delta : optional
            What it costs.
        aside : default=0
            How much of delta is for what spends inside set aside, or cost without being Gaussian.
        mu : float, optional
            Instead of epsilon: the squares of all mu inside may sum to at most its square.

        Guarantee
        ---------
        Whatever is spent inside, even after seeing results, costs at most (epsilon, delta) together, for the
        neighbours that its entries name.  Proof: docs/explanation/pots.md.
        """
        check_name(pot=name)
        if delta is not None:
            options = {name: value for name, value in self._options.items() if name not in ("pot", "part")}
            self.ledger.open_pot(self.dataset, name, epsilon, delta, aside=aside, mu=mu, **options)
        elif self.ledger.account(self.dataset).pot(name) is None:
            template = "{epsilon} and {delta} must be given for a new pot; {dataset!r} has no {name!r}."
            raise ParameterError(template, dataset=self.dataset, name=name)
        return replace(self, in_pot=name)

    def check(self, epsilon: Given, delta: Given, **options: Any) -> None:
        """Raise what a spend would raise now, and write nothing."""
        self.ledger.check(self.dataset, epsilon, delta, **options, **self._options)

    def spending(self, epsilon: Given, delta: Given, **options: Any) -> AbstractContextManager[Spending]:
        """Begin a spend, run the block, and say how it ended; see `Ledger.begin` and `Ledger.spending`."""
        return self.ledger.spending(self.dataset, epsilon, delta, **options, **self._options)

    @property
    def composes(self) -> bool:
        """Whether Gaussian spends compose in mu here, in a pot or in all that is left, and are not just added up."""
        return self.in_pot is not None or not (self.plain or self.ledger.account(self.dataset).plain)

    @property
    def _options(self) -> dict[str, Any]:
        return {
            "limit_epsilon": self.limit_epsilon,
            "limit_delta": self.limit_delta,
            "plain": self.plain,
            "pot": self.in_pot,
            "part": self.in_part,
        }
