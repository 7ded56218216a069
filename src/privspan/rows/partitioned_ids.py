"""Whose row is whose in a table in partitions: ids meet by what they are, and no table of all of them is ever made.

Every partition reads its ids, each from its cell alone, and sends each with the numbers of its rows to the bucket
that a public function of the id names (`privspan._lib.identity.scattered`).  All rows of a person meet in one bucket,
where ids are compared, so two that share a bucket are still told apart.  What comes back is one number per person,
the first of their rows, by which persons are numbered as in a table in memory.  A person changes the bucket of their
own id, and their own numbers; docs/explanation/several-rows.md, "Tables in partitions".
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspan._lib.distinct import cell_by_cell
from privspan._lib.errors import Parameter, ParameterError
from privspan._lib.frames import as_frame, dtype_kind
from privspan._lib.identity import UntellableError, keys_of, scattered
from privspan.rows.exchange import Piece, exchange
from privspan.rows.ids import one_column, untellable, without_column
from privspan.rows.partitions import PartitionedTable, opener_of
from privspan.rows.persons import Belongings, belongings
from privspan.rows.place import LocalPlace, Part
from privspan.rows.table import Numbers

# The different keys of ids, where they are scattered to, and of each row the number of its key, -1 without an id.
Keyed: TypeAlias = tuple[list[Hashable], NDArray[np.int64], Numbers]

Ids: TypeAlias = Any
"""The name of a column, or ids as some package holds them."""

ROWS_OF_PARTITION = 2**40
"""More than fit into a partition's memory: row i of partition p is known as p times this, plus i."""


@dataclass(frozen=True)
class PartitionedIds:
    """A table in partitions, and whose its rows are.

    Attributes
    ----------
    table : PartitionedTable
        Without a column of ids.
    declared : table
        As it was handed in, less that column.
    partitions : int
        How many were handed in, the empty ones too, which `table` leaves out: public.
    read : sequence of Part
        The ids of each partition of `table`.
    digests : sequence of int
        Of these, as they were when persons were told apart.
    buckets : sequence of Part
        `Belongings`, of each row by its number, of the persons in each bucket.
    persons : sequence of (persons,) int arrays
        For each bucket the numbers of its persons, who are counted by their first rows in the whole table.
    """

    table: PartitionedTable
    declared: object
    partitions: int
    read: Sequence[Part]
    digests: Sequence[int]
    buckets: Sequence[Part]
    persons: Sequence[Numbers]


def partitioned_ids(X: object, person: Ids) -> PartitionedIds:
    """Find out whose rows are whose in a table in partitions, where they are.

    Parameters
    ----------
    X : PartitionedTable, or Dask array or dataframe
    person : str, or ids
        The name of a column of `X`; or one id per row: an array or list, or a Dask array or series in the partitions
        of `X`.
    """
    what = f"column {person!r}" if isinstance(person, str) else Parameter("person")
    declared, table, read, count = _opened(X, person, what)
    place, nobody = table.place, [0] * count  # is told of: how many rows there are is private
    numbers = place.send(range(len(table.parts)))
    pieces = place.map(partial(_by_bucket, count), read, place.send(table.lengths), numbers)
    met = place.map(partial(_met, what), exchange(place, pieces, count))
    # Computed together, so that both are of the same rows.
    made = place.hold([*met, *place.map(digest, read)], nobody + [0] * len(read))
    buckets, digests = made[:count], place.fetch(made[count:], [0] * len(read))
    firsts = place.fetch(place.map(_first_rows, buckets), nobody)
    order = np.argsort(np.argsort(np.concatenate(firsts)))  # all first rows are different
    persons = np.split(order, np.cumsum([len(first) for first in firsts])[:-1])
    return PartitionedIds(table, declared, count, read, digests, buckets, persons)


def _opened(X: object, person: Ids, what: Parameter | str) -> tuple[object, PartitionedTable, list[Part], int]:
    """Return what `X` declares without its ids, its rows, the ids of each partition, and how many these were."""
    opener, of_ids = opener_of(X), opener_of(person)
    if isinstance(person, str):
        declared, ids = without_column(X, person)
        table, parts, lengths = opener.open_with_ids(X, declared, ids)
    else:
        declared, lengths = X, X.lengths if isinstance(X, PartitionedTable) else opener.counted(X)
        table = X if isinstance(X, PartitionedTable) else opener.open_table(X, lengths)
        parts = None if of_ids is None else of_ids.open_ids(person)
    if not table.parts:
        raise ParameterError("{X} must be two-dimensional, with at least one row and one column.")
    if parts is None or isinstance(table.place, LocalPlace):  # where the rows are, ids go too
        return declared, table, _here(person if parts is None else person.compute(), table, what), len(lengths)
    sizes = lengths if of_ids is None else of_ids.counted(person)
    if tuple(filter(None, sizes)) != table.lengths:
        raise ParameterError("{person} must have one id per row, in the partitions of {X}; got other partitions.")
    parts = [part for part, length in zip(parts, sizes, strict=True) if length]
    dtype = (ids if isinstance(person, str) else person).dtype
    read = table.place.map(partial(_keyed, what, declared=_declared_kind(dtype)), parts)
    return declared, table, read, len(lengths)


def _declared_kind(dtype: Any) -> str:
    """Return a word for the declared type of ids, or NumPy's letter for it."""
    return "text" if dtype_kind(dtype).other == "text" else str(getattr(dtype, "kind", "O"))


def _spoilt(declared: str, dtype: Any, keys: Iterable[Any]) -> bool:
    """Tell whether ids were read as something else than declared, by which the same ones may no longer be told.

    A reader does so in some partitions and not in others: one person would be taken for several.
    """
    kind = _declared_kind(dtype)
    if kind not in "biuf":
        return declared in "iuf" and any(isinstance(key, str) for key in keys)  # "007" is not 7
    if declared == "text" or (declared == "f") != (kind == "f"):
        return any((declared == "text" or abs(key) >= 2.0**53) and math.isfinite(key) for key in keys)
    return False


def digest(read: Keyed) -> int:
    """Return a number that tells which ids are in which rows of a partition, in whatever process it is computed."""
    _, numbers, codes = read
    return zlib.crc32(codes.astype(np.int64).tobytes(), zlib.crc32(numbers.tobytes()))


def _here(ids: object, table: PartitionedTable, what: Parameter | str) -> list[Part]:
    """Read ids that are in this process by their declared type, and send each partition its own."""
    keys, numbers, codes = _keyed(what, ids)
    if len(codes) != len(table):
        raise ParameterError("{person} must have one id per row of the table; got more or fewer.")
    read = []
    for own in np.split(codes, np.cumsum(table.lengths)[:-1]):
        seen, codes_of_part = np.unique(np.append(own, -1), return_inverse=True)  # so that -1 comes first
        read.append(([keys[code] for code in seen[1:]], numbers[seen[1:]], codes_of_part[:-1] - 1))
    return table.place.send(read)


def _keyed(what: Parameter | str, ids: Ids, declared: str | None = None) -> Keyed:
    """Return the different keys of a column of ids, and of each cell the number of its key, -1 where it is missing.

    A key is a function of its cell alone, so it means the same in every partition, of one declared type.
    """
    held = as_frame(ids)
    column = one_column(held)
    if column is not None and column.stand_ins:
        places, first = np.unique(column.places, return_index=True)
        known = places >= 0
        cells = getattr(held, "iloc", held)
        found = cell_by_cell([cells[at] for at in first[known]], worded=False).cells
        numbers = np.append(np.full(int(places.max(initial=-1)) + 1, -1), -1)
        numbers[places[known]] = np.arange(len(found))
        column = replace(column, cells=found, places=numbers[column.places])
    try:
        if column is None:
            raise UntellableError
        keys, codes = keys_of(column)
        numbers = np.array([scattered(key) for key in keys], dtype=np.int64)
    except UntellableError:
        raise untellable(what) from None
    if declared is not None and _spoilt(declared, getattr(held, "dtype", np.dtype(object)), keys):
        told = "read them as text, or as `Int64` if some are missing"
        raise ParameterError(
            "{what} must hold ids of its declared type in all partitions: {told}.", what=what, told=told
        )
    return keys, numbers, codes


def _by_bucket(count: int, read: Keyed, length: int, number: int) -> list[Piece]:
    """Return for each bucket the keys that belong into it, how many rows each has, and the numbers of these."""
    found, numbers, codes = read
    if len(codes) != length:
        raise ParameterError("{person} must have one id per row of the table; got more or fewer.")
    rows = number * ROWS_OF_PARTITION + np.arange(length, dtype=np.int64)
    alone = np.flatnonzero(codes < 0)
    keys = np.empty(len(found) + len(alone), dtype=object)  # None for each row without an id
    keys[: len(found)] = found
    own = codes.copy()
    own[alone] = len(found) + np.arange(len(alone))
    buckets = np.append(numbers, alone) % count
    by_bucket = np.argsort(buckets, kind="stable")
    rank = np.argsort(by_bucket)
    rows = rows[np.argsort(rank[own], kind="stable")]  # bucket by bucket, and in it key by key
    counts = np.bincount(own, minlength=len(keys))[by_bucket]
    cuts = np.searchsorted(buckets[by_bucket], np.arange(1, count))
    row_cuts = np.append(0, np.cumsum(counts))[cuts]
    parts = np.split(keys[by_bucket], cuts), np.split(counts, cuts), np.split(rows, row_cuts)
    return list(zip(*parts, strict=True))


def _met(what: Parameter | str, piece: tuple[NDArray[np.object_], Numbers, Numbers]) -> Belongings:
    """Return which rows belong to whom among those that have met in a bucket."""
    keys, counts, rows = piece
    known: dict[Hashable, int] = {}
    try:
        codes = [-1 if key is None else known.setdefault(key, len(known)) for key in keys.tolist()]
    except Exception:  # of somebody's own class; what it says may quote a cell
        raise untellable(what) from None
    order = np.argsort(rows)
    owned = belongings(np.repeat(np.array(codes, dtype=np.intp), counts)[order])
    return replace(owned, order=rows[order][owned.order])


def _first_rows(owned: Belongings) -> Numbers:
    return owned.order[owned.starts]
