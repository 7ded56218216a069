"""AnnData's ``.h5ad`` files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import h5py

from privspan.rows.files.chunked import anndata_rows
from privspan.rows.files.schema import Schema
from privspan.rows.source import RowSource, UnreadableFileError


def open_h5ad(path: Path, columns: Sequence[str] | None, schema: Schema) -> RowSource:
    """Open the ``X`` of an AnnData file."""
    try:
        file = h5py.File(path, "r")
    except OSError:
        raise UnreadableFileError(f"`{path.name}` is not an HDF5 file, or is cut short.") from None
    return anndata_rows(path.name, file, columns, schema)
