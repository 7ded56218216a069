"""Sources made of other sources, row by row: nothing is read or computed before rows are asked for."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan.rows.shifting import Numbers, Scratch, Shift, SingleShift
from privspan.rows.source import LeftOut, RowSource, WindowedSource


class Derived(RowSource):
    """A source whose row i is made of rows of another source."""

    def __init__(self, source: RowSource) -> None:
        self._source = source
        self.shape, self.dtype, self.is_sparse = source.shape, source.dtype, source.is_sparse
        self.names, self.left_out, self.edges = source.names, source.left_out, source.edges
        self.boolean, self.complete, self.cheap = source.boolean, source.complete, source.cheap
        self.person, self.read_ids, self.limits = source.person, source.read_ids, source.limits
        self.levels = source.levels

    @abstractmethod
    def _made(self, rows: Any) -> Any:
        """Turn rows of the other source into rows of this one."""

    def _run(self, start: int, stop: int) -> Any:
        return self._made(self._source[start:stop])

    def _take(self, numbers: NDArray[np.intp]) -> Any:
        return self._made(self._source[numbers])

    def lend(self, rows: slice) -> Any:
        """Return rows made of those of the other source where they lie."""
        return self._made(self._source.lend(rows))


class MadeRows(Derived):
    """What a function makes of every row of a source by itself.

    Parameters
    ----------
    source : RowSource
    function : callable
        Pure; turns rows (m, d), dense or CSR, into as many others.
    dtype : numpy.dtype, optional
        Of these, where it is another one.
    """

    def __init__(self, source: RowSource, function: Callable[[Any], Any], dtype: np.dtype[Any] | None = None) -> None:
        super().__init__(source)
        self._function, self.dtype = function, source.dtype if dtype is None else dtype

    def _made(self, rows: Any) -> Any:
        return self._function(rows)


class WithConstant(Derived):
    """The rows of a dense source less a vector, with the same last entry each; see `less_with_constant`.

    Parameters
    ----------
    source : RowSource
    subtrahend : (d,) array
    constant : float
    single : bool, default=False
        Whether in float32, for rows of that type and numbers within its range; or else in float64.
    """

    def __init__(
        self, source: RowSource, subtrahend: NDArray[np.float64], constant: float, *, single: bool = False
    ) -> None:
        super().__init__(source)
        self._constant, self._scratch = constant, Scratch()
        self.subtrahend, self._shift = subtrahend, (SingleShift if single else Shift)(subtrahend)
        self.shape, self.dtype = (
            (source.shape[0], source.shape[1] + 1),
            np.dtype(np.float32 if single else np.float64),
        )
        self.names = self.boolean = self.complete = None

    def in_single(self) -> WithConstant:
        """Return the same rows in float32."""
        return WithConstant(self._source, self.subtrahend, self._constant, single=True)

    @property
    def declared(self) -> np.dtype[Any]:
        """The type of the rows that these are made of."""
        return self._source.dtype

    def _made(self, rows: Any) -> Any:
        return _with_constant(rows, self._shift, self._constant, np.empty((len(rows), self.shape[1]), self.dtype))

    def lend(self, rows: slice) -> Any:
        """Return the rows in a buffer of the thread, where they lie until others are lent."""
        lent = self._source.lend(rows)
        return _with_constant(
            lent, self._shift, self._constant, self._scratch.of((len(lent), self.shape[1]), self.dtype.type)
        )


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
        super().__init__(source.limits)
        self._source, self._run_length = source, run
        self.shape, self.dtype = source.shape, source.dtype
        self.names, self.left_out = source.names, source.left_out
        starts = generator.permutation(np.arange(0, self.shape[0], run))
        per_window = max(1, self.limits.window_rows(self.shape[1], self.dtype.itemsize) // run)
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
        self._source, self._pairs, self._make, self.limits = source, pairs, make, source.limits
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


def less_with_constant(rows: Numbers, subtrahend: NDArray[np.float64], constant: float) -> NDArray[np.float64]:
    """Return rows less a vector, with a constant as their last entry; a record that is all gaps has none."""
    return _with_constant(rows, Shift(subtrahend), constant, np.empty((rows.shape[0], rows.shape[1] + 1)))


def _with_constant(rows: Numbers, shift: Shift | SingleShift, constant: float, made: Numbers) -> Numbers:
    shift(rows, made[:, :-1])
    made[:, -1] = constant
    doubtful = np.flatnonzero(~np.isfinite(made[:, 0]))  # all others have a number
    made[doubtful[~np.isfinite(made[doubtful, :-1]).any(axis=1)], -1] = np.nan
    return made


def cut(rows: Numbers, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
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
