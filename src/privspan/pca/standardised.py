"""Private PCA of columns that all weigh the same: the course of `privspan.standard`, and what is made of it.

Proof: docs/explanation/standardised.md.
"""

from __future__ import annotations

import math
import sys
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from privspan._lib.errors import ParameterError
from privspan.pca.outcome import STANDARDISED, finished, signed, warn_if_useless
from privspan.pca.settings import PCASettings, PCATable
from privspan.planner import Plan, plan_standardised
from privspan.privacy import Release
from privspan.privacy.call import Call
from privspan.privacy.run import Run
from privspan.rows.columns import PublicColumns
from privspan.standard.course import (
    STANDARD,
    Standard,
    StandardisedPCA,
    chosen_course,
    empty_share,
    standardised_pca,
)
from privspan.subspace import Subspace
from privspan.sums.gaps import released_gaps
from privspan.sums.pca_result import Noisy, PCAResult

Array = NDArray[np.float64]

ESTIMATES = {"ranks": "rank correlations", "deviations": "correlations of winsorised columns"}
"""What the components are of, by course."""

_FURTHEST = sys.float_info.max


def learn_standardised(settings: PCASettings, call: Call, table: PCATable) -> tuple[Release, Plan]:
    """Learn the components of the columns; return the plan, which is public, beside the release."""
    (n, d), most = table.source.shape, table.considered[-1]
    course = _course(settings, call, table)
    plan = plan_standardised(n, d, most, call.budget, course)
    warn_if_useless(call, plan)  # before anything is spent: a warning may be made an error
    run = call.begin(gaussian=True, empty=empty_share(table.source, call.budget.mu, course, int(table.gapped.sum())))
    gaps = released_gaps(table.source, table.gapped, run)
    learnt = standardised_pca(table.source, most, run, table.public, course=course, gaps=gaps)
    if settings.k == "auto":
        learnt = learnt.leading(max(1, learnt.components.stands_out), run.streams.public)
    made = _released(learnt, table, run)
    release = finished(settings, call, made, table, gaps, learnt.components.basis.shape[1])
    if settings.share is not None and learnt.released is not None:  # what the components that were kept capture
        assert release.subspace is not None
        kept = learnt.leading(release.subspace.dimension, run.streams.public).components.captured
        release = replace(release, extras={**release.extras, **kept.named("captured_variance")})
    return release, plan


def promise_standardised(settings: PCASettings, call: Call, table: PCATable) -> tuple[float, float]:
    """Return mu, and that no delta is set aside."""
    _course(settings, call, table)
    return call.budget.mu, 0.0


def _course(settings: PCASettings, call: Call, table: PCATable) -> Standard:
    """Return the course: the one asked for, or chosen from public numbers; refuse what none can do."""
    sparse = table.source.is_sparse
    n, d = table.source.shape
    if settings.scale == "deviations" and (sparse or d > STANDARD.widest_whole):
        what = "a sparse table, which is never filled" if sparse else f"more than {STANDARD.widest_whole:,} columns"
        raise ParameterError('{scale} must be True or "ranks" for {what}.', what=what)
    if settings.k == "auto" and d > STANDARD.widest_whole:
        template = "{k} must be a number with {scale:True} and more than {widest_whole:,} columns."
        raise ParameterError(template, widest_whole=STANDARD.widest_whole)
    if settings.scale == "ranks" or settings.robust:
        return "ranks"
    return "deviations" if settings.scale == "deviations" else chosen_course(n, d, call.budget.mu, sparse)


def _released(learnt: StandardisedPCA, table: PCATable, run: Run) -> Release:
    """Put it together; columns of which neither unit nor centre is known are named."""
    made, public = learnt.components, table.public
    (n, d), k = (int(size) for size in table.source.shape), made.basis.shape[1]
    result = PCAResult(
        basis=signed(made.basis),
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
    units = _column_units(learnt, public)
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


def _column_units(learnt: StandardisedPCA, public: PublicColumns) -> dict[str, Array]:
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
