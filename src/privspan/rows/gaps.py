"""Gaps: cells that are missing or not finite, and what counts in their place.

The rule of the package is to *fill*: about a released centre a gap counts as that centre, in a difference of two rows
as no difference, and without a centre as 0.  All of it happens where rows are made short (`privspan.rows.unit`): a
gap is a 0 there, so that nothing has to be carried along.  The other rule, a row of zeros for a record with a gap, is
had by spreading the gap over the whole record first (`spoiled`).  Either way a row is a function of its own
record and of released numbers (docs/explanation/gaps.md).
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan._lib.arrays import Reals
from privspan.rows.compressed import Readable, Stored, entry_rows, summed_rows

Array: TypeAlias = NDArray[np.float64]


def spoiled(rows: Stored) -> Stored:
    """Return rows, dense or CSR, in which a gap has spoiled its whole record, each from its own cells."""
    if not sparse.issparse(rows):
        return np.where(np.isfinite(rows).all(axis=1, keepdims=True), rows, rows.dtype.type(np.nan))
    whole = summed_rows(rows)
    owner = entry_rows(whole.indptr)
    lost = np.bincount(owner[~np.isfinite(whole.data)], minlength=whole.shape[0]) > 0
    whole.data[lost[owner]] = 0.0
    return whole


def filled(rows: Stored, centre: Array) -> Stored:
    """Return rows, dense or CSR, as fresh ones of float64 in which gaps are filled with a centre.

    Parameters
    ----------
    rows : (m, d) array or CSR array
    centre : (d,) array
        Released or public.
    """
    if not sparse.issparse(rows):
        numbers = np.asarray(rows, dtype=np.float64)
        return np.where(np.isfinite(numbers), numbers, centre)
    return filled_sparse(rows, centre)


def filled_sparse(rows: sparse.csr_array, centre: Array) -> sparse.csr_array:
    """Do that with CSR rows."""
    whole = summed_rows(rows)
    gaps = ~np.isfinite(whole.data)
    whole.data[gaps] = centre[whole.indices[gaps]]
    return whole


def coordinates_of(rows: Stored | Readable, basis: Array, offset: Array | None, step: int) -> Array:
    """Return the coordinates in a basis (d, k) of rows that are read so many at a time, gaps filled; (n, k)."""
    with np.errstate(all="ignore"):
        centre = np.zeros(len(basis)) if offset is None else offset
        starts = range(0, rows.shape[0], step)
        pieces = [np.asarray(filled(rows[at : at + step], centre) @ basis) for at in starts]
        return np.concatenate(pieces) - centre @ basis


def without_gaps(rows: Reals) -> Array:
    """Return dense rows as fresh ones of float64 in which gaps are zeros."""
    with np.errstate(all="ignore"):
        numbers = rows.astype(np.float64)
    if not surely_whole(numbers):
        numbers[~np.isfinite(numbers)] = 0.0
    return numbers


def surely_whole(rows: Reals) -> bool:
    """Tell whether there is no gap, by a sum of squares: faster than to ask every cell, and an overflow says no."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(np.vdot(rows, rows)))


def gap_counts(rows: Stored) -> Array:
    """Count the gaps of every column; (d,)."""
    if not sparse.issparse(rows):
        if surely_whole(rows):
            return np.zeros(rows.shape[1])
        return np.asarray((~np.isfinite(rows)).sum(axis=0), dtype=np.float64)
    whole = summed_rows(rows)
    gaps = whole.indices[~np.isfinite(whole.data)]
    return np.bincount(gaps, minlength=whole.shape[1]).astype(np.float64)
