"""JSON that is read only if it says one thing: no key twice, no field too many, too few or of another kind.

Python's own reader lets the last of two equal keys win, so a file could show one thing to a person and another to a
program; and a field of the wrong type ("false" for false) passes wherever it is only asked whether it is true.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection
from typing import Any, TypeAlias

Kind: TypeAlias = Callable[[object], bool]


class AmbiguousError(ValueError):
    """An object names a key twice."""


def loads(content: str | bytes) -> Any:
    """Parse JSON; ``ValueError`` for anything else, NaN and infinities included."""
    try:
        return json.loads(content, object_pairs_hook=_unique, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise AmbiguousError("it has a key twice")
    return found


def _no_number(_: str) -> float:
    raise ValueError("it has a number that is not finite")


def fields(values: object, /, **kinds: Kind) -> dict[str, Any]:
    """Return an object that has exactly these fields, each of its kind; ``ValueError`` for any other."""
    if not isinstance(values, dict) or set(values) != set(kinds):
        raise ValueError(f"there must be exactly the fields {', '.join(kinds)}")
    for name, is_of_kind in kinds.items():
        if not is_of_kind(values[name]):
            raise ValueError(f"the field {name} is of the wrong kind")
    return values


def _of(kind: type) -> Kind:
    return lambda value: isinstance(value, kind)


text, flag, mapping = _of(str), _of(bool), _of(dict)  # a flag is no number or text that would pass for one


def number(least: float = -math.inf, most: float = math.inf) -> Kind:
    """Return the check for a finite number in a range."""
    least, most = max(least, -sys.float_info.max), min(most, sys.float_info.max)
    return lambda value: isinstance(value, int | float) and not isinstance(value, bool) and least <= value <= most


def whole(least: int) -> Kind:
    """Return the check for an integer that is at least so large."""
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


def one_of(known: Collection[str]) -> Kind:
    """Return the check for one of a few words."""
    return lambda value: isinstance(value, str) and value in known


def listed(kind: Kind, length: int | None = None) -> Kind:
    """Return the check for a list of such things, of a given length or of any."""
    return lambda value: isinstance(value, list) and length in (None, len(value)) and all(map(kind, value))


def optional(kind: Kind) -> Kind:
    """Return the check for such a thing or null."""
    return lambda value: value is None or kind(value)
