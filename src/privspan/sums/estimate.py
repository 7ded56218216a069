"""What the adaptive algorithm believes about the subspace: a basis, how sure it is of it, and the spread along it.

Plain post-processing of released values: nothing here sees data or adds noise.  The error of a basis V is a matrix D
of shape (d, k) with columns off V, the truth being the span of V + D.  Its rows are treated as independent with
covariance P⁻¹, so a (k, k) precision P says it all, and two estimates are joined by adding precisions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privspan.sums.adaptive_tuning import ADAPTIVE, AdaptiveTuning
from privspan.sums.localised import MOST_WEIGHT, LocalisedSums

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Estimate:
    """A subspace found so far."""

    basis: Array  # (d, k), orthonormal
    precision: Array  # (k, k), inverse covariance of each row of the basis's error
    eigenvalues: Array  # (k,), estimated mean square of a unit row along each basis vector

    @property
    def error(self) -> float:
        """Expected sine of the largest angle to the truth, private noise only."""
        d, k = self.basis.shape
        least = float(np.linalg.eigvalsh(self.precision)[0])
        return (math.sqrt(d) + math.sqrt(k)) / math.sqrt(max(least, 1e-300))

    @property
    def error_but_last(self) -> float:
        """The same for the span of all directions but the last."""
        d, k = self.basis.shape
        if k == 1:
            return self.error
        most = float(np.linalg.eigvalsh(np.linalg.inv(self.precision)[:-1, :-1])[-1])
        return (math.sqrt(d) + math.sqrt(k - 1)) * math.sqrt(max(most, 0.0))

    @property
    def residual(self) -> float:
        """Root mean square length that the error of the basis adds to the residual of a row."""
        covariance = np.linalg.inv(self.precision)
        return math.sqrt(max(self.basis.shape[0] * float(np.diagonal(covariance) @ self.eigenvalues), 1e-300))


def first_estimate(basis: Array, eigenvalues: Array, noise: float, n: int) -> Estimate:
    """Describe leading eigenvectors of a noisy second moment with off-diagonal noise `noise`."""
    return Estimate(basis, np.diag((eigenvalues * n / noise) ** 2), eigenvalues)


def whitening(eigenvalues: Array, exponent: float, light: float | None = None) -> Array:
    """Return the diagonal of B = Lambda^-exponent, scaled so that E ||B z||² = 1.

    With `light`, the last direction gets this many times the mean energy of the others instead of its own.
    """
    diagonal = np.maximum(eigenvalues, 1e-6) ** -exponent
    if light is not None and len(eigenvalues) > 1:
        energy = float(np.mean(diagonal[:-1] ** 2 * eigenvalues[:-1]))
        diagonal[-1] = math.sqrt(light * energy / max(float(eigenvalues[-1]), 1e-6))
    return np.asarray(diagonal / math.sqrt(float(diagonal**2 @ eigenvalues)))


def local_slope(
    sums: LocalisedSums,
    estimate: Estimate,
    scale: Array,
    n: int,
    spread: float,
    *,
    constant: bool = False,
    tuning: AdaptiveTuning = ADAPTIVE,
) -> tuple[Array, Array, Array]:
    """Estimate the error D of the basis from the sums of a localised round, D = C M⁻¹ B with B = `scale`.

    M is shrunk towards the shape that the released eigenvalues predict for it, up to a relative error `spread`, by as
    much as its noise deserves; the entries of the last direction by more, if that is a `constant`'s.  Returns D
    (d, k), whose columns lie off the basis, the precision (k, k) of its rows from the noise of C, and the mean (k, k)
    of z zᵀ over the weighted records, from M.
    """
    k = len(scale)
    shape = scale**2 * estimate.eigenvalues * n  # (k,)
    weight = float(np.clip(np.trace(sums.inner) / shape.sum(), tuning.lowest_weight, MOST_WEIGHT))
    prior = weight * shape
    prior_variance = _prior_variance(prior, spread, constant=constant)
    trust = prior_variance / (prior_variance + k * sums.inner_noise**2)  # (k, k)
    inner = trust * sums.inner + (1.0 - trust) * np.diag(prior)
    roots = np.sqrt(prior)
    relative, turn = np.linalg.eigh(inner / np.outer(roots, roots))
    inner = (turn * np.maximum(relative, tuning.lowest_slope)) @ turn.T * np.outer(roots, roots)
    factor = np.linalg.solve(inner, np.diag(scale))  # M⁻¹ B
    cross = sums.cross - estimate.basis @ (estimate.basis.T @ sums.cross)
    precision = np.linalg.inv(factor.T @ factor * sums.cross_noise**2)
    moment = inner / np.outer(scale, scale) / (n * weight)
    return cross @ factor, np.asarray(precision, np.float64), np.asarray(moment, np.float64)


def _prior_variance(prior: Array, spread: float, *, constant: bool) -> float | Array:
    """Return how far, squared, entries of M may be from their prior (k,); those of a constant's direction less far.

    It may have so little energy that its entries of M are mostly noise.
    """
    if not constant or len(prior) == 1:
        return float((spread * prior.mean()) ** 2)
    sizes = np.full(len(prior), math.sqrt(prior[:-1].mean()))
    sizes[-1] = min(sizes[-1], math.sqrt(prior[-1]))
    return np.asarray((spread * np.outer(sizes, sizes)) ** 2)  # (k, k)


def joined(estimate: Estimate, slope: Array, precision: Array, slope_error: float) -> Estimate:
    """Move the basis by an estimate of its error (d, k), weighted by the precision (k, k) of its rows.

    `slope_error` is the relative error of M: it leaves that share of the old error behind, which no C can mend.
    """
    total = estimate.precision + precision
    basis = polar(estimate.basis + slope @ precision @ np.linalg.inv(total))
    left = np.linalg.inv(total) + slope_error**2 * np.linalg.inv(estimate.precision)
    return Estimate(basis, np.linalg.inv(left), estimate.eigenvalues)


def turned(estimate: Estimate, moment: Array, tuning: AdaptiveTuning = ADAPTIVE) -> Estimate:
    """Turn the basis within its span so that it follows the eigenvectors of `moment`, keeping the total spread."""
    values, turn = np.linalg.eigh(moment)
    values, turn = values[::-1], turn[:, ::-1]
    total, old = float(values.sum()), estimate.eigenvalues
    values = np.maximum(values, tuning.lowest_eigenvalue * float(old.min()) * total / float(old.sum()))
    return Estimate(
        estimate.basis @ turn, turn.T @ estimate.precision @ turn, values * float(old.sum()) / float(values.sum())
    )


def constant_last(estimate: Estimate) -> Estimate:
    """Turn the basis within its span so that only its last vector has the last coordinate, that of a constant.

    The others follow the eigenvectors of what is known of their spread: whitening takes them one by one.
    """
    slopes = estimate.basis[-1]  # (k,)
    first = np.column_stack([slopes, np.eye(len(slopes))])
    turn = np.linalg.qr(first)[0]  # (k, k), the first column along the slopes
    others = turn[:, 1:]
    axes = np.linalg.eigh((others.T * estimate.eigenvalues) @ others)[1]
    turn = np.column_stack([others @ axes[:, ::-1], turn[:, 0]])
    along = np.einsum("ij,i,ij->j", turn, estimate.eigenvalues, turn)
    return Estimate(estimate.basis @ turn, turn.T @ estimate.precision @ turn, along)


def widened(estimate: Estimate, directions: Array, eigenvalues: Array, noise: float, n: int) -> Estimate:
    """Add new directions, orthogonal to the basis and found in a second moment with off-diagonal noise `noise`."""
    k, new = len(estimate.eigenvalues), len(eigenvalues)
    precision = np.zeros((k + new, k + new))
    precision[:k, :k] = estimate.precision
    precision[k:, k:] = np.diag((eigenvalues * n / noise) ** 2)
    basis = polar(np.hstack([estimate.basis, directions]))
    return Estimate(basis, precision, np.append(estimate.eigenvalues, eigenvalues))


def residual_size(explained: Array, square: float = 1.0, tuning: AdaptiveTuning = ADAPTIVE) -> float:
    """Return the root mean square residual of a unit row, given what is explained of its mean square so far."""
    return math.sqrt(min(max(square - float(explained.sum()), tuning.least_off**2), 1.0))


def polar(columns: Array) -> Array:
    """Return the orthonormal columns nearest to the given ones."""
    left, _, right = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(left @ right)
