"""PCA of standardised columns: choose a course from public numbers, measure units where they are wanted, look, read.

* *ranks*: signs of pairs of rows (`privspan.standard.signs`).  Any table, from a few dozen rows on.
* *deviations*: ranges of the columns, winsorised cells (`privspan.standard.cells`), one look.  As n mu grows, this
  becomes PCA of the standardised table; it takes n mu / sqrt(d) of 700 or more.

Both release one second moment, which `privspan.standard.correlations` reads.
Proofs: docs/explanation/standardised.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspan.privacy.run import Run
from privspan.rows.columns import PublicColumns
from privspan.rows.partitioned_rows import AnyRows
from privspan.rows.table import DOUBLE, Table
from privspan.standard.cells import CellMoments, cell_moments, measured_ranges, reaches, winsor
from privspan.standard.correlations import Components, NoisyMoment, read_components
from privspan.standard.ranges import RANGES, Ranges, find_ranges
from privspan.standard.signs import pairings, sign_moment
from privspan.sums.gaps import Gaps, gap_share
from privspan.sums.grid import MOMENTS, look_gain, most_share
from privspan.sums.lazy_looks import lazy_looks
from privspan.sums.lifts import Lift, person_lift, released_weight
from privspan.sums.looks import CONSTANT, AugmentedGram, released_looks
from privspan.sums.pairs import pair_signs

Array = NDArray[np.float64]

Standard: TypeAlias = Literal["ranks", "deviations"]
"""What is estimated: rank correlations, or correlations of winsorised columns."""


@dataclass(frozen=True)
class StandardTuning:
    """Shares and bars of the two courses; fitted by benchmarks/scripts/standardised_tables.py on other tables."""

    deviations_from: float = 700.0  # n mu / sqrt(d): below, ranges are too rough for one table in twenty
    ranges_from: float = 150.0  # the same: below, most columns have none, and none is told to stand out by deviations
    spreads: float = 4.0  # at which cells are cut off, where n mu / sqrt(d) is that bar; more with more data
    row: float = 0.4  # rows are cut at this × spreads × sqrt(d): longer ones are rare, and would add noise to all
    ranges: float = 0.145  # share of mu², for where columns lie
    units: float = 0.10  # share of mu², for their means and standard deviations
    clear: float = 0.25  # error over standard deviation below which a column is looked at in standard deviations
    alike: float = 1.25  # × the first reach, up to which what long rows lost can be told
    weight: float = 0.01  # of mu², for the weight of persons with several rows
    units_from: float = 400.0  # n mu / sqrt(d) from which ranks measure units too: below, columns would lack one
    widest_whole: int = 1024  # columns whose whole moment is released and read: else that is longer than the passes


STANDARD = StandardTuning()


@dataclass(frozen=True)
class ColumnUnits:
    """Where columns lie, how far cells are looked at, and the mean and standard deviation of what is seen."""

    ranges: Ranges
    reach: Array  # (d,)
    moments: CellMoments


@dataclass(frozen=True)
class StandardisedPCA:
    """What is released of a standardised table.

    Attributes
    ----------
    components : Components
    course : Standard
    units : ColumnUnits or None
        None where they were not measured.
    passes : int
        Over the rows of the table.
    gaps : Gaps or None
    released : NoisyMoment or None
        What the components were read off; None where it was looked at in few directions only.
    cut : float
        Which share of the variance of winsorised columns long rows lost by being cut too, about; 0 by ranks.
    """

    components: Components
    course: Standard
    units: ColumnUnits | None
    passes: int
    gaps: Gaps | None
    released: NoisyMoment | None
    cut: float = 0.0

    def leading(self, k: int, public: np.random.Generator) -> StandardisedPCA:
        """Return the first k components alone, read off the same release."""
        assert self.released is not None
        return replace(self, components=read_components(self.released, k, public))


def data_per_column(n: int, d: int, mu: float) -> float:
    """Return n mu / sqrt(d), which public numbers decide by."""
    return n * mu / math.sqrt(d)


def chosen_course(n: int, d: int, mu: float, sparse: bool, tuning: StandardTuning = STANDARD) -> Standard:
    """Choose from public numbers; sparse rows are never filled, so they are ranked, and so are very wide tables."""
    enough = data_per_column(n, d, mu) >= tuning.deviations_from
    return "deviations" if enough and not sparse and d <= tuning.widest_whole else "ranks"


def unit_share(n: int, d: int, mu: float, course: Standard, tuning: StandardTuning = STANDARD) -> float:
    """Return the share of mu² that means and units of columns take; 0 where there is too little data for them."""
    enough = course == "deviations" or data_per_column(n, d, mu) >= tuning.units_from
    return tuning.ranges + tuning.units if enough else 0.0


def empty_share(source: Table, mu: float, course: Standard, gaps: int, tuning: StandardTuning = STANDARD) -> float:
    """Return the share of mu² that an empty place can tell, from public numbers: docs/explanation/zero-out.md."""
    n, d = source.shape
    plain = gap_share(n, gaps, mu) + (tuning.weight if source.width > 1 else 0.0)
    plain += tuning.units if unit_share(n, d, mu, course, tuning) and not source.is_sparse else 0.0
    return most_share(plain, look_gain(CONSTANT if course == "deviations" else 0.0, source.width))


def standardised_pca(
    source: Table,
    k: int,
    run: Run,
    public: PublicColumns,
    *,
    course: Standard,
    gaps: Gaps | None = None,
    tuning: StandardTuning = STANDARD,
) -> StandardisedPCA:
    """Release the leading components of the correlation matrix of a table, whatever the units of its columns.

    Parameters
    ----------
    source : Table
        At least two rows.  A gap makes no difference in a pair, and is the centre of its column by deviations.
    k : int
        From 1 to d.
    run : Run
        All that is left is spent.
    public : PublicColumns
        Bounds, scales and centres of columns, as far as they are known.
    course : Standard
        "deviations" not for sparse tables.
    gaps : Gaps, optional
        Released counts; correlations are then those of the present cells, for gaps that come at random.
    tuning : StandardTuning, optional

    Guarantee
    ---------
    Gaussian steps with fixed shares of mu², which the account counts: mu-GDP for replace-one neighbours and every
    data set; n, d, declared types and what `public` holds are public.
    Proof: docs/explanation/standardised.md.
    """
    if course == "deviations":
        return _by_deviations(source, k, run, public, gaps, tuning)
    return _by_ranks(source, k, run, public, gaps, tuning)


def _by_ranks(
    source: Table,
    k: int,
    run: Run,
    public: PublicColumns,
    gaps: Gaps | None,
    tuning: StandardTuning,
) -> StandardisedPCA:
    n, d = source.shape
    units, passes = None, pairings(n)
    if unit_share(n, d, run.account.mu, "ranks", tuning) and not source.is_sparse:
        units = _measured_units(source, run, public, gaps, tuning, tuning.spreads)
        passes += len(RANGES.stages) + 1
    if d > tuning.widest_whole:
        return StandardisedPCA(_of_wide_ranks(source, k, run, tuning), "ranks", units, passes, gaps, None)
    mu = run.account.spend("signs of pairs", run.account.left, MOMENTS)
    released = sign_moment(source, mu, run, _present(gaps, d))
    components = read_components(released, k, run.streams.public)
    return StandardisedPCA(components, "ranks", units, passes, gaps, released)


def _of_wide_ranks(source: Table, k: int, run: Run, tuning: StandardTuning) -> Components:
    """Look at the signs of one pairing in a few directions, as a whole moment would take too long to read.

    Columns are not divided by their diagonal: those with many ties weigh a little less.
    """
    rows = pair_signs(source, run.streams.public).rows()
    lift, d = person_lift(rows, 0.0), rows.shape[1]
    count = _count(rows, lift, run, tuning)
    mu = run.account.spend("signs of pairs", run.account.left, MOMENTS)
    made = lazy_looks(rows, None, [mu], k, run, total=count, constant=0.0, lift=lift, count=count).verdict
    per_column = d / made.total  # the total variance is d
    std = np.full(k, made.variances_std * per_column)
    told = made.variances * per_column, std, made.captured, made.loadings_std, made.stands_out
    return Components(made.basis, *told, np.ones(d, dtype=bool), np.ones(d))


def _by_deviations(
    source: Table,
    k: int,
    run: Run,
    public: PublicColumns,
    gaps: Gaps | None,
    tuning: StandardTuning,
) -> StandardisedPCA:
    n, d = source.shape
    data = data_per_column(n, d, run.account.mu)
    more = max(data / tuning.deviations_from, 1.0) ** 0.25
    spreads = tuning.spreads * more  # ever fewer cells are cut off, and the noise of what is cut grows slower than n

    # Measure where columns lie and what their units are.
    units = _measured_units(source, run, public, gaps, tuning, spreads)
    ranges = measured_ranges(units.ranges, units.moments, public, tuning.clear)
    reach = reaches(ranges, public, spreads)

    # Look at cells in spreads, so that columns weigh about the same before their diagonal is known.
    clip = tuning.row * spreads * math.sqrt(d)
    rows = source.then(winsor(ranges, reach, ranges.spread), dtype=DOUBLE).rows(clip=clip, keep=False)
    lift = person_lift(rows, CONSTANT)
    count = _count(rows, lift, run, tuning)
    mu = run.account.spend("winsorised look", run.account.left, look_gain(CONSTANT, source.width))
    look = next(released_looks(AugmentedGram(rows, lift=lift), [mu], run, CONSTANT, count))

    # Tell what long rows lost, and read the components off.
    alike = reach <= tuning.alike * units.reach  # columns that are cut off about where their variance was measured
    variance = float(np.nansum((units.moments.scale / ranges.spread)[alike] ** 2))
    seen = float(np.diagonal(look.moment)[alike].sum()) * clip**2 / count
    cut = 1.0 - min(max(seen / variance, 0.0), 1.0) if variance > 0.0 else 0.0
    sampling = 1.0 / n if data >= tuning.ranges_from else math.inf
    released = NoisyMoment(look.moment, look.noise, sampling, _present(gaps, d))
    components = read_components(released, k, run.streams.public)
    return StandardisedPCA(components, "deviations", units, len(RANGES.stages) + 2, gaps, released, cut)


def _measured_units(
    source: Table,
    run: Run,
    public: PublicColumns,
    gaps: Gaps | None,
    tuning: StandardTuning,
    spreads: float,
) -> ColumnUnits:
    ranges = find_ranges(source, public, run, tuning.ranges)
    reach = reaches(ranges, public, spreads)
    mu = run.account.spend("means and units", tuning.units)
    return ColumnUnits(ranges, reach, cell_moments(source, ranges, reach, mu, run, gaps))


def _count(rows: AnyRows, lift: Lift | None, run: Run, tuning: StandardTuning) -> float:
    """Return the number of rows, or what stands for it where persons have several."""
    if lift is None:
        return float(rows.shape[0])
    mu = run.account.spend("weight of persons", tuning.weight)
    return released_weight(lift, rows.shape[0], mu, run)[0]


def _present(gaps: Gaps | None, d: int) -> Array:
    return np.ones(d) if gaps is None else gaps.present
