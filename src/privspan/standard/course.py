"""PCA of standardised columns: choose a course from public numbers, measure units where they are wanted, look, read.

* *ranks*: signs of pairs of rows (`privspan.standard.signs`).  Any table, from a few dozen rows on.
* *deviations*: ranges of the columns, winsorised cells, one look (`privspan.standard.ranges`).  As n mu grows, this
  becomes PCA of the standardised table; it takes n mu / sqrt(d) of 700 or more.

Both release one second moment, which `privspan.standard.correlations` reads.
Proofs: docs/explanation/standardised.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import Streams
from privspan.rows.columns import PublicColumns
from privspan.rows.partitioned_rows import open_unit_rows
from privspan.rows.unit import is_sparse
from privspan.standard.correlations import Components, NoisyMoment, read_components
from privspan.standard.ranges import CellMoments, cell_moments, find_ranges, reaches, winsor
from privspan.standard.signs import pairings, sign_moment
from privspan.sums.gaps import Gaps
from privspan.sums.lifts import person_lift, released_weight
from privspan.sums.looks import CONSTANT, whole_looks

Array = NDArray[np.float64]

Standard: TypeAlias = Literal["ranks", "deviations"]
"""What is estimated: rank correlations, or correlations of winsorised columns."""


@dataclass(frozen=True)
class StandardTuning:
    """Shares and bars of the two courses; fitted by benchmarks/scripts/standardised_tables.py on other tables."""

    deviations_from: float = 700.0  # n mu / sqrt(d): below, ranges are too rough for one table in twenty
    spreads: float = 4.0  # at which cells are cut off, where n mu / sqrt(d) is that bar; more with more data
    row: float = 0.4  # rows are cut at this × spreads × sqrt(d): longer ones are rare, and would add noise to all
    ranges: float = 0.145  # shares of mu², by deviations
    units: float = 0.10
    weight: float = 0.01  # of mu², for the weight of persons with several rows
    units_from: float = 150.0  # n mu / sqrt(d) from which ranks measure units too
    units_share: float = 75.0  # (this / n mu / sqrt(d))² of mu² is what that takes, at most a quarter


@dataclass(frozen=True)
class StandardisedPCA:
    """What is released of a standardised table.

    Attributes
    ----------
    components : Components
    course : Standard
    units : CellMoments or None
        None where they were not measured.
    cut : float
        Which share of the variance rows lost by being cut, about; 0 for ranks.
    passes : int
        Over the rows of the table.
    gaps : Gaps or None
    """

    components: Components
    course: Standard
    units: CellMoments | None
    cut: float
    passes: int
    gaps: Gaps | None


def data_per_column(n: int, d: int, mu: float) -> float:
    """Return n mu / sqrt(d), which public numbers decide by."""
    return n * mu / math.sqrt(d)


def chosen_course(n: int, d: int, mu: float, sparse: bool, tuning: StandardTuning | None = None) -> Standard:
    """Choose from public numbers; sparse rows are never filled, so they are ranked."""
    bar = (tuning or StandardTuning()).deviations_from
    return "deviations" if data_per_column(n, d, mu) >= bar and not sparse else "ranks"


def unit_share(n: int, d: int, mu: float, course: Standard, tuning: StandardTuning | None = None) -> float:
    """Return the share of mu² that means and units of columns take; 0 where there is too little data for them."""
    tuning = tuning or StandardTuning()
    if course == "deviations":
        return tuning.ranges + tuning.units
    data = data_per_column(n, d, mu)
    return (tuning.units_share / data) ** 2 if data >= tuning.units_from else 0.0


def standardised_pca(
    source: Any,
    k: int,
    ledger: MuLedger,
    streams: Streams,
    public: PublicColumns,
    *,
    course: Standard,
    gaps: Gaps | None = None,
    tuning: StandardTuning | None = None,
) -> StandardisedPCA:
    """Release the leading components of the correlation matrix of a table, whatever the units of its columns.

    Parameters
    ----------
    source : as `privspan.rows.unit.as_rows_input` returns it
        At least two rows.  A gap makes no difference in a pair, and is the centre of its column by deviations.
    k : int
        From 1 to d.
    ledger : MuLedger
        All that is left is spent.
    streams : Streams
    public : PublicColumns
        Bounds, scales and centres of columns, as far as they are known.
    course : Standard
        "deviations" not for sparse tables.
    gaps : Gaps, optional
        Released counts; correlations are then those of the present cells, for gaps that come at random.
    tuning : StandardTuning, optional

    Guarantee
    ---------
    Gaussian steps with fixed shares of mu², which the ledger counts: mu-GDP for replace-one neighbours and every data
    set; n, d, declared types and what `public` holds are public.
    Proof: docs/explanation/standardised.md.
    """
    tuning = tuning or StandardTuning()
    if course == "deviations":
        return _by_deviations(source, k, ledger, streams, public, gaps, tuning)
    return _by_ranks(source, k, ledger, streams, public, gaps, tuning)


def _by_ranks(
    source: Any,
    k: int,
    ledger: MuLedger,
    streams: Streams,
    public: PublicColumns,
    gaps: Gaps | None,
    tuning: StandardTuning,
) -> StandardisedPCA:
    n, d = (int(size) for size in source.shape)
    share, units, passes = 0.0 if is_sparse(source) else unit_share(n, d, ledger.mu, "ranks", tuning), None, 0
    if share:
        of_ranges = tuning.ranges / (tuning.ranges + tuning.units)
        ranges = find_ranges(source, public, ledger, share * of_ranges, streams)
        reach = reaches(ranges, public, tuning.spreads)
        units = cell_moments(
            source, ranges, reach, ledger.spend("units", share * (1.0 - of_ranges)), streams.noise, gaps
        )
        passes = 9
    mu = ledger.spend("signs of pairs", ledger.left)
    released = sign_moment(source, mu, streams, _present(gaps, d))
    components = read_components(released, k, streams.public)
    return StandardisedPCA(components, "ranks", units, 0.0, passes + pairings(n), gaps)


def _by_deviations(
    source: Any,
    k: int,
    ledger: MuLedger,
    streams: Streams,
    public: PublicColumns,
    gaps: Gaps | None,
    tuning: StandardTuning,
) -> StandardisedPCA:
    n, d = (int(size) for size in source.shape)
    more = max(data_per_column(n, d, ledger.mu) / tuning.deviations_from, 1.0) ** 0.25
    spreads = tuning.spreads * more  # ever fewer cells are cut off, and the noise of what is cut grows slower than n
    ranges = find_ranges(source, public, ledger, tuning.ranges, streams)
    reach = reaches(ranges, public, spreads)
    units = cell_moments(source, ranges, reach, ledger.spend("units", tuning.units), streams.noise, gaps)
    # The look is at cells in spreads, so that columns weigh about the same before their diagonal is known.
    clip = tuning.row * spreads * math.sqrt(d)
    rows = open_unit_rows(winsor(ranges, reach, ranges.spread).of(source), clip=clip, keep=False)
    lift = person_lift(rows, CONSTANT)
    count = float(n)
    if lift is not None:
        mu = ledger.spend("weight of persons", tuning.weight)
        count = released_weight(lift, n, mu, streams.noise)[0]
    mu = ledger.spend("winsorised look", ledger.left)
    look = next(whole_looks(rows, None, [mu], streams.noise, lift=lift, count=count))
    components = read_components(NoisyMoment(look.moment, look.noise, 1.0 / n, _present(gaps, d)), k, streams.public)
    variance = float(np.nansum((units.scale / ranges.spread) ** 2))
    cut = max(0.0, 1.0 - float(np.trace(look.moment)) * clip**2 / (count * variance)) if variance > 0.0 else 0.0
    return StandardisedPCA(components, "deviations", units, cut, 11, gaps)


def _present(gaps: Gaps | None, d: int) -> Array:
    return np.ones(d) if gaps is None else gaps.present
