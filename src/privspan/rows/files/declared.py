"""What a file says of its columns without its rows: their names, and their types where it declares any.

No cell is read, so the answer is public, for a CSV file too: that of `draft_schema` is not.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from privspan.rows.damage import damage_told
from privspan.rows.files.columns import choose_columns
from privspan.rows.files.opening import damage_of, known_suffix, open_rows
from privspan.rows.files.schema import Column, Schema

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class FileColumn:
    """A column as its file declares it.

    Attributes
    ----------
    name : str
    column : Column or None
        Its type; None where the file declares none, as a CSV file does.
    remark : str or None
        What else there is to say: what it holds if that is no number, or what has to be declared.
    """

    name: str
    column: Column | None
    remark: str | None = None


def file_columns(path: str | os.PathLike[str], schema: Schema | None = None) -> tuple[FileColumn, ...]:
    r"""Return the columns of a file, from names and declared types alone.

    Parameters
    ----------
    path : str or path
        A file as for `open_rows`, with column names.
    schema : Schema, optional
        How a CSV file is written.

    Returns
    -------
    tuple of FileColumn
        In the order of the file; none for a file without column names.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("name,age\nAnn,41\n")
    ...     [column.name for column in file_columns(file)]
    ['name', 'age']
    """
    path = Path(path)
    suffix = known_suffix(path)
    with damage_told(path.name, damage_of(path)):
        if suffix in (".csv", ".tsv"):
            from privspan.rows.files.text import csv_names

            found = tuple(FileColumn(name, None) for name in csv_names(path, schema or Schema()))
        elif suffix in (".arrow", ".feather", ".parquet"):
            found = arrow_columns(_arrow_types(path, suffix))
        else:
            return tuple(FileColumn(name, Column("number")) for name in open_rows(path).names or ())
        choose_columns(path.name, [(column.name, None) for column in found], None)  # refuses a name that comes twice
    return found


def arrow_columns(types: pa.Schema) -> tuple[FileColumn, ...]:
    """Return the columns that types of Arrow declare."""
    from privspan.rows.files.tables import declared_column

    return tuple(FileColumn(field.name, *declared_column(field.type)) for field in types)


def _arrow_types(path: Path, suffix: str) -> pa.Schema:
    import pyarrow as pa
    from pyarrow import parquet

    is_parquet = suffix == ".parquet"
    return parquet.read_schema(path) if is_parquet else pa.ipc.open_file(pa.memory_map(str(path))).schema
