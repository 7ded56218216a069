"""What a private PCA has released, put together: components by variance, a mean, and how all of it was made."""

from __future__ import annotations

import math
import sys
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
from privspan.standard.course import StandardisedPCA
from privspan.subspace import Subspace
from privspan.sums.everyday_look import EverydayLook
from privspan.sums.judge import Captured
from privspan.sums.loadings import errors_after_turning, told_errors
from privspan.sums.mean import PrivateMean

Array = NDArray[np.float64]

STANDARDISED = "private PCA (standardised columns)"
"""What a release says of how it was made whose columns all weigh the same."""

ESTIMATES = {"ranks": "rank correlations", "deviations": "correlations of winsorised columns"}
"""What the components are of, by course."""

_FURTHEST = sys.float_info.max

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
    accounts: dict[str, MuLedger]  # of each step


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
        extras: dict[str, Any] = {
            "explained_variance_ratio": look.ratios,
            "explained_variance_ratio_std": look.ratios_std,
        }
        if not math.isnan(look.total):
            extras |= {"explained_variance": look.variances, "explained_variance_std": _each(look.variances_std, k)}
            extras |= {"total_variance": look.total, "total_variance_std": look.total_std}
        if np.isfinite(look.mean_std).all():
            extras["mean_std"] = _each(look.mean_std, d)
        extras["components_std"] = look.basis_std
        extras |= told_of_captured(look.captured, look.stands_out)
        if look.clip is not None:
            extras["clip"] = look.clip
        if look.shortened is not None:
            extras |= {"rows_shortened": look.shortened, "rows_shortened_std": look.shortened_std}
        if look.at_least is not None and look.stands_out:
            extras |= {"captured_variance_at_least": look.at_least, "longest_counted": look.counted_to}
        if look.filled is not None and look.length is not None:
            extras["centre"] = look.filled
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

    @property
    def parts(self) -> tuple[Part, ...]:
        """List what was spent: every Gaussian step by its mu, or the whole of each step where they add up."""
        steps = {"subspace": self.subspace, "variances": self.variances, "mean": self.mean}
        costs = {step: made.cost for step, made in steps.items() if made is not None}
        if self.course.method.in_mu:
            return tuple(part for cost in costs.values() for part in cost.parts)
        return tuple(Part(step, cost.epsilon, cost.delta) for step, cost in costs.items())

    def numbers(self) -> Numbers:
        """Return what is released: components by variance."""
        turned = self.variances.subspace
        assert turned is not None
        extras: dict[str, Any] = {**self.variances.extras, "clip": self.variances.parameters["norm_bound"]}
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

    def release(self, cost: PrivacyCost, units: Array | None, table: Table) -> Release:
        """Put it together: each component with its largest entry positive, the mean in the units of the table."""
        (n, d), extras = table.source.shape, dict(self.extras)
        basis = _signed(self.basis)
        scale = np.ones(d) if units is None else units
        mean = np.zeros(d) if self.mean is None else self.mean * scale
        if units is not None:
            extras |= {"scale": scale, "scale_std": np.zeros(d)}
        if "centre" in extras:
            extras["centre"] = extras["centre"] * scale
        if self.mean is not None and "mean_std" in extras:
            extras["mean_std"] = extras["mean_std"] * scale
        elif self.mean is not None:
            mean = table.public.start
        extras["mean"] = mean
        offset = None if self.mean is None else mean / scale
        found = None if self.abstained else Subspace(basis, offset=offset, names=table.names)
        parameters = {**self.parameters, "n": int(n), "d": int(d)}
        return Release(found, cost, self.method, parameters, self.private, extras)


def told_of_captured(captured: Captured, stands_out: int) -> dict[str, float | int]:
    """Return what is said of the components' quality; where none stands out there is no number worth telling."""
    quality = {"captured_variance": captured.value, "captured_variance_std": captured.std} if stands_out else {}
    return {**quality, "stands_out": stands_out}


def _each(std: float | Array, size: int) -> Array:
    return np.array(np.broadcast_to(std, size))


def _signed(basis: Array) -> Array:
    """Return a basis (d, k) whose columns have their largest entry positive."""
    largest = np.abs(basis).argmax(axis=0)
    return np.asarray(basis * np.where(basis[largest, np.arange(basis.shape[1])] < 0, -1.0, 1.0))


@dataclass(frozen=True)
class Standardised:
    """What the course of standardised columns released, before it is put together."""

    learnt: StandardisedPCA
    cost: PrivacyCost
    private: bool

    def release(self, table: Table) -> Release:
        """Put it together; columns of which neither unit nor centre is known are named."""
        made, learnt = self.learnt.components, self.learnt
        (n, d), k = (int(size) for size in table.source.shape), made.basis.shape[1]
        extras: dict[str, Any] = {
            "explained_variance": made.variances,
            "explained_variance_std": made.variances_std,
            "explained_variance_ratio": made.variances / d,
            "total_variance": float(d),
            "total_variance_std": 0.0,  # known: every column has variance 1
            "components_std": made.loadings_std,
            "column_weights": made.weights,
            **told_of_captured(made.captured, made.stands_out),
        }
        if learnt.gaps is not None:
            extras |= {"gaps": learnt.gaps.counts, "gaps_std": learnt.gaps.std}
        units = column_units(learnt, table.public)
        known = np.isfinite(units["mean"]) & np.isfinite(units["scale"])
        if known.any():
            neutral = {"mean": 0.0, "scale": 1.0, "low": -_FURTHEST, "high": _FURTHEST}
            extras |= {name: np.where(known, values, neutral.get(name, 0.0)) for name, values in units.items()}
        offset = extras["mean"] / extras["scale"] if known.all() else None
        parameters: dict[str, Any] = {"k": k, "centring": "standardised columns", "course": learnt.course}
        parameters |= {"estimates": ESTIMATES[learnt.course], "passes": learnt.passes, "n": n, "d": d}
        parameters |= {"without_units": table.named(~known), "not_seen": table.named(~made.seen)}
        if learnt.units is not None:
            parameters["mostly_one_value"] = table.named(learnt.units.ranges.spike)
        if learnt.course == "deviations":
            parameters["variance_cut"] = learnt.cut
        basis = Subspace(_signed(made.basis), offset=offset, names=table.names)
        return Release(basis, self.cost, STANDARDISED, parameters, self.private, extras)


def column_units(learnt: StandardisedPCA, public: PublicColumns) -> dict[str, Array]:
    """Return centre and unit of every column, measured or public, NaN where neither is known; (d,) each.

    A column with public bounds has their middle, and the standard deviation that it would have if all values between
    them were as likely; one with a public centre has that.
    """
    if learnt.units is not None:
        moments = learnt.units.moments
        names = ("mean", "mean_std", "scale", "scale_std", "low", "high")
        return {name: getattr(moments, name) for name in names}
    bounded = public.bounded
    mean = np.where(bounded | np.isfinite(public.around), public.start, np.nan)
    scale = np.where(public.boolean, 0.5, np.where(bounded, public.half_range / math.sqrt(3.0), np.nan))
    low, high = np.where(bounded, public.low, -_FURTHEST), np.where(bounded, public.high, _FURTHEST)
    return {"mean": mean, "scale": scale, "low": low, "high": high}
