"""The exact delta of a mechanism whose privacy loss has moments in closed form.

With L the privacy loss of the worst pair of neighbours and M(s) = E exp(s L) its moments, which are exp(s D) for the
Rényi divergence D of order 1 + s, delta at epsilon is an integral along a vertical line in the complex plane:

    delta = E max(0, 1 - exp(epsilon - L)) = 1/(2 pi i) ∫ M(s) exp(-s epsilon) / (s (s + 1)) ds,   Re s = c > 0.

The sum of the trapezoidal rule is delta plus terms that are never negative, whatever the step; so it errs on the safe
side by itself, and only the end of the sum and float64 have to be charged.  Proof: docs/explanation/baselines.md,
lemma 9.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspan.baselines._common import Array
from privspan.baselines._renyi import least_level
from privspan.privacy import Budget

Complex = NDArray[np.complex128]
LogMoment: TypeAlias = Callable[[Complex], tuple[Complex, Array]]
"""From points s with Re s > 0 to log M(s), infinite where there is no moment, and the size of the terms that it is a
sum of.  Its real part falls along every vertical line from the real axis."""

_ABSCISSAS: Array = np.logspace(-3, 12, 300)  # where the line may cross the real axis; the bound holds for every one
_ALIAS = 20.0  # what the step adds is below e^-20 of the bound by moments
_FEW_NODES, _MOST_NODES = 2**6, 2**12  # time: of a sum whose end is bounded
_TAIL = 1e-9  # relative: when the end of the sum is below it, or has most nodes, its bound is charged
_ROUNDING = 2.0**-42  # rounding, relative to the terms in an exponent: 2048 of them, far more than there are
NEAREST_POLE = 2.0**-10
"""Moments are not used closer than this to where they end: there float64 loses digits."""


def log_loss_delta(log_moment: LogMoment, epsilon: float, enough: float = -math.inf) -> float:
    """Return the log of delta at epsilon, rounded up; relatively it is off by about 1e-8 where moments fall fast.

    Where a plain bound by moments shows that it is at most `enough`, that is returned in its place.
    """
    heights = log_moment(_ABSCISSAS.astype(complex))[0].real
    usable = np.isfinite(heights)
    line = _ABSCISSAS[usable]
    bound = heights[usable] - line * epsilon - np.log(line) - np.log1p(line)  # log of the integrand at Re s
    if len(line) < 2:
        return 0.0
    plain = bound + np.log(line) - line * np.log1p(1.0 / line)  # Canonne, Kamath, Steinke 2020, proposition 12
    if float(plain.min()) + _TAIL <= enough:
        return enough
    best = int(np.argmin(bound))
    c, peak = float(line[best]), float(bound[best])
    step = math.tau / _period(line, bound, best)
    nodes = _FEW_NODES
    while True:
        total, tail, slack = _trapezoid(log_moment, epsilon, c, peak, step * np.arange(nodes + 1.0))
        if tail <= _TAIL * total or nodes >= _MOST_NODES:
            return min(0.0, peak + math.log(max(total, 0.0) + tail + slack) + _TAIL)
        nodes *= 4


def _period(line: Array, bound: Array, best: int) -> float:
    """Return how far apart the copies are that the step adds, such that their Chernoff bounds are small."""
    away = np.abs(line - line[best])
    away[best] = 1.0
    periods = (bound - bound[best] + _ALIAS) / away
    sides = periods[:best], periods[best + 1 :]
    return float(max(side.min() for side in sides if len(side)))


def _trapezoid(
    log_moment: LogMoment, epsilon: float, c: float, peak: float, heights: Array
) -> tuple[float, float, float]:
    """Return the sum up to the last height, a bound on what follows, and one on rounding, all over exp(peak)."""
    s: Complex = np.asarray(c + 1j * heights, dtype=np.complex128)
    exponent, terms = log_moment(s)
    values = np.exp(exponent - s * epsilon - peak) / (s * (s + 1.0)) * (heights[1] / math.pi)
    values[0] *= 0.5  # the others are there twice, above the real axis and below
    tail = math.exp(float(exponent[-1].real) - c * epsilon - peak) / (math.pi * heights[-1])  # of 1 / |s|²
    slack = _ROUNDING * float(np.abs(values) @ (1.0 + terms + np.abs(s) * epsilon + abs(peak)))
    return float(values.real.sum()), tail, slack


def log_plus_one(z: Complex) -> Complex:
    """Return log(1 + z) for complex z, accurate for small ones; 1 + Re z is positive where Im z is zero."""
    x, y = z.real, z.imag
    return np.asarray(0.5 * np.log1p(2.0 * x + x * x + y * y) + 1j * np.arctan2(y, 1.0 + x))


def covariance_moment(ridge: float, draws: int) -> LogMoment:
    """Return the moments of the loss of `draws` normal vectors with covariance A + ridge I, on the worst neighbours.

    The same for the inverse covariance.  Proof: docs/explanation/baselines.md, lemma 5.
    """
    t = 1.0 / ridge

    def log_moment(s: Complex) -> tuple[Complex, Array]:
        exists = s.real * t < 1.0 - NEAREST_POLE
        value = -0.5 * draws * log_plus_one(np.where(exists, -(t * t / (1.0 + t)) * s * (s + 1.0), 0.0))
        return np.where(exists, value, np.inf), np.abs(value)

    return log_moment


@lru_cache(maxsize=256)  # of public numbers only
def covariance_ridge(draws: int, budget: Budget) -> float:
    """Return the smallest ridge for which `draws` normal vectors with covariance A + ridge I stay in budget."""
    target = math.log(budget.delta) - 1e-12

    def passes(ridge: float) -> bool:
        return log_loss_delta(covariance_moment(ridge, draws), budget.epsilon) <= target

    return least_level(passes, budget, 1.0 + math.sqrt(draws) / budget.mu)
