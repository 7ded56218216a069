"""Smooth sensitivity PCA (Gonem, Gilad-Bachrach 2018): noise on the basis, scaled to how stable the subspace is.

The leading basis is rotated by a secret uniformly random rotation and gets Gaussian noise in proportion to a smooth
upper bound of its local sensitivity.  The paper leaves a constant open; here the bound is explicit and the two
parameters of the noise come from the exact Rényi divergence of normal laws with different variances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privspan.baselines._common import Array, baseline, haar_rotation, open_table, second_moment, spectrum
from privspan.baselines._renyi import ORDERS, weakest_passing
from privspan.privacy import Budget, Release, rho_from_budget
from privspan.privacy.noise import add_gaussian, grid_for
from privspan.privacy.randomness import RandomLike
from privspan.subspace import Subspace

_SCALE_SHARES = tuple(2.0**-j for j in range(1, 13))  # of rho, for what the change of the noise level itself reveals
_BASIS_ERROR = 2.0**-48  # per d k: float64 error of the rotated basis


@dataclass(frozen=True)
class SmoothNoise:
    """Noise of standard deviation `multiplier` times a `rate`-smooth bound of the sensitivity."""

    rate: float
    multiplier: float


@baseline
def smooth_sensitivity(X: object, k: int, *, epsilon: float, delta: float, rng: RandomLike = None) -> Release:
    """Release the leading basis with noise scaled to its smooth sensitivity.

    Parameters
    ----------
    k : int
        Dimension, below d.

    Returns
    -------
    Release
        Never abstains; where the gap is small the result is noise.  The noise level is private and not released.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k are public.
    Numerical model: the noise and its rounding are exact; the rotation is drawn in float64 from 256 secure bits, the
    noise level is computed in float64, and the eigensolver's backward error is assumed to be at most 2^-46 d times
    the norm of the matrix.  Not hardened.  Proof: docs/explanation/baselines.md, "Smooth sensitivity".
    """
    table = open_table(X, k, epsilon=epsilon, delta=delta, rng=rng, proper=True)
    n, d = table.n, table.d
    moment = second_moment(table)
    most = math.sqrt(2.0 * min(table.k, d - table.k))
    widest = np.array([1.01 * n + 3.0 * moment.stretch])  # no gap is wider
    least = float(local_sensitivity(widest, moment.stretch, most)[0])
    grid = grid_for(least / table.budget.mu)
    rounding = (math.sqrt(d * table.k) * grid + 2.0 * _BASIS_ERROR * d * table.k) / least
    noise = smooth_noise(d * table.k, table.budget, rounding, typical_gap=n / (2 * table.k), most=most)
    values, vectors = spectrum(moment.matrix)
    gap = float(values[table.k - 1] - values[table.k])
    sensitivity = smooth_bound(min(gap, 1.01 * n), moment.stretch, most, noise.rate)
    rotated = vectors[:, : table.k] @ haar_rotation(table.k, table.generator())  # (d, k)
    noisy = add_gaussian(rotated, noise.multiplier * sensitivity, table.streams.noise, grid=grid)
    found = Subspace(np.linalg.qr(noisy)[0])
    part = table.whole("basis with noise at its smooth sensitivity")
    return table.release("smooth_sensitivity", found, part, rate=noise.rate, multiplier=noise.multiplier)


@lru_cache(maxsize=256)  # of public numbers only
def smooth_noise(entries: int, budget: Budget, rounding: float, *, typical_gap: float, most: float) -> SmoothNoise:
    """Return the rate and the multiplier that serve a table with a typical gap best; public numbers only.

    A low rate lets the noise level reveal less, which leaves more for the multiplier, but makes it rise further away
    from where the subspace is unstable.  There are d k `entries`; `most` is the largest local sensitivity, and
    `rounding` what rounding and float64 add to it, in units of the smallest that can occur.
    """
    rho = rho_from_budget(budget.epsilon, budget.delta)
    rates = [math.sqrt(share * rho / entries) for share in _SCALE_SHARES]
    pairs = [SmoothNoise(rate, _multiplier(rate, entries, budget) * (1.0 + rounding)) for rate in rates]
    best = min(pairs, key=lambda pair: pair.multiplier * smooth_bound(typical_gap, 1.0, most, pair.rate))
    if math.isinf(best.multiplier):
        raise ValueError(f"`delta` must be larger at epsilon = {budget.epsilon!r}; got {budget.delta!r}.")
    return best


def _multiplier(rate: float, entries: int, budget: Budget) -> float:
    """Return the least multiplier that goes with the rate, infinite if there is none."""
    try:
        return weakest_passing(lambda level: smooth_divergence(level, rate, entries), budget, 1.0 / budget.mu)
    except ValueError:  # the change of the noise level alone reveals too much
        return math.inf


def smooth_divergence(multiplier: float, rate: float, entries: int) -> Array:
    """Bound the divergences at `ORDERS` between releases on neighbours: docs/explanation/baselines.md, lemma 6."""
    bounds = []
    for ratio, nearest in ((math.exp(-2.0 * rate), math.exp(-2.0 * rate)), (math.exp(2.0 * rate), 1.0)):
        mixed = 1.0 + ORDERS * (ratio - 1.0)  # variance of the tilted law, in units of the first
        closest = 1.0 + ORDERS * (nearest - 1.0)
        valid = (mixed > 0.0) & (closest > 0.0)
        safe, safe_closest = np.where(valid, mixed, 1.0), np.where(valid, closest, 1.0)
        shift = 0.5 * ORDERS * nearest / (multiplier**2 * safe_closest)
        scale = 0.5 * entries / (ORDERS - 1.0) * (ORDERS * math.log(ratio) - np.log(safe))
        bounds.append(np.where(valid, shift + scale, np.inf))
    return np.maximum(*bounds)


def local_sensitivity(gaps: Array, stretch: float, most: float) -> Array:
    """Bound the change of the basis, up to a rotation, at these eigenvalue gaps; it falls as the gap grows."""
    wide = gaps > 2.0 * stretch
    movement = -np.log1p(-2.0 * stretch / np.where(wide, gaps, 3.0 * stretch)) / math.sqrt(2.0)
    return np.where(wide, np.minimum(most, movement), most)


def smooth_bound(gap: float, stretch: float, most: float, rate: float) -> float:
    """Return the largest of exp(-rate j) times the local sensitivity after j replacements."""
    steps = np.arange(math.ceil(max(gap, 0.0) / (2.0 * stretch)) + 1, dtype=np.float64)
    return float((np.exp(-rate * steps) * local_sensitivity(gap - 2.0 * stretch * steps, stretch, most)).max())
