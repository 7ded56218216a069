"""Audits of the baselines, each at an epsilon and delta at which a few thousand runs show what it spends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

from privspan import baselines
from privspan.audit.cases import Case, Pair, register
from privspan.audit.tables import moment_pairs, near_axis_pairs
from privspan.privacy import Release
from privspan.privacy.randomness import RandomLike

_EPSILON, _DELTA = 2.0, 0.1


def _add(name: str, pairs: Mapping[str, Pair], *, share: float = 1.0, **options: object) -> None:
    """Register one baseline with k = 1 on the given pairs."""

    def run(table: NDArray[Any], rng: RandomLike) -> Release:
        released: Release = getattr(baselines, name)(table, 1, epsilon=_EPSILON, delta=_DELTA, rng=rng, **options)
        return released

    register(Case(name, _EPSILON, _DELTA, pairs, run, share))


for _name in (
    "additive_wishart",
    "analyze_gauss",
    "eigen_sampling",
    "exponential_pca",
    "inverse_wishart",
    "johnson_lindenstrauss",
    "mod_sulq",
    "noisy_power",
    "noisy_range_finder",
):
    _add(_name, moment_pairs())
_add("analyze_gauss_gap", moment_pairs(padding=16))  # it abstains where the gap is below 2 plus noise
_add("smooth_sensitivity", moment_pairs(padding=5))
_add("friendly_core", near_axis_pairs(72, 2), share=0.5, block_size=1)
