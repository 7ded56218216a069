"""Tables that can be read once: read to their end, kept, and gone over as often as an algorithm needs.

A stream is gone once it has been read, and a query without a total order may return its rows in another order the
second time, while algorithms make several passes over the same rows.  So the rows are kept: in memory up to
`Limits.stream_bytes`, else in an Arrow file without a name, which nobody else can open and which the system frees
with the process (`privspan.rows.files.spool`).  Which of the two follows from declared types and the number of rows,
and so does where windows end: how rows came in batches decides nothing.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privspan._lib.arrays import Reals
from privspan._lib.distinct import arrow_column
from privspan._lib.errors import ParameterError, ParameterTypeError, PrivspanError
from privspan._lib.frames import empty_column, float_type, other_columns
from privspan._lib.identity import codes_of
from privspan._lib.watch import rows_read
from privspan.rows.categories import Categories
from privspan.rows.damage import UnreadableFileError, refusal_alone
from privspan.rows.files.batches import Batches, batches_of
from privspan.rows.files.schema import Column, Schema
from privspan.rows.files.spool import Spool, room_told
from privspan.rows.files.tables import ArrowRows, Layout, layout_of, numbers_of
from privspan.rows.levels import checked_levels
from privspan.rows.limits import LIMITS, Limits
from privspan.rows.source import HeldRows, RowSource

_TEXT_BYTES = 32  # what a cell of text or bytes is taken to be long: its length must not decide where rows are kept


def open_stream(
    given: object,
    *,
    columns: Sequence[str] | None = None,
    schema: Schema | None = None,
    name: str | None = None,
    limits: Limits = LIMITS,
) -> RowSource:
    """Read a stream of Arrow batches to its end, and return its rows as a table of numbers.

    Parameters
    ----------
    given
        What `privspan.rows.files.batches.batches_of` takes.
    columns : sequence of str, optional
        Columns to use, in this order; by default all columns of numbers except those named like identifiers.
    schema : Schema, optional
        What is declared of them.
    name : str, optional
        What messages call the table.
    limits : Limits, optional

    Returns
    -------
    RowSource
        To be read as often as need be, in one order.

    Raises
    ------
    UnreadableFileError
        If it has no rows or no columns of numbers, breaks off, or there is no room for it.
    """
    schema = Schema() if schema is None else schema
    name = type(given).__name__ if name is None else name
    with told(name):
        batches = batches_of(given, limits)
    return kept(name, batches, layout_of(name, batches.types, columns, schema), limits)


@refusal_alone()
def fitted_stream(
    given: object,
    *,
    person: str | None = None,
    categories: Categories | None = None,
    ids_needed: bool = True,
    limits: Limits = LIMITS,
) -> RowSource:
    """Do the same with all columns, as those of a frame that is fitted: what holds no numbers is refused.

    `person` and `categories` are as for `privspan.rows.categories.encoded`; but for `ids_needed` the column of ids
    may be absent.
    """
    name = type(given).__name__
    with told(name):
        batches = batches_of(given, limits)
    present = person is not None and (ids_needed or person in batches.types.names)
    layout = _frame_layout(name, batches.types, person if present else None, categories)
    rows = kept(name, batches, layout, limits)
    rows.as_frame = True
    return rows


def _frame_layout(name: str, types: pa.Schema, person: str | None, categories: Categories | None) -> Layout:
    """Lay out all columns but that of ids, in the dtype that a frame of these types would have."""
    if isinstance(categories, str):
        what = "by name, with the words of each, for a stream: its types do not say them before it is read"
        raise ParameterTypeError("{categories} must be given {what}.", what=what)
    levels = {column: checked_levels(column, words) for column, words in (categories or {}).items()}
    unknown = [column for column in levels if column not in types.names or column == person]
    if unknown:
        raise ParameterError(
            "{categories} must name columns of the table; it has no column named {name!r}.", name=unknown[0]
        )
    fields = {field.name: field.type for field in types if field.name != person}
    numbers = [empty_column(column, kind) for column, kind in fields.items() if column not in levels]
    if wrong := [column for column in numbers if column.kind.other is not None]:
        raise other_columns(wrong, "X")
    declared = {
        column: Column("category", categories=levels[column]) if column in levels else Column("number")
        for column in fields
    }
    layout = layout_of(name, types, None, Schema(declared, person=person))
    narrow = not levels and float_type(column.kind for column in numbers) == np.float32
    return replace(layout, dtype=np.dtype(np.float32 if narrow else np.float64))


@contextmanager
def told(name: str) -> Iterator[None]:
    """Turn whatever a stream fails with into one sentence; its own words may quote a cell, or a password."""
    try:
        yield
    except (PrivspanError, ImportError, MemoryError):
        raise
    except Exception as failure:
        template = "{file!r} broke off while it was read ({kind}); nothing of it was kept."
        raise UnreadableFileError(template, file=name, kind=type(failure).__name__) from None


def kept(name: str, batches: Batches, layout: Layout, limits: Limits) -> RowSource:
    """Read all batches and keep them, in memory or in a file."""
    columns = list(dict.fromkeys([*layout.columns, *([] if layout.person is None else [layout.person])]))
    types = pa.schema([pa.field(column, _plain(batches.types.field(column).type)) for column in columns])
    d = max(1, layout.count)
    row_bytes = max(d * layout.dtype.itemsize, sum(_bytes(kind) for kind in types.types))
    even = _even(_coming(name, batches, columns, types), limits.window_rows(d, layout.dtype.itemsize))
    held, rows = [], 0
    for batch in even:
        held.append(batch)
        rows += batch.num_rows
        if rows * row_bytes > limits.stream_bytes:
            return _spooled(name, held, even, types, layout, limits)
    return StreamRows(name, pa.Table.from_batches(held, schema=types), layout, limits)


def _plain(kind: pa.DataType) -> pa.DataType:
    """Return the type that a column is kept as: batches may have different dictionaries, and files have one."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _bytes(kind: pa.DataType) -> int:
    """Return about how much a cell takes, by its type alone; that of a list is counted with the numbers."""
    try:
        return int(kind.bit_width) // 8  # bits
    except ValueError:  # of any length
        return 0 if pa.types.is_nested(kind) else _TEXT_BYTES


def _coming(name: str, batches: Batches, columns: Sequence[str], types: pa.Schema) -> Iterator[pa.Table]:
    """Yield batch after batch as tables of the types that were announced."""
    with told(name):
        for batch in batches.read(columns):
            if not _announced(batch.schema.types, types.types):
                template = "{file!r} hands out batches of other types than it has announced; cast its columns first."
                raise UnreadableFileError(template, file=name)
            rows_read(batch.num_rows)
            yield pa.Table.from_batches([batch]).cast(types)


def _announced(types: Sequence[pa.DataType], kept: Sequence[pa.DataType]) -> bool:
    """Tell whether a batch is of the types it should be: whether it can be made so, a cell must not decide."""
    pairs = zip(map(_plain, types), kept, strict=True)
    return all(kind == wanted or pa.types.is_null(kind) or pa.types.is_nested(kind) for kind, wanted in pairs)


def _even(tables: Iterable[pa.Table], rows: int) -> Iterator[pa.RecordBatch]:
    """Cut a stream into batches of so many rows each, but for the last."""
    waiting: list[pa.Table] = []
    count = 0
    for table in tables:
        while count + table.num_rows >= rows:
            yield from pa.concat_tables([*waiting, table.slice(0, rows - count)]).combine_chunks().to_batches()
            table, waiting, count = table.slice(rows - count), [], 0
        if table.num_rows:
            waiting.append(table)
            count += table.num_rows
    if waiting:
        yield from pa.concat_tables(waiting).combine_chunks().to_batches()


def _spooled(
    name: str,
    held: list[pa.RecordBatch],
    rest: Iterator[pa.RecordBatch],
    types: pa.Schema,
    layout: Layout,
    limits: Limits,
) -> RowSource:
    """Write what has been read and what follows into a file, and map it."""
    with room_told():
        spool = Spool()
    try:
        with room_told():
            file = spool.nameless_file()
        with room_told(), file:  # which writes when it is closed, too
            _write(file, held, rest, types)
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return SpooledRows(name, mapping, spool, layout, limits)
    except BaseException:
        spool.close()
        raise


def _write(file: BinaryIO, held: list[pa.RecordBatch], rest: Iterator[pa.RecordBatch], types: pa.Schema) -> None:
    """Write an Arrow file; what is held is let go of."""
    with room_told():
        writer = pa.ipc.new_file(file, types)
        while held:
            writer.write_batch(held.pop(0))
    for batch in rest:  # which may fail in ways of its own
        with room_told():
            writer.write_batch(batch)
    with room_told():
        writer.close()
        file.flush()


class SpooledRows(ArrowRows):
    """Rows of a stream that are kept in a file of their own."""

    def __init__(self, name: str, mapping: mmap.mmap, spool: Spool, layout: Layout, limits: Limits) -> None:
        super().__init__(Path(name), mapping, layout, limits)
        self._spool = spool

    def _table(self, start: int, stop: int) -> pa.Table:
        if self._file is None:
            raise UnreadableFileError("{file!r} has been closed; its rows are gone.", file=self._path.name)
        return super()._table(start, stop)

    def close(self) -> None:
        """Let go of the copy; no row can be read any more."""
        with self._reading:
            self._file = self._held = None
            with suppress(BufferError):  # somebody still looks at rows: it goes with them
                self._mapping.close()
        self._spool.close()


class StreamRows(HeldRows):
    """Rows of a stream that are kept in memory."""

    def __init__(self, name: str, table: pa.Table, layout: Layout, limits: Limits) -> None:
        if not table.num_rows or not layout.count:
            what = "columns" if table.num_rows else "rows"
            raise UnreadableFileError("{file!r} holds no {what}.", file=name, what=what)

        def read() -> Reals:
            return np.ascontiguousarray(numbers_of(table.select(layout.columns), layout))

        super().__init__((table.num_rows, layout.count), layout.dtype, read)
        self.limits, self.left_out, self.person = limits, layout.left_out, layout.person
        self.names, self.boolean, self.levels = layout.names or None, layout.boolean, layout.levels
        self.whole, self.bounds, self._table = layout.whole, layout.bounds, table

    def read_ids(self, column: str) -> NDArray[np.intp]:
        """Tell the cells of a column apart."""
        cells = arrow_column(self._table.column(column))
        assert cells is not None  # of a type that can be compared, or the layout would have been refused
        return codes_of(cells)
