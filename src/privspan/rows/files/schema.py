"""What is declared about a file: the types of its columns, and how a CSV file is written.

A declaration comes from the caller or from a schema file (TOML), never from the rows, and so it is public:

.. code-block:: toml

    separator = ";"
    decimal = ","

    [columns]
    age = "number"
    name = "text"

    [columns.bmi]
    type = "number"
    bounds = [10, 80]

    [columns.sex]
    type = "category"
    categories = ["f", "m"]

    [columns.embedding]
    type = "list"
    width = 64
"""

from __future__ import annotations

import codecs
import json
import math
import os
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from privspan._lib.errors import ParameterError
from privspan.rows.damage import UnreadableFileError
from privspan.rows.levels import checked_levels

_TYPES = ("number", "boolean", "category", "text", "list", "skip")
_NO_SEPARATORS = '"+-.\r\n'
_TO_ESCAPE = re.compile(r"[\x7f-\x9f\u2028\u2029]")  # what JSON leaves as it is and TOML or a terminal would not


@dataclass(frozen=True)
class Column:
    """The declared type of a column.

    Attributes
    ----------
    type : str
        "number"; "boolean", nothing but 0 and 1 (or false and true); "category", words that are listed; "text", never
        used; "list", of `width` numbers; "skip", not used.
    width : int, optional
        Numbers in each list; a list of another length spoils its own record.
    categories : sequence of str or int, optional
        The words of a category: each becomes a column of 0 and 1, and any other word counts as a gap.
    bounds : (low, high), optional
        The public range of a number, as `bounds` of `privspan.private_pca` would say it; that of a boolean is known.
    """

    type: str
    width: int | None = None
    categories: Sequence[str | int] | None = None
    bounds: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.type not in _TYPES:
            raise ParameterError("the type of a column must be one of {known}.", known=", ".join(_TYPES))
        if self.width is not None and self.type != "list":
            raise ParameterError("{width} is for columns of type list.")
        if (self.categories is not None) != (self.type == "category"):
            raise ParameterError(
                "a column of type category needs {categories}, a list of words, and no other has it."
            )
        if self.categories is not None:
            object.__setattr__(self, "categories", checked_levels("the column", self.categories))
        _check_width(self.width)
        if self.bounds is not None:
            if self.type != "number":
                raise ParameterError("{bounds} is for columns of type number.")
            object.__setattr__(self, "bounds", _checked_bounds(self.bounds))


@dataclass(frozen=True)
class Schema:
    """Declarations about a file, in addition to its own.

    Attributes
    ----------
    columns : mapping of str to Column, optional
        Where given, columns that it does not name are left out.
    separator : str, optional
        Between the cells of a CSV file: one character; by default a comma, in ``.tsv`` files a tab.
    decimal : str
        "." or ",".
    encoding : str
        Of the line of column names of a CSV file: UTF-8, or any encoding with one byte per character.
    quoted_newlines : bool
        Whether cells of a CSV file in quotation marks may hold ends of lines.  One record with an odd number of
        quotation marks then joins its line with others: this gives up that one line is one record.
    width : int, optional
        Numbers in each list, where a column of lists is used.
    person : str, optional
        The column with the person ids.  It is not used as numbers.
    """

    columns: Mapping[str, Column] | None = None
    separator: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"
    quoted_newlines: bool = False
    width: int | None = None
    person: str | None = None

    def __post_init__(self) -> None:
        _check_name(self.person)
        _check_separator(self.separator, self.decimal)
        _check_encoding(self.encoding)
        if not isinstance(self.quoted_newlines, bool):
            raise ParameterError("{quoted_newlines} must be true or false.")
        _check_width(self.width)

    def but(self, **changes: Any) -> Schema:
        """Return a copy with some declarations replaced."""
        return replace(self, **{name: value for name, value in changes.items() if value is not None})

    @property
    def levels(self) -> dict[str, tuple[str, ...]]:
        """The words of every category."""
        columns = (self.columns or {}).items()
        return {name: tuple(map(str, column.categories)) for name, column in columns if column.categories is not None}

    def bounds_of(self, name: str) -> tuple[float, float]:
        """Return the declared range of a column, NaN where there is none."""
        column = None if self.columns is None else self.columns.get(name)
        low, high = (math.nan, math.nan) if column is None or column.bounds is None else column.bounds
        return low, high

    def is_boolean(self, name: str) -> bool:
        """Tell whether a column is declared to hold nothing but 0 and 1."""
        return self.columns is not None and name in self.columns and self.columns[name].type == "boolean"

    def width_of(self, name: str) -> int | None:
        """Return the declared width of the lists of a column."""
        column = None if self.columns is None else self.columns.get(name)
        return self.width if column is None or column.width is None else column.width


def _checked_bounds(given: Any) -> tuple[float, float]:
    pair = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else []
    if len(pair) != 2 or not all(isinstance(end, int | float) and not isinstance(end, bool) for end in pair):
        raise ParameterError("{bounds} must be two numbers, for example [0, 120].")
    if not (all(map(math.isfinite, pair)) and pair[0] < pair[1]):
        raise ParameterError("{bounds} must be finite, the lower one first.")
    return float(pair[0]), float(pair[1])


def _check_name(person: Any) -> None:
    if person is not None and not (isinstance(person, str) and person):
        raise ParameterError("{person} must be the name of a column.")


def _check_separator(separator: Any, decimal: Any) -> None:
    if decimal not in (".", ","):
        raise ParameterError("{decimal} must be a point or a comma.")
    if separator is None:
        return
    if not (isinstance(separator, str) and len(separator) == 1 and separator.isascii() and not separator.isalnum()):
        raise ParameterError("{separator} must be one character, for example ';'.")
    if separator in _NO_SEPARATORS:
        raise ParameterError("{separator} must not be a sign, a point, a quotation mark or a line break.")
    if separator == decimal:
        raise ParameterError("{separator} must not be the comma of {decimal}.")


def _check_encoding(encoding: Any) -> None:
    """Accept encodings in which digits, separators and ends of lines are single bytes wherever they stand."""
    ascii_bytes, others = bytes(range(128)), bytes(range(128, 256))
    try:
        name = codecs.lookup(encoding).name
        plain = ascii_bytes.decode(name) == ascii_bytes.decode("ascii")
        one_byte = len(others.decode(name, errors="replace")) == len(others)
    except (LookupError, TypeError, ValueError):
        plain = one_byte = False
    if not plain or not (one_byte or name == "utf-8"):
        raise ParameterError("{encoding} must be utf-8 or one with a byte per character, for example latin-1.")


def _check_width(width: Any) -> None:
    if width is not None and (isinstance(width, bool) or not isinstance(width, int) or width < 1):
        raise ParameterError("{width} must be a whole number from 1.")


def read_schema(path: str | os.PathLike[str]) -> Schema:
    """Read a schema file.

    Parameters
    ----------
    path : str or path
        TOML with any of ``separator``, ``decimal``, ``encoding``, ``quoted_newlines``, ``width`` and ``person``, and
        a table ``columns`` with a type, or a table with ``type`` and more, for each column (see `Column`).

    Returns
    -------
    Schema

    Raises
    ------
    UnreadableFileError
        If it is missing, is not TOML, or has an unknown entry.
    """
    path = Path(path)
    try:
        found = tomllib.loads(path.read_text("utf-8"))
    except OSError:
        raise UnreadableFileError("The schema file {file!r} cannot be read.", file=path.name) from None
    except ValueError:
        raise UnreadableFileError("The schema file {file!r} is not TOML.", file=path.name) from None
    try:
        _check_keys(found, Schema, "")
        columns = found.pop("columns", None)
        return Schema(None if columns is None else _columns(columns), **found)
    except ParameterError as error:
        raise UnreadableFileError(
            "The schema file {file!r} cannot be used: {error}", file=path.name, error=error
        ) from None


def _columns(found: Any) -> dict[str, Column]:
    if not isinstance(found, dict):
        raise ParameterError("{columns} must be a table.")
    columns = {}
    for name, said in found.items():
        said = {"type": said} if isinstance(said, str) else said
        if not isinstance(said, dict) or "type" not in said:
            raise ParameterError("column {name!r} needs a type.", name=name)
        _check_keys(said, Column, f" for column {name!r}")
        columns[name] = Column(**said)
    return columns


def _check_keys(found: dict[str, Any], kind: type, where: str) -> None:
    known = [field.name for field in fields(kind)]
    unknown = [key for key in found if key not in known]
    if unknown:
        template = "it says {word!r}{where}, and only {known} are known."
        raise ParameterError(template, word=unknown[0], where=where, known=", ".join(known))


def schema_text(schema: Schema, remarks: Mapping[str, str], opening: Iterable[str]) -> str:
    """Write a schema as TOML that `read_schema` reads, with comments above everything and beside columns."""
    said = {field.name: getattr(schema, field.name) for field in fields(Schema) if field.name != "columns"}
    lines = [f"# {line}" for line in opening]
    lines += [f"{name} = {quoted(value)}" for name, value in said.items() if value != getattr(Schema(), name)]
    for name, column in (schema.columns or {}).items():
        lines += ["", f"[columns.{quoted(name)}]"]
        lines.append(f"type = {quoted(column.type)}" + (f"  # {remarks[name]}" if name in remarks else ""))
        lines += [f"width = {column.width}"] if column.width is not None else []
        lines += [f"bounds = {[*column.bounds]}"] if column.bounds is not None else []
        if column.categories is not None:
            lines.append(f"categories = [{', '.join(map(quoted, column.categories))}]")
    return "\n".join(lines) + "\n"


def quoted(value: Any) -> str:
    """Return a value as TOML writes it: what JSON says of text, numbers and flags is TOML too."""
    return _TO_ESCAPE.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False))
