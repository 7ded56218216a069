"""Categories: a column of words becomes one column of 0 and 1 for every word it may hold.

Which words these are is public: the user lists them, or says that those which the column's type declares are public
too.  They are never those that occur.  A word outside the list is a gap in all columns of its category, so a record
changes its own row alone.  No word is left out, as regressions do: in a PCA none of them is a natural zero.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspan._lib.distinct import arrow_column, pandas_column, polars_column
from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan._lib.frames import FrameColumn, as_frame, frame_columns, frame_package, other_columns
from privspan._lib.words import words_in
from privspan.rows.ids import split_ids
from privspan.rows.levels import checked_levels, indicator_names, indicators
from privspan.rows.source import HeldRows, RowSource

Levels: TypeAlias = Mapping[str, tuple[str, ...]]
"""The words that each column of a category may hold."""

Categories: TypeAlias = Mapping[str, Sequence[str | int] | Literal["declared"]] | Literal["declared"]
"""Words by name of a column; "declared" for those of its type, or of the types of all columns of categories."""

_READERS = {"pandas": pandas_column, "polars": polars_column, "pyarrow": arrow_column}


def encoded(X: Any, categories: Categories, *, person: str | None = None) -> RowSource:
    """Return a table with its categories as columns of 0 and 1, all else as numbers.

    Parameters
    ----------
    X : data frame of pandas or polars, or Arrow table
    categories : mapping or "declared"
        By name of a column, the words it may hold; or "declared", for those of a pandas ``CategoricalDtype``, of an
        Arrow dictionary or of a polars ``Enum``.  Such types usually take their words from the data: say so only if
        they are public.  "declared" alone means all columns of such types.
    person : str, optional
        The column with the person ids.

    Returns
    -------
    EncodedRows
        Columns in the order of the table; those of a category are named ``"sex=f"``.

    Raises
    ------
    TypeError, ValueError
        If a column or its type cannot be what it is declared as; names and types decide.

    Examples
    --------
    >>> import pandas as pd
    >>> table = encoded(pd.DataFrame({"sex": ["f", "m", "?"], "age": [41, 70, 35]}), {"sex": ["f", "m"]})
    >>> table.names, table[:].tolist()
    (('sex=f', 'sex=m', 'age'), [[1.0, 0.0, 41.0], [0.0, 1.0, 70.0], [nan, nan, 35.0]])
    """
    if isinstance(X, RowSource):
        given = {} if isinstance(categories, str) else categories
        if given and X.levels == {name: checked_levels(name, words) for name, words in given.items()}:
            return X  # they have been made
        raise ParameterTypeError(
            "{categories} of a file must be declared in its schema: `open_rows(path, schema=…)`."
        )
    package, frame = frame_package(X), as_frame(X)
    if package is None or frame_columns(frame) is None:
        raise ParameterTypeError(
            "{categories} must go with a data frame of pandas or polars or an Arrow table, which has names."
        )
    frame, ids = (frame, None) if person is None else split_ids(frame, person)
    columns = frame_columns(frame)
    assert columns is not None
    levels = _levels(columns, categories)
    rows = EncodedRows(columns, levels, _READERS[package], int(frame.shape[0]))
    if ids is not None:
        codes = ids
        rows.person, rows.read_ids = person, lambda _: codes
    return rows


class EncodedRows(HeldRows):
    """A table in memory with categories as columns of 0 and 1; `levels` has the words of each category."""

    def __init__(self, columns: Sequence[FrameColumn], levels: Levels, read: Any, n: int) -> None:
        self.levels = levels
        names = [str(column.name) for column in columns]
        others = [column for column in columns if column.kind.other is not None and str(column.name) not in levels]
        if others:
            raise other_columns(others, "X")
        found = {name: words_in(read(columns[names.index(name)].values)) for name in levels}
        words = {name: read for name, read in found.items() if read is not None}
        for name in levels:
            if name not in words:
                raise ParameterTypeError(
                    "{categories} must name columns of text or whole numbers; {name!r} is of another type.", name=name
                )

        def table() -> NDArray[np.float64]:
            parts = [
                indicators(words[name], levels[name])
                if name in levels
                else column.read(np.dtype(np.float64))[:, None]
                for name, column in zip(names, columns, strict=True)
            ]
            return np.hstack(parts)

        self.names = tuple(column for name in names for column in indicator_names(name, levels.get(name)))
        super().__init__((n, len(self.names)), np.dtype(np.float64), table)
        declared = [str(column.dtype).lower().startswith("bool") for column in columns]
        whole = [isinstance(column.dtype, np.dtype) and column.dtype.kind in "biu" for column in columns]
        counts = [len(levels.get(name, ("",))) for name in names]
        is_category = np.repeat([name in levels for name in names], counts)
        self.boolean = np.repeat(declared, counts) | is_category
        self.complete = np.repeat(whole, counts) & ~is_category
        integers = [str(column.dtype).lower().startswith(("int", "uint")) for column in columns]
        self.whole = np.repeat(integers, counts) & ~is_category


def _levels(columns: Sequence[FrameColumn], categories: Categories) -> dict[str, tuple[str, ...]]:
    """Return the words of every category, listed or declared."""
    if categories == "declared":
        chosen: Mapping[str, Any] = {
            str(column.name): "declared" for column in columns if column.kind.other == "categories"
        }
    elif isinstance(categories, Mapping):
        chosen = categories
    else:
        raise ParameterTypeError('{categories} must be a mapping of names to lists of words, or "declared".')
    names = [str(column.name) for column in columns]
    levels = {}
    for name, words in chosen.items():
        if names.count(name) != 1:
            found = "several columns" if name in names else "no column"
            raise ParameterError(
                "{categories} must name columns of the table; it has {found} named {name!r}.", found=found, name=name
            )
        is_declared = isinstance(words, str) and words == "declared"
        levels[name] = checked_levels(name, _declared(columns[names.index(name)]) if is_declared else words)
    return levels


def _declared(column: FrameColumn) -> list[Any]:
    """Return the words that the type of a column declares."""
    found = getattr(column.dtype, "categories", None)  # pandas, and the Enum of polars
    if found is not None:
        return list(found)
    if hasattr(column.dtype, "value_type"):  # a dictionary of Arrow
        values = column.values
        whole = values.unify_dictionaries().combine_chunks() if hasattr(values, "unify_dictionaries") else values
        return list((whole.chunk(0) if hasattr(whole, "chunk") else whole).dictionary.to_pylist())
    raise ParameterTypeError(
        "{categories} must list the words of column {name!r}: its type declares none.", name=column.name
    )
