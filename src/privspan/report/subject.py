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
        """What n counts."""
        return "pairs of rows" if self._by_pairs and self._earlier else "rows"

    @property
    def planned_unit(self) -> str:
        """What the n of the plan counts: a method that is given differences of pairs is planned for these."""
        by_pairs = self._by_pairs and not (self.plan is not None and self.plan.center)
        return "pairs of rows" if by_pairs else "rows"

    @property
    def found(self) -> int | None:
        """How many components, from the first on, can be told from noise; None if that is not told."""
        found = self.released("found")
        return None if found is None else int(found[0])

    def is_noise(self, component: int) -> bool:
        """Whether a component cannot be told from noise."""
        return self.found is not None and component >= self.found

    @property
    def mean_is(self) -> str:
        """Whether the mean that is released was "measured", is "public", or "absent"."""
        if self.released("mean") is None or self.release.parameters.get("centring") == "none":
            return "absent"
        if self._earlier or self.released("mean_std") is not None:
            return "measured"
        return "public" if self.release.parameters.get("centring") == "public centre" else "absent"

    @property
    def left_out(self) -> list[str]:
        """Names of the columns in which no spread could be measured."""
        told = self.release.parameters.get("left_out", ())
        places = told if isinstance(told, tuple) else ()
        return [self.names[place] if isinstance(place, int) else str(place) for place in places]

    @property
    def _by_pairs(self) -> bool:
        return self.release.parameters.get("centring") == "pair differences"

    @property
    def _earlier(self) -> bool:
        """Whether it was made before a private PCA told of units; it then counted pairs, and told of no noise."""
        return "scale" not in self.release.parameters

    @property
    def is_exact(self) -> bool:
        """Whether an exact subspace was found."""
        return self.release.subspace is not None and self.release.subspace.exact is not None

    @property
    def is_pca(self) -> bool:
        """Whether the basis is ordered by variance; otherwise it is one of many."""
        return "explained_variance_ratio" in self.release.extras or "explained_variance" in self.release.extras

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
