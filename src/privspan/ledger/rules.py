"""What a ledger allows: entries and pots from what was given, limits, and refusals in words."""

from __future__ import annotations

import secrets
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from typing import TypeAlias

from privspan._lib import checks
from privspan._lib.errors import Parameter, ParameterError, PrivspanError
from privspan._lib.rounding import down, sqrt_down
from privspan.ledger.accounts import REST, Account, Amount, Entry, Pot, amount
from privspan.privacy import NEIGHBOURS, PERSONS, epsilon_from_mu

Given: TypeAlias = Amount | str
Cap: TypeAlias = Amount | str | None  # a limit, or none


class OverspendError(PrivspanError, ValueError):
    """The spend, or the new limit, is refused.  Nothing has been written and nothing may be run."""


def begun(
    epsilon: Given,
    delta: Given,
    mu: float | None,
    aside: Given,
    what: str,
    person: str | None,
    part: str | None,
    pot: str | None,
) -> Entry:
    """Return the entry of a spend that begins now, or refuse numbers that are none."""
    amounts = amount("epsilon", epsilon), amount("delta", delta)
    checks.budget(*map(float, amounts))
    if person == "":
        raise ParameterError("{person} must be the name of the column with the person ids.")
    if mu is not None:
        checks.positive(mu=mu)
    reserved = amount("aside", aside)
    if Fraction(reserved) > Fraction(amounts[1]):
        raise ParameterError("{aside} must be at most {delta}, of which it is a part.")
    neighbours, unit = (NEIGHBOURS, "row") if person is None else (PERSONS, str(person))
    identity, kept = secrets.token_hex(8), 0.0 if mu is None else reserved
    return Entry(identity, *amounts, "begun", what, _now(), neighbours, unit, mu, kept, pot, part)


def new_pot(name: str, epsilon: Given | None, delta: Given, aside: Given, mu: float | None) -> Pot:
    """Return a pot that is opened now, or refuse numbers that make none."""
    check_name(pot=name)
    whole, reserved = amount("delta", delta), amount("aside", aside)
    rest = down(Fraction(whole) - Fraction(reserved))
    if not 0.0 < rest < 1.0:
        raise ParameterError("{aside} must be less than {delta}, which must be below 1.")
    if (mu is None) == (epsilon is None):
        raise ParameterError("{epsilon} or {mu} must be given for a pot, and not both.")
    if epsilon is not None:
        checks.budget(float(amount("epsilon", epsilon)), rest)
        return Pot.of_budget(name, amount("epsilon", epsilon), whole, reserved, _now())
    checks.positive(mu=mu)
    return Pot(name, epsilon_from_mu(float(mu or 0.0), rest), whole, reserved, float(mu or 0.0), _now())


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def check_name(**named: str) -> None:
    """Refuse names that would stand for something else."""
    for parameter, name in named.items():
        if not name or name == REST:
            raise ParameterError("{parameter} must have a name of its own.", parameter=Parameter(parameter))


def begin_account(dataset: str, account: Account, plain: bool, limits: tuple[Cap, Cap]) -> Account:
    """Return the account with its limit lowered to the given one, and plain if that is asked for of a new one."""
    if plain and not account.plain:
        if account.entries or account.pots:
            raise OverspendError(
                "{dataset!r} has spends that compose in mu, and cannot be made plain any more.", dataset=dataset
            )
        account = replace(account, plain=True)
    return limited(dataset, account, limits, may_rise=False)


def allowed(dataset: str, account: Account, entry: Entry) -> Account:
    """Return the account with the entry, or refuse the spend."""
    earlier = account.entries[0] if account.entries else entry
    if earlier.promised_to != entry.promised_to:
        units = f"{earlier.in_words()}, and this one is {entry.in_words()}"
        raise OverspendError(
            "the spends on {dataset!r} are {units}: these do not add up, so give it a data set of another name.",
            dataset=dataset,
            units=units,
        )
    if entry.pot is not None and account.pot(entry.pot) is None:
        raise OverspendError("{dataset!r} has no pot {pot!r}; open it first.", dataset=dataset, pot=entry.pot)
    taken = account.taking(entry)
    if taken is None:
        raise OverspendError("{why}", why=_refused(dataset, account, entry))
    return taken


def limited(dataset: str, account: Account, limits: tuple[Cap, Cap], *, may_rise: bool) -> Account:
    """Return the account with its limit set, or lowered unless it may rise."""
    new: dict[str, Amount | None] = {"limit_epsilon": account.limit_epsilon, "limit_delta": account.limit_delta}
    for name, given in zip(("epsilon", "delta"), limits, strict=True):
        if given is None:
            continue
        limit, old = amount(f"limit_{name}", given), getattr(account, f"limit_{name}")
        if name == "delta" and limit >= 1:
            raise ParameterError("{limit_delta} must be below 1: otherwise there is no guarantee.")
        if old is not None and Fraction(limit) > Fraction(old) and not may_rise:
            template = "the ledger limits {dataset!r} to {name} {old}, and {limit} would raise that."
            raise OverspendError(template, dataset=dataset, name=name, old=old, limit=limit)
        new[f"limit_{name}"] = limit
    return account.limited(**new)


def _refused(dataset: str, account: Account, entry: Entry) -> str:
    """Say why a spend has no room, in the terms of the pot if there is one."""
    name = entry.pot or REST
    pot = account.pot(name)
    if pot is None or account.overdrawn(entry.part):
        return refusal(dataset, account, entry.epsilon, entry.delta)
    square, aside = account.room(name, entry.part)
    mu, delta = sqrt_down(square), pot.for_noise
    fit = f"a Gaussian fit of epsilon {epsilon_from_mu(mu, delta):.3g} at delta {delta:.3g}" if mu else ""
    left = fit or "nothing more"
    whose = f"{dataset!r} to" if name == REST else f"the pot {name!r} of {dataset!r} to"
    cost = _in_words((entry.epsilon, entry.delta))
    inside = entry.inside(name)
    if entry.mu is None:
        cost += f", which is not known to be Gaussian and counts as mu {inside.mu:.3g} of {pot.mu:.3g}"
    elif Fraction(entry.mu) ** 2 <= square:
        left = f"delta {down(aside):.3g} to set aside"
        cost += f" and set delta {float(entry.aside):.3g} aside"
    limit = _in_words((account.limit_epsilon, account.limit_delta) if name == REST else (pot.epsilon, pot.delta))
    return f"the ledger limits {whose} {limit}, of which {left} is left, and this would cost {cost}."


def refusal(dataset: str, account: Account, epsilon: Amount, delta: Amount) -> str:
    """Say why a plain spend has no room."""
    limit, left, cost = map(_in_words, ((account.limit_epsilon, account.limit_delta), account.left, (epsilon, delta)))
    return f"the ledger limits {dataset!r} to {limit}, of which {left} is left, and this would cost {cost}."


def _in_words(amounts: tuple[Amount | None, Amount | None]) -> str:
    named = zip(("epsilon", "delta"), amounts, strict=True)
    return " and ".join(f"{name} {float(amount):.12g}" for name, amount in named if amount is not None)
