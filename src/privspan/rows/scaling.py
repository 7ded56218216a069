"""Runs of rows: scaled to length at most one, each from its own entries, with the proof in mind, and summed.

A squared length that has neither overflowed nor lost digits gives the factor of its row at once; other rows, and
those with gaps, are *delicate* and are first brought near one by a power of two.  Every computed length is inflated
by more than its rounding error before it divides: docs/explanation/everyday-pca.md, lemma 1.

Rows of float32 are added up in float32 a few at a time, and these sums in float64: what rounding may change of a sum
when one row is replaced is then bounded by a small constant, which looks and means add to their sensitivity.
"""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan._lib.arrays import Floats, Reals
from privspan._lib.rounding import SINGLE_ROUNDOFF, UNIT_ROUNDOFF, relative_error
from privspan.rows.compressed import Stored, entry_rows, summed_rows

Array: TypeAlias = NDArray[np.float64]
Piece: TypeAlias = Any
"""A run of cleaned rows: a (rows, d) float64 array, or a CSR array of that shape."""

Factors: TypeAlias = tuple[Floats, NDArray[np.bool_]]  # of each row, and whether it needs more care; (rows,) each

SINGLE_SUM_ROWS = 128
"""Rows that float32 adds up, at most, so that what it may be off by stays small; their sums are added in float64."""
SHORT_SUM_ROWS = 32
"""The same where terms are small beside what the sum is charged for: everyday-pca, lemma 7."""

_SLAB_ENTRIES = 2**17
_SAFE_SQUARE = 2.0**800  # a sum of squares within [1/this, this] has neither overflowed nor lost digits
_SAFE_SINGLE = 2.0**80  # the same for rows of float32: nor do products with them, in that type

_SHORT_ROW = 64  # entries of float32: a call for each row takes longer than it

_HOPELESS = -(2**20)  # an exponent that no float64 has


def scaled_rows(source: Stored, *, clip: float | None = None) -> Piece:
    """Return a fresh copy of rows, dense or CSR, of length at most 1 (see `Rows`), each from its own entries."""
    return scaled_dense(source, clip)[0] if isinstance(source, np.ndarray) else scaled_sparse(source, clip)


def scaled_dense(source: Reals, clip: float | None, factors: Factors | None = None) -> tuple[Array, Factors]:
    """Scale the rows of an array; also return the factors, with which the same rows are scaled faster again."""
    n, d = source.shape
    rows = np.empty((n, d))
    scales, delicate = (np.empty(n), np.empty(n, dtype=bool)) if factors is None else factors
    step = max(1, _SLAB_ENTRIES // d)
    with np.errstate(all="ignore"):
        for start in range(0, n, step):  # what is touched three times stays in the processor's cache
            slab = slice(start, start + step)
            rows[slab] = source[slab]
            if factors is None:
                scales[slab], delicate[slab] = row_scales(squared_lengths_of(rows[slab]), d, clip)
            rows[slab] *= scales[slab, None]
        numbers = np.flatnonzero(delicate)
        for start in range(0, len(numbers), step):
            redo_delicate(rows, source, numbers[start : start + step], clip)
    return rows, (scales, delicate)


def redo_delicate(rows: Reals, source: Reals, numbers: NDArray[np.intp], clip: float | None) -> None:
    """Scale again, with care, the rows of these numbers, which may have gaps."""
    near_one, exponents = near_one_rows(source, numbers)
    # Not by BLAS, whose last bits may depend on where in memory a row is: here that depends on the rows before it.
    squares = np.add.reduce(near_one * near_one, axis=1)
    lengths = _careful_lengths(squares, exponents, rows.shape[1], clip)
    rows[numbers] = near_one / lengths[:, None]


def near_one_rows(source: Reals, numbers: NDArray[np.intp]) -> tuple[Array, NDArray[np.intc]]:
    """Return rows of these numbers, gaps zero, divided by 2^e so that the largest entry is in [1/2, 1), and e."""
    taken = np.asarray(source[numbers], dtype=np.float64)
    taken = np.where(np.isfinite(taken), taken, 0.0)
    exponents = _exponents(np.abs(taken).max(axis=1))
    taken[exponents == _HOPELESS] = 0.0
    return np.ldexp(taken, -exponents[:, None]), exponents


def scaled_sparse(source: sparse.csr_array, clip: float | None) -> sparse.csr_array:
    """Scale the rows of a CSR matrix; a cell that is stored several times holds the sum of what is stored."""
    with np.errstate(all="ignore"):
        rows = summed_rows(source)
        scales, delicate = row_scales(squared_lengths_of(rows), rows.shape[1], clip)
        owner = entry_rows(rows.indptr)
        careful = delicate[owner]  # stored entries of rows that need care
        kept, kept_owner = rows.data[careful], owner[careful]
        rows.data *= scales[owner]
        rows.data[careful] = _scaled_entries(kept, kept_owner, rows.shape, clip)
    return rows


def squared_lengths_of(rows: Piece) -> Floats:
    """Return the computed squared length of each row, (rows,), in the type of the rows."""
    if isinstance(rows, np.ndarray):
        short = rows.dtype == np.float32 and rows.shape[1] < _SHORT_ROW
        return np.asarray((rows * rows) @ np.ones(rows.shape[1], rows.dtype) if short else np.vecdot(rows, rows))
    squares = np.bincount(entry_rows(rows.indptr), weights=rows.data * rows.data, minlength=rows.shape[0])
    return np.asarray(squares, dtype=np.float64)


def row_scales(squares: Floats, d: int, clip: float | None, *, single: bool = False) -> Factors:
    """Return the factor of each row from its squared length, computed in float32 if `single`, and which need care."""
    delicate = delicate_lengths(squares, single=single)
    lengths = np.sqrt(np.where(delicate, 1.0, squares) if delicate.any() else squares)
    inflation = _inflation(d, SINGLE_ROUNDOFF if single else UNIT_ROUNDOFF)
    lengths *= inflation
    if clip is not None:
        np.maximum(lengths, clip * inflation, out=lengths)
    return np.divide(1.0, lengths, out=lengths), delicate


def clip_scale(clip: float, d: int) -> float:
    """Return the factor that `row_scales` has for every row no longer than the clip, to the last bit."""
    return 1.0 / (clip * _inflation(d))


def delicate_lengths(squares: Floats, most: float = math.inf, *, single: bool = False) -> NDArray[np.bool_]:
    """Tell which computed squared lengths may have overflowed or lost digits, or are above `most`; True for NaN."""
    safe = _SAFE_SINGLE if single else _SAFE_SQUARE
    most = min(most, safe)
    if len(squares) and squares.min() >= 1.0 / safe and squares.max() <= most:  # not with a NaN
        return np.zeros(len(squares), dtype=bool)
    return ~((squares >= 1.0 / safe) & (squares <= most))


def _scaled_entries(entries: Array, owner: NDArray[np.intp], shape: tuple[int, int], clip: float | None) -> Array:
    """Scale the stored entries of sparse rows with care; gaps become zeros."""
    n, d = shape
    entries = np.where(np.isfinite(entries), entries, 0.0)
    largest = np.zeros(n)
    np.maximum.at(largest, owner, np.abs(entries))
    exponents = _exponents(largest)
    near_one = np.where(exponents[owner] == _HOPELESS, 0.0, np.ldexp(entries, -exponents[owner]))
    squares = np.bincount(owner, weights=near_one * near_one, minlength=n).astype(np.float64, copy=False)
    return np.asarray(near_one / _careful_lengths(squares, exponents, d, clip)[owner])


def _exponents(largest: Array) -> NDArray[np.intc]:
    """Return e with largest / 2^e in [1/2, 1) for each row, and `_HOPELESS` for rows of zeros."""
    usable = largest > 0.0
    return np.where(usable, np.frexp(np.where(usable, largest, 1.0))[1], _HOPELESS).astype(np.intc)


def _careful_lengths(squares: Array, exponents: NDArray[np.intc], d: int, clip: float | None) -> Array:
    """Return what rows, already divided by 2^exponent, are divided by, from their computed squared lengths."""
    lengths = np.sqrt(np.where(exponents == _HOPELESS, 1.0, squares)) * _inflation(d)
    if clip is None:
        return np.asarray(lengths)
    # The clip in the same units; beyond the range of float64 the row is simply negligible, or simply long.
    return np.maximum(lengths, np.ldexp(clip * _inflation(d), -exponents))


def _inflation(d: int, roundoff: float = UNIT_ROUNDOFF) -> float:
    """Return 1 + (d + 8) u, more than the relative error of a computed length of d entries."""
    return 1.0 + (d + 8) * roundoff


# ---- Sums of rows with coefficients: the second half of a product with rows and their transpose --------------------


def single_sum_error(run: int = SINGLE_SUM_ROWS) -> float:
    """Bound what float32 may be off by in a sum of terms of length at most 1, of which a replacement changes one."""
    return run * relative_error(run + 8, SINGLE_ROUNDOFF)


def combined(piece: Piece, coefficients: Reals, out: Array | None = None, run: int = SINGLE_SUM_ROWS) -> Array:
    """Return the sums of the rows of a piece with these coefficients (rows, b), as columns (d, b); perhaps in `out`.

    Coefficients of float32 are for rows of float32, of which that type adds up a `run` at a time.
    """
    if not isinstance(piece, np.ndarray):
        sums = np.asarray(piece.combined(coefficients) if hasattr(piece, "combined") else piece.T @ coefficients)
    elif coefficients.dtype == np.float32:
        sums = _sum_of_runs(piece, coefficients, run).T
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


def _sum_of_runs(piece: Reals, coefficients: Reals, run: int) -> Array:
    """Return the sums of rows of float32 with coefficients (rows, b): short runs in that type, added in float64."""
    (m, d), b = piece.shape, coefficients.shape[1]
    whole = m - m % run
    of_runs = coefficients[:whole].T.reshape(b, -1, run).transpose(1, 0, 2)  # (runs, b, rows of a run)
    total = np.add.reduce(of_runs @ piece[:whole].reshape(-1, run, d), axis=0, dtype=np.float64)
    if whole < m:
        total += coefficients[whole:].T @ piece[whole:]
    return np.asarray(total)
