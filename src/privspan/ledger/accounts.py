"""The accounts of a ledger: entries and limits, exact sums of them, and their form in JSON.

See `privspan.ledger`, which keeps them in a file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

from privspan._lib import checks
from privspan._lib.rounding import down, up
from privspan._lib.strict_json import fields, listed, mapping, number, one_of, optional, text, whole
from privspan._lib.typed import decimal_of, is_short
from privspan.privacy import NEIGHBOURS, PERSONS, PrivacyCost

Amount: TypeAlias = float | Decimal
"""A float counts as the binary number that it is, a Decimal as the decimal: ten times Decimal("0.1") is 1."""

State = Literal["begun", "finished", "abstained", "interrupted"]

_FORMAT, _VERSION = "privspan.ledger", 2
_UNKNOWN = "unknown"  # the neighbours and the unit of what version 1 of the file holds


class FormatError(ValueError):
    """What is wrong with a file, in words for a person."""


@dataclass(frozen=True)
class Entry:
    """One spend.

    Attributes
    ----------
    identity : str
        Random, to find the entry again.
    epsilon, delta : float or Decimal
        What it cost.
    state : {"begun", "finished", "abstained", "interrupted"}
        For people: every state counts in full.  "begun" is a run that is under way, or that died.
    what : str
        What was run.
    since : str
        When it began, UTC.
    neighbours : {"replace-one", "replace-one-person", "unknown"}
        What the cost holds for replacing: one row, or one person with all of their rows.
    unit : str
        "row", or the column that says whose each row is; "person" for ids that are no column with a name.
    """

    identity: str
    epsilon: Amount
    delta: Amount
    state: State
    what: str
    since: str
    neighbours: str = NEIGHBOURS
    unit: str = "row"

    @property
    def promised_to(self) -> tuple[str, str]:
        """Neighbours and unit: only costs that have both in common add up."""
        return self.neighbours, self.unit

    def in_words(self) -> str:
        """Say what the cost holds for."""
        who = f"persons by {self.unit!r}" if self.neighbours == PERSONS else "rows"
        return "of an earlier version, which did not note their unit" if self.neighbours == _UNKNOWN else f"for {who}"


@dataclass(frozen=True)
class Account:
    """The spends on one data set and their limit.

    Attributes
    ----------
    entries : tuple of Entry
        In the order in which they began.
    limit_epsilon, limit_delta : float, Decimal or None
        What all entries together may cost; None for no limit.
    """

    entries: tuple[Entry, ...] = ()
    limit_epsilon: Amount | None = None
    limit_delta: Amount | None = None

    @property
    def spent(self) -> PrivacyCost:
        """What all entries cost together: exact sums, rounded up once."""
        neighbours = self.entries[0].neighbours if self.entries else NEIGHBOURS
        return PrivacyCost(up(self._total("epsilon")), min(1.0, up(self._total("delta"))), neighbours)

    @property
    def left(self) -> tuple[float | None, float | None]:
        """Epsilon and delta that may still be spent, rounded down; None where there is no limit."""
        return self._left("epsilon"), self._left("delta")

    def allows(self, epsilon: Amount, delta: Amount) -> bool:
        """Tell whether one more spend stays within the limit, in exact arithmetic."""
        return all(
            limit is None or self._total(name) + Fraction(more) <= Fraction(limit)
            for name, limit, more in (("epsilon", self.limit_epsilon, epsilon), ("delta", self.limit_delta, delta))
        )

    def _total(self, name: str) -> Fraction:
        return sum((Fraction(getattr(entry, name)) for entry in self.entries), Fraction(0))

    def _left(self, name: str) -> float | None:
        limit = getattr(self, f"limit_{name}")
        return None if limit is None else max(0.0, down(Fraction(limit) - self._total(name)))


def amount(name: str, value: Amount | str) -> Amount:
    """Return a finite number, zero or above, as a float or a Decimal."""
    if isinstance(value, str):
        typed = decimal_of(value)
        if typed is None:
            raise ValueError(f"`{name}` must be a number, written as 0.1 or 1e-6; got {value[:20]!r}.")
        value = typed
    if not isinstance(value, Decimal):
        checks.non_negative(**{name: value})
        return float(value)
    if not value.is_finite() or not is_short(value) or value < 0 or not -400 <= value.adjusted() <= 300:
        raise ValueError(f"`{name}` must be a finite number, zero or above; got {value:.12g}.")
    return value


def to_json(accounts: Mapping[str, Account]) -> dict[str, Any]:
    """Return what the file holds: floats as JSON numbers, Decimals as text."""
    datasets = {
        name: {
            "limit": _written(epsilon=account.limit_epsilon, delta=account.limit_delta),
            "entries": [_written(**vars(entry)) for entry in account.entries],
        }
        for name, account in accounts.items()
    }
    return {"format": _FORMAT, "version": _VERSION, "datasets": datasets}


def _written(**values: Amount | str | None) -> dict[str, float | str | None]:
    return {name: str(value) if isinstance(value, Decimal) else value for name, value in values.items()}


def from_json(content: object) -> dict[str, Account]:
    """Return the accounts that `to_json` wrote; ``FormatError`` or another ``ValueError`` for anything else."""
    if not isinstance(content, dict):
        raise ValueError("it is not an object")
    if content.get("format") != _FORMAT:
        raise FormatError("it was not written by privspan's ledger")
    version = content.get("version")
    if isinstance(version, bool) or version not in (1, _VERSION):
        raise FormatError(f"its version is {version!r}, and this privspan reads 1 and {_VERSION}")
    datasets = fields(content, format=text, version=whole(1), datasets=mapping)["datasets"]
    return {name: _parse_account(values, version) for name, values in datasets.items()}


def _parse_account(values: object, version: object) -> Account:
    found = fields(values, limit=mapping, entries=listed(mapping))
    limit = fields(found["limit"], epsilon=optional(_is_amount), delta=optional(_is_amount))
    limits = {f"limit_{name}": None if value is None else amount(name, value) for name, value in limit.items()}
    entries = tuple(_parse_entry(entry, version) for entry in found["entries"])
    if len({entry.promised_to for entry in entries}) > 1:
        raise FormatError("it has spends for different units under one name, which do not add up")
    return Account(entries, **limits)


def _parse_entry(values: object, version: object) -> Entry:
    kinds = {"identity": text, "epsilon": _is_amount, "delta": _is_amount, "state": text, "what": text, "since": text}
    if version == 1:
        found = {**fields(values, **kinds), "neighbours": _UNKNOWN, "unit": _UNKNOWN}
    else:
        found = fields(values, **kinds, neighbours=one_of((NEIGHBOURS, PERSONS, _UNKNOWN)), unit=text)
    if found["state"] not in get_args(State):
        raise FormatError(f"it has an entry in the unknown state {found['state']!r}")
    return Entry(**{**found, **{name: amount(name, found[name]) for name in ("epsilon", "delta")}})


def _is_amount(value: object) -> bool:
    return text(value) or number(0)(value)
