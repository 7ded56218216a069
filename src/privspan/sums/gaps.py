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

from privspan._lib.rounding import sqrt_up
from privspan.privacy.run import Run
from privspan.rows.gaps import gap_counts
from privspan.rows.table import Table
from privspan.sums.grid import SumBounds, gaussian_sum

Array: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True)
class GapTuning:
    """Of the counts of gaps; chosen by hand, and benchmarks/scripts/gaps.py measures what comes of them."""

    wanted: float = 0.005  # noise of a share of gaps that is aimed at: half a per cent of a mean
    worst: float = 0.02  # the same, the most that is worth a release
    least: float = 0.002  # share of mu²: less would hardly be missed elsewhere
    most: float = 0.02  # the same, at most: the directions lose 1 % by it
    seen: float = 3.0  # standard deviations: fewer gaps may be none
    most_gaps: float = 0.8  # of the cells of a column, for numbers of the others to be said


GAPS = GapTuning()


@dataclass(frozen=True)
class Growth:
    """By what variances of the filled table are multiplied to be those of the present cells.

    Attributes
    ----------
    along, along_std, along_noise : (k,) array
        For variances along a basis; the noise of that factor, due to the counts; and what multiplies their own noise.
    total, total_std, total_noise : float
        The same for the total.
    """

    along: Array
    along_std: Array
    along_noise: Array
    total: float
    total_std: float
    total_noise: float


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
        seen = self.counted & (self.counts > GAPS.seen * self.std)
        share = np.where(seen, 1.0 - self.counts / self.rows, 1.0)
        return np.where(share >= 1.0 - GAPS.most_gaps, share, 1.0)

    @property
    def present_std(self) -> Array:
        """Standard deviation of the noise of that share; 0 where no gap was seen; (d,)."""
        return np.where(self.present < 1.0, self.std / self.rows, 0.0)

    def mean(self, filled: Array, centre: Array, std: float | Array) -> tuple[Array, Array]:
        """Return the mean of the present cells and its error, given those of the filled table; (d,) each.

        Parameters
        ----------
        filled : (d,) array
            Mean of the filled table.
        centre : (d,) array
            What it was filled with.
        std : float or (d,) array
            Noise of `filled`.
        """
        away = (filled - centre) / self.present
        return centre + away, np.hypot(std, away * self.present_std) / self.present

    def scale(self, filled: Array) -> Array:
        """Return standard deviations of the present cells, given those from differences of pairs; (d,)."""
        return np.asarray(filled / self.present)  # a difference is there if both cells are

    def variances(self, moment: Array, basis: Array, *, pairs: bool, away: Array | None = None) -> Growth:
        """Return by how much variances along a basis, and the total, grow from the filled table to present cells.

        For gaps that come independently of one another and of what the cells would hold.

        Parameters
        ----------
        moment : (d, d) array
            Released second moment of the filled rows about their mean, or of the differences of `pairs`.
        basis : (d, k) array
        away : (d,) array, optional
            Squared distance of the mean of the present cells from what gaps were filled with, in units of `moment`.
        """
        turned = basis / self._there(pairs)[:, None]  # (d, k)
        return self._grown(pairs, basis, moment @ basis, moment @ turned, np.diagonal(moment), away)

    def variances_of_few(
        self, along: Array, total: float, basis: Array, *, pairs: bool, away: Array | None = None
    ) -> Growth:
        """Return the same where no whole moment was released: what is off the basis is taken to be spread evenly.

        Parameters
        ----------
        along : (k,) array
            Released variances along the basis, of the filled rows.
        total : float
            In all directions.
        basis : (d, k) array
        away
            As for `variances`.
        """
        d, k = basis.shape
        rest = max(total - float(along.sum()), 0.0) / max(d - k, 1)
        turned = basis / self._there(pairs)[:, None]  # (d, k)
        within = (along - rest)[:, None]
        image, turned = (basis @ (within * (basis.T @ columns)) + rest * columns for columns in (basis, turned))
        return self._grown(pairs, basis, image, turned, basis**2 @ within[:, 0] + rest, away)

    def _there(self, pairs: bool) -> Array:
        """Return the share of differences, or of cells, that are there; (d,)."""
        return self.present**2 if pairs else self.present

    def _grown(
        self, pairs: bool, basis: Array, image: Array, turned: Array, diagonal: Array, away: Array | None
    ) -> Growth:
        """Return the ratios for a moment of which images of the basis, and of that over `there`, are known."""
        there, squares = self._there(pairs), basis**2
        most = float((1.0 / there).max()) ** 2
        off = np.zeros(len(there)) if away is None else np.minimum((1.0 - there) * away, diagonal / there)
        excess = (1.0 / there**2 - 1.0 / there) * diagonal + off  # a cell and itself are there, or not, together
        grown = np.einsum("ij,ij->j", basis / there[:, None], turned) - excess @ squares
        along = np.einsum("ij,ij->j", basis, image)  # (k,)
        total, filled = float((diagonal / there - off).sum()), float(diagonal.sum())
        usable, scale = along > 0.0, np.where(along > 0.0, along, 1.0)
        # By how much they change with each share: of the sum over pairs of columns, and of that over columns.
        std = self.present_std * (2.0 * self.present if pairs else 1.0)
        steep = 2.0 * basis * turned - squares * (diagonal * (2.0 / there - 1.0))[:, None]  # (d, k)
        errors = np.linalg.norm(steep * (std / there**2)[:, None], axis=0)
        total_error = float(np.linalg.norm(diagonal * std / there**2))
        return Growth(
            np.where(usable, np.clip(grown / scale, 1.0 / most, most), 1.0),
            np.where(usable, np.minimum(errors / scale, most), 0.0),
            (squares / there[:, None] ** 2).sum(axis=0),
            float(np.clip(total / filled, 1.0 / most, most)) if filled > 0.0 else 1.0,
            total_error / filled if filled > 0.0 else 0.0,
            math.sqrt(float((there**-2.0).mean())),
        )


def gap_share(n: int, columns: int, mu: float, tuning: GapTuning = GAPS) -> float:
    """Return the share of mu² that counting gaps is worth, from public numbers; 0 if it is not."""
    if not columns:
        return 0.0
    noise = math.sqrt(columns) / (n * mu)  # of a share of gaps, for all of mu²
    share = min(tuning.most, max(tuning.least, (noise / tuning.wanted) ** 2))
    return share if noise / math.sqrt(share) <= tuning.worst else 0.0


def released_gaps(source: Table, counted: Bools, run: Run) -> Gaps | None:
    """Release how many gaps each column has, where there is data enough.

    Parameters
    ----------
    source : Table
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
    error = math.sqrt(columns) * source.count_error
    bounds = SumBounds(count_sensitivity(columns), error, columns, 1.1 * n)
    mu = run.account.spend("gaps", share)
    noisy, sigma = gaussian_sum(source.sums(_Counted(counted), exact=True), (columns,), bounds, mu, run)
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
