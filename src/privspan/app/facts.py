"""What the pages may know of a table: names and declared types of columns, how many rows or persons.

That is what the promise takes as public (docs/explanation/app.md).  How many rows there are is asked for only once it
is known whose they are: where people have several rows, the number of persons is public and that of rows is not.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from privspan._lib.arrays import Reals
from privspan.app.answers import Answers, ColumnAnswer, Use
from privspan.privacy.persons import by_person
from privspan.rows import RowSource, Schema, open_rows
from privspan.rows.files.declared import FileColumn, file_columns
from privspan.rows.identifiers import looks_like_identifier
from privspan.rows.source import HeldRows

_TEXT = re.compile(
    r"(.*[\W_])?(name|names|surname|firstname|lastname|email|e-mail|mail|address|street|phone|telephone|fax|url"
    r"|comment|comments|note|notes|remark|remarks|description|text|title)",
    re.IGNORECASE,
)
_SAID = {"number": "number", "text": "text", "list": "list of numbers"}


@dataclass(frozen=True)
class Size:
    """How large a table is, in what the promise is for."""

    n: int
    d: int  # columns of numbers: a category has one for each of its words
    unit: str  # "rows" or "persons"

    def __str__(self) -> str:
        return f"{self.n:,} {self.unit}, {self.d:,} column{'s' * (self.d != 1)} of numbers"


def looks_like_text(name: str) -> bool:
    """Tell whether the name of a column says that it holds words.

    Examples
    --------
    >>> [name for name in ("first_name", "comments", "filename", "income") if looks_like_text(name)]
    ['first_name', 'comments']
    """
    return _TEXT.fullmatch(name.strip()) is not None


def declared_type(column: FileColumn) -> str:
    """Return what the file says a column holds."""
    if column.column is None:
        return "not declared"
    if column.column.type == "skip":
        return column.remark or "something else"
    return _SAID[column.column.type]


def remark(column: FileColumn) -> str | None:
    """Say why a column is marked to be left out before anybody has decided; by its name and type alone."""
    if not column.name.strip():
        return "it has no name"
    if looks_like_identifier(column.name):
        return "named like an identifier"
    if column.column is None:
        return "named like text" if looks_like_text(column.name) else None
    return None if column.column.type == "number" else f"holds {declared_type(column)}"


def uses(column: FileColumn) -> tuple[Use, ...]:
    """Return what may be made of a column of that type."""
    kind = None if column.column is None else column.column.type
    if kind == "list":
        return ("list", "skip") if column.column is not None and column.column.width else ("skip",)
    if kind == "skip" and column.remark != "categories":
        return ("skip",)
    if kind in ("text", "skip"):
        return ("category", "person", "skip")
    return ("number", "boolean", "category", "person", "skip")


def first_answer(columns: tuple[FileColumn, ...]) -> tuple[ColumnAnswer, ...]:
    """Return what the page begins with: numbers, but for columns that a remark leaves out; or the one list."""
    lists = [one.name for one in columns if uses(one)[0] == "list"]
    found: list[ColumnAnswer] = []
    for one in columns:
        use: Use = "number" if "number" in uses(one) and remark(one) is None else "skip"
        width = None if one.column is None else one.column.width
        found.append(ColumnAnswer(one.name, use, width=width if "list" in uses(one) else None))
    if len(lists) == 1 and all(one.use == "skip" for one in found):
        found = [ColumnAnswer(one.name, "list", width=one.width) if one.name in lists else one for one in found]
    return tuple(found)


@dataclass(frozen=True)
class Outline:
    """All that is public of a table once its columns are declared."""

    size: Size
    names: tuple[str, ...] | None
    boolean: NDArray[np.bool_] | None

    def source(self) -> RowSource:
        """Return a table of this outline that has no cells: whoever asks for one fails."""
        table = HeldRows((self.size.n, self.size.d), np.dtype(np.float64), _no_cells)
        table.names, table.boolean = self.names, self.boolean
        return table


def _no_cells() -> Reals:
    raise RuntimeError("A cell was asked for before anything was paid.")


class Facts:
    """Public facts of files, kept as long as a file stays the same: to count lines takes a while."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[object, ...], Outline] = {}

    def columns(self, path: Path, form: Schema) -> tuple[FileColumn, ...]:
        """Return names and declared types of the columns."""
        return file_columns(path, form)

    def outline(self, path: Path, answers: Answers) -> Outline:
        """Return how many rows or persons there are, and columns of numbers."""
        stat = path.stat()
        key = (path, stat.st_mtime_ns, stat.st_size, stat.st_ino, answers.table, answers.columns)
        with self._lock:  # two tabs do not read one file twice
            if key not in self._known:
                self._known.clear()  # of one table at a time
                source = open_rows(path, schema=answers.schema)
                table = source if source.person is None else by_person(source, source.person, 1, None)
                n, d = table.shape
                size = Size(int(n), int(d), "rows" if table.drawable else "persons")
                self._known[key] = Outline(size, source.names, source.boolean)
            return self._known[key]
