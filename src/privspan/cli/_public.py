"""What the user declares of columns: ``--bounds age=0:120,bmi=10:80``, ``--units income=20000``, ``--around age=40``.

Each may also be a TOML file with a line per column, ``age = [0, 120]`` or ``income = 20000``.  Columns of a table
without names go by their numbers, from 1.  None of it may be read off the data, and nothing here could tell.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspan._lib.typed import decimal_of
from privspan.cli._options import listed, nearest, option, split_names
from privspan.cli.exits import Complaint, ExitCode

if TYPE_CHECKING:
    from privspan.rows.table import Table


@dataclass(frozen=True)
class Declared:
    """Public numbers as they were typed: by column, or one value for all columns under an empty name."""

    flag: str
    values: dict[str, object]

    def placed(self, source: Table) -> dict[int, object]:
        """Return the same by the positions of columns, or complain about one that the table does not have."""
        d, names = int(source.shape[1]), source.names
        if "" in self.values:
            return dict.fromkeys(range(d), self.values[""])
        known = list(names or (str(number) for number in range(1, d + 1)))
        for name in self.values:
            if known.count(name) > 1:
                raise Complaint(f"{self.flag} names {name!r}, but several columns have that name.")
            if name not in known:
                near = nearest(name, known) or f"it has {listed(known)}."
                raise Complaint(f"{self.flag} names {name!r}, but the table has no such column; {near}")
        return {known.index(name): value for name, value in self.values.items()}


def bounds(flag: str, text: str, **more: Any) -> Any:
    """Return the option for a pair of bounds per column, or one for all."""
    what = f"takes low:high, the lower end first, for example {flag} age=0:120,bmi=10:80"
    return _declaration(flag, what, _pair, text, "A=LOW:HIGH,…", **more)


def numbers(flag: str, example: str, text: str, *, positive: bool = False, **more: Any) -> Any:
    """Return the option for a number per column."""
    what = f"takes a number{' above 0' * positive}, for example {flag} {example}"

    def read(value: object) -> float | None:
        number = _finite(value)
        return None if number is None or (positive and number <= 0.0) else number

    return _declaration(flag, what, read, text, "A=NUMBER,…", **more)


def _declaration(flag: str, what: str, read: Callable[[object], object], text: str, metavar: str, **more: Any) -> Any:
    def parse(typed: str) -> Declared:
        given = _from_file(flag, Path(typed)) if typed.endswith(".toml") else _typed(typed)
        values = {}
        for name, value in given:
            where = f" for column {name!r}" if name else ""
            if name in values:
                raise Complaint(f"{flag}{where} is said twice in {typed!r}; leave one out.")
            values[name] = read(value)
            if values[name] is None:
                raise Complaint(f"{flag}{where} {what}; got {typed!r}.")
        if not values or ("" in values and len(values) > 1):
            raise Complaint(f"{flag} {what}; got {typed!r}.")
        return Declared(flag, values)

    return option(flag, text, metavar, parser=parse, **more)


def _typed(text: str) -> list[tuple[str, object]]:
    """Return the columns and what is said of each; what stands without a name is for all of them."""
    pairs = (entry.rpartition("=") for entry in split_names(text))
    return [(name.strip(), value) for name, _, value in pairs]


def _from_file(flag: str, path: Path) -> list[tuple[str, object]]:
    try:
        return list(tomllib.loads(path.read_text("utf-8")).items())
    except OSError:
        raise Complaint(f"{flag}: the file {str(path)!r} cannot be read.", ExitCode.UNREADABLE) from None
    except ValueError:
        raise Complaint(f"{flag}: the file {str(path)!r} is not TOML.", ExitCode.UNREADABLE) from None


def _pair(value: object) -> tuple[float, float] | None:
    ends = value.split(":") if isinstance(value, str) else value
    if not isinstance(ends, list) or len(ends) != 2:
        return None
    low, high = map(_finite, ends)
    return None if low is None or high is None or low >= high else (low, high)


def _finite(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    typed = decimal_of(value) if isinstance(value, str) else value
    try:
        number = math.nan if typed is None else float(typed)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
