"""The joint account: what a private test and the noise that follows it cost together, bounded from above.

A test that is counted as a Gaussian step counts for more than it tells.  Here one number says what Gaussian steps, a
coin and what is done after *yes* and after *no* cost together at one epsilon: an upper bound of the true delta, for
the very chances that the coin has.  There is no mu that other releases could be composed with, so it is for single
calls.  Proofs: docs/explanation/stable-leverage.md, *Composition*.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from privspan._lib.errors import ParameterError
from privspan._lib.rounding import down, sqrt_down, up
from privspan.privacy.coin import COIN_BITS, CoinTable
from privspan.privacy.cost import NEIGHBOURS, Part, PrivacyCost
from privspan.privacy.gdp import MOST_JOINT_MU, hockey_stick_up
from privspan.privacy.mu_ledger import Budget, MuLedger

Array = NDArray[np.float64]

_SLACK = 1e-9  # rounding, relative: more than that of one term
_LOWER = 1e-12  # rounding, taken off arguments: hockey sticks fall
_KNOTS = 320  # the bound holds for any number of them
_MOST_EPSILON = 100.0  # beyond, no bound is given: exp of it and of losses stays within float64
_UNDERFLOW = 1e-200  # underflow: more than what products lose
_REACH = 9.0  # standard deviations that knots cover: the bound holds for any


@dataclass(frozen=True)
class JointShares:
    """What a call with one test is to spend, and its coin."""

    before: float  # the mu of everything up to the coin
    yes: float  # that of what follows *yes*
    no: float  # that of what follows *no*
    otherwise: float  # that of what follows the same first steps if there is no coin; none if it follows always
    coin: CoinTable
    rotation: float  # a delta that is added for what follows *yes*

    @property
    def whole(self) -> float:
        """The mu of a path without a coin, rounded down."""
        return sqrt_down(Fraction(self.before) ** 2 + Fraction(self.otherwise) ** 2)


@dataclass(frozen=True)
class JointAccount:
    """Shares that cost no more than epsilon and delta on any path: there is none that the bound does not allow.

    Guarantee
    ---------
    Steps, coin and what follows, each within its share, are (epsilon, delta)-DP for neighbours whose margins differ
    by at most 1. Proof: docs/explanation/stable-leverage.md, *Composition*.
    """

    epsilon: float
    delta: float
    shares: JointShares

    def __post_init__(self) -> None:
        if not joint_delta(self.epsilon, self.shares) <= self.delta:
            raise ParameterError("the coin and the noise together cost more than {delta} allows.")


@lru_cache(maxsize=256)  # of public numbers only
def joint_delta(epsilon: float, shares: JointShares) -> float:
    """Return an upper bound of the delta of all paths at this epsilon; infinite for a mu above 1.

    So it is for an epsilon above 100.  It bounds E D(epsilon - L) + rotation, L normal with mean before² / 2 and
    standard deviation before.

    With r the likelihood ratio of the first steps, that is the mean of phi(r) = r D(epsilon - ln r), a convex
    function with phi(0) = 0 and slope at most 1: below the polygon through upper bounds at knots, whose mean is a sum
    of hockey sticks of the first steps.
    """
    before, mus = shares.before, (shares.yes, shares.no, shares.otherwise)
    sound = before > 0.0 and min(mus) >= 0.0 and shares.rotation >= 0.0  # also for NaN, here and below
    if not (sound and max(before, *mus) <= MOST_JOINT_MU and 0.0 <= epsilon <= _MOST_EPSILON):
        return math.inf
    loss = np.linspace(-_REACH, _REACH, _KNOTS) * before + before**2 / 2.0
    edge = epsilon + np.linspace(-1.0, 1.0, _KNOTS // 4) * before  # where D bends
    knots = np.unique(np.exp(np.concatenate([loss, edge])))
    logs = np.log(knots)
    phi = knots * largest_stick(epsilon - logs - _LOWER, shares.coin, *mus) * (1.0 + _SLACK) + _UNDERFLOW
    sticks = hockey_stick_up(before, logs - _LOWER)
    # From here on exactly, in fractions; slopes are rounded up and heights down, which makes later slopes larger.
    slope = up(Fraction(phi[0]) / Fraction(knots[0]))
    total, height = Fraction(slope), Fraction(phi[0])
    for j in range(len(knots) - 1):
        width = Fraction(knots[j + 1]) - Fraction(knots[j])
        new = max(slope, up((Fraction(phi[j + 1]) - height) / width))
        total += (Fraction(new) - Fraction(slope)) * Fraction(sticks[j])
        height, slope = Fraction(down(height + Fraction(new) * width)), new
    total += max(Fraction(0), 1 - Fraction(slope)) * Fraction(sticks[-1])
    return up(total + Fraction(shares.rotation))


def largest_stick(t: Array, coin: CoinTable, yes: float, no: float, otherwise: float) -> Array:
    """Return an upper bound of D(t), the largest e^t hockey stick of the coin and what follows, for every real t.

    Margins of neighbours are at most one apart, in either order, or there is no coin.
    """
    worst = hockey_stick_up(otherwise, t)  # (t,)
    for a, b in pairs_of(coin):
        stays, other = float(1 - a), float(1 - b)
        after_no = stays * hockey_stick_up(no, t - (math.log(stays) - math.log(other)) - _LOWER)
        if b == 0:
            after_yes: Array | float = float(a)
        elif a == 0:
            after_yes = 0.0
        else:
            after_yes = float(a) * hockey_stick_up(yes, t - math.log(float(a / b)) - _LOWER)
        worst = np.maximum(worst, (after_yes + after_no) * (1.0 + _SLACK))
    return np.minimum(worst, 1.0)


def pairs_of(coin: CoinTable) -> list[tuple[Fraction, Fraction]]:
    """Return the chances of *yes* on both sides, for margins at most one apart, in both orders."""
    chances = [Fraction(0), *(Fraction(numerator, 2**COIN_BITS) for numerator in coin.numerators)]
    steps = list(pairwise(chances))
    return [*steps, *((high, low) for low, high in steps), (chances[-1], chances[-1])]


class JointLedger(MuLedger):
    """What is left along the path of a call with a joint account: first up to the coin, then after its answer."""

    def __init__(self, budget: Budget, joint: JointAccount) -> None:
        if (joint.epsilon, joint.delta) != (budget.epsilon, budget.delta):
            raise RuntimeError("A joint account is for the budget that it was made for.")
        super().__init__(budget, joint.shares.whole)
        self.joint = joint.shares
        self._earlier: tuple[Part, ...] = ()
        self._earlier_shares: tuple[tuple[str, float], ...] = ()

    def toss(self) -> CoinTable:
        """Return the coin, if what was spent before it is what it was made for."""
        if self._earlier or self._spent * Fraction(self.mu) ** 2 > Fraction(self.joint.before) ** 2:
            raise RuntimeError("A joint account allows its coin once, after the steps that it was made for.")
        return self.joint.coin

    def answered(self, yes: bool) -> None:
        """Go on with what may follow that answer, whatever was left before."""
        self._earlier_shares, self._earlier = super().shares, (*self._steps, Part("test", 0.0, 0.0))
        self._mu, self._steps = (self.joint.yes if yes else self.joint.no), []
        self._spent = self._told = Fraction(0)

    def promise(self, vote: float = 0.0) -> NoReturn:
        """Refuse: there is no mu to promise."""
        raise RuntimeError("What a joint account promises does not compose in mu.")

    @property
    def shares(self) -> tuple[tuple[str, float], ...]:
        """Name and share of every step so far: of mu² without a test, and after one of what follows its answer."""
        return (*self._earlier_shares, *super().shares)

    def cost(self) -> PrivacyCost:
        """Return the price of the whole call, which has no mu; steps after the coin are told with theirs."""
        return PrivacyCost(self.budget.epsilon, self.budget.delta, NEIGHBOURS, (*self._earlier, *self._steps))
