"""What a private PCA has released, put together: components by variance, a mean, and how all of it was made."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan.planner import Plan
from privspan.privacy import Part, PrivacyCost, Release
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.run import Run
from privspan.private import Method
from privspan.rows.columns import PublicColumns
from privspan.rows.table import Table as Source
from privspan.standard.course import StandardisedPCA
from privspan.subspace import Subspace
from privspan.sums.loadings import errors_after_turning, told_errors
from privspan.sums.pca_result import Noisy, PCAResult

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

    source: Source
    public: PublicColumns
    names: tuple[str, ...] | None

    def named(self, columns: NDArray[np.bool_]) -> tuple[str | int, ...]:
        """Return the names, or the positions, of some columns."""
        return tuple(self.names[i] if self.names else int(i) for i in np.flatnonzero(columns))

    @property
    def halves(self) -> Source:
        """A stand-in for the differences of pairs, of which only the numbers of rows mean anything."""
        return self.source.halved()


@dataclass(frozen=True)
class Course:
    """How to go on once k is known."""

    centring: str
    method: Method
    plan: Plan
    accounts: dict[str, MuLedger]  # of each step


@dataclass(frozen=True)
class Learnt:
    """What a course released, what it spent, and how it was made."""

    result: PCAResult
    parts: tuple[Part, ...]  # every Gaussian step by its mu, or the whole of each step where they add up
    method: str = LABEL
    abstained: bool = False


def by_method(subspace: Release, variances: Release, mean: Noisy[Array] | None, centring: str) -> PCAResult:
    """Return what a method and the steps after it released: components by variance."""
    turned, along = variances.subspace, {name: np.asarray(value) for name, value in variances.extras.items()}
    assert turned is not None
    halved = 0.5 if centring == "pair differences" else 1.0  # differences vary twice as much as rows
    told = [along[name] * halved for name in ("explained_variance", "explained_variance_std")]
    total = [float(along[name]) * halved for name in ("total_variance", "total_variance_std")]
    error, errors = subspace.parameters.get("expected_error"), None
    if isinstance(error, float) and not subspace.abstained:
        directions = told_errors(subspace.parameters, len(told[0]))
        errors = errors_after_turning(turned.basis, told[0], float(told[1][0]), directions)
    clip: Any = variances.parameters["norm_bound"]
    return PCAResult(
        basis=turned.basis,
        ratios=Noisy(along["explained_variance_ratio"], math.nan),
        variances=Noisy(told[0], told[1]),
        total=Noisy(total[0], total[1]),
        course=subspace.method,
        mean=mean,
        components_std=errors,
        clip=clip,
        about={**subspace.parameters, "centring": centring},
    )


def released(
    result: PCAResult,
    table: Table,
    cost: PrivacyCost,
    run: Run,
    *,
    method: str = LABEL,
    units: Array | None = None,
    abstained: bool = False,
) -> Release:
    """Put it together: each component with its largest entry positive, the mean in the units of the table."""
    (n, d), told, mean = table.source.shape, result.told(), result.mean
    scale = np.ones(d) if units is None else units
    if units is not None:
        told |= {"scale": scale, "scale_std": np.zeros(d)}
    if result.filled is not None and result.about.get("typical_length") is not None:
        told["centre"] = result.filled * scale
    if mean is None:
        told["mean"] = np.zeros(d)
    elif mean.measured:
        told |= Noisy(mean.value * scale, mean.std * scale).named("mean")
    else:
        told["mean"] = table.public.start
    offset = None if mean is None else np.asarray(told["mean"]) / scale
    found = None if abstained else Subspace(_signed(result.basis), offset=offset, names=table.names)
    return Release(found, cost, method, {**result.about, "n": int(n), "d": int(d)}, run.private, told)


def standardised(learnt: StandardisedPCA, table: Table, run: Run) -> Release:
    """Put it together; columns of which neither unit nor centre is known are named."""
    made, public = learnt.components, table.public
    (n, d), k = (int(size) for size in table.source.shape), made.basis.shape[1]
    result = PCAResult(
        basis=_signed(made.basis),
        ratios=Noisy(made.variances / d, math.nan),
        variances=Noisy(made.variances, made.variances_std),
        total=Noisy(float(d), 0.0),  # known: every column has variance 1
        course=learnt.course,
        mean=None,
        components_std=made.loadings_std,
        captured=made.captured,
        stands_out=made.stands_out,
        gaps=learnt.gaps,
    )
    told = {**result.told(), "column_weights": made.weights}
    units = column_units(learnt, public)
    known = np.isfinite(units["mean"]) & np.isfinite(units["scale"])
    if known.any():
        neutral = {"mean": 0.0, "scale": 1.0, "low": -_FURTHEST, "high": _FURTHEST}
        told |= {name: np.where(known, values, neutral.get(name, 0.0)) for name, values in units.items()}
    offset = np.asarray(told["mean"]) / np.asarray(told["scale"]) if known.all() else None
    parameters: dict[str, object] = {"k": k, "centring": "standardised columns", "course": learnt.course}
    parameters |= {"estimates": ESTIMATES[learnt.course], "passes": learnt.passes, "n": n, "d": d}
    parameters |= {"without_units": table.named(~known), "not_seen": table.named(~made.seen)}
    if learnt.units is not None:
        parameters["mostly_one_value"] = table.named(learnt.units.ranges.spike)
    if learnt.course == "deviations":
        parameters["variance_cut"] = learnt.cut
    basis = Subspace(result.basis, offset=offset, names=table.names)
    return Release(basis, run.account.cost(), STANDARDISED, parameters, run.private, told)


def _signed(basis: Array) -> Array:
    """Return a basis (d, k) whose columns have their largest entry positive."""
    largest = np.abs(basis).argmax(axis=0)
    return np.asarray(basis * np.where(basis[largest, np.arange(basis.shape[1])] < 0, -1.0, 1.0))


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
