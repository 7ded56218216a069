"""Unit rows of a table in partitions, and values that are known of every row and stay next to it.

`PartitionedRows` has the methods of `privspan.rows.unit.Rows` and hands each of them to a `Rows` of one partition,
where the partition lives.  So chunks are cut inside partitions: at most 4096 rows each, by row number and the public
lengths of the partitions, which is all that lemma 3 of docs/explanation/everyday-pca.md asks of them.  What is known
of single rows stays there as `RowValues`; sums over chunks are rounded to their grid there, added exactly, and only
the total travels.

An algorithm that opens its rows by `Table.rows` and looks at them through `map_rows`, `per_row`, `map_chunks`,
`map_folded` and `known_chunks` alone runs wherever its rows are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import itemgetter, methodcaller
from typing import Any, Protocol, Self, TypeAlias, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from privspan._lib.arrays import Reals
from privspan._lib.rounding import UNIT_ROUNDOFF
from privspan.rows.place import Part, Place
from privspan.rows.scaling import Piece
from privspan.rows.unit import CHUNK_ROWS, Finish, PersonValues, Rows, inside, whole_persons
from privspan.rows.unit import PerRow as PerRow

Array: TypeAlias = NDArray[np.float64]

_SLAB_ROWS = 2**13  # at a time, of what is computed for each by itself
_MANY_ROWS = 2**17  # of what is added up exactly: a megabyte of numbers


class Fold(Protocol):
    """Something that takes in the sums of chunks; in which order and grouping makes no difference, not by a bit."""

    def add(self, chunk_sum: Any) -> None:
        """Take in one chunk."""

    def plus(self, other: Self) -> Self:
        """Return a fresh one that has taken in what both have."""


_Fold = TypeVar("_Fold", bound=Fold)


@dataclass(frozen=True)
class PartitionedSums:
    """One sum per chunk of a partitioned table: not computed before it is known what they are added into."""

    place: Place
    lengths: Sequence[int]  # rows per partition
    chunks: Callable[
        ..., Iterator[Any]
    ]  # yields the sums of the chunks of one partition, given its entries of `parts`
    parts: tuple[Sequence[Part], ...]

    def fold(self, start: Callable[[], _Fold]) -> _Fold:
        """Add every chunk where it is, then add up the partitions."""
        folds = self.place.map(partial(_folded_part, start, self.chunks), *self.parts)
        return cast(_Fold, self.place.merge(folds, self.lengths, _added))


def _folded_part(start: Callable[[], _Fold], chunks: Callable[..., Iterator[Any]], *parts: object) -> _Fold:
    return folded(chunks(*parts), start)


def _added(folds: list[_Fold]) -> _Fold:
    return reduce(lambda one, other: one.plus(other), folds)


ChunkSums: TypeAlias = Iterable[Any] | PartitionedSums
"""One array per chunk: an iterator of them, or `PartitionedSums`."""


def folded(chunk_sums: ChunkSums, start: Callable[[], _Fold]) -> _Fold:
    """Return what `start` makes, after it has taken in every chunk, wherever that is."""
    if isinstance(chunk_sums, PartitionedSums):
        return chunk_sums.fold(start)
    fold = start()
    for chunk_sum in chunk_sums:
        fold.add(chunk_sum)
    return fold


@dataclass(frozen=True)
class RowValues:
    """What is known of every row of a partitioned table, kept next to the rows."""

    place: Place
    lengths: Sequence[int]  # records per partition
    parts: Sequence[Part]  # arrays (rows, ...) or, of persons, `PersonValues`
    width: int = 1  # rows of a record

    def __len__(self) -> int:
        return sum(self.lengths)


def per_row(function: Callable[..., Reals], *known: PerRow) -> PerRow:
    """Return what a function makes of things known of every row, entry i from entries i.

    These are arrays (n, ...), or all of them `RowValues` or `PersonValues` of one table.
    """
    first = known[0]
    if isinstance(first, PersonValues):
        return PersonValues(function(*(values.slots for values in known)), first.width)
    if isinstance(first, RowValues):
        parts = first.place.map(partial(per_row, function), *(values.parts for values in known))
        return replace(first, parts=parts)
    n = len(first)
    if n <= _SLAB_ROWS:
        return function(*known)
    made: Reals = np.empty(0)
    for start in range(0, n, _SLAB_ROWS):  # a few rows at a time, which stay in the cache
        part = function(*(values[start : start + _SLAB_ROWS] for values in known))
        if start == 0:
            made = np.empty_like(part, shape=(n, *part.shape[1:]))  # of several values a row, in the same order
        made[start : start + _SLAB_ROWS] = part
    return made


def known_chunks(function: Callable[..., Array], *known: PerRow, exact: bool = False) -> ChunkSums:
    """Return one sum per chunk of rows, of things known of every row (as for `per_row`).

    The function turns arrays (rows, ...) into a fresh array that is a sum over these rows; it is averaged over those
    of a person.  Where it is `exact`, as counts are, chunks of rows may have any length, and there are few.
    """
    first = known[0]
    if isinstance(first, PersonValues):
        step = whole_persons(CHUNK_ROWS, first.width)
        slots = [values.slots for values in known]
        return (part / first.width for part in _chunks_of(function, *slots, step=step))
    if not isinstance(first, RowValues):
        return _chunks_of(function, *known, step=_MANY_ROWS if exact else CHUNK_ROWS)
    chunks: Callable[..., Any] = partial(known_chunks, function, exact=exact)
    return PartitionedSums(first.place, first.lengths, chunks, tuple(values.parts for values in known))


def _chunks_of(function: Callable[..., Array], *known: Reals, step: int = CHUNK_ROWS) -> Iterator[Array]:
    n = len(known[0])
    for start in range(0, n, step):
        some = known
        if n > step:
            some = tuple(values[start : start + step] for values in known)
        yield function(*some)


def count_error(values: PerRow) -> float:
    """Bound the float64 error of a count over one chunk: none for rows, one rounding for averages over persons."""
    return CHUNK_ROWS * UNIT_ROUNDOFF if getattr(values, "width", 1) > 1 else 0.0


class PartitionedRows:
    """The rows of a partitioned table, each scaled to unit length or clipped to a given length as by `Rows`.

    Parameters
    ----------
    place : Place
    parts : sequence of Part
        Dense arrays.
    lengths : sequence of int
        Records per partition.
    columns : int
        d.
    centre, clip, keep, width
        As for `privspan.rows.unit.Rows`.
    """

    single, rounding, is_sparse = False, 1.0, False

    def __init__(
        self,
        place: Place,
        parts: Sequence[Part],
        lengths: Sequence[int],
        columns: int,
        *,
        centre: Array | None = None,
        clip: float | None = None,
        keep: bool = True,
        width: int = 1,
    ) -> None:
        self.shape, self._parts, self.width = (sum(lengths), columns), parts, width
        self._place, self._lengths, self._clip, self._centre = place, lengths, clip, centre
        keep = keep and 8 * width * self.shape[0] * self.shape[1] <= place.kept_bytes
        self._rows = place.map(partial(_opened, centre=centre, clip=clip, keep=keep, width=width), parts)
        if keep:
            self._rows = place.hold(self._rows, lengths)
        self._squares: PerRow | None = None

    def map_chunks(
        self, function: Callable[..., Array], *known: PerRow, finish: Finish | None = None
    ) -> PartitionedSums:
        """Return one sum per chunk; see `privspan.rows.unit.Rows.map_chunks`."""
        return self._sums(Rows.map_chunks, function, known, finish)

    def map_folded(
        self, function: Callable[..., Array], *known: PerRow, finish: Finish | None = None
    ) -> PartitionedSums:
        """Return one sum per chunk; see `privspan.rows.unit.Rows.map_folded`."""
        return self._sums(Rows.map_folded, function, known, finish)

    def _sums(
        self,
        method: Callable[..., Iterator[Any]],
        function: Callable[..., Array],
        known: Sequence[PerRow],
        finish: Finish | None,
    ) -> PartitionedSums:
        chunks = partial(_piece_sums, method, function, finish)
        return PartitionedSums(self._place, self._lengths, chunks, (self._rows, *(values.parts for values in known)))

    def map_rows(self, function: Callable[[Piece], Reals]) -> RowValues:
        """Return one result per row, kept next to the rows; see `privspan.rows.unit.Rows.map_rows`."""
        if self._squares is not None:
            return self._held(methodcaller("results", function))
        both = self._held(methodcaller("results_and_lengths", function))
        self._squares = per_row(itemgetter(1), both)
        return cast(RowValues, per_row(itemgetter(0), both))

    def coordinates(self, basis: Array) -> RowValues:
        """Return the coordinates of every row in a basis (d, k), kept next to the rows; (n, k)."""
        return self.map_rows(partial(inside, basis=basis))

    def squared_lengths(self) -> PerRow:
        """Return the computed squared length of every cleaned row."""
        if self._squares is None:
            self._squares = self._held(Rows.squared_lengths)
        return self._squares

    def clipped(self, clip: float) -> PartitionedRows:
        """Return the same rows clipped to another length."""
        return self._again(clip, keep=False)

    def kept(self) -> PartitionedRows:
        """Return the same rows, kept between passes if there are few enough."""
        return self._again(self._clip, keep=True)

    def _again(self, clip: float | None, *, keep: bool) -> PartitionedRows:
        table = self._place, self._parts, self._lengths, self.shape[1]
        return PartitionedRows(*table, centre=self._centre, clip=clip, keep=keep, width=self.width)

    def lengths(self) -> RowValues:
        """Return the length of every row before it is scaled; see `privspan.rows.unit.Rows.lengths`."""
        return self._told(self._place.map(partial(_lengths, centre=self._centre, width=self.width), self._parts))

    def _held(self, function: Callable[[Rows], object]) -> RowValues:
        return self._told(self._place.map(function, self._rows))

    def _told(self, parts: Sequence[Part]) -> RowValues:
        return RowValues(self._place, self._lengths, self._place.hold(parts, self._lengths), self.width)


def _opened(part: Reals, *, centre: Array | None, clip: float | None, keep: bool, width: int) -> Rows:
    rows = Rows(part, centre=centre, clip=clip, keep=keep, width=width)
    return rows.held() if keep else rows


def _lengths(part: Reals, centre: Array | None, width: int) -> PerRow:
    return Rows(part, centre=centre, keep=False, width=width).lengths()


def _piece_sums(
    method: Callable[..., Iterator[Any]],
    function: Callable[..., Array],
    finish: Finish | None,
    rows: Rows,
    *known: Reals,
) -> Iterator[Array]:
    return method(rows, function, *known, finish=finish)


AnyRows: TypeAlias = Rows | PartitionedRows
