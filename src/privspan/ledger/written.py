"""Accounts in JSON: what the file of a ledger holds, and the earlier versions of it."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import get_args

from privspan._lib.strict_json import fields, flag, listed, mapping, number, one_of, optional, text, whole
from privspan.ledger.accounts import Account, Amount, Entry, Pot, State, amount
from privspan.privacy import NEIGHBOURS, PERSONS

_FORMAT, _VERSION = "privspan.ledger", 3
# Version 1 did not say what a spend was for, which 2 called unknown.  What holds for persons holds for their rows, so
# all of it does for rows.
_UNKNOWN = "unknown"
_BEFORE_POTS = {"mu": None, "aside": 0.0, "pot": None, "part": None}


class FormatError(ValueError):
    """What is wrong with a file, in words for a person."""


def to_json(accounts: Mapping[str, Account]) -> dict[str, object]:
    """Return what the file holds: floats as JSON numbers, Decimals as text."""
    datasets = {
        name: {
            "limit": _written(epsilon=account.limit_epsilon, delta=account.limit_delta),
            "plain": account.plain,
            "pots": [_written(**vars(pot)) for pot in account.pots],
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
    if isinstance(version, bool) or version not in range(1, _VERSION + 1):
        raise FormatError(f"its version is {version!r}, and this privspan reads 1 to {_VERSION}")
    datasets = fields(content, format=text, version=whole(1), datasets=mapping)["datasets"]
    return {name: _parse_account(values, int(content["version"])) for name, values in datasets.items()}


def _parse_account(values: object, version: int) -> Account:
    kinds = {"limit": mapping, "entries": listed(mapping)}
    pots = {"plain": flag, "pots": listed(mapping)} if version > 2 else {}
    found = {"plain": False, "pots": [], **fields(values, **kinds, **pots)}
    limit = fields(found["limit"], epsilon=optional(_is_amount), delta=optional(_is_amount))
    limits = {f"limit_{name}": None if value is None else amount(name, value) for name, value in limit.items()}
    entries = tuple(_parse_entry(entry, version) for entry in found["entries"])
    if len({entry.promised_to for entry in entries}) > 1:
        raise FormatError("it has spends for different units under one name, which do not add up")
    account = Account(entries, **limits, pots=tuple(map(_parse_pot, found["pots"])), plain=found["plain"])
    for names in ([pot.name for pot in account.pots], [entry.identity for entry in entries]):
        if len(set(names)) < len(names):
            raise FormatError("it has two spends or two pots of one name")
    if any(entry.pot is not None and (entry.mu is None or account.pot(entry.pot) is None) for entry in entries):
        raise FormatError("it has a spend in a pot that is not there, or without its mu")
    return account


def _parse_entry(values: object, version: int) -> Entry:
    kinds = {"identity": text, "epsilon": _is_amount, "delta": _is_amount, "state": text, "what": text, "since": text}
    if version > 1:
        known = (NEIGHBOURS, PERSONS, _UNKNOWN) if version == 2 else (NEIGHBOURS, PERSONS)
        kinds |= {"neighbours": one_of(known), "unit": text}
    in_mu = {"mu": optional(number(0)), "aside": _is_amount, "pot": optional(text), "part": optional(text)}
    found = fields(values, **kinds, **(in_mu if version > 2 else {}))
    if found.get("neighbours", _UNKNOWN) == _UNKNOWN:
        found = {**found, "neighbours": NEIGHBOURS, "unit": "row"}
    found = {**_BEFORE_POTS, **found}
    if found["state"] not in get_args(State):
        raise FormatError(f"it has an entry in the unknown state {found['state']!r}")
    return Entry(**{**found, **{name: amount(name, found[name]) for name in ("epsilon", "delta", "aside")}})


def _parse_pot(values: object) -> Pot:
    amounts = {"epsilon": _is_amount, "delta": _is_amount, "aside": _is_amount}
    found = fields(values, name=text, **amounts, mu=number(0), since=text)
    return Pot(**{**found, **{name: amount(name, found[name]) for name in amounts}})


def _is_amount(value: object) -> bool:
    return text(value) or number(0)(value)
