"""Tables of other packages as arrays of floats: column by column, by declared type, never by value.

What a column holds is what its type declares: integers, booleans, decimals and floats are numbers, whether or not a
cell is missing; a missing cell is NaN.  The result is float32 if every column is declared float32, else float64.  So
shape, dtype and refusal follow from the schema, and a cell reaches its own place in the result and no other.

None of the packages is imported here: whoever hands us one of their objects has done so.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from privspan._lib.arrays import Reals
from privspan._lib.errors import Note, Parameter, ParameterTypeError
from privspan._lib.streams import packages_of

_NUMBERS = (int, float, np.number, np.bool_, Decimal, Fraction, str, bytes)  # what a single cell is read from
_WORDS = {"True": 1.0, "False": 0.0}
_WORDLIKE = ("text", "categories", "objects that need not be numbers")


@dataclass(frozen=True)
class Kind:
    """What a column's type declares."""

    other: str | None  # what the column holds instead of numbers
    narrow: bool = False  # whether the numbers are float32


@dataclass(frozen=True)
class FrameColumn:
    """A column of a table of another package: what its type declares, and how its cells are read."""

    name: object
    kind: Kind
    read: Callable[[np.dtype], Reals]  # in the dtype of the result
    values: Any  # as the package holds them
    dtype: Any  # as the package calls it


def frame_numbers(X: Any, name: str) -> Reals | None:
    """Return a table (n, d), or a column (n,), of another package as floats, and None if `X` is neither.

    That is one of pandas, polars or pyarrow, or anything that offers an Arrow stream; or a list or a tuple, whose
    cells have no declared type, so that every one is read on its own.  A column whose type is not one of numbers is a
    TypeError; `name` is what messages call `X`.
    """
    if isinstance(X, list | tuple):
        return _listed(X)
    package = frame_package(X)
    if package is None:
        return None
    X = as_frame(X)
    if package == "pandas" and _is_frame(X) and {*X.dtypes} in ({np.dtype(np.float64)}, {np.dtype(np.float32)}):
        return np.asarray(X)  # a view where there can be one
    columns = frame_columns(X)
    if columns is not None:
        return _table(columns, len(X) if package != "pyarrow" else X.num_rows, name)
    single = _single_column(X, package)
    return None if single is None else _table([single], len(X), name)[:, 0]


def frame_columns(X: Any) -> list[FrameColumn] | None:
    """Return the columns of a data frame of pandas or polars or of an Arrow table, None if `X` is no such table."""
    package = frame_package(X)
    if package == "pandas" and _is_frame(X):
        return [_pandas_column(label, X.iloc[:, index]) for index, label in enumerate(X.columns)]
    if package == "polars" and hasattr(X, "get_columns"):
        return [_polars_column(column) for column in X.get_columns()]
    if package == "pyarrow" and hasattr(X, "schema") and hasattr(X, "columns"):
        return [_arrow_column(field.name, column) for field, column in zip(X.schema, X.columns, strict=True)]
    return None


def _is_frame(X: Any) -> bool:
    return hasattr(X, "iloc") and X.ndim == 2


def _single_column(X: Any, package: str) -> FrameColumn | None:
    """Return a series, an index or an array of one of the packages as a column."""
    if package == "pandas":
        return _pandas_column(getattr(X, "name", None), X) if hasattr(X, "dtype") and hasattr(X, "to_numpy") else None
    if package == "polars":
        return _polars_column(X) if hasattr(X, "to_numpy") else None
    return _arrow_column(None, X) if hasattr(X, "type") and hasattr(X, "cast") else None


def frame_package(X: object) -> str | None:
    """Return whose way of reading a table or a column is taken: "pandas", "polars" or "pyarrow"; None for none."""
    packages = packages_of(X)
    known = next((package for package in ("pandas", "polars", "pyarrow") if package in packages), None)
    return "pyarrow" if known is None and hasattr(X, "__arrow_c_stream__") else known


def as_frame(X: Any) -> Any:
    """Return what offers an Arrow stream as an Arrow table or column, and all else as it is."""
    return _from_stream(X) if frame_package(X) == "pyarrow" and "pyarrow" not in packages_of(X) else X


def float_type(kinds: Iterable[Kind]) -> np.dtype:
    """Return float32 if that is what every column is declared as, else float64."""
    return np.dtype(np.float32 if all(kind.narrow for kind in kinds) else np.float64)


def other_columns(others: Sequence[FrameColumn], name: str) -> ParameterTypeError:
    """Return the refusal of a table for columns that do not hold numbers, all of them by name."""
    if others[0].name in (None, ""):
        told = f"got {others[0].kind.other}"
    else:
        named: dict[str | None, list[str]] = {}
        for column in others:
            named.setdefault(column.kind.other, []).append(repr(column.name))
        told = "; ".join(
            f"column {names[0]} holds {kind}" if len(names) == 1 else f"columns {', '.join(names)} hold {kind}"
            for kind, names in named.items()
        )
    refusal = ParameterTypeError(
        "{name} must hold booleans, integers or floats; {told}.", name=Parameter(name), told=told
    )
    words = [column.name for column in others if column.kind.other in _WORDLIKE and column.name not in (None, "")]
    if words:
        listed = ", ".join(f"{name!r}: [...]" for name in words)
        refusal.add_note(Note(f"Leave them out, or list the words they may hold: categories={{{listed}}}."))
    return refusal


def _table(columns: Sequence[FrameColumn], rows: int, name: str) -> Reals:
    """Return the columns side by side, (rows, columns), or refuse those that do not hold numbers."""
    others = [column for column in columns if column.kind.other is not None]
    if others:
        raise other_columns(others, name)
    table = np.empty((rows, len(columns)), dtype=float_type(column.kind for column in columns), order="F")
    for index, column in enumerate(columns):
        table[:, index] = column.read(table.dtype)
    return table


# ---- pandas --------------------------------------------------------------------------------------------------------


def _pandas_column(label: object, values: Any) -> FrameColumn:
    kind = dtype_kind(values.dtype)
    return FrameColumn(label, kind, lambda dtype: pandas_numbers(values, dtype), values, values.dtype)


def dtype_kind(dtype: Any) -> Kind:
    """Tell what a dtype of NumPy or pandas declares, nullable and Arrow ones included."""
    arrow = getattr(dtype, "pyarrow_dtype", None)
    if arrow is not None:
        return arrow_kind(arrow)
    if dtype.kind in "biuf":
        size = getattr(dtype, "subtype", dtype).itemsize  # of what a sparse column holds
        return Kind("numbers of more than 64 bits") if size > 8 else Kind(None, (dtype.kind, size) == ("f", 4))
    if dtype.name == "category":
        return Kind("categories")
    text = "text" if "str" in dtype.name else "objects that need not be numbers"
    return Kind({"M": "dates or times", "m": "dates or times", "c": "complex numbers"}.get(dtype.kind, text))


def pandas_numbers(values: Any, dtype: np.dtype) -> Reals:
    """Return a pandas series, index or array in a type of floats, whatever it turns out to hold."""
    held = getattr(values, "array", values)
    kind = dtype_kind(held.dtype)
    if kind.other is not None:
        return cell_numbers(np.asarray(held, dtype=object), dtype)
    if hasattr(held.dtype, "pyarrow_dtype"):
        return arrow_numbers(held.__arrow_array__(), dtype)
    with np.errstate(all="ignore"):
        return np.asarray(held.to_numpy(dtype=dtype, na_value=np.nan))


# ---- polars --------------------------------------------------------------------------------------------------------


def _polars_column(series: Any) -> FrameColumn:
    polars, kind = sys.modules["polars"], series.dtype
    is_number = kind.is_numeric() or kind == polars.Boolean

    def read(dtype: np.dtype) -> Reals:
        wanted = polars.Float32 if dtype == np.float32 else polars.Float64
        return np.asarray(series.cast(wanted, strict=False).to_numpy())  # a gap is NaN

    other = "text" if kind == polars.String else "lists" if kind.is_nested() else f"{kind.base_type().__name__} cells"
    if kind in (polars.Categorical, polars.Enum):
        other = "categories"
    return FrameColumn(series.name, Kind(None if is_number else other, kind == polars.Float32), read, series, kind)


# ---- Arrow ---------------------------------------------------------------------------------------------------------


def _from_stream(X: Any) -> Any:
    """Take over what another package offers as a stream of record batches, or of a single column."""
    arrow = import_module("pyarrow")
    try:
        return arrow.table(X)
    except arrow.ArrowInvalid:  # as the schema says
        return arrow.chunked_array(X)


def _arrow_column(label: object, values: Any) -> FrameColumn:
    return FrameColumn(
        label, arrow_kind(values.type), lambda dtype: arrow_numbers(values, dtype), values, values.type
    )


def empty_column(label: object, kind: Any) -> FrameColumn:
    """Return a column of a type of Arrow, without cells."""
    return _arrow_column(label, import_module("pyarrow").nulls(0, kind))


def arrow_kind(kind: Any) -> Kind:
    """Tell what a type of Arrow declares."""
    types = import_module("pyarrow").types
    if types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind) or types.is_decimal(kind):
        return Kind(None, bool(types.is_float32(kind)))
    if types.is_temporal(kind):
        return Kind("dates or times")
    if types.is_dictionary(kind):
        return Kind("categories")
    if types.is_nested(kind):
        return Kind("lists")
    return Kind("text" if "string" in str(kind) else "no numbers")


def arrow_numbers(values: Any, dtype: np.dtype) -> Reals:
    """Return an Arrow array, or chunked array, of numbers in a type of floats; a null is NaN."""
    wanted = import_module("pyarrow").from_numpy_dtype(dtype)
    return np.asarray(values.cast(wanted, safe=False).to_numpy(zero_copy_only=False))


# ---- Cells without a declared type ---------------------------------------------------------------------------------


def _listed(cells: Sequence[object]) -> Reals | None:
    """Return nested lists of equal lengths as float64; None where they are not."""
    try:
        array = np.asarray(cells)
        if array.dtype.kind in "biuf":
            return array.astype(np.float64)
    except Exception:  # rows of different lengths, or an integer out of range among floats: see below
        pass
    array = np.array(cells, dtype=object)  # every cell as it is: NumPy makes text of all if one is text
    if any(isinstance(cell, list | tuple | np.ndarray) for cell in array.flat):
        return None
    return cell_numbers(array, np.dtype(np.float64))


def cell_numbers(cells: Any, dtype: np.dtype) -> Reals:
    """Return an array in a type of floats, every cell on its own; what is no real number, or masked, becomes NaN.

    For cells that are not of the type that was declared: one of them must neither raise nor warn, nor change what is
    made of another.
    """
    hidden = np.ma.getmaskarray(cells) if isinstance(cells, np.ma.MaskedArray) else None
    cells = np.asarray(cells)
    with np.errstate(all="ignore"):
        if cells.dtype.kind in "biuf":
            numbers: Reals = cells.astype(dtype, copy=False)
        elif cells.dtype.kind == "c":
            numbers = np.where(cells.imag == 0, cells.real, np.nan).astype(dtype)
        elif cells.dtype.kind in "OUS":
            numbers = np.array([_number(cell) for cell in cells.ravel().tolist()]).reshape(cells.shape).astype(dtype)
        else:
            numbers = np.full(cells.shape, np.nan, dtype=dtype)
    return numbers if hidden is None else np.where(hidden, dtype.type(np.nan), numbers)


def _number(cell: Any) -> float:
    try:
        if isinstance(cell, complex | np.complexfloating):
            return float(cell.real) if cell.imag == 0 else np.nan
        if isinstance(cell, str | bytes):  # NumPy makes words of booleans beside a word
            cell = _WORDS.get(str(cell, "utf-8") if isinstance(cell, bytes) else cell, cell)
        return float(cell) if isinstance(cell, _NUMBERS) else np.nan
    except Exception:  # text that is no number, an integer beyond the range, or a cell of somebody's own class
        return np.nan
