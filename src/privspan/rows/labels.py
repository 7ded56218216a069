"""Labels of rows: which of some public classes each row is in.

They are read by the declared type of their column, or cell by cell where there is none, as words are
(`privspan._lib.words`): text and whole numbers, so that 1, 1.0 and "1" are one label.  A row without a label, or with
one that is none of the classes, is in none: a label changes its own row alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib.errors import Parameter, ParameterError, ParameterTypeError
from privspan._lib.frames import as_frame
from privspan._lib.words import word_of, words_in
from privspan.rows.ids import one_column
from privspan.rows.partitioned_rows import PerRow, per_row
from privspan.rows.partitions import in_partitions
from privspan.rows.table import Table

Array = NDArray[np.float64]

_MOST_CLASSES = 2**16  # entries of a row of weights


def class_words(classes: object, *, name: str = "classes") -> tuple[str, ...]:
    """Return the classes as words, or refuse them."""
    listed = classes.tolist() if isinstance(classes, np.ndarray) else classes
    if isinstance(listed, str) or not isinstance(listed, Sequence):
        raise ParameterTypeError("{name} must be a sequence of labels, which are public.", name=Parameter(name))
    words = [word_of(int(label) if isinstance(label, bool | np.bool_) else label) for label in listed]
    if len(words) < 2 or None in words or len(set(words)) != len(words) or len(words) > _MOST_CLASSES:
        raise ParameterError(
            "{name} must list two or more different labels, text or whole numbers.", name=Parameter(name)
        )
    return tuple(word for word in words if word is not None)


def label_codes(y: object, words: tuple[str, ...], *, name: str = "y") -> Any:
    """Return the class of each row, -1 for none: by declared type, from each label alone; Dask's as it is."""
    if in_partitions(y):
        return y
    held = as_frame(y)
    if str(getattr(held, "dtype", "")).lower().startswith("bool"):  # of NumPy, pandas or polars
        whole = np.int8 if isinstance(held, np.ndarray) else "Int8"
        held = held.astype(whole) if hasattr(held, "astype") else held.cast(int)
    found = None if isinstance(held, str) else words_in(one_column(held))
    if found is None:
        raise ParameterTypeError(
            "{name} must hold a label for each row, text or whole numbers; not the name of a column.",
            name=Parameter(name),
        )
    return found.among(words).astype(np.float64)


def labels_of(source: Table, codes: Any, words: tuple[str, ...], *, name: str = "y") -> PerRow:
    """Return the numbers of the classes where the rows are."""
    if source.drawable and len(codes) != source.shape[0]:
        raise ParameterError(
            "{name} must have one entry per row, {n}; got {got}.",
            name=Parameter(name),
            n=source.shape[0],
            got=len(codes),
        )
    column = source.column(codes)
    return column if isinstance(codes, np.ndarray) else per_row(partial(_places, words=words), column)


def _places(numbers: Array, words: tuple[str, ...]) -> Array:
    places = np.full(len(numbers), -1.0)
    for place, word in enumerate(words):
        if word.lstrip("-").isdigit():
            places[numbers == float(word)] = place
    return places
