"""Sums over records with Gaussian noise whose sensitivity covers float64 as well as the mathematics.

A replacement touches one chunk of rows.  Each chunk's sum is computed in float64, rounded to a grid, and the
rounded sums are added without any error: they are integers, in units of the grid, and a bound that is known in
advance keeps every partial sum below 2**53, where float64 holds integers exactly.  So what a replacement can change
beyond the mathematical sensitivity is the rounding error of one chunk, whatever the number of rows:

    change  <=  sensitivity  +  2 * (float64 error of one chunk)  +  sqrt(entries) * grid.

`SumBounds` carries these numbers, `noise_level` turns them and a mu into standard deviation and grid, `GridSum` does
the exact adding.  Proof: docs/explanation/everyday-pca.md, lemma 3.
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

from privspan._lib.rounding import up
from privspan.privacy.noise import grid_for
from privspan.privacy.run import Run
from privspan.privacy.zero_out import gain
from privspan.rows.partitioned_rows import ChunkSums, folded

Array = NDArray[np.float64]

_FINER = 16  # grid steps per step of `grid_for`: rounding then costs next to nothing
_SLAB_ENTRIES = 2**22
_EXACT_STEPS = 2.0**52  # totals stay below it, so that a float64 holds them and their partial sums exactly


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
        """How much less of an empty place than of a replacement the sum tells: `privspan.privacy.zero_out`."""
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
