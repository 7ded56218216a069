"""Faults in prior systems."""

from __future__ import annotations

import sys
from itertools import repeat
from typing import Any

import numpy as np

from planted_faults.registry import EPSILON, SMALL_DELTA, TIE, algorithm_refuted, fault
from privspan import baselines
from privspan.audit.replay import ReplayError, spent_by
from privspan.audit.tables import balanced_pairs, moment_pairs
from privspan.privacy import Budget

# The package offers functions under the names of these modules.
k_dp_pca_module = sys.modules["privspan.baselines.k_dp_pca"]
gap_module = sys.modules["privspan.baselines.analyze_gauss_gap"]
exponential_module = sys.modules["privspan.baselines.exponential_pca"]

GAP_TIE = moment_pairs(padding=16)["tie"]


@fault("eigenvalue gap without noise", lambda: algorithm_refuted(baselines.analyze_gauss_gap, GAP_TIE, 1))
def bare_gap(patch):
    patch.setattr(gap_module, "_gap_from_below", lambda gap, stretch, mu, failure, bits: gap)


@fault(
    "exponential mechanism at sixteen times its weight",
    lambda: algorithm_refuted(baselines.exponential_pca, TIE, 1, runs=200),
)
def heavy_exponential(patch):
    draw = exponential_module.deflated_vectors

    def heavy(matrix, k, weight, tries, run):
        return draw(matrix, k, 16.0 * weight, tries, run)

    patch.setattr(exponential_module, "deflated_vectors", heavy)


def k_dp_pca_refuted(**options: Any) -> bool:
    """Replay k-DP-PCA on a neighbour."""

    def run(table, rng):
        return baselines.k_dp_pca(table, 1, epsilon=EPSILON, delta=SMALL_DELTA, rng=rng, **options)

    try:
        return spent_by(run, *balanced_pairs(300)["between the axes"]) > Budget(EPSILON, SMALL_DELTA).mu ** 2
    except ReplayError:
        return True


@fault("gradients clipped at the longest", k_dp_pca_refuted)
def longest_gradient(patch):
    patch.setattr(k_dp_pca_module, "typical_size", lambda lengths, *rest: 0.25 * float(np.max(lengths)))


@fault("a record in every batch of a single pass", lambda: k_dp_pca_refuted(single_pass=True))
def batches_of_everybody(patch):
    patch.setattr(k_dp_pca_module, "_own_batches", lambda table, count: repeat(table.rows))
