"""Every tuned number of the prior systems: any other value is as private.

Widths and rounds of the power method and of the range finder: benchmarks/scripts/rival_options.py; k-DP-PCA:
benchmarks/scripts/k_dp_pca.py.  The others are chosen by hand, in round numbers, and no script has fitted them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class RivalTuning:
    """Shares of budgets, steps and widths."""

    # Analyze Gauss with a gap
    gap: float = 0.1  # of mu², for the gap: its noise is then a few rows, where thousands are needed
    gap_delta: float = 0.1  # of delta, for a gap that was overestimated

    # Sampled vectors
    cap: float = 0.01  # of delta, for the cap on the number of tries, which hardly grows as this falls
    eigenvalues: float = 0.1  # of epsilon; the subspace has the rest

    # FriendlyCore
    core: tuple[float, ...] = tuple(2.0 ** (-0.5 * j) for j in range(1, 15))  # of mu², for its weight: the best one
    core_delta: float = 0.1  # of delta, for a weight that was overestimated
    few_blocks: float = 50.0  # over mu: hardly enough for a release
    plenty_blocks: float = 1000.0  # over mu: enough for little noise

    # k-DP-PCA, by steps of Oja
    oja_steps: int = 8  # for each direction
    oja_steps_alone: int = 16  # the same for a single one: its records agree the most
    oja_steps_of_a_pass: int = 4  # the same where every step has records of its own
    oja_forgotten: int = 1  # first steps that do not count in the average
    oja_spread: float = 0.1  # of the mu² of a step
    oja_clip: float = 1.0  # × the typical distance of a gradient from the centre

    # The noisy power method and the range finder
    directions: int = 16  # for each dimension
    last: float = 5.0  # what the last round has of mu², beside 1 for all before it
    columns: int = 32  # of a sketch, for each dimension

    # Smooth sensitivity
    scales: tuple[float, ...] = (
        *np.linspace(1.0, 0.1, 19).tolist(),
        *(0.1 * 2.0**-j for j in range(1, 25)),
    )  # of mu²


RIVALS = RivalTuning()
