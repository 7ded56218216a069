"""Persons with several rows in partitions: the slots of each person in one of them, in the order that was drawn.

The rows of a person may have come from anywhere.  Partitions hold whole chunks of persons, and the order of persons
is the secret one that a table in memory has.  So are the chunks, the pairs and the blocks: the same sums, to the last
bit.  Where the partitions end follows from the number of persons, their slots, and how many partitions there were.
Proofs: docs/explanation/several-rows.md, "Tables in partitions".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from privspan._lib.arrays import Reals
from privspan._lib.errors import ParameterError
from privspan.rows.compressed import Make, Stored, Summing
from privspan.rows.dealing import Order
from privspan.rows.exchange import Piece, exchange, recut
from privspan.rows.partitioned_ids import ROWS_OF_PARTITION, Keyed, PartitionedIds, digest
from privspan.rows.partitioned_rows import ChunkSums, PartitionedRows, PartitionedSums, RowValues
from privspan.rows.partitions import PartitionedTable, opener_of, partitioned_column
from privspan.rows.persons import Belongings, PersonTable, averaged_sums, chosen_rows, mixed_places, two_chunks
from privspan.rows.place import Part
from privspan.rows.source import HeldRows, RowSource, as_source
from privspan.rows.table import DOUBLE, Array, Made, Numbers, Table
from privspan.rows.unit import of_persons


@dataclass(frozen=True)
class Routes:
    """Which row of a table in partitions goes into which slots.

    Attributes
    ----------
    table : PartitionedTable
        Where rows are from.
    ids, digests : sequences of Part and int
        Whose they are, by which it is found out whether they have come in another order than before.
    parts : sequence of Part
        For each of its partitions, the numbers of rows in it, (slots,), and the slots that they go to.
    edges : tuple of int
        The slots at which the partitions begin that they go to, and how many there are.
    """

    table: PartitionedTable
    ids: Sequence[Part]
    digests: Sequence[int]
    parts: Sequence[Part]
    edges: tuple[int, ...]

    def bring(self, sources: Sequence[Part]) -> list[Part]:
        """Return what is in the slots of each partition: rows of the sources, (slots, d)."""
        place, starts = self.table.place, self.edges[:-1]
        sent = place.map(partial(_sent, self.edges), self.parts, sources, self.ids, place.send(self.digests))
        sizes = [stop - start for start, stop in pairwise(self.edges)]
        return place.map(_in_slots, exchange(place, sent, len(starts)), place.send(sizes))


class SpreadPersons(PersonTable):
    """An (n, d) table of n persons, each with `width` rows, in partitions.

    Parameters
    ----------
    spread : PartitionedTable
        The slots: those of person i are the ones from ``i * width`` on.
    width : int
        Public.
    routes : Routes
    declared : table
        As it was handed in, less its ids.
    """

    def __init__(self, spread: PartitionedTable, width: int, routes: Routes, declared: object) -> None:
        self.spread, self.width, self.routes, self.declared = spread, width, routes, declared
        self.shape = (spread.shape[0] // width, spread.shape[1])
        self.lengths, self.dtype = (self.shape[0],), spread.dtype
        self.names, self.left_out = spread.names, spread.left_out
        self._persons = tuple(length // width for length in spread.lengths)  # in each partition

    def _made(self, spread: PartitionedTable) -> SpreadPersons:
        return SpreadPersons(spread, self.width, self.routes, self.declared)

    def rows(
        self, centre: Array | None = None, *, clip: float | None = None, keep: bool = True, single: bool = False
    ) -> PartitionedRows:
        """Return the rows where they are; what is summed over them is averaged over those of a person."""
        table = self.spread.place, self.spread.parts, self._persons, self.shape[1]
        return PartitionedRows(*table, centre=centre, clip=clip, keep=keep, width=self.width)

    def sums(self, function: Summing, *, exact: bool = False) -> ChunkSums:
        """Return one sum per chunk of persons, where they are."""
        chunks = partial(averaged_sums, function, self.width)
        return PartitionedSums(self.spread.place, self._persons, chunks, (self.spread.parts,))

    def values(self) -> RowValues:
        """Return the rows, where they are."""
        return self._values(self.spread.parts)

    def _values(self, parts: Sequence[Part]) -> RowValues:
        place = self.spread.place
        return RowValues(place, self._persons, place.map(partial(of_persons, width=self.width), parts), self.width)

    def column(self, y: object) -> RowValues:
        """Return one number per row of the table that this was made of, at the slots of these rows."""
        table, opener = self.routes.table, opener_of(y)
        if opener is not None:
            lengths = opener.counted(y)
            if tuple(filter(None, lengths)) != table.lengths:
                raise ParameterError("{y} must be in partitions of the same lengths as those of {X}.")
            column = opener.open_column(y, lengths)
        else:
            try:
                column = partitioned_column(y, table)
            except ValueError:  # which quotes how many rows there are
                raise ParameterError(
                    "{y} must have one entry per row of the table; got more, fewer or a matrix."
                ) from None
        place = self.spread.place
        return self._values(place.map(np.ravel, self.routes.bring(column.parts)))

    def then(
        self, function: Callable[..., Stored], *, columns: int | None = None, dtype: np.dtype | None = None
    ) -> SpreadPersons:
        """Return the persons with other rows, made one by one of those they have."""
        return self._made(self.spread.then(function, columns=columns, dtype=dtype))

    with_constant = Table.with_constant  # type: ignore[assignment]

    def held(self) -> SpreadPersons:
        """Return the same rows, computed and kept where they are."""
        return self._made(self.spread.held())

    def pairs(self, public: np.random.Generator, make: Make) -> SpreadPersons:
        """Return pairs of persons, slot by slot: neighbours, none of whom are in different partitions."""
        lengths = [persons // 2 * self.width for persons in self._persons]
        return self._made(self.spread.then(partial(_paired, make, self.width), lengths=lengths, dtype=DOUBLE))

    def mixed(self, public: np.random.Generator) -> SpreadPersons:
        """Return the persons in another order, that of the same table in memory: it keeps to partitions."""
        first = [0, *np.cumsum(self._persons[:-1]).tolist()]
        return self._made(self.spread.then(partial(_mixed, self.width, int(public.integers(2**63))), first))

    def coordinates(self, basis: Array, offset: Array | None = None) -> SpreadPersons:
        """Return the coordinates of every row, made when they are needed."""
        return self._made(self.spread.coordinates(basis, offset))

    def one_each(self) -> SpreadPersons:
        """Return the first row of every person, where it is; (n, d)."""
        first = self.spread.then(partial(_every, self.width), lengths=self._persons)
        return SpreadPersons(first, 1, self.routes, self.declared)

    def here(self) -> RowSource:
        """Return the first row of every person, brought here as a whole when it is first asked for."""
        first = self.one_each().spread

        def read() -> Reals:
            return np.concatenate(first.place.fetch(first.parts, first.lengths))

        held = HeldRows(self.shape, self.dtype, read)
        held.names, held.left_out = self.names, self.left_out
        return held

    def draw(self, numbers: Numbers, *, dense: bool = False) -> RowSource:
        """Return the first row of each of these persons, in memory; no other row comes here."""
        edges = np.cumsum([0, *self._persons])
        ascending = np.argsort(numbers, kind="stable")
        mine = np.split(numbers[ascending], np.searchsorted(numbers[ascending], edges[1:-1]))
        places = [(own - start) * self.width for own, start in zip(mine, edges[:-1], strict=True)]
        place = self.spread.place
        found = place.fetch(place.map(_taken, self.spread.parts, place.send(places)), [len(own) for own in mine])
        rows = np.empty((len(numbers), self.shape[1]), dtype=self.dtype)
        rows[ascending] = np.concatenate(found)
        return as_source(rows)

    def each_part(self, function: Callable[..., Made], order: Order, grain: int = 1) -> Sequence[Made]:
        """Return what a function makes of partitions that hold multiples of `grain` persons, but for the last."""
        assert order is None  # persons stand in a random one
        most = max(max(self._persons) // grain, 1) * grain
        lengths = _cut(self.shape[0], most, self.width)
        spread = self.spread
        parts = recut(spread.place, spread.parts, spread.lengths, lengths)
        return spread.place.fetch(spread.place.map(partial(_as_it_is, function, self.width), parts), lengths)

    def halved(self) -> RowSource:
        """Return as many rows as there are pairs of persons."""
        return as_source(np.broadcast_to(0.0, (self.shape[0] // 2, self.shape[1])))


def spread_persons(found: PartitionedIds, places: Numbers, draws: Array, width: int) -> SpreadPersons:
    """Give every person `width` slots and a place among the others, as `privspan.rows.persons.slotted` does.

    Parameters
    ----------
    found : PartitionedIds
    places, draws : (persons,) arrays
    width : int
    """
    table, place, n = found.table, found.table.place, len(places)
    of_person = np.argsort(places)  # the place of each
    # Chunks of pairs are whole, too.
    unit = two_chunks(width)
    most = -(-n // (unit * found.partitions)) * unit
    edges = tuple(np.cumsum([0, *_cut(n, most, width)]).tolist())
    count, at = len(table.parts), [of_person[persons] for persons in found.persons]
    asked = place.map(
        partial(_asked, count, width), found.buckets, place.send(at), place.send([draws[own] for own in at])
    )
    parts = place.hold(exchange(place, asked, count), [0] * count)
    routes = Routes(table, found.read, found.digests, parts, edges)
    lengths = tuple(stop - start for start, stop in pairwise(edges))
    parts = place.keep(routes.bring(table.parts), lengths, table.columns)
    spread = PartitionedTable(place, parts, lengths, table.columns, table.dtype, table.names, table.left_out)
    return SpreadPersons(spread, width, routes, found.declared)


def _cut(n: int, most: int, width: int) -> list[int]:
    """Return how many slots each partition has, of at most so many persons."""
    return [(min(start + most, n) - start) * width for start in range(0, n, most)]


def _asked(count: int, width: int, owned: Belongings, places: Numbers, draws: Array) -> list[Piece]:
    """Return, for each partition, which of its rows a bucket of persons wants, and in which slots."""
    rows = owned.order[owned.starts[:, None] + chosen_rows(owned.counts, draws, width)].ravel()
    slots = (places[:, None] * width + np.arange(width)).ravel()
    order = np.argsort(rows, kind="stable")
    cuts = np.searchsorted(rows[order], np.arange(1, count) * ROWS_OF_PARTITION)
    return list(zip(np.split(rows[order] % ROWS_OF_PARTITION, cuts), np.split(slots[order], cuts), strict=True))


def _sent(edges: Sequence[int], route: Piece, rows: Reals, ids: Keyed, before: int) -> list[Piece]:
    """Return, for each partition of slots, the slots to fill, where a new row begins, and each row once."""
    if digest(ids) != before:  # else rows would be taken for those of others
        raise _unsteady()
    numbers, slots = route
    target = np.searchsorted(edges, slots, side="right") - 1
    order = np.lexsort((numbers, target))
    numbers, slots, cuts = numbers[order], slots[order], np.searchsorted(target[order], np.arange(1, len(edges) - 1))
    fresh = np.diff(numbers, prepend=-1) != 0  # a row is one person's, so it goes to one partition
    starts = np.asarray(edges)[target[order]]
    of_rows = np.append(0, np.cumsum(fresh))[cuts]
    parts = np.split(slots - starts, cuts), np.split(fresh, cuts), np.split(rows[numbers[fresh]], of_rows)
    return list(zip(*parts, strict=True))


def _unsteady() -> ParameterError:
    told = "`persist()` it first, as it may depend on the order in which tasks end"
    return ParameterError("{X} must hold the same rows whenever it is computed: {told}.", told=told)


def _in_slots(piece: Piece, size: int) -> Reals:
    slots, fresh, rows = piece
    if (
        len(slots) != size or (np.bincount(slots, minlength=size) != 1).any()
    ):  # else a slot is what memory held before
        raise _unsteady()
    filled = np.empty((size, rows.shape[1]), dtype=rows.dtype)
    filled[slots] = rows[np.cumsum(fresh) - 1]
    return filled


def _paired(make: Make, width: int, part: Reals) -> Stored:
    persons = part.reshape(-1, width, part.shape[1])
    half = len(persons) // 2
    first, second = (persons[side : 2 * half : 2].reshape(-1, part.shape[1]) for side in (0, 1))
    return make(first, second)


def _mixed(width: int, seed: int, part: Reals, first: int) -> Reals:
    persons = part.reshape(-1, width, part.shape[1])
    return persons[mixed_places(len(persons), width, first, seed)].reshape(part.shape)


def _every(width: int, part: Reals) -> Reals:
    return np.ascontiguousarray(part[::width])


def _taken(part: Reals, numbers: Numbers) -> Reals:
    return part[numbers]


def _as_it_is(function: Callable[..., Made], width: int, part: Reals) -> Made:
    return function(as_source(part), None, width)
