"""Whatever hands its rows out batch by batch: as one thing whose types are known before any row.

What counts is what an object can do, not which package it comes from, so that none is imported here but pyarrow.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from privspan._lib.errors import ParameterTypeError
from privspan._lib.streams import native
from privspan.rows.limits import LIMITS, Limits


@dataclass(frozen=True)
class Batches:
    """A table that is read once, from its first row to its last.

    Attributes
    ----------
    types : pyarrow.Schema
    given : object
        What its batches come from.
    rows : int
        In a batch, where that can be chosen.
    """

    types: pa.Schema
    given: Any
    rows: int

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Yield Arrow record batches of some columns, in the order of the table."""
        given, columns = self.given, list(columns)
        if _is_lazy(given):
            for frame in _collected(given.select(columns), self.rows):
                yield from pa.table(frame).to_batches()
        elif hasattr(type(given), "scanner"):  # a dataset, which need not read other columns, nor far ahead
            ahead = {"batch_readahead": 1, "fragment_readahead": 1}
            yield from given.scanner(columns=columns, batch_size=self.rows, **ahead).to_reader()
        else:
            for batch in given:
                yield batch.select(columns)


def batches_of(given: Any, limits: Limits = LIMITS) -> Batches:
    """Return what hands out batches as one thing; no row is looked at.

    Parameters
    ----------
    given
        A reader of Arrow batches, a dataset or a scanner of pyarrow, a lazy frame of polars, a frame of narwhals, a
        relation of DuckDB, a cursor of ADBC, or anything else that offers an Arrow stream.
    limits : Limits, optional
    """
    given = native(given)
    if _is_lazy(given):
        types = pa.table(sys.modules["polars"].DataFrame(schema=given.collect_schema())).schema
    elif hasattr(type(given), "scanner"):
        types = given.schema
    else:
        given = _reader(given, limits)
        types = given.schema
    return Batches(types, given, limits.stream_rows(len(types)))


def _is_lazy(given: object) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(given, polars.LazyFrame)


def _collected(frame: Any, rows: int) -> Iterable[Any]:
    """Yield the frames that a lazy one is computed to, by and by where its polars can do that."""
    if hasattr(type(frame), "collect_batches"):
        return frame.collect_batches(chunk_size=rows, maintain_order=True, lazy=True)  # type: ignore[no-any-return]
    return [frame.collect()]


def _reader(given: Any, limits: Limits) -> pa.RecordBatchReader:
    """Return a reader of Arrow batches."""
    kind = type(given)
    if hasattr(kind, "read_next_batch"):
        return given
    if hasattr(kind, "to_arrow_reader"):  # of DuckDB: as a stream it would be computed as a whole first
        return given.to_arrow_reader(limits.stream_rows(len(getattr(given, "columns", ()))))
    if hasattr(kind, "fetch_record_batch"):  # of older ones, and of a cursor
        return given.fetch_record_batch()
    if hasattr(kind, "to_reader"):
        return given.to_reader()
    if hasattr(kind, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(given)
    raise ParameterTypeError(
        "{path} must be a file, or hand out Arrow batches; got an object of type {kind}.", kind=kind.__name__
    )
