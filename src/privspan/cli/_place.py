"""Where the user's table is: in a file, on standard input, at a URL, or in a database.

A URL may hold a password, so what is shown, recorded and charged takes its names from `privspan._lib.location`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from privspan._lib.location import Location, is_url, place_of, shown
from privspan.cli._options import STDIN, option
from privspan.cli.exits import Complaint

DATABASE = "PRIVSPAN_DATABASE"
"""The variable of the environment that holds the URL of a database."""

_database = partial(option, panel="A table of a database, in place of FILE")

TableFile = Annotated[
    str | None,
    typer.Argument(metavar="FILE", help="The table, or its URL (s3://, https://, …); - for CSV from standard input."),
]


@dataclass(frozen=True)
class Database:
    """A query, or a whole table, of a database."""

    database: Annotated[
        str | None,
        _database(
            "--database",
            "postgresql://…, sqlite:///people.db or duckdb:///people.duckdb; by default $PRIVSPAN_DATABASE, which "
            "other users cannot see, as they see what is typed.",
            "URL",
        ),
    ] = field(default=None, repr=False)
    query: Annotated[
        str | None, _database("--query", "One statement that selects; run once, for reading only.", "SQL")
    ] = None
    table: Annotated[str | None, _database("--table", "A whole table or view.", "NAME")] = None


@dataclass(frozen=True)
class Place:
    """Where a table is, and what is asked of it there."""

    where: Path | Location
    query: str | None = None
    table: str | None = None

    @property
    def is_stdin(self) -> bool:
        """Whether it is standard input."""
        return self.where == STDIN

    @property
    def path(self) -> Path | None:
        """The file of this machine, which no output may replace."""
        return self.where if isinstance(self.where, Path) else self.where.path

    @property
    def suffix(self) -> str:
        """Which kind of file it is, in small letters; standard input is CSV, and of a database there is none."""
        if isinstance(self.where, Location) and self.where.is_database:
            return ""
        return ".csv" if self.is_stdin else Path(self.where.name).suffix.lower()

    @property
    def name(self) -> str:
        """What people call it."""
        if self.is_stdin:
            return "standard input"
        what = f"table {self.table!r} of " if self.table else "a query of " if self.query else ""
        return f"{what}{self.where.name}"

    @property
    def dataset(self) -> str | None:
        """What the ledger calls it unless it is told; of a database all queries are one data set."""
        if self.is_stdin:
            return None
        return str(self.where.resolve()) if isinstance(self.where, Path) else self.where.address


def table_place(file: str | None, database: Database) -> Place:
    """Return where the table is, from the argument or the options of a command."""
    asked = database.query is not None or database.table is not None
    if file is not None:
        if asked or database.database is not None:
            raise Complaint("a table is either a FILE or in a --database; leave one out.")
        where = place_of(file)
        if isinstance(where, Location) and where.is_database:
            raise Complaint("a database is named with --database, or in PRIVSPAN_DATABASE, and asked with --query.")
        return Place(where)
    if not asked:
        advice = "a FILE, or --database URL with --query SQL or --table NAME"
        raise Complaint(f"there is no table; name one: {advice}.")
    if database.query is not None and database.table is not None:
        raise Complaint("--query and --table are two ways to ask a database; leave one out.")
    url = database.database or os.environ.get(DATABASE)
    if not url:
        raise Complaint(f"--query and --table need the URL of a database: set {DATABASE}, or add --database URL.")
    where = place_of(url)
    if isinstance(where, Path) or not where.is_database:
        raise Complaint("--database takes postgresql://…, sqlite:///people.db or duckdb:///people.duckdb.")
    return Place(where, database.query, database.table)


def for_report(arguments: Sequence[str]) -> list[str]:
    """Return a command line as others may read it: without the URL of a database, files by their names alone."""
    words = []
    rest = iter(arguments)
    for word in rest:
        if word == "--database":
            next(rest, None)
        elif not word.startswith("--database="):
            words.append(shown(word) if is_url(word) else Path(word).name if Path(word).is_absolute() else word)
    return words


def without_urls(text: str, arguments: Sequence[str]) -> str:
    """Return a message without the URLs of a command line and its environment, in the forms that it may hold."""
    values = [word.partition("=")[2] if word.startswith("--") else word for word in arguments]
    for url in filter(is_url, (*values, os.environ.get(DATABASE, ""))):
        secret = url.partition("://")[2]
        user, at, _ = secret.rpartition("@")
        _, mark, options = secret.partition("?")
        for form in (url, str(Path(url)), f"{user}{at}", f"{mark}{options}"):
            text = text.replace(form, "…") if form else text
    return text
