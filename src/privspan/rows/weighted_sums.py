"""Sums of rows with coefficients: the second half of a product with rows and their transpose.

Rows of float32 are added up in float32 a few at a time, and these sums in float64: what rounding may change of a sum
when one row is replaced is then bounded by a small constant, which looks and means add to their sensitivity.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privspan._lib.arrays import Reals
from privspan._lib.rounding import SINGLE_ROUNDOFF, relative_error
from privspan.rows.scaling import Piece

Array = NDArray[np.float64]

SINGLE_SUM_ROWS = 128
"""Rows that float32 adds up, at most, so that what it may be off by stays small; their sums are added in float64."""


def single_sum_error() -> float:
    """Bound what float32 may be off by in a sum of terms of length at most 1, of which a replacement changes one."""
    return SINGLE_SUM_ROWS * relative_error(SINGLE_SUM_ROWS + 8, SINGLE_ROUNDOFF)


def combined(piece: Piece, coefficients: Array, out: Array | None = None) -> Array:
    """Return the sums of the rows of a piece with these coefficients (rows, b), as columns (d, b); perhaps in `out`.

    Coefficients of float32 are for rows of float32.
    """
    if not isinstance(piece, np.ndarray):
        sums = np.asarray(piece.combined(coefficients) if hasattr(piece, "combined") else piece.T @ coefficients)
    elif coefficients.dtype == np.float32:
        sums = _sum_of_runs(piece, coefficients).T
    else:
        sums = np.asarray(coefficients.T @ piece).T  # faster than the other way round
    if out is None:
        return sums
    out[...] = sums
    return out


def gram_of(piece: Piece) -> Array:
    """Return the sum of the outer products of the rows of a piece, (d, d)."""
    if hasattr(piece, "gram"):
        return np.asarray(piece.gram())
    gram = piece.T @ piece
    return np.asarray(gram.toarray() if hasattr(gram, "toarray") else gram)


def _sum_of_runs(piece: Reals, coefficients: Reals) -> Array:
    """Return the sums of rows of float32 with coefficients (rows, b): short runs in that type, added in float64."""
    (m, d), b = piece.shape, coefficients.shape[1]
    whole = m - m % SINGLE_SUM_ROWS
    of_runs = coefficients[:whole].T.reshape(b, -1, SINGLE_SUM_ROWS).transpose(1, 0, 2)  # (runs, b, rows of a run)
    total = np.add.reduce(of_runs @ piece[:whole].reshape(-1, SINGLE_SUM_ROWS, d), axis=0, dtype=np.float64)
    if whole < m:
        total += coefficients[whole:].T @ piece[whole:]
    return np.asarray(total)
