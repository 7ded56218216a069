"""Spends chosen in view of results, and the exact delta of what they compose to."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations

import numpy as np
from scipy.special import log_ndtr, ndtr

from privspan.ledger.accounts import Account, Entry

_GRID = np.linspace(-9.0, 12.0, 8_401)
_WEIGHTS = np.exp(-(_GRID**2) / 2) / np.sqrt(2 * np.pi) * (_GRID[1] - _GRID[0])  # trapezoid: the ends are nothing


def stick(mu: float, t: np.ndarray) -> np.ndarray:
    """The hockey stick of N(mu, 1) against N(0, 1) at every real t."""
    if mu == 0.0:
        return np.maximum(-np.expm1(np.minimum(t, 0.0)), 0.0)
    return np.maximum(ndtr(-t / mu + mu / 2) - np.exp(t + log_ndtr(-t / mu - mu / 2)), 0.0)


def response(epsilon: float, t: np.ndarray) -> np.ndarray:
    """That of randomised response."""
    p = 1.0 / (1.0 + np.exp(-epsilon))
    return np.maximum(p - np.exp(t) * (1 - p), 0) + np.maximum(1 - p - np.exp(t) * p, 0)


def lost(aside: float, rest: np.ndarray) -> np.ndarray:
    """That of something beside an outright loss."""
    return aside + (1.0 - aside) * rest


def expected(mu: float, epsilon: float, then: Callable[[np.ndarray], np.ndarray]) -> float:
    """The hockey stick at epsilon of a Gaussian release and of what follows, chosen by the loss so far."""
    return float(_WEIGHTS @ then(epsilon - mu * mu / 2 - mu * _GRID))


def largest(allowed: Callable[[float], bool], most: float) -> float:
    """The largest number that is allowed, by bisection from below; 0 if none is."""
    low, high = 0.0, most
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


def spend(account: Account, kind: str) -> tuple[Account, float]:
    """Spend all that an account allows in one currency: noise, what is set aside, or pure epsilon."""
    makes = {
        "mu": lambda x: Entry("", 1.0, 0.5, "begun", "", "", mu=x, aside=0.0),
        "aside": lambda x: Entry("", 1.0, 0.5, "begun", "", "", mu=1e-12, aside=x),
        "pure": lambda x: Entry("", x, 1e-300, "begun", "", ""),
    }
    made = makes[kind]
    found = largest(lambda x: x > 0 and account.taking(made(x)) is not None, 0.4 if kind == "aside" else 20.0)
    after = account.taking(made(found)) if found > 0 else None
    return (account, 0.0) if after is None else (after, found)


def worst_delta(account: Account, epsilon: float, share: float, kinds: tuple[str, ...] = ("mu", "aside")) -> float:
    """Spend a share of mu², look at the loss, and take the rest in the order of currencies that suits it best."""
    _, whole = spend(account, "mu")
    first = whole * np.sqrt(share)
    begun = account.taking(Entry("", 1.0, 0.5, "begun", "", "", mu=first, aside=0.0))
    assert begun is not None
    options = []
    for order in permutations(kinds):
        after, sums = begun, dict.fromkeys(("mu", "aside", "pure"), 0.0)
        for kind in order:
            after, sums[kind] = spend(after, kind)
        options.append(sums)

    def then(t: np.ndarray) -> np.ndarray:
        # Noise beside pure epsilon never comes up where both are allowed in full: it is one or the other.
        each = [
            lost(one["aside"], response(one["pure"], t) if one["pure"] > 1e-6 else stick(one["mu"], t))
            for one in options
        ]
        return np.max(each, axis=0)

    return expected(first, epsilon, then)
