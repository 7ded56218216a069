"""Columns as places in a list of distinct cells, read by declared type, whatever package holds them.

None of the packages is imported here: whoever hands us one of their objects has done so.  What words these cells are
says `privspan._lib.words`, whose ids they are `privspan._lib.identity`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]


@dataclass(frozen=True)
class Distinct:
    """A column."""

    places: Places  # (n,), of each cell in `cells`; -1 where it is missing
    cells: Sequence[object]  # equal ones may be listed several times, and one that is missing too
    worded: bool  # whether a column of this type may hold words: text, numbers, categories or objects
    stand_ins: bool = (
        False  # whether cells are numbers in place of the column's: they mean nothing beside another one
    )


def cell_by_cell(cells: Iterable[object], *, worded: bool = True) -> Distinct:
    """Take cells that have no declared type, each on its own: NumPy would make of each what suits all."""
    listed = list(cells)
    return Distinct(np.arange(len(listed)), listed, worded)


def _stand_ins(places: NDArray[np.integer]) -> Distinct:
    """Return a column of a type that tells all different cells apart by itself."""
    return Distinct(places.astype(np.intp), range(int(places.max(initial=-1)) + 1), worded=False, stand_ins=True)


def pandas_column(values: Any) -> Distinct | None:
    """Read a pandas series, index or array; None if its type is a nested one of Arrow."""
    if hasattr(values, "levels"):  # an index of several columns
        return cell_by_cell(values.to_numpy(), worded=False)
    held = getattr(values, "array", values)
    kind = held.dtype
    if kind.name == "category":
        return Distinct(held.codes.astype(np.intp), list(held.categories), worded=True)
    if getattr(kind, "pyarrow_dtype", None) is not None:
        return arrow_column(held.__arrow_array__())
    if kind.kind == "O" or "str" in kind.name:
        return cell_by_cell(held.to_numpy(dtype=object, na_value=None))
    places, cells = held.factorize()
    return Distinct(places, list(cells), worded=True) if kind.kind in "iuf" else _stand_ins(places)


def polars_column(series: Any) -> Distinct | None:
    """Read a polars series; None if its type is a nested one."""
    polars, kind = sys.modules["polars"], series.dtype
    if kind == polars.Object:
        return cell_by_cell(series.to_list(), worded=False)
    if kind.is_nested():
        return None
    categories = kind in (polars.Categorical, polars.Enum)
    cells = series.cast(polars.String) if categories else series.to_physical() if kind.is_temporal() else series
    distinct = cells.unique()
    order = polars.DataFrame({"cell": distinct, "place": np.arange(len(distinct))})
    places = polars.DataFrame({"cell": cells}).join(
        order, on="cell", how="left", nulls_equal=True, maintain_order="left"
    )
    worded = categories or kind.is_numeric() or kind == polars.String
    return Distinct(places["place"].to_numpy().astype(np.intp), distinct.to_list(), worded)


def arrow_column(values: Any) -> Distinct | None:
    """Read an Arrow array, or chunked array; None if cells of its type cannot be told apart."""
    arrow = import_module("pyarrow")
    types, kind = arrow.types, values.type
    try:
        if isinstance(kind, arrow.BaseExtensionType):
            values, kind = values.cast(kind.storage_type), kind.storage_type
        if types.is_dictionary(kind):
            values, kind = values.cast(kind.value_type), kind.value_type
        texts = types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind)
        # As bytes: text of a damaged file may be none, and one cell of it must not be an error.
        values = values.cast(arrow.large_binary()) if texts else values
        whole = values.combine_chunks() if isinstance(values, arrow.ChunkedArray) else values
        coded = whole.dictionary_encode()
    except arrow.ArrowNotImplementedError:  # which is about types, not about cells
        return None
    places = np.asarray(coded.indices.fill_null(-1))
    numbers = types.is_integer(kind) or types.is_floating(kind)
    if not (texts or numbers or types.is_decimal(kind) or "binary" in str(kind)):
        return _stand_ins(places)
    return Distinct(places.astype(np.intp), coded.dictionary.to_pylist(), worded=texts or numbers)


def array_column(values: np.ndarray) -> Distinct:
    """Read a NumPy array (n,), masked or not."""
    if values.dtype.kind not in "biufcmMUS":
        return cell_by_cell(values.tolist(), worded=values.dtype.kind == "O")
    cells, places = np.unique(np.asarray(values), return_inverse=True)
    places = np.where(np.ma.getmaskarray(values), -1, places)
    if values.dtype.kind in "mM":
        return _stand_ins(np.where(np.isnat(cells[places]), -1, places))
    return Distinct(places.astype(np.intp), cells.tolist(), worded=values.dtype.kind in "iufUS")
