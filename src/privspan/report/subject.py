"""What a report is about: a release, and what its owner adds to it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from privspan.planner import Plan
from privspan.privacy import Release
from privspan.privacy.reading import Reading


@dataclass(frozen=True)
class Subject(Reading):
    """A release with its column names, its plan and where the table came from.

    Holds public and released values only: nothing else is in a `Release`.
    """

    release: Release
    plan: Plan | None = None
    source: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.release, Release):
            raise TypeError(
                f"`release` must be a Release (of an estimator, its `release_`); got {type(self.release).__name__}."
            )
        if not (self.plan is None or isinstance(self.plan, Plan)):
            raise TypeError(f"`plan` must be a Plan or None; got {type(self.plan).__name__}.")
        super().__post_init__()

    @property
    def planned_unit(self) -> str:
        """What the n of the plan counts: a method that is given differences of pairs is planned for these."""
        by_pairs = self._by_pairs and not (self.plan is not None and self.plan.center)
        counted = "persons" if self.by_persons else "rows"
        return f"pairs of {counted}" if by_pairs else counted

    def _public(self, name: str) -> int | None:
        value = self.release.parameters.get(name, getattr(self.plan, name, None))
        return int(value) if isinstance(value, int | np.integer) else None
