"""Dask arrays and dataframes as tables in partitions, after checks on metadata alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

import dask
import numpy as np

from privspan._lib import checks
from privspan._lib.arrays import Reals
from privspan._lib.errors import Parameter, ParameterError, ParameterTypeError
from privspan._lib.frames import cell_numbers, dtype_kind, float_type, pandas_numbers
from privspan.backends.dask_place import DaskPlace
from privspan.rows import PartitionedTable
from privspan.rows.place import Part
from privspan.rows.table import LeftOut

Collection: TypeAlias = Any
"""A Dask array, dataframe, series or index."""


def open_table(X: Collection, lengths: Sequence[int] | None = None) -> PartitionedTable:
    """Open a Dask array (n, d) or dataframe; no value is looked at.

    The `lengths` of the partitions are given where they have been counted, which makes chunks of unknown size known.

    An array is made of NumPy blocks with known chunks, each holding whole rows.  Of a dataframe all columns of
    numbers are used, and the lengths of its partitions are counted, once.  The table is float32 if that is the
    declared type of the array, or of all columns that are used; else float64.  A chunk of another type is read cell
    by cell, and what is not a real number is NaN.
    """
    kind = type(X).__name__
    if kind == "Array":
        return _open_array(X, lengths=lengths)
    if kind == "DataFrame":
        return _open_frame(X, lengths)
    raise ParameterTypeError("{X} must be a Dask array or a Dask dataframe; got {kind}.", kind=kind)


def open_column(y: Collection, lengths: Sequence[int] | None = None) -> PartitionedTable:
    """Open a Dask array (n,), or a Dask series by the rules of a dataframe, as a table of one column."""
    kind = type(y).__name__
    if kind == "Series":
        declared = dtype_kind(y.dtype)
        if declared.other is not None:
            raise ParameterTypeError("{y} must be real numbers; got {other}.", other=declared.other)
        return _frame_parts("y", y.to_frame(), float_type([declared]), lengths)
    if kind != "Array" or y.ndim != 1:
        raise ParameterTypeError("{y} must be a one-dimensional Dask array or a Dask series; got {kind}.", kind=kind)
    return _open_array(y[:, None], "y", lengths)


def open_ids(ids: Collection) -> list[Part]:
    """Return the partitions of a Dask array (n,), series or index, each as its package holds it."""
    kind = type(ids).__name__
    if kind not in ("Array", "Series", "Index") or ids.ndim != 1:
        what = "a one-dimensional Dask array or a Dask series"
        raise ParameterTypeError("{person} must be {what}; got {kind}.", what=what, kind=kind)
    return _chunks(ids)


def _chunks(collection: Collection) -> list[Part]:
    """Return the chunks of an array, or the partitions of a dataframe."""
    chunks = collection.to_delayed()
    if not isinstance(chunks, np.ndarray):
        return list(chunks)
    if any(chunk.key not in chunk.dask for chunk in chunks.flat):  # Dask forgets chunks that are on workers already
        chunks = collection.to_delayed(optimize_graph=False)
    return list(chunks.flat)


def counted(X: Collection) -> tuple[int, ...]:
    """Return how many rows each partition has, from the metadata of an array where they say so."""
    sizes = tuple(X.chunks[0]) if type(X).__name__ == "Array" else (math.nan,)
    return _counted(_chunks(X)) if any(map(math.isnan, sizes)) else tuple(map(int, sizes))


def _counted(chunks: Sequence[Part]) -> tuple[int, ...]:
    return tuple(map(int, dask.compute(*(dask.delayed(_rows_of)(chunk) for chunk in chunks))))


def _rows_of(chunk: Part) -> int:
    shape = getattr(chunk, "shape", None)
    return len(chunk) if shape is None else int(shape[0]) if len(shape) else 0


def _open_array(X: Collection, name: str = "X", lengths: Sequence[int] | None = None) -> PartitionedTable:
    if X.ndim != 2:
        raise ParameterError(
            "{name} must be two-dimensional; got {ndim} dimension(s).", name=Parameter(name), ndim=X.ndim
        )
    if any(math.isnan(length) for length in (*(X.chunks[0] if lengths is None else ()), *X.chunks[1])):
        told = "if they do not depend on values, call `compute_chunk_sizes()` first"
        raise ParameterError("{name} must have chunks of known size; {told}.", name=Parameter(name), told=told)
    if X.numblocks[1] != 1:
        raise ParameterError(
            "{name} must have whole rows in each chunk: use `rechunk({{1: -1}})`.", name=Parameter(name)
        )
    if not isinstance(X._meta, np.ndarray) or isinstance(X._meta, np.ma.MaskedArray):
        template = "{name} must be made of plain NumPy arrays; its chunks are {kind}."
        raise ParameterTypeError(template, name=Parameter(name), kind=type(X._meta).__name__)
    checks.real_entries(np.dtype(X.dtype), name=name)
    dtype, lengths = float_type([dtype_kind(np.dtype(X.dtype))]), counted(X) if lengths is None else lengths
    return _table(name, DaskPlace(X), int(X.shape[1]), _chunks(X), lengths, dtype)


def _open_frame(X: Collection, lengths: Sequence[int] | None) -> PartitionedTable:
    chosen, schema = _numbers_of(X)
    return replace(_frame_parts("X", X[chosen], schema.dtype, lengths), names=schema.names, left_out=schema.left_out)


def open_with_ids(
    X: Collection, rest: Collection, column: Collection
) -> tuple[PartitionedTable, list[Part], tuple[int, ...]]:
    """Open the rest of a dataframe beside a column of it; return the partitions of both, and all their lengths.

    Both are taken from the same partitions, computed once: should the rows of one come in another order the next
    time, so do the ids.  A column by itself may even be read in other partitions than all of a file.  The partitions
    of the column are the empty ones too.
    """
    chosen, schema = _numbers_of(rest)
    frame = X[[*chosen, column.name]]
    place, chunks = DaskPlace(frame), _frame_chunks(frame)
    lengths = _counted(chunks)
    table = _table("X", place, len(chosen), place.map(_but_last, chunks), lengths, schema.dtype)
    table = replace(table, names=schema.names, left_out=schema.left_out)
    return table, place.map(_last, chunks), lengths


def _frame_chunks(frame: Collection) -> list[Part]:
    """Return the partitions of a dataframe, each with its columns by name: Dask may leave them as they are."""
    return DaskPlace(frame).map(partial(_by_name, list(frame.columns)), _chunks(frame))


def _by_name(labels: list[object], frame: Part) -> Part:
    if len(labels) == 1 or list(frame.columns) == labels:
        return frame
    if not {*labels} <= {*frame.columns}:
        raise _other_than_declared("X", len(labels))
    return frame[labels]


def _but_last(frame: Part) -> Part:
    return frame.iloc[:, :-1]


def _last(frame: Part) -> Part:
    return frame.iloc[:, -1]


@dataclass(frozen=True)
class _Schema:
    """What is used of a dataframe, and what is not."""

    names: tuple[str, ...]
    left_out: tuple[LeftOut, ...]
    dtype: np.dtype


def _numbers_of(X: Collection) -> tuple[list[object], _Schema]:
    """Return the labels of the columns of numbers, by declared type."""
    kinds = [(str(name), dtype_kind(dtype)) for name, dtype in X.dtypes.items()]
    checks.distinct_names([name for name, _ in kinds])
    names = tuple(name for name, kind in kinds if kind.other is None)
    left_out = tuple(LeftOut(name, kind.other) for name, kind in kinds if kind.other is not None)
    if not names:
        raise ParameterError("{X} must have a column of numbers; it has none.")
    used = set(names)
    dtype = float_type(kind for name, kind in kinds if name in used)
    return [name for name in X.columns if str(name) in used], _Schema(names, left_out, dtype)


def _frame_parts(name: str, frame: Collection, dtype: np.dtype, lengths: Sequence[int] | None) -> PartitionedTable:
    """Return the partitions of a dataframe of numbers, after counting their rows where nobody has."""
    lengths = counted(frame) if lengths is None else lengths
    return _table(name, DaskPlace(frame), int(frame.shape[1]), _frame_chunks(frame), lengths, dtype)


def _table(
    name: str, place: DaskPlace, d: int, chunks: list[Part], lengths: Sequence[int], dtype: np.dtype
) -> PartitionedTable:
    if len(chunks) != len(lengths):
        raise ParameterError("{name} must be in the same partitions as the others.", name=Parameter(name))
    parts = place.map(partial(_checked, name, d, dtype), chunks, place.send(lengths))
    return PartitionedTable(place, parts, tuple(lengths), d, dtype)


def _checked(name: str, d: int, dtype: np.dtype, chunk: Part, length: int) -> Reals:
    """Return a chunk in the type of the table, if it has the shape that the metadata promise.

    Its own type is not looked at: a single record may have decided it.
    """
    rows = None
    if getattr(chunk, "shape", None) == (length, d):
        is_frame = hasattr(chunk, "iloc")
        columns = [pandas_numbers(chunk.iloc[:, index], dtype) for index in range(d if is_frame else 0)]
        rows = np.column_stack(columns) if is_frame else cell_numbers(chunk, dtype)
    if rows is None or rows.shape != (length, d):
        raise _other_than_declared(name, d)
    return rows


def _other_than_declared(name: str, d: int) -> ParameterError:
    what = f"rows of {d} real numbers, as many as its metadata say"
    return ParameterError("A partition of {name} must be {what}; it is not.", name=Parameter(name), what=what)
