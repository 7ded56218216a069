"""What a private PCA has released, put together: components by variance, a mean, and how all of it was made."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan.planner import Plan
from privspan.privacy import Part, PrivacyCost, Release
from privspan.privacy.mu_ledger import MuLedger
from privspan.private import Method
from privspan.rows import PartitionedTable
from privspan.rows.columns import PublicColumns
from privspan.subspace import Subspace
from privspan.sums.everyday_look import EverydayLook
from privspan.sums.loadings import errors_after_turning, told_errors
from privspan.sums.mean import PrivateMean
from privspan.sums.scales import ColumnScales

Array = NDArray[np.float64]

LABEL = "private PCA"
"""What a release of the everyday course says of how it was made."""


def label(subspace: str) -> str:
    """Return what a release says of how it was made, given how its subspace was."""
    return f"private PCA ({subspace})"


@dataclass(frozen=True)
class Table:
    """A table as the steps take it, and what is public of its columns."""

    source: Any
    public: PublicColumns
    names: tuple[str, ...] | None

    def named(self, columns: NDArray[np.bool_]) -> tuple[str | int, ...]:
        """Return the names, or the positions, of some columns."""
        return tuple(self.names[i] if self.names else int(i) for i in np.flatnonzero(columns))

    @property
    def halves(self) -> Any:
        """A stand-in for the differences of pairs, of which only the numbers of rows mean anything."""
        if isinstance(self.source, PartitionedTable):
            return replace(self.source, lengths=tuple(length // 2 for length in self.source.lengths))
        return np.broadcast_to(0.0, (self.source.shape[0] // 2, self.source.shape[1]))


@dataclass(frozen=True)
class Course:
    """How to go on once k is known."""

    centring: str
    method: Method
    plan: Plan
    ledgers: dict[str, MuLedger]  # of each step


@dataclass(frozen=True)
class Looked:
    """What the everyday course released, before it is put together."""

    look: EverydayLook
    parts: tuple[Part, ...]  # what was spent: every Gaussian step by its mu
    private: bool

    def numbers(self) -> Numbers:
        """Return what is released, leaving out what there was too little data to measure."""
        look = self.look
        k, d = look.basis.shape[1], look.basis.shape[0]
        extras: dict[str, Any] = {"explained_variance_ratio": look.ratios}
        if not math.isnan(look.total):
            extras |= {"explained_variance": look.variances, "explained_variance_std": np.full(k, look.variances_std)}
            extras |= {"total_variance": look.total, "total_variance_std": look.total_std}
        if math.isfinite(look.mean_std):
            extras["mean_std"] = np.full(d, look.mean_std)
        extras["components_std"] = look.basis_std
        extras |= {"captured_variance": look.captured.value, "captured_variance_std": look.captured.std}
        extras["found"] = look.found
        if look.clip is not None:
            extras |= {"clip": look.clip, "rows_shortened": look.shortened, "rows_shortened_std": look.shortened_std}
        if look.gaps is not None:
            extras |= {"gaps": look.gaps.counts, "gaps_std": look.gaps.std}
        by_pairs = look.course in ("pairs", "centre not found")
        centring = "pair differences" if by_pairs else "localised rounds" if look.rounds else "public centre"
        parameters = {"k": k, "centring": centring, "course": look.course, "rounds": look.rounds}
        parameters |= {"typical_length": look.length, "weight_of_unit_rows": look.weight}
        parameters |= {} if look.passes is None else {"passes": look.passes}
        return Numbers(look.basis, look.mean, extras, parameters, LABEL, self.private)


@dataclass(frozen=True)
class Found:
    """What a method and the steps after it released, before it is put together."""

    subspace: Release
    variances: Release
    mean: PrivateMean | None
    centre: Array | None  # public
    course: Course
    before: tuple[Part, ...]  # spent on scales

    @property
    def parts(self) -> tuple[Part, ...]:
        """List what was spent: every Gaussian step by its mu, or the whole of each step where they add up."""
        steps = {"subspace": self.subspace, "variances": self.variances, "mean": self.mean}
        costs = {step: made.cost for step, made in steps.items() if made is not None}
        if self.course.method.within is not None:
            return (*self.before, *(part for cost in costs.values() for part in cost.parts))
        return tuple(Part(step, cost.epsilon, cost.delta) for step, cost in costs.items())

    def numbers(self) -> Numbers:
        """Return what is released: components by variance."""
        turned = self.variances.subspace
        assert turned is not None
        extras: dict[str, Any] = dict(self.variances.extras)
        mean = self.centre
        if self.mean is not None:
            mean, extras["mean_std"] = self.mean.mean, np.full(len(self.mean.mean), self.mean.noise)
        if self.course.centring == "pair differences":  # whose variances are twice those of the rows
            halved = ("explained_variance", "explained_variance_std", "total_variance", "total_variance_std")
            extras |= {name: extras[name] / 2.0 for name in halved}
        error = self.subspace.parameters.get("expected_error")
        if isinstance(error, float) and not self.subspace.abstained:
            std, variances = float(extras["explained_variance_std"][0]), extras["explained_variance"]
            errors = told_errors(self.subspace.parameters, len(variances))
            extras["components_std"] = errors_after_turning(turned.basis, variances, std, errors)
        parameters = {**self.subspace.parameters, "centring": self.course.centring}
        made = label(self.subspace.method)
        return Numbers(turned.basis, mean, extras, parameters, made, self.subspace.private, self.subspace.abstained)


@dataclass(frozen=True)
class Numbers:
    """What was released, in the units of the rows that were looked at."""

    basis: Array  # (d, k)
    mean: Array | None  # (d,), None if nothing was taken away
    extras: dict[str, Any]
    parameters: dict[str, Any]
    method: str
    private: bool
    abstained: bool = False

    def release(self, cost: PrivacyCost, units: ColumnScales | None, table: Table) -> Release:
        """Put it together: each component with its largest entry positive, the mean in the units of the table."""
        (d, k), kept = self.basis.shape, None if units is None else units.found
        basis, extras, parameters = self.basis, dict(self.extras), dict(self.parameters)
        if kept is not None and not kept.all() and kept.sum() >= k:  # no noise where a column was left out
            basis = np.linalg.qr(basis * kept[:, None])[0]
            if "components_std" in extras:
                extras["components_std"] = np.where(kept, extras["components_std"], 0.0)
        largest = np.abs(basis).argmax(axis=0)
        basis = basis * np.where(basis[largest, np.arange(k)] < 0, -1.0, 1.0)
        scale = np.ones(d) if units is None else np.where(units.found, units.scale, 1.0)
        mean = np.zeros(d) if self.mean is None else self.mean * scale
        if units is not None:
            extras |= {"scale": scale, "scale_std": np.where(units.found, units.std * scale, 0.0)}
            parameters["left_out"] = table.named(~units.found)
        if self.mean is not None:
            measured = np.full(d, "mean_std" in extras) if units is None else units.found & ("mean_std" in extras)
            mean = np.where(measured, mean, table.public.start)
            if "mean_std" in extras:
                extras["mean_std"] = np.where(measured, extras["mean_std"] * scale, 0.0)
        offset = None if self.mean is None else mean / scale
        extras["mean"] = mean
        n = int(table.source.shape[0])
        found = None if self.abstained else Subspace(basis, offset=offset, names=table.names)
        return Release(found, cost, self.method, {**parameters, "n": n, "d": d}, self.private, extras)
