"""Chunked stores (Zarr, HDF5), read by runs of rows, and AnnData's layout in them: ``X`` dense or CSR."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan.rows.arrays import check_numbers
from privspan.rows.compressed import rows_inside
from privspan.rows.derived import SelectedColumns
from privspan.rows.files.columns import choose_columns
from privspan.rows.files.schema import Schema
from privspan.rows.source import RowSource, UnreadableFileError, WindowedSource, window_edges, window_rows

_SPARSE_WINDOW = 4096  # rows; fixed, because how many entries they store is private
_READING_FAILED = (OSError, ValueError, KeyError, IndexError, RuntimeError)


class ChunkedRows(WindowedSource):
    """Rows of a two-dimensional chunked array.

    Parameters
    ----------
    file : str
        Name, for messages.
    array
        With ``shape``, ``dtype``, ``chunks`` and slices.
    """

    def __init__(self, file: str, array: Any) -> None:
        super().__init__()
        self._file, self._array = file, array
        self.shape, self.dtype = (int(array.shape[0]), int(array.shape[1])), np.dtype(array.dtype)
        grain = int(array.chunks[0]) if array.chunks else 1
        self.edges = window_edges(self.shape[0], window_rows(self.shape[1], self.dtype.itemsize), grain)

    def _load(self, window: int) -> NDArray[Any]:
        return np.asarray(_read(self._file, self._array, *self.edges[window : window + 2].tolist()))


class CompressedRows(WindowedSource):
    """Rows of a CSR matrix stored as three arrays.

    Parameters
    ----------
    file : str
        Name, for messages.
    group
        Maps "data", "indices" and "indptr" to arrays with slices.
    shape : (n, d)
    """

    is_sparse = True

    def __init__(self, file: str, group: Any, shape: tuple[int, int]) -> None:
        super().__init__()
        self._file, self._group = file, group
        self.shape = shape
        self.dtype = np.result_type(group["data"].dtype, np.float32)  # has a NaN, whether or not one is needed
        self.edges = window_edges(shape[0], _SPARSE_WINDOW)

    def _load(self, window: int) -> Any:
        start, stop = self.edges[window : window + 2].tolist()
        starts = np.asarray(_read(self._file, self._group["indptr"], start, stop + 1), dtype=np.int64)
        if (np.diff(starts) < 0).any() or starts[0] < 0 or starts[-1] > self._group["data"].shape[0]:
            raise _damaged(self._file)
        first, last = int(starts[0]), int(starts[-1])
        data = np.asarray(_read(self._file, self._group["data"], first, last)).astype(self.dtype, copy=False)
        columns = np.asarray(_read(self._file, self._group["indices"], first, last))
        return rows_inside(data, columns, starts - first, (stop - start, self.shape[1]))


def _read(file: str, array: Any, start: int, stop: int) -> Any:
    try:
        rows = array[start:stop]
    except _READING_FAILED:
        raise _damaged(file) from None
    if len(rows) != stop - start:
        raise _damaged(file)
    return rows


def _damaged(file: str) -> UnreadableFileError:
    return UnreadableFileError(f"`{file}` is damaged: some of its rows cannot be read.")


def chunked_rows(file: str, array: Any) -> RowSource:
    """Return a source for an array, after checks on its shape and dtype."""
    check_numbers(file, array.shape, np.dtype(array.dtype))
    return ChunkedRows(file, array)


def anndata_rows(file: str, group: Any, columns: Sequence[str] | None, schema: Schema) -> RowSource:
    """Return a source for the ``X`` of an AnnData store, with the names of its variables as column names."""
    if "X" not in group:
        raise UnreadableFileError(f"`{file}` has no table `X` with one row per person.")
    X = group["X"]
    source = chunked_rows(file, X) if hasattr(X, "dtype") else _compressed(file, X)
    source.names = _variable_names(group, source.shape[1])
    if columns is None and schema.columns is None:
        return source
    if source.names is None:
        raise UnreadableFileError(f"`{file}` has no column names; leave out `columns`.")
    if schema.columns is not None:
        columns, _ = choose_columns(file, [(name, None) for name in source.names], columns, schema)
    if not columns:
        raise UnreadableFileError(f"`{file}` has no column of numbers to use; name one with `columns`.")
    position = {name: index for index, name in enumerate(source.names)}
    for name in columns:
        if name not in position:
            raise UnreadableFileError(f"`{file}` has no column named {name!r}.")
    return SelectedColumns(source, [position[name] for name in columns])


def _compressed(file: str, group: Any) -> RowSource:
    kind = group.attrs.get("encoding-type", group.attrs.get("h5sparse_format"))
    shape = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
    if kind not in ("csr_matrix", "csr") or shape is None or any(part not in group for part in _PARTS):
        raise UnreadableFileError(f"`X` of `{file}` must be dense or stored by rows (CSR); convert it first.")
    n, d = (int(size) for size in shape)
    check_numbers(file, (n, d), np.dtype(group["data"].dtype))
    if group["indptr"].shape[0] != n + 1:
        raise _damaged(file)
    return CompressedRows(file, group, (n, d))


_PARTS = ("data", "indices", "indptr")


def _variable_names(group: Any, d: int) -> tuple[str, ...] | None:
    """Return the names of AnnData's variables, or None where the store keeps them in some other way."""
    variables = group.get("var")
    key = None if variables is None or hasattr(variables, "dtype") else variables.attrs.get("_index")
    if variables is None or key is None or key not in variables or not hasattr(variables[key], "dtype"):
        return None
    names = [name.decode() if isinstance(name, bytes) else str(name) for name in variables[key][:].tolist()]
    return tuple(names) if len(names) == d else None
