"""Options that several commands share, and the readers of their values."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer

from privspan.cli._table import STDIN
from privspan.cli.exits import Complaint


def positive(flag: str, example: str) -> Callable[[str], Decimal]:
    """Return a reader of positive numbers, which keeps the decimal that was typed."""

    def read(text: str) -> Decimal:
        number = _decimal(text)
        if number is None or number <= 0:
            raise Complaint(f"{flag} takes a number above 0, for example {flag} {example}; got {text!r}.")
        return number

    return read


def fraction_of(flag: str, example: str) -> Callable[[str], Decimal]:
    """Return a reader of numbers strictly between 0 and 1."""

    def read(text: str) -> Decimal:
        number = _decimal(text)
        if number is None or not 0 < number < 1:
            raise Complaint(f"{flag} takes a number between 0 and 1, for example {flag} {example}; got {text!r}.")
        return number

    return read


def whole(flag: str, example: str, *, least: int = 1, word: str | None = None) -> Callable[[str], int | str]:
    """Return a reader of whole numbers in any usual notation (10000, 10_000, 1e4), or of one word."""

    def read(text: str) -> int | str:
        if word is not None and text == word:
            return text
        number = _decimal(str(text).replace(",", ""))  # a default comes as a number
        if number is None or number != int(number) or number < least:
            other = f" or {word!r}" if word else ""
            what = f"a whole number from {least}{other}"
            raise Complaint(f"{flag} takes {what}, for example {flag} {example}; got {text!r}.")
        return int(number)

    return read


def _decimal(text: str) -> Decimal | None:
    try:
        number = Decimal(text)
    except InvalidOperation:
        return None
    return number if number.is_finite() and abs(number.adjusted()) < 300 else None


def budget_float(amount: Decimal) -> float:
    """Return the largest float that is not above the decimal: what the private step may spend.

    The ledger charges the decimal, so ten fits at 0.1 reach a limit of 1 and do not pass it.
    """
    from privspan._lib.rounding import down

    return down(Fraction(amount))


def split_names(text: str) -> list[str]:
    """Return the names of a list with commas; one that holds a comma itself is written in double quotes."""
    import csv

    return [name.strip() for name in next(csv.reader([text], skipinitialspace=True)) if name.strip()]


def check_target(
    path: Path,
    flag: str,
    suffixes: tuple[str, ...],
    *,
    spare: Mapping[str, Path | None] | None = None,
    overwrite: bool = False,
) -> None:
    """Refuse, before anything is spent, a file that could not be written or that should be spared.

    Parameters
    ----------
    path : Path
        The file.
    flag : str
        The option that names it.
    suffixes : tuple of str
        Those that it may have.
    spare : mapping of str to Path, optional
        Files that the command reads or writes besides, by what they are; none of them may be this one, by whatever
        name or link.
    overwrite : bool, default=False
        Whether a file that is there may be replaced.
    """
    from privspan._lib.whole_file import try_out

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
        raise Complaint(f"{str(path)!r} is there already; choose another name with {flag}, or add --overwrite.")
    if not os.path.isdir(path.parent):
        raise Complaint(f"there is no folder {str(path.parent)!r}; make it first: mkdir -p {path.parent}")
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


Epsilon = Annotated[
    Decimal,
    typer.Option("--epsilon", parser=positive("--epsilon", "1"), metavar="NUMBER", help="Privacy budget: epsilon."),
]
Delta = Annotated[
    Decimal,
    typer.Option(
        "--delta",
        parser=fraction_of("--delta", "1e-6"),
        metavar="NUMBER",
        help="Privacy budget: delta, well below one over the number of people.",
    ),
]
Gamma = Annotated[
    Decimal | None,
    typer.Option(
        "--gamma",
        parser=fraction_of("--gamma", "0.05"),
        metavar="NUMBER",
        help="Public knowledge: standard deviation off the subspace over that inside it. Never read it off the data.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Write the result as JSON.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace files that are there already.")]
