"""What an account says to a reader: what was spent together, and how much more of the same there is."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from privspan._lib.rounding import sqrt_up
from privspan.ledger.accounts import REST, Account, Amount, Entry, Pot
from privspan.privacy import epsilon_from_mu


def sentences(account: Account) -> list[str]:
    """Say what has been spent on a data set together, of what, and how many more spends like the last are left."""
    rest, last = account.pot(REST), account.entries[-1] if account.entries else None
    if rest is not None:
        others = replace(account, pots=tuple(pot for pot in account.pots if pot is not rest))
        plainly = float(account.limit_epsilon or 0.0) - (others.left[0] or 0.0)  # other pots, and what came before
        limit = f"epsilon {short(spent_in(account, rest) + plainly)} of {short(account.limit_epsilon)}"
        said = [f"Spent together: {limit}, at delta {short(account.limit_delta)}{more_like(account, last)}."]
    elif account.spent.mu is not None and account.limit_epsilon is account.limit_delta is None:
        spent = account.spent
        said = [f"Spent together: epsilon {short(spent.epsilon)} at delta {short(spent.delta)} (no limit)."]
    else:
        said = [_plainly(account, None if last is None or last.pot else last)]
    return said + [_of_pot(account, pot) for pot in account.pots if pot is not rest]


def more_like(account: Account, entry: Entry | None) -> str:
    """Say how many more spends like this one there are; nothing without a limit."""
    count = None if entry is None else account.more_like(entry)
    if count is None:
        return ""
    return f"; {'about ' * (count > 0)}{count or 'no'} more {'fit' if count == 1 else 'fits'} like the last"


def spent_in(account: Account, pot: Pot) -> float:
    """Return the epsilon of what was spent in a pot, at the delta that it has for noise."""
    square, delta = Fraction(pot.mu) ** 2 - account.room(pot.name)[0], pot.for_noise
    return epsilon_from_mu(sqrt_up(square), delta) if square and 0.0 < delta < 1.0 else 0.0


def short(amount: Amount | None) -> str:
    """Return a number as it is read, to three digits if it has many."""
    value = float(amount or 0.0)
    return f"{value:.12g}" if len(f"{value:.12g}") <= 8 else f"{value:.3g}"


def _plainly(account: Account, last: Entry | None) -> str:
    left = dict(zip(("epsilon", "delta"), account.left, strict=True))
    pots = {name: sum(float(getattr(pot, name)) for pot in account.pots) for name in left}
    outside = [entry for entry in account.entries if entry.pot is None]
    plain = Account(tuple(outside), plain=True).spent
    sums = [
        f"{name} {short(getattr(plain, name) + pots[name])}"
        + (" (no limit)" if rest is None else f" of {short(getattr(account, f'limit_{name}'))} ({short(rest)} left)")
        for name, rest in left.items()
    ]
    return f"Spent together: {'; '.join(sums)}{more_like(account, last)}."


def _of_pot(account: Account, pot: Pot) -> str:
    last = next((entry for entry in reversed(account.entries) if entry.pot == pot.name), None)
    spent = f"epsilon {short(spent_in(account, pot))} of {short(pot.epsilon)}, at delta {short(pot.delta)}"
    return f"Of these, the pot {pot.name!r} has spent {spent}{more_like(account, last)}."
