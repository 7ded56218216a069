"""One preconditioned round: look for weak directions after shrinking the strong ones that are known.

Rows are x~ = r + V diag(f) z with factors f <= 1 that bring the known directions down to the size of the rest,
clipped to length c.  Their second moment is looked at through `LazyGauss` with noise in proportion to c² instead of 1
(replacement moves it by at most sqrt(2) c²).  Its Schur complement off V shows the directions not yet found, and its
mixed part corrects V like a localised round.  Proof: docs/explanation/everyday-pca.md, lemma 9.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privspan._lib.rounding import relative_error
from privspan.privacy.run import Run
from privspan.rows.about import WIDEST_DENSE
from privspan.rows.partitioned_rows import AnyRows, ChunkSums, PerRow, per_row
from privspan.rows.scaling import Piece, combined
from privspan.rows.unit import CHUNK_ROWS, Finish
from privspan.sums.adaptive_tuning import ADAPTIVE, AdaptiveTuning
from privspan.sums.estimate import Estimate, joined, whitening
from privspan.sums.grid import ROOT_HALF
from privspan.sums.krylov import leading_pairs
from privspan.sums.lazy_gauss import LazyGauss
from privspan.sums.localised import LocalView, geometric_mean, local_view, residual_slack

Array = NDArray[np.float64]

_INWARDS = 1.0 + 2.0**-36  # rounding: more than the relative error of a weight


def shrunk_lengths(view: LocalView, factors: Array) -> PerRow:
    """Return upper bounds on ||x + V ((f - 1) z)||, where the factors f lie in (0, 1]; (n,)."""
    slack = 2.0 * residual_slack(view.basis)

    def shrunk(coordinates: Array, off: Array) -> Array:
        inside = np.einsum("ij,j->i", coordinates**2, factors**2)
        return np.asarray(np.sqrt(off**2 + inside + slack) * _INWARDS)

    return per_row(shrunk, view.coordinates, view.off)


class PreconditionedGram:
    """The second moment of unit rows, shrunk by f = `factors` in (0, 1] and clipped to c <= 1, as a `GramSource`."""

    def __init__(self, rows: AnyRows, view: LocalView, factors: Array, clip: float) -> None:
        self._rows, self._basis = rows, view.basis
        self._shift = per_row(lambda z: z * (factors - 1.0), view.coordinates)  # (n, k)
        self._squared_weights = per_row(
            lambda lengths: np.minimum(1.0, clip / (lengths * _INWARDS)) ** 2, shrunk_lengths(view, factors)
        )  # (n,)
        self.shape = rows.shape
        self.size = self.largest = clip * clip
        self.empty = self.size * ROOT_HALF
        self.moments = 1

    def products(self, block: Array | None, finish: Finish | None = None) -> ChunkSums:
        """Return one array (d, b) per chunk."""
        directions, basis = np.eye(self.shape[1]) if block is None else block, self._basis
        turned = basis.T @ directions  # (k, b)

        def part(piece: Piece, factors: Array, shift: Array, squared_weights: Array) -> Array:
            scales = factors[:, None]
            inner = ((piece @ directions) * scales + shift @ turned) * squared_weights[:, None]  # (rows, b)
            return np.asarray(combined(piece, inner * scales) + basis @ (shift.T @ inner))

        return self._rows.map_folded(part, self._shift, self._squared_weights, finish=finish)

    def chunk_error(self, columns: int) -> float:
        """Bound the error of one chunk, whose rows before weighting are no longer than 2.1."""
        d, k = self._basis.shape
        inner = math.sqrt(columns) * (1.0 + 2.0 * math.sqrt(k)) * relative_error(d + k + 1) + 4.0 * relative_error(1)
        outer = 2.0 * relative_error(CHUNK_ROWS + 1) + math.sqrt(k) * relative_error(k) + 4.0 * relative_error(1)
        return 2.2 * CHUNK_ROWS * (inner + 2.1 * outer)


@dataclass(frozen=True)
class ShrunkLook:
    """One preconditioned second moment, seen off the subspace known at the time."""

    lazy: LazyGauss
    basis: Array  # V (d, k)
    mixed: Array  # (d, k), its part between V and the rest
    solved: Array  # (k, d), M⁻¹ mixedᵀ, for the Schur complement
    weight: float  # mean weight of the records

    @property
    def noise(self) -> float:
        """Noise of an off-diagonal entry in units of unclipped rows."""
        return self.lazy.noise / self.weight

    def residual_product(self, block: Array) -> Array:
        """Return the Schur complement times `block`, in units of unclipped rows."""
        block = block - self.basis @ (self.basis.T @ block)
        answer = self.lazy.product(block) - self.mixed @ (self.solved @ block)
        return np.asarray(answer - self.basis @ (self.basis.T @ answer)) / self.weight


def preconditioned_look(
    rows: AnyRows,
    estimate: Estimate,
    off: float,
    mu_probe: float,
    mu_gram: float,
    run: Run,
    *,
    columns: int,
    tuning: AdaptiveTuning = ADAPTIVE,
) -> tuple[ShrunkLook, Estimate]:
    """Release a preconditioned second moment (lazily) and improve the known directions with it.

    `off` is the root mean square of the residuals, estimated from released values; `columns` directions may be
    revealed.

    Guarantee
    ---------
    mu-GDP with mu² = mu_probe² + mu_gram² for replace-one neighbours, later products included.
    Proof: docs/explanation/everyday-pca.md, lemmas 5, 8 and 9.
    """
    n, d = rows.shape
    factors = np.minimum(whitening(estimate.eigenvalues, 0.5) * off, 1.0)  # (k,)
    view = local_view(rows, estimate.basis)
    typical = geometric_mean(shrunk_lengths(view, factors), max(0.02, 0.25 * off), 1.0, mu_probe, run)
    source = PreconditionedGram(rows, view, factors, min(tuning.shrunk_clip * typical, 1.0))
    lazy = LazyGauss(source, mu_gram, run, most_columns=max(columns, WIDEST_DENSE), most_passes=64)
    if d <= WIDEST_DENSE:
        lazy.reveal_all()
    image = lazy.product(estimate.basis)  # (d, k)
    inner = estimate.basis.T @ image
    mixed = image - estimate.basis @ inner
    expected = float((factors**2 * estimate.eigenvalues).sum()) * n
    inner = _sturdy(0.5 * (inner + inner.T), expected, lazy.noise, tuning.least_weight)
    slope = np.linalg.solve(inner, np.diag(factors))
    precision = np.asarray(np.linalg.inv(slope.T @ slope * lazy.noise**2), np.float64)
    weight = float(np.clip(np.trace(inner) / expected, tuning.least_weight, 1.0))
    solved = np.asarray(np.linalg.solve(inner, mixed.T), np.float64)  # (k, d)
    look = ShrunkLook(lazy, estimate.basis, mixed, solved, weight)
    return look, joined(estimate, mixed @ slope, precision, 0.0)


def _sturdy(inner: Array, expected: float, noise: float, least: float) -> Array:
    """Keep a noisy (k, k) second moment away from singular: a multiple of the identity if noise dominates it.

    Its trace is `expected` if no record is clipped.
    """
    k = len(inner)
    level = max(float(np.trace(inner)), least * expected) / k
    if noise * math.sqrt(2.0 * k) > 0.4 * level:
        return level * np.eye(k)
    values, vectors = np.linalg.eigh(inner)
    return np.asarray((vectors * np.maximum(values, 0.2 * level)) @ vectors.T)


def leading_directions(
    looks: Sequence[ShrunkLook],
    basis: Array,
    count: int,
    start: Array,
    passes: int,
    public: np.random.Generator,
    small: float = ADAPTIVE.small,
) -> tuple[Array, Array, float]:
    """Find the leading directions off `basis` in all looks together, averaged by precision.

    `start` (d, b) is a first guess for at most `passes` block Krylov steps.  Returns `count` + 1 eigenvalues, in
    units of a sum over unit rows, the last NaN where there is no further direction, the directions (d, count),
    orthonormal and orthogonal to `basis`, and the off-diagonal noise of the average.
    """
    rest = _Remainder(looks, basis)
    rest.extend(start)
    values, directions = leading_pairs(rest, count, start.shape[1], passes - 1, public, small=small)
    return values, directions, rest.noise


class _Remainder:
    """What all looks together show off a basis, in the form that the Krylov iteration asks."""

    complete = False

    def __init__(self, looks: Sequence[ShrunkLook], known: Array) -> None:
        self._looks, self._known = looks, known
        weights = np.array([look.noise**-2.0 for look in looks])
        self._weights, self.noise = weights / weights.sum(), float(weights.sum()) ** -0.5
        self.basis: Array = np.zeros((len(known), 0))
        self.image: Array = np.zeros((len(known), 0))

    def extend(self, block: Array) -> bool:
        known = np.hstack([self._known, self.basis])
        block = _new_directions(block[:, : known.shape[0] - known.shape[1]], known)
        if block.shape[1] == 0:
            return False
        shown = zip(self._weights, self._looks, strict=True)
        answer = np.asarray(sum(weight * look.residual_product(block) for weight, look in shown))
        self.basis = np.hstack([self.basis, block])
        self.image = np.hstack([self.image, answer - self._known @ (self._known.T @ answer)])
        return True

    def reveal_all(self) -> None:
        """Do nothing: what is known of the looks was revealed before."""


def _new_directions(block: Array, known: Array) -> Array:
    """Return an orthonormal basis of the columns of `block` off the orthonormal columns `known`."""
    for _ in range(2):
        block = np.linalg.qr(block - known @ (known.T @ block))[0]
    return block
