"""Analyze Gauss with a gap (Dwork, Talwar, Thakurta, Zhang, STOC 2014, algorithm 2), repaired and recalibrated.

When the k-th eigenvalue stands well clear of the next, the projector on the leading subspace hardly moves under a
replacement, and little noise is enough.  How clear it stands is itself released, from below, with noise; if that is
not enough to bound the movement the run abstains.  The published noise, 1 / (gap - 2), is too small for replacement.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.special import ndtri

from privspan.baselines._common import baseline, leading_subspace, open_table, second_moment, spectrum
from privspan.baselines._tuning import RIVALS
from privspan.privacy import Part, Release, share_mu
from privspan.privacy.noise import grid_for
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Run
from privspan.sums.grid import SumBounds, gaussian_symmetric, noise_level, upper_triangle

_PROJECTOR_ERROR = 2.0**-48  # per d k: float64 error of a projector, orthonormality of the eigenvectors included


@baseline
def analyze_gauss_gap(X: object, k: int, *, epsilon: float, delta: float, rng: RandomLike = None) -> Release:
    """Release the leading subspace with noise in proportion to one over the eigenvalue gap, or abstain.

    Parameters
    ----------
    k : int
        Dimension, below d.

    Returns
    -------
    Release
        Abstains when the gap cannot be certified to exceed 2.  ``extras["gap_lower_bound"]`` is the released bound.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k are public.  The
    noise is exact.  Assumed: the eigensolver's backward error is at most 2^-46 d times the norm of the matrix; that
    much is charged.  Proof: docs/explanation/baselines.md, "Analyze Gauss with a gap".
    """
    with open_table(X, k, epsilon=epsilon, delta=delta, rng=rng, proper=True) as table:
        rest, reserved = table.budget.reserve_delta(RIVALS.gap_delta)
        mu_gap, mu_projector = share_mu(rest.mu, RIVALS.gap, 1.0 - RIVALS.gap)
        moment = second_moment(table)
        values, vectors = spectrum(moment.matrix)
        gap = float(values[table.k - 1] - values[table.k])
        bound = _gap_from_below(gap, moment.stretch, mu_gap, reserved, table.run)
        parts = (
            Part.gaussian("gap", mu_gap, rest.delta),
            Part.gaussian("projector", mu_projector, rest.delta),
            Part("gap overestimated", 0.0, reserved),
        )
        subspace, sigma = None, None
        if bound > 2.0 * moment.stretch:
            basis = vectors[:, : table.k]
            movement = projector_movement(bound, moment.stretch) / math.sqrt(2.0) * (1.0 + 2.0**-40)
            error = _PROJECTOR_ERROR * table.d * table.k
            level = noise_level(SumBounds(movement, error, upper_triangle(table.d), 1.01), mu_projector)
            subspace = leading_subspace(gaussian_symmetric(basis @ basis.T, level, table.run), table.k)
            sigma = level.sigma
        return table.release("analyze_gauss_gap", subspace, *parts, extras={"gap_lower_bound": bound}, noise=sigma)


def projector_movement(gap: float, stretch: float = 1.0) -> float:
    """Bound the Frobenius distance of the projectors of neighbours, one of which has at least this gap.

    The gap must exceed ``2 * stretch``.  Proof: docs/explanation/baselines.md, lemma 4.
    """
    return -math.log1p(-2.0 * stretch / gap) / math.sqrt(2.0)


def _gap_from_below(gap: float, stretch: float, mu: float, failure: float, run: Run) -> float:
    """Release a number that exceeds the gap with probability at most `failure`."""
    grid = grid_for(2.0 / mu)
    sigma = (2.0 * stretch + grid) / mu * (1.0 + 2.0**-40)
    released = float(run.gaussian(np.array([gap]), sigma, grid)[0])
    return released - sigma * float(-ndtri(failure)) * (1.0 + 1e-9) - 2.0 * grid
