"""Tables whose rows are read on demand: one interface for files and memory maps.

A `RowSource` knows its shape and its column names from metadata alone and reads values only when rows are asked for.
`open_rows` opens a file by its suffix, and keeps what can be read once.  Every algorithm and estimator takes a source
wherever it takes an array.

A `PartitionedTable` is for rows that stay on other machines, as those of a Dask array: `partitioned` makes one of it.
`GatheredRows` brings them here, for methods that cannot do without.

Which columns are used is decided by the types that a file declares, or that a `Schema` declares for it, never by
values (`LeftOut` lists what was left out and why).  A cell without a number is NaN, a gap (`privspan.rows.gaps`): an
invalid value in one record gives a defined result, not an exception.  Faults of the file itself are an
`UnreadableFileError`, raised when it is opened wherever metadata can tell.  How rows of files are dealt into blocks
and pairs: docs/explanation/partitioning.md.
"""

from __future__ import annotations

from privspan.rows.arrays import MappedRows, mapped_rows
from privspan.rows.damage import UnreadableFileError
from privspan.rows.files.draft import draft_schema
from privspan.rows.files.opening import SUFFIXES, open_rows
from privspan.rows.files.schema import Column, Schema, read_schema
from privspan.rows.files.spool import LeftoverWarning
from privspan.rows.ids import id_codes, split_ids, without_ids
from privspan.rows.partitions import (
    GatheredRows,
    PartitionedTable,
    in_partitions,
    partition_rows,
    partitioned,
    partitioned_column,
)
from privspan.rows.source import RowPairs, RowSource
from privspan.rows.table import LeftOut, Table
from privspan.rows.windows import DealtRows, SelectedColumns, WindowedSource

__all__ = [
    "SUFFIXES",
    "Column",
    "DealtRows",
    "GatheredRows",
    "LeftOut",
    "LeftoverWarning",
    "MappedRows",
    "PartitionedTable",
    "RowPairs",
    "RowSource",
    "Schema",
    "SelectedColumns",
    "Table",
    "UnreadableFileError",
    "WindowedSource",
    "draft_schema",
    "id_codes",
    "in_partitions",
    "mapped_rows",
    "open_rows",
    "partition_rows",
    "partitioned",
    "partitioned_column",
    "read_schema",
    "split_ids",
    "without_ids",
]
