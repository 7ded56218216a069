"""Parquet files, read as one stream of rows, from the row group in which they begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from privspan.rows.damage import damage_told
from privspan.rows.files.schema import Schema
from privspan.rows.files.tables import Layout, TableRows, layout_of
from privspan.rows.limits import Limits
from privspan.rows.source import RowSource


class ParquetRows(TableRows):
    """Rows of a Parquet file."""

    def __init__(self, path: Path, file: Any, layout: Layout, lengths: Sequence[int], limits: Limits) -> None:
        super().__init__(path, file, layout, lengths, limits)
        self._stream: Iterator[Any] = iter(())
        self._at: int | None = None  # the row that comes next in the stream
        self._rest: Any = None  # what the last batch of the stream held beyond the last rows

    def _column(self, name: str) -> Any:
        return pq.ParquetFile(self._path).read(columns=[name]).column(0)

    def _table(self, start: int, stop: int) -> Any:
        """Go on where the stream stands, or begin anew with a row group."""
        group = self._part_of(start)
        if self._at is None or not self._part_edges[group] <= self._at <= start:
            later = range(group, len(self._part_edges) - 1)
            self._stream = self._file.iter_batches(
                batch_size=stop - start, row_groups=list(later), columns=self._layout.columns
            )
            self._rest, self._at = None, int(self._part_edges[group])
        at, self._at = self._at, None  # lost, should reading fail
        while at < start:
            at += self._next_rows(min(start - at, stop - start)).num_rows
        table = self._next_rows(stop - start)
        self._at = at + table.num_rows
        return table.select(self._layout.columns)

    def _next_rows(self, rows: int) -> Any:
        """Return the next rows of the stream, however its batches fall; fewer at its end."""
        held = [] if self._rest is None else [self._rest]
        while sum(table.num_rows for table in held) < rows:
            batch = next(self._stream, None)
            if batch is None:
                break
            held.append(pa.Table.from_batches([batch]))
        if not held:
            raise pa.ArrowInvalid("The file ends early.")
        table = pa.concat_tables(held)
        self._rest = table.slice(rows) if table.num_rows > rows else None
        return table.slice(0, rows)


def open_parquet(path: Path, columns: Sequence[str] | None, schema: Schema, limits: Limits) -> RowSource:
    """Open a Parquet file; its footer is at its end, so a file that is cut short is refused here."""
    with damage_told(path.name, "is not a Parquet file, or is cut short; write it again."):
        file = pq.ParquetFile(path, buffer_size=limits.buffer_bytes)
        layout = layout_of(path.name, file.schema_arrow, columns, schema)
    lengths = [file.metadata.row_group(index).num_rows for index in range(file.num_row_groups)]
    return ParquetRows(path, file, layout, lengths, limits)
