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
from scipy.linalg import lapack, solve_triangular

from privspan._lib.rounding import relative_error as gamma
from privspan.privacy.coin import Coin
from privspan.privacy.run import Run
from privspan.stable.certificate import LeveragePlan, certified_margin, leverage_levels, sure_bases
from privspan.stable.leverage import top_factor
from privspan.stable.plan import StableBudget
from privspan.subspace import Subspace

Array = NDArray[np.float64]
Pull = Callable[[Array], Array]  # from coefficients (N, k) to the combination (d, k) of all columns

_POWER_STEPS = 40  # time: what they miss is found by balls
_ROOM = 1e-6  # more than rounding the weighted Gram matrix moves an eigenvalue


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
    gram: Array, width: int, pull: Pull, plan: LeveragePlan, k: int, budget: StableBudget, run: Run
) -> Subspace | None:
    """Release the top-k space of the weighted items, or abstain.

    `gram` is the exact Gram matrix (tw, tw) of the columns of t items, which have norm at most 1; `plan` is made
    of public and released numbers. Of the budget, the coin, mu_noise and delta_rotation are spent.

    Guarantee
    ---------
    For replace-one neighbours, which change one item, and a Gaussian coin: the pair of steps is
    sqrt(coin.mu² + mu_noise²)-GDP up to an additive coin.delta + delta_rotation, for all data; with a table it is
    what `privspan.privacy.joint` says. It abstains when the test says no and otherwise only on public grounds.
    Proof: ``docs/explanation/stable-leverage.md``.
    """
    passed = certified_items(gram, width, k, plan, budget.coin, run)
    if passed is None:
        return None
    return noisy_basis(passed, pull, budget.mu_noise, budget.delta_rotation, run).subspace


def certified_items(gram: Array, width: int, k: int, plan: LeveragePlan, coin: Coin, run: Run) -> Certified | None:
    """Ask in private whether neighbours could move the weighted top-k space by more than the plan's bound.

    `gram` and `plan` are those of `certified_release`. None is *no*: there are no levels, the margin is 0 or the coin
    said so, which the caller must not tell apart, or float64 does not resolve the public plan.

    Guarantee
    ---------
    For replace-one neighbours, which change one item: *yes* or *no* has the chances of the coin at margins that are
    at most 1 apart; at margin 0 it is *no*. Only *yes* or *no* may be used, and the items after
    *yes* by `noisy_basis`. Proof: ``docs/explanation/stable-leverage.md``.
    """
    if not plan.computable(len(gram)):
        return None
    levels = leverage_levels(gram, width, k, plan)
    margin = 0 if levels is None else certified_margin(gram, width, k, levels, plan)
    if not run.test(margin, coin) or levels is None:
        return None
    return Certified(gram, np.repeat(plan.weights(levels), width), width, k, plan)


def noisy_basis(passed: Certified, pull: Pull, mu: float, delta_rotation: float, run: Run) -> NoisyBasis:
    """Release a basis of the weighted top-k space with noise; there is no way for it to fail.

    Guarantee
    ---------
    For replace-one neighbours, which change one item, and which both passed with a margin of at least 1: mu-GDP up to
    an additive delta_rotation. The standard deviation of the noise is a function of the plan, mu and public numbers.
    Proof: ``docs/explanation/stable-leverage.md``.
    """
    plan, k = passed.plan, passed.k
    basis, basis_error = _weighted_basis(passed.gram, passed.weights, pull, plan, k)
    shift = procrustes_bound(plan.sensitivity() * np.sqrt(passed.width))
    return NoisyBasis(*run.basis(basis, shift, basis_error, mu, delta_rotation))


def procrustes_bound(sine: float) -> float:
    """Turn a bound on ‖sin Θ‖_F into one on the distance of the nearest two orthonormal bases."""
    return float(sine / np.sqrt((1 + np.sqrt(1 - sine**2)) / 2))


def _weighted_basis(
    gram: Array, weights: Array, pull: Pull, plan: LeveragePlan, k: int, power_steps: int = _POWER_STEPS
) -> tuple[Array, float]:
    """Orthonormal basis (d, k) of the top-k space of Σ w Y Yᵀ, and a public bound on its error.

    Once the margin is at least 1, the k-th eigenvalue is at least G and the next at most E. A guess is good if its
    residual is near the rounding floor and its Ritz values are above the middle of that gap. The last guess is good.
    """
    size, root = len(gram), np.sqrt(weights)
    weighted = gram * root[:, None] * root  # (N, N)
    allowed = 6 * gamma(size + 8) * size * np.sqrt(k)  # half of it may be rounding of the residual itself
    for coefficients in _guesses(weighted, plan, k, power_steps):
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


def _guesses(weighted: Array, plan: LeveragePlan, k: int, power_steps: int) -> Iterator[Array]:
    """Coefficients (N, k) of the top-k space: power steps from a public start, then surer ways.

    The start may be orthogonal to part of the space. What comes last is right, since the gap is there.
    """
    guess = np.linalg.qr(top_factor(weighted, k))[0]
    for _ in range(power_steps):
        yield guess
        guess = np.linalg.qr(weighted @ guess)[0]
    yield from sure_bases(weighted, k, plan.tail + _ROOM, plan.signal - _ROOM)
