"""What a coin and the noise around it cost together, to 50 digits and from below: an oracle for the joint account.

Nothing here is shared with `privspan.privacy.joint`: normal laws are mpmath's, the pairs of chances are written out,
and the mean over the first steps is bounded by Jensen's inequality on cells, where the account uses chords.
"""

from __future__ import annotations

from itertools import pairwise, product

import mpmath
import numpy as np
from mpmath import mpf

from privspan.privacy.coin import COIN_BITS, CoinTable
from privspan.privacy.joint import JointShares

DIGITS = 50
_CELLS, _REACH = 240, 12


def stick(mu, t):
    """Hockey stick of N(mu, 1) and N(0, 1)."""
    if mu == 0:
        return max(mpf(0), 1 - mpmath.exp(t))
    return mpmath.ncdf(-t / mu + mu / 2) - mpmath.exp(t) * mpmath.ncdf(-t / mu - mu / 2)


def pair_stick(a, b, yes, no, t):
    """Hockey stick of a coin that says yes with chance a or b, and of what follows."""
    after_yes = a * (stick(yes, t - mpmath.log(a / b)) if a and b else 1)  # if b is 0 it is all there is
    return after_yes + (1 - a) * stick(no, t - mpmath.log((1 - a) / (1 - b)))


def chances(coin: CoinTable) -> list[mpf]:
    """Chances at margins 0, 1, 2, … and once more beyond the table."""
    return [mpf(0), *(mpf(one) / mpf(2) ** COIN_BITS for one in (*coin.numerators, coin.numerators[-1]))]


def worst_stick(shares: JointShares, t):
    """The largest over all margins of two tables, at most one apart, and over a course without a coin."""
    known = chances(shares.coin)
    near = [(i, j) for i, j in product(range(len(known)), repeat=2) if abs(i - j) <= 1]
    sticks = [pair_stick(known[i], known[j], mpf(shares.yes), mpf(shares.no), t) for i, j in near]
    return max(*sticks, stick(mpf(shares.otherwise), t))


def delta_from_below(epsilon: float, shares: JointShares):
    """A lower bound of the delta of the whole, off by a few parts in 100,000."""
    with mpmath.workdps(DIGITS):
        before, edges = mpf(shares.before), [mpf(z) for z in np.linspace(-_REACH, _REACH, _CELLS + 1)]
        edges = [mpf("-inf"), *edges, mpf("inf")]
        total = mpf(0)
        for low, high in pairwise(edges):
            # Of the first steps: the mass of a cell on either table, and so its mean likelihood ratio.
            other = between(low, high)
            own = between(low - before, high - before)
            if other > 0 and own > 0:
                ratio = own / other
                total += own * worst_stick(shares, mpf(epsilon) - mpmath.log(ratio))
        return total + mpf(shares.rotation)


def between(low, high):
    """Mass of a normal variable, without cancellation in either tail."""
    return mpmath.ncdf(high) - mpmath.ncdf(low) if high <= 0 else mpmath.ncdf(-low) - mpmath.ncdf(-high)


def random_shares(seed: int) -> tuple[float, JointShares]:
    """An epsilon, and shares with a coin of a few margins: small and large chances, with and without what follows."""
    rng = np.random.default_rng(seed)
    epsilon = float(rng.choice([0.0, 0.1, 0.5, 1.0, 3.0]))
    first = 10.0 ** rng.uniform(-9, -0.3)
    odds = np.log(first / (1 - first)) + np.concatenate([[0.0], np.cumsum(rng.uniform(0, 2, rng.integers(0, 4)))])
    coin = CoinTable(tuple(int(2.0**COIN_BITS / (1 + np.exp(-one))) for one in odds))
    before, yes, no, otherwise = (float(mu) for mu in rng.uniform(0.02, 1.0, 4))
    no, otherwise = no * float(rng.integers(2)), otherwise * float(rng.integers(2))
    return epsilon, JointShares(before, yes, no, otherwise, coin, float(rng.choice([0.0, 1e-3, 1e-7])))
