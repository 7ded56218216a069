r"""Zero-concentrated differential privacy: rho to (epsilon, delta) and back, rounded in the safe direction.

A mechanism is rho-zCDP when its Renyi divergence of every order alpha > 1 between neighbours is at most
alpha * rho.  It is then (epsilon, delta)-DP for

.. math::

    \delta = \inf_{\alpha > 1}
             \frac{e^{(\alpha - 1)(\alpha\rho - \varepsilon)}}{\alpha - 1}
             \left(1 - \frac1\alpha\right)^{\alpha}

(Canonne, Kamath and Steinke, *The discrete Gaussian for differential privacy*, 2020, corollary 13).  The
bound holds for **every** alpha, so a search that stops early costs accuracy, never privacy.  With beta =
alpha - 1 its logarithm is :math:`\beta((1+\beta)\rho - \varepsilon) - \beta\log(1 + 1/\beta) - \log(1 +
\beta)`, convex in beta. Error bound and rounding directions: docs/explanation/accounting.md.
"""

from __future__ import annotations

import math
from functools import lru_cache

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan._lib.rounding import tighten

_ROUNDING = 2.0**-48  # the terms of the log bound carry at most 5 roundings of 2**-53 each; this covers 32
_SMALLEST = 1e-300  # searches end here: below it the terms of the bound lose their relative accuracy


def delta_from_rho(rho: float, epsilon: float) -> float:
    """Return a delta such that rho-zCDP implies (epsilon, delta)-DP, rounded up.

    Rho is positive, epsilon zero or above.

    Examples
    --------
    >>> print(f"{delta_from_rho(0.1, 2.0):.2e}")
    4.33e-06
    """
    checks.positive(rho=rho)
    checks.non_negative(epsilon=epsilon)
    log_delta = _log_bound(_best_beta(float(rho), float(epsilon)), float(rho), float(epsilon))
    return min(1.0, math.nextafter(math.exp(min(log_delta, 0.0)), math.inf))


def rho_from_budget(epsilon: float, delta: float) -> float:
    """Return the largest rho such that the bound gives (epsilon, delta)-DP, rounded down.

    The rho is safe as a real number: it passed ``delta_from_rho(rho, epsilon) <= delta``.  Epsilon is positive and
    delta strictly between 0 and 1; ``ValueError`` when both are so small that rho would be below 1e-300.
    """
    checks.budget(epsilon, delta)
    return _largest_rho(epsilon, delta)


@lru_cache(maxsize=256)  # of public numbers only
def _largest_rho(epsilon: float, delta: float) -> float:
    def passes(rho: float) -> bool:
        return delta_from_rho(rho, epsilon) <= delta

    good = bad = 1.0
    while not passes(good):
        good, bad = good / 2, good
        if good < _SMALLEST:
            template = "{delta} must be larger at epsilon = {epsilon!r} (rho underflows); got {got!r}."
            raise ParameterError(template, epsilon=epsilon, got=delta)
    while passes(bad):
        good, bad = bad, 2 * bad
    return tighten(passes, good, bad)


def _log_bound(beta: float, rho: float, epsilon: float) -> float:
    """Return the log of the bound at order 1 + beta, rounded up."""
    terms = (beta * (1 + beta) * rho, -beta * epsilon, -beta * math.log1p(1 / beta), -math.log1p(beta))
    total = math.fsum(terms) + _ROUNDING * math.fsum(abs(term) for term in terms)
    return total if not math.isnan(total) else math.inf  # overflow: no claim


def _best_beta(rho: float, epsilon: float) -> float:
    """Return the order, less one, where the convex log bound is least (to float accuracy)."""

    def rises(beta: float) -> bool:
        return (1 + 2 * beta) * rho - epsilon > math.log1p(1 / beta)

    low = high = 1.0
    while not rises(high) and high < 1e150:
        low, high = high, 2 * high
    while rises(low) and low > 1e-150:
        low, high = low / 2, low
    return tighten(rises, high, low)
