"""Sources of Arrow tables: how columns become rows of numbers, and Arrow/Feather files.

A file is read by windows whose lengths follow from its numbers of rows and columns alone: small batches (or row
groups) together, large ones piece by piece.  Where batches end may depend on what records hold, as with writers that
close them after a number of bytes, so which rows go together does not follow it.
"""

from __future__ import annotations

import mmap
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from privspan._lib.arrays import Reals
from privspan._lib.distinct import Distinct, arrow_column
from privspan._lib.frames import arrow_kind, arrow_numbers
from privspan._lib.identity import codes_of
from privspan._lib.words import words_in
from privspan.rows.damage import UnreadableFileError, damage_told
from privspan.rows.files.columns import choose_columns, declared_bounds, encoded_columns
from privspan.rows.files.schema import Column, Schema
from privspan.rows.levels import indicators
from privspan.rows.limits import Limits
from privspan.rows.source import RowSource
from privspan.rows.table import LeftOut
from privspan.rows.windows import WindowedSource, window_edges


@dataclass(frozen=True)
class Layout:
    """What the schema says about the rows."""

    columns: list[str]  # of the file that are read
    width: int | None  # d, for one column of lists; None where every column is one of the d
    dtype: np.dtype  # float32 where that holds every value of the columns' types, else float64
    left_out: tuple[LeftOut, ...]
    person: str | None = None  # the column with the person ids
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # words of the columns that are categories
    names: tuple[str, ...] = ()  # of the d, where every column has a name
    boolean: NDArray[np.bool_] | None = None  # which of the d are 0 and 1 by declaration
    whole: NDArray[np.bool_] | None = None  # which of the d are whole numbers by declaration
    bounds: NDArray[np.float64] | None = None  # the ranges that the schema declares, (2, d), NaN where it does not

    @property
    def count(self) -> int:
        """Return d."""
        return len(self.names) if self.width is None else self.width


def layout_of(file: str, types: pa.Schema, wanted: Sequence[str] | None, schema: Schema) -> Layout:
    """Choose columns of numbers, or one column of lists of numbers where there are no others or it was asked for.

    `types` is the Arrow schema of the file, `schema` what the caller declares.
    """
    layout = _chosen(file, types, wanted, schema)
    if schema.person is not None and _empty(types.field(schema.person).type) is None:
        raise UnreadableFileError(
            "Column {column!r} of {file!r}, which should hold the person ids, is of a type whose cells cannot be "
            "compared.",
            column=schema.person,
            file=file,
        )
    return replace(layout, person=schema.person)


def _empty(kind: pa.DataType) -> Distinct | None:
    return arrow_column(pa.nulls(0, kind))


def _chosen(file: str, types: pa.Schema, wanted: Sequence[str] | None, schema: Schema) -> Layout:
    kinds = [(field.name, arrow_kind(field.type).other) for field in types]
    lists = [field.name for field in types if _is_number_list(field.type) and _may_be_list(field.name, schema)]
    if wanted is not None and len(wanted) == 1 and wanted[0] in lists:
        choose_columns(file, kinds, None, schema)  # refuses what the schema says of other columns as ever
        others = [LeftOut(name, "not asked for") for name, _ in kinds]
        return _list_layout(file, types.field(wanted[0]), schema, others)
    columns, left_out = choose_columns(file, kinds, wanted, schema)
    if not columns and len(lists) == 1:
        return _list_layout(file, types.field(lists[0]), schema, left_out)
    if not columns:
        raise UnreadableFileError("{file!r} has no column of numbers to use; name one with {columns}.", file=file)
    if schema.width is not None:
        raise UnreadableFileError("{file!r} is read without a column of lists; leave out {width}.", file=file)
    return _encoded_layout(file, types, columns, left_out, schema)


def _encoded_layout(
    file: str, types: pa.Schema, columns: list[str], left_out: tuple[LeftOut, ...], schema: Schema
) -> Layout:
    """Lay out columns of numbers, and of categories that become columns of 0 and 1."""
    kinds = {name: types.field(name).type for name in columns}
    levels = {name: words for name, words in schema.levels.items() if name in kinds}
    for name in levels:
        if words_in(_empty(kinds[name])) is None:
            what = "which the schema calls a category, holds neither text nor whole numbers."
            raise UnreadableFileError("Column {name!r} of {file!r}, {what}", name=name, file=file, what=what)
    names, boolean = encoded_columns(columns, schema)
    counts = [len(levels.get(name, ("",))) for name in columns]
    boolean |= np.repeat([pa.types.is_boolean(kind) for kind in kinds.values()], counts)
    whole = np.repeat([pa.types.is_integer(kind) and name not in levels for name, kind in kinds.items()], counts)
    dtype = np.dtype(np.float64) if levels else _float_type(kinds.values())
    bounds = declared_bounds(columns, schema)
    return Layout(columns, None, dtype, left_out, None, levels, names, boolean, whole, bounds)


def _may_be_list(name: str, schema: Schema) -> bool:
    return schema.columns is None or (name in schema.columns and schema.columns[name].type == "list")


def _list_layout(file: str, field: pa.Field, schema: Schema, others: Iterable[LeftOut]) -> Layout:
    """Lay out one column of lists, whose width is declared by its type or by the caller, never by the lists."""
    width = schema.width_of(field.name)
    if pa.types.is_fixed_size_list(field.type):
        if width not in (None, field.type.list_size):
            held = f"lists of {field.type.list_size} numbers"
            template = "Column {column!r} of {file!r} holds {held}, and {width} says {given}."
            raise UnreadableFileError(template, column=field.name, file=file, held=held, given=width)
        width = field.type.list_size
    if width is None:
        raise UnreadableFileError(
            "Column {column!r} of {file!r} holds lists whose type does not say how long they are; say it with "
            "{width}, or write them as lists of fixed size.",
            column=field.name,
            file=file,
        )
    left_out = tuple(other for other in others if other.name != field.name)
    return Layout([field.name], width, _float_type([field.type.value_type]), left_out)


def declared_column(kind: pa.DataType) -> tuple[Column, str | None]:
    """Return what a schema would say of a column of this type, with a remark."""
    reason = arrow_kind(kind).other
    if reason in (None, "text"):
        return Column(reason or "number"), None
    if not _is_number_list(kind):
        return Column("skip"), reason
    if pa.types.is_fixed_size_list(kind):
        return Column("list", kind.list_size or None), None
    return Column("list"), "to use it, add a line: width = 64, or however long its lists are"


def _is_number_list(kind: pa.DataType) -> bool:
    is_list = pa.types.is_fixed_size_list(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)
    return is_list and arrow_kind(kind.value_type).other is None


def _float_type(kinds: Iterable[pa.DataType]) -> np.dtype:
    """Return float32 if that holds every value of these types (in memory it must be declared), else float64."""
    small = (pa.float32(), pa.float16(), pa.bool_())
    narrow = all(kind in small or (pa.types.is_integer(kind) and kind.bit_width <= 16) for kind in kinds)
    return np.dtype(np.float32 if narrow else np.float64)


class TableRows(WindowedSource):
    """Rows of an opened file of Arrow columns, whose parts have these `lengths`."""

    def __init__(self, path: Path, file: Any, layout: Layout, lengths: Sequence[int], limits: Limits) -> None:
        super().__init__(limits)
        self._path, self._file, self._layout = path, file, layout
        n, d = sum(lengths), layout.count
        if n < 1 or not d:
            raise UnreadableFileError("{file!r} holds no {what}.", file=path.name, what="columns" if n else "rows")
        self.shape, self.dtype, self.left_out = (int(n), int(d)), layout.dtype, layout.left_out
        self.names, self.boolean, self.levels = layout.names or None, layout.boolean, layout.levels
        self.whole, self.bounds = layout.whole, layout.bounds
        self.edges = window_edges(self.shape[0], limits.window_rows(self.shape[1], self.dtype.itemsize))
        self._part_edges = np.concatenate([[0], np.cumsum(lengths)])
        self.person = layout.person

    def read_ids(self, column: str) -> NDArray[np.intp]:
        """Tell the cells of a column apart."""
        return codes_of(self._distinct(column))

    @abstractmethod
    def _column(self, name: str) -> pa.ChunkedArray:
        """Read one column, of whatever type."""

    def _distinct(self, name: str) -> Distinct:
        """Read a column whose cells can be compared."""
        with damage_told(self._path.name, "is damaged: some of its rows cannot be read."):
            column = arrow_column(self._column(name))
        if column is None or len(column.places) != self.shape[0]:
            raise UnreadableFileError("Column {name!r} of {file!r} cannot be read.", name=name, file=self._path.name)
        return column

    @abstractmethod
    def _table(self, start: int, stop: int) -> pa.Table:
        """Read the Arrow columns of consecutive rows."""

    def _part_of(self, row: int) -> int:
        """Return which part of the file a row is in."""
        return int(np.searchsorted(self._part_edges, row, side="right")) - 1

    def _load(self, window: int) -> Reals:
        start, stop = self.edges[window : window + 2].tolist()
        with damage_told(self._path.name, "is damaged: some of its rows cannot be read."):
            table = self._table(start, stop)
        if table.num_rows != stop - start:
            raise UnreadableFileError("{file!r} holds fewer rows than its metadata say.", file=self._path.name)
        return numbers_of(table, self._layout)


def numbers_of(table: pa.Table, layout: Layout) -> Reals:
    """Turn Arrow columns into rows (rows, d); a missing cell, or a list of another length, becomes NaN."""
    if layout.width is not None:
        chunks = [_list_rows(chunk, layout.dtype, layout.width) for chunk in table.column(0).chunks]
        return np.concatenate([np.empty((0, layout.width), dtype=layout.dtype), *chunks])
    if layout.levels:
        return np.hstack([_encoded(name, table.column(name), layout) for name in layout.columns])
    columns = np.empty((table.num_columns, table.num_rows), dtype=layout.dtype)
    for index, column in enumerate(table.columns):
        columns[index] = arrow_numbers(column, layout.dtype)
    return columns.T


def _encoded(name: str, column: pa.ChunkedArray, layout: Layout) -> Reals:
    """Return the columns of numbers that one of the file becomes, (rows, columns)."""
    words = words_in(arrow_column(column)) if name in layout.levels else None
    return arrow_numbers(column, layout.dtype)[:, None] if words is None else indicators(words, layout.levels[name])


def _list_rows(lists: pa.Array, dtype: np.dtype, width: int) -> Reals:
    """Put lists into rows; those of another length, missing ones included, become rows of NaN."""
    right = np.asarray(pc.fill_null(pc.list_value_length(lists), -1)) == width
    if right.all():
        return arrow_numbers(lists.flatten(), dtype).reshape(-1, width)
    rows = np.full((len(lists), width), np.nan, dtype=dtype)
    rows[right] = arrow_numbers(lists.filter(pa.array(right)).flatten(), dtype).reshape(-1, width)
    return rows


class ArrowRows(TableRows):
    """Rows of an Arrow or Feather file, whose record batches are mapped into memory."""

    def __init__(self, path: Path, mapping: mmap.mmap, layout: Layout, limits: Limits) -> None:
        self._mapping = mapping
        # One column is enough to learn how long the batches are: those of compressed files are unpacked for it.
        first = self._opened(layout.columns[:1])
        lengths = [first.get_batch(part).num_rows for part in range(first.num_record_batches)]
        super().__init__(path, self._opened(layout.columns), layout, lengths, limits)

    def _opened(self, columns: Sequence[str]) -> Any:
        """Open the file for some of its columns."""
        return opened_arrow(self._mapping, columns)

    def _column(self, name: str) -> pa.ChunkedArray:
        file = self._opened([name])
        return pa.Table.from_batches([file.get_batch(part) for part in range(file.num_record_batches)]).column(0)

    def _table(self, start: int, stop: int) -> pa.Table:
        parts = range(self._part_of(start), self._part_of(stop - 1) + 1)
        batches = [self._file.get_batch(part).select(self._layout.columns) for part in parts]
        return pa.Table.from_batches(batches).slice(start - self._part_edges[parts.start], stop - start)

    def _load(self, window: int) -> Reals:
        rows = super()._load(window)
        if hasattr(self._mapping, "madvise"):  # not on Windows; a pass must not count as memory of this process
            self._mapping.madvise(mmap.MADV_DONTNEED)
        return rows


def opened_arrow(mapping: mmap.mmap, columns: Sequence[str] | None = None) -> Any:
    """Open a mapped Arrow file, for all of its columns or some."""
    file = pa.ipc.open_file(pa.py_buffer(mapping))
    if columns is None:
        return file
    places = [file.schema.get_field_index(name) for name in columns]
    return pa.ipc.open_file(pa.py_buffer(mapping), options=pa.ipc.IpcReadOptions(included_fields=places))


def open_arrow(path: Path, columns: Sequence[str] | None, schema: Schema, limits: Limits) -> RowSource:
    """Open an Arrow file (also called Feather version 2)."""
    with damage_told(path.name, "is not an Arrow file, or is cut short; write it as Feather version 2."):
        with path.open("rb") as file:
            mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        layout = layout_of(path.name, opened_arrow(mapping).schema, columns, schema)
        return ArrowRows(path, mapping, layout, limits)
