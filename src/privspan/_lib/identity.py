"""Whose id a cell is: ids that are equal are one person's, whatever types and containers hold them.

Every cell becomes a key, from that cell alone, and cells with equal keys are one person's.  Cells that are equal have
equal keys.  Some others have, too: "7" and 7, as a CSV file knows text only; text with and without blanks or NULs
around it, as some containers pad it or cut it; a day and its midnight.  That keeps the promise, which is for persons
as they are told apart here.  What would break it is a person who is taken for several, so a cell is without an id
only if it is missing, and objects that cannot be compared are refused.
"""

from __future__ import annotations

import cmath
import re
import sys
import zlib
from collections.abc import Hashable
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from typing import Any
from uuid import UUID

import numpy as np

from privspan._lib.distinct import Distinct, Places

_AROUND = "\0" + "".join(letter for letter in map(chr, range(0x3001)) if letter.isspace())
_WHOLE = re.compile("0|-?[1-9][0-9]{0,99}")
_ATTOSECONDS = {"W": 604_800 * 10**18, "D": 86_400 * 10**18, "h": 3_600 * 10**18, "m": 60 * 10**18} | {
    unit: 10 ** (18 - 3 * power) for power, unit in enumerate(("s", "ms", "us", "ns", "ps", "fs", "as"))
}


class UntellableError(TypeError):
    """Some ids cannot be compared with others."""


def keys_of(column: Distinct) -> tuple[list[Hashable], Places]:
    """Return the different keys of a column, and for each cell the number of its key, -1 where one is missing; (n,).

    Raises
    ------
    UntellableError
        If a cell is an object that cannot be compared.
    """
    known: dict[Hashable, int] = {}
    try:
        keys = map(key_of, column.cells)
        codes = [-1 if key is None else known.setdefault(key, len(known)) for key in keys]
    except Exception:  # somebody's own class, or one that contains itself; what it says may quote a cell
        raise UntellableError("ids cannot be compared") from None
    return list(known), np.array([*codes, -1], dtype=np.intp)[column.places]


def codes_of(column: Distinct) -> Places:
    """Return a number from 0 on for each cell, equal where ids are, and -1 where one is missing; (n,)."""
    return keys_of(column)[1]


def scattered(key: Hashable) -> int:
    """Return a number from 0 to 2**32 - 1 that equal keys share in every process: Python's own of text do not.

    Which number it is means nothing, and keys of rare kinds have the same.

    Raises
    ------
    UntellableError
        If the key is an object of a class that might be equal to something of another kind.
    """
    if isinstance(key, str):
        return zlib.crc32(key.encode(errors="surrogatepass"))
    if isinstance(key, int | float | complex | Fraction | Decimal):
        return zlib.crc32(b"%d" % hash(key))  # equal numbers have equal hashes, everywhere
    if isinstance(key, tuple):
        return zlib.crc32(b",".join(b"%d" % scattered(part) for part in key))
    if isinstance(key, UUID):
        return zlib.crc32(key.bytes)
    if isinstance(key, frozenset):
        return scattered(("cells", *sorted(map(scattered, key))))
    if isinstance(key, Enum) or type(key).__name__ == "Period":
        return zlib.crc32(str(key).encode())
    if type(key).__name__ == "Interval":
        ends: Any = key  # of pandas
        return scattered((key_of(ends.left), key_of(ends.right), ends.closed))
    if key is None or type(key).__module__.partition(".")[0] == "pandas":
        return 0
    raise UntellableError("an object that may be equal to one of another class")


def key_of(cell: Any) -> Hashable:
    """Return what stands for an id, the same for ids that are equal, from this cell alone; None if it is missing."""
    if type(cell) is int:
        return cell
    if isinstance(cell, str):
        return _text_key(str.__str__(cell))
    if hasattr(cell, "as_py"):  # of Arrow
        return key_of(cell.as_py())
    if cell is None or _is_missing(cell):
        return None
    if isinstance(cell, bytes | bytearray | memoryview):
        return _text_key(bytes(cell).decode(errors="backslashreplace"))
    if isinstance(cell, date | timedelta | np.datetime64 | np.timedelta64):
        return _time_key(cell)
    if isinstance(cell, tuple | list):
        return "cells", *map(key_of, cell)
    if isinstance(cell, set | frozenset):
        return frozenset(map(key_of, cell))
    if isinstance(cell, dict):
        return frozenset((key_of(name), key_of(value)) for name, value in cell.items())
    if isinstance(cell, np.ndarray | np.void):
        return key_of(cell.tolist())
    if isinstance(cell, int | float | complex | np.number | np.bool_ | Decimal | Fraction):
        return _number_key(cell)
    if getattr(type(cell), "__eq__", None) is object.__eq__ and not isinstance(cell, Enum):
        raise UntellableError("an object that is equal to itself only says nothing about who it stands for")
    if not cell == cell:
        raise UntellableError("an object that is not equal to itself")
    return cell  # type: ignore[no-any-return]


def _is_missing(cell: Any) -> bool:
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, float | complex | np.inexact):
        return cmath.isnan(cell)
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return bool(np.isnat(cell))
    pandas = sys.modules.get("pandas")
    return cell is np.ma.masked or (pandas is not None and (cell is pandas.NA or cell is pandas.NaT))


def _text_key(text: str) -> Hashable:
    text = text.strip(_AROUND)
    return int(text) if _WHOLE.fullmatch(text) else text


def _number_key(number: Any) -> Hashable:
    """Return a number of a type that can be compared with all other numbers."""
    number = number.item() if isinstance(number, np.generic) else number
    if isinstance(number, np.inexact):  # longer than the numbers of Python
        number = number.real if np.isreal(number) else complex(number)
    if isinstance(number, np.floating):
        return Fraction(*number.as_integer_ratio()) if np.isfinite(number) else float(number)
    real: Hashable = number.real if isinstance(number, complex) and number.imag == 0.0 else number
    return real


def _time_key(cell: Any) -> Hashable:
    """Return an instant or a span of time in its smallest unit, whatever the unit it is kept in."""
    aware = isinstance(cell, datetime) and cell.utcoffset() is not None
    for exact in ("to_datetime64", "to_timedelta64"):  # of pandas, in UTC
        cell = getattr(cell, exact)() if hasattr(cell, exact) else cell
    if isinstance(cell, datetime):
        cell = cell.replace(tzinfo=None) - datetime(1970, 1, 1) - (cell.utcoffset() or timedelta(0))
        return "instant", aware, _attoseconds(np.timedelta64(cell))
    if isinstance(cell, date | np.datetime64):
        stamp = np.datetime64(cell)
        stamp = stamp.astype("datetime64[D]") if np.datetime_data(stamp.dtype)[0] in "YM" else stamp
        return "instant", aware, _attoseconds(stamp)
    span = np.timedelta64(cell)
    unit, count = np.datetime_data(span.dtype)
    if unit in _ATTOSECONDS:
        return "span", _attoseconds(span)
    return "months", int(span.astype(np.int64)) * count * (12 if unit == "Y" else 1)  # or of no unit at all


def _attoseconds(time: np.datetime64 | np.timedelta64) -> int:
    unit, count = np.datetime_data(time.dtype)
    attoseconds: int = int(time.astype(np.int64)) * count * _ATTOSECONDS[unit]
    return attoseconds
