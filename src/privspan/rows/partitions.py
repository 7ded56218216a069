"""Tables in partitions: the rows stay where they are, functions go there, and only what these return comes back.

A `PartitionedTable` is a public list of partitions with their numbers of rows, and a `Place` that runs functions on
them.  `LocalPlace` does so one after the other in this process; other places live in `privspan.backends`.  A function
that is sent must be pure: equal arguments, equal bits, nothing changed.  A place may then run it twice, or again
after a machine has died, and nobody can tell.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib import import_module
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import MissingPackageError, ParameterError, ParameterTypeError
from privspan._lib.frames import dtype_kind, float_type
from privspan.rows.limits import LIMITS
from privspan.rows.source import LeftOut, RowSource

Part: TypeAlias = Any
"""What a place knows a value by that belongs to one partition and lives next to it."""

_OPENERS = {"dask": "dask", "dask_expr": "dask"}  # by the package of a class: who opens it, and the extra that needs


_MOST_PIECES = 16  # time: of a partition, where rows of several are to meet; more would be many small tasks


class Place(ABC):
    """Where partitions live, and how functions are sent there."""

    @property
    @abstractmethod
    def kept_bytes(self) -> int:
        """How much may be kept between passes, over all partitions."""

    @abstractmethod
    def send(self, values: Sequence[Any]) -> list[Part]:
        """Return one part per value: small public arguments, one per partition."""

    @abstractmethod
    def map(self, function: Callable[..., Any], *parts: Sequence[Part]) -> list[Part]:
        """Return the parts ``function(first, second, …)``, one per partition; nothing need be computed yet."""

    @abstractmethod
    def hold(self, parts: Sequence[Part], lengths: Sequence[int]) -> list[Part]:
        """Compute the parts and keep them where they are.

        `lengths`, here and below, are the rows behind each part, for whoever watches the progress.
        """

    @abstractmethod
    def fetch(self, parts: Sequence[Part], lengths: Sequence[int]) -> list[Any]:
        """Compute the parts and bring them here, in order."""

    @abstractmethod
    def merge(self, parts: Sequence[Part], lengths: Sequence[int], merge: Callable[[list[Any]], Any]) -> Any:
        """Compute the parts, merge some at a time into fresh values until one is left, and bring that here."""


class LocalPlace(Place):
    """Partitions in this process, worked on one after the other; a part is a function that returns its value."""

    @property
    def kept_bytes(self) -> int:
        """A gibibyte."""
        return LIMITS.kept_bytes

    def send(self, values: Sequence[Any]) -> list[Part]:
        """Return functions that return the values."""
        return [partial(_itself, value) for value in values]

    def map(self, function: Callable[..., Any], *parts: Sequence[Part]) -> list[Part]:
        """Return functions that compute when they are called."""
        return [partial(_computed, function, row) for row in zip(*parts, strict=True)]

    def hold(self, parts: Sequence[Part], lengths: Sequence[int]) -> list[Part]:
        """Compute now."""
        return self.send([part() for part in parts])

    def fetch(self, parts: Sequence[Part], lengths: Sequence[int]) -> list[Any]:
        """Compute now."""
        return [part() for part in parts]

    def merge(self, parts: Sequence[Part], lengths: Sequence[int], merge: Callable[[list[Any]], Any]) -> Any:
        """Merge two at a time, so that two values are in memory at most."""
        merged = merge([parts[0]()])
        for part in parts[1:]:
            merged = merge([merged, part()])
        return merged


def _itself(value: Any) -> Any:
    return value


def _computed(function: Callable[..., Any], parts: Sequence[Callable[[], Any]]) -> Any:
    return function(*(part() for part in parts))


@dataclass(frozen=True)
class PartitionedTable:
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
    dtype: np.dtype[Any]
    names: tuple[str, ...] | None = None
    left_out: tuple[LeftOut, ...] = ()

    ndim = 2

    def __post_init__(self) -> None:
        """Leave empty partitions out."""
        if self.dtype not in (np.float32, np.float64):
            raise ParameterTypeError(
                "A table in partitions must be float32 or float64; got dtype {dtype}.", dtype=self.dtype.name
            )
        filled = [(part, length) for part, length in zip(self.parts, self.lengths, strict=True) if length]
        object.__setattr__(self, "parts", [part for part, _ in filled])
        object.__setattr__(self, "lengths", tuple(int(length) for _, length in filled))

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        return sum(self.lengths), self.columns

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n, d = self.shape
        return f"<PartitionedTable: {n} rows in {len(self.parts)} partitions, {d} columns, {self.dtype.name}>"

    def then(
        self,
        function: Callable[..., Any],
        *per_partition: Sequence[Any],
        lengths: Sequence[int] | None = None,
        columns: int | None = None,
        dtype: np.dtype[Any] | None = None,
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


def partition_rows(X: NDArray[Any] | RowSource, lengths: Sequence[int]) -> PartitionedTable:
    """Cut a table in this process into partitions, as it would be cut in a cluster.

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
    table: Any = X if isinstance(X, RowSource) else checks.matrix(X, min_rows=0)
    if any(length < 0 for length in lengths) or sum(lengths) != len(table):
        raise ParameterError("{lengths} must be numbers of rows that sum to {n}.", n=len(table))
    edges = np.concatenate([[0], np.cumsum(lengths)]).tolist()
    dtype = float_type([dtype_kind(table.dtype)])
    parts = [partial(_rows_between, table, dtype, *ends) for ends in pairwise(edges)]
    return PartitionedTable(LocalPlace(), parts, tuple(lengths), int(table.shape[1]), dtype)


def _rows_between(table: Any, dtype: np.dtype[Any], start: int, stop: int) -> Any:
    return table[start:stop].astype(dtype, copy=False)


def mixed_partitions(table: PartitionedTable, public: np.random.Generator) -> PartitionedTable:
    """Return a table of the same rows in as many partitions, each made of pieces of several others.

    However the table is sorted, rows that meet in a partition then come from all over it.  Which piece a row belongs
    to and where the piece goes follow from row numbers and a public generator.

    Parameters
    ----------
    table : PartitionedTable
    public : numpy.random.Generator
    """
    count = len(table.parts)
    pieces = min(count, _MOST_PIECES)
    if pieces == 1:
        return table
    seeds = table.place.send(public.integers(2**63, size=count).tolist())
    # Piece i of the partition at place p goes to place p + i: no two pieces of one go to the same.
    places = public.permutation(count)  # (partitions,)
    sources = [places[(np.arange(count) - i) % count] for i in range(pieces)]  # (pieces, partitions)
    made = [table.place.map(partial(_piece_of, i, pieces), table.parts, seeds) for i in range(pieces)]
    parts = table.place.map(_joined, *([made[i][at] for at in sources[i]] for i in range(pieces)))
    lengths = np.zeros(count, dtype=np.intp)
    for i in range(pieces):
        lengths += [_piece_length(table.lengths[at], i, pieces) for at in sources[i]]
    return replace(table, parts=parts, lengths=tuple(lengths.tolist()))


def _piece_of(index: int, pieces: int, part: NDArray[Any], seed: int) -> NDArray[Any]:
    """Return every so many rows of a public order of a partition, from the one with this index on."""
    return part[np.random.default_rng(seed).permutation(len(part))[index::pieces]]


def _piece_length(length: int, index: int, pieces: int) -> int:
    return len(range(index, length, pieces))


def _joined(*pieces: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate(pieces)


def partitioned(X: object) -> object:
    """Return a table of another package's making as a `PartitionedTable`, and everything else as it is."""
    opener = _opener(X)
    return X if opener is None else opener.open_table(X)


def in_partitions(X: object) -> bool:
    """Tell whether an object of another package is in partitions."""
    return _opener(X) is not None


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
    opener = _opener(y)
    if opener is not None:
        column: PartitionedTable = opener.open_column(y)
        if column.lengths != table.lengths:
            raise ParameterError("{y} must be in partitions of the same lengths as those of {X}.")
        return column
    values = checks.column(y, len(table)).astype(np.float64)
    pieces = np.split(values[:, None], np.cumsum(table.lengths)[:-1])
    return PartitionedTable(table.place, table.place.send(pieces), table.lengths, 1, values.dtype)


def _opener(X: object) -> Any:
    """Return the module that opens tables and columns of another package's making, if `X` is one."""
    extra = _OPENERS.get(type(X).__module__.partition(".")[0])
    try:
        return None if extra is None else import_module(f"privspan.backends.{extra}_tables")
    except ImportError:
        raise MissingPackageError(
            "Tables of this kind need more packages: pip install 'privspan[{extra}]'.", extra=extra
        ) from None
