"""What a report is about: a release, and what its owner adds to it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from privspan._lib.errors import ParameterTypeError
from privspan._lib.record import Record
from privspan.planner import Plan
from privspan.privacy import Release
from privspan.privacy.reading import Reading
from privspan.privacy.rotated import Rotated


@dataclass(frozen=True)
class Subject(Reading):
    """A release with its column names, its plan and where the table came from.

    Holds public and released values only: nothing else is in a `Release`.
    """

    release: Release
    plan: Plan | None = None
    record: Record = field(default_factory=Record)
    rotated: Rotated | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.release, Release):
            raise ParameterTypeError(
                "{release} must be a Release (of an estimator, its `release_`); got {kind}.",
                kind=type(self.release).__name__,
            )
        if not (self.plan is None or isinstance(self.plan, Plan)):
            raise ParameterTypeError("{plan} must be a Plan or None; got {kind}.", kind=type(self.plan).__name__)
        if not isinstance(self.record, Record):
            raise ParameterTypeError(
                "{record} must be a Record or None; got {kind}.", kind=type(self.record).__name__
            )
        super().__post_init__()

    @property
    def planned_unit(self) -> str:
        """What the n of the plan counts: a method that is given differences of pairs is planned for these."""
        by_pairs = self.by_pairs and not (self.plan is not None and self.plan.center)
        return f"pairs of {self.unit}" if by_pairs else self.unit

    def _public(self, name: str) -> int | None:
        value = self.release.parameters.get(name, getattr(self.plan, name, None))
        return int(value) if isinstance(value, int | np.integer) else None
