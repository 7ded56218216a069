"""Chunked stores (Zarr, HDF5), read by runs of rows, and AnnData's layout in them: ``X`` dense or CSR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from privspan._lib.arrays import Reals
from privspan.rows.arrays import check_numbers
from privspan.rows.compressed import rows_inside
from privspan.rows.damage import UnreadableFileError, damage_told
from privspan.rows.files.columns import asked_for, choose_columns
from privspan.rows.files.schema import Schema
from privspan.rows.limits import Limits
from privspan.rows.source import RowSource
from privspan.rows.windows import SelectedColumns, WindowedSource, window_edges

_SPARSE_WINDOW = 4096  # rows at a time; fixed, because how many entries they store is private

# What may stand between the bytes of a Zarr store and numbers or text.  Others may do anything: "pickle" runs code.
_CODECS = {
    "blosc", "bz2", "gzip", "lz4", "lzma", "zlib", "zstd",
    "adler32", "crc32", "crc32c", "fletcher32", "jenkins_lookup3",
    "astype", "bitround", "bytes", "delta", "fixedscaleoffset", "packbits", "quantize", "sharding_indexed",
    "shuffle", "transpose", "vlen-bytes", "vlen-utf8",
}  # fmt: skip

_DAMAGED = "is damaged: some of its rows cannot be read."


class ChunkedRows(WindowedSource):
    """Rows of a two-dimensional chunked array, which has ``shape``, ``dtype``, ``chunks`` and slices."""

    def __init__(self, file: str, array: Any, limits: Limits) -> None:
        super().__init__(limits)
        self._file, self._array = file, array
        self.shape, self.dtype = (int(array.shape[0]), int(array.shape[1])), np.dtype(array.dtype)
        grain = int(array.chunks[0]) if array.chunks else 1
        self.edges = window_edges(self.shape[0], limits.window_rows(self.shape[1], self.dtype.itemsize), grain)

    def _load(self, window: int) -> Reals:
        return _read(self._file, self._array, *self.edges[window : window + 2].tolist())


class CompressedRows(WindowedSource):
    """Rows of a CSR matrix that is stored as three arrays, named as SciPy names them."""

    is_sparse = True

    def __init__(self, file: str, data: Any, indices: Any, indptr: Any, shape: tuple[int, int]) -> None:
        super().__init__()
        self._file, self._data, self._indices, self._indptr, self.shape = file, data, indices, indptr, shape
        self.dtype = np.result_type(data.dtype, np.float32)  # has a NaN, whether or not one is needed
        self.edges = window_edges(shape[0], _SPARSE_WINDOW)

    def _load(self, window: int) -> Any:
        start, stop = self.edges[window : window + 2].tolist()
        starts = _read(self._file, self._indptr, start, stop + 1).astype(np.int64)
        if (np.diff(starts) < 0).any() or starts[0] < 0 or starts[-1] > self._data.shape[0]:
            raise _damaged(self._file)
        first, last = int(starts[0]), int(starts[-1])
        data = _read(self._file, self._data, first, last).astype(self.dtype, copy=False)
        columns = _read(self._file, self._indices, first, last)
        return rows_inside(data, columns, starts - first, (stop - start, self.shape[1]))


def _read(file: str, array: Any, start: int, stop: int) -> Reals:
    with damage_told(file, _DAMAGED):
        rows = np.asarray(array[start:stop])
    if len(rows) != stop - start:
        raise _damaged(file)
    return rows


def _damaged(file: str) -> UnreadableFileError:
    return UnreadableFileError("{file!r} {what}", file=file, what=_DAMAGED)


def open_h5ad(path: Path, columns: Sequence[str] | None, schema: Schema, limits: Limits) -> RowSource:
    """Open the ``X`` of an AnnData file."""
    import h5py

    with damage_told(path.name, "is not an HDF5 file, or is cut short."):
        file = h5py.File(path, "r")
    return _anndata(path.name, file, columns, schema, limits)


def open_zarr(path: Path, columns: Sequence[str] | None, schema: Schema, limits: Limits) -> RowSource:
    """Open an array, or the ``X`` of an AnnData store, of Zarr format 2 or 3."""
    import zarr

    with damage_told(path.name, "is not a Zarr array or group."):
        store = zarr.open(str(path), mode="r")
    if isinstance(store, zarr.Group):
        return _anndata(path.name, store, columns, schema, limits)
    if columns is not None or schema.columns is not None:
        raise UnreadableFileError("{file!r} has no column names; leave out {columns}.", file=path.name)
    return _dense(path.name, _with_known_codecs(path.name, store), limits)


def _with_known_codecs(file: str, found: Any) -> Any:
    """Return an array, or a group, of a store; refuse an array of Zarr that needs another codec than those."""
    told = found.metadata.to_dict() if hasattr(found, "dtype") and hasattr(found, "metadata") else {}
    # Of format 3 there is a list; of format 2 what came last when it was written, and what came before it.
    for codec in (*(told.get("codecs") or ()), *(told.get("filters") or ()), told.get("compressor")):
        unknown = None if codec is None else next((name for name in _names(codec) if name not in _CODECS), None)
        if unknown is not None:
            raise UnreadableFileError(
                "{file!r} is written with the codec {codec!r}, which is not read.", file=file, codec=unknown[:40]
            )
    return found


def _names(codec: Any) -> Iterator[str]:
    """Yield the name of a codec, and the names of those inside it; from metadata, or from an object of numcodecs."""
    told = codec if isinstance(codec, dict) else codec.get_config()
    yield str(told.get("name", told.get("id"))).removeprefix("numcodecs.")
    inside = told.get("configuration") or {}
    for inner in (*inside.get("codecs", ()), *inside.get("index_codecs", ())):
        yield from _names(inner)


def _anndata(file: str, group: Any, columns: Sequence[str] | None, schema: Schema, limits: Limits) -> RowSource:
    """Return a source for the ``X`` of an AnnData store, with the names of its variables as column names."""
    if "X" not in group:
        raise UnreadableFileError("{file!r} has no table 'X' with one row per person.", file=file)
    X = _with_known_codecs(file, group["X"])
    source = _dense(file, X, limits) if hasattr(X, "dtype") else _compressed(file, X)
    source.names = _variable_names(file, group, source.shape[1])
    if columns is None and schema.columns is None:
        return source
    if source.names is None:
        raise UnreadableFileError("{file!r} has no column names; leave out {columns}.", file=file)
    if schema.columns is not None:
        columns, _ = choose_columns(file, [(name, None) for name in source.names], columns, schema)
    used, _ = asked_for(file, dict.fromkeys(source.names), columns or ())  # names need not be unique
    if not used:
        raise UnreadableFileError("{file!r} has no column of numbers to use; name one with {columns}.", file=file)
    position = {name: index for index, name in enumerate(source.names)}
    chosen = SelectedColumns(source, [position[name] for name in used])
    is_boolean = np.dtype(source.dtype).kind == "b"
    chosen.boolean = np.array([is_boolean or schema.is_boolean(name) for name in used])
    chosen.bounds = np.array([schema.bounds_of(name) for name in used]).T
    return chosen


def _dense(file: str, array: Any, limits: Limits) -> RowSource:
    check_numbers(file, array.shape, np.dtype(array.dtype))
    return ChunkedRows(file, array, limits)


def _compressed(file: str, group: Any) -> RowSource:
    kind = group.attrs.get("encoding-type", group.attrs.get("h5sparse_format"))
    shape = group.attrs.get("shape", group.attrs.get("h5sparse_shape"))
    parts = ("data", "indices", "indptr")
    if kind not in ("csr_matrix", "csr") or shape is None or any(part not in group for part in parts):
        raise UnreadableFileError(
            "'X' of {file!r} must be dense or stored by rows (CSR); convert it first.", file=file
        )
    n, d = (int(size) for size in shape)
    data, indices, indptr = (_with_known_codecs(file, group[part]) for part in parts)
    check_numbers(file, (n, d), np.dtype(data.dtype))
    if indptr.shape != (n + 1,) or any(np.dtype(part.dtype).kind not in "iu" for part in (indices, indptr)):
        raise _damaged(file)
    return CompressedRows(file, data, indices, indptr, (n, d))


def _variable_names(file: str, group: Any, d: int) -> tuple[str, ...] | None:
    """Return the names of AnnData's variables, or None where the store keeps them in some other way."""
    variables = group.get("var")
    key = None if variables is None or hasattr(variables, "dtype") else variables.attrs.get("_index")
    if variables is None or key is None or key not in variables or getattr(variables[key], "shape", None) != (d,):
        return None
    stored = _with_known_codecs(file, variables[key])
    return tuple(name.decode() if isinstance(name, bytes) else str(name) for name in stored[:].tolist())
