"""Stable leverage levels of records or groups of records, computed in floating point with proven error bounds.

An *item* is a matrix with columns in the unit ball: one record (width 1) or the basis of one block (width k).
With A_S the sum of Y Yᵀ over the items of S, the leverage of an item is h(S) = ‖Yᵀ (A_S + λI)⁻¹ Y‖. S_H is the
largest set whose items all have leverage at most 1/H, and the level τ of an item is the last H whose set holds
it. Replacing one item moves the level of every other item by at most one.

Everything is read off the Gram matrix K of all columns. Columns lie on the grid 2⁻²⁶, so K is *exact*: unchanged
items keep their entries to the last bit. Leverages come with a bound on their error that holds for every data
set, and thresholds are spaced so that levels stay 1-Lipschitz whatever the error below that bound. Nothing here
is private; the algorithms that read it are. Proofs: ``docs/explanation/stable-leverage.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack, solve_triangular

from privspan._lib.rounding import UNIT_ROUNDOFF
from privspan._lib.rounding import relative_error as gamma
from privspan.stable.balls import ball_leverage_blocks

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

GRID = 2.0**-26
"""Spacing of the entries of an item: products lie on 2⁻⁵² and sums of them below 2 are exact in float64."""

_FINE_GRID, _FINEST_GRID = 2.0**-40, 2.0**-52
_DEFLATION_RANKS = (0, 8, 56, 248)  # columns taken out beside the first k before the inverse is given up
_EXTRA_GUESSES = 8
_POWER_STEPS = 4
_SQUARINGS = 45
_MIRRORED = 256
_SLAB = 64  # rows of a large matrix that are gone over several times
_NORM_ERROR = 2.0**-40  # of `block_norms`, relative
_SMALLEST_CORE = 1e-3  # eigenvalue of Woodbury's unit-free core; with a smaller one the bound would be of no use


def exact_gram(columns: Iterable[Array], size: int) -> Array:
    """Add up the Gram matrix of rows given in slices of columns, without rounding.

    Entries must be multiples of `GRID` and rows at most 1 long: then every partial sum is a multiple of 2⁻⁵² of
    size at most 1, so any order of summation, on any BLAS, gives the same bits.
    """
    gram = np.zeros((size, size))
    for part in columns:  # (size, some columns)
        gram += part @ part.T
    return gram


def combination(columns: Callable[[], Iterable[Array]], coefficients: Array) -> Array:
    """Add up rows that are given, each time anew, in slices of columns, with coefficients (size, k), to (d, k)."""
    return np.vstack([part.T @ coefficients for part in columns()])


def top_factor(gram: Array, rank: int) -> Array:
    """Approximate the top `rank` eigenpairs of K by F with K ≈ F Fᵀ; no accuracy is assumed anywhere."""
    width = min(len(gram), rank + _EXTRA_GUESSES)
    basis = np.random.default_rng(0).standard_normal((len(gram), width))  # (N, width)
    for _ in range(_POWER_STEPS):
        basis = np.linalg.qr(gram @ basis)[0]
    try:
        values, vectors = np.linalg.eigh(basis.T @ (gram @ basis))
    except np.linalg.LinAlgError:  # a factor that is no use, as the bounds of whoever asked will show
        return np.zeros((len(gram), min(rank, width)))
    top = slice(None, -min(rank, width) - 1, -1)
    return np.asarray(basis @ (vectors[:, top] * np.sqrt(np.maximum(values[top], 0.0))))


def split_gram(gram: Array, factor: Array) -> tuple[Array, Array]:
    """Write K = F Fᵀ + T, up to 3.3 roundings of each entry of T.

    `factor` is rounded to a coarse, a fine and a finest grid, so that each product below is exact; only the
    subtractions of the small corrections round, and relative to T itself.
    """
    factor = np.clip(np.nan_to_num(factor), -1.0, 1.0)
    factor = factor / np.maximum(1.0, np.linalg.norm(factor, axis=1))[:, None]
    coarse = np.rint(factor / GRID) * GRID
    fine = np.rint((factor - coarse) / _FINE_GRID) * _FINE_GRID
    finest = np.rint((factor - coarse - fine) / _FINEST_GRID) * _FINEST_GRID
    pairs = (
        (coarse, coarse),
        (np.hstack([coarse, fine]), np.hstack([fine, coarse])),  # sums of products, exact in any order
        (np.hstack([coarse, fine, finest]), np.hstack([finest, fine, coarse])),
        (np.hstack([fine, finest, finest]), np.hstack([finest, fine, finest])),
    )
    tail = gram.copy()
    for start in range(0, len(tail), _SLAB):  # a slab stays in the processor's cache
        rows = slice(start, start + _SLAB)
        for left, right in pairs:
            tail[rows] -= left[rows] @ right.T
    return coarse + fine + finest, tail


def block_norms(blocks: Array) -> Array:
    """Operator norms of symmetric blocks (t, w, w), by repeated squaring: there is no iteration that could fail."""
    if blocks.shape[1] == 1:
        return np.abs(blocks[:, 0, 0])
    logarithm, scale = np.zeros(len(blocks)), np.ones(len(blocks))
    power = blocks @ blocks  # positive semidefinite
    for step in range(_SQUARINGS):
        size = np.einsum("tii->t", power)
        size = np.where(size > 0, size, 1.0)
        if step == 0:
            scale = np.where(power.any(axis=(1, 2)), np.sqrt(size), 0.0)  # the norm, but for a factor of √w at most
        else:
            logarithm += np.log(size) / 2.0 ** (step + 1)
        power = power / size[:, None, None]
        power = power @ power
    return np.asarray(scale * np.exp(logarithm))


@dataclass(frozen=True)
class _Base:
    """A certified inverse of the tail of a set of items, from which smaller sets are reached by deletion."""

    items: NDArray[np.intp]  # which items, ascending
    factor: Array  # (N, r), F
    inverse: Array  # (N, N), symmetric, close to λ (T + λI)⁻¹
    ridge: float
    width: int
    model_error: float  # of a leverage, from `inverse` being approximate
    norm: float  # at least ‖inverse‖
    condition: float  # at least ‖inverse‖ ‖inverse⁻¹‖


def gram_of(items: NDArray[np.intp], gram: Array, width: int) -> Array:
    """Gram matrix (N, N) of the columns of some items, out of that of all."""
    rows = (items[:, None] * width + np.arange(width)).ravel()
    return np.asarray(gram[np.ix_(rows, rows)])


def _certified_base(gram: Array, items: NDArray[np.intp], width: int, ridge: float, rank: int) -> _Base | None:
    """Invert the tail of the given items and bound the error from the residual; None if it is not small."""
    own = gram_of(items, gram, width)
    size = len(own)
    factor, shifted = split_gram(own, top_factor(own, min(rank, size)))
    del own  # matrices this large are let go as soon as they have done their part
    shifted.ravel()[:: size + 1] += ridge  # T + λI, (N, N)
    lower, failed = lapack.dpotrf(shifted, lower=1)
    if failed:
        return None
    inverse, failed = lapack.dpotri(lower, lower=1, overwrite_c=1)
    del lower
    if failed or not np.isfinite(inverse).all():
        return None
    _mirror(inverse)
    inverse *= ridge
    residual = shifted @ inverse
    residual.ravel()[:: size + 1] -= ridge
    rowsum, norm = (1.01 * float(linalg.norm(matrix, 1, check_finite=False)) for matrix in (shifted, inverse))
    defect = (1.01 * float(np.linalg.norm(residual)) + gamma(size + 2) * rowsum * norm) / ridge
    if not defect < 0.5:
        return None
    moved = (defect / (1 - defect) + 4.4 * UNIT_ROUNDOFF) * rowsum  # at least ‖λ inverse⁻¹ − (K − F Fᵀ + λI)‖
    indefinite = size * gamma(size + 1) * 1.01 * float(shifted.diagonal().max())
    if not 2 * (moved + indefinite) < ridge * min(1.0, 1 / norm):
        return None
    condition = norm * rowsum / (ridge * (1 - defect))
    return _Base(items, factor, inverse, ridge, width, moved / (ridge - moved), norm, condition)


def _mirror(matrix: Array) -> None:
    """Copy what is below the diagonal above it, a block at a time, which is faster than a row at a time."""
    for start in range(0, len(matrix), _MIRRORED):
        rows = slice(start, start + _MIRRORED)
        square = np.tril(matrix[rows, rows], -1)
        matrix[rows, rows] = square + square.T + np.diag(matrix[rows, rows].diagonal())
        matrix[rows, start + _MIRRORED :] = matrix[start + _MIRRORED :, rows].T


def _leverages(base: _Base, keep: Mask) -> tuple[Array, float]:
    """Leverages of the kept items within the kept set, and a bound on the error of each.

    Deletion is a Schur complement of the inverse; the deflated columns F come back by Woodbury's identity.
    """
    width, size, ridge = base.width, len(base.inverse), base.ridge
    nothing = np.ones(len(keep)), np.inf  # known of any leverage: the caller starts afresh
    row_kept = np.repeat(keep, width)
    gone = np.flatnonzero(~row_kept)
    factor = base.factor * row_kept[:, None]  # (N, r), deleted rows are zero
    pulled = base.inverse @ factor
    blocks = diagonal_blocks(base.inverse, width)  # (t, w, w)
    reach = reach_max = 0.0
    if len(gone):
        columns = base.inverse[:, gone]
        lower, failed = lapack.dpotrf(columns[gone], lower=1, clean=1)
        if failed:
            return nothing
        towards = solve_triangular(lower, columns.T, lower=True, check_finite=False) * row_kept  # (m, N)
        pulled -= towards.T @ (towards @ factor)
        per_item = towards.reshape(len(gone), -1, width)
        blocks = blocks - np.einsum("mta,mtb->tab", per_item, per_item, optimize=True)
        squares = np.einsum("mn,mn->n", towards, towards)
        reach, reach_max = 1.01 * float(squares.sum()), 1.01 * float(squares.max())  # ‖Z‖²_F, max ‖z‖²
    core = ridge * np.eye(factor.shape[1]) + factor.T @ pulled
    scale = np.sqrt((factor**2).sum(axis=0) + ridge)
    core = (core + core.T) / 2 / np.outer(scale, scale)  # (r, r), unit-free
    try:
        smallest = 0.99 * float(np.linalg.eigvalsh(core)[0])
        lower = np.linalg.cholesky(core)
    except np.linalg.LinAlgError:
        return nothing
    if not smallest > _SMALLEST_CORE:
        return nothing
    half = solve_triangular(lower, (pulled / scale).T, lower=True, check_finite=False)  # (r, N)
    per_item = half.reshape(half.shape[0], -1, width)
    blocks = np.eye(width) - blocks + np.einsum("rta,rtb->tab", per_item, per_item, optimize=True)
    values = block_norms(blocks)
    rank, deleted = factor.shape[1], len(gone)
    solving = 4 * deleted * gamma(deleted + 1) * base.condition
    pulling = (gamma(size) + 4 * UNIT_ROUNDOFF) * base.norm + 2 * (solving + gamma(size + deleted)) * reach
    per_entry = (
        base.model_error
        + _NORM_ERROR * (width > 1)
        + (solving + gamma(deleted + 2)) * reach_max
        + 4 * UNIT_ROUNDOFF * (base.norm + 2)
        + 2.2 * pulling * np.sqrt(rank * base.norm / smallest)
        + 1.1 * base.norm * rank * (pulling + gamma(size) * base.norm + 8 * rank * gamma(rank + 2)) / smallest
    )
    return values, width * float(per_entry)


def diagonal_blocks(matrix: Array, width: int) -> Array:
    """View the (t, w, w) blocks on the diagonal of a (tw, tw) matrix."""
    size = len(matrix) // width
    return np.asarray(matrix.reshape(size, width, size, width)[np.arange(size), :, np.arange(size), :])


def level_error(highest: int) -> float:
    """Error of a leverage that moves the threshold of level `highest` by about a tenth of a per cent."""
    return 1e-3 / highest**2


def level_thresholds(highest: int) -> Array:
    """Thresholds θ_1 > θ_2 > … such that computed leverages at most θ_j give a 1-Lipschitz level.

    With a_j = 1/(θ_j + e) and e = `level_error`: an item kept at j has true leverage at most 1/a_j ≤ 1/j, and
    1/(a_{j+1} − 1) ≤ θ_j − e, so that what is kept at j + 1 is kept at j after any one item is replaced.
    """
    error = level_error(highest)
    inverse = np.ones(highest + 1)  # a_0 unused
    for level in range(1, highest):
        inverse[level + 1] = 1 + inverse[level] / (1 - 3 * error * inverse[level])
    return np.asarray(1 / inverse - error)


class LeverageFilter:
    """The sets S_H of one data set, for growing H up to `highest`.

    `gram` is from `exact_gram`, with `width` columns per item; `dimension` is the number of large eigenvalues to
    expect, k: a hint for speed, not a promise.
    """

    def __init__(self, gram: Array, width: int, ridge: float, dimension: int, highest: int) -> None:
        self._gram, self._width, self._ridge, self._dimension = gram, width, ridge, dimension
        self._thresholds, self._error = level_thresholds(highest), level_error(highest)
        self.kept: Mask = np.ones(len(gram) // width, dtype=bool)
        self._base: _Base | None = None
        self._values: Array | None = None

    def advance(self, level: int, fewest: int = 1) -> bool:
        """Delete violators until every item left has leverage at most the threshold of `level`.

        Gives up and returns False once fewer than `fewest` items are left.
        """
        if self._base is None:
            self._drop_obvious(self._thresholds[level])
        while np.count_nonzero(self.kept) >= max(1, fewest):
            violators = self.kept & (self._current() > self._thresholds[level])
            if not violators.any():
                return True
            self.kept = self.kept & ~violators
            self._values = None
        return False

    def idle_until(self) -> int:
        """Return the last level at which nothing more would be deleted."""
        worst = float(self._current()[self.kept].max())
        return int(np.count_nonzero(self._thresholds[1:] >= worst))

    def _current(self) -> Array:
        """Leverages of the kept items, within `level_error`; the others are zero."""
        if self._values is None:
            items, values = self._certified()
            self._values = np.zeros(len(self.kept))
            self._values[items] = values
        return self._values

    def _certified(self) -> tuple[NDArray[np.intp], Array]:
        """Leverages of items among which are all kept ones: by deletion if the error allows it, or afresh."""
        if self._base is not None:
            values, error = _leverages(self._base, self.kept[self._base.items])
            if error <= self._error:
                return self._base.items, values
        items = np.flatnonzero(self.kept)
        for extra in _DEFLATION_RANKS:
            self._base = _certified_base(self._gram, items, self._width, self._ridge, self._dimension + extra)
            if self._base is not None:
                values, error = _leverages(self._base, np.ones(len(items), dtype=bool))
                if error <= self._error:
                    return items, values
        # Rare: see the proof page. Giving up would be an abstention that the proof does not cover.
        self._base = None
        own = gram_of(items, self._gram, self._width)
        return items, block_norms(ball_leverage_blocks(own, self._width, self._ridge, self._error))

    def _drop_obvious(self, threshold: float) -> None:
        """Delete items whose leverage exceeds the threshold by Cauchy–Schwarz: h ≥ ‖y‖⁴ / (yᵀ(A_S + λI)y)."""
        squares = self._gram**2
        norms = self._gram.diagonal()
        while True:
            row_kept = np.repeat(self.kept, self._width).astype(float)
            spread = squares @ row_kept + self._ridge * norms
            with np.errstate(divide="ignore", invalid="ignore"):
                bound = np.where(norms > 0, norms**2 / spread, 0.0) * (1 - gamma(len(norms) + 8))
            violators = self.kept & (bound.reshape(-1, self._width).max(axis=1) > threshold)
            if not violators.any():
                return
            self.kept = self.kept & ~violators
