"""Sources that read whole windows of rows, in the order of a file or dealt at random, and columns of sources."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan.rows.compressed import Stored
from privspan.rows.limits import LIMITS, Limits
from privspan.rows.source import Derived, RowSource
from privspan.rows.table import LeftOut


class WindowedSource(RowSource):
    """A source that reads one window of consecutive rows at a time and keeps the last one.

    Rows in ascending order, or in any order within a window, cost one read of the file.
    """

    edges: NDArray[np.intp]

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self._held: tuple[int, Stored] | None = None
        self._reading = threading.Lock()  # threads may share a source, and a window of another one is other people

    @abstractmethod
    def _load(self, window: int) -> Stored:
        """Read the rows of one window."""

    def _window(self, index: int) -> Stored:
        with self._reading:
            if self._held is None or self._held[0] != index:
                self._held = None  # let go of the old window first: two at a time would double the memory
                self._held = (index, self._load(index))
            return self._held[1]

    def _run(self, start: int, stop: int) -> Stored:
        if self.is_sparse:
            return super()._run(start, stop)
        out = np.empty((stop - start, self.shape[1]), dtype=self.dtype)
        window, at = int(np.searchsorted(self.edges, start, side="right")) - 1, start
        while at < stop:
            low, high = self.edges[window : window + 2].tolist()
            high = min(high, stop)
            out[at - start : high - start] = self._window(window)[at - low : high - low]
            window, at = window + 1, high
        return out

    def _take(self, numbers: NDArray[np.intp]) -> Stored:
        """Take rows window by window, in ascending order, and put them in the order asked for."""
        order = np.argsort(numbers, kind="stable")
        ascending = numbers[order]
        cuts = np.searchsorted(ascending, self.edges)  # the rows of a window are those between two of these
        windows = np.flatnonzero(np.diff(cuts)).tolist()
        mine = [slice(*cuts[window : window + 2].tolist()) for window in windows]
        parts = (self._window(at)[ascending[rows] - self.edges[at]] for at, rows in zip(windows, mine, strict=True))
        if self.is_sparse:
            none = sparse.csr_array((0, self.shape[1]), dtype=self.dtype)
            return sparse.csr_array(sparse.vstack([none, *parts], format="csr"))[np.argsort(order, kind="stable")]
        out = np.empty((len(numbers), self.shape[1]), dtype=self.dtype)
        for rows, part in zip(mine, parts, strict=True):
            out[order[rows]] = part
        return out


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
        self.whole = None if source.whole is None else source.whole[self._columns]
        self.bounds = None if source.bounds is None else source.bounds[:, self._columns]
        if source.names is not None:
            self.names = tuple(source.names[column] for column in columns)
            others = np.delete(np.arange(source.shape[1]), self._columns).tolist()
            self.left_out += tuple(LeftOut(source.names[column], "not asked for") for column in others)

    def _made(self, rows: Stored) -> Stored:
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

    def _load(self, window: int) -> Stored:
        return self._source[self._numbers(window)]


def window_edges(n: int, most: int, grain: int = 1) -> NDArray[np.intp]:
    """Cut n rows into windows of at most `most` rows, at multiples of `grain` rows where one fits."""
    step = max(most // grain * grain, min(grain, most))
    return np.append(np.arange(0, n, step, dtype=np.intp), n)
