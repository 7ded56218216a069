"""Where the bulk of each column lies: noisy histograms that zoom in.

The first histogram of a column has bins by powers of 16, from tiny to huge and of either sign; every further one cuts
a stretch about the bulk into 24 even bins, until the bulk is wider than one of them.  Columns with public bounds skip
the first.  What all histograms of a column tell together is its density (`Density`), which has a centre and a spread.
Shares of mu² are fixed beforehand, whatever is found.  Proof: docs/explanation/standardised.md, lemma 2.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privspan._lib.arrays import Reals
from privspan._lib.rounding import sqrt_up
from privspan.privacy.run import Run
from privspan.rows.columns import PublicColumns
from privspan.rows.table import Table
from privspan.sums.grid import MOMENTS, SumBounds, gaussian_sum

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class RangeTuning:
    """How ranges are searched; fitted by benchmarks/scripts/standardised_tables.py on tables it does not report."""

    stages: tuple[float, ...] = (0.04, 0.04, 0.025, 0.015, 0.01, 0.005, 0.005, 0.005)  # relative shares of mu²
    resolved: float = 1.25  # bins: a spread of so many ends the zooming
    far: float = 4.0  # spreads from the centre, at which cells are cut off where their spread is measured
    rounds: int = 20  # until the spread is about that of the cells which are cut off at so many spreads
    lone: float = 4.0  # deviations that a bin away from filled ones needs to count: false in one table of a hundred
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
    seen: dict[int, Density] = {}
    shares = np.array(tuning.stages) / sum(tuning.stages) * (share * (1.0 - 2.0**-40))  # no more, as they round
    for stage, part in enumerate(shares.tolist()):
        mu = run.account.spend(f"range {stage + 1}", part, MOMENTS)  # spent even if there is nothing left to find
        if not len(active):
            continue
        counts, sigma = _histograms(drawn, active, low[active], high[active], mu, run, tuning)
        again = []
        for j, h in zip(active.tolist(), counts / sigma, strict=True):
            first = math.isnan(low[j])
            edges = tuning.first_edges if first else np.linspace(low[j], high[j], tuning.bins + 1)
            h = h[: len(edges) - 1]
            if j in seen:  # what lies outside and was seen before: it counts in the outermost bins
                h[[0, -1]] -= seen[j].beyond(edges[0], edges[-1]) / sigma
            filled = _filled_bins(h, _sure(len(active) * len(h), tuning.false), tuning.likely)
            if filled is None:
                if not first and j not in seen:  # spread too evenly for any bin to stand out
                    centre[j], spread[j] = _evenly(low[j], high[j])
                continue
            if first:
                low[j], high[j] = edges[filled[0]], edges[filled[1] + 1]
            else:
                counted = sigma * _counted(h, filled, tuning.lone)
                seen[j] = seen.get(j, Density(edges, 0.0 * h)).refined(edges, counted)
                centre[j], spread[j] = seen[j].bulk(tuning)
                width = edges[1] - edges[0]
                coarse = spread[j] < tuning.resolved * width
                spike[j] = coarse and seen[j].mass.max() > tuning.mostly * seen[j].mass.sum()
                if not coarse or (public.whole[j] and width <= 1.0):  # whole numbers have nothing between them
                    continue
                low[j], high[j] = centre[j] - tuning.far * spread[j], centre[j] + tuning.far * spread[j]
            if high[j] - low[j] > tuning.bins * np.spacing(max(abs(low[j]), abs(high[j]))):
                again.append(j)
        active = np.array(again, dtype=np.intp)
    return Ranges(centre, spread, spike)


@dataclass(frozen=True)
class Density:
    """How many cells of a column lie between edges, as far as it could be told from noise.

    Attributes
    ----------
    edges : (b + 1,) array
    mass : (b,) array
    """

    edges: Array
    mass: Array

    def refined(self, edges: Array, mass: Array) -> Density:
        """Return it with finer bins between some edges, and cut at their ends."""
        low, high = self.edges[self.edges < edges[0]], self.edges[self.edges > edges[-1]]
        below = np.diff(self._up_to(np.append(low, edges[0])))
        above = np.diff(self._up_to(np.append(edges[-1], high)))
        return Density(np.concatenate([low, edges, high]), np.concatenate([below, mass, above]))

    def beyond(self, low: float, high: float) -> Array:
        """Return how many cells lie below and above; (2,)."""
        below, inside_too = self._up_to(np.array([low, high]))
        return np.array([below, self.mass.sum() - inside_too])

    def _up_to(self, places: Array) -> Array:
        return np.asarray(np.interp(places, self.edges, np.append(0.0, np.cumsum(self.mass))))

    def cut_off(self, centre: float, reach: float) -> tuple[float, float]:
        """Return mean and standard deviation of cells less a centre that are cut off at a reach, even within bins."""
        ends = np.clip(self.edges - centre, -reach, reach)
        middle, width = (ends[:-1] + ends[1:]) / 2.0, np.diff(ends)
        share = self.mass / self.mass.sum()
        mean = float(share @ middle)
        return mean, math.sqrt(share @ ((middle - mean) ** 2 + width**2 / 12.0))

    def bulk(self, tuning: RangeTuning) -> tuple[float, float]:
        """Return the mean and the standard deviation of cells that are cut off at so many of these; the least such.

        A long tail counts little in it, however far it was seen, so it is about the same from fit to fit.
        """
        fullest = int(self.mass.argmax())
        centre, spread = _evenly(*self.edges[fullest : fullest + 2].tolist())
        for _ in range(tuning.rounds):
            shift, spread = self.cut_off(centre, tuning.far * spread)
            centre += shift
        return centre, spread


def _evenly(low: float, high: float) -> tuple[float, float]:
    """Return mean and standard deviation of what is spread evenly."""
    return (low + high) / 2.0, (high - low) / math.sqrt(12.0)


def _counted(h: Array, filled: tuple[int, int], lone: float) -> Array:
    """Return the counts, in deviations, of bins between the filled ones, and of others that are clear of noise."""
    bars = np.full(len(h), lone)
    bars[filled[0] : filled[1] + 1] = 0.0
    return np.where(h > bars, h, 0.0)


def _sure(bins: int, false: float) -> float:
    """Return how many deviations noise alone stays below in so many bins, but for that probability."""
    return math.sqrt(2.0 * math.log(bins / false))


def _filled_bins(h: Array, sure: float, likely: float) -> tuple[int, int] | None:
    """Return the first and the last bin that surely hold something, with neighbours that may; None if none does."""
    seen = np.flatnonzero(h > sure)
    if not len(seen):
        return None
    maybe = h > likely
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
