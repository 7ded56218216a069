"""Whose row is whose: a column of ids taken out of a table.

Ids are read by the declared type of their column, or cell by cell where there is none, and are one person's where
they are equal (`privspan._lib.identity`); of a CSV file they are the text of the cells.  A row whose id is missing is
a person of its own.  What is returned are codes: equal where ids are, -1 without one.  Their order follows from all
rows and means nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib.distinct import Distinct, array_column, arrow_column, cell_by_cell, pandas_column, polars_column
from privspan._lib.errors import Parameter, ParameterError, ParameterTypeError
from privspan._lib.frames import as_frame, frame_package
from privspan._lib.identity import UntellableError, codes_of
from privspan.rows.partitions import opener_of
from privspan.rows.source import RowSource
from privspan.rows.windows import SelectedColumns

Codes = NDArray[np.intp]


def split_ids(X: Any, column: str) -> tuple[Any, Codes]:
    """Return a table without its column of ids, and the codes of these.

    Parameters
    ----------
    X : data frame of pandas or polars, Arrow table, or RowSource
        A source of a file that was opened with ``open_rows(person=column)``, or one of a CSV, Arrow or Parquet file
        that has the column among its numbers: it is read again, as the file holds it.
    column : str
        Its name.

    Returns
    -------
    table
        Of the same kind.
    (n,) int array
        Equal where the ids are equal; -1 for a row without an id, which counts as a person of its own.

    Raises
    ------
    TypeError
        If the type of the table, or of the column, can have no ids, or objects in it cannot be compared.
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
    rest, ids = without_column(X, column)
    return rest, _codes(one_column(ids), f"column {column!r}")


def _split_source(source: RowSource, column: str) -> tuple[RowSource, Codes]:
    if source.person == column:
        return source, source.ids()
    # As numbers they would be floats, which makes one id of several long ones.
    if source.read_ids is None or column not in (source.names or ()):
        raise ParameterError(
            "{X} has no column of ids named {column!r}; open the file with `open_rows(path, person={column!r})`, "
            "or give the ids as an array, one per row.",
            column=column,
        )
    return without_ids(source, column), source.read_ids(column)


def without_ids(X: Any, column: str) -> Any:
    """Return a table, of the kinds that `split_ids` takes, without a column that it has."""
    if not isinstance(X, RowSource):
        return without_column(X, column)[0]
    place = _only_place(X.names, column)
    return SelectedColumns(X, [index for index in range(X.shape[1]) if index != place])


def without_column(X: Any, column: str) -> tuple[Any, Any]:
    """Take a column out of a table of another package; return the rest, and the column."""
    package, frame = frame_package(X), as_frame(X)
    apart = opener_of(X) is not None
    if (package is None and not apart) or not hasattr(frame, "columns"):
        raise ParameterTypeError(
            "{X} has no column names; give the ids as an array, one per row, instead of {column!r}.", column=column
        )
    names = [str(name) for name in (frame.column_names if package == "pyarrow" else frame.columns)]
    place = _only_place(names, column)
    others = [index for index in range(len(names)) if index != place]
    if apart:
        return frame[[frame.columns[index] for index in others]], frame[frame.columns[place]]
    if package == "pandas":
        return frame.iloc[:, others], frame.iloc[:, place]
    if package == "polars":
        return frame[:, others], frame.to_series(place)
    return frame.select(others), frame.column(place)


def id_codes(ids: Any, n: int, *, name: str = "person") -> Codes:
    """Return the codes of ids that are given as one column, array or list of n; see `split_ids`."""
    codes = _codes(one_column(as_frame(ids)), Parameter(name))
    if codes.shape != (n,):
        # How many rows there are is nobody's business where persons have several.
        raise ParameterError("{name} must have one id per row of the table; got more or fewer.", name=Parameter(name))
    return codes


def one_column(ids: Any) -> Distinct | None:
    """Read ids by their declared type, or cell by cell; None if they are no column, or of a type that can be none."""
    package = frame_package(ids)
    if package == "pandas" and hasattr(ids, "to_numpy") and ids.ndim == 1:
        return pandas_column(ids)
    if package == "polars" and hasattr(ids, "to_numpy") and not hasattr(ids, "get_columns"):
        return polars_column(ids)
    if package == "pyarrow" and hasattr(ids, "type"):
        return arrow_column(ids)
    if hasattr(ids, "__array__"):
        array = ids if isinstance(ids, np.ndarray) else np.asarray(ids)  # a masked array stays one
        return array_column(array) if array.ndim == 1 else None
    orderless = isinstance(ids, bytes | bytearray | Mapping | Set)
    return cell_by_cell(ids) if isinstance(ids, Iterable) and not orderless else None


def _codes(column: Distinct | None, what: str | Parameter) -> Codes:
    try:
        codes = None if column is None else codes_of(column)
    except UntellableError:
        codes = None
    if codes is None:
        raise untellable(what)
    return codes


def untellable(what: str | Parameter) -> ParameterTypeError:
    """Return the refusal of ids of which nobody can say which are equal."""
    return ParameterTypeError(
        "{what} must hold ids that can be compared; convert them to text or whole numbers first.", what=what
    )


def _only_place(names: Any, column: str) -> int:
    places = [index for index, name in enumerate(names) if name == column]
    if len(places) != 1:
        found = "several columns" if places else "no column"
        raise ParameterError(
            "{X} has {found} named {column!r}; name the one with the person ids.", found=found, column=column
        )
    if len(names) == 1:
        raise ParameterError("{X} must have a column beside {column!r}, which holds the person ids.", column=column)
    return places[0]
