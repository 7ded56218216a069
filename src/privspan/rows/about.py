"""Rows about a released centre: dense ones are shifted when they are read, sparse ones never.

A sparse row less a dense vector is dense.  So a sparse row stays what it is and carries its centre along: the scaled
row w (x - c) is the sparse row w x and the number w, and products with it are products with the sparse row, corrected
by a multiple of c.  Its length is computed as ||x||² - 2 <x, c> + ||c||², with a bound on the rounding error added
before it divides, so that ||w (x - c)|| <= 1 is a theorem.  A row much closer to the centre than the centre is to
zero would lose its digits; it is made shorter than need be, so that no error grows beyond `SPREAD` times the usual.
Proofs: docs/explanation/everyday-tables.md, lemma 6.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan._lib.arrays import Reals
from privspan._lib.rounding import relative_error
from privspan.rows.compressed import entry_rows, inner_products
from privspan.rows.gaps import filled_sparse
from privspan.rows.scaling import SHORT_SUM_ROWS, SINGLE_SUM_ROWS, Piece, combined, squared_lengths_of
from privspan.rows.table import LocalTable
from privspan.rows.unit import PerRow, Rows

Array = NDArray[np.float64]

WIDEST_DENSE = 256
"""Columns up to which a whole second moment takes as little time as a few products."""

SPREAD = 256.0
"""Largest w (||x|| + ||c||) of a sparse row that carries its centre along: everyday-tables, lemma 6."""

_INFLATION = 1.0 + 2.0**-40  # rounding: more than SPREAD of them
_WIDEST_SINGLE = 2048  # columns: in float32 the errors of longer products would cost more than they save
_SHAPES = ((_WIDEST_SINGLE, 16), (20, 4))  # float32: columns and directions; small products may go another way
_FURTHEST_SINGLE = 2.0**100  # coordinates of a centre in float32
_SAFE_SQUARE = 2.0**800  # float64: beyond this, or below its inverse, a row counts as zero


def holds_in_single(columns: int, centre: Array | None = None) -> bool:
    """Tell from public and released numbers and the machine whether rows of float32 about a centre may stay so."""
    return columns <= _WIDEST_SINGLE and is_near(centre) and _single_is_single()


def is_near(centre: Array | None) -> bool:
    """Tell whether a centre is within the range of float32."""
    return centre is None or float(np.abs(centre).max()) <= _FURTHEST_SINGLE


@lru_cache(maxsize=1)
def _single_is_single() -> bool:
    """Ask the library, with public numbers, whether it multiplies float32 to 24 bits, in the shapes of a look.

    Every sum has one term that is not zero, exact in 24 bits: of an odd number of 24 and 1, or of two odd ones of 12.
    """
    places = np.arange(2 * SINGLE_SUM_ROWS)
    ones = np.ones(len(places), dtype=np.float32)
    short, long = ((2**bits - 1 - 2 * places).astype(np.float32) for bits in (12, 24))
    for left, right in ((short, short), (long, ones), (ones, long)):
        for columns, b in _SHAPES:
            if not _exact_products(left[:columns], right[:b], columns):
                return False
    return True


def _exact_products(left: NDArray[np.float32], right: NDArray[np.float32], columns: int) -> bool:
    """Tell whether rows with one number each, times a block, their sums and their squares are what they should be."""
    numbers, places = np.arange(len(left)), 7 * np.arange(len(left)) % columns
    rows = np.zeros((2 * SINGLE_SUM_ROWS, columns), dtype=np.float32)  # the last ones of short rows are empty
    rows[numbers, places] = left
    wanted = np.multiply.outer(left, right)  # (numbers, b)
    inner = _single_product(rows, np.tile(right, (columns, 1)))[numbers]
    blocks, runs = np.tile(right, (len(rows), 1)), (SHORT_SUM_ROWS, SINGLE_SUM_ROWS)
    sums = [combined(rows, blocks, run=run)[places] for run in runs]
    squares = squared_lengths_of(rows)[numbers] == (left.astype(np.float64) ** 2).astype(np.float32)  # rounded once
    return bool((inner == wanted).all() and all((one == wanted).all() for one in sums) and squares.all())


def _single_product(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(left @ right)


class CentredSparseRows(Rows):
    """The rows of a sparse table about a centre, of length at most 1; pieces are `CentredPiece`.

    Parameters
    ----------
    X : CSR matrix or sparse RowSource
    centre : (d,) array
    clip, keep, width
        As for `privspan.rows.unit.Rows`.
    """

    def __init__(
        self, X: LocalTable, centre: Array, *, clip: float | None = None, keep: bool = True, width: int = 1
    ) -> None:
        super().__init__(X, clip=clip, keep=keep, width=width)
        self._carried, self.rounding = centre, SPREAD

    def map_rows(self, function: Callable[[Piece], Reals]) -> PerRow:
        """Return one result per row."""
        return self.results(function)

    def _lengths(self, index: int, stored: Any) -> Array:
        return np.asarray(np.sqrt(_squares_about(filled_sparse(stored, self._carried), self._carried)[0]))

    def _cleaned(self, index: int, numbers: slice) -> CentredPiece:
        rows = filled_sparse(self._source[numbers], self._carried)
        _, bounds = _squares_about(rows, self._carried)
        with np.errstate(all="ignore"):
            divisors = np.maximum(np.sqrt(bounds), 0.0 if self._clip is None else self._clip) * _INFLATION
            weights = np.where(bounds > 0.0, 1.0 / divisors, 0.0)
            rows.data *= weights[entry_rows(rows.indptr)]
        # Nothing is left of a row that is out of range: 0 times infinity would be.
        rows.data[(weights == 0.0)[entry_rows(rows.indptr)]] = 0.0
        return CentredPiece(rows, weights, self._carried)


def _squares_about(rows: sparse.csr_array, centre: Array) -> tuple[Array, Array]:
    """Return squared lengths about the centre, and what is surely above them; zero for rows without use; (m,)."""
    with np.errstate(all="ignore"):
        own = np.bincount(entry_rows(rows.indptr), weights=rows.data * rows.data, minlength=rows.shape[0])  # (m,)
        off = float(centre @ centre)
        squares = own - 2.0 * (rows @ centre) + off
        usable = np.isfinite(squares) & (own + off <= _SAFE_SQUARE) & (own + off >= 1.0 / _SAFE_SQUARE)
        squares = np.where(usable, np.maximum(squares, 0.0), 0.0)
        slack = 8.0 * relative_error(rows.shape[1] + 8)
        bounds = np.maximum(squares + slack * (own + off), (own + off) * (2.02 / SPREAD**2))
    return squares, np.where(usable, bounds, 0.0)


class CentredPiece:
    """A run of rows w (x - c): sparse rows w x, numbers w, and the centre they share.

    Parameters
    ----------
    scaled : (m, d) CSR array
    weights : (m,) array
    centre : (d,) array
    """

    def __init__(self, scaled: sparse.csr_array, weights: Array, centre: Array) -> None:
        self._scaled, self._weights, self._centre = scaled, weights, centre
        self.shape: tuple[int, int] = scaled.shape
        self.nbytes = 12 * scaled.nnz

    def __matmul__(self, block: Array) -> Array:
        return np.asarray(self._scaled @ block) - np.outer(self._weights, self._centre @ block)

    def __mul__(self, factors: Array) -> CentredPiece:
        """Multiply every row by its own number, given as a column (m, 1)."""
        scaled = self._scaled.copy()
        scaled.data *= factors[:, 0][entry_rows(scaled.indptr)]
        return CentredPiece(scaled, self._weights * factors[:, 0], self._centre)

    def combined(self, coefficients: Array) -> Array:
        """Return the sums of the rows with these coefficients (m, b), as columns (d, b)."""
        return np.asarray(self._scaled.T @ coefficients) - np.outer(self._centre, self._weights @ coefficients)

    def sum(self, axis: int = 0) -> Array:
        """Return the sum of the rows."""
        total: Array = np.asarray(self._scaled.sum(axis=axis)).ravel() - self._centre * self._weights.sum()
        return total

    def gram(self) -> Array:
        """Return the sum of the outer products of the rows, (d, d)."""
        cross = np.outer(np.asarray(self._scaled.T @ self._weights), self._centre)
        square = float(self._weights @ self._weights)
        own = sparse.csr_array(self._scaled.T @ self._scaled).toarray()
        return np.asarray(own - cross - cross.T + square * np.outer(self._centre, self._centre))

    def inner_products(self, width: int) -> Array:
        """Return those of every `width` consecutive rows, from these alone, (groups, width, width).

        Each is off by at most gamma_{d+8} `SPREAD`², as the parts of a row are no longer than `SPREAD` together.
        """
        own, weights = inner_products(self._scaled, width), self._weights.reshape(-1, width)
        along = np.asarray(self._scaled @ self._centre).reshape(-1, width)
        cross = along[:, :, None] * weights[:, None, :]
        square = float(self._centre @ self._centre) * (weights[:, :, None] * weights[:, None, :])
        return np.asarray(own - cross - cross.transpose(0, 2, 1) + square)
