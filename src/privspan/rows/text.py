"""CSV files: no schema, so what a column holds is decided by a majority or by the caller."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pcsv
from numpy.typing import NDArray

from privspan.rows._columns import choose_columns
from privspan.rows._source import RowSource, UnreadableFileError
from privspan.rows.arrays import HeldRows

__all__ = ["open_csv"]

_ROWS_LOOKED_AT = 1000
_BLOCK_BYTES = 2**24
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$"
_TRUE, _FALSE = pa.array(["true"]), pa.array(["false"])


def open_csv(path: Path, columns: Sequence[str] | None) -> RowSource:
    """Read a CSV file with a line of column names into memory, in float64.

    Every cell is read as text and turned into a number on its own; what is not one becomes NaN.
    """
    try:
        batches = _batches(path)
        first = next(batches, None)
        if first is None or first.num_rows == 0:
            raise UnreadableFileError(f"`{path.name}` holds no rows.")
        names = first.schema.names
        if all(_is_number(name) for name in names):
            raise UnreadableFileError(f"`{path.name}` must begin with a line of column names.")
        used, left_out = choose_columns(path.name, _kinds(first, columns), columns)
        if not used:
            raise UnreadableFileError(f"`{path.name}` has no column of numbers to use; name one with `columns`.")
        table = np.concatenate([_rows(first, used), *(_rows(batch, used) for batch in batches)])
    except (pa.ArrowException, OSError):
        message = f"`{path.name}` is not a CSV file whose rows all have as many cells as its first line has names."
        raise UnreadableFileError(message) from None
    source = HeldRows((len(table), len(used)), table.dtype, lambda: table)
    source.names, source.left_out = tuple(used), left_out
    return source


def _batches(path: Path) -> Iterator[Any]:
    """Read the file block by block, every column as text."""
    with pcsv.open_csv(path, read_options=pcsv.ReadOptions(block_size=_BLOCK_BYTES)) as reader:
        names = reader.schema.names
    text = pcsv.ConvertOptions(
        column_types={name: pa.string() for name in names}, strings_can_be_null=False, check_utf8=False
    )
    with pcsv.open_csv(path, read_options=pcsv.ReadOptions(block_size=_BLOCK_BYTES), convert_options=text) as reader:
        yield from reader


def _kinds(batch: Any, wanted: Sequence[str] | None) -> list[tuple[str, str | None]]:
    """Tell which columns hold numbers: those asked for, or those where most filled cells do."""
    if wanted is not None:
        return [(name, None) for name in batch.schema.names]
    head = batch.slice(0, _ROWS_LOOKED_AT)
    return [(name, _kind(head.column(index))) for index, name in enumerate(head.schema.names)]


def _kind(column: Any) -> str | None:
    text = _trimmed(column)
    filled = pc.sum(pc.greater(pc.binary_length(text), 0)).as_py() or 0
    numbers = int(np.isfinite(_numbers(column)).sum())
    return None if numbers and 2 * numbers > filled else "text"


def _rows(batch: Any, names: Sequence[str]) -> NDArray[np.float64]:
    return np.column_stack([_numbers(batch.column(batch.schema.get_field_index(name))) for name in names])


def _numbers(column: Any) -> NDArray[np.float64]:
    """Turn text into float64, cell by cell; "true" and "false" count as 1 and 0, other text as NaN."""
    text = _trimmed(column)
    numeric = pc.if_else(pc.match_substring_regex(text, _NUMBER), text, pa.scalar(None, pa.string()))
    lower = pc.ascii_lower(text)
    truth = pc.if_else(pc.is_in(lower, _TRUE), 1.0, pc.if_else(pc.is_in(lower, _FALSE), 0.0, np.nan))
    return np.asarray(pc.coalesce(pc.cast(numeric, pa.float64()), truth), dtype=np.float64)


def _trimmed(column: Any) -> Any:
    return pc.ascii_trim_whitespace(column)


def _is_number(name: str) -> bool:
    return bool(np.isfinite(_numbers(pa.array([name]))[0]))
