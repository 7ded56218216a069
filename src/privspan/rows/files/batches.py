"""Whatever hands its rows out batch by batch: as one reader of Arrow batches, whose types are known before any row.

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


@dataclass(frozen=True)
class Batches:
    """A table that can be read once.

    Attributes
    ----------
    name : str
        What messages call it.
    types : pyarrow.Schema
    given : object
        As it was handed in.
    """

    name: str
    types: Any
    given: Any

    def read(self, columns: Sequence[str], rows: int) -> Iterator[Any]:
        """Yield Arrow record batches of some columns, in the order of the table, about so many rows at a time."""
        given, columns = self.given, list(columns)
        if _is_lazy(given):
            for frame in _collected(given.select(columns), rows):
                yield from pa.table(frame).to_batches()
        elif hasattr(given, "scanner"):  # a dataset, which need not read the other columns, nor many batches ahead
            ahead = {"batch_readahead": 1, "fragment_readahead": 1}
            yield from given.scanner(columns=columns, batch_size=rows, **ahead).to_reader()
        else:
            for batch in given:
                yield batch.select(columns)


def batches_of(given: Any, *, name: str | None = None, rows: int = 2**16) -> Batches:
    """Return what hands out batches as one thing, without reading a row where that can be.

    Parameters
    ----------
    given
        A reader of Arrow batches, a dataset or a scanner of pyarrow, a lazy frame of polars, a frame of narwhals, a
        relation of DuckDB, a cursor of ADBC, or anything else that offers an Arrow stream.
    name : str, optional
        What messages call it; its type by default.
    rows : int
        In a batch, where that can be chosen.
    """
    given = native(given)
    name = type(given).__name__ if name is None else name
    if _is_lazy(given):
        return Batches(name, pa.table(given.collect_schema().to_frame()).schema, given)
    if hasattr(type(given), "scanner"):
        return Batches(name, given.schema, given)
    reader = _reader(given, rows)
    return Batches(name, reader.schema, reader)


def _is_lazy(given: Any) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(given, polars.LazyFrame)


def _collected(frame: Any, rows: int) -> Iterable[Any]:
    """Yield the frames that a lazy one is computed to, by and by where its polars can do that."""
    if hasattr(type(frame), "collect_batches"):
        return frame.collect_batches(chunk_size=rows, maintain_order=True, lazy=True)  # type: ignore[no-any-return]
    return [frame.collect()]


def _reader(given: Any, rows: int) -> Any:
    """Return a reader of Arrow batches."""
    kind = type(given)
    if hasattr(kind, "read_next_batch"):
        return given
    if hasattr(kind, "to_arrow_reader"):  # of DuckDB: its stream would be computed as a whole first
        return given.to_arrow_reader(rows)
    if hasattr(kind, "fetch_record_batch"):  # of older ones, and a cursor
        return given.fetch_record_batch()
    if hasattr(kind, "to_reader"):
        return given.to_reader()
    if hasattr(kind, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(given)
    raise ParameterTypeError(
        "{path} must be a file or hand out Arrow batches; got an object of type {kind}.", kind=kind.__name__
    )
