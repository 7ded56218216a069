"""The accounts of a ledger: entries, pots and limits, in exact sums.

See `privspan.ledger`, which keeps them in a file.  Why the sums hold: docs/explanation/pots.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import reduce
from typing import Literal, TypeAlias

from privspan._lib import checks
from privspan._lib.errors import Parameter, ParameterError
from privspan._lib.rounding import down, sqrt_down, up
from privspan._lib.typed import decimal_of, is_short
from privspan.privacy import NEIGHBOURS, PERSONS, PrivacyCost, epsilon_from_mu, mu_from_budget, mu_from_epsilon

Amount: TypeAlias = float | Decimal
"""A float counts as the binary number that it is, a Decimal as the decimal: ten times Decimal("0.1") is 1."""

State = Literal["begun", "finished", "abstained", "interrupted"]

REST = "rest of the limit"
"""The pot that a page with a limit keeps without being told to."""

_SET_ASIDE = Fraction(1, 2)  # of the delta of that pot: enough for ten fits at the delta of the limit, for 3 % of mu


@dataclass(frozen=True)
class Entry:
    """One spend.

    Attributes
    ----------
    identity : str
        Random, to find the entry again.
    epsilon, delta : float or Decimal
        What it cost by itself.
    state : {"begun", "finished", "abstained", "interrupted"}
        For information: every state counts in full.  "begun" is a run that is under way, or that ended abnormally.
    what : str
        What was run.
    since : str
        When it began, UTC.
    neighbours : {"replace-one", "replace-one-person"}
        What may be replaced: one row, or one person with all of their rows.
    unit : str
        "row", or the column with the person ids; "person" for ids that are no column with a name.
    mu, aside : float or None, float or Decimal
        Its mu, and the delta that it sets aside; None if it is not known to be Gaussian, and in no pot.
    pot : str or None
        The pot that paid for it.
    part : str or None
        The part of the table that it was spent on; None for the whole.
    """

    identity: str
    epsilon: Amount
    delta: Amount
    state: State
    what: str
    since: str
    neighbours: str = NEIGHBOURS
    unit: str = "row"
    mu: float | None = None
    aside: Amount = 0.0
    pot: str | None = None
    part: str | None = None

    @property
    def promised_to(self) -> tuple[str, str]:
        """Neighbours and unit: only costs that have both in common add up."""
        return self.neighbours, self.unit

    def in_words(self) -> str:
        """Say what the cost holds for."""
        return f"for persons by {self.unit!r}" if self.neighbours == PERSONS else "for rows"

    def inside(self, pot: str) -> Entry:
        """Return the entry as a pot counts it: what is not known to be Gaussian has the mu of its epsilon."""
        if self.mu is not None:
            return replace(self, pot=pot)
        return replace(self, pot=pot, mu=mu_from_epsilon(up(Fraction(self.epsilon))), aside=self.delta)


@dataclass(frozen=True)
class Pot:
    """A filter in mu: spends inside may sum to mu² and to the delta set aside, even if results decide on them.

    It costs the account (epsilon, delta), once, when it is opened.

    Attributes
    ----------
    name : str
    epsilon, delta : float or Decimal
        What it costs.
    aside : float or Decimal
        How much of delta is for what releases set aside.
    mu : float
        What the rest of delta allows, rounded down.
    since : str
        When it was opened, UTC.
    """

    name: str
    epsilon: Amount
    delta: Amount
    aside: Amount
    mu: float
    since: str

    @property
    def for_noise(self) -> float:
        """The delta that its spends are read at: what is not for setting aside, rounded down."""
        return down(Fraction(self.delta) - Fraction(self.aside))

    @classmethod
    def of_budget(cls, name: str, epsilon: Amount, delta: Amount, aside: Amount, since: str) -> Pot:
        """Return the pot that a budget pays for; it has no mu where nothing is left for it."""
        budget = down(Fraction(epsilon)), down(Fraction(delta) - Fraction(aside))
        return cls(name, epsilon, delta, aside, mu_from_budget(*budget) if min(budget) > 0.0 else 0.0, since)


@dataclass(frozen=True)
class Account:
    """All spends on one data set, and their limit.

    Attributes
    ----------
    entries : tuple of Entry
        In the order in which they began.
    limit_epsilon, limit_delta : float, Decimal or None
        What all entries together may cost; None for no limit.
    pots : tuple of Pot
        Parts of the limit within which spends compose in mu.
    plain : bool
        Whether costs are simply added up, in epsilon and delta.
    """

    entries: tuple[Entry, ...] = ()
    limit_epsilon: Amount | None = None
    limit_delta: Amount | None = None
    pots: tuple[Pot, ...] = ()
    plain: bool = False

    # ---- What has been spent ---------------------------------------------------------------------------------------

    @property
    def spent(self) -> PrivacyCost:
        """The cost of all entries, in the part of the table where it is largest: exact sums, rounded up once.

        Gaussian entries compose in mu, unless a limit adds them up.  It is a guarantee for budgets that were fixed
        beforehand.
        """
        plain = self.plain or (self.limit_epsilon, self.limit_delta) != (None, None)
        return reduce(PrivacyCost.parallel, (_together(view, plain) for view in self._views()))

    def part(self, name: str) -> Account:
        """Return the account of one part of the table: its own entries and those of the whole table."""
        return replace(self, entries=tuple(entry for entry in self.entries if entry.part in (None, name)))

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the table that something was spent on."""
        return tuple(dict.fromkeys(entry.part for entry in self.entries if entry.part is not None))

    def _views(self, part: str | None = None) -> list[tuple[Entry, ...]]:
        """Return the entries that count for a row, for every part that it may lie in."""
        parts = (part,) if part is not None else self.parts or (None,)
        return [tuple(entry for entry in self.entries if entry.part in (None, name)) for name in parts]

    # ---- What is left ----------------------------------------------------------------------------------------------

    @property
    def left(self) -> tuple[float | None, float | None]:
        """The largest epsilon and delta of one more spend, rounded down; None where there is no limit.

        Where the limit is a pot, this is for one Gaussian fit, at the delta that the pot has for noise.
        """
        pot = self.pot(REST)
        if pot is None:
            return self._left("epsilon"), self._left("delta")
        mu, delta = sqrt_down(self.room(REST)[0]), pot.for_noise
        return (epsilon_from_mu(mu, delta) * (1.0 - 1e-9) if mu > 0.0 else 0.0), delta

    def pot(self, name: str) -> Pot | None:
        """Return a pot by its name, if there is one."""
        return next((pot for pot in self.pots if pot.name == name), None)

    def room(self, pot: str, part: str | None = None) -> tuple[Fraction, Fraction]:
        """Return what is left of the mu² of a pot and of what may be set aside, in the fullest part of the table."""
        found = self.pot(pot)
        assert found is not None
        spent = [[entry for entry in view if entry.pot == pot] for view in self._views(part)]
        square = max(_total(Fraction(entry.mu or 0.0) ** 2 for entry in view) for view in spent)
        aside = max(_total(Fraction(entry.aside) for entry in view) for view in spent)
        return max(Fraction(0), Fraction(found.mu) ** 2 - square), max(Fraction(0), Fraction(found.aside) - aside)

    def more_like(self, entry: Entry) -> int | None:
        """Return how many more spends like this one are allowed; None without a limit."""
        if entry.pot is not None:
            square, aside = self.room(entry.pot, entry.part)
            rooms = [(square, Fraction(entry.mu or 0.0) ** 2), (aside, Fraction(entry.aside))]
        else:
            plain = ((self._room(name, entry.part), getattr(entry, name)) for name in ("epsilon", "delta"))
            rooms = [(room, Fraction(cost)) for room, cost in plain if room is not None]
        counts = [math.floor(room / cost) for room, cost in rooms if cost > 0]
        return min(counts) if counts else None

    def _room(self, name: str, part: str | None = None) -> Fraction | None:
        """Return what is left of the limit outside of pots."""
        limit = getattr(self, f"limit_{name}")
        return None if limit is None else max(Fraction(0), Fraction(limit) - self._plainly(name, part))

    def _left(self, name: str) -> float | None:
        room = self._room(name)
        return None if room is None else down(room)

    def _plainly(self, name: str, part: str | None = None) -> Fraction:
        """Return what pots, and entries outside of them, have taken of the limit."""
        pots = _total(Fraction(getattr(pot, name)) for pot in self.pots)
        outside = ([entry for entry in view if entry.pot is None] for view in self._views(part))
        return pots + max(_total(Fraction(getattr(entry, name)) for entry in view) for view in outside)

    # ---- What is allowed -------------------------------------------------------------------------------------------

    def allows(self, epsilon: Amount, delta: Amount, mu: float | None = None, aside: Amount = 0.0) -> bool:
        """Tell whether one more spend stays within the limit, in exact arithmetic.

        A Gaussian one has a `mu`, and the delta that it sets `aside`.
        """
        return self.taking(Entry("", epsilon, delta, "begun", "", "", mu=mu, aside=aside)) is not None

    def taking(self, entry: Entry) -> Account | None:
        """Return the account with one more entry, in the pot where it belongs; None if that would exceed a limit."""
        account = self
        if entry.pot is None and not self.plain:
            account = self._with_rest(entry) if self.pot(REST) is None else self
            if account.pot(REST) is not None:
                entry = entry.inside(REST)
        elif entry.pot is not None:
            entry = entry.inside(entry.pot)
        if not account._has_room(entry) or account.overdrawn(entry.part):
            return None
        return replace(account, entries=(*account.entries, entry))

    def overdrawn(self, part: str | None = None) -> bool:
        """Tell whether pots and plain spends have taken more than a limit that was lowered since."""
        limits = (("epsilon", self.limit_epsilon), ("delta", self.limit_delta))
        return any(limit is not None and self._plainly(name, part) > Fraction(limit) for name, limit in limits)

    def opening(self, pot: Pot) -> Account | None:
        """Return the account with one more pot; None if that would exceed the limit."""
        return replace(self, pots=(*self.pots, pot)) if self._fits(pot) else None

    def limited(self, limit_epsilon: Amount | None, limit_delta: Amount | None) -> Account:
        """Return the account with another limit, and with the pot that is the rest of it as large as that allows."""
        account = replace(self, limit_epsilon=limit_epsilon, limit_delta=limit_delta)
        old = self.pot(REST)
        if old is None or (limit_epsilon, limit_delta) == (self.limit_epsilon, self.limit_delta):
            return account
        others = replace(account, pots=tuple(pot for pot in self.pots if pot.name != REST))
        epsilon, delta = others._left("epsilon") or 0.0, others._left("delta") or 0.0
        share = Fraction(old.aside) / Fraction(old.delta) if old.delta else _SET_ASIDE
        pot = Pot.of_budget(REST, epsilon, delta, down(Fraction(delta) * share), old.since)
        if epsilon <= old.epsilon and delta <= old.delta:  # rounding must not bring back what was fixed
            pot = replace(pot, mu=min(pot.mu, old.mu))
        return replace(others, pots=(*others.pots, pot))

    def _has_room(self, entry: Entry) -> bool:
        if entry.pot is not None:
            square, aside = self.room(entry.pot, entry.part)
            return Fraction(entry.mu or 0.0) ** 2 <= square and Fraction(entry.aside) <= aside
        return self._fits(entry, entry.part)

    def _fits(self, spend: Entry | Pot, part: str | None = None) -> bool:
        """Tell whether a plain spend, or a pot, leaves both limits as they are."""
        rooms = ((self._room(name, part), Fraction(getattr(spend, name))) for name in ("epsilon", "delta"))
        return all(room is None or cost <= room for room, cost in rooms)

    def _with_rest(self, first: Entry) -> Account:
        """Make a pot of all that is left of the limit, if a Gaussian spend is the first to need one.

        What was spent before there was a limit has been added up, and stays out: a pot is fixed before its first
        spend.
        """
        if first.mu is None or self.limit_epsilon is None or self.limit_delta is None:
            return self
        epsilon, delta = (self._room(name) for name in ("epsilon", "delta"))
        if not epsilon or not delta:
            return self
        amounts = _shortest(epsilon, self.limit_epsilon), _shortest(delta, self.limit_delta)
        for aside in (down(delta * _SET_ASIDE), first.aside):
            pot = Pot.of_budget(REST, *amounts, aside, first.since)
            opened = replace(self, pots=(*self.pots, pot))
            if Fraction(aside) < delta and opened._has_room(first.inside(REST)):
                return opened
        return opened


def _together(entries: tuple[Entry, ...], plain: bool) -> PrivacyCost:
    """Return the cost of entries, outside of pots `plain` ones: exact sums, rounded up once."""
    neighbours = entries[0].neighbours if entries else NEIGHBOURS
    gaussian = [one for one in entries if one.mu is not None and not (plain and one.pot is None)]
    others = [one for one in entries if one.mu is None or (plain and one.pot is None)]
    if len(gaussian) == 1 and not others:  # read as it was given
        (one,) = gaussian
        epsilon, delta, aside = (up(Fraction(cost)) for cost in (one.epsilon, one.delta, one.aside))
        return PrivacyCost(epsilon, delta, neighbours, mu=one.mu, delta_aside=aside)
    square = _total(Fraction(one.mu or 0.0) ** 2 for one in gaussian)
    epsilons = _total(Fraction(one.epsilon) for one in others)
    deltas = _total(Fraction(one.delta) for one in others) + _total(Fraction(one.aside) for one in gaussian)
    # An entry that was converted has all of its delta aside, and is read at that once more.
    rests = [Fraction(one.delta) - Fraction(one.aside) or Fraction(one.delta) for one in gaussian]
    return PrivacyCost.together(square, epsilons, deltas, max(rests, default=Fraction(0)), neighbours)


def _total(amounts: Iterable[Fraction]) -> Fraction:
    return sum(amounts, Fraction(0))


def _shortest(exact: Fraction, limit: Amount) -> Amount:
    """Return the limit as it was written if all of it is left, or else what is, rounded down."""
    return limit if exact == Fraction(limit) else down(exact)


def amount(name: str, value: Amount | str) -> Amount:
    """Return a finite number, zero or above, as a float or a Decimal."""
    if isinstance(value, str):
        typed = decimal_of(value)
        if typed is None:
            raise ParameterError(
                "{name} must be a number, written as 0.1 or 1e-6; got {got!r}.", name=Parameter(name), got=value[:20]
            )
        value = typed
    if not isinstance(value, Decimal):
        checks.non_negative(**{name: value})
        return float(value)
    if not value.is_finite() or not is_short(value) or value < 0 or not -400 <= value.adjusted() <= 300:
        raise ParameterError(
            "{name} must be a finite number, zero or above; got {value:.12g}.", name=Parameter(name), value=value
        )
    return value
