"""Rows of length at most one, provably, handed out piece by piece.

Every record is divided by its own length, so no bound on the data is asked of anybody and the subspace the rows
span stays what it was.  That the result is no longer than 1 is a theorem about float64, not a hope: the length is
computed from values that can neither overflow nor underflow, and inflated by more than its rounding error before it
divides (docs/explanation/everyday-pca.md, lemma 1).  A row with a non-finite entry becomes the zero row.

Rows are cut by row number alone: into chunks of 4096, whose sums are the unit of exact adding (`privspan.sums`), and
these into pieces that fit in memory.  Replacing a record touches one chunk, and every row is cleaned from its own
entries.  Dense pieces are float64 arrays, sparse ones CSR matrices whose duplicate entries have been added up;
nothing is ever densified.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan import _checks

__all__ = ["CHUNK_ROWS", "Piece", "Rows", "as_rows_input", "piece_rows", "scaled_rows"]

Array: TypeAlias = NDArray[np.float64]
Piece: TypeAlias = Any
"""A run of cleaned rows: a (rows, d) float64 array, or a CSR array of that shape."""

CHUNK_ROWS = 4096
"""Rows per chunk (the last may be shorter): a constant, so what a replacement touches does not grow with n."""

_PIECE_ENTRIES = 2**24  # of a dense piece: 128 MiB, whatever d is
_KEPT_BYTES = 2**30  # cleaned rows up to this size are kept between passes
_SAFE_SQUARE = 2.0**800  # a sum of squares within [1/this, this] has neither overflowed nor lost digits
_UNIT_ROUNDOFF = 2.0**-53


def as_rows_input(X: object, *, min_rows: int = 1) -> Any:
    """Return `X` as an array or a CSR matrix, after checks that look at type, dtype and shape only.

    Parameters
    ----------
    X
        (n, d): anything NumPy can view as numbers, a memory map, or a SciPy sparse matrix or array.
    min_rows
        The least number of rows.

    Returns
    -------
    ndarray or CSR array
        Of shape (n, d), in the dtype that `X` came with.
    """
    if not sparse.issparse(X):
        return _checks.matrix(X, min_rows=min_rows)
    matrix: Any = X
    if matrix.dtype.kind not in "biuf" or matrix.dtype.itemsize > 8:
        what = "a matrix of booleans, integers or floats of at most 64 bits"
        raise TypeError(f"`X` must be {what}; got dtype {matrix.dtype.name}.")
    if matrix.ndim != 2 or matrix.shape[0] < min_rows or matrix.shape[1] < 1:
        raise ValueError(f"`X` must be of at least {min_rows} row(s) and 1 column; got shape {matrix.shape}.")
    return matrix.tocsr()


class Rows:
    """The rows of a matrix, each scaled to unit length or clipped to a given length.

    Parameters
    ----------
    X : (n, d) array, memory map or CSR matrix
        One record per row; see `as_rows_input`.
    clip : float, optional
        None: every row is scaled to length at most 1 (1 up to rounding, or 0).  A positive number R: every row is
        divided by R, and scaled down to length 1 where it is still longer; lengths are then in units of R.

    Attributes
    ----------
    shape : (n, d)

    Examples
    --------
    >>> import numpy as np
    >>> rows = Rows(np.array([[3.0, 4.0], [np.nan, 1.0], [1e-200, 0.0]]))
    >>> next(rows.pieces())[1].round(6)
    array([[0.6, 0.8],
           [0. , 0. ],
           [1. , 0. ]])
    """

    def __init__(self, X: Any, *, clip: float | None = None) -> None:
        self._source = X
        self._clip = clip
        self.shape: tuple[int, int] = (int(X.shape[0]), int(X.shape[1]))
        self._is_sparse = sparse.issparse(X)
        self._piece_rows = CHUNK_ROWS if self._is_sparse else piece_rows(self.shape[1])
        stored = 12 * X.nnz if self._is_sparse else 8 * X.shape[0] * X.shape[1]
        self._keep = stored <= _KEPT_BYTES
        self._kept: list[Piece] = []
        self._squares: Array | None = None

    def pieces(self) -> Iterator[tuple[slice, Piece]]:
        """Yield the row numbers and the cleaned rows of one piece after the other: one pass over the data."""
        for index, start in enumerate(range(0, self.shape[0], self._piece_rows)):
            numbers = slice(start, min(start + self._piece_rows, self.shape[0]))
            if index < len(self._kept):
                yield numbers, self._kept[index]
                continue
            piece = scaled_rows(self._source[numbers], clip=self._clip)
            if self._keep:
                self._kept.append(piece)
            yield numbers, piece

    def squared_lengths(self) -> Array:
        """Return the computed squared length of every cleaned row, off by at most gamma_{d+1} relatively."""
        if self._squares is None:
            self._squares = np.concatenate([_squared_lengths(piece) for _, piece in self.pieces()])  # (n,)
        return self._squares


def piece_rows(d: int) -> int:
    """Return the rows of a dense piece: a power of two from 64 to `CHUNK_ROWS`, fewer where rows are long."""
    return max(64, min(CHUNK_ROWS, 1 << max(0, (_PIECE_ENTRIES // d).bit_length() - 1)))


def scaled_rows(source: Any, *, clip: float | None = None) -> Piece:
    """Return float64 rows of length at most 1, every one computed from its own entries.

    Parameters
    ----------
    source : (rows, d) array or CSR matrix
    clip : float, optional
        As for `Rows`.

    Returns
    -------
    (rows, d) array or CSR array
        A fresh copy.
    """
    if sparse.issparse(source):
        return _scaled_sparse(source, clip)
    rows = np.array(source, dtype=np.float64, order="C")  # (rows, d)
    with np.errstate(all="ignore"):
        squares = _squared_lengths(rows)
        scales, delicate = _scales(squares, rows.shape[1], clip)
        saved = rows[delicate]
        rows *= scales[:, None]
        for index, row in zip(np.flatnonzero(delicate), saved, strict=True):
            rows[index] = _scaled_delicate(row, rows.shape[1], clip)
    return rows


def _scaled_sparse(source: Any, clip: float | None) -> Any:
    """Scale the rows of a CSR matrix; a cell that is stored several times holds the sum of what is stored."""
    # A fresh matrix, so that no stale "no duplicates" flag of the input is believed.
    rows = sparse.csr_array(
        (source.data.astype(np.float64), source.indices.copy(), source.indptr.copy()), shape=source.shape
    )
    with np.errstate(all="ignore"):
        rows.sum_duplicates()
        squares = _squared_lengths(rows)
        scales, delicate = _scales(squares, rows.shape[1], clip)
        saved = {i: rows.data[rows.indptr[i] : rows.indptr[i + 1]].copy() for i in np.flatnonzero(delicate)}
        rows.data *= np.repeat(scales, np.diff(rows.indptr))
        for index, entries in saved.items():
            start, stop = rows.indptr[index], rows.indptr[index + 1]
            rows.data[start:stop] = _scaled_delicate(entries, rows.shape[1], clip)
    return rows


def _squared_lengths(rows: Piece) -> Array:
    """Return the computed squared length of each row, (rows,)."""
    if not sparse.issparse(rows):
        return np.asarray(np.einsum("ij,ij->i", rows, rows))
    stored: Any = rows
    owner = np.repeat(np.arange(stored.shape[0]), np.diff(stored.indptr))  # row of each stored entry
    squares = np.bincount(owner, weights=stored.data * stored.data, minlength=stored.shape[0])
    return np.asarray(squares, dtype=np.float64)


def _scales(squares: Array, d: int, clip: float | None) -> tuple[Array, NDArray[np.bool_]]:
    """Return the factor of each row from its computed squared length, and which rows need more care."""
    delicate = ~((squares >= 1.0 / _SAFE_SQUARE) & (squares <= _SAFE_SQUARE))  # True for NaN
    lengths = np.sqrt(np.where(delicate, 1.0, squares)) * _inflation(d)
    return 1.0 / (lengths if clip is None else np.maximum(lengths, clip * _inflation(d))), delicate


def _scaled_delicate(row: Array, d: int, clip: float | None) -> Array:
    """Scale one row whose squares left the range of float64: zero, non-finite, huge or tiny."""
    largest = float(np.abs(row).max(initial=0.0))  # NaN if any entry is
    if not np.isfinite(largest) or largest == 0.0:
        return np.zeros_like(row)
    exponent = int(np.frexp(largest)[1])
    near_one = np.ldexp(row, -exponent)  # largest entry in [1/2, 1)
    length = float(np.sqrt(near_one @ near_one)) * _inflation(d)
    if clip is not None:
        # The clip in the same units; beyond the range of float64 the row is simply negligible, or simply long.
        length = max(length, float(np.ldexp(clip * _inflation(d), -exponent)))
    return np.asarray(near_one / length, dtype=np.float64)


def _inflation(d: int) -> float:
    """Return 1 + (d + 8) u, more than the relative error of a computed length of d entries."""
    return 1.0 + (d + 8) * _UNIT_ROUNDOFF
