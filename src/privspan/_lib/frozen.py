"""Read-only copies of released values: a mapping that cannot be changed, compares and pickles."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from fractions import Fraction

import numpy as np


class FrozenMapping(Mapping[str, object]):
    """A read-only copy of a mapping.

    Arrays are copied and made read-only, lists become tuples, mappings inside become frozen too.  Two of them are
    equal when they hold equal values, arrays compared as a whole.
    """

    __slots__ = ("_values",)

    _values: dict[str, object]

    def __init__(self, values: Mapping[str, object]) -> None:
        frozen = {}
        for key, value in values.items():
            frozen[key] = freeze(value)
        object.__setattr__(self, "_values", frozen)

    def __getitem__(self, key: str) -> object:
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"this mapping is read-only; cannot set {name!r}")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mapping):
            return NotImplemented
        return self.keys() == other.keys() and all(_equal(self[key], freeze(other[key])) for key in self)

    __hash__ = None  # type: ignore[assignment]  # arrays inside have no hash

    def __repr__(self) -> str:
        return repr(self._values)

    def __reduce__(self) -> tuple[object, ...]:
        return FrozenMapping, (self._values,)


def freeze(value: object) -> object:
    """Return a copy of a value that cannot be changed from outside."""
    if isinstance(value, np.ndarray):
        copy = np.array(value)
        copy.setflags(write=False)
        return copy
    if isinstance(value, Mapping):
        return value if isinstance(value, FrozenMapping) else FrozenMapping(value)
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def plain(value: object) -> object:
    """Return the value in JSON's types: arrays as lists, NumPy scalars as numbers, fields by name, else text."""
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    if isinstance(value, np.ndarray | np.generic):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return str(value) if isinstance(value, Fraction) else repr(value)


def _equal(left: object, right: object) -> bool:
    if isinstance(left, np.ndarray) or isinstance(right, np.ndarray):
        if not (isinstance(left, np.ndarray) and isinstance(right, np.ndarray)):
            return False
        floating = left.dtype.kind in "fc" and right.dtype.kind in "fc"
        return left.dtype == right.dtype and np.array_equal(left, right, equal_nan=floating)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(map(_equal, left, right))
    if isinstance(left, float) and isinstance(right, float) and math.isnan(left):
        return math.isnan(right)
    return bool(left == right)
