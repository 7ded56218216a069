"""Where the bulk of each column lies: noisy histograms that zoom in, then means and squares of winsorised cells.

The first histogram of a column has bins by powers of 16, from tiny to huge and of either sign; every further one cuts
the stretch that was found filled into 24 even bins, until at least five of them are.  Columns with public bounds skip
the first.  Cells are then measured from the centre that was found, in spreads, and cut off at a number of spreads.
Shares of mu² are fixed beforehand, whatever is found.  Proof: docs/explanation/standardised.md, lemmas 2 and 3.
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
from privspan.privacy.zero_out import MOMENTS
from privspan.rows.columns import PublicColumns
from privspan.rows.gaps import surely_whole
from privspan.rows.table import Table
from privspan.rows.unit import CHUNK_ROWS
from privspan.sums.gaps import Gaps
from privspan.sums.grid import SumBounds, gaussian_sum

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]

SQUARES = Fraction(83, 50)
"""Weight of squares beside means: (v, 1.66 v²) for v between -1 and 1 has diameter 2 (lemma 3)."""


@dataclass(frozen=True)
class RangeTuning:
    """How ranges are searched; fitted by benchmarks/scripts/standardised_tables.py on tables it does not report."""

    stages: tuple[float, ...] = (0.04, 0.04, 0.025, 0.015, 0.01, 0.005, 0.005, 0.005)  # relative shares of mu²
    filled: int = 5  # bins that end the zooming
    false: float = 1e-3  # most probability that noise alone passes for a filled bin, in any column
    likely: float = 2.0  # deviations that a bin beside a filled one needs to count as well
    draw: float = 4000.0  # n mu / sqrt(d) of rows that are drawn for histograms: more would not make them better
    fewest: int = 2**14  # rows of a draw
    bins: int = 24  # even ones, of every histogram but the first
    base: float = 16.0  # of the edges of the first: coarse, as it spans all that occurs
    tiny: int = -8  # exponent of the first edge beside 0
    huge: int = 12  # of the last one: a column beyond has no range
    mostly: float = 0.8  # of the cells found: with more in one bin of the last histogram, they have one value

    @property
    def first_edges(self) -> Array:
        """Edges of the first histogram, of either sign; (42,)."""
        powers = self.base ** np.arange(self.tiny, self.huge + 1.0)
        return np.concatenate([-powers[::-1], powers])


RANGES = RangeTuning()


@dataclass(frozen=True)
class Ranges:
    """Centre and spread of the bulk of every column, released or public; NaN where nothing stood out.

    Attributes
    ----------
    centre, spread : (d,) arrays
    spike : (d,) array of bool
        Where the search closed on one value, which most cells have: hardly more is seen of a cell than on which side
        of that value it lies.
    """

    centre: Array
    spread: Array
    spike: Bools

    @property
    def measured(self) -> Bools:
        """Which columns have one; (d,)."""
        return np.isfinite(self.spread)


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


def looks_for_ranges(public: PublicColumns) -> bool:
    """Tell whether a column lacks a range, so that histograms are asked for."""
    return not bool(((np.isfinite(public.around) & public.scaled) | public.boolean).all())


def find_ranges(
    source: Table,
    public: PublicColumns,
    run: Run,
    share: float,
    tuning: RangeTuning = RANGES,
) -> Ranges:
    """Release where the bulk of every column lies.

    Parameters
    ----------
    source : Table
        Dense.
    public : PublicColumns
        Bounds replace the first histogram, Boolean columns need none, scales with a centre neither.
    run : Run
    share : float
        Of mu², for all histograms together.
    tuning : RangeTuning, optional

    Guarantee
    ---------
    Gaussian steps with fixed shares of mu², for replace-one neighbours: at most the share that is spent.
    Proof: docs/explanation/standardised.md, lemma 2.
    """
    d = source.shape[1]
    known = np.isfinite(public.around) & public.scaled
    centre = np.where(known, public.around, np.where(public.boolean, 0.5, np.nan))
    spread = np.where(known, public.units, np.where(public.boolean, 0.5, np.nan))
    low, high = public.low.copy(), public.high.copy()  # of the next histogram; NaN before the first
    spike = np.zeros(d, dtype=bool)
    active = np.flatnonzero(~np.isfinite(spread))
    if not len(active):
        return Ranges(centre, spread, spike)
    drawn = _drawn(source, run.account.mu, run.streams.public, tuning)
    shares = np.array(tuning.stages) / sum(tuning.stages) * (share * (1.0 - 2.0**-40))  # no more, as they round
    for stage, part in enumerate(shares.tolist()):
        mu = run.account.spend(f"range {stage + 1}", part, MOMENTS)  # spent even if there is nothing left to find
        if not len(active):
            continue
        counts, sigma = _histograms(drawn, active, low[active], high[active], mu, run, tuning)
        again = []
        for j, h in zip(active.tolist(), counts, strict=True):
            first = math.isnan(low[j])
            edges = tuning.first_edges if first else np.linspace(low[j], high[j], tuning.bins + 1)
            h = h[: len(edges) - 1]
            filled = _filled_bins(h, sigma, _sure(len(active) * len(h), tuning.false), tuning.likely)
            if filled is None:
                if not first and math.isnan(spread[j]):  # spread too evenly for any bin to stand out
                    centre[j], spread[j] = (low[j] + high[j]) / 2.0, (high[j] - low[j]) / math.sqrt(12.0)
                continue
            a, b = filled
            pad = 0.0
            if not first:
                pad = edges[1] - edges[0]  # the width of a bin
                centre[j], spread[j], spike[j] = _bulk(np.maximum(h[a : b + 1], 0.0), edges[a : b + 2], tuning.mostly)
            coarse = first or b - a + 1 < tuning.filled
            if coarse and not (public.whole[j] and 0.0 < pad <= 1.0):  # whole numbers have nothing between them
                low[j], high[j] = edges[a] - pad, edges[b + 1] + pad
                if high[j] - low[j] > tuning.bins * np.spacing(max(abs(low[j]), abs(high[j]))):
                    again.append(j)
        active = np.array(again, dtype=np.intp)
    return Ranges(centre, spread, spike)


def _bulk(mass: Array, edges: Array, mostly: float) -> tuple[float, float, bool]:
    """Return centre and spread of what lies in even bins, and whether most of it is in one of them."""
    middle, total = (edges[:-1] + edges[1:]) / 2.0, mass.sum()
    centre = float(mass @ middle / total)
    spread = math.sqrt(mass @ (middle - centre) ** 2 / total + (edges[1] - edges[0]) ** 2 / 12.0)
    return centre, spread, bool(mass.max() > mostly * total)


def _sure(bins: int, false: float) -> float:
    """Return how many deviations noise alone stays below in so many bins, but for that probability."""
    return math.sqrt(2.0 * math.log(bins / false))


def _filled_bins(h: Array, sigma: float, sure: float, likely: float) -> tuple[int, int] | None:
    """Return the first and the last bin that surely hold something, with neighbours that may; None if none does."""
    seen = np.flatnonzero(h > sure * sigma)
    if not len(seen):
        return None
    maybe = h > likely * sigma
    first, last = int(seen[0]), int(seen[-1])
    while first > 0 and maybe[first - 1]:
        first -= 1
    while last < len(h) - 1 and maybe[last + 1]:
        last += 1
    return first, last


def _drawn(source: Table, mu: float, public: np.random.Generator, tuning: RangeTuning) -> Table:
    """Return a public draw of rows for the histograms, where there are far more than these need."""
    n, d = source.shape
    rows = max(tuning.fewest, math.ceil(tuning.draw * math.sqrt(d) / mu))
    if not source.drawable or n < 2 * rows:
        return source
    return source.draw(np.sort(public.choice(n, rows, replace=False, shuffle=False)))


def _histograms(
    table: Table, columns: NDArray[np.intp], low: Array, high: Array, mu: float, run: Run, tuning: RangeTuning
) -> tuple[Array, float]:
    """Release the histograms of some columns, (columns, bins), and the deviation of a count.

    Bins are even ones from `low` to `high`, or the first ones where these are NaN.
    """
    bins = max(len(tuning.first_edges) - 1, tuning.bins)
    entries = len(columns) * bins
    # Counts of a chunk are exact, but for averages over the rows of a person.
    error = math.sqrt(entries) * table.count_error
    one = sqrt_up(Fraction(len(columns)))  # of an empty place, which leaves a bin and enters none
    bounds = SumBounds(histogram_sensitivity(len(columns)), error, entries, 1.1 * table.shape[0], one)
    counting = partial(bin_counts, columns=columns, low=low, high=high, bins=bins, tuning=tuning)
    return gaussian_sum(table.sums(counting, exact=True), (len(columns), bins), bounds, mu, run)


def histogram_sensitivity(columns: int) -> float:
    """Return sqrt(2 columns), rounded up: one record leaves a bin of every column and enters another (lemma 2)."""
    return sqrt_up(Fraction(2 * columns))


def bin_counts(
    rows: Reals,
    *,
    columns: NDArray[np.intp],
    low: Array,
    high: Array,
    bins: int,
    tuning: RangeTuning = RANGES,
) -> Array:
    """Count the cells in every bin of some columns, gaps nowhere; each is in one bin at most, by itself.

    What lies outside of even bins counts in the outermost.  What lies beyond the first bins counts nowhere: a column
    of such numbers has no range, rather than a wrong one.

    Returns
    -------
    (columns, bins) array
    """
    counts, edges, even = np.zeros((len(columns), bins)), tuning.first_edges, tuning.bins
    for i, j in enumerate(columns.tolist()):
        cells = np.asarray(rows[:, j], dtype=np.float64)
        cells = cells[np.isfinite(cells)]
        if math.isnan(low[i]):
            cells = cells[(cells >= edges[0]) & (cells < edges[-1])]
            place = np.searchsorted(edges, cells, side="right") - 1
            last = len(edges) - 2
        else:
            with np.errstate(all="ignore"):
                place = np.floor(np.clip((cells - low[i]) * (even / (high[i] - low[i])), -1.0, even)).astype(np.intp)
            last = even - 1
        counts[i] = np.bincount(np.clip(place, 0, last), minlength=bins)
    return counts


# ---- Winsorised cells ----------------------------------------------------------------------------------------------


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

    How far histograms zoom in on a column with a long tail is a matter of noise, and so is its spread; its standard
    deviation between wide ends hardly depends on that.
    """
    better = (moments.scale_std < clear * moments.scale) & ~public.boolean
    centre, spread = np.where(better, moments.mean, ranges.centre), np.where(better, moments.scale, ranges.spread)
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
