"""A first schema file for a table, to look at and to edit.  Not private: that of a CSV file is made from cells."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from privspan._lib.errors import ParameterError
from privspan._lib.location import Location, place_of
from privspan.rows.damage import UnreadableFileError, damage_told, refusal_alone
from privspan.rows.files.database import batches_from
from privspan.rows.files.declared import FileColumn, arrow_columns, file_columns
from privspan.rows.files.opening import damage_of, known_suffix, suffix_of
from privspan.rows.files.schema import Column, Schema, schema_text
from privspan.rows.identifiers import looks_like_identifier

_HOW = "Types: number, boolean, category, text, list (with a width), skip. What is not named here is left out."
_WORDS = 'to use it: type = "category", and a line categories = [...] with all words that it may hold'
_FROM_CELLS = (
    "A draft, made by looking at the data: for the eyes of whoever keeps the data, not to be published.",
    "The schema in use is a declaration. Decide each type by what the column means, and keep it",
    "when the data change.",
    _HOW,
)
_FROM_DATABASE = ("A draft, made from the types that the database declares, not from its rows.", _HOW)
_FROM_A_STREAM = ("A draft, made from the types that the stream declares, not from its rows.", _HOW)
_FROM_TYPES = ("A draft, made from the types that the file declares, not from its rows.", _HOW)


@refusal_alone()
def draft_schema(
    path: object, schema: Schema | None = None, *, query: str | None = None, table: str | None = None
) -> str:
    r"""Draft a schema for a table that has column names, to be checked and edited.

    Parameters
    ----------
    path : str, path, or what hands out Arrow batches
        A file or a URL as for `open_rows`, or what that takes in place of one; no row of the latter is read.
    schema : Schema, optional
        How a CSV file is written.
    query, table : str, optional
        Of a database, as for `open_rows`; its declared types are asked for, and no row is read.

    Returns
    -------
    str
        TOML, for a file that `read_schema` and ``open_rows(schema=)`` read.

    Notes
    -----
    **Not private.**  A CSV file declares no types, so those of the draft are guessed from all of its cells.  The
    draft is for the owner of the data, who edits it into a declaration; `open_rows` uses the edited file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "people.csv"
    ...     _ = file.write_text("name,age\nAnn,41\nBob,\n")
    ...     print(*[line for line in draft_schema(file).splitlines() if line[:1] != "#"], sep="\n")
    <BLANKLINE>
    [columns."name"]
    type = "text"  # to use it: type = "category", and a line categories = [...] with all words that it may hold
    <BLANKLINE>
    [columns."age"]
    type = "number"
    """
    declared = schema or Schema()
    place = place_of(path) if isinstance(path, str | os.PathLike) else None
    if isinstance(place, Location) and place.is_database:
        with batches_from(place, query=query, table=table, schema=declared) as batches:
            return _typed_draft(arrow_columns(batches.types), _FROM_DATABASE)
    if query is not None or table is not None:
        raise ParameterError("{query} and {table} must go with a database.")
    if place is None:
        return draft_stream(path)
    if isinstance(place, Path):
        return _file_draft(place, declared)
    from privspan.rows.files.cloud import copied

    suffix_of(place.name)
    copy, spool = copied(place)
    with spool:
        return _file_draft(copy, declared)


def _file_draft(path: Path, declared: Schema) -> str:
    suffix = known_suffix(path)
    with damage_told(path.name, damage_of(path)):
        if suffix in (".csv", ".tsv"):
            from privspan.rows.files.text import draft_csv

            guessed, remarks = draft_csv(path, declared)
            columns = {name: _drafted(name, column) for name, column in (guessed.columns or {}).items()}
            return schema_text(guessed.but(columns=columns), _remarks(columns, remarks), _FROM_CELLS)
        found = file_columns(path)
        if suffix in (".arrow", ".feather", ".parquet"):
            return _typed_draft(found, _FROM_TYPES)
    if not found:
        raise UnreadableFileError("{file!r} has no column names, so there is nothing to declare.", file=path.name)
    return schema_text(Schema({one.name: Column("number") for one in found}), {}, _FROM_TYPES)


def _drafted(name: str, column: Column) -> Column:
    """Skip a number that only tells who the record is of."""
    return Column("skip") if column.type == "number" and looks_like_identifier(name) else column


def draft_stream(given: object) -> str:
    """Draft a schema for what `open_rows` takes in place of a file; no row of it is read."""
    from privspan.rows.files.batches import batches_of
    from privspan.rows.files.stream import told

    with told(type(given).__name__):
        types = batches_of(given).types
    return _typed_draft(arrow_columns(types), _FROM_A_STREAM)


def _typed_draft(found: Sequence[FileColumn], opening: Sequence[str]) -> str:
    """Draft a schema from declared types."""
    columns = {one.name: _drafted(one.name, one.column) for one in found if one.column is not None}
    remarks = {one.name: one.remark for one in found if one.remark is not None}
    return schema_text(Schema(columns), _remarks(columns, remarks), opening)


def _remarks(columns: Mapping[str, Column], known: Mapping[str, str]) -> dict[str, str]:
    """Add how columns of words, and those that tell who a record is of, can be put to use."""
    told = dict(known)
    for name, column in columns.items():
        if name and looks_like_identifier(name):
            told.setdefault(name, f"if it holds the person ids, write at the top: person = {json.dumps(name)}")
        elif column.type == "text" or known.get(name) == "categories":
            told[name] = _WORDS
    return told
