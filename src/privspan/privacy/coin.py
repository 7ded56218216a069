"""The coin and the gauge of stable leverage: a private test of a margin, and a random rotation of a basis.

Proofs: ``docs/explanation/stable-leverage.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.special import ndtr, ndtri

from privspan._lib.errors import ParameterError
from privspan._lib.rounding import UNIT_ROUNDOFF
from privspan.privacy.noise import grid_for, rounded_normal, rounding_charge
from privspan.privacy.randomness import BitSource

Array = NDArray[np.float64]

COIN_BITS = 96
"""Chances are whole multiples of two to minus this."""

USUAL_SCORE = 2.0
"""Plans are made for data that go on with a chance of about Φ of it."""

_HIGHEST_SCORE = 3.0  # the largest chance is Φ(3): float64 holds both tails; stable-leverage.md, step 5
_SCORE_SLACK = 1e-9  # rounding of a score
_ROTATION_SCALE = 2.0**54  # grid of a rotation: its rounding is charged


@dataclass(frozen=True)
class GaussianCoin:
    """A coin that costs mu: it goes on with probability Φ(Φ⁻¹(delta) + (margin − 1) mu), at most Φ(3).

    Guarantee
    ---------
    mu-GDP between neighbours whose margins are both at least 1 and differ by at most 1; yes with probability at most
    delta at margin 1. Proof: ``docs/explanation/stable-leverage.md``.
    """

    mu: float
    delta: float  # the chance at margin 1: that of going on where a neighbour never would

    def numerator(self, margin: int) -> int:
        """Return the chance at that margin, 1 or more, in units of 2**-COIN_BITS."""
        first = float(ndtri(self.delta)) - _SCORE_SLACK
        score = min(first + (margin - 1) * self.mu * (1 - _SCORE_SLACK), _HIGHEST_SCORE)
        return int(ndtr(score) * 2.0**COIN_BITS)

    def margins(self, usual: float = USUAL_SCORE) -> tuple[int, int]:
        """Return margins at which it goes on with probability Φ(usual) and Φ(3)."""
        first = float(ndtri(self.delta))
        target, highest = (1 + math.ceil((score - first) / self.mu) for score in (usual, _HIGHEST_SCORE))
        return target, highest


@dataclass(frozen=True)
class CoinTable:
    """A coin with these chances at the margins 1, 2, …, in units of 2**-COIN_BITS; the last holds beyond.

    What it costs is said by `privspan.privacy.joint`, together with what follows.
    """

    numerators: tuple[int, ...]

    def __post_init__(self) -> None:
        numbers = self.numerators
        rising = all(low <= high for low, high in pairwise(numbers))
        if not (numbers and rising and numbers[0] > 0 and numbers[-1] < 2**COIN_BITS):
            raise ParameterError("{numerators} must be probabilities between 0 and 1 that do not decrease.")

    @property
    def delta(self) -> float:
        """The chance at margin 1."""
        return float(Fraction(self.numerators[0], 2**COIN_BITS))

    def numerator(self, margin: int) -> int:
        """Return the chance at that margin, in units of 2**-COIN_BITS."""
        return self.numerators[min(margin, len(self.numerators)) - 1]

    def margins(self, usual: float = USUAL_SCORE) -> tuple[int, int]:
        """Return margins at which it goes on with probability about Φ(usual), and with the largest."""
        chance = min(self.numerators[-1], int(ndtr(usual) * 2.0**COIN_BITS))
        return 1 + next(i for i, one in enumerate(self.numerators) if one >= chance), len(self.numerators)


Coin: TypeAlias = GaussianCoin | CoinTable
"""Says with which chance a test goes on."""


def goes_on(margin: int, coin: Coin, bits: BitSource) -> bool:
    """Say yes with the chance that the coin has at this margin, never at margin 0.

    Guarantee
    ---------
    That of the coin, between neighbours whose margins differ by at most 1.
    Proof: ``docs/explanation/stable-leverage.md``.
    """
    return margin >= 1 and bits.bernoulli(coin.numerator(margin), COIN_BITS)


def random_rotation(k: int, failure: float, bits: BitSource) -> tuple[Array, float]:
    """Draw an orthogonal matrix, within the returned Frobenius distance of a Haar one but for that failure chance.

    A product of reflections that carry a basis vector to a uniform point of spheres of dimension k − 1, …, 0
    (Stewart 1980). The normals behind the points are known to 2⁻⁵⁵, so only points near the origin are doubtful.
    """
    rotation = np.array([[1.0 if bits.bernoulli(1, 1) else -1.0]])
    for size in range(2, k + 1):
        point = rounded_normal(size, _ROTATION_SCALE, bits) / _ROTATION_SCALE
        length = float(np.linalg.norm(point))
        point = point / length if length > 0 else np.eye(size)[0]
        mirror, sign = point.copy(), (1.0 if point[0] >= 0 else -1.0)
        mirror[0] += sign  # away from cancellation
        carrier = -sign * (np.eye(size) - 2 * np.outer(mirror, mirror) / (mirror @ mirror))  # e₁ to the point
        rotation = carrier @ block_diag([[1.0]], rotation)
    nearest = np.sqrt(2 * failure / k)  # P(a point of dimension >= 2 is nearer to the origin) <= nearest² / 2
    return rotation, float(8 * k**1.5 * 2.0**-55 / nearest + 100 * k**2.5 * UNIT_ROUNDOFF)


def basis_level(entries: int, shift: float, mu: float) -> tuple[float, float]:
    """Return the noise for a basis that moves by at most `shift`, and a grid on which rounding costs little."""
    grid = grid_for(shift / mu) / 16
    return float((shift + rounding_charge(entries, grid)) / mu * (1 + 1e-12)), grid
