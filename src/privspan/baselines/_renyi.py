"""From a Rényi divergence to (epsilon, delta), for mechanisms whose divergence has a closed form.

If the divergence of order alpha between neighbours is at most D(alpha) for every alpha > 1, the mechanism is
(epsilon, delta)-DP with (Canonne, Kamath, Steinke, 2020, proposition 12)

    log delta = (alpha - 1)(D(alpha) - epsilon) + alpha log(1 - 1/alpha) - log(alpha - 1),

whichever alpha one takes; so a finite list of orders is enough, and costs tightness only.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from privspan._lib.errors import ParameterError
from privspan._lib.rounding import down, tighten
from privspan.baselines._common import Array
from privspan.privacy import Budget

ORDERS: Array = 1.0 + np.logspace(-3, 7, 1000)  # the bound holds for any list
_LOUDEST = 1e100  # a bound of the search: a noise level that no table could be seen through
_ROUNDING = 2.0**-40  # relative to the terms: far more than the float64 operations below can be off
_LEAST_WEIGHT = 2.0**-40  # less counts as so much: exp(-weight) must be below 1 in float64
_MOST_EXPONENT = 600.0  # below the largest that float64 can raise e to


def log_delta(divergence: Array, epsilon: float) -> float:
    """Return the log of a valid delta, from the divergences at `ORDERS` (infinite where there is none)."""
    finite = np.isfinite(divergence)
    if not finite.any():
        return 0.0
    beta, divergence = ORDERS[finite] - 1.0, divergence[finite]
    terms = np.stack([beta * divergence, -beta * epsilon, -beta * np.log1p(1.0 / beta), -np.log1p(beta)])
    return min(0.0, float((terms.sum(axis=0) + _ROUNDING * np.abs(terms).sum(axis=0)).min()))


def least_level(
    passes: Callable[[float], bool], budget: Budget, start: float, factor: float = 2.0, tight: float = 2.0**-50
) -> float:
    """Return the smallest noise level that passes, by steps of `factor` from a first guess and then by bisection.

    The level that is returned has passed the test itself, and is within a relative `tight` of one that has not.
    """
    good = bad = start
    while not passes(good):
        good, bad = factor * good, good
        if good > _LOUDEST:
            template = "{delta} must be larger at epsilon = {epsilon!r}; got {got!r}."
            raise ParameterError(template, epsilon=budget.epsilon, got=budget.delta)
    while passes(bad):
        good, bad = bad, bad / factor
    return tighten(passes, good, bad, tight)


def draws_divergence(weight: float, draws: int) -> Array:
    """Bound the divergence of orthonormal vectors, each drawn with density exp(weight uᵀ A u) beside those before it.

    The worst laws put each vector on the old row, on the new row or beside both, and a row that was hit has no say in
    later draws; so a recursion over the rows that are left bounds all. Proof: docs/explanation/baselines.md, lemma 7.
    """
    excess = ORDERS - 1.0
    valid = np.maximum(excess, 1.0) * weight * (draws + 1) < _MOST_EXPONENT
    weight = min(max(weight, _LEAST_WEIGHT), _MOST_EXPONENT)
    powers = np.where(valid, excess, 0.0)
    gain = np.exp(np.where(valid, excess * weight, 0.0))
    fall, rise = math.exp(-weight), math.exp(weight)
    both = old = new = np.ones_like(ORDERS)  # moments of the loss to come while both rows, or only one, can be hit
    for _ in range(draws):
        beside, on_old, on_new = (1.0, both), (fall, gain * new), (rise, old / gain)
        pairs = (beside, on_old), (beside, on_new), (on_old, on_new)
        both = np.max([_best_mixture(powers, *pair) for pair in pairs], axis=0)
        old, new = (
            _best_mixture(powers, (1.0, left), hit) for left, hit in ((old, (fall, gain)), (new, (rise, 1.0 / gain)))
        )
    rounding = draws * _ROUNDING * (1.0 + 2.0**-8 * powers)  # a relative error is raised to the power
    return np.where(valid, (np.log(both) + rounding) / excess, np.inf)


def _best_mixture(powers: Array, first: tuple[float, Array], second: tuple[float, Array]) -> Array:
    """Return the largest x^power y over the points (x, y) between two points, of which the log is concave."""
    (x, y), (to_x, to_y) = first, second
    dx, dy = to_x - x, to_y - y
    opposed = dx * np.sign(dy) < 0.0
    inside = -(powers * y / np.where(opposed, dy, 1.0) + x / dx) / (1.0 + powers)
    share = np.where(opposed, np.clip(inside, 0.0, 1.0), dx > 0.0)  # both rise the same way: the upper end
    return np.asarray((x + share * dx) ** powers * (y + share * dy))


def laplace_divergence(shift: float) -> Array:
    """Return the divergence of Laplace noise when a number moves by `shift` times its scale (Mironov, 2017)."""
    tail = (ORDERS - 1.0) * np.exp(-(2.0 * ORDERS - 1.0) * shift)
    return shift + np.log((ORDERS + tail) / (2.0 * ORDERS - 1.0)) / (ORDERS - 1.0)


@lru_cache(maxsize=256)  # of public numbers only
def draw_epsilon(draws: int, budget: Budget, eigenvalues: int = 0, eigenvalue_epsilon: float = 0.0) -> float:
    """Return the largest e such that vectors drawn with weight e/2 stay in budget: the better of two bounds.

    The loss of all draws is at most (draws + 1) e/2; and their divergence is known.  Before them, so many of the
    leading eigenvalues may have got Laplace noise that costs `eigenvalue_epsilon`: of those at most two move by 1.
    """
    plain = down(2 * (Fraction(budget.epsilon) - Fraction(eigenvalue_epsilon)) / (draws + 1))
    moving = min(2, eigenvalues)
    before = moving * laplace_divergence(eigenvalue_epsilon / moving) if moving else np.zeros_like(ORDERS)
    target = math.log(budget.delta) - 1e-12

    def passes(step: float) -> bool:
        return log_delta(draws_divergence(0.5 * step, draws) + before, budget.epsilon) <= target

    step = max(plain, 2.0 * _LEAST_WEIGHT)
    if not passes(step):
        return plain
    above = 2.0 * step
    while passes(above):
        above *= 2.0
    return tighten(passes, step, above)
