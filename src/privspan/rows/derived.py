"""Sources made of other sources, row by row: nothing is read or computed before rows are asked for."""

from __future__ import annotations

import math
import threading
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan.rows.source import LeftOut, RowSource, WindowedSource, window_rows

_LONG_ROW = 512  # entries: NumPy takes as long to begin a shorter row as to go through it, so several are made one


class Derived(RowSource):
    """A source whose row i is made of rows of another source."""

    def __init__(self, source: RowSource) -> None:
        self._source = source
        self.shape, self.dtype, self.is_sparse = source.shape, source.dtype, source.is_sparse
        self.names, self.left_out, self.edges = source.names, source.left_out, source.edges
        self.boolean, self.complete, self.cheap = source.boolean, source.complete, source.cheap
        self.person, self.read_ids = source.person, source.read_ids

    @abstractmethod
    def _made(self, rows: Any) -> Any:
        """Turn rows of the other source into rows of this one."""

    def _run(self, start: int, stop: int) -> Any:
        return self._made(self._source[start:stop])

    def _take(self, numbers: NDArray[np.intp]) -> Any:
        return self._made(self._source[numbers])

    def lend(self, rows: slice, function: Callable[[Any], Any]) -> Any:
        """Return ``function(rows)``, made of the rows of the other source where they lie."""
        return self._source.lend(rows, lambda lent: function(self._made(lent)))


class _Scratch(threading.local):
    """One buffer for each thread, for pieces that are made one after the other and not kept.

    Pieces are about as large as what a C library asks of the system anew each time, which can take longer than
    filling them.
    """

    def __init__(self) -> None:
        self._buffer: NDArray[Any] = np.empty(0)

    def __reduce__(self) -> tuple[Any, ...]:
        return _Scratch, ()  # a copy has a buffer of its own

    def like(self, rows: NDArray[Any], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return room for as many rows, in another type; it holds what was put there last."""
        if self._buffer.size < rows.size or self._buffer.dtype != dtype:
            self._buffer = np.empty(rows.size, dtype)
        return self._buffer[: rows.size].reshape(rows.shape)


class Buffered(Derived):
    """A dense source whose rows, where they are lent, are made in a buffer that is used again."""

    def __init__(self, source: RowSource, dtype: np.dtype[Any]) -> None:
        super().__init__(source)
        self.dtype, self._scratch = dtype, _Scratch()

    @abstractmethod
    def _made(self, rows: NDArray[Any], out: NDArray[Any] | None = None) -> Any:
        """Turn rows of the other source into rows of this one, which lie in `out` if that is given."""

    def lend(self, rows: slice, function: Callable[[Any], Any]) -> Any:
        """Return ``function(rows)``, made of the rows of the other source where they lie."""
        made = self._made
        return self._source.lend(rows, lambda lent: function(made(lent, self._scratch.like(lent, self.dtype))))


class ShiftedRows(Buffered):
    """Every row of a dense source less one vector, in float64.

    Parameters
    ----------
    source : RowSource
    shift : (d,) array
    """

    def __init__(self, source: RowSource, shift: NDArray[np.float64]) -> None:
        super().__init__(source, np.dtype(np.float64))
        self._shift, self._repeated = shift, shift[None, :]

    def _made(self, rows: NDArray[Any], out: NDArray[Any] | None = None) -> Any:
        return less(rows, self._shift if out is None else self._in_every_row(len(rows)), out)

    def _in_every_row(self, count: int) -> NDArray[np.float64]:
        """Return the vector as often as there are rows, if these are short: NumPy is slow to begin each of them."""
        if len(self._shift) >= _LONG_ROW:
            return self._shift
        repeated = self._repeated
        if len(repeated) < count:
            self._repeated = repeated = np.tile(self._shift, (count, 1))
        return repeated[:count]


class SingleShiftedRows(Buffered):
    """Every row of a dense float32 source less one vector, in float32.

    What float32 cannot hold of the vector is taken away by itself, so that it is not lost on rows close to it.

    Parameters
    ----------
    source : RowSource
    shift : (d,) array
        Within the range of float32.
    """

    def __init__(self, source: RowSource, shift: NDArray[np.float64]) -> None:
        super().__init__(source, np.dtype(np.float32))
        self._first = shift.astype(np.float32)
        rest = (shift - self._first).astype(np.float32)
        self._second = rest if rest.any() else None
        self._moved = bool(shift.any())

    def _made(self, rows: NDArray[Any], out: NDArray[Any] | None = None) -> Any:
        if out is not None and not self._moved and rows.flags.c_contiguous:
            return rows  # lent as they are
        with np.errstate(all="ignore"):
            made = np.subtract(rows, self._first, out=out, order="C")
            if self._second is not None:
                made -= self._second
        return made


class RowsWithConstant(Derived):
    """Every row of a dense source less one vector, with a constant as its last entry, in float64."""

    def __init__(self, source: RowSource, shift: NDArray[np.float64], constant: float) -> None:
        super().__init__(source)
        self._shift, self._constant = shift, constant
        self.shape, self.dtype, self.names = (source.shape[0], source.shape[1] + 1), np.dtype(np.float64), None
        self.boolean = self.complete = None
        self.cheap = False  # another row length means a copy in every pass

    def _made(self, rows: NDArray[Any]) -> Any:
        return less_with_constant(rows, self._shift, self._constant)


class ScaledColumns(Derived):
    """Every column of a source times a number of its own, in float64.

    Parameters
    ----------
    source : RowSource
    factors : (d,) array
    """

    def __init__(self, source: RowSource, factors: NDArray[np.float64]) -> None:
        super().__init__(source)
        self._factors = factors
        self.dtype = np.dtype(np.float64)

    def _made(self, rows: Any) -> Any:
        return times(rows, self._factors)


class CutRows(Derived):
    """Every cell of a dense source cut off at two ends of its column, in float64; gaps stay gaps.

    Parameters
    ----------
    source : RowSource
    low, high : (d,) arrays
    """

    def __init__(self, source: RowSource, low: NDArray[np.float64], high: NDArray[np.float64]) -> None:
        super().__init__(source)
        self._low, self._high, self.dtype = low, high, np.dtype(np.float64)

    def _made(self, rows: Any) -> Any:
        return cut(rows, self._low, self._high)


class SelectedColumns(Derived):
    """Some columns of a source.

    Parameters
    ----------
    source : RowSource
    columns : sequence of int
        Positions, in the order wanted.
    """

    def __init__(self, source: RowSource, columns: Sequence[int]) -> None:
        super().__init__(source)
        self._columns = np.asarray(columns, dtype=np.intp)
        self.shape = (source.shape[0], len(self._columns))
        self.boolean = None if source.boolean is None else source.boolean[self._columns]
        self.complete = None if source.complete is None else source.complete[self._columns]
        if source.names is not None:
            self.names = tuple(source.names[column] for column in columns)
            others = np.delete(np.arange(source.shape[1]), self._columns).tolist()
            self.left_out += tuple(LeftOut(source.names[column], "not asked for") for column in others)

    def _made(self, rows: Any) -> Any:
        return rows[:, self._columns]


class DealtRows(WindowedSource):
    """The rows of a dense source in another order: runs of neighbours, dealt at random into windows.

    Every window is a random sample of the whole file, however that is sorted, and reading it costs little more than
    reading consecutive rows, `run` of which are cheap to read together.  Blocks and pairs that stay within windows
    are then nearly as well mixed as if they were drawn from all rows.  The generator is public.
    """

    def __init__(self, source: RowSource, run: int, generator: np.random.Generator) -> None:
        super().__init__()
        self._source, self._run_length = source, run
        self.shape, self.dtype = source.shape, source.dtype
        self.names, self.left_out = source.names, source.left_out
        starts = generator.permutation(np.arange(0, self.shape[0], run))
        per_window = max(1, window_rows(self.shape[1], self.dtype.itemsize) // run)
        self._starts = [np.sort(starts[i : i + per_window]) for i in range(0, len(starts), per_window)]
        self.edges = np.cumsum([0, *(len(self._numbers(window)) for window in range(len(self._starts)))])

    def _numbers(self, window: int) -> NDArray[np.intp]:
        """Return the row numbers, in the source, of one window."""
        numbers = (self._starts[window][:, None] + np.arange(self._run_length)).ravel()
        return np.asarray(numbers[numbers < self.shape[0]], dtype=np.intp)  # the last run may be short

    def _load(self, window: int) -> Any:
        return self._source[self._numbers(window)]


class RowPairs(RowSource):
    """What is made of pairs of rows, in float64: their differences, say.

    Parameters
    ----------
    source : RowSource
    pairs : (m, 2) int array
        Row numbers; no row in two pairs.
    make : callable
        Turns the first rows of some pairs and the second ones, (m, d) each, dense or CSR, into rows of float64.
    """

    def __init__(self, source: RowSource, pairs: NDArray[np.intp], make: Callable[[Any, Any], Any]) -> None:
        self._source, self._pairs, self._make = source, pairs, make
        self.shape = (len(pairs), source.shape[1])
        self.dtype, self.is_sparse, self.names = np.dtype(np.float64), source.is_sparse, source.names
        if source.edges is not None:  # a pair is read when its later row is
            window = np.searchsorted(source.edges, pairs.max(axis=1), side="right")
            self.edges = np.concatenate([[0], np.flatnonzero(np.diff(window)) + 1, [len(pairs)]])

    def _take(self, numbers: NDArray[np.intp]) -> Any:
        m = len(numbers)
        # One request for both ends, so that the file is read once, forwards.
        both = self._source[self._pairs[numbers].T.ravel()]
        return self._make(both[:m], both[m:])


def less(rows: Any, subtrahend: Any, out: NDArray[np.float64] | None = None) -> Any:
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
            made = np.empty(rows.shape) if out is None else out
            np.copyto(made, rows, casting="unsafe")
            rows = out = made
        made = np.subtract(rows, subtrahend, out=out, dtype=np.float64, casting="unsafe", order="C")
    return np.asarray(made.reshape(shape))


def less_with_constant(rows: NDArray[Any], subtrahend: NDArray[np.float64], constant: float) -> NDArray[np.float64]:
    """Return rows less a vector, with a constant as their last entry; a record that is all gaps has none."""
    made = np.empty((rows.shape[0], rows.shape[1] + 1))
    less(rows, subtrahend, out=made[:, :-1])
    made[:, -1] = constant
    doubtful = np.flatnonzero(~np.isfinite(made[:, 0]))  # all others have a number
    made[doubtful[~np.isfinite(made[doubtful, :-1]).any(axis=1)], -1] = np.nan
    return made


def cut(rows: NDArray[Any], low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return dense rows with their cells cut off at two ends of each column, in float64; infinite cells are gaps."""
    numbers = rows.astype(np.float64)
    return np.where(np.isfinite(numbers), np.clip(numbers, low, high), np.nan)


def times(rows: Any, factors: NDArray[np.float64]) -> Any:
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
