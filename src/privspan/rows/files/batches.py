"""Whatever hands its rows out batch by batch: as one thing whose types are known before any row.

What counts is what an object can do, not which package it comes from, so that none is imported here but pyarrow.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from privspan._lib.errors import ParameterTypeError
from privspan._lib.identity import key_of
from privspan._lib.streams import native, packages_of
from privspan._lib.words import word_of
from privspan.rows.limits import LIMITS, Limits


@dataclass(frozen=True)
class Batches:
    """A table that is read once, from its first row to its last.

    Attributes
    ----------
    types : pyarrow.Schema
        Of all columns.
    read : callable
        Hands out Arrow record batches of the columns that it is given the names of, in the order of the table.  Where
        that can be, others are not even computed: a cell of one must not be able to break the reading off.
    """

    types: pa.Schema
    read: Callable[[Sequence[str]], Iterable[pa.RecordBatch]]


def batches_of(given: Any, limits: Limits = LIMITS) -> Batches:
    """Return what hands out batches as one thing; no row is looked at.

    Parameters
    ----------
    given
        A reader of Arrow batches, a dataset or a scanner of pyarrow, a lazy frame of polars, a frame of narwhals, a
        relation of DuckDB, a cursor of ADBC, or anything else that offers an Arrow stream; or `Batches`.
    limits : Limits, optional
    """
    if isinstance(given, Batches):
        return given
    given = native(given)
    kind = type(given)
    if _is_lazy(given):
        types = pa.table(sys.modules["polars"].DataFrame(schema=given.collect_schema())).schema
        return Batches(types, partial(_of_lazy, given, limits.stream_rows(len(types))))
    if hasattr(kind, "scanner"):
        return Batches(given.schema, partial(_of_dataset, given, limits.stream_rows(len(given.schema))))
    if hasattr(kind, "project"):  # a relation of DuckDB
        return _of_duckdb(given, limits.stream_rows(len(given.columns)))
    if "pandas" in packages_of(given) and hasattr(given, "iloc"):
        return _of_pandas(given, limits.stream_rows(given.shape[1]))
    reader = _reader(given)
    return Batches(reader.schema, partial(_of_reader, reader))


def _is_lazy(given: object) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(given, polars.LazyFrame)


def _of_lazy(frame: Any, rows: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Compute a lazy frame, by and by where its polars can do that."""
    frame = frame.select(columns)
    if hasattr(type(frame), "collect_batches"):
        frames = frame.collect_batches(chunk_size=rows, maintain_order=True, lazy=True)
    else:
        frames = [frame.collect()]
    for one in frames:
        yield from pa.table(one).to_batches()


def _of_dataset(dataset: Any, rows: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    ahead = {"batch_readahead": 1, "fragment_readahead": 1}  # and not far ahead
    yield from dataset.scanner(columns=columns, batch_size=rows, **ahead).to_reader()


def _of_duckdb(relation: Any, rows: int) -> Batches:
    """Return a relation; where names differ in capitals alone, which are one name to DuckDB, with all columns."""
    fields = zip(relation.columns, _relation_reader(relation.limit(0), rows).schema, strict=True)
    clear = len({name.lower() for name in relation.columns}) == len(relation.columns)

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        wanted = relation.project(", ".join(map(quoted_name, columns))) if clear else relation
        yield from _of_reader(_relation_reader(wanted, rows), columns)

    return Batches(pa.schema([field.with_name(name) for name, field in fields]), read)


def _relation_reader(relation: Any, rows: int) -> pa.RecordBatchReader:
    """Return a reader of a relation; as a stream it would be computed as a whole first."""
    newer = hasattr(type(relation), "to_arrow_reader")  # since DuckDB 1.5
    return (relation.to_arrow_reader if newer else relation.fetch_arrow_reader)(rows)


def _of_pandas(frame: Any, rows: int) -> Batches:
    """Return a frame by its dtypes alone: Arrow would look for the types of objects among their cells."""
    frame = frame.set_axis([str(name) for name in frame.columns], axis="columns")

    def column(at: int, part: slice) -> pa.Array:
        cells = frame.iloc[part, at]
        return pa.array(map(_said, cells), pa.string()) if cells.dtype == np.dtype(object) else pa.array(cells)

    def read(columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        places = [types.get_field_index(name) for name in columns]
        for start in range(0, len(frame), rows):
            part = slice(start, start + rows)
            yield pa.record_batch([column(at, part) for at in places], names=list(columns))

    kinds = [column(at, slice(0)).type for at in range(frame.shape[1])]
    types = pa.schema(list(zip(frame.columns, kinds, strict=True)))
    return Batches(types, read)


def _said(cell: object) -> str | None:
    """Return an object as text, equal ones as the same."""
    key = key_of(cell)
    return None if key is None else word_of(cell) or str(key)


def _of_reader(reader: pa.RecordBatchReader, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        yield batch.select(columns)


def quoted_name(name: str) -> str:
    """Return the name of a column or a table as SQL has it, whatever letters it holds."""
    return '"' + name.replace('"', '""') + '"'


def _reader(given: Any) -> pa.RecordBatchReader:
    """Return a reader of Arrow batches."""
    kind = type(given)
    if hasattr(kind, "read_next_batch"):
        return given
    for method in ("fetch_record_batch", "to_reader"):  # of a cursor; of a scanner or a table
        if hasattr(kind, method):
            return getattr(given, method)()
    if hasattr(kind, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(given)
    raise ParameterTypeError(
        "{path} must be a file, or hand out Arrow batches; got an object of type {kind}.", kind=kind.__name__
    )
