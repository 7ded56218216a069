"""Forms as they come in: text in, typed values out, and a sentence beside every field that cannot be taken."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import TypeVar
from urllib.parse import parse_qsl

from privspan._lib.typed import decimal_of

_Word = TypeVar("_Word", bound=str)

MOST_BYTES = 4_000_000  # of a form: a table of a thousand columns, with categories, has a tenth of it
_MOST_FIELDS = 20_000  # cells of a form, for memory
_LONGEST = 300  # characters of a line that somebody types
_DIGITS = 300  # of an exponent: beyond, no float has it


class Form:
    """The fields of a form, and what is wrong with them."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.values = values
        self.mistakes: dict[str, str] = {}

    @classmethod
    def of(cls, body: bytes) -> Form:
        """Read a body that a browser has encoded; a field that comes twice counts as it came last."""
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=_MOST_FIELDS)
        return cls(dict(pairs))

    def raw(self, name: str) -> str:
        """Return what was typed, or nothing."""
        return self.values.get(name, "").strip()

    def wrong(self, name: str, words: str) -> None:
        """Note what is wrong with a field; the first mistake is told."""
        self.mistakes.setdefault(name, words)

    def line(self, name: str) -> str:
        """Return a line of text."""
        typed = self.raw(name)
        if len(typed) > _LONGEST or not typed.isprintable():
            self.wrong(name, f"One line, please, of at most {_LONGEST} characters.")
        return typed[:_LONGEST]

    def choice(self, name: str, known: Collection[_Word], default: _Word) -> _Word:
        """Return one of a few words."""
        typed = self.raw(name)
        found = next((word for word in known if word == typed), None)
        if found is None and typed:
            self.wrong(name, "Choose one of the list.")
        return default if found is None else found

    def ticked(self, name: str) -> bool:
        """Tell whether a box is ticked."""
        return name in self.values

    def whole(self, name: str, least: int, most: int, default: int) -> int:
        """Return a whole number in a range."""
        number = _number(self.raw(name))
        if number is None or number != int(number) or not least <= number <= most:
            self.wrong(name, f"A whole number from {least:,} to {most:,}, please.")
            return default
        return int(number)

    def amount(self, name: str, default: Decimal, *, below_one: bool = False) -> Decimal:
        """Return a number above zero, as it was typed."""
        found = self.amount_or_none(name, below_one=below_one)
        if found is None and name not in self.mistakes:
            self.wrong(name, "A number is needed here, for example " + ("0.000001." if below_one else "1."))
        return default if found is None else found

    def amount_or_none(self, name: str, *, below_one: bool = False) -> Decimal | None:
        """Return a number above zero, or None where nothing was typed."""
        typed = self.raw(name)
        if not typed:
            return None
        number = _number(typed)
        if number is None or number <= 0 or (below_one and number >= 1):
            between = "A number between 0 and 1" if below_one else "A number above 0"
            self.wrong(name, f"{between}, please, with a point: {'0.000001 or 1e-6' if below_one else '0.5'}.")
            return None
        return number

    def finite(self, name: str) -> str | None:
        """Return a number as it was typed, or None where nothing was."""
        typed = self.raw(name)
        if not typed:
            return None
        number = _number(typed)
        if number is None:
            self.wrong(name, "A number, please, with a point.")
            return None
        return typed


def _number(typed: str) -> Decimal | None:
    number = decimal_of(typed)
    return number if number is not None and abs(number.adjusted()) < _DIGITS else None
