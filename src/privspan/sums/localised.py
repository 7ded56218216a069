"""One localised round: measure what lies off the current subspace, with noise scaled to how little that is.

Let V be orthonormal and released, z and r = x - V z the coordinates and the residual of a unit row x, and u = B z its
whitened coordinates.  With the weight w <= min(2, c / (||r|| ||u||), m / ||u||²) of each record the round releases

    C = sum w r uᵀ   (one record moves it by at most 2 c, whatever V is),
    M = sum w u uᵀ   (by at most sqrt(2) m).

If r = D z + noise, then C = D B⁻¹ M + noise for *any* weights, so D is estimated by C M⁻¹ B without a bias from
clipping, and c may sit below the typical ||r|| ||u||.  Proofs: docs/explanation/everyday-pca.md, lemmas 6 and 7.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privspan._lib.rounding import SINGLE_ROUNDOFF, UNIT_ROUNDOFF, relative_error
from privspan.privacy.run import Run
from privspan.rows.partitioned_rows import AnyRows, ChunkSums, PerRow, known_chunks, per_row
from privspan.rows.scaling import SHORT_SUM_ROWS, Piece, combined, single_sum_error
from privspan.rows.unit import CHUNK_ROWS
from privspan.sums.grid import (
    ROOT_HALF,
    SumBounds,
    gaussian_sum,
    gaussian_symmetric,
    grid_totals,
    noise_level,
    upper_triangle,
)

Array = NDArray[np.float64]

INNER_CAP = 2.0
"""The cap m on w ||u||², where E ||u||² is about 1: everyday-pca, lemma 7 bounds M by it, for any value."""

MOST_WEIGHT = 2.0
"""The largest weight of a record: everyday-pca, lemma 7.  Above 1, one that fits well uses the clip to the full."""

_TERM = 1.05 * math.sqrt(MOST_WEIGHT * INNER_CAP)  # more than w ||u||: lemma 7, "Float64"
_INWARDS = 1.0 + 2.0**-36  # more than the relative error of a weight, so that the clipped sizes hold exactly


@dataclass(frozen=True)
class LocalView:
    """Every record as seen from a released subspace."""

    basis: Array  # (d, k)
    coordinates: PerRow  # (n, k), z as computed: the sums are defined with these numbers, so rounding enters none
    off: PerRow  # (n,), upper bounds on the lengths of the residuals x - basis @ z


def local_view(rows: AnyRows, basis: Array) -> LocalView:
    """Compute coordinates and residual lengths of unit rows, in one pass, for a released orthonormal basis (d, k).

    ||x - V z||² = ||x||² - ||z||² + 2 eᵀz + zᵀ(VᵀV - I)z for a computed z = Vᵀx + e.  The last two terms and the
    rounding of the first two are bounded by `residual_slack`, which is added before the root is taken.
    """
    slack = residual_slack(basis, single=rows.single)

    def off(squares: Array, coordinates: Array) -> Array:
        inside = np.einsum("ij,ij->i", coordinates, coordinates)
        return np.asarray(np.sqrt(np.maximum(squares - inside, 0.0) + slack))

    coordinates = rows.coordinates(basis)  # (n, k)
    return LocalView(basis, coordinates, per_row(off, rows.squared_lengths(), coordinates))


def residual_slack(basis: Array, *, single: bool = False) -> float:
    """Bound the error of ||x||² - ||z||² as ||x - V z||² for unit rows, from the released basis alone (lemma 6).

    `single` tells whether lengths and coordinates are those of rows of float32, computed in that type.
    """
    d, k = basis.shape
    measured, roundoff = float(np.linalg.norm(basis.T @ basis - np.eye(k))), UNIT_ROUNDOFF
    defect = 1.01 * measured + 2.0 * k * relative_error(d + 2)
    if single:
        roundoff = SINGLE_ROUNDOFF
    rounding = 2.0 * math.sqrt(k) * relative_error(d + 2, roundoff) + 4.0 * relative_error(d + k + 4, roundoff)
    return float(1.1 * (rounding + defect))


def record_weights(off: Array, whitened: Array, clip: float, cap: float, steepness: float = math.inf) -> Array:
    """Return w = min(2, c / (||r|| ||u||), m / ||u||²) min(1, s ||u|| / ||r||), rounded inwards; (n,).

    `off` are upper bounds on ||r||, `whitened` the rows u.  The first factor bounds what one record can do.  The
    second turns records down that lie nearly across the subspace: they tell little about it, and outliers are among
    them.
    """
    squares = np.einsum("ij,ij->i", whitened, whitened) * _INWARDS + 1e-300  # ||u||², never zero
    lengths = np.sqrt(squares)
    bounded = np.minimum(MOST_WEIGHT, np.minimum(clip / (off * lengths * _INWARDS), cap / squares))
    return np.asarray(bounded * np.minimum(1.0, steepness * (lengths / off)))


@dataclass(frozen=True)
class LocalisedSums:
    """The noisy sums of one round; on the diagonal of M the noise is sqrt(2) times `inner_noise`."""

    cross: Array  # C (d, k)
    cross_noise: float
    inner: Array  # M (k, k)
    inner_noise: float


def localised_sums(
    rows: AnyRows,
    view: LocalView,
    whitening: Array,
    clip: float,
    mu_cross: float,
    mu_inner: float,
    run: Run,
    *,
    steepness: float = math.inf,
    single: bool = False,
) -> LocalisedSums:
    """Release C and M for a subspace, a whitening and a clip that depend on public and released values only.

    `whitening` is the diagonal of B, positive; `clip` the bound c on w ||r|| ||u||, at least `smallest_clip`; records
    with ||u|| / ||r|| below 1 / `steepness` are turned down.  `single` adds up rows of float32 in that type.

    Guarantee
    ---------
    C is mu_cross-GDP and M is mu_inner-GDP for replace-one neighbours, for every basis, whitening and clip.
    Proof: docs/explanation/everyday-pca.md, lemmas 3, 6 and 7.
    """
    (n, d), k = rows.shape, view.basis.shape[1]
    of_cross = noise_level(cross_bounds(n, d, k, clip, single=single), mu_cross)
    of_inner = noise_level(inner_bounds(n, k), mu_inner)
    weigh = partial(record_weights, clip=clip, cap=INNER_CAP, steepness=steepness)
    sums = _both_sums(rows, view, whitening, weigh, single)
    cross, inner = grid_totals(sums, ((d, k), of_cross.grid), ((k, k), of_inner.grid))
    noisy = run.gaussian(cross, of_cross.sigma, of_cross.grid)
    return LocalisedSums(noisy, of_cross.sigma, gaussian_symmetric(inner, of_inner, run), of_inner.sigma)


def _both_sums(
    rows: AnyRows, view: LocalView, whitening: Array, weigh: Callable[..., Array], single: bool
) -> ChunkSums:
    """Return the sums w (x - V z) uᵀ and w u uᵀ of each chunk, from one pass.

    They are Xᵀ(wU) - V (Zᵀ(wU)), so that no residual matrix is formed, and B (Zᵀ(wU)).
    """
    basis, dtype = view.basis, np.dtype(np.float32 if single else np.float64)

    def stacked(piece: Piece, factors: Array, coordinates: Array, off: Array) -> Array:
        whitened = coordinates * whitening
        weighted = whitened * weigh(off, whitened)[:, None]  # (rows, k): w u
        coefficients = (weighted * factors[:, None]).astype(dtype, copy=False)
        return np.vstack([combined(piece, coefficients, run=SHORT_SUM_ROWS), coordinates.T @ weighted])  # (d + k, k)

    def both(sums: Array) -> tuple[Array, Array]:
        along = sums[len(basis) :]
        return sums[: len(basis)] - basis @ along, whitening[:, None] * along

    return rows.map_folded(stacked, view.coordinates, view.off, finish=both)


def cross_bounds(n: int, d: int, k: int, clip: float, *, single: bool = False) -> SumBounds:
    """Bound what a replacement does to C: 2 c, and the rounding of one chunk, where w ||u|| <= sqrt(2 m)."""
    factor = 2.0 * relative_error(CHUNK_ROWS + 1) + math.sqrt(k) * relative_error(k) + 4.0 * relative_error(1)
    error = CHUNK_ROWS * _TERM * factor + (single_cross_error() if single else 0.0)
    return SumBounds(2.0 * clip, error, d * k, 1.05 * n * clip, empty=clip)


def single_cross_error() -> float:
    """Bound what float32 may be off by in C: in the one run that the record's row is added up in (lemma 7)."""
    return _TERM * single_sum_error(SHORT_SUM_ROWS)


def inner_bounds(n: int, k: int) -> SumBounds:
    """Bound what a replacement does to M, in coordinates whose diagonal is divided by sqrt(2)."""
    error = 1.05 * INNER_CAP * CHUNK_ROWS * relative_error(CHUNK_ROWS + 3)
    return SumBounds(INNER_CAP, error, upper_triangle(k), 1.05 * n * INNER_CAP, INNER_CAP * ROOT_HALF)


def smallest_clip() -> float:
    """Return the least c for which float64 adds no more than about one per cent to the sensitivity of C."""
    return 100.0 * 2.0 * math.sqrt(MOST_WEIGHT * INNER_CAP) * CHUNK_ROWS * relative_error(2 * CHUNK_ROWS)


def geometric_mean(values: PerRow, low: float, high: float, mu: float, run: Run) -> float:
    """Release the geometric mean of one positive number per record, each clipped to [low, high].

    Entry i is a function of record i (and of released values); the ends are public or released.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours: every term of the sum lies in [0, log(high / low)].
    Proof: docs/explanation/everyday-pca.md, lemma 8.
    """
    width = math.log(high / low)
    n = len(values)

    def sum_of_logs(lengths: Array) -> Array:
        return np.array([np.clip(np.log(np.maximum(lengths, low) / low), 0.0, width).sum()])

    error = width * CHUNK_ROWS * relative_error(CHUNK_ROWS)
    bounds = SumBounds(width, error, 1, 1.01 * n * width)
    total, _ = gaussian_sum(known_chunks(sum_of_logs, values), (1,), bounds, mu, run)
    return low * math.exp(min(max(float(total[0]) / n, 0.0), width))
