"""Dask arrays and dataframes as tables in partitions, after checks on metadata alone."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import dask
import numpy as np
from numpy.typing import NDArray

from privspan import _checks
from privspan.backends.dask_place import DaskPlace
from privspan.rows import PartitionedTable
from privspan.rows._columns import choose_columns

__all__ = ["open_dask", "open_dask_column"]


def open_dask(X: Any) -> PartitionedTable:
    """Open a Dask array or dataframe; no value is looked at.

    Parameters
    ----------
    X : dask.array.Array or dask.dataframe.DataFrame
        An (n, d) array of NumPy blocks with known chunks, each holding whole rows; or a dataframe, of which the
        columns of numbers are used as `privspan.rows.open_rows` would use those of a file.  The lengths of its
        partitions are counted, once.

    Returns
    -------
    PartitionedTable
    """
    kind = type(X).__name__
    if kind == "Array":
        return _open_array(X)
    if kind == "DataFrame":
        return _open_frame(X)
    raise TypeError(f"`X` must be a Dask array or a Dask dataframe; got {kind}.")


def open_dask_column(y: Any) -> PartitionedTable:
    """Open a Dask array (n,) or a Dask series as a table of one column; no value is looked at.

    Parameters
    ----------
    y : dask.array.Array or dask.dataframe.Series
        The lengths of the partitions of a series are counted, once.

    Returns
    -------
    PartitionedTable
    """
    kind = type(y).__name__
    if kind == "Series":
        return _open_series(y)
    if kind != "Array" or y.ndim != 1:
        raise TypeError(f"`y` must be a one-dimensional Dask array or a Dask series; got {kind}.")
    return _open_array(y[:, None], "y")


def _open_array(X: Any, name: str = "X") -> PartitionedTable:
    if X.ndim != 2:
        raise ValueError(f"`{name}` must be two-dimensional; got {X.ndim} dimension(s).")
    if any(math.isnan(length) for length in (*X.chunks[0], *X.chunks[1])):
        told = f"if they do not depend on values, call `{name}.compute_chunk_sizes()` first"
        raise ValueError(f"`{name}` must have chunks of known size; {told}.")
    if X.numblocks[1] != 1:
        raise ValueError(f"`{name}` must have whole rows in each chunk: use `{name}.rechunk({{1: -1}})`.")
    if not isinstance(X._meta, np.ndarray) or isinstance(X._meta, np.ma.MaskedArray):
        raise TypeError(f"`{name}` must be made of plain NumPy arrays; its chunks are {type(X._meta).__name__}.")
    place, d = DaskPlace(X), int(X.shape[1])
    lengths = tuple(int(length) for length in X.chunks[0])
    chunks = X.to_delayed().ravel().tolist()
    parts = place.map(partial(_checked, name, d), chunks, place.send(lengths))
    return PartitionedTable(place, parts, lengths, d, np.dtype(X.dtype))


def _open_frame(X: Any) -> PartitionedTable:
    kinds = ((str(name), _kind(dtype)) for name, dtype in X.dtypes.items())
    names, left_out = choose_columns("X", kinds, None)
    if not names:
        raise ValueError("`X` must have a column of numbers; it has none.")
    place = DaskPlace(X)
    chosen = [name for name in X.columns if str(name) in set(names)]
    frames = X[chosen].to_delayed()
    lengths = tuple(dask.compute(*(dask.delayed(len)(frame) for frame in frames)))
    parts = place.map(partial(_checked, "X", len(chosen)), place.map(_numbers, frames), place.send(lengths))
    return PartitionedTable(place, parts, lengths, len(chosen), np.dtype(np.float64), tuple(names), left_out)


def _open_series(y: Any) -> PartitionedTable:
    kind = _kind(y.dtype)
    if kind is not None:
        raise TypeError(f"`y` must be real numbers; got {kind}.")
    place, parts = DaskPlace(y), y.to_frame().to_delayed()
    lengths = tuple(dask.compute(*(dask.delayed(len)(part) for part in parts)))
    columns = place.map(partial(_checked, "y", 1), place.map(_numbers, parts), place.send(lengths))
    return PartitionedTable(place, columns, lengths, 1, np.dtype(np.float64))


def _kind(dtype: Any) -> str | None:
    """Return None for a type of real numbers, and else what it is."""
    if getattr(dtype, "kind", "O") in "biuf":
        return None
    return {"M": "date or time", "m": "date or time", "c": "complex numbers"}.get(getattr(dtype, "kind", "O"), "text")


def _numbers(frame: Any) -> NDArray[np.float64]:
    """Return a partition of a dataframe as float64; a cell without a number is NaN."""
    import pandas  # arrays do without it

    columns = [
        pandas.to_numeric(frame.iloc[:, j], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        for j in range(frame.shape[1])
    ]
    return np.column_stack(columns)


def _checked(name: str, d: int, chunk: Any, length: int) -> NDArray[Any]:
    """Return a chunk as an array, if it has the shape and the kind of numbers that the table promises."""
    try:
        rows = _checks.matrix(chunk, min_rows=0)
    except (TypeError, ValueError):
        rows = None
    if rows is None or rows.shape != (length, d):
        what = f"{length} x {d} real numbers, as its metadata say"
        raise ValueError(f"A partition of `{name}` must be {what}; it is not.")
    return rows
