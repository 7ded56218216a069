"""Rows less one vector, made in a buffer that is used again."""

from __future__ import annotations

import math
import threading
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan._lib.arrays import Reals
from privspan.rows.compressed import Stored

_Made = TypeVar("_Made", bound=Reals)

_LONG_ROW = 512  # entries: NumPy takes as long to begin a shorter row as to go through it, so several are made one


def less(rows: Stored, subtrahend: Any, out: Reals | None = None) -> Stored:
    """Return rows less others, or less one vector, in float64 whatever their types: entry by entry, nothing raised.

    The type of an array is one for all its rows, and a single cell may widen it.  Every type that tables may have
    goes to float64 value by value, so a result depends on the two numbers behind it and on nothing else.  Rows are
    (m, d), dense or CSR; `out` is for dense ones only.
    """
    if not isinstance(rows, np.ndarray):
        return sparse.csr_array(rows.astype(np.float64) - subtrahend.astype(np.float64))
    # A power of two, as the lengths of pieces are.
    shape, together = rows.shape, math.gcd(len(rows), 1 << max(0, (_LONG_ROW // rows.shape[1]).bit_length() - 1))
    in_runs = rows.flags.c_contiguous and (out is None or out.flags.c_contiguous)
    if together > 1 and np.ndim(subtrahend) == 1 and in_runs:
        rows, subtrahend = rows.reshape(-1, together * shape[1]), np.tile(subtrahend, together)
        out = None if out is None else out.reshape(rows.shape)
    with np.errstate(all="ignore"):
        if rows.dtype != np.float64:  # converted at once: by the way NumPy takes twice as long
            made: Reals = np.empty(rows.shape) if out is None else out
            np.copyto(made, rows, casting="unsafe")
            rows = out = made
        made = np.subtract(rows, subtrahend, out=out, dtype=np.float64, casting="unsafe", order="C")
    return np.asarray(made.reshape(shape))


class Scratch(threading.local):
    """One buffer for each thread, for pieces that are made one after the other and not kept.

    Pieces are about as large as what a C library asks of the system anew each time, which can take longer than
    filling them.
    """

    def __init__(self) -> None:
        self._buffer: Reals = np.empty(0)

    def __reduce__(self) -> tuple[type[Scratch], tuple[()]]:
        return Scratch, ()  # a copy has a buffer of its own

    def of(self, shape: tuple[int, ...], dtype: type) -> Reals:
        """Return room for an array; it holds what was put there last."""
        size = math.prod(shape)
        if self._buffer.size < size or self._buffer.dtype != dtype:
            self._buffer = np.empty(size, dtype)
        return self._buffer[:size].reshape(shape)


class Shift:
    """Dense rows less one vector, (d,), in float64; they lie in a buffer of the thread until others are made."""

    def __init__(self, vector: NDArray[np.float64]) -> None:
        self._vector, self._repeated, self._scratch = vector, vector[None, :], Scratch()

    def __call__(self, rows: Reals, out: Reals | None = None) -> Reals:
        """Return rows (m, d) less the vector; in `out`, whose rows may lie apart, if that is given."""
        if out is not None and len(self._vector) < _LONG_ROW:
            out[...] = self(rows)
            return out
        shift: NDArray[np.float64] = self._vector
        if len(shift) < _LONG_ROW:  # as often as there are rows: NumPy is slow to begin each of them
            repeated = self._repeated  # another thread may need more of them, or fewer
            if len(repeated) < len(rows):
                self._repeated = repeated = np.tile(shift, (len(rows), 1))
            shift = repeated[: len(rows)]
        return np.asarray(less(rows, shift, self._scratch.of(rows.shape, np.float64) if out is None else out))


class SingleShift:
    """The same for rows of float32, in float32; the vector is within its range.

    What float32 cannot hold of the vector is taken away by itself, so that it is not lost on rows close to it.
    """

    def __init__(self, vector: NDArray[np.float64]) -> None:
        first = vector.astype(np.float32)
        rest = (vector - first).astype(np.float32)
        self._parts = [part[None, :] for part in ((first, rest) if rest.any() else (first,))]
        self._scratch, self._long, self._moved = Scratch(), len(vector) >= _LONG_ROW, bool(vector.any())

    def __call__(self, rows: Reals, out: Reals | None = None) -> Reals:
        """Return rows (m, d) less the vector, perhaps in `out`; those less zero as they are, if in one run each."""
        if out is None and not self._moved and rows.flags.c_contiguous:
            return rows
        if out is not None and not self._long:
            out[...] = self(rows)
            return out
        made, parts = self._scratch.of(rows.shape, np.float32) if out is None else out, self._parts
        if not self._long and len(parts[0]) < len(rows):  # as often as there are rows, as above
            self._parts = parts = [np.tile(part[0], (len(rows), 1)) for part in parts]
        with np.errstate(all="ignore"):
            np.subtract(rows, parts[0][: len(rows)], out=made)
            for rest in parts[1:]:
                np.subtract(made, rest[: len(rows)], out=made)
        return made


def less_with_constant(rows: Reals, subtrahend: NDArray[np.float64], constant: float) -> NDArray[np.float64]:
    """Return rows less a vector, with a constant as their last entry; a record that is all gaps has none."""
    return with_constant(rows, Shift(subtrahend), constant, np.empty((rows.shape[0], rows.shape[1] + 1)))


def with_constant(rows: Reals, shift: Shift | SingleShift, constant: float, made: _Made) -> _Made:
    """Return rows less a vector with a constant as their last entry, in the room that is given."""
    shift(rows, made[:, :-1])
    made[:, -1] = constant
    doubtful = np.flatnonzero(~np.isfinite(made[:, 0]))  # all others have a number
    made[doubtful[~np.isfinite(made[doubtful, :-1]).any(axis=1)], -1] = np.nan
    return made


def cut(rows: Reals, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return dense rows with their cells cut off at two ends of each column, in float64; infinite cells are gaps."""
    numbers = rows.astype(np.float64)
    return np.where(np.isfinite(numbers), np.clip(numbers, low, high), np.nan)


def times(rows: Stored, factors: NDArray[np.float64]) -> Stored:
    """Return rows with every column multiplied by its number, in float64: entry by entry, nothing raised.

    Parameters
    ----------
    rows : (m, d) array or CSR array
    factors : (d,) array
    """
    with np.errstate(all="ignore"):
        if isinstance(rows, np.ndarray):
            return np.asarray(np.multiply(rows, factors, dtype=np.float64, casting="unsafe"))
        scaled = sparse.csr_array(rows.astype(np.float64, copy=True))
        scaled.data *= factors[scaled.indices]
        return scaled
