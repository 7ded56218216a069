"""Options that several commands share, and the readers of their values."""

from __future__ import annotations

import csv
import inspect
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from decimal import Decimal
from fractions import Fraction
from functools import partial, wraps
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from privspan._lib.typed import decimal_of
from privspan._lib.whole_file import try_out
from privspan.cli.exits import Complaint

STDIN = Path("-")
_NAMED = 8  # columns that a notice lists by name
_BETWEEN_THOUSANDS = re.compile(r"(?<=[0-9])[,_](?=[0-9]{3}(?![0-9]))")

Result = TypeVar("Result")


def option(
    flag: str,
    text: str,
    metavar: str | None = None,
    *,
    short: str | None = None,
    panel: str | None = None,
    **more: Any,
) -> Any:
    """Return an option with its help text; `panel` is the part of the help that it stands in."""
    flags = (flag,) if short is None else (flag, short)
    return typer.Option(*flags, help=text, metavar=metavar, rich_help_panel=panel, **more)


def output_to(text: str, metavar: str = "OUT") -> Any:
    """Return the option that names what is written, ``--output`` or ``-o``."""
    return typer.Option("--output", "-o", help=text, metavar=metavar)


def whole(
    flag: str,
    example: str,
    text: str,
    *,
    least: int = 1,
    word: str | None = None,
    share: str | None = None,
    **more: Any,
) -> Any:
    """Return the option for a whole number in any usual notation (10000, 10_000, 10,000, 1e4), or for one word.

    With `share`, which says of what, also for a number between 0 and 1.
    """

    def fits(number: Decimal) -> bool:
        return least <= number == int(number) or (share is not None and 0 < number < 1)

    def make(number: Decimal) -> int | float:
        return int(number) if number == int(number) else float(number)

    known = [f"a whole number from {least}", share, None if word is None else repr(word)]
    what = " or ".join(one for one in known if one is not None)
    return _number(flag, example, text, what=what, fits=fits, make=make, grouped=True, word=word, **more)


def _number(
    flag: str,
    example: str,
    text: str,
    *,
    what: str,
    fits: Callable[[Decimal], bool],
    make: Callable[[Decimal], object] = Decimal,
    grouped: bool = False,
    word: str | None = None,
    metavar: str = "NUMBER",
    short: str | None = None,
    panel: str | None = None,
) -> Any:
    """Return the option for a number that fits, made into what the command wants; by default the decimal as typed."""

    def read(typed: object) -> object:  # a default comes as a number
        if typed == word:
            return typed
        number = _decimal(_BETWEEN_THOUSANDS.sub("", str(typed)) if grouped else str(typed))
        if number is None or not fits(number):
            raise Complaint(f"{flag} takes {what}, for example {flag} {example}; got {typed!r}.")
        return make(number)

    return option(flag, text, metavar, short=short, panel=panel, parser=read)


positive = partial(_number, what="a number above 0", fits=lambda number: number > 0)
fraction = partial(_number, what="a number between 0 and 1", fits=lambda number: 0 < number < 1)


def _decimal(text: str) -> Decimal | None:
    number = decimal_of(text)
    return number if number is not None and abs(number.adjusted()) < 300 else None


def grouped(command: Callable[..., Result]) -> Callable[..., Result]:
    """Let a parameter whose type is a dataclass stand for its fields: typer is shown one option for each of them.

    Options that are required come first; otherwise the order is that of the parameters and of the fields.
    """
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {}
    options: list[inspect.Parameter] = []
    for name, one in signature.parameters.items():
        parts = [one]
        if is_dataclass(one.annotation):
            groups[name] = one.annotation
            parts = list(inspect.signature(groups[name], eval_str=True).parameters.values())
        options += [part.replace(kind=inspect.Parameter.KEYWORD_ONLY) for part in parts]
    options.sort(key=lambda option: option.default is not option.empty)

    @wraps(command)
    def run(**given: object) -> Result:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in fields(group)})
        return command(**given)

    run.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    return run


def budget_float(amount: Decimal) -> float:
    """Return the largest float that is not above the decimal: what the private step may spend.

    The ledger charges the decimal, so ten fits at 0.1 reach a limit of 1 and do not pass it.
    """
    from privspan._lib.rounding import down

    return down(Fraction(amount))


def split_names(text: str) -> list[str]:
    """Return the names of a list with commas; one that holds a comma itself is written in double quotes."""
    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True)) if name.strip()]


def nearest(name: str, known: Sequence[str]) -> str | None:
    """Suggest what may have been meant."""
    from difflib import get_close_matches

    by_lower = {other.lower(): other for other in known}
    matches = [by_lower[match] for match in get_close_matches(name.lower(), list(by_lower), n=3)]
    return f"did you mean {' or '.join(repr(match) for match in matches)}?" if matches else None


def listed(names: Sequence[str]) -> str:
    """Return the first few names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def check_target(
    path: Path | None,
    flag: str,
    suffixes: tuple[str, ...],
    *,
    spare: Mapping[str, Path | None] | None = None,
    overwrite: bool = False,
) -> None:
    """Refuse, before anything is spent, a file that could not be written or that should be spared; None is neither.

    `flag` is the option that names it.  None of the files to `spare`, which the command reads or writes besides and
    which are listed by what they are, may be this one, by whatever name or link.
    """
    if path is None:
        return
    if path.suffix.lower() not in suffixes:
        known = " or ".join(suffixes)
        raise Complaint(f"{flag} takes a name that ends in {known}, for example {flag} {path.stem}{suffixes[0]}.")
    if os.path.isdir(path):
        raise Complaint(f"{flag} takes a file, and {str(path)!r} is a folder.")
    for what, other in (spare or {}).items():
        if other is not None and _is_same(path, other):
            raise Complaint(f"{flag} would replace {what} itself; choose another name.")
    if os.path.exists(path) and not os.path.isfile(path):  # a device or a pipe
        raise Complaint(f"{flag} takes an ordinary file, and {str(path)!r} is none.")
    if os.path.lexists(path) and not overwrite:
        raise Complaint(f"{str(path)!r} exists already; choose another name with {flag}, or add --overwrite.")
    if not os.path.isdir(path.parent):
        raise Complaint(f"there is no folder {str(path.parent)!r}; create it first: mkdir -p {path.parent}")
    try:
        try_out(path)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it cannot be made"
        raise Complaint(f"{flag} cannot write {str(path)!r} ({reason}); choose another name or folder.") from None


def _is_same(path: Path, other: Path) -> bool:
    """Tell whether two names mean one file: through links of either kind, or in a place where there is none yet."""
    try:
        there = os.fstat(0) if other == STDIN else os.stat(other)
        return os.path.samestat(os.stat(path), there)
    except OSError:
        return other != STDIN and os.path.realpath(path) == os.path.realpath(other)


Epsilon = Annotated[Decimal, positive("--epsilon", "1", "Privacy budget: epsilon.")]
Delta = Annotated[
    Decimal, fraction("--delta", "1e-6", "Privacy budget: delta, well below one over the number of people.")
]
Gamma = Annotated[
    float | None,
    fraction(
        "--gamma",
        "0.05",
        "Public knowledge: standard deviation off the subspace over that inside it. Never read it off the data.",
        make=float,
    ),
]
Json = Annotated[bool, option("--json", "Write the result as JSON.")]
Overwrite = Annotated[bool, option("--overwrite", "Replace files that are there already.")]
