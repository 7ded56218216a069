"""What a private PCA has released, put together: components by variance, a mean, and how all of it was made."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan.pca.settings import PCASettings, PCATable
from privspan.planner import Plan
from privspan.privacy import PrivacyCost, Release, UselessPlanWarning
from privspan.privacy.call import Call
from privspan.privacy.run import Run
from privspan.subspace import Subspace
from privspan.sums.gaps import Gaps
from privspan.sums.pca_result import Noisy, PCAResult
from privspan.sums.share import cut_to_share

Array = NDArray[np.float64]

STANDARDISED = "private PCA (standardised columns)"
"""What a release says of how it was made whose columns all weigh the same."""

LABEL = "private PCA"
"""What a release of the everyday course says of how it was made."""


def label(subspace: str) -> str:
    """Return what a release says of how it was made, given how its subspace was."""
    return f"private PCA ({subspace})"


_MOST_DECLARED = 200  # entries: columns whose public numbers are shown with a release


def warn_if_useless(call: Call, plan: Plan) -> None:
    """Say so where next to nothing is expected of a plan."""
    if not plan.useful:
        call.warn(plan.reason, UselessPlanWarning)


def released(
    result: PCAResult,
    table: PCATable,
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
    found = None if abstained else Subspace(signed(result.basis), offset=offset, names=table.names)
    return Release(found, cost, method, {**result.about, "n": int(n), "d": int(d)}, run.private, told)


def signed(basis: Array) -> Array:
    """Return a basis (d, k) whose columns have their largest entry positive."""
    largest = np.abs(basis).argmax(axis=0)
    return np.asarray(basis * np.where(basis[largest, np.arange(basis.shape[1])] < 0, -1.0, 1.0))


def finished(
    settings: PCASettings, call: Call, release: Release, table: PCATable, gaps: Gaps | None, k: int
) -> Release:
    """Add what was asked for; keep the components that hold a share if one was, and warn where even all do not."""
    told = {**release.parameters, "robust": bool(settings.robust), "scale": settings.standardised}
    if declared := _declared(settings, table):
        told["declared"] = declared
    if not table.public.complete.all():
        filled = "not counted" if gaps is None else "counted"
        told["gaps"] = filled if settings.missing == "fill" else "rows of zeros"
    chosen = {"n_components": k} if settings.k == "auto" else {}
    release = replace(release, parameters=told, extras={**release.extras, **chosen})
    if settings.share is None:
        return release
    kept, enough = cut_to_share(release, settings.share)
    if not enough:
        components = f"The {kept.parameters['k']} components that were estimated"
        message = f"{components} do not hold {settings.share:g} of the variance"
        call.warn(f"{message}, or the table is too small to estimate it; see `max_components`.")
    return kept


def _declared(settings: PCASettings, table: PCATable) -> dict[str, dict[str, Any]]:
    """Return what was given as public about columns, by argument of `private_pca`; none where it is very much."""
    public, names = table.public, table.names or range(table.source.shape[1])
    given: dict[str, dict[str, Any]] = {"bounds": {}, "units": {}, "around": {}}
    for i in np.flatnonzero(public.bounded & ~public.boolean) if public.said else ():
        given["bounds"][str(names[i])] = (float(public.low[i]), float(public.high[i]))
    for what, numbers in (("units", public.units), ("around", public.around)):
        for i in np.flatnonzero(np.isfinite(numbers)):
            given[what][str(names[i])] = float(numbers[i])
    given["categories"] = dict(public.levels)
    return {what: by_name for what, by_name in given.items() if 0 < len(by_name) <= _MOST_DECLARED}
