"""What a report is about: a release, and what its owner adds to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privspan.planner import Plan
from privspan.privacy import Release


@dataclass(frozen=True)
class Subject:
    """A release with its plan, its column names and where the table came from.

    Holds public and released values only: nothing else is in a `Release`.
    """

    release: Release
    plan: Plan | None = None
    columns: Sequence[str] | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.release, Release):
            raise TypeError(
                f"`release` must be a Release (of an estimator, its `release_`); got {type(self.release).__name__}."
            )
        if not (self.plan is None or isinstance(self.plan, Plan)):
            raise TypeError(f"`plan` must be a Plan or None; got {type(self.plan).__name__}.")
        if isinstance(self.columns, str) or not all(isinstance(name, str) for name in self.columns or ()):
            raise TypeError("`columns` must be a sequence of str.")
        if self.columns is not None and self.d not in (None, len(self.columns)):
            raise ValueError(f"`columns` must hold {self.d} names, one per column; got {len(self.columns)}.")

    @cached_property
    def d(self) -> int | None:
        """The number of columns, where anything tells it."""
        found = self.release.subspace
        return self._public("d") if found is None else found.ambient_dimension

    @cached_property
    def k(self) -> int | None:
        """The dimension that was found or asked for."""
        found = self.release.subspace
        return self._public("k") if found is None else found.dimension

    @property
    def n(self) -> int | None:
        """How many rows took part, or pairs of them."""
        return self._public("n")

    @property
    def unit(self) -> str:
        """What n counts: pairs where rows were centred by differences of pairs."""
        centring = self.release.parameters.get("centring")
        return "pairs of rows" if centring == "pair differences" else "rows"

    @property
    def is_exact(self) -> bool:
        """Whether an exact subspace was found."""
        return self.release.subspace is not None and self.release.subspace.exact is not None

    @property
    def is_pca(self) -> bool:
        """Whether the basis is ordered by variance; otherwise it is one of many."""
        return "explained_variance" in self.release.extras

    @cached_property
    def names(self) -> Sequence[str]:
        """Names of the columns: those given, those of the subspace, or their numbers."""
        given = self.columns or (self.release.subspace and self.release.subspace.names)
        return given or [f"column {i + 1}" for i in range(self.d or 0)]

    def released(self, name: str) -> NDArray[np.float64] | None:
        """Return a released array of finite numbers; None if there is no such thing."""
        if name not in self.release.extras:
            return None
        values = np.atleast_1d(np.asarray(self.release.extras[name], dtype=np.float64))
        return values if np.all(np.isfinite(values)) else None

    def _public(self, name: str) -> int | None:
        value = self.release.parameters.get(name, getattr(self.plan, name, None))
        return int(value) if isinstance(value, int | np.integer) else None
