"""Coins for the joint account: chances that rise with the margin as fast as epsilon and delta allow.

Floats propose, and `privspan.privacy.joint.JointAccount` accepts the very table that is used, by its bound from
above: a poor proposal costs accuracy, never privacy. Only public numbers are seen.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from privspan._lib.errors import ParameterError
from privspan.privacy.coin import COIN_BITS, CoinTable
from privspan.privacy.gdp import MOST_JOINT_MU
from privspan.privacy.joint import JointAccount, JointShares

Array = NDArray[np.float64]

_HIGHEST = float(ndtr(3.0))  # the largest chance
_MOST_MARGINS = 250  # memory
_LEAST_RISE = 1e-4  # time: of a log-odds from one margin to the next, or the table has no end
_SECANTS, _CLOSE = 8, 2e-3  # time: of a search whose result is bounded anew
_ROOT_HALF = math.sqrt(0.5)  # of an error function: of a proposal, which is bounded anew
_NODES = np.linspace(-8.0, 9.0, 69)  # of a normal law, for sums of a proposal by Simpson's rule: it is bounded anew
_WEIGHTS = np.where(np.arange(69) % 2, 4.0, 2.0) * np.exp(-0.5 * _NODES**2)  # bounded anew, too
_WEIGHTS /= _WEIGHTS.sum()


@dataclass(frozen=True)
class CoinTuning:
    """Of proposals; benchmarks/scripts/joint_account.py measures what the coins are worth.  Chosen by hand."""

    first: float = 0.9  # chance at margin 1 over the delta of a pair
    target: float = 0.45  # of delta, for a pair, to begin with
    tries: int = 6  # to mend that, each of which takes time
    near: float = 0.01  # of delta, relatively: nearer is not looked for
    no: float = 0.5  # what follows *no* is proposed for as if it were at least this share of what follows *yes*
    rooms: tuple[float, ...] = (0.998, 0.99, 0.95)  # of delta that may be used up, one after the other, as it fails


COINS = CoinTuning()


def accepted(epsilon: float, delta: float, shares: JointShares) -> JointAccount | None:
    """Return the account of proposed shares, or with a flatter coin if the bound does not allow that one."""
    for room in COINS.rooms:
        mus = shares.before, shares.yes, shares.no, shares.otherwise
        found = shares if room == COINS.rooms[0] else steepest(epsilon, delta, *mus, shares.rotation, room)
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
    room: float = COINS.rooms[0],
) -> JointShares | None:
    """Propose a coin as steep as these mus leave room for, up to a part of delta; None if there is hardly any."""
    if max(before, yes, no, otherwise) > MOST_JOINT_MU:
        return None
    best, target, used, slope = None, math.log(COINS.target * delta), 0.0, 1.0
    step = 0.0
    for _ in range(COINS.tries):
        chances = _greedy(math.exp(target), epsilon, before, yes, max(no, COINS.no * yes))
        if chances is None:
            break
        now = math.log(_estimate(epsilon, chances, before, yes, no, otherwise) / (room * delta - rotation))
        if step:
            slope = min(max((now - used) / step, 0.2), 2.0)
        best, used = chances if now <= 0.0 else best, now
        if -COINS.near < now <= 0.0:
            break
        step = -(now + 0.5 * COINS.near) / slope
        target += step
    if best is None or best[0] * 2.0**COIN_BITS < 1.0:
        return None
    table = CoinTable(tuple(int(chance * 2.0**COIN_BITS) for chance in best))
    return JointShares(before, yes, no, otherwise, table, rotation)


def _greedy(target: float, epsilon: float, before: float, yes: float, no: float) -> Array | None:
    """Return chances at the margins 1, 2, …, each as large as the delta of a pair of neighbouring ones allows."""
    both = math.hypot(before, yes), math.hypot(before, no)

    def excess(a: float, b: float) -> float:
        up, down = math.log(a / b), math.log((1 - a) / (1 - b))
        first = a * _stick(both[0], epsilon - up) + (1 - a) * _stick(both[1], epsilon - down)
        second = b * _stick(both[0], epsilon + up) + (1 - b) * _stick(both[1], epsilon + down)
        return math.log(max(first, second, 1e-300) / target)

    found, rise, slope = [COINS.first * target], 1.0, 1.0
    while found[-1] < _HIGHEST:
        last = found[-1]
        if len(found) == _MOST_MARGINS:
            return None
        if excess(_HIGHEST, last) <= 0.0:
            return np.array([*found, _HIGHEST])
        start = math.log(last / (1.0 - last))
        known = excess(_chance(start + rise), last)
        for _ in range(_SECANTS):
            if abs(known) < _CLOSE:
                break
            step = min(max(-known / slope, -0.75 * rise), 3.0 * rise)
            rise += step
            known, former = excess(_chance(start + rise), last), known
            slope = max((known - former) / step, 0.1 * slope)
        if rise < _LEAST_RISE:
            return None
        found.append(min(_chance(start + rise), _HIGHEST))
    return np.array(found)


def _chance(log_odds: float) -> float:
    return 1.0 / (1.0 + math.exp(-log_odds))


def _stick(mu: float, t: float) -> float:
    middle, half = t / mu * _ROOT_HALF, 0.5 * mu * _ROOT_HALF
    return 0.5 * (math.erfc(middle - half) - math.exp(t) * math.erfc(middle + half))


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
    return np.maximum(ndtr(-t / mu + mu / 2) - np.exp(t) * ndtr(-t / mu - mu / 2), 0.0)
