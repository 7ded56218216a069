"""Sources of rows: tables in this process whose rows are read on demand, and what is made of them row by row."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from privspan._lib import checks
from privspan._lib.arrays import Reals
from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan.rows.about import CentredSparseRows, holds_in_single, is_near
from privspan.rows.compressed import Make, Stored, Summing, as_dense
from privspan.rows.dealing import Order, public_order
from privspan.rows.gaps import coordinates_of
from privspan.rows.partitioned_rows import AnyRows, PerRow
from privspan.rows.shifting import Scratch, Shift, SingleShift, with_constant
from privspan.rows.table import Array, LocalTable, Made
from privspan.rows.unit import Rows, chunk_sums, piece_rows


class RowSource(LocalTable):
    """An (n, d) table of real numbers whose rows are read on demand.

    ``source[slice]`` and ``source[row_numbers]`` return fresh rows: a dense array, or a CSR array if `is_sparse`.
    Nothing is read before that.

    Attributes
    ----------
    cheap : bool
        Whether rows are handed out about as fast as they could be copied, so that nothing is gained by keeping them.
    person : str or None
        The column of the file that holds the person ids, where one was named; it is not among the d.
    as_frame : bool
        Whether all of its columns are used, as those of a frame are: none is left out for its name.
    """

    cheap: bool = False
    person: str | None = None
    as_frame: bool = False
    read_ids: Callable[[str], NDArray[np.intp]] | None = None  # of a column by its name, as the file holds it
    let_go: Callable[[], object] | None = None  # of a copy of the file, where that is elsewhere

    def close(self) -> None:
        """Let go of a temporary copy of the rows, if there is one; then they can be read no more."""
        if self.let_go is not None:
            self.let_go()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def lengths(self) -> tuple[int, ...]:  # type: ignore[override]
        """Its rows: they are one partition."""
        return (self.shape[0],)

    def ids(self) -> NDArray[np.intp]:
        """Return a code per row, equal where rows are of one `person`, and -1 for a row without an id; (n,)."""
        if self.read_ids is None or self.person is None:
            raise ParameterError("No column holds person ids; name one when the file is opened.")
        return self.read_ids(self.person)

    @abstractmethod
    def _take(self, numbers: NDArray[np.intp]) -> Stored:
        """Return fresh rows in the order of the numbers."""

    def _run(self, start: int, stop: int) -> Stored:
        """Return fresh consecutive rows."""
        return self._take(np.arange(start, stop))

    def __getitem__(self, rows: slice | NDArray[np.intp]) -> Stored:
        if isinstance(rows, slice):
            start, stop, step = rows.indices(self.shape[0])
            return self._run(start, max(start, stop)) if step == 1 else self._take(np.arange(start, stop, step))
        if np.ndim(rows) != 1 or np.asarray(rows).dtype.kind not in "iu":
            raise ParameterTypeError("Rows are taken by a slice or by an array of row numbers.")
        numbers = np.asarray(rows, dtype=np.intp)
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < self.shape[0]):
            raise IndexError(f"Row numbers must lie between 0 and {self.shape[0] - 1}.")
        return self._take(numbers)

    def lend(self, rows: slice) -> Stored:
        """Return rows without a copy where possible: nobody may change them, or use them once others are lent."""
        return self[rows]

    def dealt(self, generator: np.random.Generator) -> RowSource:
        """Return these rows in an order from which blocks and pairs are cheap to draw; most have it already."""
        return self

    __iter__ = None  # rows come in pieces: iterating one by one would read the file n times

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Reals:
        """Read everything, as ``numpy.asarray(source)`` asks for."""
        if self.is_sparse:
            raise ParameterTypeError("A sparse table is not turned into a dense array by itself.")
        return np.asarray(self._run(0, self.shape[0]), dtype=dtype)

    def __repr__(self) -> str:
        kind = "sparse, " if self.is_sparse else ""
        return f"<{type(self).__name__}: {self.shape[0]} rows, {self.shape[1]} columns, {kind}{self.dtype.name}>"

    def take_columns(self, part: slice) -> Reals:
        """Return consecutive columns of all rows, (n, columns), as a dense array.

        Files that store rows together are read from end to end for this.
        """
        n, d = self.shape
        start, stop, _ = part.indices(d)
        wanted = np.empty((n, stop - start), dtype=self.dtype)
        step = self.limits.window_rows(d, self.dtype.itemsize)
        for first in range(0, n, step):
            rows = self._run(first, min(first + step, n))[:, start:stop]
            wanted[first : first + step] = as_dense(rows)
        return wanted

    # ---- What algorithms ask of it: see `Table` --------------------------------------------------------------------

    def rows(
        self,
        centre: Array | None = None,
        *,
        clip: float | None = None,
        keep: bool = True,
        single: bool = False,
        width: int = 1,
    ) -> Rows:
        """Return the rows, each of length at most 1; of persons who have `width` of them each, if that is given."""
        if self.is_sparse and centre is not None:
            return CentredSparseRows(self, centre, clip=clip, keep=keep, width=width)
        if single := single and self._in_single(centre):
            centre = np.zeros(self.shape[1]) if centre is None else centre
        return Rows(self, centre=centre, single=single, clip=clip, keep=keep, width=width)

    def _in_single(self, centre: Array | None = None) -> bool:
        """Tell from declared types, released numbers and the machine whether rows about a centre are float32."""
        return self.dtype == np.float32 and not self.is_sparse and holds_in_single(self.shape[1], centre)

    def as_held(self, centre: Array) -> Array:
        """Return a centre, rounded to float32 where rows about it may be of that type."""
        return centre.astype(np.float32).astype(np.float64) if self._in_single(centre) else centre

    def looked_at(self, rows: AnyRows, clip: float | None = None) -> AnyRows:
        """Return the rows in float32 if that may be, or else those that are open."""
        return self.rows(clip=clip, keep=False, single=True) if self._in_single() else rows

    def with_constant(self, centre: Array, constant: float) -> RowSource:
        """Return the rows less a centre, each with the same last entry."""
        return WithConstant(self, centre, constant)

    def sums(self, function: Summing, *, exact: bool = False) -> Iterator[Array]:
        """Yield one sum per chunk of rows."""
        return chunk_sums(function, self, exact=exact)

    def values(self) -> PerRow:
        """Return the rows in memory."""
        return self[:]

    def column(self, y: object) -> PerRow:
        """Return one number per row."""
        return checks.column(y, self.shape[0])

    def then(
        self, function: Callable[..., Stored], *, columns: int | None = None, dtype: np.dtype | None = None
    ) -> RowSource:
        """Return rows that are made when they are read."""
        return MadeRows(self, function, columns, dtype)

    def pairs(self, public: np.random.Generator, make: Make) -> RowSource:
        """Return what is made of pairs, drawn in windows of a file where it has any."""
        source = self.dealt(public)
        return RowPairs(source, public_pairs(source, public), make)

    def coordinates(self, basis: Array, offset: Array | None = None) -> RowSource:
        """Return the coordinates of every row, in memory."""
        return as_source(coordinates_of(self, basis, offset, piece_rows(self.shape[1], self.limits)))

    def here(self) -> RowSource:
        """Return itself."""
        return self

    def draw(self, numbers: NDArray[np.intp], *, dense: bool = False) -> RowSource:
        """Return some rows, in memory."""
        rows = self[numbers]
        return as_source(as_dense(rows) if dense else rows)

    def some(self, rows: int, public: np.random.Generator) -> RowSource:
        """Return so many rows, in memory, if they are dense and few enough."""
        n, d = self.shape
        if self.is_sparse or n < 2 * rows or rows * d > self.limits.held_entries:
            return self
        return self.draw(np.sort(public.choice(n, rows, replace=False, shuffle=False)))

    def order(self, generator: np.random.Generator) -> NDArray[np.intp]:
        """Draw an order of the rows, within windows if there are any."""
        return public_order(self.shape[0], generator, edges=self.edges)

    def each_part(self, function: Callable[..., Made], order: Order, grain: int = 1) -> Sequence[Made]:
        """Return what a function makes of all rows."""
        return [function(self, order, 1)]

    def halved(self) -> RowSource:
        """Return as many rows as there are pairs."""
        return as_source(np.broadcast_to(0.0, (self.shape[0] // 2, self.shape[1])))


class HeldRows(RowSource):
    """A table that `read` brings into memory as a whole, an array or a CSR array, when rows are first asked for."""

    nnz = 0  # stored entries, where they are known before

    def __init__(
        self, shape: tuple[int, int], dtype: np.dtype, read: Callable[[], Stored], *, is_sparse: bool = False
    ) -> None:
        self.shape, self.dtype, self.is_sparse, self._read = shape, dtype, is_sparse, read
        self.cheap = not is_sparse

    @cached_property
    def _whole(self) -> Stored:
        return self._read()

    def _run(self, start: int, stop: int) -> Stored:
        return self._whole[start:stop].copy()

    def _take(self, numbers: NDArray[np.intp]) -> Stored:
        return self._whole[numbers]

    def lend(self, rows: slice) -> Stored:
        """Return the rows in memory themselves."""
        return self._whole[rows]

    def take_columns(self, part: slice) -> Reals:
        """Return columns in memory."""
        columns = self._whole[:, part]
        return as_dense(columns)

    def values(self) -> Stored:
        """Return all rows, as they lie in memory."""
        return self._whole

    unwrapped = values

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Reals:
        return super().__array__(dtype, copy) if copy or self.is_sparse else np.asarray(self._whole, dtype=dtype)

    def then(
        self, function: Callable[..., Stored], *, columns: int | None = None, dtype: np.dtype | None = None
    ) -> RowSource:
        """Return rows that are made when they are read; sparse ones at once."""
        if not self.is_sparse:
            return MadeRows(self, function, columns, dtype)
        return as_source(function(self._whole))


def as_source(table: Any) -> RowSource:
    """Return a source of rows as it is, and one that lends the rows of an array, or a CSR array, in memory."""
    if isinstance(table, RowSource):
        return table
    held = HeldRows(table.shape, table.dtype, lambda: table, is_sparse=sparse.issparse(table))
    held.nnz = 0 if isinstance(table, np.ndarray) else table.nnz
    return held


class Derived(RowSource):
    """A source whose row i is made of rows of another source."""

    def __init__(self, source: RowSource) -> None:
        self._source = source
        self.shape, self.dtype, self.is_sparse = source.shape, source.dtype, source.is_sparse
        self.names, self.left_out, self.edges = source.names, source.left_out, source.edges
        self.boolean, self.complete, self.cheap = source.boolean, source.complete, source.cheap
        self.person, self.read_ids, self.limits = source.person, source.read_ids, source.limits
        self.levels, self.whole, self.bounds = source.levels, source.whole, source.bounds

    @abstractmethod
    def _made(self, rows: Stored) -> Stored:
        """Turn rows of the other source into rows of this one."""

    def _run(self, start: int, stop: int) -> Stored:
        return self._made(self._source[start:stop])

    def _take(self, numbers: NDArray[np.intp]) -> Stored:
        return self._made(self._source[numbers])

    def lend(self, rows: slice) -> Stored:
        """Return rows made of those of the other source where they lie."""
        return self._made(self._source.lend(rows))


class MadeRows(Derived):
    """What a function makes of every row of a source by itself.

    Parameters
    ----------
    source : RowSource
    function : callable
        Pure; turns rows (m, d), dense or CSR, into as many others.
    columns : int, optional
        How many columns these have, where it is another number.
    dtype : numpy.dtype, optional
        Of these, where it is another one.
    """

    def __init__(
        self,
        source: RowSource,
        function: Callable[..., Stored],
        columns: int | None = None,
        dtype: np.dtype | None = None,
    ) -> None:
        super().__init__(source)
        self._function, self.dtype = function, source.dtype if dtype is None else dtype
        if columns is not None:
            self.shape, self.names = (source.shape[0], columns), None
            self.boolean = self.complete = self.whole = self.bounds = None
            self.cheap = False  # another row length means a copy in every pass

    def _made(self, rows: Stored) -> Stored:
        return self._function(rows)


class WithConstant(Derived):
    """The rows of a dense source less a vector, with the same last entry each; see `less_with_constant`.

    They are float32 where those of the source are, and the vector is within the range of that type, or else float64.

    Parameters
    ----------
    source : RowSource
    subtrahend : (d,) array
    constant : float
    """

    def __init__(self, source: RowSource, subtrahend: NDArray[np.float64], constant: float) -> None:
        super().__init__(source)
        single = source.dtype == np.float32 and is_near(subtrahend)
        self._constant, self._scratch = constant, Scratch()
        self._shift = (SingleShift if single else Shift)(subtrahend)
        self.shape = source.shape[0], source.shape[1] + 1
        self.dtype = np.dtype(np.float32 if single else np.float64)
        self.names = self.boolean = self.complete = self.whole = self.bounds = None

    def settled(self) -> RowSource:
        """Return the same rows, made now and kept if they are short, and few enough: see `Limits.slow_to_make`."""
        (n, d), step = self.shape, piece_rows(self.shape[1], self.limits)
        if not self.cheap or d > self.limits.slow_to_make or n * d * self.dtype.itemsize > self.limits.kept_bytes:
            return self
        room = np.empty(self.shape, self.dtype)
        for start in range(0, n, step):
            rows = slice(start, min(start + step, n))
            with_constant(as_dense(self._source.lend(rows)), self._shift, self._constant, room[rows])
        kept = as_source(room)
        kept.limits = self.limits
        return kept

    def _made(self, rows: Stored) -> Stored:
        return with_constant(
            as_dense(rows), self._shift, self._constant, np.empty((rows.shape[0], self.shape[1]), self.dtype)
        )

    def lend(self, rows: slice) -> Stored:
        """Return the rows in a buffer of the thread, where they lie until others are lent."""
        lent = as_dense(self._source.lend(rows))
        return with_constant(
            lent, self._shift, self._constant, self._scratch.of((len(lent), self.shape[1]), self.dtype.type)
        )


class TakenRows(RowSource):
    """Some rows of a source, in an order of one's own; a row may stand in it several times.

    Parameters
    ----------
    source : RowSource
    numbers : (m,) int array
    """

    def __init__(self, source: RowSource, numbers: NDArray[np.intp]) -> None:
        self._source, self._numbers = source, numbers
        self.shape, self.dtype, self.is_sparse = (len(numbers), source.shape[1]), source.dtype, source.is_sparse
        self.names, self.left_out = source.names, source.left_out

    def _take(self, numbers: NDArray[np.intp]) -> Stored:
        return self._source[self._numbers[numbers]]


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

    def __init__(self, source: RowSource, pairs: NDArray[np.intp], make: Make) -> None:
        self._source, self._pairs, self._make, self.limits = source, pairs, make, source.limits
        self.shape = (len(pairs), source.shape[1])
        self.dtype, self.is_sparse, self.names = np.dtype(np.float64), source.is_sparse, source.names
        if source.edges is not None:  # a pair is read when its later row is
            window = np.searchsorted(source.edges, pairs.max(axis=1), side="right")
            self.edges = np.concatenate([[0], np.flatnonzero(np.diff(window)) + 1, [len(pairs)]])

    def _take(self, numbers: NDArray[np.intp]) -> Stored:
        m = len(numbers)
        # One request for both ends, so that the file is read once, forwards.
        both = self._source[self._pairs[numbers].T.ravel()]
        return self._make(both[:m], both[m:])

    def settled(self) -> RowSource:
        """Return the same, made now if the rows are in memory."""
        if not isinstance(self._source, HeldRows):
            return self
        m = self.shape[0]
        step = m if self.is_sparse else piece_rows(self.shape[1], self.limits)  # dense ones a few at a time
        made = [self[start : start + step] for start in range(0, m, step)]
        return as_source(made[0] if len(made) == 1 else np.concatenate([as_dense(rows) for rows in made]))


def public_pairs(source: RowSource, public: np.random.Generator) -> NDArray[np.intp]:
    """Draw disjoint pairs of row numbers, in windows of a file where it has any; (n // 2, 2).

    Within a window the first half of a random order is paired with the second.  A row left over by an odd window
    is paired with the first of the next.
    """
    n = source.shape[0]
    edges = np.array([0, n]) if source.edges is None else source.edges
    in_turn = []
    for start, stop in pairwise(edges.tolist()):
        half, order = (stop - start) // 2, start + public.permutation(stop - start)
        in_turn += [order[: 2 * half].reshape(2, half).T.ravel(), order[2 * half :]]
    return np.concatenate(in_turn)[: n // 2 * 2].reshape(-1, 2)
