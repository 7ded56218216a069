"""Means and standard deviations of winsorised cells: cut off at a number of spreads from their centre.

Where columns lie was found before (`privspan.standard.ranges`).  Proof: docs/explanation/standardised.md, lemma 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privspan._lib.arrays import Reals
from privspan._lib.rounding import relative_error, sqrt_up
from privspan.privacy.run import Run
from privspan.rows.columns import PublicColumns
from privspan.rows.gaps import surely_whole
from privspan.rows.table import Table
from privspan.rows.unit import CHUNK_ROWS
from privspan.standard.ranges import Ranges
from privspan.sums.gaps import Gaps
from privspan.sums.grid import SumBounds, gaussian_sum

Array = NDArray[np.float64]

SQUARES = Fraction(83, 50)
"""Weight of squares beside means: (v, 1.66 v²) for v between -1 and 1 has diameter 2 (lemma 3)."""


@dataclass(frozen=True)
class CellMoments:
    """Means and standard deviations of columns whose cells are cut off at `low` and `high`; NaN where none was found.

    Attributes
    ----------
    low, high, mean, mean_std, scale, scale_std : (d,) arrays
        `scale` is the standard deviation; the others are its noise and that of the mean.
    """

    low: Array
    high: Array
    mean: Array
    mean_std: Array
    scale: Array
    scale_std: Array


@dataclass(frozen=True)
class Winsor:
    """Cells less a centre, in some unit and cut off at so many of these: a value that travels to where the rows are.

    Attributes
    ----------
    centre : (d,) array
    factor : (d,) array
        1 / unit; 0 for columns without a range, which are zeros.
    most : (d,) array
    """

    centre: Array
    factor: Array
    most: Array

    def __call__(self, rows: Reals) -> Array:
        """Return the cells; a gap is 0, as the centre is; (rows, d)."""
        numbers = np.asarray(rows, dtype=np.float64)
        whole = surely_whole(numbers)
        with np.errstate(all="ignore"):
            cells = np.subtract(numbers, self.centre)
            cells *= self.factor
            np.minimum(cells, self.most, out=cells)
            np.maximum(cells, -self.most, out=cells)
        if not whole:
            cells[~np.isfinite(numbers)] = 0.0
        return cells


def reaches(ranges: Ranges, public: PublicColumns, spreads: float) -> Array:
    """Return how far from its centre each column is cut off: so many spreads, no further than its bounds; (d,)."""
    with np.errstate(invalid="ignore"):
        furthest = np.maximum(np.abs(public.high - ranges.centre), np.abs(ranges.centre - public.low))
        reach = np.fmin(spreads * ranges.spread, furthest)  # fmin: bounds may be unknown
    return np.where(ranges.measured & (reach > 0.0), reach, np.nan)


def measured_ranges(ranges: Ranges, moments: CellMoments, public: PublicColumns, clear: float) -> Ranges:
    """Return ranges by the means and standard deviations that were released, where these are clear enough.

    A look loses least, and tells its noise best, about the mean: what a mean that is far off adds to its noise is not
    told.
    """
    near = moments.mean_std < clear * ranges.spread
    better = (moments.scale_std < clear * moments.scale) & ~public.boolean
    centre, spread = np.where(near, moments.mean, ranges.centre), np.where(better, moments.scale, ranges.spread)
    return Ranges(centre, spread, ranges.spike)


def winsor(ranges: Ranges, reach: Array, unit: Array | None = None) -> Winsor:
    """Return cells of columns cut off at their reach, in a unit: that reach itself, if none is given."""
    found, unit = np.isfinite(reach), reach if unit is None else unit
    most = np.ones_like(reach) if unit is reach else np.where(found, reach / unit, 0.0)
    factor = 1.0 / np.where(found, unit, np.inf)
    return Winsor(np.where(found, ranges.centre, 0.0), factor, most)


def cell_moments(
    source: Table, ranges: Ranges, reach: Array, mu: float, run: Run, gaps: Gaps | None = None
) -> CellMoments:
    """Release means and standard deviations of the columns, cut off at their reach.

    Parameters
    ----------
    source : Table
        Dense.
    ranges : Ranges
    reach : (d,) array
        As `reaches` returns it.
    mu : float
    run : Run
        Draws the noise.
    gaps : Gaps, optional
        Released counts: the numbers are then those of the present cells.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours.  Proof: docs/explanation/standardised.md, lemma 3.
    """
    (n, d), found = source.shape, np.isfinite(reach)
    columns, weight = int(found.sum()), float(SQUARES)
    nothing = np.full(d, np.nan)
    if not columns:
        return CellMoments(*(nothing,) * 6)
    bounds = cell_bounds(n, columns)
    summing = partial(cell_sums, winsor=winsor(ranges, reach), columns=np.flatnonzero(found))
    noisy, sigma = gaussian_sum(source.sums(summing), (2, columns), bounds, mu, run)
    present = np.ones(columns) if gaps is None else gaps.present[found]
    mean, square = noisy[0] / (n * present), noisy[1] / (weight * n * present)  # in reaches
    mean_std, square_std = sigma / (n * present), sigma / (weight * n * present)
    mean = np.clip(mean, -1.0, 1.0)
    variance_std = np.hypot(square_std, 2.0 * np.abs(mean) * mean_std)
    variance = np.clip(square - mean**2 + mean_std**2, variance_std, 1.0)  # no less than could be seen
    scale = np.sqrt(variance)
    # Half of the way down to where the variance is two errors smaller, which may be 0.
    below = np.sqrt(np.maximum(variance - 2.0 * variance_std, 0.0))
    scale_std = np.where(variance > variance_std, (scale - below) / 2.0, scale)
    placed = [nothing.copy() for _ in range(4)]
    each = (mean, mean_std, scale, scale_std)
    for values, column in zip(placed, each, strict=True):
        values[found] = column * reach[found]
    return CellMoments(
        ranges.centre - reach, ranges.centre + reach, np.where(found, ranges.centre, 0.0) + placed[0], *placed[1:]
    )


def cell_bounds(n: int, columns: int) -> SumBounds:
    """Return what one record can do to the sums of cells and of their squares: 2 for every column (lemma 3).

    In float64 a chunk's sum of numbers up to 1, and one of up to 1.66, are off by gamma times their number.
    """
    error = 2.0 * math.sqrt(columns) * CHUNK_ROWS * relative_error(CHUNK_ROWS + 4)
    return SumBounds(sqrt_up(Fraction(4 * columns)), 1.01 * error, 2 * columns, 1.7 * n)


def cell_sums(rows: Reals, *, winsor: Winsor, columns: NDArray[np.intp]) -> Array:
    """Sum winsorised cells, and 1.66 times their squares, by column; (2, columns)."""
    cells = winsor(rows)[:, columns]
    return np.array([cells.sum(axis=0), float(SQUARES) * np.einsum("ij,ij->j", cells, cells)])
