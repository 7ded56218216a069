"""Which columns of a file are used: decided by names and types, never by values.

Left out are text, dates, categories, lists and other types that are not numbers, and columns whose *name* says that
they identify a record (`privspan.rows.identifiers`).  A column that was asked for by name is never left out for its
name; asked for with a type that is not a number, it is refused.  A schema declares types beside those of the file
(`privspan.rows.files.schema`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspan.rows.damage import UnreadableFileError
from privspan.rows.files.schema import Column, Schema
from privspan.rows.identifiers import looks_like_identifier
from privspan.rows.levels import indicator_names
from privspan.rows.table import LeftOut

_Reasons: TypeAlias = dict[str, str | None]  # of every column, why it is not used

PERSON = "holds the person ids"
"""Why the column of persons is left out."""


def choose_columns(
    file: str, kinds: Iterable[tuple[str, str | None]], wanted: Sequence[str] | None, schema: Schema | None = None
) -> tuple[list[str], tuple[LeftOut, ...]]:
    """Return the columns to use, in the order of the file or as asked for, and those that are left out.

    `kinds` has every column of the file, with None if its type is a number, else with what it is instead.  A column
    that the schema declares a number is used whatever its name.
    """
    by_name: _Reasons = {}
    for name, reason in kinds:
        if name in by_name:
            raise UnreadableFileError(
                "{file!r} has two columns named {name!r}; rename one of them.", file=file, name=name
            )
        by_name[name] = reason
    person = None if schema is None else schema.person
    if person is not None and person not in by_name:
        raise UnreadableFileError(
            "{file!r} has no column named {person!r}, which should hold the person ids.", file=file, person=person
        )
    if schema is not None and schema.columns is not None:
        by_name = _declared(file, by_name, schema.columns)
    elif wanted is None:
        named_so = {name: "named like an identifier" for name in by_name if looks_like_identifier(name)}
        by_name = {name: reason or named_so.get(name) for name, reason in by_name.items()}
    if person is not None:
        by_name[person] = PERSON
    if wanted is not None:
        return asked_for(file, by_name, wanted)
    left_out = tuple(LeftOut(name, reason) for name, reason in by_name.items() if reason is not None)
    return [name for name, reason in by_name.items() if reason is None], left_out


def _declared(file: str, by_name: _Reasons, columns: Mapping[str, Column]) -> _Reasons:
    """Add what the schema says to what the file says, and refuse where they contradict each other."""
    for name, column in columns.items():
        if name not in by_name:
            raise UnreadableFileError(
                "{file!r} has no column named {name!r}, which the schema declares.", file=file, name=name
            )
        says = by_name[name]
        numeric = column.type in ("number", "boolean")
        worded = column.type == "category" and says not in (None, "text", "categories")
        if (numeric and says is not None) or (column.type == "list" and says != "lists") or worded:
            template = "The schema calls column {name!r} of {file!r} a {kind}; it holds {held}."
            raise UnreadableFileError(template, name=name, file=file, kind=column.type, held=says or "numbers")
    reasons: _Reasons = {"number": None, "boolean": None, "category": None}
    reasons |= {"list": "lists", "text": "text", "skip": "skipped by the schema"}
    return {name: reasons[columns[name].type] if name in columns else "not in the schema" for name in by_name}


def encoded_columns(used: Sequence[str], schema: Schema) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """Return the names of the columns of numbers that the columns of a file become, and which are 0 and 1."""
    levels, names, boolean = schema.levels, [], []
    for name in used:
        own = indicator_names(name, levels.get(name))
        names += own
        boolean += [name in levels or schema.is_boolean(name)] * len(own)
    return tuple(names), np.array(boolean, dtype=bool)


def declared_bounds(used: Sequence[str], schema: Schema) -> NDArray[np.float64]:
    """Return the low and high ends that a schema declares, NaN where it does not, of the same columns; (2, d)."""
    counts = [len(indicator_names(name, schema.levels.get(name))) for name in used]
    return np.repeat(np.array([schema.bounds_of(name) for name in used]).reshape(-1, 2), counts, axis=0).T


def asked_for(file: str, by_name: _Reasons, wanted: Sequence[str]) -> tuple[list[str], tuple[LeftOut, ...]]:
    """Return the columns that were asked for, and the others; refuse one that is not there, or not of numbers."""
    for name in wanted:
        if name not in by_name:
            raise UnreadableFileError("{file!r} has no column named {name!r}.", file=file, name=name)
        if by_name[name] is not None:
            template = "Column {name!r} of {file!r} is not a column of numbers ({kind})."
            raise UnreadableFileError(template, name=name, file=file, kind=by_name[name])
    others = [LeftOut(name, "not asked for") for name in by_name if name not in set(wanted)]
    return list(wanted), tuple(others)
