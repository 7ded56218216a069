"""The second moment of clipped rows, summed up before it is known where they are clipped.

A clip is chosen by the lengths of all rows, and few rows are longer than it.  So the pass that measures lengths about
a centre sums up outer products too: those of all rows within a *reach* of a few typical lengths, which are released,
so that no row can drown the others in rounding.  Once the clip is released, rows within reach that are longer than it
are taken out again; they, and those beyond reach, are put in as they are clipped.  That is the sum of
`privspan.sums.looks.AugmentedGram` for rows clipped at once, but for rounding, and saves most of a pass.
Proof: docs/explanation/everyday-tables.md, lemma 3.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privspan._lib.rounding import relative_error
from privspan._lib.watch import rows_seen
from privspan.rows.gaps import without_gaps
from privspan.rows.limits import LIMITS, Limits
from privspan.rows.scaling import clip_scale, delicate_lengths, row_scales, scaled_dense
from privspan.rows.unit import Rows, piece_rows
from privspan.sums.everyday_tuning import EVERYDAY
from privspan.sums.grid import look_empty
from privspan.sums.lengths import LONGEST

Array = NDArray[np.float64]


def fits_early(n: int, d: int, limits: Limits = LIMITS) -> bool:
    """Tell from public numbers whether the sums of all chunks take little memory."""
    return (n // limits.early_rows + 1) * (d + 1) * d <= limits.early_entries


class EarlyGram:
    """Rows within reach of a released centre, and their outer products, summed up chunk by chunk.

    Parameters
    ----------
    rows : Rows
        Of a dense table in float64, about a released centre.
    length : float
        Typical length of the rows: released.
    reach : float, optional
        Of the sums, in typical lengths.

    Attributes
    ----------
    lengths : (n,) array
        As `privspan.sums.lengths.lengths_of` returns them: not released.
    """

    def __init__(self, rows: Rows, length: float, reach: float = EVERYDAY.reach) -> None:
        self.rows, self.reach, step = rows, min(reach * length, LONGEST), rows.limits.early_rows
        d, ones, beyond = rows.shape[1], np.ones(step), [np.empty(0, dtype=np.intp)]

        def part(piece: Array, squares: Array, start: int) -> Array:
            unsure = delicate_lengths(squares, self.reach * self.reach)
            if unsure.any():
                numbers = np.flatnonzero(unsure)
                some = without_gaps(piece[numbers])
                left_out = delicate_lengths(_own_squares(some), self.reach * self.reach)
                beyond.append(start + numbers[left_out])
                piece = piece.copy()
                piece[numbers] = np.where(left_out[:, None], 0.0, some)
            made = np.empty((d + 1, d))
            made[:d], made[d] = piece.T @ piece, ones[: len(piece)] @ piece
            return made

        lengths, self.sums = rows.lengths_and_sums(part, step)  # (n,), and (d + 1, d) for each chunk
        self.lengths = np.minimum(lengths, LONGEST)
        self.beyond = np.concatenate(beyond)  # row numbers, rising


class ClippedGram:
    """The second moment of rows clipped at a radius, each with a constant entry, as whole looks ask for it.

    Parameters
    ----------
    early : EarlyGram
    radius : float
        Released.  Rows are in units of it.
    constant : float
        As for `AugmentedGram`.
    """

    def __init__(self, early: EarlyGram, radius: float, constant: float) -> None:
        n, d = early.rows.shape
        self._early, self._radius, self._constant = early, radius, constant
        self.shape = (n, d + 1)
        self.size = self.largest = 1.0 + constant * constant
        self.empty = look_empty(constant)

    def products(self, block: None = None) -> Iterator[Array]:
        """Yield the sum over one chunk after the other, (d + 1, d + 1)."""
        early, radius, (n, d) = self._early, self._radius, self._early.rows.shape
        chunk = early.rows.limits.early_rows
        scale = clip_scale(radius, d)  # of every row that is not longer than the radius
        changed = np.union1d(np.flatnonzero(early.lengths > radius), early.beyond)
        summed = ~np.isin(changed, early.beyond, assume_unique=True)
        cuts, step = (
            np.searchsorted(changed, [*range(0, n, chunk), n]).tolist(),
            piece_rows(d, early.rows.limits),
        )
        for at, sums in enumerate(early.sums):
            count = min(chunk, n - at * chunk)
            moment, total = scale * scale * sums[:d], scale * sums[d]
            for start in range(cuts[at], cuts[at + 1], step):
                mine = slice(start, min(start + step, cuts[at + 1]))
                rows = early.rows.stored(changed[mine])
                before, after = scale * without_gaps(rows[summed[mine]]), _clipped(rows, radius)
                moment += after.T @ after - before.T @ before
                total += after.sum(axis=0) - before.sum(axis=0)
            rows_seen(count)  # whatever was read again: how much that was nobody may know
            yield self._augmented(moment, total, count)

    def _augmented(self, moment: Array, total: Array, count: int) -> Array:
        d, a = len(total), self._constant
        whole = np.empty((d + 1, d + 1))
        whole[:d, :d], whole[d, d] = moment, a * a * count
        whole[:d, d] = whole[d, :d] = a * total
        return whole

    def chunk_error(self, columns: int = 0) -> float:
        """Bound the error of one sum: rows within reach, up to `reach` long, are put in and may be taken out."""
        longest = max(1.0, self._early.reach / self._radius)
        rows = self._early.rows.limits.early_rows
        return 1.01 * self.size * rows * relative_error(rows + 16) * (2.0 * longest * longest + 1.0)


def _clipped(rows: Array, radius: float) -> Array:
    """Return rows clipped at a radius, in units of it, each from its own entries wherever it stands; (m, d)."""
    with np.errstate(all="ignore"):
        return scaled_dense(rows, radius, row_scales(_own_squares(rows), rows.shape[1], radius))[0]


def _own_squares(rows: Array) -> Array:
    """Return squared lengths; not by BLAS, whose last bits may depend on where a row stands: on others, here."""
    return np.asarray(np.add.reduce(rows * rows, axis=1))
