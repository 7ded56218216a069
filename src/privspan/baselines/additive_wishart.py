"""The additive Wishart mechanism (Sheffet 2019): A plus a Wishart matrix, at its exact privacy.

The paper proves its noise for epsilon below 1 with generous constants; for larger epsilon its formula is not private.
Here the hockey-stick divergence of the worst neighbours is computed, a double integral over the (2, 2) Wishart matrix
that the problem reduces to, and the scale of the noise is the smallest that it allows, for every epsilon.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from scipy.special import chdtr, chdtrc, gammaln

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.baselines._common import bartlett_factor, baseline, leading_subspace, open_table, second_moment
from privspan.baselines._renyi import least_level
from privspan.privacy import Budget, Release
from privspan.privacy.randomness import RandomLike

MOST_EXCESS = 2**18
"""Most degrees of freedom beyond d: SciPy's float64 chi-square tails are right up to here, and far off at 10^9."""

_QUADRATURE_SLACK = 1e-6  # relative, on delta; the trapezoidal rule below is off by far less
_REACH = 14.0  # standard deviations that the integral covers: what lies beyond is far below delta
_PEAK_NODES, _CROSS_NODES = 421, 31  # time: of the trapezoidal rule, within the slack above


@baseline
def additive_wishart(
    X: object, k: int, *, epsilon: float, delta: float, degrees: int | None = None, rng: RandomLike = None
) -> Release:
    """Add a Wishart matrix to the second moment and take its leading eigenvectors.

    Parameters
    ----------
    degrees : int, optional
        Degrees of freedom m of the noise, from d + 50 to d + 2^18.  The more, the closer to Gaussian noise.
        Default ``4 d + 28 log(4/delta) / min(1, epsilon)²``, the paper's or more, the second term at most 2^17.

    Returns
    -------
    Release
        Never abstains.  ``parameters["scale"]`` is the scale of the Wishart matrix, 1 in the paper.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k and `degrees` are
    public.  Numerical model: real arithmetic, rows of length exactly 0 or 1, and a quadrature with one part in a
    million to spare.  The sampler is a float64 one seeded with 256 secure bits and is not hardened against what
    floating point reveals.  Proof: docs/explanation/baselines.md, "Additive Wishart".
    """
    with open_table(X, k, epsilon=epsilon, delta=delta, rng=rng) as table:
        if degrees is None:
            spread = 28.0 * math.log(4.0 / table.budget.delta) / min(1.0, table.budget.epsilon) ** 2
            degrees = 4 * table.d + math.ceil(min(spread, 0.5 * MOST_EXCESS))
        checks.integer_at_least(table.d + 50, degrees=degrees)
        most = table.d + MOST_EXCESS
        if degrees > most:
            template = "{degrees} must be at most d + {most_excess}, here {most}; got {got!r}."
            raise ParameterError(template, most_excess=MOST_EXCESS, most=most, got=degrees)
        scale = wishart_scale(int(degrees) - table.d, table.budget)
        factor = table.run.draw(bartlett_factor, table.d, int(degrees))
        noisy = second_moment(table).matrix + scale * (factor @ factor.T)
        part = table.whole("second moment plus Wishart noise")
        found = leading_subspace(noisy, table.k)
        return table.release("additive_wishart", found, part, degrees=int(degrees), scale=scale)


@lru_cache(maxsize=256)  # of public numbers only
def wishart_scale(excess: int, budget: Budget) -> float:
    """Return the smallest scale of Wishart noise with d + `excess` degrees of freedom that stays in budget."""

    def passes(scale: float) -> bool:
        return wishart_delta(scale, excess, budget.epsilon) * (1.0 + _QUADRATURE_SLACK) <= budget.delta

    gaussian = 1.0 / (budget.mu * math.sqrt(excess))  # what Gaussian noise would need
    return least_level(passes, budget, gaussian, factor=1.5)


def wishart_delta(scale: float, excess: int, epsilon: float) -> float:
    """Return the exact delta at epsilon of Wishart noise with d + `excess` degrees, for rows of length 0 or 1."""
    return max(case(scale, excess, epsilon) for case in (_replaced, _appeared, _vanished))


def _replaced(scale: float, excess: int, epsilon: float) -> float:
    """Delta for two orthogonal unit rows: a 2 x 2 Wishart matrix K against K + diag(1, -1)."""
    degrees, exponent = excess + 2, 0.5 * (excess - 1)
    sd = math.sqrt(2.0 * degrees)
    peak = np.linspace(max(degrees - _REACH * sd, 1e-9), degrees + 2.0 * _REACH * sd, _PEAK_NODES)[:, None]  # a
    cross = np.linspace(0.0, 10.0, _CROSS_NODES)[None, :]  # c
    log_density = (0.5 * degrees - 1.0) * np.log(0.5 * peak) - 0.5 * peak - gammaln(0.5 * degrees) - math.log(2.0)
    weights = np.exp(log_density) * (peak[1, 0] - peak[0, 0])
    sides = np.exp(-0.5 * cross * cross) * math.sqrt(2.0 / math.pi) * cross[0, 1]
    sides[0, 0] *= 0.5

    def mass(sign: float, slope: float) -> float:
        """Return Pr[k11 - k22 + sign > slope det K] for K = scale * (Bartlett with a, c, b)."""
        edge = np.maximum((peak + sign / scale - cross * cross) / (1.0 + slope * scale * peak), 0.0)
        return float((weights * sides * chdtr(degrees - 1, edge)).sum())

    first = mass(1.0, -math.expm1(-epsilon / exponent))
    return max(0.0, first - math.exp(min(epsilon, 700.0)) * mass(-1.0, math.expm1(epsilon / exponent)))


def _appeared(scale: float, excess: int, epsilon: float) -> float:
    """Delta of a zero row replaced by a unit row, one way: k against k + 1, where k is scaled chi-square."""
    degrees, exponent = excess + 1, 0.5 * (excess - 1)
    log_ratio = (epsilon - 0.5 / scale) / exponent
    if log_ratio >= 0.0:
        return 0.0
    edge = math.exp(log_ratio) / -math.expm1(log_ratio)
    far = float(chdtrc(degrees, (edge + 1.0) / scale))
    return max(0.0, float(chdtrc(degrees, edge / scale)) - math.exp(min(epsilon, 700.0)) * far)


def _vanished(scale: float, excess: int, epsilon: float) -> float:
    """Delta of a zero row replaced by a unit row, the other way: k against k - 1."""
    degrees, exponent = excess + 1, 0.5 * (excess - 1)
    edge = -1.0 / math.expm1(-(epsilon + 0.5 / scale) / exponent)
    near = float(chdtr(degrees, max(0.0, edge - 1.0) / scale))
    return max(0.0, float(chdtr(degrees, edge / scale)) - math.exp(min(epsilon, 700.0)) * near)
