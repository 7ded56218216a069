"""Columns of words: names, codes and categories as places in a list of distinct words, by declared type.

A cell is a word if it is text or a whole number, whatever holds it: 7, 7.0 among floats and "7" are one word.
Everything else, and what is missing, is no word.  So a table says the same from every container, and what a cell is
depends on that cell alone.  In which order words are listed means nothing: it follows from all cells.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]


@dataclass(frozen=True)
class Words:
    """A column of words.

    Attributes
    ----------
    places : (n,) int array
        Of each cell's word in `distinct`; -1 where the cell is no word.
    distinct : tuple of str
        None comes twice.
    """

    places: Places
    distinct: tuple[str, ...]

    def among(self, levels: Sequence[str]) -> Places:
        """Return the place of each cell's word in another list, -1 where it is not in it; (n,)."""
        listed = {level: place for place, level in enumerate(levels)}
        found = [listed.get(word, -1) for word in self.distinct]
        return np.array([*found, -1], dtype=np.intp)[self.places]  # the last is for what is no word


def cell_words(cells: Iterable[object]) -> Words:
    """Read cells that have no declared type, each on its own."""
    return _listed([word_of(cell) for cell in cells])


def word_of(cell: object) -> str | None:
    """Return what a single cell says, None if it is no word."""
    if isinstance(cell, str):
        return str(cell) or None
    if isinstance(cell, bytes):
        return cell.decode(errors="backslashreplace") or None
    if isinstance(cell, int | np.integer) and not isinstance(cell, bool):
        return str(int(cell))
    if isinstance(cell, float | np.floating):
        return str(int(cell)) if math.isfinite(cell) and cell == int(cell) else None
    return None


def pandas_words(values: Any) -> Words | None:
    """Read a pandas series, index or array of text, whole numbers, categories or objects; None if it is of others."""
    held = getattr(values, "array", values)
    kind = held.dtype
    if kind.name == "category":
        return _renamed(held.codes, held.categories)
    if getattr(kind, "pyarrow_dtype", None) is not None:
        return arrow_words(held.__arrow_array__())
    if kind.kind in "iuf":
        return _renamed(*held.factorize())
    if kind.kind == "O" or "str" in kind.name:
        return cell_words(held.to_numpy(dtype=object, na_value=None))
    return None


def polars_words(series: Any) -> Words | None:
    """Read a polars series of text, whole numbers or categories; None if its type is another."""
    polars, kind = sys.modules["polars"], series.dtype
    if not (kind.is_numeric() or kind in (polars.String, polars.Categorical, polars.Enum)):
        return None
    cells = series.cast(polars.String) if kind in (polars.Categorical, polars.Enum) else series
    distinct = cells.unique()
    order = polars.DataFrame({"word": distinct, "place": np.arange(len(distinct))})
    places = polars.DataFrame({"word": cells}).join(
        order, on="word", how="left", nulls_equal=True, maintain_order="left"
    )
    return _renamed(places["place"].to_numpy(), distinct.to_list())


def arrow_words(values: Any) -> Words | None:
    """Read an Arrow array, or chunked array, of text, whole numbers or categories; None if its type is another."""
    arrow = import_module("pyarrow")
    types, kind = arrow.types, values.type
    if types.is_dictionary(kind):
        values, kind = values.cast(kind.value_type), kind.value_type
    texts = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
    if not (texts or types.is_integer(kind) or types.is_floating(kind)):
        return None
    values = values.cast(arrow.large_string()) if texts else values
    whole = values.combine_chunks() if isinstance(values, arrow.ChunkedArray) else values
    coded = whole.dictionary_encode()
    return _renamed(np.asarray(coded.indices.fill_null(-1)), coded.dictionary.to_pylist())


def array_words(values: NDArray[Any]) -> Words | None:
    """Read a NumPy array (n,) of text, whole numbers or objects; None if its type is another."""
    if values.dtype.kind == "O":
        return cell_words(values.tolist())
    if values.dtype.kind not in "iufUS":
        return None
    distinct, places = np.unique(values, return_inverse=True)
    return _renamed(places, distinct.tolist())


def _renamed(places: NDArray[Any], cells: Iterable[object]) -> Words:
    """Return a column, given as places in a list of cells, with those of one word taken together."""
    words = cell_words(cells)
    return Words(np.append(words.places, -1)[places.astype(np.intp)], words.distinct)


def _listed(words: Sequence[str | None]) -> Words:
    known: dict[str, int] = {}
    places = [-1 if word is None else known.setdefault(word, len(known)) for word in words]
    return Words(np.array(places, dtype=np.intp), tuple(known))
