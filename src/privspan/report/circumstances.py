"""When, by whom and for what a release was made, from which columns, on which assumptions, and what is spent."""

from __future__ import annotations

from collections.abc import Sequence

from privspan._lib.in_words import number
from privspan._lib.markup import Html, element, join, listed, points
from privspan.report.subject import Subject
from privspan.report.words import MOST_NAMED, NOT_RECORDED, declared, declared_units, why_little_weight

_GIVEN = {"bounds": "Bounds", "units": "Units", "around": "Centre", "categories": "Categories"}


def section(subject: Subject) -> Html:
    """Answer what somebody who has to approve the release would ask first."""
    record = subject.record
    told = {
        "Date": record.date,
        "Made by": record.by or NOT_RECORDED,
        "Purpose": record.purpose or NOT_RECORDED,
        "Columns used": _columns(subject),
        "Columns not used": _not_used(subject),
        **_little_weight(subject),
        "Several rows per person?": _rows_per_person(subject),
        "Taken as public": join(*(element("div", line) for line in _public(subject))),
        "Spent on this data set so far": " ".join(record.ledger)
        or "not recorded: no ledger was kept for this release",
    }
    return join(element("h2", "About this release"), points(told))


def _columns(subject: Subject) -> str:
    return f"{number(len(subject.names))}: {_named(subject.names)}" if subject.names else NOT_RECORDED


def _named(names: Sequence[str]) -> str:
    """Return the first names, and how many more there are."""
    more = f" and {number(len(names) - MOST_NAMED)} more" if len(names) > MOST_NAMED else ""
    return f"{', '.join(names[:MOST_NAMED])}{more}"


def _not_used(subject: Subject) -> Html | str:
    """List columns of the table that took no part."""
    reasons: dict[str, list[str]] = {}
    for name, why in subject.record.left_out:
        reasons.setdefault(why, []).append(name)
    if not reasons:
        return "none" if subject.record.command else "none recorded"
    return listed([f"{', '.join(names)} ({why})" for why, names in reasons.items()])


def _little_weight(subject: Subject) -> dict[str, str]:
    """List columns that were used, and of which hardly anything was measured."""
    if not subject.not_seen:
        return {}
    names = _named([subject.names[place] for place in subject.not_seen])
    return {"Columns with little weight": f"{names} ({why_little_weight(subject.release)})"}


def _rows_per_person(subject: Subject) -> str:
    if not subject.by_persons:
        return "No: every row was taken as a different person. A person with several rows is protected per row only."
    most = subject.release.parameters.get("max_rows")
    several = isinstance(most, int) and most > 1
    used = f" At most {most} rows of each person were used, drawn at random." if several else ""
    return f"Yes: rows belong to persons, and the promise is for a person with all of their rows.{used}"


def _public(subject: Subject) -> list[str]:
    """List what was given as public knowledge about the columns."""
    told = [f"The number of {subject.unit}, and the names and types of the columns."]
    for argument, values in declared(subject.release).items():
        named = {name if isinstance(name, str) else subject.names[name]: value for name, value in values.items()}
        told.append(f"{_GIVEN[argument]}: {', '.join(f'{name} {_value(value)}' for name, value in named.items())}.")
        if argument == "categories":
            told[-1] += " Each word is a column of 0 and 1."
    if len(told) == 1 and declared_units(subject.release):
        told.append("Bounds, units or a centre, of more columns than can be listed here.")
    if len(told) == 1:
        told.append("Nothing else: no bounds, units, centre or categories were given.")
    return told


def _value(value: Sequence[object] | float) -> str:
    """Write a unit, a pair of bounds or the words of a category."""
    if isinstance(value, int | float):
        return number(value)
    words = [number(one) if isinstance(one, int | float) else str(one) for one in value]
    return f"({', '.join(words)})" if any(isinstance(one, str) for one in value) else " to ".join(words)
