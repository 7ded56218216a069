"""Where a table is when it is in no file of this machine: URLs, and what of them may be told.

A URL can hold a password, before its server or among its options.  So whatever is shown or kept, in messages, the
ledger and reports, takes one of two names from here, and a `Location` does not show its URL.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias
from urllib.parse import SplitResult, parse_qs, quote, unquote, urlsplit

from privspan._lib.errors import ParameterError

_SERVERS = ("postgresql", "postgres")
_DATABASE_FILES = ("duckdb", "sqlite")
_FILES = ("file", "gs", "http", "https", "memory", "s3")
_LOGINS = (*_SERVERS, "http", "https")

_Options: TypeAlias = Mapping[str, list[str]]


@dataclass(frozen=True)
class Location:
    """A place that a URL names.

    Its address says which data set it is, for the ledger: server and path, without user, password and options; of a
    database in a file, and of a file of this machine, the absolute path.
    """

    url: str = field(repr=False)  # as it was given, and never shown
    scheme: str
    name: str  # what people call it: the name of a file, of a database
    address: str
    path: Path | None = None  # the file of this machine

    @property
    def is_database(self) -> bool:
        """Whether it takes a query."""
        return self.scheme in (*_SERVERS, *_DATABASE_FILES)


def is_url(given: object) -> bool:
    """Tell whether a path is text of the form ``scheme://…``."""
    scheme, mark, _ = given.partition("://") if isinstance(given, str) else ("", "", "")
    return bool(mark) and scheme[:1].isalpha() and scheme.replace("+", "").replace("-", "").isalnum()


def place_of(given: str | os.PathLike[str]) -> Path | Location:
    """Return a file of this machine by its path, and everything else as a location."""
    place = location(str(given)) if is_url(given) else Path(given)
    return place.path if isinstance(place, Location) and place.scheme == "file" and place.path else place


def location(url: str) -> Location:
    """Read a URL; a refusal shows nothing of it but its scheme.

    Examples
    --------
    >>> place = location("postgresql://ann:secret@db.example.org:5432/clinic?sslmode=require")
    >>> place.name, place.address
    ('clinic', 'postgresql://db.example.org/clinic')
    >>> place
    Location(scheme='postgresql', name='clinic', address='postgresql://db.example.org/clinic', path=None)
    """
    scheme = url.partition("://")[0].lower()
    if scheme not in (*_SERVERS, *_DATABASE_FILES, *_FILES):
        known = ", ".join(f"{one}://" for one in sorted({*_SERVERS, *_DATABASE_FILES, *_FILES}))
        raise ParameterError("Tables at {scheme}:// are not read; known are {known}.", scheme=scheme, known=known)
    url = scheme + url[len(scheme) :]  # as libpq and fsspec know it
    try:
        parts = urlsplit(url)
    except ValueError:  # whose words quote the part that may hold a password
        raise _unreadable(scheme) from None
    server, rest = parts.netloc.rpartition("@")[2], url.partition("://")[2][len(parts.netloc) :]
    if "@" in rest and (scheme in _LOGINS or ":" in parts.netloc):  # a sign in a password may have ended the server
        raise _unreadable(scheme)
    if scheme in _SERVERS:
        return _on_server(url, server, parts)
    if scheme in _DATABASE_FILES or scheme == "file":
        return _on_this_machine(url, scheme, server, parts)
    path = f"{server.lower() if scheme in _LOGINS else server}{parts.path}"  # the others' are names of a folder
    return Location(url, scheme, Path(unquote(path)).name, f"{scheme}://{path}")


def _unreadable(scheme: str) -> ParameterError:
    return ParameterError(
        "The URL that begins with {scheme}:// cannot be read; in a password write '/', '#', '?', '@' and ':' as %2F, "
        "%23, %3F, %40 and %3A, and every '@' after the server as %40.",
        scheme=scheme,
    )


def _on_server(url: str, server: str, parts: SplitResult) -> Location:
    """Name a database on a server; what the URL leaves out, libpq takes from its environment."""
    options: _Options = parse_qs(parts.query)
    # Options replace what stands before them, and the last one counts: so libpq has it, and it is that data set.
    last = {name: values[-1] for name, values in options.items()}
    name, _, port = server.rpartition(":") if server.rpartition(":")[2].isdigit() else (server, "", "")
    host, port = last.get("hostaddr", last.get("host")), last.get("port", port)
    host = name if host is None else quote(host, safe="")
    host = f"{host}:{port}" if port else host
    database, service = last.get("dbname", unquote(parts.path.lstrip("/"))), last.get("service", "")
    address = f"postgresql://{host.lower().removesuffix(':5432')}/{quote(database)}"
    address += f"?service={quote(service)}" if service else ""
    return Location(url, "postgresql", database or service or "the database", address)


def _on_this_machine(url: str, scheme: str, server: str, parts: SplitResult) -> Location:
    """Name a file: ``sqlite:///people.db`` in the current folder, ``sqlite:////data/people.db`` elsewhere."""
    is_file = scheme == "file"
    elsewhere = server and not (is_file and server == "localhost")
    if elsewhere or parts.query or parts.fragment or parts.path in ("", "/"):
        template = "A table at {scheme}:// is named like {example}, without options."
        database = f"{scheme}:///people.db or {scheme}:////data/people.db"
        raise ParameterError(template, scheme=scheme, example="file:///data/people.parquet" if is_file else database)
    path = Path(unquote(parts.path if is_file else parts.path[1:]))
    return Location(url, scheme, path.name, str(path.resolve()), path)


def shown(url: str) -> str:
    """Return what may be shown of a URL, whether or not it can be read."""
    try:
        return location(url).name
    except ParameterError:
        return f"{url.partition('://')[0]}://…"
