"""A private mean, in all coordinates or in those of a subspace that was released before.

One record moves the sum of rows no longer than R by at most 2R, so the noise has standard deviation 2R/(mu n) in
every coordinate that is released.  All d coordinates together are then off by about 2R √d/(mu n); the k coordinates
in a released subspace by 2R √k/(mu n) only, plus what the mean has outside the subspace.  Where the mean is needed
only to be taken away, `privspan.sums.pairs.pair_differences` does that without knowing it.
Proofs: docs/explanation/private-mean.md.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.card import card, facts
from privspan.privacy import PrivacyCost
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.persons import MOST_ROWS
from privspan.privacy.randomness import RandomLike
from privspan.privacy.release_card import column_table, cost_fact, warnings_of
from privspan.privacy.run import Run
from privspan.rows.table import Missing, Table
from privspan.subspace import Subspace
from privspan.sums.grid import SUMS, gaussian_sum, most_share, row_bounds, row_sums
from privspan.sums.variance import LENGTHS, check_columns, typical_length

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class PrivateMean:
    """A released mean and what it cost.

    Attributes
    ----------
    mean : (d,) array
        The mean, read-only; on the subspace if one was given.
    noise : float
        Standard deviation of the noise in every released coordinate.
    norm_bound : float
        Rows (or their coordinates) longer than this were clipped to it; given, or released at a part of the cost.
    cost : PrivacyCost
    private : bool
        False when a seed was given.
    """

    mean: Array
    noise: float
    norm_bound: float
    cost: PrivacyCost
    private: bool

    def __repr__(self) -> str:
        shown = np.array2string(self.mean, precision=4, threshold=8)
        return f"PrivateMean({shown}, each ± {self.noise:.2g} (noise), {self.cost}, private={self.private})"

    def _repr_html_(self) -> str:
        """Show it as a card in a notebook."""
        shown = column_table(None, {"mean": (self.mean, np.full(len(self.mean), self.noise))})
        known = [cost_fact(self.cost.epsilon, self.cost.delta, self.private), ("noise of each", f"{self.noise:.2g}")]
        known.append(("rows clipped at", f"{self.norm_bound:.4g}"))
        return card("PrivateMean", *warnings_of(self.private), facts(known), *shown)


def private_mean(
    X: object,
    *,
    epsilon: float,
    delta: float,
    subspace: Subspace | None = None,
    norm_bound: float | None = None,
    person: object = None,
    max_rows: int = MOST_ROWS,
    missing: Missing = "fill",
    rng: RandomLike = None,
    ledger: LedgerLike = None,
) -> PrivateMean:
    """Release the mean of the rows, or of their projection onto a released subspace.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row.
    epsilon, delta : float
        Privacy budget.
    subspace : Subspace, optional
        Public, or released at its own cost.  Only the k coordinates in it get noise; the result is the mean of the
        projected rows, without its part outside the subspace.
    norm_bound : float, optional
        Rows longer than this are clipped to it: rows as they are, or their coordinates in the subspace (from its
        offset, if it has one).  It must not be read off the data.  If omitted, 3 times a private geometric mean of
        the lengths (searched between 2**-40 and 2**40), which costs 20 % of mu².
    person : (n,) array-like or str, optional
        Who each row belongs to, where people have several rows: one id per row, or the name of the column of `X` that
        holds the ids.  The guarantee is then for persons, and n is their number: docs/explanation/several-rows.md.
    max_rows : int, default=8
        With `person`: the most rows that are used of one person.
    missing : {"fill", "zero-row"}, default="fill"
        How a gap (a missing or non-finite cell) is treated: it counts as the offset of the subspace, or as 0 without
        one; or it makes its whole record a row of zeros.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.
    ledger : path, Ledger or Page, optional
        Where the budget is charged, before any data are read; see :class:`privspan.ledger.Ledger`.

    Returns
    -------
    PrivateMean

    Guarantee
    ---------
    (epsilon, delta)-differential privacy, and mu-GDP with the mu of that budget, for replace-one neighbours and every
    data set; n, d and all parameters are public.  Assumed: float64 arithmetic, and that the products of a matrix
    library compute every output row from its own input row.  With `person`, for replacing one
    person.  Proof: docs/explanation/private-mean.md, docs/explanation/several-rows.md.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((20_000, 3)) + [2.0, 0.0, 0.0]
    >>> private_mean(X, epsilon=1.0, delta=1e-6, norm_bound=6.0, rng=1).mean.round(1).tolist()
    [2.0, 0.0, 0.0]
    """
    with Call("private_mean", epsilon, delta, rng, ledger, X, person) as call:
        table = call.persons(X, person, max_rows)
        source = call.open(table).with_gaps(missing)
        if norm_bound is not None:
            checks.positive(norm_bound=norm_bound)
        check_columns(source, subspace)
        return call.finish(
            mean_within(call.begin(gaussian=True, empty=empty_share(norm_bound)), source, subspace, norm_bound)
        )


def empty_share(norm_bound: float | None) -> float:
    """Return the share of mu² that an empty place can tell: docs/explanation/zero-out.md."""
    return most_share(0.0 if norm_bound is not None else LENGTHS.of_mean, SUMS)


def mean_within(run: Run, source: Table, subspace: Subspace | None, norm_bound: float | None) -> PrivateMean:
    """Do what `private_mean` does for the mu of a run: docs/explanation/private-mean.md."""
    if subspace is not None:
        source = source.coordinates(subspace.basis, subspace.offset)  # (n, k)
    if norm_bound is None:
        mu_length = run.account.spend("typical length", LENGTHS.of_mean)
        norm_bound = LENGTHS.clip * typical_length(source, mu_length, run)
    bound, n = float(norm_bound), source.shape[0]
    rows = source.rows(clip=bound)
    mu = run.account.spend("mean", run.account.left, SUMS)
    total, sigma = gaussian_sum(row_sums(rows), (rows.shape[1],), row_bounds(*rows.shape), mu, run)
    mean = total * (bound / n)
    if subspace is not None:
        mean = subspace.basis @ mean + (0.0 if subspace.offset is None else subspace.offset)
    mean.flags.writeable = False
    return PrivateMean(mean, sigma * bound / n, bound, run.account.cost(), run.private)
