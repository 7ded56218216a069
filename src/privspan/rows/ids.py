"""Whose row is whose: a column of ids taken out of a table.

An id is text or a whole number, read by the declared type of its column (`privspan._lib.words`); of a CSV file it is
the text of the cell.  A row without an id is a person of its own.  What is returned are codes: equal where ids are,
-1 without one.  Their order follows from all rows and means nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib.frames import as_frame, frame_package
from privspan._lib.words import Words, array_words, arrow_words, cell_words, pandas_words, polars_words
from privspan.rows.derived import SelectedColumns
from privspan.rows.source import RowSource

Codes = NDArray[np.intp]


def split_ids(X: Any, column: str) -> tuple[Any, Codes]:
    """Return a table without its column of ids, and the codes of these.

    Parameters
    ----------
    X : data frame of pandas or polars, Arrow table, or RowSource
        A source of a file that was opened with ``open_rows(person=column)``, or one with names that has the column
        among its numbers.
    column : str
        Its name.

    Returns
    -------
    table
        Of the same kind.
    (n,) int array
        Equal where the ids are; -1 for a row without an id, which is a person of its own.

    Raises
    ------
    TypeError
        If the type of the table, or of the column, can have no ids.  No value is looked at.
    ValueError
        If there is no such column, or more than one.

    Examples
    --------
    >>> import pandas as pd
    >>> visits = pd.DataFrame({"patient": ["a", "b", None, "a"], "age": [41, 70, 35, 42]})
    >>> rest, codes = split_ids(visits, "patient")
    >>> list(rest.columns), codes.tolist()
    (['age'], [0, 1, -1, 0])
    """
    if isinstance(X, RowSource):
        return _split_source(X, column)
    package, frame = frame_package(X), as_frame(X)
    if package is None or not hasattr(frame, "columns"):
        raise TypeError(f"`X` has no column names; give the ids as an array, one per row, instead of {column!r}.")
    names = [str(name) for name in (frame.column_names if package == "pyarrow" else frame.columns)]
    place = _only_place(names, column)
    others = [index for index in range(len(names)) if index != place]
    if package == "pandas":
        rest, words = frame.iloc[:, others], pandas_words(frame.iloc[:, place])
    elif package == "polars":
        rest, words = frame[:, others], polars_words(frame.to_series(place))
    else:
        rest, words = frame.select(others), arrow_words(frame.column(place))
    return rest, _codes(words, f"column {column!r}")


def id_codes(ids: Any, n: int, *, name: str = "groups") -> Codes:
    """Return the codes of ids that are given as one column, array or list of n; see `split_ids`."""
    package = frame_package(ids)
    if isinstance(ids, list | tuple):
        words: Words | None = cell_words(ids)
    elif package == "pandas" and hasattr(ids, "to_numpy") and ids.ndim == 1:
        words = pandas_words(ids)
    elif package == "polars" and hasattr(ids, "to_numpy") and not hasattr(ids, "get_columns"):
        words = polars_words(ids)
    elif package == "pyarrow" and hasattr(ids, "type"):
        words = arrow_words(ids)
    else:
        array = ids if isinstance(ids, np.ndarray) else np.asarray(ids)
        words = array_words(array) if array.ndim == 1 else None
    codes = _codes(words, f"`{name}`")
    if codes.shape != (n,):
        # How many rows there are is nobody's business where persons have several.
        raise ValueError(f"`{name}` must have one id per row of the table; got more or fewer.")
    return codes


def _codes(words: Words | None, what: str) -> Codes:
    if words is None:
        raise TypeError(f"{what} must hold ids as text or whole numbers; its type is another. Convert it first.")
    return words.places


def _split_source(source: RowSource, column: str) -> tuple[RowSource, Codes]:
    if source.person == column:
        return source, source.ids()
    if source.names is None or column not in source.names:
        raise ValueError(
            f"`X` has no column of ids named {column!r}; open the file with `open_rows(path, person={column!r})`."
        )
    place = _only_place(source.names, column)
    others = [index for index in range(source.shape[1]) if index != place]
    numbers = source.take_columns(slice(place, place + 1))[:, 0]
    return SelectedColumns(source, others), _codes(array_words(numbers), f"column {column!r}")


def _only_place(names: Any, column: str) -> int:
    places = [index for index, name in enumerate(names) if name == column]
    if len(places) != 1:
        found = "several columns" if places else "no column"
        raise ValueError(f"`X` has {found} named {column!r}; name the one that says whose each row is.")
    if len(names) == 1:
        raise ValueError(f"`X` must have a column beside {column!r}, which says whose each row is.")
    return places[0]
