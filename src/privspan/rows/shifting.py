"""Rows less one vector, made in a buffer that is used again."""

from __future__ import annotations

import math
import threading
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan._lib.arrays import Floats, Reals
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


class _Repeated:
    """A vector (d,), a short one as often as there are rows: NumPy is slow to begin each of them."""

    def __init__(self, vector: Floats) -> None:
        self._rows = vector[None, :]

    def of(self, rows: int) -> Floats:
        """Return something that is taken from so many rows at once."""
        if self._rows.shape[1] < _LONG_ROW and len(self._rows) < rows:
            self._rows = np.tile(self._rows[0], (rows, 1))
        return self._rows[:rows]


class Shift:
    """Dense rows less one vector, (d,), in float64; they lie in a buffer of the thread until others are made."""

    def __init__(self, vector: NDArray[np.float64]) -> None:
        self._vector, self._scratch, self._long = _Repeated(vector), Scratch(), len(vector) >= _LONG_ROW

    def __call__(self, rows: Reals, out: Reals | None = None) -> Reals:
        """Return rows (m, d) less the vector; in `out`, whose rows may lie apart, if that is given."""
        if out is not None and not self._long:
            out[...] = self(rows)
            return out
        room = self._scratch.of(rows.shape, np.float64) if out is None else out
        return np.asarray(less(rows, self._vector.of(len(rows)), room))


class SingleShift:
    """The same for rows of float32, in float32; the vector is within its range.

    What float32 cannot hold of the vector is taken away by itself, so that it is not lost on rows close to it.
    """

    def __init__(self, vector: NDArray[np.float64]) -> None:
        first = vector.astype(np.float32)
        rest = (vector - first).astype(np.float32)
        self._first, self._second = _Repeated(first), _Repeated(rest) if rest.any() else None
        self._scratch, self._long, self._moved = Scratch(), len(vector) >= _LONG_ROW, bool(vector.any())

    def __call__(self, rows: Reals, out: Reals | None = None) -> Reals:
        """Return rows (m, d) less the vector, perhaps in `out`; those less zero as they are, if in one run each."""
        if out is None and not self._moved and rows.flags.c_contiguous:
            return rows
        if out is not None and not self._long:
            out[...] = self(rows)
            return out
        room = self._scratch.of(rows.shape, np.float32) if out is None else out
        with np.errstate(all="ignore"):
            made = np.subtract(rows, self._first.of(len(rows)), out=room, order="C")
            if self._second is not None:
                made -= self._second.of(len(rows))
        return np.asarray(made)


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
