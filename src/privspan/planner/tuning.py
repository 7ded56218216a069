"""Every tuned number of a plan: any other value is as private, as plans see public numbers alone.

benchmarks/scripts/plan_accuracy.py measures how good the forecasts are, on other settings than those they were fitted
to: docs/explanation/planning.md.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PlannerTuning:
    """Of forecasts, and of what they suppose where nothing is known."""

    # What is supposed
    tail: float = 0.3  # energy γ√(d − k) when `gamma` is not given: far off
    crowded_tail: float = 0.01  # the same where only a short tail would help: then there is one
    test: float = 0.2  # of delta, for a test: between the two shares that the stable methods choose from
    by_pairs: float = 0.82  # of mu² has the subspace of a private PCA by a named method
    worse: float = 1.5  # × the error on standardised tables, for nine of ten: tables differ more than runs

    # How errors spread from run to run: the 90th percentile over the median
    once: float = 1.3  # over √d + √k, beyond 1, for one noisy sum
    rounds: float = 1.6  # the same for rounds
    look: float = 1.2  # for a look and rounds that follow it
    look_alone: float = 1.35  # for stable leverage
    groups: float = 1.6  # the same for blocks

    # Stable leverage, with shares of mu² and quantiles among which the best are taken, fewer than the course has
    tests: tuple[float, ...] = (0.1, 0.2, 0.35, 0.5)  # of mu², for the test
    signals: tuple[float, ...] = (0.04, 0.1)  # of mu², for the strength
    quantiles: tuple[float, ...] = (0.3, 0.45)  # of norms, at which rows are made short
    bin_edge: float = 2.0 ** (1 / 6)  # a released tail is the upper edge of a third of an octave: half a bin more
    block_tilt: float = 0.8  # the tilt that is released for blocks, over 1 / (√m - √k): measured, k from 1 to 8

    # Abstentions, as measured: a chance that rises evenly, from where on and over how much
    rare: float = 0.03  # and is never below this
    most: float = 0.2  # beyond, a method does not count as reaching an error
    tails: tuple[float, float] = (0.018, 0.018)  # length over a record's: none up to .02, half of the runs at .027
    tilts: tuple[float, float] = (0.01, 0.015)  # the same of blocks
    few_groups: tuple[float, float] = (40.0, 30.0)  # groups times mu: none at 40, a third of the runs at 30


PLANNER = PlannerTuning()
