"""The second half of stable leverage, for records and for groups: filter, certificate, test, noise.

Two steps, each with a mu of its own, so that whoever composes them may do something else after a *no*:
`certified_items` weighs the items by their levels and tests in private that neighbours cannot move the weighted top-k
space by more than the plan's bound; `noisy_basis` releases that space with Gaussian noise of the certified size.
`certified_release` is the one after the other. Proofs: ``docs/explanation/stable-leverage.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, lapack, solve_triangular
from scipy.special import ndtr, ndtri

from privspan._lib.rounding import UNIT_ROUNDOFF
from privspan._lib.rounding import relative_error as gamma
from privspan.privacy.noise import add_gaussian, grid_for, rounded_normal, rounding_charge
from privspan.privacy.randomness import BitSource, Streams
from privspan.stable.certificate import LeveragePlan, certified_margin, leverage_levels, sure_bases
from privspan.stable.leverage import top_factor
from privspan.stable.plan import StableBudget
from privspan.subspace import Subspace

Array = NDArray[np.float64]
Pull = Callable[[Array], Array]  # from coefficients (N, k) to the combination (d, k) of all columns

_TEST_BITS = 96
_HIGHEST_SCORE = 3.0  # the test never goes on with probability above Φ(3), so both tails stay accurate
_SCORE_SLACK = 1e-9
_POWER_STEPS = 40
_ROOM = 1e-6  # more than rounding the weighted Gram matrix moves an eigenvalue
_ROTATION_SCALE = 2.0**54


@dataclass(frozen=True)
class Certified:
    """Items that passed the test, for `noisy_basis`: unreleased numbers, to be handed on and not looked at."""

    gram: Array  # (N, N), N the number of columns of all items
    weights: Array  # (N,), in [0, 1]
    width: int
    k: int
    plan: LeveragePlan


@dataclass(frozen=True)
class NoisyBasis:
    """A basis in a random gauge, with noise: both numbers are released."""

    basis: Array  # (d, k), on a grid; orthonormal but for the noise
    std: float  # standard deviation of the noise in each entry

    @property
    def subspace(self) -> Subspace:
        """The span of the columns."""
        return Subspace.from_spanning(self.basis)


def certified_release(
    gram: Array, width: int, pull: Pull, plan: LeveragePlan, k: int, budget: StableBudget, streams: Streams
) -> Subspace | None:
    """Release the top-k space of the weighted items, or abstain.

    `gram` is the exact Gram matrix (tw, tw) of the columns of t items, which have norm at most 1; `plan` is made
    of public and released numbers. Of the budget, mu_test, mu_noise, delta_test and delta_rotation are spent.

    Guarantee
    ---------
    For replace-one neighbours, which change one item: the pair of steps is sqrt(mu_test² + mu_noise²)-GDP up to
    an additive delta_test + delta_rotation, for all data. It abstains when the test says no and otherwise only on
    public grounds. Proof: ``docs/explanation/stable-leverage.md``.
    """
    passed = certified_items(gram, width, k, plan, budget.mu_test, budget.delta_test, streams.noise)
    if passed is None:
        return None
    return noisy_basis(passed, pull, budget.mu_noise, budget.delta_rotation, streams.noise).subspace


def certified_items(
    gram: Array, width: int, k: int, plan: LeveragePlan, mu: float, delta: float, bits: BitSource
) -> Certified | None:
    """Ask in private whether neighbours could move the weighted top-k space by more than the plan's bound.

    `gram` and `plan` are those of `certified_release`. None is *no*: there are no levels, the margin is 0 or the coin
    said so, which the caller must not tell apart, or float64 does not resolve the public plan.

    Guarantee
    ---------
    For replace-one neighbours, which change one item: if both margins are at least 1, *yes* or *no* is mu-GDP;
    otherwise *yes* has probability at most delta on either side. Only *yes* or *no* may be used, and the items after
    *yes* by `noisy_basis`. Proof: ``docs/explanation/stable-leverage.md``.
    """
    if not plan.computable(len(gram)):
        return None
    levels = leverage_levels(gram, width, k, plan)
    margin = 0 if levels is None else certified_margin(gram, width, k, levels, plan)
    if levels is None or not goes_on(margin, mu, delta, bits):
        return None
    return Certified(gram, np.repeat(plan.weights(levels), width), width, k, plan)


def noisy_basis(passed: Certified, pull: Pull, mu: float, delta_rotation: float, bits: BitSource) -> NoisyBasis:
    """Release a basis of the weighted top-k space with noise; there is no way for it to fail.

    Guarantee
    ---------
    For replace-one neighbours, which change one item, and which both passed with a margin of at least 1: mu-GDP up to
    an additive delta_rotation. The standard deviation of the noise is a function of the plan, mu and public numbers.
    Proof: ``docs/explanation/stable-leverage.md``.
    """
    plan, k = passed.plan, passed.k
    basis, basis_error = _weighted_basis(passed.gram, passed.weights, pull, plan, k)
    rotation, rotation_error = random_rotation(k, delta_rotation / 2, bits)  # on either side
    shift = procrustes_bound(plan.sensitivity() * np.sqrt(passed.width)) + 2 * (basis_error + rotation_error)
    return _with_noise(basis @ rotation, shift, mu, bits)


def goes_on(margin: int, mu: float, delta: float, bits: BitSource) -> bool:
    """Say yes with probability Φ(Φ⁻¹(delta) + (margin − 1) mu), never at margin 0.

    Guarantee
    ---------
    mu-GDP between neighbours whose margins are both at least 1 and differ by at most 1; yes with probability at most
    delta at margin 1. Proof: ``docs/explanation/stable-leverage.md``.
    """
    if margin < 1:
        return False
    first = float(ndtri(delta)) - _SCORE_SLACK
    score = min(first + (margin - 1) * mu * (1 - _SCORE_SLACK), _HIGHEST_SCORE)
    return bits.bernoulli(int(ndtr(score) * 2.0**_TEST_BITS), _TEST_BITS)


def procrustes_bound(sine: float) -> float:
    """Turn a bound on ‖sin Θ‖_F into one on the distance of the nearest two orthonormal bases."""
    return float(sine / np.sqrt((1 + np.sqrt(1 - sine**2)) / 2))


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


def _weighted_basis(gram: Array, weights: Array, pull: Pull, plan: LeveragePlan, k: int) -> tuple[Array, float]:
    """Orthonormal basis (d, k) of the top-k space of Σ w Y Yᵀ, and a public bound on its error.

    Once the margin is at least 1, the k-th eigenvalue is at least G and the next at most E. A guess is good if its
    residual is near the rounding floor and its Ritz values are above the middle of that gap. The last guess is good.
    """
    size, root = len(gram), np.sqrt(weights)
    weighted = gram * root[:, None] * root  # (N, N)
    allowed = 6 * gamma(size + 8) * size * np.sqrt(k)  # half of it may be rounding of the residual itself
    for coefficients in _guesses(weighted, plan, k):
        image = weighted @ coefficients
        ritz = coefficients.T @ image
        ritz = (ritz + ritz.T) / 2
        above = ritz - (plan.signal + plan.tail) / 2 * np.eye(k)
        residual = float(np.linalg.norm(image - coefficients @ ritz))
        if residual <= allowed / 2 and lapack.dpotrf(above, lower=1)[1] == 0:
            break
    scaled = solve_triangular(np.linalg.cholesky(ritz), coefficients.T, lower=True).T  # (N, k)
    basis = np.linalg.qr(pull(root[:, None] * scaled))[0]  # (d, k), of columns that are nearly orthonormal
    tilt = np.sqrt(size) * allowed / (0.49 * (plan.signal - plan.tail))
    summing = 2 * gamma(size + 8) * np.sqrt(size * k)
    return basis, float(2 * (tilt + summing) / np.sqrt(plan.signal / 2) + 100 * gamma(max(basis.shape)) * k)


def _guesses(weighted: Array, plan: LeveragePlan, k: int) -> Iterator[Array]:
    """Coefficients (N, k) of the top-k space: power steps from a public start, then surer ways.

    The start may be orthogonal to part of the space. What comes last is right, since the gap is there.
    """
    guess = np.linalg.qr(top_factor(weighted, k))[0]
    for _ in range(_POWER_STEPS):
        yield guess
        guess = np.linalg.qr(weighted @ guess)[0]
    yield from sure_bases(weighted, k, plan.tail + _ROOM, plan.signal - _ROOM)


def _with_noise(basis: Array, shift: float, mu: float, bits: BitSource) -> NoisyBasis:
    """Add Gaussian noise for the given sensitivity on a grid fine enough that rounding costs next to nothing."""
    grid = grid_for(shift / mu) / 16
    sigma = (shift + rounding_charge(basis.size, grid)) / mu * (1 + 1e-12)
    return NoisyBasis(add_gaussian(basis, sigma, bits, grid=grid), float(sigma))
