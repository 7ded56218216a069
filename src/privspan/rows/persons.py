"""Tables in which a person may have several rows: every person becomes the same number of rows.

A `PersonTable` has n persons, and for each of them exactly `width` slots, each filled with one of the person's own
rows: evenly spread over them if there are more, the same rows again if there are fewer.  So how many rows a person
has shows nowhere: shapes, chunks, positions in memory and numbers of operations follow from n and `width`, which are
public.  Whatever is summed over rows is averaged over the slots of a person (by `privspan.rows.unit.Rows`), and an
average of things that a row may do is nothing that a row may not do: bounds for replacing one row hold for replacing
one person.
Methods that compare records with one another take one row of each person (`PersonTable.one_each`).
Proofs: docs/explanation/several-rows.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan._lib.rounding import UNIT_ROUNDOFF
from privspan.rows.compressed import Make, Readable, Stored, Summing
from privspan.rows.dealing import Order, PartitionOrders
from privspan.rows.partitioned_rows import AnyRows, ChunkSums
from privspan.rows.source import RowPairs, RowSource, TakenRows
from privspan.rows.table import Made, Numbers, Table
from privspan.rows.unit import CHUNK_ROWS, PerRow, chunk_sums, of_persons, whole_persons

Array = NDArray[np.float64]


class PersonTable(Table):
    """An (n, d) table of n persons, each with `width` rows.

    Parameters
    ----------
    slots : RowSource
        (n * width, d): the rows of person i are the ones from ``i * width`` on.
    width : int
        Public.
    numbers : (n * width,) int array
        Which row of the table it was made of each of them is.
    declared : table
        That table, for the names and types of its columns.
    read : int
        How many rows that table has, which is private.
    """

    person = "person"  # what a ledger calls the unit of a promise about this table
    count_error = CHUNK_ROWS * UNIT_ROUNDOFF

    def __init__(self, slots: RowSource, width: int, numbers: Numbers, declared: Any, read: int) -> None:
        self.slots, self.width, self.numbers, self.declared, self.read = slots, width, numbers, declared, read
        self.shape = (slots.shape[0] // width, slots.shape[1])
        self.lengths, self.dtype, self.is_sparse = (self.shape[0],), slots.dtype, slots.is_sparse
        self.names, self.left_out, self.limits = slots.names, slots.left_out, slots.limits

    def __repr__(self) -> str:
        n, d = self.shape
        return f"<PersonTable: {n} persons, {d} columns, {self.dtype.name}>"

    def _with(self, slots: RowSource) -> PersonTable:
        return PersonTable(slots, self.width, self.numbers, self.declared, self.read)

    def rows(
        self, centre: Array | None = None, *, clip: float | None = None, keep: bool = True, single: bool = False
    ) -> AnyRows:
        """Return the rows, each of length at most 1; what is summed over them is averaged over those of a person."""
        return self.slots.rows(centre, clip=clip, keep=keep, width=self.width)

    def sums(self, function: Summing, *, exact: bool = False) -> ChunkSums:
        """Yield one sum per chunk of persons."""
        return averaged_sums(function, self.width, self.slots)

    def values(self) -> PerRow:
        """Return the rows in memory."""
        return of_persons(self.slots.values(), self.width)

    def column(self, y: object) -> PerRow:
        """Return one number per row of the table that this was made of, at the slots of these rows."""
        try:
            values = checks.column(y, self.read)
        except ValueError:  # which quotes how many rows there are
            raise ParameterError(
                "{y} must have one entry per row of the table; got more, fewer or a matrix."
            ) from None
        return of_persons(values[self.numbers], self.width)

    def then(
        self, function: Callable[..., Stored], *, columns: int | None = None, dtype: np.dtype | None = None
    ) -> PersonTable:
        """Return the persons with other rows, made one by one of those they have."""
        return self._with(self.slots.then(function, columns=columns, dtype=dtype))

    def with_constant(self, centre: Array, constant: float) -> PersonTable:
        """Return the rows less a centre, each with the same last entry."""
        return self._with(self.slots.with_constant(centre, constant))

    def pairs(self, public: np.random.Generator, make: Make) -> PersonTable:
        """Return pairs of persons, slot by slot: neighbours, as all of them stand in a random order."""
        persons = np.arange(self.shape[0] // 2 * 2).reshape(-1, 2)
        slots = np.column_stack([self.numbers_of(persons[:, side]) for side in (0, 1)])
        return self._with(RowPairs(self.slots, slots, make))

    def mixed(self, public: np.random.Generator) -> PersonTable:
        """Return the persons in another order, from a public generator, so that other neighbours are pairs."""
        order = mixed_places(self.shape[0], self.width, 0, int(public.integers(2**63)))
        return self._with(TakenRows(self.slots, self.numbers_of(order)))

    def coordinates(self, basis: Array, offset: Array | None = None) -> PersonTable:
        """Return the coordinates of every row, in memory."""
        return self._with(self.slots.coordinates(basis, offset))

    def numbers_of(self, persons: Numbers) -> Numbers:
        """Return the numbers of all rows of these persons, one person after the other; (len(persons) * width,)."""
        return np.asarray((persons[:, None] * self.width + np.arange(self.width)).ravel(), dtype=np.intp)

    def one_each(self) -> Table:
        """Return the first row of every person; (n, d)."""
        return self.here()

    def here(self) -> RowSource:
        """Return the first row of every person, in this process."""
        return TakenRows(self.slots, np.arange(0, self.slots.shape[0], self.width))

    def draw(self, numbers: Numbers, *, dense: bool = False) -> RowSource:
        """Return the first row of each of these persons, in memory."""
        return self.here().draw(numbers, dense=dense)

    def dealt(self, generator: np.random.Generator) -> PersonTable:
        """Return itself: persons stand in a secret order."""
        return self

    def order(self, generator: np.random.Generator) -> Order:
        """Return none: persons stand in a random order, and blocks are of neighbours."""
        return None

    def each_part(self, function: Callable[..., Made], order: Order, grain: int = 1) -> Sequence[Made]:
        """Return what a function makes of all rows: those of a person go together."""
        assert not isinstance(order, PartitionOrders)
        return [function(self.slots, None if order is None else self.numbers_of(order), self.width)]

    def halved(self) -> RowSource:
        """Return as many rows as there are pairs of persons."""
        return self.here().halved()


@dataclass(frozen=True)
class Belongings:
    """Which rows belong to whom: row ``order[starts[p]:starts[p] + counts[p]]`` to person p, in table order."""

    order: Numbers  # (rows,)
    starts: Numbers  # (persons,)
    counts: Numbers  # (persons,)

    @property
    def persons(self) -> int:
        """How many there are."""
        return len(self.counts)


def belongings(codes: Numbers) -> Belongings:
    """Find the rows of every person.

    Parameters
    ----------
    codes : (rows,) int array
        Rows with the same code, from 0 on, are one person's; a row with a code below zero is a person of its own.
    """
    alone = codes < 0
    own = np.where(alone, int(codes.max(initial=-1)) + np.cumsum(alone), codes)
    # By first appearance: how codes are numbered differs between containers, and no release may.
    _, first, listed = np.unique(own, return_index=True, return_inverse=True)
    own = np.argsort(np.argsort(first))[listed]
    order = np.argsort(own, kind="stable")
    starts = np.flatnonzero(np.diff(own[order], prepend=-1))
    return Belongings(order, starts, np.diff(starts, append=len(codes)))


def averaged_sums(function: Summing, width: int, slots: Stored | Readable) -> Iterator[Array]:
    """Yield one sum per chunk of persons, averaged over the rows of each."""
    return (part / width for part in chunk_sums(function, slots, width))


def chosen_rows(counts: Numbers, draws: Array, width: int) -> Numbers:
    """Return which of the rows of each person are in the slots, (persons, width): the numbers among their own.

    Slots are spread evenly over the rows, from a point that is drawn, in a circle: each row is taken once at least if
    there are slots enough, and the first slot holds any row with the same chance. One draw per person, whatever the
    count, so that nobody's draws depend on another's rows.
    """
    turns = (draws[:, None] + np.arange(width) / width) % 1.0  # (persons, width)
    return np.minimum((turns * counts[:, None]).astype(np.intp), counts[:, None] - 1)


def two_chunks(width: int) -> int:
    """Return how many persons two chunks of rows hold: partitions of persons end at multiples of that."""
    return 2 * whole_persons(CHUNK_ROWS, width) // width


def mixed_places(n: int, width: int, first: int, seed: int) -> Numbers:
    """Return n persons, the first of whom has that place in the table, in a public order within every two chunks.

    They are numbered from 0 on.  The order is the same wherever they are, if the first begins two chunks.
    """
    step, order = two_chunks(width), np.arange(n)
    for start in range(0, n, step):
        np.random.default_rng((seed, first + start)).shuffle(order[start : start + step])
    return order


def slotted(
    table: RowSource, declared: Any, owned: Belongings, places: Numbers, draws: Array, width: int
) -> PersonTable:
    """Give every person `width` slots and a place among the others.

    Parameters
    ----------
    table : RowSource
    declared : table
        As it was handed in, less its ids.
    owned : Belongings
    places : (persons,) int array
        Who comes first, second, …: a permutation of the persons, uniform and secret.
    draws : (persons,) array
        One number from 0 to 1, 1 excluded, for each place: it chooses rows where a person has more than slots.
    width : int
    """
    chosen = chosen_rows(owned.counts[places], draws, width)
    numbers = owned.order[(owned.starts[places][:, None] + chosen).ravel()]
    return PersonTable(TakenRows(table, numbers), width, numbers, declared, len(owned.order))
