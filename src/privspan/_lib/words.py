"""Columns of words: names, codes and categories as places in a list of distinct words, by declared type.

A cell is a word if it is text or a whole number, whatever holds it: 7, 7.0 among floats and "7" are one word.
Everything else, and what is missing, is no word.  So a table says the same from every container, and what a cell is
depends on that cell alone.  In which order words are listed means nothing: it follows from all cells.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from privspan._lib.distinct import Distinct, Places

_LONGEST = 10**300  # of the whole numbers that are words; more digits Python is slow to spell, or refuses


@dataclass(frozen=True)
class Words:
    """A column of words."""

    places: Places  # (n,), of each cell's word in `distinct`; -1 where the cell is no word
    distinct: tuple[str, ...]  # none of them twice

    def among(self, levels: Sequence[str]) -> Places:
        """Return the place of each cell's word in another list, -1 where it is not in it; (n,)."""
        listed = {level: place for place, level in enumerate(levels)}
        found = [listed.get(word, -1) for word in self.distinct]
        return np.array([*found, -1], dtype=np.intp)[self.places]  # the last is for what is no word


def words_in(column: Distinct | None) -> Words | None:
    """Return what the cells of a column say, None if its type is not one of words."""
    if column is None or not column.worded:
        return None
    known: dict[str, int] = {}
    words = map(word_of, column.cells)
    places = [-1 if word is None else known.setdefault(word, len(known)) for word in words]
    return Words(np.array([*places, -1], dtype=np.intp)[column.places], tuple(known))


def word_of(cell: object) -> str | None:
    """Return what a single cell says, None if it is no word."""
    if isinstance(cell, str):
        return str(cell) or None
    if isinstance(cell, bytes):
        return cell.decode(errors="backslashreplace") or None
    if isinstance(cell, int | np.integer) and not isinstance(cell, bool):
        return str(int(cell)) if abs(int(cell)) < _LONGEST else None
    if isinstance(cell, float | np.floating):
        return str(int(cell)) if math.isfinite(cell) and cell == int(cell) else None
    return None
