"""How many gaps the columns have, in private, and what that tells of means and variances.

A gap is filled with a released centre, so means and variances are those of the *filled* table: pulled towards the
centre.  One record has one gap per column at most, so the counts of d columns move by sqrt(d) under a replacement.
Where that much noise is little beside the number of rows, the counts are released, and numbers of the present cells
follow from those of the filled table: post-processing.  Proofs: docs/explanation/gaps.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspan._lib.rounding import UNIT_ROUNDOFF, sqrt_up
from privspan.privacy.run import Run
from privspan.rows.gaps import gap_counts
from privspan.rows.persons import PersonTable
from privspan.rows.unit import CHUNK_ROWS
from privspan.sums.grid import SumBounds, gaussian_sum
from privspan.sums.table_sums import table_sums

Array: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

_WANTED, _WORST = 0.005, 0.02  # noise of a share of gaps: what is aimed at, and the most that is worth a release
_LEAST, _MOST = 0.002, 0.02  # shares of mu²
_SEEN = 2.0  # standard deviations: fewer gaps may be none
_MOST_GAPS = 0.8  # of the cells of a column, for numbers of the others to be said


@dataclass(frozen=True)
class Gaps:
    """Released counts of gaps.

    Attributes
    ----------
    counts : (d,) array
        With noise; 0 for columns that can have none.
    std : float
        Standard deviation of the noise of a count.
    rows : int
    counted : (d,) array of bool
        Columns that may have gaps, by their declared types.
    """

    counts: Array
    std: float
    rows: int
    counted: Bools

    @property
    def present(self) -> Array:
        """Which share of the cells is there, as far as it can be told; 1 where there may be no gaps at all; (d,)."""
        seen = self.counted & (self.counts > _SEEN * self.std)
        share = np.where(seen, 1.0 - self.counts / self.rows, 1.0)
        return np.where(share >= 1.0 - _MOST_GAPS, share, 1.0)

    def mean(self, filled: Array, centre: Array) -> Array:
        """Return the mean of the present cells, given that of the filled table and what it was filled with; (d,)."""
        return np.asarray(centre + (filled - centre) / self.present)

    def scale(self, filled: Array) -> Array:
        """Return standard deviations of the present cells, given those from differences of pairs; (d,)."""
        return np.asarray(filled / self.present)  # a difference is there if both cells are

    def variances(self, moment: Array, basis: Array, *, pairs: bool) -> tuple[Array, float]:
        """Return by how much variances along a basis, and the total, grow from the filled table to present cells.

        For gaps that come independently of one another and of what the cells would hold.

        Parameters
        ----------
        moment : (d, d) array
            Released second moment of the filled rows, or of the differences of `pairs`.
        basis : (d, k) array

        Returns
        -------
        (k,) array, float
            Not below 1, and no more than what the column with most gaps tells.
        """
        there = self.present**2 if pairs else self.present
        turned = basis / there[:, None]  # (d, k)
        return self._grown(there, basis, moment @ basis, moment @ turned, np.diagonal(moment))

    def variances_of_few(self, along: Array, total: float, basis: Array, *, pairs: bool) -> tuple[Array, float]:
        """Return the same where no whole moment was released: what is off the basis is taken to be spread evenly.

        Parameters
        ----------
        along : (k,) array
            Released variances along the basis, of the filled rows.
        total : float
            In all directions.
        basis : (d, k) array
        """
        (d, k), there = basis.shape, self.present**2 if pairs else self.present
        rest = max(total - float(along.sum()), 0.0) / max(d - k, 1)
        turned = basis / there[:, None]  # (d, k)
        within = (along - rest)[:, None]
        image, turned = (basis @ (within * (basis.T @ columns)) + rest * columns for columns in (basis, turned))
        return self._grown(there, basis, image, turned, basis**2 @ within[:, 0] + rest)

    def _grown(self, there: Array, basis: Array, image: Array, turned: Array, diagonal: Array) -> tuple[Array, float]:
        """Return the ratios for a moment of which images of the basis, and of that over `there`, are known."""
        most = float((1.0 / there).max()) ** 2
        excess = (1.0 / there**2 - 1.0 / there) * diagonal  # a cell and itself are there, or not, together
        grown = np.einsum("ij,ij->j", basis / there[:, None], turned) - excess @ basis**2
        along = np.einsum("ij,ij->j", basis, image)  # (k,)
        total, filled = float((diagonal / there).sum()), float(diagonal.sum())
        ratios = np.where(along > 0.0, grown / np.where(along > 0.0, along, 1.0), 1.0)
        return np.clip(ratios, 1.0, most), float(np.clip(total / filled if filled > 0.0 else 1.0, 1.0, most))


def gap_share(n: int, columns: int, mu: float) -> float:
    """Return the share of mu² that counting gaps is worth, from public numbers; 0 if it is not."""
    if not columns:
        return 0.0
    noise = math.sqrt(columns) / (n * mu)  # of a share of gaps, for all of mu²
    share = min(_MOST, max(_LEAST, (noise / _WANTED) ** 2))
    return share if noise / math.sqrt(share) <= _WORST else 0.0


def released_gaps(source: Any, counted: Bools, run: Run) -> Gaps | None:
    """Release how many gaps each column has, where there is data enough.

    Parameters
    ----------
    source : as `privspan.rows.unit.as_rows_input` returns it
    counted : (d,) array of bool
        Columns that may have gaps, by their declared types.
    run : Run
        At most 2 % of mu² is spent.

    Returns
    -------
    Gaps or None
        None if public numbers say that it is not worth it.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours, with the mu that is spent; n, d and declared types are public.
    Proof: docs/explanation/gaps.md.
    """
    (n, d), columns = map(int, source.shape), int(counted.sum())
    share = gap_share(n, columns, run.account.mu)
    if not share:
        return None
    # Counts of a chunk are exact, but for averages over the rows of a person.
    error = math.sqrt(columns) * CHUNK_ROWS * UNIT_ROUNDOFF if isinstance(source, PersonTable) else 0.0
    bounds = SumBounds(count_sensitivity(columns), error, columns, 1.1 * n)
    mu = run.account.spend("gaps", share)
    noisy, sigma = gaussian_sum(table_sums(_Counted(counted), source, exact=True), (columns,), bounds, mu, run)
    counts = np.zeros(d)
    counts[counted] = np.clip(noisy, 0.0, n)
    return Gaps(counts, sigma, n, counted)


def count_sensitivity(columns: int) -> float:
    """Return sqrt(columns), rounded up: what one record can do to the counts of so many columns (lemma 2)."""
    return sqrt_up(Fraction(columns))


@dataclass(frozen=True)
class _Counted:
    """A function of pieces, as a value that can be sent to where the rows are."""

    columns: Bools

    def __call__(self, piece: Any) -> Array:
        return gap_counts(piece)[self.columns]
