"""Private means and standard deviations of the columns of a table, each in its own units.

The scales come from differences of pairs (`privspan.sums.scales`).  Divided by them all columns weigh the same, and a
private mean is taken in three rounds: the first ones find out roughly where the rows are, the last measures from
there, with noise for rows that are then short.  Proofs: docs/explanation/column-scales.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib.card import card, facts
from privspan._lib.charge import LedgerLike
from privspan._lib.entry import entry
from privspan._lib.markup import Html
from privspan.privacy import Budget, PrivacyCost, share_mu
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.persons import MOST_ROWS, people
from privspan.privacy.randomness import RandomLike, open_streams
from privspan.privacy.release_card import column_table, cost_fact, warnings_of
from privspan.rows.categories import Categories
from privspan.rows.columns import PublicBounds, PublicColumns, PublicNumbers, column_names, public_columns
from privspan.rows.gaps import Missing, with_gaps
from privspan.rows.unit import as_rows_input, is_sparse
from privspan.sums.about import in_units
from privspan.sums.gaps import released_gaps
from privspan.sums.mean import less_mean, mean_within
from privspan.sums.scales import ColumnScales, column_scales, pair_count, scale_shares

Array = NDArray[np.float64]

_SCALE_SHARE = 0.5  # of mu², where there is a mean to release too
_ROUNDS = (0.1, 0.2, 0.7)  # of what the mean has, for rounds that start where the one before ended


@dataclass(frozen=True, repr=False)
class PrivateScales:
    """Released means and standard deviations of columns, and what they cost.

    Attributes
    ----------
    mean : (d,) array
        Zeros if no mean was asked for.  Of a column without measurable spread: the middle of its bounds, or 0.
    scale : (d,) array
        Standard deviations; infinite where no spread could be measured.
    mean_std : (d,) array
        Standard deviation of the noise in `mean`.
    scale_std : (d,) array
        Standard error of `scale`, relative to it: noise, and 6 % for what the ladder of clips does not see.
    found : (d,) array of bool
        Whether a spread could be measured.
    cost : PrivacyCost
    private : bool
        False when a seed was given.
    gaps : (d,) array or None
        About how many gaps each column has: means and scales are those of the present cells.  None where they were
        not counted: means are then those of the filled table, and scales too small by the share of gaps.
    gaps_std : float or None
        Standard deviation of the noise of each count.
    """

    mean: Array
    scale: Array
    mean_std: Array
    scale_std: Array
    found: NDArray[np.bool_]
    cost: PrivacyCost
    private: bool
    gaps: Array | None = None
    gaps_std: float | None = None

    def __repr__(self) -> str:
        said = f"{int(self.found.sum())} of {len(self.found)} columns measured"
        return f"PrivateScales({said}, {self.cost}, private={self.private})"

    def _repr_html_(self) -> str:
        """Show it as a card in a notebook."""
        return card("PrivateScales", *self.pieces())

    def pieces(self, names: Sequence[str] | None = None) -> list[Html]:
        """Return what a card says of it, under the names of the columns if they are known."""
        spread = np.where(self.found, self.scale * self.scale_std, np.inf)
        columns = {
            "mean": (self.mean, np.where(self.found, self.mean_std, np.inf)),
            "standard deviation": (self.scale, spread),
        }
        measured = f"{int(self.found.sum()):,} of {len(self.found):,}"
        known = [cost_fact(self.cost.epsilon, self.cost.delta, self.private), ("columns measured", measured)]
        return [*warnings_of(self.private), facts(known), *column_table(names, columns)]


@entry
@people
def private_scales(
    X: Any,
    *,
    epsilon: float,
    delta: float,
    center: bool = True,
    bounds: PublicBounds | None = None,
    scale: PublicNumbers | None = None,
    categories: Categories | None = None,
    missing: Missing = "fill",
    groups: object = None,
    max_rows: int = MOST_ROWS,
    rng: RandomLike = None,
    ledger: LedgerLike = None,
) -> PrivateScales:
    """Release the mean and the standard deviation of every column, whatever its units.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, data frame, RowSource, or Dask array or dataframe
        One person per row, at least two.  Sparse only with ``center=False``.
    epsilon, delta : float
        Privacy budget.
    center : bool, default=True
        Whether to release means too, for half of mu².
    bounds : mapping, (2,) or (2, d) array, optional
        Public bounds of columns, by name or position, as in ``{"age": (0, 120)}``; or (low, high) for all columns
        alike; or low ends and high ends, NaN where nothing is known.  They must not be read off the data.  Larger
        differences than between the two count as that large.  Columns declared as booleans have bounds by themselves.
    scale : mapping or (d,) array, optional
        Public standard deviations, as in ``{"age": 15.0}``: these columns are not measured, and cost nothing.
    categories : mapping or "declared", optional
        Columns of words, with the words they may hold, as in ``{"sex": ["f", "m"]}``: public, never those that occur.
        Each word becomes a column of 0 and 1, named ``"sex=f"``; another word is a gap.  "declared" takes those of a
        pandas ``CategoricalDtype``, a polars ``Enum`` or an Arrow dictionary, of one column or of all.
    missing : {"fill", "zero-row"}, default="fill"
        What a gap, a cell that is missing or not finite, does: it counts as no difference in a pair of rows and as
        the centre in a mean; or it makes its whole record a row of zeros.
    groups : (n,) array-like or str, optional
        Whose each row is, where persons have several: ids, equal for rows of one, or the name of the column of `X`
        that holds them.  The promise is then for persons, and n counts these: docs/explanation/several-rows.md.
    max_rows : int, default=8
        With `groups`: how many rows of a person are looked at, at most.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.
    ledger : path, Ledger or Page, optional
        Where the budget is charged before the first look at the data; see :class:`privspan.ledger.Ledger`.

    Returns
    -------
    PrivateScales

    Raises
    ------
    ValueError
        Before anything is read, if there are too few rows for the columns without bounds.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy, and mu-GDP with the mu of that budget, for replace-one neighbours and every
    data set; n, d, declared types and all parameters are public.  With `groups`, for replacing one person.
    Proof: docs/explanation/column-scales.md, docs/explanation/several-rows.md.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((20_000, 2)) * [1e-3, 1e6] + [2.0, 0.0]
    >>> released = private_scales(X, epsilon=1.0, delta=1e-6, rng=1)
    >>> [f"{scale:.0e}" for scale in released.scale], f"{released.mean[0]:.3f}"
    (['1e-03', '1e+06'], '2.000')
    """
    source = as_rows_input(X, min_rows=2, accept_partitions=True, accept_persons=True)
    names = column_names(source if column_names(X) is None else X)
    public = public_columns(X, int(source.shape[1]), names=names, bounds=bounds, scale=scale)
    return standardised_within(Budget(epsilon, delta), source, public, center, rng, missing)


def standardised_within(
    budget: Budget, source: Any, public: PublicColumns, center: bool, rng: RandomLike, missing: Missing = "fill"
) -> PrivateScales:
    """Do what `private_scales` does for a table that has been let in: docs/explanation/column-scales.md."""
    if center and is_sparse(source):
        raise TypeError("A sparse table cannot be centred without filling it: ask for scales alone (no centring).")
    if public.scaled.all() and not center:
        raise ValueError("`scale` must leave a column to be measured where no mean is asked for; it names them all.")
    source = with_gaps(source, missing)
    votes, moments = scale_shares(pair_count(source), public, budget.mu)
    weights = {"scales": _SCALE_SHARE, "mean": 1.0 - _SCALE_SHARE}
    steps = [step for step, wanted in (("scales", moments > 0.0), ("mean", center)) if wanted]
    mus = dict(zip(steps, share_mu(budget.mu, *(weights[step] for step in steps)), strict=True))
    streams, ledger = open_streams(rng), MuLedger(budget, mus.get("scales"), "scales: ")
    counted = moments > 0.0 and missing == "fill"
    gaps = released_gaps(source, ~public.complete, ledger, streams.noise) if counted else None
    votes = ledger.left * votes / (votes + moments) if moments else 0.0  # what there is, shared as what is needed
    rest = math.nextafter(ledger.left - votes, 0.0)
    scales = column_scales(source, ledger, streams, public, votes=votes, moments=rest)
    scales = scales if gaps is None else scales.of_present_cells(gaps, public)
    mean, noise, parts = np.zeros_like(scales.scale), 0.0, ledger.cost().parts
    if center:
        seed = None if streams.private else streams.public
        present = np.ones_like(mean) if gaps is None else gaps.present
        mean, noise, costs = _mean(source, scales, public, budget, mus["mean"], seed, present)
        parts += tuple(part for cost in costs for part in cost.parts)
    return PrivateScales(
        mean,
        scales.scale,
        np.where(scales.found, noise * scales.scale / (1.0 if gaps is None else gaps.present), 0.0),
        scales.std,
        scales.found,
        budget.cost(*parts),
        streams.private,
        None if gaps is None else gaps.counts,
        None if gaps is None else gaps.std,
    )


def _mean(
    source: Any,
    scales: ColumnScales,
    public: PublicColumns,
    budget: Budget,
    mu: float,
    rng: RandomLike,
    present: Array,
) -> tuple[Array, float, list[PrivacyCost]]:
    """Release the mean, the noise in it in units of the scales, and what the rounds cost.

    Gaps are filled with the centre of each round, so a step is as much too short as cells are missing.
    """
    rows = in_units(source, scales.scale)
    rounds = (1.0,) if public.bounded.all() else _ROUNDS
    centre, noise, costs = public.start / scales.scale, 0.0, []  # in units; 0 where no spread was found
    for number, mu_round in enumerate(share_mu(mu, *rounds), start=1):
        ledger = MuLedger(budget, mu_round, f"mean, round {number}: ")
        step = mean_within(ledger, less_mean(rows, centre), None, None, rng)
        centre, noise = centre + step.mean / present, step.noise
        costs.append(step.cost)
    mean = np.where(scales.found, centre * np.where(scales.found, scales.scale, 0.0), public.start)
    return mean, noise, costs
