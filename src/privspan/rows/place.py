"""Where the partitions of a table live, and how functions are sent there.

A function that is sent must be pure: equal arguments, equal bits, nothing changed.  A place may then run it twice, or
again after a machine has died, and nobody can tell.  `LocalPlace` is this process; others live in
`privspan.backends`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, TypeVar

from privspan.rows.limits import LIMITS

_Value = TypeVar("_Value")
Part: TypeAlias = Any
"""What a place knows a value by that belongs to one partition and lives next to it."""


class Place(ABC):
    """Where partitions live, and how functions are sent there."""

    @property
    @abstractmethod
    def kept_bytes(self) -> int:
        """How much may be kept between passes, over all partitions."""

    @abstractmethod
    def send(self, values: Sequence[object]) -> list[Part]:
        """Return one part per value: small public arguments, one per partition."""

    @abstractmethod
    def map(self, function: Callable[..., object], *parts: Sequence[Part]) -> list[Part]:
        """Return the parts ``function(first, second, …)``, one per partition; nothing need be computed yet."""

    def keep(self, parts: Sequence[Part], lengths: Sequence[int], columns: int) -> list[Part]:
        """Return dense rows of so many columns, computed now and kept between passes if there is room."""
        fits = 8 * sum(lengths) * columns <= self.kept_bytes  # of float64
        return self.hold(parts, lengths) if fits else list(parts)

    def once(self, parts: Sequence[Part]) -> list[Part]:
        """Return parts that many others are made of, so that each is computed once for all of these."""
        return list(parts)

    @abstractmethod
    def hold(self, parts: Sequence[Part], lengths: Sequence[int]) -> list[Part]:
        """Compute the parts and keep them where they are.

        `lengths`, here and below, are the rows behind each part, for whoever watches the progress.
        """

    @abstractmethod
    def fetch(self, parts: Sequence[Part], lengths: Sequence[int]) -> list[Any]:
        """Compute the parts and bring them here, in order."""

    @abstractmethod
    def merge(self, parts: Sequence[Part], lengths: Sequence[int], merge: Callable[[list[_Value]], _Value]) -> _Value:
        """Compute the parts, merge some at a time into fresh values until one is left, and bring that here."""


class LocalPlace(Place):
    """Partitions in this process, worked on one after the other; a part is a function that returns its value."""

    @property
    def kept_bytes(self) -> int:
        """A gibibyte."""
        return LIMITS.kept_bytes

    def send(self, values: Sequence[object]) -> list[Part]:
        """Return functions that return the values."""
        return [partial(_itself, value) for value in values]

    def map(self, function: Callable[..., object], *parts: Sequence[Part]) -> list[Part]:
        """Return functions that compute when they are called."""
        return [partial(_computed, function, row) for row in zip(*parts, strict=True)]

    def once(self, parts: Sequence[Part]) -> list[Part]:
        """Compute now."""
        return self.send([part() for part in parts])

    def hold(self, parts: Sequence[Part], lengths: Sequence[int]) -> list[Part]:
        """Compute now."""
        return self.send([part() for part in parts])

    def fetch(self, parts: Sequence[Part], lengths: Sequence[int]) -> list[Any]:
        """Compute now."""
        return [part() for part in parts]

    def merge(self, parts: Sequence[Part], lengths: Sequence[int], merge: Callable[[list[_Value]], _Value]) -> _Value:
        """Merge two at a time, so that two values are in memory at most."""
        merged = merge([parts[0]()])
        for part in parts[1:]:
            merged = merge([merged, part()])
        return merged


def _itself(value: _Value) -> _Value:
    return value


def _computed(function: Callable[..., _Value], parts: Sequence[Callable[[], object]]) -> _Value:
    return function(*(part() for part in parts))
