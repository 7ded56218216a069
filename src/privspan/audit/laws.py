"""Exact laws of steps that are not Gaussian, on two tables side by side, and what they tell of a table together.

A `Cells` is a pair of arrays: with which chance the outcome of a step falls into each of finitely many cells, on the
first table and on the second. Cells that merge outcomes can only hide something, so an epsilon computed from them
is never too large. Independent steps multiply.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.linalg import eigvalsh
from scipy.special import log_ndtr, ndtr

from privspan._lib.errors import ParameterError

Array = NDArray[np.float64]
Cells: TypeAlias = tuple[Array, Array]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(64)
_DIRECTIONS = 720  # cells of the half circle, with points inside each
_POINTS = 64
_SPLIT = 64  # cells between two centres of Laplace noise
_SPREAD = 400  # cells of a chi-square
_FAR = 1e-13  # mass that is left to the outermost of them
_MOST_EPSILON = 1e4


def flipped_law(scores: Sequence[int], epsilon: float) -> Array:
    """Return the chance of every candidate of permute-and-flip.

    A random order is that of independent uniform times of arrival: candidate i comes at time t, is taken with chance
    f(i) = exp(-epsilon (best - score) / 2), and nobody was taken before with chance prod over j of (1 - t f(j)).

    Examples
    --------
    >>> [round(float(chance), 6) for chance in flipped_law([4, 3], 2.0)]  # exp(-1) / 2 for the second
    [0.81606, 0.18394]
    """
    taken = np.exp(-0.5 * epsilon * (max(scores) - np.asarray(scores, dtype=np.float64)))  # f, (m,)
    left = 1.0 - (0.5 + 0.5 * _NODES[:, None]) * taken  # (nodes, m), positive
    alone = 0.5 * (_WEIGHTS * np.prod(left, axis=1)) @ (1.0 / left)  # the product over all others, (m,)
    return np.asarray(taken * alone)


def direction_cells(first: Array, second: Array, weight: float) -> Cells:
    """Return the law of a direction in the plane with density exp(weight uᵀ A u), for the matrices of both tables."""
    if len(first) != 2:
        raise ParameterError("directions are compared in the plane only; got dimension {d}.", d=len(first))
    angles = (np.arange(_DIRECTIONS * _POINTS) + 0.5) * (math.pi / (_DIRECTIONS * _POINTS))
    points = np.stack([np.cos(angles), np.sin(angles)])  # (2, points)

    def law(matrix: Array) -> Array:
        exponent = weight * np.einsum("ip,ij,jp->p", points, matrix, points)
        density = np.exp(exponent - exponent.max())
        return np.asarray((density / density.sum()).reshape(_DIRECTIONS, _POINTS).sum(axis=1))

    return law(first), law(second)


def laplace_cells(first: float, second: float, scale: float) -> Cells:
    """Return the law of a number with Laplace noise: below both numbers, between them in many cells, above both."""
    edges = np.linspace(min(first, second), max(first, second), _SPLIT + 1)
    laws = [np.diff(stats.laplace.cdf(edges, centre, scale), prepend=0.0, append=1.0) for centre in (first, second)]
    return laws[0], laws[1]


def covariance_cells(first: Array, second: Array, draws: int) -> list[Cells]:
    """Return the laws that tell `draws` normal vectors with the one covariance from those with the other.

    Where both are diagonal, which they can be made, every coordinate has a sum of squares of its own that tells all:
    a chi-square, in units of the first variance on the first table and of the second on the second.
    """
    return [_chi_square_cells(float(ratio), draws) for ratio in eigvalsh(second, first)]


def _chi_square_cells(ratio: float, degrees: int) -> Cells:
    law = stats.chi2(degrees)
    ends = law.ppf(_FAR) * min(1.0, ratio), law.isf(_FAR) * max(1.0, ratio)
    edges = np.linspace(*ends, _SPREAD - 1)

    def chances(edges: Array) -> Array:
        below, above = law.cdf(edges), law.sf(edges)
        inside = np.where(below[1:] < 0.5, np.diff(below), -np.diff(above))  # each tail from its own end
        return np.concatenate([below[:1], inside, above[-1:]])

    return chances(edges), chances(edges / ratio)


def product(laws: Sequence[Cells]) -> Cells:
    """Return the law of independent steps together.

    Examples
    --------
    >>> product([])
    (array([1.]), array([1.]))
    """
    one = np.ones(1), np.ones(1)
    return reduce(lambda a, b: (np.outer(a[0], b[0]).ravel(), np.outer(a[1], b[1]).ravel()), laws, one)


def hockey_stick(cells: Cells, mu: float, epsilon: float) -> float:
    """Return by how much the first law, with a Gaussian step of that mu, exceeds e^epsilon times the second."""
    first, second = cells
    if mu == 0.0:
        return float(np.maximum(first - math.exp(epsilon) * second, 0.0).sum())
    kept = first > 0.0
    first, second = first[kept], second[kept]
    with np.errstate(divide="ignore"):
        shifted = np.clip(epsilon + np.log(second / first), -1e6, None)
    with np.errstate(over="ignore"):
        missed = np.exp(shifted + log_ndtr(-0.5 * mu - shifted / mu))
    return float(first @ np.maximum(ndtr(0.5 * mu - shifted / mu) - missed, 0.0))


def epsilon_at(delta: float, *parts: tuple[Cells, float]) -> float:
    """Return the epsilon at which the hockey sticks of all parts, cells and a mu, sum to delta, to 12 digits.

    Examples
    --------
    >>> from privspan.privacy import delta_from_mu
    >>> round(epsilon_at(delta_from_mu(2.0, 3.0), (product([]), 2.0)), 6)
    3.0
    """

    def too_small(epsilon: float) -> bool:
        return math.fsum(hockey_stick(cells, mu, epsilon) for cells, mu in parts) > delta

    low, high = 0.0, 1.0
    if not too_small(low):
        return 0.0
    while too_small(high):
        low, high = high, 2.0 * high
        if high > _MOST_EPSILON:
            return math.inf
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if too_small(middle) else (low, middle)
    return low


def exchanged(cells: Cells) -> Cells:
    """Return the same cells for the tables in the other order."""
    return cells[1], cells[0]
