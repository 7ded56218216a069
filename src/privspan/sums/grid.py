"""Sums over records with Gaussian noise whose sensitivity covers float64 as well as the mathematics.

A replacement touches one chunk of rows.  Each chunk's sum is computed in float64, rounded to a grid, and the
rounded sums are added without any error: they are integers, in units of the grid, and a bound that is known in
advance keeps every partial sum below 2**53, where float64 holds integers exactly.  So what a replacement can change
beyond the mathematical sensitivity is the rounding error of one chunk, whatever the number of rows:

    change  <=  sensitivity  +  2 * (float64 error of one chunk)  +  sqrt(entries) * grid.

`SumBounds` carries these numbers, `noise_level` turns them and a mu into standard deviation and grid, `GridSum` does
the exact adding.  Proof: docs/explanation/everyday-pca.md, lemma 3.

*Zero-out*: an empty place adds nothing to a sum, votes for no bin and makes its pair or group empty; the number of
places is public, as always.  Against a replacement it moves sums half as far and second moments less far by sqrt(2),
at the noise that is there anyway: a step of mu for replace-one neighbours has mu / gain for these.  Counts have a
gain of 1.  How far a run gets may depend on results, so the sum of (mu / gain)² along it promises nothing.  What does
is a bound for every way that the run may take, fixed before the first of them (`most_share`): at most a share `plain`
of mu² goes to steps without a gain, and all others have the one that is named.  Proofs: docs/explanation/zero-out.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privspan._lib.rounding import relative_error, up
from privspan.privacy.noise import grid_for
from privspan.privacy.run import Run
from privspan.rows.partitioned_rows import AnyRows, ChunkSums, folded
from privspan.rows.scaling import Piece, combined, single_sum_error
from privspan.rows.unit import CHUNK_ROWS

Array = NDArray[np.float64]

_FINER = 16  # grid steps per step of `grid_for`: rounding then costs next to nothing
_SLAB_ENTRIES = 2**22
_EXACT_STEPS = 2.0**52  # totals stay below it, so that a float64 holds them and their partial sums exactly
_KEPT = 0.99  # of a gain: rounding is charged for either relation, and counts for more in the smaller one
_ROUND = 1.0 - 2.0**-48  # rounding: more than these operations can be off

ROOT_HALF = math.nextafter(math.sqrt(0.5), 1.0)
"""What a positive semidefinite matrix of norm 1 is, over what two of them differ by; rounded up: lemma 1."""


def gain(sensitivity: float, empty: float) -> float:
    """Return the gain of a sum that a replacement moves by `sensitivity`, and an empty place by `empty`: at least 1.

    `noise_level` sees to it that what rounding adds to both does not take it away.
    """
    return max(1.0, _KEPT * _ROUND * (sensitivity / empty))


MOMENTS = gain(1.0, ROOT_HALF)
"""Of second moments and of histograms: sqrt(2), but for rounding."""

SUMS = gain(2.0, 1.0)
"""Of sums of vectors: 2, but for rounding."""


def look_gain(constant: float, width: int = 1) -> float:
    """Return the gain of second moments of rows with a constant, of persons with so many rows."""
    return gain(1.0 + constant * constant, look_empty(constant, math.sqrt(width)))


def look_empty(constant: float, most: float = 1.0) -> float:
    """Return how far an empty place moves them, where a replacement does by 1 + constant²; rounded up.

    The constant is left where a place is empty.  `most` bounds the squared factor by which a person is lifted.
    """
    square = constant * constant
    both = math.hypot(1.0 + square, most * square)
    return min(1.0 + square, ROOT_HALF * both * (2.0 - _ROUND))


def most_share(plain: float, gain: float) -> float:
    """Return the share of mu² that an empty place can tell, at most; rounded up.

    For runs with at most a share `plain` of mu² in steps without a gain, and no less than this `gain` in all others.
    """
    plain = min(1.0, plain)
    return min(1.0, (plain + (1.0 - plain) / gain**2) * (1.0 + 1e-9))


@dataclass(frozen=True)
class SumBounds:
    """What one record can do to a sum, and how far float64 can be off."""

    sensitivity: float  # largest Euclidean change of the sum under replacement, in exact arithmetic
    chunk_error: float  # bound on the Euclidean norm of the float64 error of one chunk's sum
    entries: int  # coordinates released, over all releases that share the noise level
    largest: float  # bound on the magnitude of every entry of the whole sum
    empty: float | None = None  # the change if a place is left empty; None if that is no less than a replacement's

    @property
    def gain(self) -> float:
        """How much less of an empty place than of a replacement the sum tells."""
        return 1.0 if self.empty is None else gain(self.sensitivity, self.empty)


@dataclass(frozen=True)
class NoiseLevel:
    """Standard deviation of the noise and spacing of the grid that the sum and the noise live on."""

    sigma: float
    grid: float


def noise_level(bounds: SumBounds, mu: float, *, grid: float | None = None) -> NoiseLevel:
    """Return the noise that makes a sum with these bounds mu-GDP, rounded up.

    ``sigma >= (sensitivity + 2 chunk_error + sqrt(entries) grid) / mu`` as real numbers.  It is mu / gain-GDP for
    zero-out, too: there is more noise for that only where rounding is charged with about a hundredth.  `grid` is a
    power of two where several levels must share one; by default there are 2**24 steps or more per standard deviation.
    """
    grid = grid_for(bounds.sensitivity / mu) / _FINER if grid is None else grid
    # Very many rows or very little noise: a coarser grid keeps the adding exact, and its charge is paid below.
    while bounds.largest / grid > _EXACT_STEPS:
        grid *= 2.0
    root = math.isqrt(bounds.entries - 1) + 1  # at least the square root
    rounding = 2 * Fraction(bounds.chunk_error) + root * Fraction(grid)
    change = Fraction(bounds.sensitivity) + rounding
    if bounds.empty is not None:
        change = max(change, Fraction(bounds.gain) * (Fraction(bounds.empty) + rounding))
    return NoiseLevel(up(change / Fraction(mu)), grid)


class GridSum:
    """An exact running sum of arrays, each rounded to multiples of `grid` when it is added."""

    def __init__(self, shape: tuple[int, ...], grid: float) -> None:
        self._grid = grid
        self._steps = np.zeros(shape)  # whole numbers of steps

    def add(self, chunk_sum: Array) -> None:
        """Round one chunk's sum to the grid and add it."""
        if chunk_sum.size <= _SLAB_ENTRIES:
            self._steps += np.rint(chunk_sum / self._grid)
            return
        for rows in row_slabs(len(chunk_sum), chunk_sum[:1].size):
            self._steps[rows] += np.rint(chunk_sum[rows] / self._grid)

    def plus(self, other: GridSum) -> GridSum:
        """Return the exact sum of both, a fresh one."""
        both = GridSum(self._steps.shape, self._grid)
        both._steps = self._steps + other._steps
        return both

    def total(self) -> Array:
        """Return the sum, every entry an exact multiple of the grid."""
        return self._steps * self._grid


class GridSums:
    """Exact running sums of several arrays beside one another, each of a shape and on a grid of its own."""

    def __init__(self, wanted: Sequence[tuple[tuple[int, ...], float]]) -> None:
        self.sums = [GridSum(shape, grid) for shape, grid in wanted]

    def add(self, parts: Sequence[Array]) -> None:
        """Take in the arrays of one chunk."""
        for total, part in zip(self.sums, parts, strict=True):
            total.add(part)

    def plus(self, other: GridSums) -> GridSums:
        """Return the exact sums of both, fresh ones."""
        both = copy(self)
        both.sums = [one.plus(more) for one, more in zip(self.sums, other.sums, strict=True)]
        return both


def row_slabs(rows: int, columns: int) -> Iterator[slice]:
    """Cut a tall matrix into slabs of rows, so that what is computed from one slab at a time takes little memory."""
    step = max(1, _SLAB_ENTRIES // max(columns, 1))
    for start in range(0, rows, step):
        yield slice(start, min(start + step, rows))


def grid_total(chunk_sums: ChunkSums, shape: tuple[int, ...], grid: float) -> Array:
    """Return the exact sum of the arrays, each rounded to the grid where its rows are."""
    return folded(chunk_sums, partial(GridSum, shape, grid)).total()


def grid_totals(chunk_sums: ChunkSums, *wanted: tuple[tuple[int, ...], float]) -> list[Array]:
    """Return the same for chunks with several arrays, which have these shapes and grids."""
    return [one.total() for one in folded(chunk_sums, partial(GridSums, wanted)).sums]


def gaussian_sum(
    chunk_sums: ChunkSums, shape: tuple[int, ...], bounds: SumBounds, mu: float, run: Run
) -> tuple[Array, float]:
    """Release a sum over chunks with Gaussian noise; also return the noise's standard deviation.

    The chunks are float64 arrays of `shape`, each a function of the rows of that chunk (and of public numbers).

    Guarantee
    ---------
    mu-GDP for replace-one neighbours whenever `bounds` hold, hence (epsilon, delta)-DP for every pair that
    ``privspan.privacy.gdp`` derives from mu.  Proof: docs/explanation/everyday-pca.md, lemma 3.
    """
    level = noise_level(bounds, mu)
    total = grid_total(chunk_sums, shape, level.grid)
    return run.gaussian(total, level.sigma, level.grid), level.sigma


def row_bounds(n: int, columns: int, rounding: float = 1.0, single: bool = False) -> SumBounds:
    """Return what one record can do to the sum of n rows of length at most 1: move it by 2, or by 1 if it goes.

    For rows whose errors are `rounding` times as large, or that are `single`, added up by `row_sums`.
    """
    # The float64 sum of at most CHUNK_ROWS numbers is off by gamma times the sum of their sizes; over the
    # coordinates of rows of length at most 1 these errors have the Euclidean norm gamma times CHUNK_ROWS.
    error = 1.01 * CHUNK_ROWS * relative_error(CHUNK_ROWS) * rounding
    return SumBounds(2.0, error + (1.01 * single_sum_error() if single else 0.0), columns, 1.1 * n, empty=1.0)


def row_sums(rows: AnyRows) -> ChunkSums:
    """Return the sum of the rows of each chunk, (columns,); those of float32 are added up in runs of that type."""
    dtype = np.float32 if rows.single else np.float64

    def part(piece: Piece, factors: Array) -> Array:
        return combined(piece, factors[:, None].astype(dtype)).ravel()

    return rows.map_folded(part)


def gaussian_symmetric(total: Array, level: NoiseLevel, run: Run) -> Array:
    """Add symmetric noise to a symmetric matrix on the grid: `sigma` off the diagonal, sqrt(2) times it on it.

    With the diagonal divided by sqrt(2) the upper triangle, which alone is read, has the Euclidean norm
    ||matrix||_F / sqrt(2), so `level` is to be made with that sensitivity.
    """
    m = total.shape[0]
    rows, columns = np.triu_indices(m, 1)
    noisy = np.zeros((m, m))
    noisy[rows, columns] = run.gaussian(total[rows, columns], level.sigma, level.grid)
    noisy += noisy.T
    diagonal_sigma = level.sigma * math.nextafter(math.sqrt(2.0), 2.0)
    noisy[np.diag_indices(m)] = run.gaussian(np.diagonal(total).copy(), diagonal_sigma, level.grid)
    return noisy


def upper_triangle(m: int) -> int:
    """Return the number of distinct entries of a symmetric (m, m) matrix."""
    return m * (m + 1) // 2
