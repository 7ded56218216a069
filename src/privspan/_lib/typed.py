"""Numbers as people type them, in one way: Python itself also takes ``1_0`` for ten, and digits of all scripts."""

from __future__ import annotations

import re
from decimal import Decimal

_MOST_DIGITS = 1000  # more than any float has; exact sums of millions of digits take hours
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")


def decimal_of(text: str) -> Decimal | None:
    """Return the number that a text shows in ASCII digits, a point and an exponent; None for any other text."""
    text = text.strip()
    return Decimal(text) if len(text) <= _MOST_DIGITS and _NUMBER.fullmatch(text) else None


def is_short(number: Decimal) -> bool:
    """Tell whether a finite decimal has no more digits than can be reckoned with."""
    return len(number.as_tuple().digits) <= _MOST_DIGITS
