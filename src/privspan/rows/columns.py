"""What the public knows of the columns of a table: bounds, units and a centre, by name or for all columns.

All of it is what a user declares, or what the table declares by its types; no cell is looked at.  Bounds that were
read off the data are not public, and nothing here could tell.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privspan._lib import checks
from privspan._lib.errors import Parameter, ParameterError
from privspan.rows.table import Table

Array: TypeAlias = NDArray[np.float64]
Bools: TypeAlias = NDArray[np.bool_]

PublicBounds: TypeAlias = Mapping[Any, tuple[float, float]] | ArrayLike
"""(low, high) by name or position of a column; or (2,) for all columns; or (2, d), NaN where nothing is known."""

PublicNumbers: TypeAlias = Mapping[Any, float] | ArrayLike
"""A number by name or position of a column; or (d,), NaN where nothing is known."""

_LARGEST = 2.0**500  # beyond this, or below its inverse, squares and quotients leave the range of float64


@dataclass(frozen=True)
class PublicColumns:
    """Public numbers of every column, NaN where there is none.

    Attributes
    ----------
    low, high : (d,) arrays
        Bounds, both or none.
    boolean : (d,) array of bool
        Where the column is declared as one, so that only the two bounds occur.
    units : (d,) array
        Standard deviations, or whatever else the column is to be divided by.
    around : (d,) array
        The centre as it was given: the bounds have no say in it.
    complete : (d,) array of bool
        Where the declared type has no gaps.
    whole : (d,) array of bool
        Where the declared type holds whole numbers only.
    levels : mapping
        The words of each category, by its name; every word is a column.
    said : bool
        Whether bounds were given, by the caller or by a schema, beside those that types declare.
    """

    low: Array
    high: Array
    boolean: Bools
    units: Array
    around: Array
    complete: Bools
    whole: Bools
    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    said: bool = False

    @property
    def bounded(self) -> Bools:
        """Which columns have bounds, (d,)."""
        return np.isfinite(self.low)

    @property
    def scaled(self) -> Bools:
        """Which columns have a unit, (d,)."""
        return np.isfinite(self.units)

    @property
    def half_range(self) -> Array:
        """Half of the width of the bounds, NaN where there are none; (d,)."""
        return self.high / 2.0 - self.low / 2.0

    @property
    def start(self) -> Array:
        """The centre; where there is none the middle of the bounds, and 0 where there are none either; (d,)."""
        middle = np.where(self.bounded, self.low + self.half_range, 0.0)
        return np.where(np.isfinite(self.around), self.around, middle)


def public_columns(
    X: Any,
    d: int,
    *,
    names: Sequence[str] | None = None,
    bounds: PublicBounds | None = None,
    units: PublicNumbers | None = None,
    around: PublicNumbers | None = None,
) -> PublicColumns:
    """Check what a user declares of the columns; add what the table declares: columns of booleans lie within 0 and 1.

    Parameters
    ----------
    X
        The table as it was handed in, before its columns were given one type.
    d : int
        Number of columns.
    names : sequence of str, optional
        Of the columns; `column_names` by default.
    bounds : mapping, (2,) or (2, d) array, or None
        (low, high) by name or position of a column; or for all columns alike; or low ends and high ends, NaN where
        nothing is known.
    units, around : mapping, (d,) array or None
        Numbers by name or position; or one for each column, NaN where nothing is known.

    Returns
    -------
    PublicColumns

    Raises
    ------
    ValueError
        If a name is unknown, a shape or a number cannot be.

    Examples
    --------
    >>> known = public_columns(None, 3, names=["age", "bmi", "income"], bounds={"age": (0, 120)}, units={"bmi": 5})
    >>> known.start, known.half_range, known.units
    (array([60.,  0.,  0.]), array([60., nan, nan]), array([nan,  5., nan]))
    """
    columns = _Columns(d, column_names(X) if names is None else list(names))
    X = getattr(X, "declared", X) if isinstance(X, Table) else X  # of persons, the table that was handed in
    source = X if isinstance(X, Table) else None
    boolean, complete, whole = _by_type(X, d)
    boolean = boolean if source is None or source.boolean is None else source.boolean
    given = columns.pairs(bounds)
    declared = columns.pairs(None if source is None else source.bounds)  # what the call says replaces it
    given = np.where(np.isnan(given), declared, given)
    low, high = np.where(np.isnan(given), np.where(boolean, [[0.0], [1.0]], np.nan), given)  # (d,) each
    return PublicColumns(
        low,
        high,
        boolean & (low == 0.0) & (high == 1.0),
        columns.numbers("units", units, least=1.0 / _LARGEST),
        columns.numbers("around", around, least=-_LARGEST),
        complete if source is None or source.complete is None else source.complete,
        whole if source is None or source.whole is None else source.whole,
        {} if source is None else source.levels,
        bounds is not None or bool(np.isfinite(declared).any()),
    )


def column_names(X: Any) -> list[str] | None:
    """Return the names of the columns of a table or a source of rows, where it has any."""
    if hasattr(type(X), "dtypes"):  # of the type: an attribute of a frame may be a column of that name
        names = X.columns
    else:
        names = X.column_names if hasattr(type(X), "column_names") else getattr(X, "names", None)
    return None if names is None else [str(name) for name in names]


def _by_type(X: Any, d: int) -> Bools:
    """Tell which columns are booleans, can have no gaps, and hold whole numbers, by their declared types; (3, d).

    None are, of a table that declares no d of them.
    """
    each = X.dtypes if hasattr(type(X), "dtypes") else X.schema.types if hasattr(type(X), "schema") else None
    kinds = [getattr(X, "dtype", None)] if each is None else list(each)  # an array has one for all columns
    told = np.zeros((3, len(kinds)), dtype=bool)
    for i, kind in enumerate(kinds):
        word = str(kind).lower()
        # Whole numbers and booleans of NumPy have no sign for a gap.
        gapless = isinstance(kind, np.dtype) and kind.kind in "biu"
        told[:, i] = word.startswith("bool"), gapless, word.startswith(("int", "uint"))
    return (
        np.repeat(told, d, axis=1) if len(kinds) == 1 else told if len(kinds) == d else np.zeros((3, d), dtype=bool)
    )


@dataclass(frozen=True)
class _Columns:
    """The columns that a declaration may speak of."""

    d: int
    names: list[str] | None

    def pairs(self, given: PublicBounds | None) -> Array:
        """Return low and high ends, NaN where none are given; (2, d)."""
        if given is None:
            return np.full((2, self.d), np.nan)
        if isinstance(given, Mapping):
            ends = self._placed("bounds", given, (2,))
        else:
            ends = _real_array("bounds", given)
            if ends.shape not in ((2,), (2, self.d)):
                shapes = f"(low, high) for all columns, or low ends and high ends, shape (2, {self.d})"
                raise ParameterError("{bounds} must be {shapes}; got shape {shape}.", shapes=shapes, shape=ends.shape)
            ends = np.broadcast_to(ends.reshape(2, -1), (2, self.d))
        with np.errstate(all="ignore"):
            width = ends[1] - ends[0]
            possible = np.isfinite(ends).all(axis=0) & (width >= 1.0 / _LARGEST) & (np.abs(ends).max(0) <= _LARGEST)
        self._refuse("bounds", "finite, low < high", ~possible & ~np.isnan(ends).all(axis=0))
        return ends

    def numbers(self, name: str, given: PublicNumbers | None, *, least: float) -> Array:
        """Return one number per column, NaN where none is given; (d,)."""
        if given is None:
            return np.full(self.d, np.nan)
        if isinstance(given, Mapping):
            values = self._placed(name, given, ())
        else:
            values = _real_array(name, given)
            if values.shape != (self.d,):
                template = "{name} must have one number per column, shape ({d},); got {shape}."
                raise ParameterError(template, name=Parameter(name), d=self.d, shape=values.shape)
        what = "finite" if least < 0.0 else "positive and finite"
        self._refuse(name, what, ~((values >= least) & (values <= _LARGEST)) & ~np.isnan(values))
        return values

    def _placed(self, name: str, given: Mapping[Any, Any], shape: tuple[int, ...]) -> Array:
        """Return the values of a mapping at the places of their columns, NaN elsewhere; (*shape, d)."""
        values = np.full((*shape, self.d), np.nan)
        for key, value in given.items():
            one = _real_array(name, value)
            if one.shape != shape or np.isnan(one).any():
                what = "a pair (low, high) of numbers" if shape else "a number"
                template = "{name} must give {what} for each column that it names; not so for {key!r}."
                raise ParameterError(template, name=Parameter(name), what=what, key=key)
            values[..., self._position(name, key)] = one
        return values

    def _position(self, name: str, key: Any) -> int:
        if self.names is not None and isinstance(key, str) and self.names.count(key) == 1:
            return self.names.index(key)
        if isinstance(key, int | np.integer) and not isinstance(key, bool) and 0 <= key < self.d:
            return int(key)
        ways = f"by position below {self.d}" if self.names is None else f"by name or by position below {self.d}"
        twice = " The table has several columns of that name." if self.names and key in self.names else ""
        template = "{name} must name columns of the table, {ways}; got {key!r}.{twice}"
        raise ParameterError(template, name=Parameter(name), ways=ways, key=key, twice=twice)

    def _refuse(self, name: str, what: str, wrong: Bools) -> None:
        """Name the first column that is wrong; the numbers are not quoted, they might be data by mistake."""
        if wrong.any():
            first = int(np.flatnonzero(wrong)[0])
            column = first if self.names is None else self.names[first]
            template = "{name} must be {what}, with squares in range; not so for column {column!r}."
            raise ParameterError(template, name=Parameter(name), what=what, column=column)


def _real_array(name: str, given: Any) -> Array:
    values = checks.as_array(given, name)
    if values.dtype.kind not in "biuf":
        raise ParameterError(
            "{name} must be numbers; got dtype {dtype}.", name=Parameter(name), dtype=values.dtype.name
        )
    return values.astype(np.float64)
