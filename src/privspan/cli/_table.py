"""Opening the user's table: by suffix or from standard input, with the columns that were asked for."""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from privspan.cli import _console
from privspan.cli._options import STDIN, listed, nearest
from privspan.cli.exits import Complaint, ExitCode

if TYPE_CHECKING:
    from privspan.cli._groups import Reading
    from privspan.rows import RowSource
    from privspan.rows.table import Table


@contextmanager
def open_table(file: Path, columns: Sequence[str] | None, reading: Reading) -> Iterator[RowSource]:
    """Open a file of numbers, or CSV from standard input for ``-``; `columns` are those to use, by default all."""
    from privspan.rows import UnreadableFileError, open_rows

    with table_file(file) as path:
        try:
            source = open_rows(path, columns=columns, **vars(reading))
        except UnreadableFileError:
            _explain_unknown(path, columns, reading)
            raise
        yield source


@contextmanager
def table_file(file: Path) -> Iterator[Path]:
    """Return a file that is there and of a known format.

    What comes from standard input is kept in a temporary file that only this user can read, until the block ends.
    """
    if file != STDIN:
        _check_file(file)
        yield file
        return
    if sys.stdin.isatty():
        raise Complaint("'-' reads CSV from standard input, for example: privspan fit - … < people.csv")
    with tempfile.TemporaryDirectory(prefix="privspan-") as folder:
        copy = Path(folder) / "stdin.csv"
        with copy.open("wb") as handle:
            shutil.copyfileobj(sys.stdin.buffer, handle)
        yield copy


def _check_file(file: Path) -> None:
    from privspan.rows import SUFFIXES

    if not file.exists():
        near = nearest(file.name, [other.name for other in file.parent.glob("*") if other.suffix in SUFFIXES])
        raise Complaint(f"there is no file {str(file)!r}; {near or 'check its name.'}", ExitCode.UNREADABLE)
    if file.suffix.lower() not in SUFFIXES:
        advice = f"convert it to one of {', '.join(SUFFIXES)}."
        raise Complaint(f"{file.name!r} has a suffix that is not known; {advice}", ExitCode.UNREADABLE)


def _explain_unknown(file: Path, columns: Sequence[str] | None, reading: Reading) -> None:
    """Complain about columns that the file does not have, with the names that come nearest."""
    from privspan.rows import UnreadableFileError, open_rows

    if columns is None:
        return
    try:
        every = open_rows(file, **vars(reading))
    except UnreadableFileError:
        return
    known = [*(every.names or ()), *(column.name for column in every.left_out)]
    unknown = [name for name in columns if name not in known]
    if known and unknown:
        near = nearest(unknown[0], known) or f"it has {listed(known)}."
        raise Complaint(f"{file.name!r} has no column {unknown[0]!r}; {near}")


def columns_for(names: list[str], reading: Reading) -> list[str]:
    """Return the columns of the file that columns of numbers are made of: a category has several of them."""
    from privspan.rows import read_schema
    from privspan.rows.levels import indicator_names

    if reading.schema is None:
        return names
    levels = read_schema(reading.schema).levels
    made_of = {one: name for name, words in levels.items() for one in indicator_names(name, words)}
    return list(dict.fromkeys(made_of.get(name, name) for name in names))


def tell_left_out(source: RowSource, file: Path, asked: bool, declared: bool) -> None:
    """Say on standard error which columns are not used, and why; and what is taken for granted about the others."""
    for reason in dict.fromkeys(column.reason for column in source.left_out if not asked):
        names = [column.name for column in source.left_out if column.reason == reason]
        _console.note(f"Left out ({reason}): {listed(names)}.")
    if not declared and source.names is not None and (file == STDIN or file.suffix.lower() in (".csv", ".tsv")):
        _console.note(
            f"A CSV file has no types, so these columns are taken as numbers: {listed(source.names)}. A cell with "
            "anything else counts as missing. If one of them holds text, declare its categories or leave it out: "
            f"privspan columns {table_name(file)} -o schema.toml writes a first schema to edit."
        )


def table_name(file: Path) -> str:
    """Return the name under which a table is shown to people."""
    return "standard input" if file == STDIN else file.name


def table_in_words(file: Path, source: Table) -> str:
    """Return the name and the size, which is public."""
    who = "rows" if source.drawable else "persons"
    return f"{table_name(file)}, {source.shape[0]:,} {who}, {source.shape[1]:,} columns"
