"""Zarr stores: a two-dimensional array, or AnnData."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import zarr

from privspan.rows.files.chunked import anndata_rows, chunked_rows
from privspan.rows.files.schema import Schema
from privspan.rows.source import RowSource, UnreadableFileError


def open_zarr(path: Path, columns: Sequence[str] | None, schema: Schema) -> RowSource:
    """Open an array, or the ``X`` of an AnnData store, of Zarr format 2 or 3."""
    try:
        store = zarr.open(str(path), mode="r")
    except Exception:  # its errors depend on format and store, and have no common base class
        raise UnreadableFileError(f"`{path.name}` is not a Zarr array or group.") from None
    if isinstance(store, zarr.Group):
        return anndata_rows(path.name, store, columns, schema)
    if columns is not None or schema.columns is not None:
        raise UnreadableFileError(f"`{path.name}` has no column names; leave out `columns`.")
    return chunked_rows(path.name, store)
