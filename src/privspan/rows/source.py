"""The interface of row sources, and the one kind that reads whole windows of rows."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan._lib.errors import ParameterError, ParameterTypeError, PrivspanError
from privspan.rows.limits import LIMITS, Limits


class UnreadableFileError(PrivspanError, ValueError):
    """A file that cannot be used as a table of numbers; the message is one sentence and quotes no cell."""


@contextmanager
def damage_told(file: str, what: str) -> Iterator[None]:
    """Turn whatever a reader fails with, as the damage leads it to, into one sentence: `what` the file is.

    The reader's own message may quote a cell: it is dropped.  Arrow asks for as much memory as a damaged file says.
    """
    try:
        yield
    except (UnreadableFileError, ImportError):
        raise
    except Exception as failure:
        if isinstance(failure, MemoryError) and not type(failure).__module__.startswith("pyarrow"):
            raise
        raise UnreadableFileError("{file!r} {what}", file=file, what=what) from None


@dataclass(frozen=True)
class LeftOut:
    """A column that is not used, decided by the schema alone.

    Attributes
    ----------
    name : str
    reason : str
        A few words: "text", "dates or times", "named like an identifier", …
    """

    name: str
    reason: str


class RowSource(ABC):
    """An (n, d) table of real numbers whose rows are read on demand.

    ``source[slice]`` and ``source[row_numbers]`` return fresh rows: a dense array, or a CSR array if `is_sparse`.
    Nothing is read before that.

    Attributes
    ----------
    shape : (n, d)
    dtype : numpy.dtype
        Of the rows that are handed out.
    names : tuple of str, or None
        Column names, where there are any.
    left_out : tuple of LeftOut
        Columns of the file that are not among the d.
    is_sparse : bool
    edges : (windows + 1,) int array, or None
        Where rows are cheap to read only together with their neighbours: the row numbers at which such windows
        begin, and n.  From metadata, so public.  None if any row is as cheap as any other.
    cheap : bool
        Whether rows are handed out about as fast as they could be copied, so that nothing is gained by keeping them.
    boolean : (d,) array of bool, or None
        Columns that hold nothing but 0 and 1 by declaration; None if the dtype says it all.
    complete : (d,) array of bool, or None
        Columns that have no gaps by declaration; None if the dtype says it all.
    levels : mapping
        The words of each category, by its name; every word is one of the d columns.
    person : str or None
        The column of the file that says whose each row is, where one was named; it is not among the d.
    limits : Limits
        How much of it is read, cleaned and kept at a time.
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    ndim = 2
    names: tuple[str, ...] | None = None
    left_out: tuple[LeftOut, ...] = ()
    is_sparse: bool = False
    edges: NDArray[np.intp] | None = None
    cheap: bool = False
    boolean: NDArray[np.bool_] | None = None
    complete: NDArray[np.bool_] | None = None
    levels: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    person: str | None = None
    limits: Limits = LIMITS
    read_ids: Callable[[str], NDArray[np.intp]] | None = None  # of a column by its name, as the file holds it

    def ids(self) -> NDArray[np.intp]:
        """Return a code per row, equal where rows are of one `person`, and -1 for a row without an id; (n,)."""
        if self.read_ids is None or self.person is None:
            raise ParameterError("No column says whose each row is; name one when the file is opened.")
        return self.read_ids(self.person)

    @abstractmethod
    def _take(self, numbers: NDArray[np.intp]) -> Any:
        """Return fresh rows in the order of the numbers."""

    def _run(self, start: int, stop: int) -> Any:
        """Return fresh consecutive rows."""
        return self._take(np.arange(start, stop))

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> Any:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.shape[0])
            return self._run(start, max(start, stop)) if step == 1 else self._take(np.arange(start, stop, step))
        if np.ndim(rows) != 1 or np.asarray(rows).dtype.kind not in "iu":
            raise ParameterTypeError("Rows are taken by a slice or by an array of row numbers.")
        numbers = np.asarray(rows, dtype=np.intp)
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < self.shape[0]):
            raise IndexError(f"Row numbers must lie between 0 and {self.shape[0] - 1}.")
        return self._take(numbers)

    def lend(self, rows: slice) -> Any:
        """Return rows without a copy where possible: nobody may change them, or use them once others are lent."""
        return self[rows]

    def dealt(self, generator: np.random.Generator) -> RowSource:
        """Return these rows in an order from which blocks and pairs are cheap to draw; most have it already.

        Parameters
        ----------
        generator : numpy.random.Generator
            Public; drawn from only if the order is another one.
        """
        return self

    __iter__ = None  # rows come in pieces: iterating one by one would read the file n times

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        """Read everything, as ``numpy.asarray(source)`` asks for."""
        if self.is_sparse:
            raise ParameterTypeError("A sparse table is not turned into a dense array by itself.")
        return np.asarray(self._run(0, self.shape[0]), dtype=dtype)

    def __repr__(self) -> str:
        kind = "sparse, " if self.is_sparse else ""
        return f"<{type(self).__name__}: {self.shape[0]} rows, {self.shape[1]} columns, {kind}{self.dtype.name}>"

    def take_columns(self, part: slice) -> NDArray[Any]:
        """Return consecutive columns of all rows, (n, columns), as a dense array.

        Files that store rows together are read from end to end for this.
        """
        n, d = self.shape
        start, stop, _ = part.indices(d)
        wanted = np.empty((n, stop - start), dtype=self.dtype)
        step = self.limits.window_rows(d, self.dtype.itemsize)
        for first in range(0, n, step):
            rows = self._run(first, min(first + step, n))[:, start:stop]
            wanted[first : first + step] = rows.toarray() if self.is_sparse else rows
        return wanted


class WindowedSource(RowSource):
    """A source that reads one window of consecutive rows at a time and keeps the last one.

    Rows in ascending order, or in any order within a window, cost one read of the file.
    """

    edges: NDArray[np.intp]

    def __init__(self, limits: Limits = LIMITS) -> None:
        self.limits = limits
        self._held: tuple[int, Any] | None = None
        self._reading = threading.Lock()  # threads may share a source, and a window of another one is other people

    @abstractmethod
    def _load(self, window: int) -> Any:
        """Read the rows of one window."""

    def _window(self, index: int) -> Any:
        with self._reading:
            if self._held is None or self._held[0] != index:
                self._held = None  # let go of the old window first: two at a time would double the memory
                self._held = (index, self._load(index))
            return self._held[1]

    def _run(self, start: int, stop: int) -> Any:
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

    def _take(self, numbers: NDArray[np.intp]) -> Any:
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


def window_edges(n: int, most: int, grain: int = 1) -> NDArray[np.intp]:
    """Cut n rows into windows of at most `most` rows, at multiples of `grain` rows where one fits."""
    step = max(most // grain * grain, min(grain, most))
    return np.append(np.arange(0, n, step, dtype=np.intp), n)
