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

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from privspan._lib.rounding import UNIT_ROUNDOFF
from privspan._lib.rounding import relative_error as gamma
from privspan.stable.balls import ball_leverage_blocks
from privspan.stable.inverse import SLAB, CholeskyInverse, SeriesInverse, TailInverse

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

GRID = 2.0**-26
"""Spacing of the entries of an item: products lie on 2⁻⁵² and sums of them below 2 are exact in float64."""

_FINE_GRID, _FINEST_GRID = 2.0**-40, 2.0**-52  # rounding: grids of bases
_DEFLATION_RANKS = (0, 8, 56, 248)  # time: columns taken out beside the first k before the inverse is given up
_EXTRA_GUESSES = 8  # time
_POWER_STEPS = 4  # time: what they miss is bounded
_SQUARINGS = 45  # proof: of a power that bounds a norm
_NORM_ERROR = 2.0**-40  # rounding of `block_norms`, relative
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
    for start in range(0, len(tail), SLAB):  # a slab stays in the processor's cache
        rows = slice(start, start + SLAB)
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
    """The tail of a set of items and its certified inverse, from which smaller sets are reached by deletion."""

    items: NDArray[np.intp]  # which items, ascending
    factor: Array  # (N, r), F
    tail: TailInverse
    ridge: float
    width: int


def gram_of(items: NDArray[np.intp], gram: Array, width: int) -> Array:
    """Gram matrix (N, N) of the columns of some items, out of that of all."""
    rows = (items[:, None] * width + np.arange(width)).ravel()
    return np.asarray(gram[np.ix_(rows, rows)])


def _certified_bases(gram: Array, items: NDArray[np.intp], width: int, ridge: float, rank: int) -> Iterator[_Base]:
    """Split off the top of the Gram matrix of the given items and invert the rest: the fast way, then the sure one.

    A way that could not bound its error is left out.
    """
    own = gram_of(items, gram, width)
    factor, tail = split_gram(own, top_factor(own, min(rank, len(own))))
    del own  # matrices this large are let go as soon as they have done their part
    ways: tuple[type[SeriesInverse | CholeskyInverse], ...] = (SeriesInverse, CholeskyInverse)
    for way in ways:
        inverse = way.of(tail, ridge, width)
        if inverse is not None:
            yield _Base(items, factor, inverse, ridge, width)


def _leverages(base: _Base, keep: Mask) -> tuple[Array, float]:
    """Leverages of the kept items within the kept set, and a bound on the error of each.

    The inverse of the tail is known for every kept set; the deflated columns F come back by Woodbury's identity.
    """
    width, ridge, norm = base.width, base.ridge, base.tail.norm
    nothing = np.ones(len(keep)), np.inf  # known of any leverage: the caller starts afresh
    row_kept = np.repeat(keep, width)
    factor = base.factor * row_kept[:, None]  # (N, r), deleted rows are zero
    known = base.tail.restricted(row_kept, factor)
    if known is None:
        return nothing
    pulled = known.product
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
    blocks = np.eye(width) - known.blocks + np.einsum("rta,rtb->tab", per_item, per_item, optimize=True)
    values = block_norms((blocks + blocks.transpose(0, 2, 1)) / 2)
    rank, summing, pulling = factor.shape[1], gamma(len(row_kept)) * norm, known.product_error
    per_entry = (
        base.tail.moved / (1 - base.tail.moved)
        + _NORM_ERROR * (width > 1)
        + known.block_error
        + 8 * UNIT_ROUNDOFF * (norm + 2)
        + 2.2 * pulling * np.sqrt(rank * norm / smallest)
        + 1.1 * norm * rank * (pulling + summing + 8 * rank * gamma(rank + 2)) / smallest
    )
    return values, width * float(per_entry)


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
            for base in _certified_bases(self._gram, items, self._width, self._ridge, self._dimension + extra):
                values, error = _leverages(base, np.ones(len(items), dtype=bool))
                if error <= self._error:
                    self._base = base
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
