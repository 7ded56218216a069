"""The sampled audits: every public algorithm and baseline, each on several pairs of neighbours.

A `Case` runs an algorithm as a user would, at an epsilon and delta large enough that a few thousand runs can see what
it spends, on tables small enough that they are quick. Its pairs are the worst ones known: a tie, the threshold of an
abstention, an outlier that becomes an inlier, weights on the slope, a zero row against a huge one, a NaN row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from privspan import baselines
from privspan._lib.arrays import Reals
from privspan.approximate import approximate_subspace
from privspan.audit.registry import EPSILON, Case, add, register
from privspan.audit.releases import Released
from privspan.audit.tables import (
    affine_line_pairs,
    classifier_pairs,
    corner_pairs,
    line_pairs,
    mean_pairs,
    moment_pairs,
    near_axis_pairs,
    persons_pairs,
    ramp_pair,
    rank_pairs,
    regression_pairs,
    scale_pairs,
    slope_pairs,
)
from privspan.blocks.rank import choose_dimension
from privspan.boosted import boosted_subspace
from privspan.exact.exact import exact_subspace
from privspan.pca import private_pca
from privspan.privacy import Budget, Release
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import open_run
from privspan.private import private_subspace
from privspan.rows.door import open_table
from privspan.stable.records import stable_subspace
from privspan.standard.column_scales import PrivateScales, private_scales
from privspan.subspace import Subspace
from privspan.sums.adaptive import adaptive_subspace
from privspan.sums.classifier import PrivateClassifier, private_classifier
from privspan.sums.mean import private_mean
from privspan.sums.regression import PrivateRegression, private_regression
from privspan.sums.score_map import private_score_map
from privspan.sums.variance import explained_variance

_EXACT_DELTA = 0.2
FIRST_AXIS = Subspace(np.array([[1.0], [0.0]]))
PLANE = Subspace(np.eye(2))


# ---- Baselines -------------------------------------------------------------------------------------------------

_OTHERWISE = ("additive_wishart", "analyze_gauss_gap", "smooth_sensitivity", "friendly_core")
for _name in baselines.__all__:
    if _name not in _OTHERWISE:
        add(_name, getattr(baselines, _name), moment_pairs(), 1)
# Its claim is an epsilon, of which runs see most at a large delta; it has no other audit, so there are many.
add("additive_wishart", baselines.additive_wishart, moment_pairs(), 1, epsilon=3.0, delta=0.3, share=20.0)
# The next abstains where the gap is below 2 plus noise.
add("analyze_gauss_gap", baselines.analyze_gauss_gap, moment_pairs(padding=16), 1)
add("smooth_sensitivity", baselines.smooth_sensitivity, moment_pairs(padding=5), 1)
add("friendly_core", baselines.friendly_core, near_axis_pairs(72, 2), 1, share=0.5, block_size=1)

# ---- Exact -----------------------------------------------------------------------------------------------------

VARIANTS: dict[str, dict[str, Any]] = {
    "majority": {"method": "gap-max"},
    "gap": {"method": "gap-max", "rule": "gap"},
    "votes": {"method": "votes", "block_size": 1},
    "truncated Laplace": {"method": "gap-max", "release": "truncated-laplace"},
}
for _variant, _options in VARIANTS.items():
    add(f"exact_subspace ({_variant})", exact_subspace, line_pairs(), 1, delta=_EXACT_DELTA, **_options)
add("exact_subspace (affine)", exact_subspace, affine_line_pairs(), 1, delta=_EXACT_DELTA, affine=True)

# ---- Close to a subspace ---------------------------------------------------------------------------------------

# A plan whose ramp holds the twelve records of `slope_pairs` that have longer tails.
SLOPE: dict[str, Any] = {"full_level": 36, "ramp": 12, "movers": 23, "signal": 20.0, "spread": 1.5e-6, "ridge": 1e-5}

add("stable_subspace", stable_subspace, near_axis_pairs(60), 1, share=0.5)
# So few movers that a record on the ramp costs a step of the margin, where the coin of the test is near one half.
EDGE: dict[str, Any] = {**SLOPE, "movers": 16}
ON_TEST = {"scale": 0.1, "tail": 0.01, "long": 0.005, "signal": 0.01, "test": 0.8, "noise": 0.02}
_pairs = {"long row, row on the ramp": ramp_pair(0.5, 8.0), **slope_pairs()}
add("stable_subspace (budget on the test)", stable_subspace, _pairs, 1, share=0.5, split=ON_TEST, **EDGE)
add("stable_subspace (slope)", stable_subspace, slope_pairs(), 1, share=0.5, **SLOPE)


def by_histogram(table: Reals, k: int, **options: Any) -> Release:
    """Aggregate single records by a histogram with few references."""
    references = {"references": 2}
    return approximate_subspace(table, k, block_size=1, aggregate="histogram", options=references, **options)


add("approximate_subspace (stable)", approximate_subspace, near_axis_pairs(60), 1, share=0.5, block_size=1)
add("approximate_subspace (histogram)", by_histogram, near_axis_pairs(60, 2), 1, share=0.5, gamma=1e-4)
add("approximate_subspace (histogram, side chosen)", by_histogram, near_axis_pairs(400, 2), 1, share=0.25)
add("boosted_subspace", boosted_subspace, near_axis_pairs(120), 1, share=0.25, alpha=0.9, beta=0.3, block_size=1)

# ---- Choice of the dimension -----------------------------------------------------------------------------------

_FLAT = np.tile([[1.0, 0.0, 0.0]], (6, 1))
_TIE = np.vstack([_FLAT[:3], np.eye(3)[[0, 0, 1]], _FLAT[:3]])  # three blocks; the last row decides on the last rank


def chosen(table: Reals, rng: RandomLike) -> int:
    """Choose one dimension or two."""
    run = open_run(MuLedger(Budget(EPSILON, 1e-9)), rng)
    return choose_dimension(open_table(table), 2, epsilon=EPSILON, run=run, block_size=3)


register(Case("choose_dimension", EPSILON, 1e-9, rank_pairs("tie", _TIE), chosen))
_pairs, _options = near_axis_pairs(60, 4), {"block_size": 2, "max_components": 2}
add("approximate_subspace (k chosen)", approximate_subspace, _pairs, "auto", share=0.25, **_options)

# ---- Everyday PCA ----------------------------------------------------------------------------------------------

add("adaptive_subspace", adaptive_subspace, moment_pairs(), 1, share=0.5)
add("adaptive_subspace (localised)", adaptive_subspace, near_axis_pairs(40), 1, share=0.25)
add("private_subspace", private_subspace, moment_pairs(), 1, share=0.25)
# With fewer columns there is no look by stable leverage.
add("private_subspace (look)", private_subspace, near_axis_pairs(80, 60), 1, share=0.05)
# So few records that the test of stable leverage says yes in some of the runs only.
add("private_subspace (fall-back)", private_subspace, near_axis_pairs(44, 60), 1, share=0.05)
add("explained_variance", explained_variance, moment_pairs(), FIRST_AXIS, norm_bound=1.0)
add("explained_variance (bound chosen)", explained_variance, moment_pairs(), FIRST_AXIS)
add("private_mean", private_mean, mean_pairs(), norm_bound=1.0)
add("private_mean (bound chosen)", private_mean, mean_pairs())
add("private_mean (in a subspace)", private_mean, mean_pairs(), subspace=FIRST_AXIS, norm_bound=1.0)
add("private_score_map", private_score_map, mean_pairs(), PLANE, bins=3, ranges=((-1, 1), (-1, 1)))
add("private_score_map (spreads measured)", private_score_map, mean_pairs(), PLANE, bins=3)


def scaled(table: Reals, *, rng: RandomLike, **options: Any) -> PrivateScales:
    """Fit the scaler, and return what it has released."""
    from privspan.estimators import PrivateStandardScaler  # scikit-learn is an extra

    release: PrivateScales = PrivateStandardScaler(random_state=rng, **options).fit(table).release_
    return release


add("private_scales", private_scales, scale_pairs(), share=0.25)
add("private_scales (bounds)", private_scales, scale_pairs(), share=0.25, bounds=(0.0, 1.0))
add("PrivateStandardScaler", scaled, scale_pairs(), share=0.25)


def regressed(table: Reals, subspace: Subspace | None = None, **options: Any) -> PrivateRegression:
    """Regress the last column on the others."""
    return private_regression(
        table[:, :-1], table[:, -1], subspace=subspace, norm_bound=1.0, target_bound=1.0, **options
    )


add("private_regression", regressed, regression_pairs())
add("private_regression (in a subspace)", regressed, regression_pairs(), FIRST_AXIS)


def classified(table: Reals, subspace: Subspace | None = None, **options: Any) -> PrivateClassifier:
    """Classify by the other columns whether the last is 0, 1 or 2."""
    return private_classifier(table[:, :-1], table[:, -1], subspace=subspace, classes=(0, 1, 2), **options)


add("private_classifier", classified, classifier_pairs(), share=0.5)
add("private_classifier (in a subspace)", classified, classifier_pairs(), FIRST_AXIS, share=0.5)

add("private_pca", private_pca, moment_pairs(padding=5), 1, share=0.25)
add("private_pca (centre searched for)", private_pca, moment_pairs(padding=57), 1, share=0.15)
add("private_pca (public centre)", private_pca, moment_pairs(), 1, share=0.25, around=(0.0, 0.0))
add("private_pca (robust)", private_pca, moment_pairs(padding=5), 1, share=0.25, robust=True)
add("private_pca (ranks)", private_pca, corner_pairs(), 1, share=0.15, scale=True)
add("private_pca (deviations)", private_pca, moment_pairs(padding=57), 1, share=0.15, scale="deviations")
add("private_pca (not centred)", private_pca, moment_pairs(), 1, share=0.25, center=False)
# Six rows are one block when there are two dimensions to choose from; its vote is all there is.
_pairs, _options = rank_pairs("only ballot", _FLAT), {"center": False, "max_components": 2}
add("private_pca (k chosen)", private_pca, _pairs, "auto", share=0.5, **_options)

# ---- Several rows a person ---------------------------------------------------------------------------------------


def of_persons(algorithm: Callable[..., Released]) -> Callable[..., Released]:
    """Run an algorithm on a table whose last column holds the person ids."""

    def run(table: Reals, *arguments: object, **options: object) -> Released:
        return algorithm(table[:, :-1], *arguments, person=table[:, -1], **options)

    return run


add("private_mean (persons)", of_persons(private_mean), persons_pairs(mean_pairs()), share=0.5, norm_bound=1.0)
add("private_subspace (persons)", of_persons(private_subspace), persons_pairs(moment_pairs()), 1, share=0.25)
add("private_pca (persons)", of_persons(private_pca), persons_pairs(moment_pairs(padding=5)), 1, share=0.15)
