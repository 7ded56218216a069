"""The words of a category as columns of 0 and 1, for tables in memory and in files alike."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib.errors import ParameterError
from privspan._lib.words import Words, word_of


def indicators(words: Words, levels: Sequence[str]) -> NDArray[np.float64]:
    """Return one column of 0 and 1 for each word, rows of gaps where the word is none of them; (n, words)."""
    places = words.among(levels)
    block = np.where(places[:, None] == np.arange(len(levels)), 1.0, 0.0)
    block[places < 0] = np.nan
    return block


def indicator_names(name: str, levels: Sequence[str] | None) -> list[str]:
    """Return the names of the columns that a column becomes: its own without levels."""
    return [name] if levels is None else [f"{name}={level}" for level in levels]


def checked_levels(name: str, words: Any) -> tuple[str, ...]:
    """Return the words of a category, or refuse a list that cannot be one."""
    listed = [word_of(word) for word in words] if isinstance(words, Sequence) and not isinstance(words, str) else []
    if not listed or None in listed or len(set(listed)) != len(listed):
        raise ParameterError(
            "{categories} must list different words, text or whole numbers; not so for {name!r}.", name=name
        )
    return tuple(word for word in listed if word is not None)
