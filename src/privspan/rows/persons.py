"""Tables in which a person may have several rows: every person becomes the same number of rows.

A `PersonTable` has n persons, and for each of them exactly `width` slots, each filled with one of the person's own
rows: evenly spread over them if there are more, the same rows again if there are fewer.  So how many rows a person
has shows nowhere: shapes, chunks, positions in memory and numbers of operations follow from n and `width`, which are
public.  Whatever is summed over rows is averaged over the slots of a person (`PersonRows`), and an average of things
that a row may do is nothing that a row may not do: bounds for replacing one row hold for replacing one person.
Methods that compare records with one another take one row of each person (`PersonTable.one_each`).
Proofs: docs/explanation/several-rows.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.rows.arrays import as_source
from privspan.rows.source import LeftOut, RowSource

Array = NDArray[np.float64]
Numbers = NDArray[np.intp]


@dataclass(frozen=True)
class PersonTable:
    """An (n, d) table of n persons, each with `width` rows.

    Attributes
    ----------
    rows : (n * width, d) array, CSR array or RowSource
        Those of person i are the ones from ``i * width`` on.
    width : int
        Public.
    numbers : (n * width,) int array
        Which row of the table it was made of each of them is.
    declared : table
        That table, for the names and types of its columns.
    read : int
        How many rows that table has, which is private.
    """

    rows: Any
    width: int
    numbers: Numbers
    declared: Any
    read: int

    ndim = 2
    person = "person"  # what a ledger calls the unit of a promise about this table

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d): persons and columns."""
        return int(self.rows.shape[0]) // self.width, int(self.rows.shape[1])

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of the rows."""
        found: np.dtype[Any] = self.rows.dtype
        return found

    @property
    def names(self) -> tuple[str, ...] | None:
        """Column names, where there are any."""
        return getattr(self.rows, "names", None)

    @property
    def left_out(self) -> tuple[LeftOut, ...]:
        """Columns that are not among the d."""
        return getattr(self.rows, "left_out", ())

    def column(self, y: Any) -> PersonValues:
        """Return one number per row of the table that this was made of, at the slots of these rows."""
        try:
            values = checks.column(y, self.read)
        except ValueError:  # which quotes how many rows there are
            raise ParameterError(
                "{y} must have one entry per row of the table; got more, fewer or a matrix."
            ) from None
        return PersonValues(values[self.numbers], self.width)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n, d = self.shape
        return f"<PersonTable: {n} persons, {d} columns, {self.dtype.name}>"

    def then(self, function: Callable[[Any], Any]) -> PersonTable:
        """Return the persons with other rows, made one by one of those they have."""
        return replace(self, rows=function(self.rows))

    def slots(self, persons: Numbers) -> Numbers:
        """Return the numbers of all rows of these persons, one person after the other; (len(persons) * width,)."""
        return np.asarray((persons[:, None] * self.width + np.arange(self.width)).ravel(), dtype=np.intp)

    def one_each(self) -> RowSource:
        """Return the first row of every person; (n, d)."""
        return TakenRows(as_source(self.rows), np.arange(0, self.rows.shape[0], self.width))


class TakenRows(RowSource):
    """Some rows of a source, in an order of one's own; a row may stand in it several times.

    Parameters
    ----------
    source : RowSource
    numbers : (m,) int array
    """

    def __init__(self, source: RowSource, numbers: Numbers) -> None:
        self._source, self._numbers = source, numbers
        self.shape, self.dtype, self.is_sparse = (len(numbers), source.shape[1]), source.dtype, source.is_sparse
        self.names, self.left_out = source.names, source.left_out

    def _take(self, numbers: Numbers) -> Any:
        return self._source[self._numbers[numbers]]


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


def slotted(table: Any, declared: Any, owned: Belongings, places: Numbers, draws: Array, width: int) -> PersonTable:
    """Give every person `width` slots and a place among the others.

    Parameters
    ----------
    table : (rows, d) array, CSR array or RowSource
    declared : table
        As it was handed in, less its ids.
    owned : Belongings
    places : (persons,) int array
        Who comes first, second, …: a permutation of the persons, uniform and secret.
    draws : (persons,) array
        One number from 0 to 1, 1 excluded, for each place: it chooses rows where a person has more than slots.
    width : int
    """
    counts = owned.counts[places]  # (persons,)
    # Slots are spread evenly over the rows, from a point that is drawn, in a circle: each row is taken once at least
    # if there are slots enough, and the first slot holds any row with the same chance. One draw per person, whatever
    # the count, so that nobody's draws depend on another's rows.
    turns = (draws[:, None] + np.arange(width) / width) % 1.0  # (persons, width)
    chosen = np.minimum((turns * counts[:, None]).astype(np.intp), counts[:, None] - 1)
    numbers = owned.order[(owned.starts[places][:, None] + chosen).ravel()]
    return PersonTable(TakenRows(as_source(table), numbers), width, numbers, declared, len(owned.order))


@dataclass(frozen=True)
class PersonValues:
    """What is known of every row of a table of persons.

    Attributes
    ----------
    slots : (n * width, …) array
    width : int
    """

    slots: NDArray[Any]
    width: int

    def __len__(self) -> int:
        return len(self.slots) // self.width
