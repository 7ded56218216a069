"""Coins for the joint account: chances that rise with the margin as fast as epsilon and delta allow.

Floats propose, and `privspan.privacy.joint.JointAccount` accepts the very table that is used, by its bound from
above: a poor proposal costs accuracy, never privacy. Only public numbers are seen.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr, ndtr

from privspan._lib.errors import ParameterError
from privspan.privacy.coin import COIN_BITS, CoinTable
from privspan.privacy.gdp import MOST_JOINT_MU
from privspan.privacy.joint import JointAccount, JointShares

Array = NDArray[np.float64]

_HIGHEST = float(ndtr(3.0))  # the largest chance
_MOST_MARGINS = 250
_LEAST_RISE = 1e-4  # of a log-odds from one margin to the next, or the table has no end
_FIRST = 0.9  # chance at margin 1 over the delta of a pair
_LOWEST_TARGET = 0.05
_HALVINGS = 9
_TUNES = (0.0, 0.5)  # what follows *no* is proposed for as if it were larger: shares of what follows *yes*
_ROOMS = (0.998, 0.99, 0.95)  # parts of delta that a proposal may use up, one after the other: the bound is above
_NODES = np.linspace(-8.0, 9.0, 103)  # of a normal law, for sums by Simpson's rule
_WEIGHTS = np.where(np.arange(103) % 2, 4.0, 2.0) * np.exp(-0.5 * _NODES**2)
_WEIGHTS /= _WEIGHTS.sum()


def accepted(epsilon: float, delta: float, shares: JointShares) -> JointAccount | None:
    """Return the account of proposed shares, or with a flatter coin if the bound does not allow that one."""
    for room in _ROOMS:
        mus = shares.before, shares.yes, shares.no, shares.otherwise
        found = shares if room == _ROOMS[0] else steepest(epsilon, delta, *mus, shares.rotation, room)
        if found is not None:
            with suppress(ParameterError):
                return JointAccount(epsilon, delta, found)
    return None


@lru_cache(maxsize=1024)  # of public numbers only
def steepest(
    epsilon: float,
    delta: float,
    before: float,
    yes: float,
    no: float,
    otherwise: float,
    rotation: float,
    room: float = _ROOMS[0],
) -> JointShares | None:
    """Propose a coin as steep as these mus leave room for, up to a part of delta; None if there is hardly any."""
    if max(before, yes, no, otherwise) > MOST_JOINT_MU:
        return None
    found = []
    for tune in _TUNES:
        low, high, best = math.log(_LOWEST_TARGET), 0.0, None
        for _ in range(_HALVINGS):
            middle = (low + high) / 2.0
            chances = _greedy(math.exp(middle) * delta, epsilon, before, yes, max(no, tune * yes))
            fits = (
                chances is None or _estimate(epsilon, chances, before, yes, no, otherwise) <= room * delta - rotation
            )
            low, high, best = (middle, high, chances) if fits else (low, middle, best)
        if best is not None and best[0] * 2.0**COIN_BITS >= 1.0:
            table = CoinTable(tuple(int(chance * 2.0**COIN_BITS) for chance in best))
            found.append(JointShares(before, yes, no, otherwise, table, rotation))
    return min(found, key=lambda one: one.coin.margins, default=None)


def _greedy(target: float, epsilon: float, before: float, yes: float, no: float) -> Array | None:
    """Return chances at the margins 1, 2, …, each as large as the delta of a pair of neighbouring ones allows."""
    both = math.hypot(before, yes), math.hypot(before, no)

    def worst(a: float, b: float) -> float:
        return max(
            x * _stick(both[0], epsilon - math.log(x / y))
            + (1 - x) * _stick(both[1], epsilon - math.log((1 - x) / (1 - y)))
            for x, y in ((a, b), (b, a))
        )

    found, top = [_FIRST * target], math.log(_HIGHEST / (1.0 - _HIGHEST))
    rise = 1.0
    while found[-1] < _HIGHEST:
        start = math.log(found[-1] / (1.0 - found[-1]))
        if worst(_HIGHEST, found[-1]) <= target:
            found.append(_HIGHEST)
            break
        low, high = 0.0, min(2.0 * rise, top - start)
        if high < top - start and worst(_chance(start + high), found[-1]) <= target:
            low, high = high, top - start
        while high - low > 1e-3 * high + 1e-6:
            middle = (low + high) / 2.0
            low, high = (middle, high) if worst(_chance(start + middle), found[-1]) <= target else (low, middle)
        if low < _LEAST_RISE or len(found) == _MOST_MARGINS:
            return None
        rise = low
        found.append(_chance(start + low))
    return np.array(found)


def _chance(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-log_odds))


def _stick(mu: float, t: float) -> float:
    near, far = (t / mu - mu / 2.0) / math.sqrt(2.0), (t / mu + mu / 2.0) / math.sqrt(2.0)
    return 0.5 * (math.erfc(near) - math.exp(t) * math.erfc(far))


def _estimate(epsilon: float, chances: Array, before: float, yes: float, no: float, otherwise: float) -> float:
    """Return about what the bound of `privspan.privacy.joint` says, without the rotation."""
    t = epsilon - before**2 / 2.0 - before * _NODES
    a = np.concatenate([chances[1:], chances[:-1], chances[-1:]])[:, None]
    b = np.concatenate([chances[:-1], chances[1:], chances[-1:]])[:, None]
    pairs = a * _sticks(yes, t - np.log(a / b)) + (1 - a) * _sticks(no, t - np.log((1 - a) / (1 - b)))
    first = chances[0] + (1 - chances[0]) * _sticks(no, t - math.log1p(-chances[0]))
    worst = np.maximum.reduce(
        [pairs.max(axis=0), first, _sticks(no, t + math.log1p(-chances[0])), _sticks(otherwise, t)]
    )
    return float(_WEIGHTS @ worst)


def _sticks(mu: float, t: Array) -> Array:
    if mu == 0.0:
        return np.maximum(-np.expm1(t), 0.0)
    return np.maximum(ndtr(-t / mu + mu / 2) - np.exp(t + log_ndtr(-t / mu - mu / 2)), 0.0)
