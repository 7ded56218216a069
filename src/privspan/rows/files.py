"""Opening a file by its suffix."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

from privspan.rows._source import RowSource, UnreadableFileError
from privspan.rows.arrays import open_npy, open_npz

__all__ = ["SUFFIXES", "open_rows"]

_Opener = Callable[[Path, Sequence[str] | None], RowSource]

_READERS = {
    ".arrow": ("privspan.rows.tables", "open_arrow", "pyarrow"),
    ".csv": ("privspan.rows.text", "open_csv", "pyarrow"),
    ".feather": ("privspan.rows.tables", "open_arrow", "pyarrow"),
    ".h5ad": ("privspan.rows.hdf5", "open_h5ad", "h5py"),
    ".parquet": ("privspan.rows.parquet", "open_parquet", "pyarrow"),
    ".zarr": ("privspan.rows.zarr_store", "open_zarr", "zarr"),
}

SUFFIXES: tuple[str, ...] = tuple(sorted([*_READERS, ".npy", ".npz"]))
"""Suffixes that `open_rows` knows."""


def open_rows(path: str | os.PathLike[str], *, columns: Sequence[str] | None = None) -> RowSource:
    """Open a file as a table of numbers with one row per person, reading its metadata only.

    Parameters
    ----------
    path : str or path
        ``.npy``; ``.npz`` (one array, or a SciPy sparse matrix); ``.parquet``, ``.feather`` or ``.arrow`` (columns of
        numbers, or one column of lists of equal length); ``.zarr`` (a two-dimensional array, or AnnData);
        ``.h5ad`` (AnnData's ``X``, dense or CSR); ``.csv`` (read into memory at once, see Notes).
    columns : sequence of str, optional
        Columns to use, in this order.  By default all columns of numbers but those named like identifiers; what is
        left out is listed in ``left_out``.

    Returns
    -------
    RowSource

    Raises
    ------
    UnreadableFileError
        If the file is missing, damaged, of another format, empty, or has no column of numbers.
    ImportError
        If the package that reads the format is not installed.

    Notes
    -----
    Booleans count as 0 and 1, missing cells as NaN, which makes the row a row of zeros.  Integers beyond 2**53 are
    rounded in all formats but ``.npy``, ``.npz``, ``.zarr`` and ``.h5ad``.

    A CSV file has no schema.  Its first line must hold the column names, and a column counts as numbers if most of
    its filled cells among the first thousand rows are; name the `columns` and not even that is looked at.  Either
    way a cell that is not a number counts as missing.

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder) / "people.npy", np.ones((4, 3), dtype=np.float32))
    ...     rows = open_rows(Path(folder) / "people.npy")
    ...     rows, rows[1:3].shape
    (<MappedRows: 4 rows, 3 columns, float32>, (2, 3))
    """
    if columns is not None and (isinstance(columns, str) or not columns):
        raise TypeError("`columns` must be a sequence of column names, at least one.")
    if columns is not None and len(set(columns)) != len(columns):
        raise ValueError("`columns` must not name a column twice.")
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UnreadableFileError(f"`{path.name}` must end in one of {', '.join(SUFFIXES)}.")
    if not path.exists():
        raise UnreadableFileError(f"`{path.name}` does not exist.")
    if path.is_dir() and suffix != ".zarr":
        raise UnreadableFileError(f"`{path.name}` is a directory; give one file.")
    if suffix in (".npy", ".npz") and columns is not None:
        raise UnreadableFileError(f"`{path.name}` has no column names; leave out `columns`.")
    try:
        return _opened(path, suffix, columns)
    except (UnreadableFileError, ImportError, MemoryError):
        raise
    except Exception:  # a reader fails in whatever way the damage leads it to
        raise UnreadableFileError(f"`{path.name}` is damaged, or is not a {suffix} file.") from None


def _opened(path: Path, suffix: str, columns: Sequence[str] | None) -> RowSource:
    if suffix == ".npy":
        return open_npy(path)
    return open_npz(path) if suffix == ".npz" else _reader(suffix)(path, columns)


def _reader(suffix: str) -> _Opener:
    module, function, package = _READERS[suffix]
    try:
        import_module(package)
    except ImportError:
        raise ImportError(f"Reading {suffix} files needs {package}: pip install 'privspan[files]'.") from None
    opener: _Opener = getattr(import_module(module), function)
    return opener
