"""Tables in partitions: the rows stay where they are, functions go there, and only what these return comes back.

A `PartitionedTable` is a public list of partitions with their numbers of rows, and a `Place` that runs functions on
them.  `LocalPlace` does so one after the other in this process; other places live in `privspan.backends`.  A function
that is sent must be pure: equal arguments, equal bits, nothing changed.  A place may then run it twice, or again
after a machine has died, and nobody can tell.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from privspan._lib import above, checks
from privspan._lib.arrays import Reals
from privspan._lib.errors import MissingPackageError, ParameterError, ParameterTypeError
from privspan._lib.frames import dtype_kind, float_type
from privspan._lib.watch import unwatched
from privspan.rows.compressed import Make, Stored, Summing
from privspan.rows.dealing import Order, PartitionOrders, public_order, public_stream
from privspan.rows.gaps import coordinates_of
from privspan.rows.partitioned_rows import ChunkSums, PartitionedRows, PartitionedSums, RowValues
from privspan.rows.place import LocalPlace, Part, Place
from privspan.rows.source import RowPairs, RowSource, as_source, public_pairs
from privspan.rows.table import DOUBLE, Array, LeftOut, Made, Numbers, Table
from privspan.rows.unit import chunk_sums, piece_rows
from privspan.rows.windows import WindowedSource

_OPENERS = {"dask": "dask", "dask_expr": "dask"}  # by the package of a class: who opens it, and the extra that needs


_MOST_PIECES = 16  # time: of a partition, where rows of several are to meet; more would be many small tasks


@dataclass(frozen=True, eq=False)
class PartitionedTable(Table):
    """An (n, d) table of real numbers in partitions of consecutive rows.

    How many rows each partition has is public and must not depend on values; see docs/explanation/partitioning.md.

    Attributes
    ----------
    place : Place
    parts : sequence of Part
        The partitions, each a (rows, d) array of this `dtype`: it is that of the table, whatever a partition was made
        of, because one record can turn a partition of integers into floats.
    lengths : tuple of int
        Rows per partition.
    columns : int
        d.
    dtype : numpy.dtype
        float32 or float64.
    names : tuple of str, or None
        Column names, where there are any.
    left_out : tuple of LeftOut
        Columns that are not among the d.
    """

    place: Place
    parts: Sequence[Part]
    lengths: tuple[int, ...]
    columns: int
    dtype: np.dtype
    names: tuple[str, ...] | None = None
    left_out: tuple[LeftOut, ...] = ()
    shape: tuple[int, int] = field(init=False)

    width, local = 1, False

    def __post_init__(self) -> None:
        """Leave empty partitions out."""
        if self.dtype not in (np.float32, np.float64):
            raise ParameterTypeError(
                "A table in partitions must be float32 or float64; got dtype {dtype}.", dtype=self.dtype.name
            )
        filled = [(part, length) for part, length in zip(self.parts, self.lengths, strict=True) if length]
        object.__setattr__(self, "parts", [part for part, _ in filled])
        object.__setattr__(self, "lengths", tuple(int(length) for _, length in filled))
        object.__setattr__(self, "shape", (sum(self.lengths), self.columns))

    def __repr__(self) -> str:
        n, d = self.shape
        return f"<PartitionedTable: {n} rows in {len(self.parts)} partitions, {d} columns, {self.dtype.name}>"

    def then(
        self,
        function: Callable[..., object],
        *per_partition: Sequence[object],
        lengths: Sequence[int] | None = None,
        columns: int | None = None,
        dtype: np.dtype | None = None,
    ) -> PartitionedTable:
        """Return the table whose partitions are ``function(partition, …)``, computed when they are needed.

        Parameters
        ----------
        function
            Pure; turns an array (rows, d), and its own of each sequence in `per_partition`, into another.
        *per_partition
            Small public values, one per partition.
        lengths, columns, dtype
            Of the result, where they change.
        """
        changes: dict[str, Any] = {"lengths": lengths, "columns": columns, "dtype": dtype}
        parts = self.place.map(function, self.parts, *(self.place.send(values) for values in per_partition))
        return replace(self, parts=parts, **{name: new for name, new in changes.items() if new is not None})

    # ---- What algorithms ask of it: see `Table` --------------------------------------------------------------------

    def rows(
        self, centre: Array | None = None, *, clip: float | None = None, keep: bool = True, single: bool = False
    ) -> PartitionedRows:
        """Return the rows, each of length at most 1, where they are."""
        return PartitionedRows(
            self.place, self.parts, self.lengths, self.columns, centre=centre, clip=clip, keep=keep
        )

    def sums(self, function: Summing, *, exact: bool = False) -> ChunkSums:
        """Return one sum per chunk of rows, where they are."""
        return PartitionedSums(self.place, self.lengths, partial(chunk_sums, function, exact=exact), (self.parts,))

    def values(self) -> RowValues:
        """Return the rows, where they are."""
        return RowValues(self.place, self.lengths, self.parts)

    def held(self) -> PartitionedTable:
        """Return the same rows, computed and kept where they are."""
        return replace(self, parts=self.place.hold(self.parts, self.lengths))

    def column(self, y: object) -> RowValues:
        """Return one number per row, next to the rows."""
        column = partitioned_column(y, self)
        return RowValues(self.place, self.lengths, self.place.map(np.ravel, column.parts))

    def pairs(self, public: np.random.Generator, make: Make) -> PartitionedTable:
        """Return what is made of pairs within each partition, drawn there from one seed per partition."""
        halves = [length // 2 for length in self.lengths]
        seeds = public.integers(2**63, size=len(halves)).tolist()
        return self.then(partial(_pairs_within, make), seeds, lengths=halves, dtype=DOUBLE)

    def mixed(self, public: np.random.Generator) -> PartitionedTable:
        """Return a table of the same rows in as many partitions, each made of pieces of several others.

        However the table is sorted, rows that meet in a partition then come from all over it.  Which piece a row
        belongs to and where the piece goes follow from row numbers and a public generator.
        """
        count = len(self.parts)
        pieces = min(count, _MOST_PIECES)
        if pieces == 1:
            return self
        seeds = self.place.send(public.integers(2**63, size=count).tolist())
        # Piece i of the partition at place p goes to place p + i: no two pieces of one go to the same.
        places = public.permutation(count)  # (partitions,)
        sources = [places[(np.arange(count) - i) % count] for i in range(pieces)]  # (pieces, partitions)
        made = [self.place.map(partial(_piece_of, i, pieces), self.parts, seeds) for i in range(pieces)]
        parts = self.place.map(_joined, *([made[i][at] for at in sources[i]] for i in range(pieces)))
        lengths = np.zeros(count, dtype=np.intp)
        for i in range(pieces):
            lengths += [_piece_length(self.lengths[at], i, pieces) for at in sources[i]]
        return replace(self, parts=parts, lengths=tuple(lengths.tolist()))

    def coordinates(self, basis: Array, offset: Array | None = None) -> PartitionedTable:
        """Return the coordinates of every row, made when they are needed."""
        made = partial(coordinates_of, basis=basis, offset=offset, step=piece_rows(self.columns))
        return self.then(made, columns=basis.shape[1], dtype=DOUBLE)

    def here(self) -> RowSource:
        """Return the rows, brought here one partition at a time."""
        return GatheredRows(self)

    def draw(self, numbers: Numbers, *, dense: bool = False) -> RowSource:
        """Return some rows, brought here."""
        return self.here().draw(numbers)

    def dealt(self, generator: np.random.Generator) -> PartitionedTable:
        """Return itself: partitions are brought into an order where they are."""
        return self

    def order(self, generator: np.random.Generator) -> PartitionOrders:
        """Draw one seed per partition."""
        return PartitionOrders(tuple(generator.integers(2**63, size=len(self.parts)).tolist()))

    def each_part(self, function: Callable[..., Made], order: Order, grain: int = 1) -> Sequence[Made]:
        """Return what a function makes of each partition, brought here."""
        seeds = order.seeds if isinstance(order, PartitionOrders) else (None,) * len(self.parts)
        made = self.place.map(partial(_in_order, function), self.parts, self.place.send(seeds))
        return self.place.fetch(made, self.lengths)

    def halved(self) -> PartitionedTable:
        """Return partitions of as many rows as they have pairs."""
        return replace(self, lengths=tuple(length // 2 for length in self.lengths))


def _pairs_within(make: Make, part: Reals, seed: int) -> Array:
    """Return what is made of pairs within one partition, drawn by a public seed.

    Whether the partition happens to be a memory map makes no difference: a task that is run again, elsewhere, must
    draw the same pairs.
    """
    source = as_source(part)
    return np.asarray(RowPairs(source, public_pairs(source, public_stream(seed)), make)[:])


def _in_order(function: Callable[..., Made], part: Reals, seed: int | None) -> Made:
    order = None if seed is None else public_order(len(part), np.random.default_rng(seed))
    return function(as_source(part), order, 1)


class GatheredRows(WindowedSource):
    """A table in partitions as a source of rows: its windows are the partitions.

    Sums are better made where the rows are; this is for methods that compare rows with
    one another, or that need every one of them.

    Parameters
    ----------
    table : PartitionedTable
    """

    def __init__(self, table: PartitionedTable) -> None:
        super().__init__()
        self._table = table
        self.shape, self.dtype, self.names, self.left_out = table.shape, table.dtype, table.names, table.left_out
        self.edges = np.cumsum([0, *table.lengths], dtype=np.intp)

    def _fetched(self, parts: Sequence[Part], lengths: Sequence[int]) -> list[Reals]:
        with unwatched():  # whoever asks for rows counts them
            return self._table.place.fetch(parts, lengths)

    def _load(self, window: int) -> Stored:
        return self._fetched([self._table.parts[window]], [self._table.lengths[window]])[0]

    def take_columns(self, part: slice) -> Reals:
        """Return consecutive columns of all rows, (n, columns); the others stay where they are."""
        parts = self._table.place.map(partial(_some_columns, part), self._table.parts)
        return np.concatenate(self._fetched(parts, self._table.lengths))


def _some_columns(part: slice, rows: Reals) -> Reals:
    return np.ascontiguousarray(rows[:, part])


def partition_rows(X: Reals | RowSource, lengths: Sequence[int]) -> PartitionedTable:
    """Split a table in this process into partitions, as in a cluster.

    Parameters
    ----------
    X : (n, d) array or RowSource
        Dense.
    lengths : sequence of int
        Rows per partition; they sum to n.

    Returns
    -------
    PartitionedTable
        float32 if `X` is, else float64.  Every algorithm that takes a Dask array takes it, and returns the same bits
        for the same lengths and seed.

    Examples
    --------
    >>> partition_rows(np.ones((10, 3)), [4, 6])
    <PartitionedTable: 10 rows in 2 partitions, 3 columns, float64>
    """
    table: Reals | RowSource = X if isinstance(X, RowSource) else checks.matrix(X, min_rows=0)
    if any(length < 0 for length in lengths) or sum(lengths) != len(table):
        raise ParameterError("{lengths} must be numbers of rows that sum to {n}.", n=len(table))
    edges = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    dtype = float_type([dtype_kind(table.dtype)])
    parts = [partial(_rows_between, table, dtype, *ends) for ends in pairwise(edges)]
    return PartitionedTable(LocalPlace(), parts, tuple(lengths), int(table.shape[1]), dtype)


def _rows_between(table: Reals | RowSource, dtype: np.dtype, start: int, stop: int) -> Stored:
    return table[start:stop].astype(dtype, copy=False)


def _piece_of(index: int, pieces: int, part: Reals, seed: int) -> Reals:
    """Return every so many rows of a public order of a partition, from the one with this index on."""
    return part[np.random.default_rng(seed).permutation(len(part))[index::pieces]]


def _piece_length(length: int, index: int, pieces: int) -> int:
    return len(range(index, length, pieces))


def _joined(*pieces: Reals) -> Reals:
    return np.concatenate(pieces)


def partitioned(X: object) -> object:
    """Return a partitioned table of another package as a `PartitionedTable`, and everything else unchanged."""
    opener = opener_of(X)
    return X if opener is None else opener.open_table(X)


def in_partitions(X: object) -> bool:
    """Return whether a table is in partitions, whatever package it is of."""
    return isinstance(X, PartitionedTable) or opener_of(X) is not None


def partitioned_column(y: object, table: PartitionedTable) -> PartitionedTable:
    """Return one number per row of a table, in the partitions of that table.

    Parameters
    ----------
    y : (n,) array, or Dask array or series
        The latter in the partitions of the table.
    table : PartitionedTable

    Returns
    -------
    PartitionedTable
        With one column.
    """
    opener = opener_of(y)
    if opener is not None:
        column: PartitionedTable = opener.open_column(y)
        if column.lengths != table.lengths:
            raise ParameterError("{y} must be in partitions of the same lengths as those of {X}.")
        return column
    values = checks.column(y, len(table)).astype(np.float64)
    pieces = np.split(values[:, None], np.cumsum(table.lengths)[:-1])
    return PartitionedTable(table.place, table.place.send(pieces), table.lengths, 1, values.dtype)


def opener_of(X: object) -> Any:
    """Return the module that opens tables, columns and ids of another package's making, if `X` is one of these."""
    extra = _OPENERS.get(type(X).__module__.partition(".")[0])
    try:
        return None if extra is None else above.tables_of(extra)
    except ImportError:
        raise MissingPackageError(
            "Tables of this kind need more packages: pip install 'privspan[{extra}]'.", extra=extra
        ) from None
