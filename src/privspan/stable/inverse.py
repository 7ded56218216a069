"""Inverses of a small symmetric matrix plus ridge, known well enough for the leverages of every subset of items.

With T the tail of a Gram matrix and Z = λ (T + λI)⁻¹, leverages take two things of Z, for the items that are still
kept: its diagonal blocks and its product with a few columns. `SeriesInverse` reads both off powers of T, which is
fast and serves tails small against the ridge; `CholeskyInverse` has Z itself and measures how good it is.
Both bound their errors for all data. Proofs: ``docs/explanation/stable-leverage.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from scipy.linalg import lapack, solve_triangular

from privspan._lib.rounding import UNIT_ROUNDOFF
from privspan._lib.rounding import relative_error as gamma

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

SLAB = 64
"""Rows of a large matrix that are gone over several times, and stay in the processor's cache meanwhile."""

_MIRRORED = 256  # rows at a time
_UNDERFLOW = 2.0**-100  # more than all that underflows in float32 can add up to
_LARGEST_SERIES = 2**15  # rows, for which the bound above was made
_CHECKED = 512  # rows at a time
_CONVERGED = 2.0**-40  # rounding
_STEPS = 40  # time: bound of the iteration


class Restricted(NamedTuple):
    """What is known of the inverse for the items that are kept: that of T + λI without the rows that are not."""

    blocks: Array  # (t, w, w), on its diagonal; anything for items that are not kept
    product: Array  # (N, r), with the columns that were asked for; anything in rows that are not kept
    block_error: float  # of each entry
    product_error: float  # of each column, relative to that column before


@dataclass(frozen=True)
class CholeskyInverse:
    """The inverse as a matrix; smaller sets are reached by Schur complements."""

    inverse: Array  # (N, N), symmetric
    width: int
    moved: float  # how far, in units of λ and in norm, T may be from the matrix whose inverse this is
    norm: float  # at least ‖Z‖
    condition: float  # at least ‖Z‖ ‖Z⁻¹‖

    @classmethod
    def of(cls, tail: Array, ridge: float, width: int) -> CholeskyInverse | None:
        """Invert and bound the error from the residual; None if it is not small. Overwrites `tail`."""
        size = len(tail)
        tail.ravel()[:: size + 1] += ridge  # T + λI
        lower, failed = lapack.dpotrf(tail.T, lower=1)  # as columns, which saves a copy
        if failed:
            return None
        inverse, failed = lapack.dpotri(lower, lower=1, overwrite_c=1)
        del lower  # matrices this large are let go as soon as they have done their part
        if failed or not np.isfinite(inverse).all():
            return None
        mirror(inverse)
        inverse *= ridge
        residual = tail @ inverse
        residual.ravel()[:: size + 1] -= ridge
        rowsum, norm = (1.01 * float(linalg.norm(matrix, 1, check_finite=False)) for matrix in (tail, inverse))
        defect = (1.01 * float(np.linalg.norm(residual)) + gamma(size + 2) * rowsum * norm) / ridge
        if not defect < 0.5:
            return None
        moved = (defect / (1 - defect) + 4.4 * UNIT_ROUNDOFF) * rowsum / ridge
        indefinite = size * gamma(size + 1) * 1.01 * float(tail.diagonal().max()) / ridge
        if not 2 * (moved + indefinite) < min(1.0, 1 / norm):
            return None
        return cls(inverse, width, moved, norm, norm * rowsum / (ridge * (1 - defect)))

    def restricted(self, row_kept: Mask, columns: Array) -> Restricted | None:
        """Take rows (N,) out by a Schur complement; `columns` (N, r) are zero there. None if it failed."""
        size, gone = len(self.inverse), np.flatnonzero(~row_kept)
        blocks, product = diagonal_blocks(self.inverse, self.width), self.inverse @ columns
        multiplied = (gamma(size) + 4 * UNIT_ROUNDOFF) * self.norm
        if not len(gone):
            return Restricted(blocks, product, 0.0, multiplied)
        taken = self.inverse[:, gone]
        lower, failed = lapack.dpotrf(taken[gone], lower=1, clean=1)
        if failed:
            return None
        towards = solve_triangular(lower, taken.T, lower=True, check_finite=False) * row_kept  # (m, N)
        product -= towards.T @ (towards @ columns)
        blocks = blocks - _blocks_of_product(towards.T, towards.T, self.width)
        squares = np.einsum("mn,mn->n", towards, towards)
        reach, reach_max = 1.01 * float(squares.sum()), 1.01 * float(squares.max())  # ‖Ẑ‖²_F, max ‖ẑ‖²
        solving = 4 * len(gone) * gamma(len(gone) + 1) * self.condition
        pulling = multiplied + 2 * (solving + gamma(size + len(gone))) * reach
        return Restricted(blocks, product, (solving + gamma(len(gone) + 2)) * reach_max, pulling)


@dataclass(frozen=True)
class SinglePrecision:
    """How float32 matrices are multiplied here, and what that may be off by."""

    roundoff: float = 2.0**-24

    def gram(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        """Multiply rows with each other."""
        return np.asarray(rows @ rows.T)

    def error(self, size: int) -> float:
        """Relative error of a product of matrices of float64 numbers, (·, size) and (size, ·)."""
        return 1.01 * (size + 4) * self.roundoff / (1 - (size + 4) * self.roundoff)

    @lru_cache(maxsize=1)  # noqa: B019 - one for a process
    def is_single(self) -> bool:
        """Whether the library multiplies float32 numbers to 24 bits, asked with public numbers: odd ones of 12 bits.

        Data can hide a coarser product from the diagonal of their square, whose errors cancel.
        """
        places = np.arange(_CHECKED)
        numbers = 2 * places + 2049  # below 2¹², so that their products are exact in 24 bits, one to a sum
        rows = np.zeros((_CHECKED, _CHECKED), dtype=np.float32)
        rows[places, places % 16] = numbers
        together = places[:, None] % 16 == places % 16
        return bool((self.gram(rows) == together * np.outer(numbers, numbers)).all())


SINGLE = SinglePrecision()


@dataclass(frozen=True)
class SeriesInverse:
    """The inverse of I + T/λ to the fourth order; smaller sets are reached by taking products out of the powers."""

    tail: Array  # (N, N), T/λ
    square: NDArray[np.float32]  # (N, N), its square, in single precision
    second: Array  # (t, w, w), diagonal blocks of the square
    third: Array  # (t, w, w), and of the cube
    lengths: Array  # (t,), at least the Frobenius norms of the columns of T/λ that are an item's
    fourth: Array  # (t,), and of those of the square
    frobenius: float  # at least ‖T/λ‖_F
    spectral: float  # at least ‖T/λ‖
    single: SinglePrecision = SINGLE

    @classmethod
    def of(cls, tail: Array, ridge: float, width: int, single: SinglePrecision = SINGLE) -> SeriesInverse | None:
        """Compute powers of T/λ; None if that is too large for the series to be short."""
        size, items = len(tail), len(tail) // width
        frobenius = 1.01 * float(np.linalg.norm(tail)) / ridge
        if not frobenius <= 1.0 or size > _LARGEST_SERIES or not single.is_single():
            return None
        tail = tail / ridge
        second = _blocks_of_product(tail, tail, width)
        square = single.gram(tail.astype(np.float32))
        exact, relative = np.einsum("tii->ti", second).ravel(), single.error(size)
        if not (np.abs(square.diagonal() - exact) <= 1.01 * relative * exact + _UNDERFLOW).all():
            return None  # a library that multiplies in less than single precision
        rounding = relative * frobenius
        lengths = 1.01 * np.sqrt(np.einsum("tii->t", second)) + _UNDERFLOW
        squares = np.einsum("ij,ij->i", square, square, dtype=np.float64).reshape(items, width)  # row by row
        fourth = 1.01 * np.sqrt(squares.sum(axis=1)) + rounding * lengths + _UNDERFLOW
        spectral = min(frobenius, float(np.sqrt(1.01 * np.linalg.norm(fourth))))
        if not spectral <= 0.5:
            return None
        third = _blocks_of_product(tail, square, width)
        return cls(tail, square, second, third, lengths, fourth, frobenius, spectral, single)

    @property
    def moved(self) -> float:
        """How far T/λ may be from the true one: `split_gram` and the division round each entry."""
        return 4.4 * UNIT_ROUNDOFF * self.frobenius

    @property
    def norm(self) -> float:
        """At least ‖Z‖."""
        return 1.01 / (1 - self.spectral)

    def restricted(self, row_kept: Mask, columns: Array) -> Restricted:
        """Take rows out of T: out of its powers for the blocks, and out of every step of the series for products."""
        width, gone = self.second.shape[1], np.flatnonzero(~row_kept)
        second, third, fourth = self.second, self.third, self.fourth
        if len(gone):
            taken = self.tail[:, gone]  # (N, m)
            removed = _blocks_of_product(taken, taken, width)
            across = _blocks_of_product(taken, self.square[:, gone], width)
            twice = _blocks_of_product(taken @ taken[gone], taken, width)
            second, third = second - removed, third - across - across.transpose(0, 2, 1) + twice
            fourth = fourth + 1.02 * np.linalg.norm(taken) * np.sqrt(np.einsum("tii->t", removed))
        rest = 1.01 * fourth**2 / (1 - self.spectral)  # the terms that are left out lie between 0 and this
        size = len(row_kept)
        rounding = 4 * self.single.error(size) * self.frobenius + 32 * gamma(2 * size)
        error = rest / 2 + rounding * self.lengths**2 + 8 * _UNDERFLOW
        first = diagonal_blocks(self.tail, width)
        blocks = (1 + rest / 2)[:, None, None] * np.eye(width) - first + second - third
        product, product_error = self._times(row_kept, columns)
        return Restricted(blocks, product, float(error[row_kept[::width]].max(initial=0.0)), product_error)

    def _times(self, row_kept: Mask, columns: Array) -> tuple[Array, float]:
        """Multiply (N, r) by the inverse: y = b - T y / λ until y stays as it is, which contraction proves right."""
        lengths = np.linalg.norm(columns, axis=0)
        lengths[lengths == 0] = 1.0
        found, change = columns, 1.0
        for _ in range(_STEPS):
            following = columns - row_kept[:, None] * (self.tail @ found)
            change = 1.01 * float((np.linalg.norm(following - found, axis=0) / lengths).max(initial=0.0))
            found = following
            if self.spectral * change <= _CONVERGED:
                break
        rounding = 3 * (gamma(len(columns)) * self.frobenius + UNIT_ROUNDOFF)
        return found, (self.spectral * change + rounding) / (1 - self.spectral)


TailInverse: TypeAlias = CholeskyInverse | SeriesInverse
"""Z = λ (T + λI)⁻¹ of a tail T (N, N), up to an error of T."""


def _blocks_of_product(left: Array, right: NDArray[np.floating], width: int) -> Array:
    """Diagonal blocks (t, w, w) of ``left @ right.T``, both (tw, m), in double precision."""
    blocks = np.empty((len(left) // width, width, width))
    step = max(1, SLAB // width)
    for start in range(0, len(blocks), step):
        rows = slice(start * width, (start + step) * width)
        these = left[rows].reshape(-1, width, left.shape[1])
        those = right[rows].astype(np.float64).reshape(-1, width, left.shape[1])
        blocks[start : start + step] = these @ those.transpose(0, 2, 1)
    return blocks


def diagonal_blocks(matrix: Array, width: int) -> Array:
    """View the (t, w, w) blocks on the diagonal of a (tw, tw) matrix."""
    size = len(matrix) // width
    return np.asarray(matrix.reshape(size, width, size, width)[np.arange(size), :, np.arange(size), :])


def mirror(matrix: Array) -> None:
    """Copy what is below the diagonal above it, a block at a time, which is faster than a row at a time."""
    for start in range(0, len(matrix), _MIRRORED):
        rows = slice(start, start + _MIRRORED)
        square = np.tril(matrix[rows, rows], -1)
        matrix[rows, rows] = square + square.T + np.diag(matrix[rows, rows].diagonal())
        matrix[rows, start + _MIRRORED :] = matrix[start + _MIRRORED :, rows].T
