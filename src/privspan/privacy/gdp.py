r"""Gaussian differential privacy: (epsilon, delta) to mu and back, rounded in the safe direction.

A mechanism is mu-GDP when telling two neighbours apart from its output is at least as hard as telling N(0, 1) from
N(mu, 1).  Gaussian noise of standard deviation sigma on a sum of l2 sensitivity Delta is mu-GDP with mu = Delta /
sigma, several of them compose to the root of the sum of the squares, and mu-GDP is (epsilon, delta)-DP if and only if

.. math::

    \delta \ge \delta(\mu, \varepsilon)
             = \Phi(-\varepsilon/\mu + \mu/2) - e^{\varepsilon}\, \Phi(-\varepsilon/\mu - \mu/2).

(Balle and Wang, *Improving the Gaussian mechanism*, 2018, theorem 8; Dong, Roth and Su, *Gaussian
differential privacy*, 2022, corollary 1.)

The two terms agree in most digits when mu is small.  With :math:`a, b = \varepsilon/\mu \mp \mu/2` and
Mills' ratio :math:`M(x) = \Phi(-x)/\varphi(x)` the same number is :math:`\varphi(a)\,(M(a) - M(b)) =
\varphi(a)\int_a^b (1 - x M(x))\,dx`, an integral of a positive function, which is what is evaluated.  Error
bound and rounding directions: docs/explanation/accounting.md.

Every function takes floats: a positive mu, a delta strictly between 0 and 1, and an epsilon that is positive in a
budget, and zero or above elsewhere.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfcx, erfinv, ndtr, ndtri_exp

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan._lib.rounding import down, least_passing, sqrt_down, sqrt_up, tighten

# The evaluation of log delta(mu, epsilon) is off by less than 2e-11 (proved in the note, and checked against
# high precision in the tests); five times that is added before anything is promised.
_SLACK = 1e-10

_LOG_SQRT_TAU = 0.5 * math.log(math.tau)  # of the density of the exact normal law
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(12)  # on [-1, 1]: error in docs/explanation/accounting.md
_VANISHING = 39.0  # float64: the normal tail beyond it is below the smallest positive one

MOST_JOINT_MU = 1.0
"""The largest mu of `hockey_stick_up`."""
_STICK_SLACK = 1e-9  # rounding: added to a logarithm that is off by less than 1e-10


def delta_from_mu(mu: float, epsilon: float) -> float:
    """Return the smallest delta such that mu-GDP implies (epsilon, delta)-DP, rounded up.

    It is at least the exact value, and at most 2e-10 of it above.

    Examples
    --------
    >>> print(f"{delta_from_mu(1.0, 1.0):.6f}")
    0.126937
    """
    checks.positive(mu=mu)
    checks.non_negative(epsilon=epsilon)
    log_delta = _log_delta(float(mu), float(epsilon))
    # One float up: exp may round down, visibly so where the result is subnormal or zero.
    return min(1.0, math.nextafter(math.exp(log_delta + _SLACK), math.inf))


def mu_from_budget(epsilon: float, delta: float) -> float:
    """Return the largest mu such that mu-GDP implies (epsilon, delta)-DP, rounded down.

    The noise for a sum of l2 sensitivity Delta is then sigma = Delta / mu.  The mu is safe as a real number: it
    passed ``delta_from_mu(mu, epsilon) <= delta``.

    Examples
    --------
    >>> print(f"{1 / mu_from_budget(1.0, 1e-6):.4f}")
    4.2247
    """
    checks.budget(epsilon, delta)
    return _largest_mu(epsilon, delta)


@lru_cache(maxsize=256)  # of public numbers only; one budget is spent again and again
def _largest_mu(epsilon: float, delta: float) -> float:
    def passes(mu: float) -> bool:
        return delta_from_mu(mu, epsilon) <= delta

    # mu = delta always passes: delta(mu, epsilon) <= delta(mu, 0) <= mu / sqrt(2 pi) < mu.
    good, bad = float(delta), 1.0
    while passes(bad):
        good, bad = bad, 2.0 * bad
    return tighten(passes, good, bad)


def epsilon_from_mu(mu: float, delta: float) -> float:
    """Return the smallest epsilon such that mu-GDP implies (epsilon, delta)-DP, rounded up.

    It is zero or above, and infinite only where the exact value overflows.
    """
    checks.positive(mu=mu)
    checks.probability(delta=delta)
    return _least_epsilon(mu, delta)


@lru_cache(maxsize=256)
def _least_epsilon(mu: float, delta: float) -> float:
    return least_passing(lambda epsilon: delta_from_mu(mu, epsilon) <= delta)


def mu_from_epsilon(epsilon: float) -> float:
    """Return the smallest mu such that (epsilon, 0)-DP implies mu-GDP, 2 Φ⁻¹(e^ε / (1 + e^ε)), rounded up.

    So what is (epsilon, delta)-DP and not known to be Gaussian is (mu, delta)-approximate GDP, and composes with what
    is.  It is at most 2e-10 of the exact value above.  Proof: docs/explanation/pots.md.

    Examples
    --------
    >>> print(f"{mu_from_epsilon(1.0):.4f}")
    1.2320
    """
    checks.non_negative(epsilon=epsilon)
    epsilon = float(epsilon)
    if epsilon < 1.0:  # near one half the inverse of Φ would cancel
        mu = 2.0 * math.sqrt(2.0) * float(erfinv(math.tanh(epsilon / 2.0)))
    else:
        mu = -2.0 * float(ndtri_exp(-np.logaddexp(0.0, epsilon)))
    return mu * (1.0 + _SLACK)


def compose_mu(*mus: float) -> float:
    """Return the mu of several Gaussian steps on the same data, the root of the sum of squares, rounded up.

    Examples
    --------
    >>> compose_mu(3.0, 4.0)
    5.0
    """
    if not mus:
        raise ParameterError("{mus} must hold at least one mu; got none.")
    square = Fraction(0)
    for mu in mus:
        checks.positive(mu=mu)
        square += Fraction(float(mu)) ** 2
    return sqrt_up(square)


def share_mu(mu: float, *weights: float) -> tuple[float, ...]:
    """Share mu out among several Gaussian steps, squares in proportion to `weights`, rounded down.

    Returns
    -------
    tuple of float
        One mu per weight; the sum of their squares never exceeds mu squared, as real numbers.

    Examples
    --------
    >>> share_mu(1.0, 16.0, 9.0)
    (0.8, 0.6)
    """
    checks.positive(mu=mu)
    if not weights:
        raise ParameterError("{weights} must hold at least one weight; got none.")
    square, total = Fraction(float(mu)) ** 2, Fraction(0)
    for weight in weights:
        checks.positive(weights=weight)
        total += Fraction(float(weight))
    mus = []
    for weight in weights:
        mus.append(sqrt_down(square * Fraction(float(weight)) / total))
    return tuple(mus)


def hockey_stick_up(mu: float, t: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the e^t hockey stick of N(mu, 1) and N(0, 1) for every real t and mu from 0 to 1, rounded up.

    For t >= 0 it is delta_from_mu(mu, t); negative t are reflected, 1 - e^t + e^t delta(mu, -t), without
    cancellation.  It is at least the exact value, and at most 4e-9 of it above, but for numbers below the least
    positive float.
    Proof: docs/explanation/accounting.md.
    """
    below = -np.expm1(np.minimum(t, 0.0)) * (1.0 + _STICK_SLACK)  # 1 - e^t
    if mu == 0.0:
        return below
    near = np.minimum(np.abs(t) / mu - mu / 2.0, 2.0 * _VANISHING)
    points = near[..., None] + mu * (0.5 + 0.5 * _NODES)  # (t, 12)
    slopes = (1.0 - points * _mills(points)) @ _WEIGHTS
    logs = -0.5 * near * near - _LOG_SQRT_TAU + math.log(mu) + np.log(0.5 * slopes)
    right = np.where(near > _VANISHING, 0.0, np.exp(logs + _STICK_SLACK)) + 5e-324
    return np.where(t >= 0.0, right, below + np.exp(np.minimum(t, 0.0)) * right * (1.0 + _STICK_SLACK))


def _log_delta(mu: float, epsilon: float) -> float:
    """Return log delta(mu, epsilon) to within 2e-11, or an upper bound of it below log 5e-324."""
    exact_mu = Fraction(mu)
    near = down(Fraction(epsilon) / exact_mu - exact_mu / 2)  # a, correctly rounded: eps/mu may cancel mu/2
    far = down(Fraction(epsilon) / exact_mu + exact_mu / 2)  # b
    log_density = -0.5 * near * near - _LOG_SQRT_TAU  # log phi(a)
    if near > _VANISHING:
        return -0.5 * near * near  # Phi(-a) < exp(-a^2 / 2) for a > 0
    if mu <= 1.0:
        points = near + mu * (0.5 + 0.5 * _NODES)  # (12,) in [a, b]
        slopes = 1.0 - points * _mills(points)  # -M'(x) > 0
        return log_density + math.log(mu) + math.log(0.5 * float(_WEIGHTS @ slopes))
    if near > 0.0:
        return log_density + math.log(float(_mills(near) - _mills(far)))
    return math.log(float(ndtr(-near)) - math.exp(log_density) * float(_mills(far)))


def _mills(x: float | np.ndarray) -> float | np.ndarray:
    """Return Mills' ratio (1 - Phi(x)) / phi(x)."""
    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))
