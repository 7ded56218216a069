"""Private means and standard deviations of winsorised columns, each in its own units.

Noisy histograms find where each column lies (`privspan.standard.ranges`); then mean and standard deviation of its
cells are released, those far out cut off at a reach that is told too.  Proofs: docs/explanation/standardised.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privspan._lib.card import card, facts
from privspan._lib.markup import Html
from privspan.privacy import PrivacyCost
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.persons import MOST_ROWS
from privspan.privacy.randomness import RandomLike
from privspan.privacy.release_card import column_table, cost_fact, warnings_of
from privspan.privacy.run import Run
from privspan.rows.categories import Categories
from privspan.rows.columns import PublicBounds, PublicColumns, column_names, public_columns
from privspan.rows.table import Missing, Table, check_missing
from privspan.standard.cells import cell_moments, reaches
from privspan.standard.ranges import find_ranges, looks_for_ranges
from privspan.sums.gaps import gap_share, released_gaps
from privspan.sums.grid import MOMENTS, most_share

Array = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class ScaleTuning:
    """Of means and standard deviations by themselves: chosen by hand, after the shares of `StandardTuning`."""

    ranges: float = 0.6  # share of mu² for the search, as there; the rest is for means and squares
    spreads: float = 4.0  # at which cells are cut off: normal columns lose next to nothing


SCALES = ScaleTuning()


class NoSpreadWarning(UserWarning):
    """Some columns have no scale, because their range or spread cannot be distinguished from noise."""


@dataclass(frozen=True, repr=False)
class PrivateScales:
    """Released means and standard deviations of winsorised columns, and what they cost.

    Attributes
    ----------
    mean, scale : (d,) arrays
        Of the cells clipped at `low` and `high`; NaN where no range was found.  A long tail beyond these is not
        counted: the standard deviation of the whole column may be larger.
    mean_std, scale_std : (d,) arrays
        Standard errors of both, due to noise.
    low, high : (d,) arrays
    measured : (d,) array of bool
        Where a range was found.
    mostly_one_value : (d,) array of bool
        Where the range is nearly a single value: a clipped cell then shows little more than its side of that value.
    cost : PrivacyCost
    private : bool
        False when a seed was given.
    gaps : (d,) array or None
        Noisy number of gaps in each column: means and scales are then those of the cells without a gap.  None where
        gaps were not counted: they are then filled with the centre of the range.
    gaps_std : float or None
        Standard deviation of the noise of each count.
    """

    mean: Array
    scale: Array
    mean_std: Array
    scale_std: Array
    low: Array
    high: Array
    measured: Bools
    mostly_one_value: Bools
    cost: PrivacyCost
    private: bool
    gaps: Array | None = None
    gaps_std: float | None = None

    def __repr__(self) -> str:
        said = f"{int(self.measured.sum())} of {len(self.measured)} columns measured"
        return f"PrivateScales({said}, {self.cost}, private={self.private})"

    def _repr_html_(self) -> str:
        """Show it as a card in a notebook."""
        return card("PrivateScales", *self.pieces())

    def pieces(self, names: Sequence[str] | None = None) -> list[Html]:
        """Return the content of its card, with the names of the columns if they are known."""
        shown = (
            ("winsorised mean", self.mean, self.mean_std),
            ("winsorised standard deviation", self.scale, self.scale_std),
        )
        columns = {
            name: (np.where(self.measured, value, 0.0), np.where(self.measured, std, np.inf))
            for name, value, std in shown
        }
        measured = f"{int(self.measured.sum()):,} of {len(self.measured):,}"
        known = [cost_fact(self.cost.epsilon, self.cost.delta, self.private), ("columns measured", measured)]
        return [*warnings_of(self.private), facts(known), *column_table(names, columns)]


def private_scales(
    X: object,
    *,
    epsilon: float,
    delta: float,
    bounds: PublicBounds | None = None,
    categories: Categories | None = None,
    person: object = None,
    max_rows: int = MOST_ROWS,
    missing: Missing = "fill",
    rng: RandomLike = None,
    ledger: LedgerLike = None,
) -> PrivateScales:
    """Release the mean and the standard deviation of every column, with extreme cells clipped, whatever its units.

    Parameters
    ----------
    X : (n, d) array, memory map, data frame, RowSource, or Dask array or dataframe
        One person per row, at least two.  Dense.
    epsilon, delta : float
        Privacy budget.
    bounds : mapping, (2,) or (2, d) array, optional
        Public bounds of columns, by name or position, as in ``{"age": (0, 120)}``; or (low, high) for all columns
        alike; or low ends and high ends, NaN where nothing is known.  They must not be read off the data.  Cells
        beyond count as the bound.  Columns declared as booleans have bounds by themselves.
    categories : mapping or "declared", optional
        Columns of words, with the allowed words, as in ``{"sex": ["f", "m"]}``: public, never those that occur. Each
        word becomes a column of 0 and 1, named ``"sex=f"``; any other word counts as a gap.  "declared" takes those
        of a pandas ``CategoricalDtype``, a polars ``Enum`` or an Arrow dictionary, of one column or of all.
    person : (n,) array-like or str, optional
        Who each row belongs to, where people have several rows: one id per row, or the name of the column of `X` that
        holds the ids.  The guarantee is then for persons, and n is their number: docs/explanation/several-rows.md.
    max_rows : int, default=8
        With `person`: the most rows that are used of one person.
    missing : {"fill", "zero-row"}, default="fill"
        How a gap (a missing or non-finite cell) is treated: it counts as the centre of its column's range; or it
        makes its whole record count like that.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.
    ledger : path, Ledger or Page, optional
        Where the budget is charged, before any data are read; see :class:`privspan.ledger.Ledger`.

    Returns
    -------
    PrivateScales

    Guarantee
    ---------
    (epsilon, delta)-differential privacy, and mu-GDP with the mu of that budget, for replace-one neighbours and every
    data set; n, d, declared types and all parameters are public.  With `person`, for replacing one person.
    Proof: docs/explanation/standardised.md, docs/explanation/several-rows.md.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((20_000, 2)) * [1e-3, 1e6] + [2.0, 0.0]
    >>> released = private_scales(X, epsilon=1.0, delta=1e-6, rng=1)
    >>> [f"{scale:.0e}" for scale in released.scale], f"{released.mean[0]:.3f}"
    (['1e-03', '1e+06'], '2.000')
    """
    with Call("private_scales", epsilon, delta, rng, ledger, X, person) as call:
        table = call.persons(X, person, max_rows, categories)
        source = call.open(table, min_rows=2, accept_sparse=False)
        names = column_names(source if column_names(table) is None else table)
        public = public_columns(table, source.shape[1], names=names, bounds=bounds)
        check_missing(missing)
        return call.finish(
            scales_within(
                call.begin(gaussian=True, empty=empty_share(call.budget.mu, source, public, missing)),
                source,
                public,
                missing,
            )
        )


def empty_share(mu: float, source: Table, public: PublicColumns, missing: Missing) -> float:
    """Return the share of mu² that an empty place can tell: ranges have a gain, and squares of cells next to none."""
    n, gaps = source.shape[0], int((~public.complete).sum()) if missing == "fill" else 0
    counted = gap_share(n, gaps, mu)
    ranges = SCALES.ranges * (1.0 - counted) if looks_for_ranges(public) else 0.0
    return most_share(1.0 - ranges, MOMENTS)


def scales_within(run: Run, source: Table, public: PublicColumns, missing: Missing) -> PrivateScales:
    """Do what `private_scales` does for a table that has been let in: docs/explanation/standardised.md."""
    source = source.with_gaps(missing)
    gaps = released_gaps(source, ~public.complete, run) if missing == "fill" else None
    ranges = find_ranges(source, public, run, SCALES.ranges * run.account.left)
    reach = reaches(ranges, public, SCALES.spreads)
    moments = cell_moments(source, ranges, reach, run.account.spend("means and squares", run.account.left), run, gaps)
    return PrivateScales(
        moments.mean,
        moments.scale,
        moments.mean_std,
        moments.scale_std,
        moments.low,
        moments.high,
        np.isfinite(moments.scale),
        ranges.spike,
        run.account.cost(),
        run.private,
        None if gaps is None else gaps.counts,
        None if gaps is None else gaps.std,
    )
