"""Opening a table by its name: a file by its suffix, a database or a file elsewhere by its URL."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TypeAlias, cast

from privspan._lib.errors import MissingPackageError, ParameterError, ParameterTypeError
from privspan._lib.location import Location, place_of
from privspan._lib.streams import pyarrow_needed
from privspan.rows.arrays import open_npy, open_npz
from privspan.rows.damage import UnreadableFileError, damage_told, refusal_alone
from privspan.rows.files.database import open_database
from privspan.rows.files.schema import Schema, read_schema
from privspan.rows.limits import LIMITS, Limits
from privspan.rows.source import RowSource

_Opener: TypeAlias = Callable[[Path, Sequence[str] | None, Schema, Limits], RowSource]

_ARRAYS = {".npy": open_npy, ".npz": open_npz}
_READERS = {  # module, function, and the package that it needs
    ".arrow": ("tables", "open_arrow", "pyarrow"),
    ".csv": ("text", "open_csv", "pyarrow"),
    ".feather": ("tables", "open_arrow", "pyarrow"),
    ".h5ad": ("chunked", "open_h5ad", "h5py"),
    ".parquet": ("parquet", "open_parquet", "pyarrow"),
    ".tsv": ("text", "open_csv", "pyarrow"),
    ".zarr": ("chunked", "open_zarr", "zarr"),
}
_TEXT, _ARROW = (".csv", ".tsv"), (".arrow", ".feather", ".parquet")

SUFFIXES: tuple[str, ...] = tuple(sorted([*_READERS, *_ARRAYS]))
"""Suffixes that `open_rows` knows."""


@refusal_alone()
def open_rows(
    path: object,
    *,
    columns: Sequence[str] | None = None,
    schema: Schema | str | os.PathLike[str] | None = None,
    width: int | None = None,
    separator: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
    quoted_newlines: bool | None = None,
    person: str | None = None,
    query: str | None = None,
    table: str | None = None,
    limits: Limits = LIMITS,
) -> RowSource:
    """Open a file as a table of numbers, one row per person, reading its metadata only; or keep what is elsewhere.

    Parameters
    ----------
    path : str, path, or what hands out Arrow batches
        A file: ``.npy``; ``.npz`` (one array, or a SciPy sparse matrix); ``.parquet``, ``.feather`` or ``.arrow``
        (columns of numbers, or one column of lists of a declared width); ``.zarr`` (a two-dimensional array, or
        AnnData); ``.h5ad`` (AnnData's ``X``, dense or CSR); ``.csv`` and ``.tsv`` (read into memory at once, see
        Notes).
        Or the URL of such a file, ``s3://``, ``gs://``, ``https://``, ``http://``, ``memory://`` or ``file://``: it
        is copied once.
        Or the URL of a database, ``postgresql://…``, ``sqlite:///people.db`` or ``duckdb:///people.duckdb`` (with
        four slashes an absolute path): it is asked once.
        Or a reader of Arrow batches, a dataset, a lazy frame, a relation of DuckDB, a cursor of ADBC, a frame:
        whatever offers an Arrow stream is read to its end.
        What is elsewhere is kept in memory or in a temporary copy on disk, which goes with the result or when that
        is closed (docs/howto/streams-and-databases.md).
    columns : sequence of str, optional
        Columns to use, in this order.  By default all columns of numbers except those named like identifiers;
        ``left_out`` lists the columns left out.
    schema : Schema, str or path, optional
        Declared types of columns and the options below, or the TOML file that holds them (see `read_schema`).
    width : int, optional
        Numbers in each list, for a column of lists whose type does not declare it.
    separator, decimal, encoding, quoted_newlines : optional
        How a CSV file is written: see `Schema`, whose values these replace.
    person : str, optional
        The column with the person ids, in place of that of the schema; see `RowSource.ids`.
    query, table : str, optional
        Of a database: one statement that selects, run once and for reading only; or the name of a whole table.
    limits : Limits, optional
        How much is read at a time (`privspan.rows.limits`).

    Returns
    -------
    RowSource

    Raises
    ------
    UnreadableFileError
        If the file is missing, damaged, of another format, empty, or has no column of numbers; if a database cannot
        be reached, or refuses the query.  Nothing of a URL is told but the name of the file or the database.
    ImportError
        If the package that reads the format is not installed.

    Notes
    -----
    Booleans count as 0 and 1, missing cells as NaN, which is a gap of its record.  Integers beyond 2**53 are
    rounded in all formats but ``.npy``, ``.npz``, ``.zarr`` and ``.h5ad``.

    Of a database, the promise is for rows of the result, and for people only where each row is made of one person's
    records, whatever others hold: see docs/howto/streams-and-databases.md.  A column of SQLite without a declared
    type, such as that of an expression, counts as numbers.

    A CSV file has no types.  Its first line must hold the column names, and every column counts as numbers unless
    `columns` or `schema` say otherwise.  Every further line is one record, a blank one too; its content cannot change
    the shape, the dtype or another row.  A cell that is not a number counts as missing, and so do all cells of a line
    with too many or too few of them or with an odd number of quotation marks.

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
        raise ParameterTypeError("{columns} must be a sequence of column names, at least one.")
    if columns is not None and len(set(columns)) != len(columns):
        raise ParameterError("{columns} must not name a column twice.")
    if schema is not None and not isinstance(schema, Schema):
        schema = read_schema(schema)
    declared = (
        (schema or Schema())
        .but(width=width, separator=separator, decimal=decimal, encoding=encoding, quoted_newlines=quoted_newlines)
        .but(person=person)
    )
    written = (separator, decimal, encoding, quoted_newlines)
    place = place_of(path) if isinstance(path, str | os.PathLike) else None
    asked = isinstance(place, Location) and place.is_database
    if any(word is not None for word in written) and (asked or place is None):
        raise ParameterError("{separator}, {decimal}, {encoding} and {quoted_newlines} must go with a CSV file.")
    if isinstance(place, Location) and place.is_database:
        return open_database(place, query=query, table=table, columns=columns, schema=declared, limits=limits)
    if query is not None or table is not None:
        raise ParameterError("{query} and {table} must go with a database.")
    if place is None:
        return _open_given(path, columns, declared, limits)
    if isinstance(place, Path):
        return _open_file(place, columns, declared, width, written, limits)
    suffix_of(place.name)
    from privspan.rows.files.cloud import copied

    copy, spool = copied(place, limits)
    source = _open_file(copy, columns, declared, width, written, limits)
    source.let_go = spool.close  # which keeps the copy for as long as anybody refers to the rows
    return source


def _open_file(
    path: Path,
    columns: Sequence[str] | None,
    declared: Schema,
    width: int | None,
    written: tuple[object, ...],
    limits: Limits,
) -> RowSource:
    """Open a file of this machine; `width` and how it is `written` are what the caller says beside the schema."""
    suffix = known_suffix(path)
    if suffix in _ARRAYS and (columns is not None or declared.columns is not None):
        raise UnreadableFileError("{file!r} has no column names; leave out {columns}.", file=path.name)
    if width is not None and suffix not in _ARROW:
        raise UnreadableFileError("{file!r} has no columns of lists; leave out {width}.", file=path.name)
    if suffix not in _TEXT and any(word is not None for word in written):
        template = "{file!r} is no CSV file; leave out {separator}, {decimal}, {encoding} and {quoted_newlines}."
        raise UnreadableFileError(template, file=path.name)
    if declared.person is not None and suffix not in (*_TEXT, *_ARROW):
        template = "{file!r} has no columns beside its numbers; leave out {person}, and give the ids as an array."
        raise UnreadableFileError(template, file=path.name)
    with damage_told(path.name, damage_of(path)):
        if suffix in _ARRAYS:
            return _ARRAYS[suffix](path, limits)
        return _reader(suffix)(path, columns, declared, limits)


def _open_given(given: object, columns: Sequence[str] | None, schema: Schema, limits: Limits) -> RowSource:
    """Read a stream or a frame, with the same columns as a file would have."""
    with pyarrow_needed():
        from privspan.rows.files.stream import open_stream
    return open_stream(given, columns=columns, schema=schema, limits=limits)


def known_suffix(path: Path) -> str:
    """Return the suffix of a file that is there and of a known format, in small letters."""
    suffix = suffix_of(path.name)
    if not path.exists():
        raise UnreadableFileError("{file!r} does not exist.", file=path.name)
    if path.is_dir() and suffix != ".zarr":
        raise UnreadableFileError("{file!r} is a directory; give one file.", file=path.name)
    return suffix


def suffix_of(name: str) -> str:
    """Return the suffix of the name of a file, in small letters, if it is a known one."""
    suffix = Path(name).suffix.lower()
    if suffix not in SUFFIXES:
        raise UnreadableFileError("{file!r} must end in one of {known}.", file=name, known=", ".join(SUFFIXES))
    return suffix


def damage_of(path: Path) -> str:
    """Return what is said of a file that no reader could read, where it is not known why."""
    return f"is damaged, or is not a {path.suffix.lower()} file."


def _reader(suffix: str) -> _Opener:
    module, function, package = _READERS[suffix]
    try:
        import_module(package)
    except ImportError:
        raise MissingPackageError(
            "Reading {suffix} files needs {package}: pip install 'privspan[files]'.", suffix=suffix, package=package
        ) from None
    return cast(_Opener, getattr(import_module(f"privspan.rows.files.{module}"), function))
