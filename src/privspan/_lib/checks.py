"""Parameter checks with one message style.

Every check looks at public facts only (parameters, types, shapes, dtypes), never at a data value, and runs
before any data value is read.  The message names the parameter, says what it takes, and shows what it got:

    `epsilon` must be a positive finite number; got -1.

A parameter that is not a plain scalar is described by its type, never by its contents, so that data passed in
the wrong place cannot end up in a message.

Wrong type: ``ParameterTypeError``, a ``TypeError``.  Right type, wrong value: ``ParameterError``, a ``ValueError``.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np

from privspan._lib import frames
from privspan._lib.arrays import Reals
from privspan._lib.errors import Parameter, ParameterError, ParameterTypeError, PrivspanError

_LONGEST_SHOWN = 60  # characters of a scalar parameter that a message repeats

EPSILONS = (1e-9, 1e4)
"""Beyond these bounds a budget is refused: below nothing can be learnt, above there is nothing left to promise."""

SMALLEST_DELTA = 2.0**-100
"""A smaller delta is refused: a release that rests on it would never come."""


def positive(**parameters: object) -> None:
    """Refuse every keyword argument that is not a finite number above zero, as in ``positive(epsilon=epsilon)``."""
    _finite_numbers(parameters, "a positive finite number", above=0.0)


def moderate(**parameters: object) -> None:
    """Refuse every keyword argument that is not a number whose square, and quotients with others, stay in range."""
    _finite_numbers(parameters, "between 2**-500 and 2**500", least=2.0**-500, most=2.0**500)


def non_negative(**parameters: object) -> None:
    """Refuse every keyword argument that is not a finite number, zero or above."""
    _finite_numbers(parameters, "a finite number, zero or above", least=0.0)


def probability(**parameters: object) -> None:
    """Refuse every keyword argument that is not a number strictly between 0 and 1."""
    _finite_numbers(parameters, "a number strictly between 0 and 1", above=0.0, below=1.0)


def budget(epsilon: object, delta: object) -> None:
    """Refuse an (epsilon, delta) pair unless epsilon > 0 is finite and 0 < delta < 1."""
    positive(epsilon=epsilon)
    probability(delta=delta)


def integer_at_least(minimum: int, /, **parameters: object) -> None:
    """Refuse every keyword argument that is not an integer of at least `minimum`."""
    for name, value in parameters.items():
        what = f"an integer, at least {minimum}"
        if not is_integer(value):
            raise refusal(ParameterTypeError, name, what, value)
        if int(value) < minimum:
            raise refusal(ParameterError, name, what, value)


def dimension(*, k: object, d: int, n: int | None = None) -> None:
    """Refuse a subspace dimension k above the number d of columns, or of rows where n, their number, is given."""
    integer_at_least(1, k=k)
    assert is_integer(k)
    if k > d:
        raise refusal(ParameterError, "k", f"at most the number of columns, {d}", k)
    if n is not None and k > n:
        raise refusal(ParameterError, "k", f"at most the number of rows, {n}", k)


def one_of(options: Collection[object], /, **parameters: object) -> None:
    """Refuse every keyword argument that is not one of `options` (compared with type, so 1 is not True)."""
    for name, value in parameters.items():
        for option in options:
            if isinstance(value, type(option)) and value == option:
                break
        else:
            raise refusal(ParameterError, name, f"one of {', '.join(map(repr, options))}", value)


Checks = Mapping[str, Callable[..., object]]
"""Expert settings by name, each with its check."""


def options(known: Checks, given: object, keywords: Mapping[str, object] | None = None) -> dict[str, Any]:
    """Return the expert settings of a call: those of its mapping `options` and those among its keyword arguments."""
    found = settings(known, "options", {} if given is None else given)
    for name, value in (keywords or {}).items():
        if name not in known:  # what Python says of an argument that a function does not take
            template = "{name} must be a parameter or an expert setting: {known}."
            raise ParameterTypeError(template, name=Parameter(name), known=", ".join(known))
        if name in found:
            raise ParameterTypeError("{name} must be given once, as a keyword or in {options}.", name=Parameter(name))
        found |= settings(known, "options", {name: value})
    return found


def settings(known: Checks, parameter: str, given: object) -> dict[str, Any]:
    """Return the settings of a mapping that are not None; refuse a name not in `known`, and what fails its check."""
    if not isinstance(given, Mapping):
        raise refusal(ParameterTypeError, parameter, "a mapping", given)
    for name, value in given.items():
        one_of(known, **{parameter: name})
        if value is not None:
            known[name](**{name: value})
    return {name: value for name, value in given.items() if value is not None}


def matrix(X: object, *, name: str = "X", min_rows: int = 1) -> Reals:
    """Return `X` as a plain two-dimensional array of real numbers, without looking at a value.

    Arrays, memory maps and arrays of other libraries are viewed, not copied, where NumPy can do so.
    Whether the input is accepted, and as what, depends on its type, dtypes and shape alone; a cell without a number
    is NaN.  (A list of lists has no declared type and becomes float64; one whose rows differ in length is refused,
    which one row can bring about.  Pass an array.)

    An array keeps its dtype; a frame or table of pandas, polars or Arrow, also with decimals or gaps, becomes float32
    if all its columns are, else float64 (`privspan._lib.frames`).  ``TypeError`` for a sparse or masked matrix and
    for entries that are not real numbers of at most 64 bits by their type, ``ValueError`` for the wrong shape.
    """
    array = _plain(X, name)
    if array.ndim != 2:
        what = "two-dimensional (rows are people, columns are features)"
        template = "{name} must be {what}; got {ndim} dimension(s), shape {shape}."
        raise ParameterError(template, name=Parameter(name), what=what, ndim=array.ndim, shape=array.shape)
    rows, columns = array.shape
    if rows < min_rows or columns < 1:
        what = f"of at least {min_rows} row(s) and 1 column"
        raise ParameterError(
            "{name} must be {what}; got shape {shape}.", name=Parameter(name), what=what, shape=array.shape
        )
    return array


def column(y: object, n: int) -> Reals:
    """Return `y` as a plain array of n real numbers, by the rules of `matrix`."""
    if isinstance(y, str):
        raise ParameterTypeError("{y} must hold a number for each row; the name of a column of ids is {person}.")
    array = _plain(y, "y")
    if array.shape != (n,):
        template = "{y} must have one entry per row, shape ({n},); got shape {shape}."
        raise ParameterError(template, n=n, shape=array.shape)
    return array


def columns(X: Any, d: int) -> None:
    """Refuse rows with another number of columns than those before."""
    if X.shape[1] != d:
        raise ParameterError("{X} must have {d} columns; got {got}.", d=d, got=int(X.shape[1]))


def real_entries(dtype: np.dtype, *, name: str) -> None:
    """Refuse a dtype other than booleans, integers or floats of at most 64 bits."""
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        what = "an array of booleans, integers or floats of at most 64 bits"
        raise ParameterTypeError(
            "{name} must be {what}; got dtype {dtype}.", name=Parameter(name), what=what, dtype=dtype.name
        )


def _plain(X: object, name: str) -> Reals:
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        template = "{name} must be a dense array; got a sparse {kind}. Call .toarray() first."
        raise ParameterTypeError(template, name=Parameter(name), kind=type(X).__name__)
    if isinstance(X, np.ma.MaskedArray):
        raise ParameterTypeError(
            "{name} must be a plain array; got a masked array. Fill the masked cells first.", name=Parameter(name)
        )
    array = as_array(X, name)
    real_entries(array.dtype, name=name)
    return array


def as_array(X: object, name: str) -> np.ndarray:
    """Return `X` as a plain array of whatever dtype, or raise a TypeError that quotes no entry."""
    numbers = None if isinstance(X, np.ndarray) else frames.frame_numbers(X, name)
    if numbers is not None:
        return numbers
    try:
        return np.asarray(X)  # a view of the base class for every ndarray subclass
    except Exception:
        # NumPy's own message could quote an entry, so it is dropped with its traceback.
        what = "a rectangular array of real numbers"
        template = "{name} must be {what}; got {got} that NumPy cannot convert."
        raise ParameterTypeError(template, name=Parameter(name), what=what, got=_describe(X)) from None


def _finite_numbers(
    parameters: Mapping[str, object],
    what: str,
    *,
    above: float = -math.inf,
    least: float = -math.inf,
    most: float = math.inf,
    below: float = math.inf,
) -> None:
    """Refuse what is no finite number above, from, up to and below these bounds."""
    for name, value in parameters.items():
        if not (isinstance(value, float | np.floating) or is_integer(value)):
            raise refusal(ParameterTypeError, name, what, value)
        try:
            number = float(value)
        except OverflowError:  # an integer beyond the range of a float
            number = math.inf
        if not (math.isfinite(number) and above < number < below and least <= number <= most):
            raise refusal(ParameterError, name, what, value)


def distinct_names(names: Sequence[str] | None) -> None:
    """Refuse columns of one name, which nothing could tell apart."""
    if names is None or len(set(names)) == len(names):
        return
    twice = [name for name, count in Counter(names).items() if count > 1]
    raise ParameterError(
        "{X} must have another name for every column; more than one is called {twice}. Rename them.",
        twice=", ".join(map(repr, twice)),
    )


def is_integer(value: object) -> TypeGuard[int]:
    """Tell whether this is a whole number, and no truth value."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def refusal(kind: type[PrivspanError], name: str, what: str, value: object) -> PrivspanError:
    """Return the error for a parameter that is not what it must be."""
    return kind("{name} must be {what}; got {got}.", name=Parameter(name), what=what, got=_describe(value))


def _describe(value: object) -> str:
    """Show a scalar; name the type of anything else, whose contents might be data."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, int) and value.bit_length() > 150:
        return f"an integer of {value.bit_length()} bits"
    if value is None or isinstance(value, bool | int | float | str):
        shown = repr(value)
        return shown if len(shown) <= _LONGEST_SHOWN else f"{shown[:_LONGEST_SHOWN]}..."
    return f"an object of type {type(value).__name__}"


def spendable(epsilon: Any, delta: Any = None) -> None:
    """Refuse an epsilon, or an (epsilon, delta), that no algorithm could spend."""
    positive(epsilon=epsilon)
    low, high = EPSILONS
    if not low <= epsilon <= high:
        raise ParameterError(
            "{epsilon} must be between {low:g} and {high:g}; got {got:.12g}.", low=low, high=high, got=float(epsilon)
        )
    if delta is not None:
        probability(delta=delta)
        if delta < SMALLEST_DELTA:
            what = "at least 2**-100, or nothing would ever be released"
            raise ParameterError("{delta} must be {what}; got {got:.12g}.", what=what, got=float(delta))


def not_too_large(epsilon: Any) -> None:
    """Refuse an epsilon that is no share of a budget that could be spent: above the largest there is no formula."""
    positive(epsilon=epsilon)
    if epsilon > EPSILONS[1]:
        raise ParameterError(
            "{epsilon} must be at most {most:g}; got {got:.12g}.", most=EPSILONS[1], got=float(epsilon)
        )
