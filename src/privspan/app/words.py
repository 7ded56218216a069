"""What parameters are called on a page, and what an exception may say there."""

from __future__ import annotations

import os

from privspan._lib.errors import PrivspanError

_NAMES = {
    "X": "table",
    "bounds": "bounds",
    "categories": "categories",
    "columns": "columns",
    "decimal": "decimal sign",
    "delta": "δ",
    "encoding": "encoding",
    "epsilon": "ε",
    "k": "number of components",
    "ledger": "ledger",
    "limit_delta": "limit for δ",
    "limit_epsilon": "limit for ε",
    "max_components": "number of components",
    "max_rows": "rows of a person",
    "person": "column of person ids",
    "scale": "standardising",
    "separator": "sign between cells",
    "width": "length of the lists",
}


def in_forms(name: str, value: str) -> str:
    """Return what a parameter is called on a page."""
    known = _NAMES.get(name, name.replace("_", " "))
    return known if value in ("", "True") else f"{known} {value.strip(chr(34))}"


def told(error: Exception) -> str:
    """Return what may be said of an exception: refusals of this package in words, all else by its kind alone.

    The text of a foreign exception may quote a cell of the table.
    """
    if isinstance(error, PrivspanError):
        words = error.told(in_forms)
        return words[:1].upper() + words[1:] if words[:1].isascii() else words
    if isinstance(error, MemoryError):
        return "There is not enough memory for this table."
    if isinstance(error, OSError) and error.errno:
        return f"The system says: {os.strerror(error.errno)}."
    return f"Something unexpected happened ({type(error).__name__}). Nothing was spent by it."
