"""Opening the user's table, with the columns that were asked for."""

from __future__ import annotations

import shutil
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from privspan._lib.watch import watching_rows
from privspan.cli import _console
from privspan.cli._options import listed, nearest
from privspan.cli.exits import Complaint, ExitCode

if TYPE_CHECKING:
    from privspan.cli._groups import Reading
    from privspan.cli._place import Place
    from privspan.cli._progress import Activity
    from privspan.rows import RowSource
    from privspan.rows.table import Table
    from privspan.subspace import Subspace


@contextmanager
def open_table(place: Place, columns: Sequence[str] | None, reading: Reading, shown: Activity) -> Iterator[RowSource]:
    """Open a table of numbers, and show how much of it arrives; `columns` are those to use, by default all."""
    from privspan.rows import UnreadableFileError, open_rows

    with given_table(place) as given:
        # How many rows there are is nobody's business where persons have several.
        counted = shown.read if reading.person is None and reading.schema is None else None
        try:
            with watching_rows(read=counted), leftovers_noted():
                source = open_rows(given, columns=columns, query=place.query, table=place.table, **vars(reading))
        except UnreadableFileError:
            if isinstance(given, Path):  # what is elsewhere is not asked for a second time
                _explain_unknown(given, columns, reading)
            raise
        with source:
            yield source


@contextmanager
def leftovers_noted() -> Iterator[None]:
    """Say in the words of a command that copies of a killed process have been removed."""
    from privspan.rows import LeftoverWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LeftoverWarning)
        yield
    for told in caught:
        if issubclass(told.category, LeftoverWarning):
            _console.note(str(told.message))
        else:
            warnings.warn_explicit(told.message, told.category, told.filename, told.lineno)


@contextmanager
def given_table(place: Place) -> Iterator[Path | str]:
    """Return a file that is there and of a known format, or a URL.

    What comes from standard input is kept in a temporary copy, as what is elsewhere, until the block ends.
    """
    if not isinstance(place.where, Path):
        yield place.where.url
        return
    if not place.is_stdin:
        _check_file(place.where)
        yield place.where
        return
    if sys.stdin.isatty():
        raise Complaint("'-' reads CSV from standard input, for example: privspan fit - … < people.csv")
    from privspan.rows.files.spool import Spool, room_told

    with room_told(), leftovers_noted():
        spool = Spool()
    with spool:
        copy = spool.path / "stdin.csv"
        with room_told(), copy.open("wb") as handle:
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


def columns_of(subspace: Subspace, place: Place, reading: Reading) -> list[str] | None:
    """Return the columns of a table that a subspace is about, all of a category as one; None without names."""
    from privspan.rows import read_schema
    from privspan.rows.levels import indicator_names

    if subspace.names is None or place.suffix in (".npy", ".npz"):
        return None
    if reading.schema is None:
        return list(subspace.names)
    levels = read_schema(reading.schema).levels
    made_of = {one: name for name, words in levels.items() for one in indicator_names(name, words)}
    return list(dict.fromkeys(made_of.get(name, name) for name in subspace.names))


def tell_left_out(source: RowSource, place: Place, asked: bool, declared: bool) -> None:
    """Say on standard error which columns are not used, and why; and what is taken for granted about the others."""
    for reason in dict.fromkeys(column.reason for column in source.left_out if not asked):
        names = [column.name for column in source.left_out if column.reason == reason]
        _console.note(f"Left out ({reason}): {listed(names)}.")
    if not declared and source.names is not None and place.suffix in (".csv", ".tsv"):
        _console.note(
            f"A CSV file has no types, so these columns are taken as numbers: {listed(source.names)}. A cell with "
            "anything else counts as missing. If one of them holds text, declare its categories or leave it out: "
            f"privspan columns {place.name} -o schema.toml writes a first schema to edit."
        )


def table_in_words(place: Place, source: Table) -> str:
    """Return the name and the size, which is public."""
    who = "rows" if source.drawable else "persons"
    return f"{place.name}, {source.shape[0]:,} {who}, {source.shape[1]:,} columns"
