"""Tables as algorithms see them: what is public of one, and what may be asked of its rows, wherever these are.

A `Table` is an array in memory, a file, a table in partitions or one of persons with several rows.  Which of them it
is makes a difference in this room alone: everywhere else it is its sizes, declared types and names, and the methods
below.  Nothing is read before rows are looked at, and what is made of rows (`then`, `pairs`) is made when they are.

`Table.rows` hands rows out, each of length at most 1, for sums over them; `sums` are those of rows as they are.
Methods that compare records with one another take those of `draw`, or of `one_each` and `here`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Literal, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import DTypeLike, NDArray

from privspan._lib import checks
from privspan._lib.arrays import Reals
from privspan.rows.compressed import Make, Stored, Summing
from privspan.rows.dealing import Order
from privspan.rows.gaps import spoiled
from privspan.rows.limits import LIMITS, Limits
from privspan.rows.partitioned_rows import AnyRows, ChunkSums, PerRow
from privspan.rows.shifting import cut, less, less_with_constant, times

Array: TypeAlias = NDArray[np.float64]
Made = TypeVar("Made")  # what a function makes of a partition
Numbers: TypeAlias = NDArray[np.intp]

DOUBLE = np.dtype(np.float64)

Missing: TypeAlias = Literal["fill", "zero-row"]
"""What a gap does: it is filled, or it makes its whole record a row of zeros."""


def check_missing(missing: object) -> None:
    """Refuse another word."""
    checks.one_of(get_args(Missing), missing=missing)


@dataclass(frozen=True)
class LeftOut:
    """A column that is not used; the schema alone decides this.

    Attributes
    ----------
    name : str
    reason : str
        A few words: "text", "dates or times", "named like an identifier", …
    """

    name: str
    reason: str


class Table(ABC):
    """An (n, d) table of real numbers with one record per row, or with `width` rows for each of n persons.

    Attributes
    ----------
    shape : (n, d)
        Records and columns.
    dtype : numpy.dtype
        Of the rows.
    names : sequence of str, or None
        Column names, where there are any.
    left_out : tuple of LeftOut
        Columns that are not among the d.
    is_sparse : bool
    boolean : (d,) array of bool, or None
        Columns that hold nothing but 0 and 1 by declaration; None if the dtype says it all.
    complete : (d,) array of bool, or None
        Columns that have no gaps by declaration; None if the dtype says it all.
    whole : (d,) array of bool, or None
        Columns that hold whole numbers by declaration; None if the dtype says it all.
    bounds : (2, d) array, or None
        The ranges of columns that a schema declares, NaN where it declares none.
    levels : mapping of str to tuple of str
        The words of each category, by its name; every word is one of the d columns.
    width : int
        Rows of a record: more than 1 where persons have several, which sums are averaged over.
    count_error : float
        Bounds the float64 error of a count over one chunk: none for rows, one rounding for averages over persons.
    lengths : tuple of int
        Records of each partition: public, like n.
    local : bool
        Whether records go together wherever they are: pairs and blocks do not keep to partitions that were given.
    limits : Limits
        How much of it is read, cleaned and kept at a time.
    drawable : bool
        Whether a record is one row of this process, so that some of them can be taken for all.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    ndim = 2
    names: tuple[str, ...] | None = None
    left_out: tuple[LeftOut, ...] = ()
    is_sparse: bool = False
    boolean: NDArray[np.bool_] | None = None
    complete: NDArray[np.bool_] | None = None
    whole: NDArray[np.bool_] | None = None
    bounds: Array | None = None
    levels: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    width: int
    count_error: float = 0.0
    lengths: tuple[int, ...]
    local: bool = True
    drawable: bool = False
    limits: Limits = LIMITS

    def __len__(self) -> int:
        return self.shape[0]

    def blocks(self, size: int) -> int:
        """Return how many blocks of so many records there are: whole ones only, and none across two partitions."""
        return sum(length // size for length in self.lengths)

    # ---- Rows and sums over them -----------------------------------------------------------------------------------

    @abstractmethod
    def rows(
        self, centre: Array | None = None, *, clip: float | None = None, keep: bool = True, single: bool = False
    ) -> AnyRows:
        """Return the rows about a released or public centre, each of length at most 1: see `privspan.rows.unit.Rows`.

        They may be `single` only where whoever asks charges what float32 adds to errors.
        """

    @abstractmethod
    def sums(self, function: Summing, *, exact: bool = False) -> ChunkSums:
        """Return one sum per chunk of rows as they are, not made short.

        The function turns a run of rows (m, d), dense or CSR, into a sum over these rows.  Rows of a person are
        averaged.  Where it is `exact`, as counts are, chunks of dense rows may have any length, and there are few.
        """

    @abstractmethod
    def values(self) -> PerRow:
        """Return the rows as what is known of every row."""

    @abstractmethod
    def column(self, y: object) -> PerRow:
        """Return a further column, one number per row of the table as it was handed in, after checks of its shape."""

    def looked_at(self, rows: AnyRows, clip: float | None = None) -> AnyRows:
        """Return rows for looks at second moments: in float32 if that may be, or else those that are open."""
        return rows

    def as_held(self, centre: Array) -> Array:
        """Return a released centre as `single` rows about it hold it: rounded to float32, if they are."""
        return centre

    # ---- Tables made of this one -----------------------------------------------------------------------------------

    @abstractmethod
    def then(
        self, function: Callable[..., Stored], *, columns: int | None = None, dtype: np.dtype | None = None
    ) -> Table:
        """Return what a pure function makes of every row by itself, when it is read.

        The function turns rows (m, d), dense or CSR, into as many others, of so many columns and that dtype.
        """

    @abstractmethod
    def pairs(self, public: np.random.Generator, make: Make) -> Table:
        """Return what a function makes of pairs of records, which a public generator draws within partitions.

        No record is in two pairs.  The function takes the first rows of some pairs and the second ones.
        """

    def mixed(self, public: np.random.Generator) -> Table:
        """Return the same records, such that pairs within a partition come from all over the table."""
        return self

    def settled(self) -> Table:
        """Return the same rows, made now if those that they are made of are in memory."""
        return self

    def held(self) -> Table:
        """Return the same rows, made now and kept where they are."""
        return self

    def unwrapped(self) -> Stored | Table:
        """Return the array or CSR array that this is, if it is one in memory, else the table itself."""
        return self

    def with_gaps(self, missing: Missing) -> Table:
        """Return the table with its gaps as they are ("fill"), or each spread over its record ("zero-row").

        In a sparse table a record is spoiled by making its stored entries zeros.
        """
        check_missing(missing)
        may_have = np.dtype(self.dtype).kind == "f"  # by the declared type
        return self.then(spoiled) if missing == "zero-row" and may_have else self

    def less(self, centre: Array) -> Table:
        """Return the rows of a dense table less a released vector."""
        return self.then(partial(less, subtrahend=centre), dtype=DOUBLE)

    def in_units(self, units: Array) -> Table:
        """Return the table with every column in a unit of its own, (d,), positive, public or released."""
        return self.then(partial(times, factors=1.0 / units), dtype=DOUBLE)

    def cut_off(self, low: Array, high: Array) -> Table:
        """Return a dense table whose cells are cut off at public or released ends, (d,) each; gaps stay gaps."""
        return self.then(partial(cut, low=low, high=high), dtype=DOUBLE)

    def with_constant(self, centre: Array, constant: float) -> Table:
        """Return the rows of a dense table less a released centre, each with the same last entry; (n, d + 1).

        A gap stays one: it counts as 0, as if the record lay at the centre there.  A record that is all gaps counts
        as a row of zeros, its constant too.
        """
        made = partial(less_with_constant, subtrahend=centre, constant=constant)
        return self.then(made, columns=self.shape[1] + 1, dtype=DOUBLE)

    @abstractmethod
    def coordinates(self, basis: Array, offset: Array | None = None) -> Table:
        """Return the coordinates of every row in a basis (d, k), each from its own row; (n, k).

        Gaps are filled with the offset, (d,), or with 0.
        """

    # ---- Records ---------------------------------------------------------------------------------------------------

    def one_each(self) -> Table:
        """Return one row of every record."""
        return self

    @abstractmethod
    def here(self) -> LocalTable:
        """Return a table of one row per record in this process."""

    @abstractmethod
    def draw(self, numbers: Numbers, *, dense: bool = False) -> LocalTable:
        """Return one row of each of these records, in memory."""

    def some(self, rows: int, public: np.random.Generator) -> Table:
        """Return so many records, in memory, that a public generator draws: for what fewer rows tell as well as all.

        The table itself if it holds less than twice as many, if they are more than should be held, or if they cannot
        be taken for all.
        """
        return self

    @abstractmethod
    def dealt(self, generator: np.random.Generator) -> Table:
        """Return these records in an order from which blocks and pairs are cheap to draw; most have it already.

        The generator is public, and drawn from only if the order is another one.
        """

    @abstractmethod
    def order(self, generator: np.random.Generator) -> Order:
        """Draw the order in which records are dealt into blocks, from a public generator.

        Within windows or partitions if there are any; nothing but their lengths is looked at.
        """

    def deal(self, generator: np.random.Generator) -> tuple[Table, Order]:
        """Return a table whose blocks are cheap to read in the order that is returned with it."""
        table = self.dealt(generator)
        return table, table.order(generator)

    @abstractmethod
    def each_part(self, function: Callable[..., Made], order: Order, grain: int = 1) -> Sequence[Made]:
        """Return what a pure function makes of every partition, where it is.

        It takes a source of its rows, the order of these or None, and how many rows in turn are one record's.  So
        many records as `grain` says go together, where it is this table that chose its partitions.
        """

    @abstractmethod
    def halved(self) -> Table:
        """Return a stand-in for the pairs of records, of which only numbers of records mean anything."""


class LocalTable(Table):
    """A table of one row per record in this process, whose rows are read by their numbers.

    Attributes
    ----------
    edges : (windows + 1,) int array, or None
        Where rows are cheap to read only together with their neighbours: the row numbers at which such windows
        begin, and n.  From metadata, so public.  None if any row is as cheap as any other.
    """

    edges: NDArray[np.intp] | None = None
    width = 1
    drawable = True

    @abstractmethod
    def __getitem__(self, rows: slice | Numbers) -> Stored:
        """Return fresh rows: a dense array, or a CSR array if the table is sparse."""

    @abstractmethod
    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Reals:
        """Read everything, as ``numpy.asarray(table)`` asks for; not if it is sparse."""

    @abstractmethod
    def lend(self, rows: slice) -> Stored:
        """Return rows without a copy where possible: nobody may change them, or use them once others are lent."""

    @abstractmethod
    def take_columns(self, part: slice) -> Reals:
        """Return consecutive columns of all rows, (n, columns), as a dense array."""

    @abstractmethod
    def dealt(self, generator: np.random.Generator) -> LocalTable:
        """Return these rows in an order from which blocks and pairs are cheap to draw."""

    @abstractmethod
    def order(self, generator: np.random.Generator) -> Numbers:
        """Draw an order of the rows, within windows if there are any."""
