"""From a Rényi divergence to (epsilon, delta), for mechanisms whose divergence has a closed form.

If the divergence of order alpha between neighbours is at most D(alpha) for every alpha > 1, the mechanism is
(epsilon, delta)-DP with (Canonne, Kamath, Steinke, 2020, proposition 12)

    log delta = (alpha - 1)(D(alpha) - epsilon) + alpha log(1 - 1/alpha) - log(alpha - 1),

whichever alpha one takes; so a finite list of orders is enough, and costs tightness only.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from privspan._lib.rounding import tighten
from privspan.baselines._common import Array
from privspan.privacy import Budget

ORDERS: Array = 1.0 + np.logspace(-3, 7, 1000)
_LOUDEST = 1e100  # a noise level that no table could be seen through: the budget cannot be reached
_ROUNDING = 2.0**-40  # relative to the terms: far more than the float64 operations below can be off


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
            raise ValueError(f"`delta` must be larger at epsilon = {budget.epsilon!r}; got {budget.delta!r}.")
    while passes(bad):
        good, bad = bad, bad / factor
    return tighten(passes, good, bad, tight)
