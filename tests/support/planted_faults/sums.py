"""Faults in sums and their noise, and in localised rounds."""

from __future__ import annotations

import warnings
from fractions import Fraction
from typing import Any

import folding
import numpy as np
from runs import seeded

from planted_faults.registry import (
    DELTA,
    EPSILON,
    FEW,
    MANY,
    SMALL_DELTA,
    TIE,
    algorithm_refuted,
    fault,
    refuted,
    task_refuted,
)
from privspan import Subspace, baselines, private_classifier, private_mean, private_score_map
from privspan.audit.replay import spent_by
from privspan.audit.tables import classifier_pairs, last_replaced
from privspan.privacy import Budget, mu_from_budget
from privspan.privacy import call as calls
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import open_streams
from privspan.privacy.run import Run
from privspan.rows import scaling
from privspan.rows import unit as unit_rows
from privspan.rows.unit import Rows
from privspan.sums import classifier, lazy_gauss, localised, mean, rounds, score_map
from privspan.sums import grid as sums
from privspan.sums.localised import local_view, localised_sums

# ---- Sums and their noise --------------------------------------------------------------------------------------

OPPOSITE = last_replaced(np.zeros((3, 2)), (1.0, 0.0), (-1.0, 0.0))
ZERO_OR_LONG = last_replaced(np.zeros((3, 2)), (0.0, 0.0), (1e6, 0.0))


def mean_refuted(pair: Any, **options: Any) -> bool:
    return algorithm_refuted(private_mean, pair, **options)


@fault("noise from the wrong scale", lambda: algorithm_refuted(baselines.mod_sulq, TIE, 1, runs=MANY))
def quiet(patch):
    level = sums.noise_level

    def third(bounds, mu, **options):
        return level(bounds, 3.0 * mu, **options)

    patch.setattr(sums, "noise_level", third)


@fault("missing clip", lambda: mean_refuted(ZERO_OR_LONG, norm_bound=1.0))
def unclipped(patch):
    scales = scaling.row_scales
    for module in (scaling, unit_rows):
        patch.setattr(
            module,
            "row_scales",
            lambda squares, d, clip, **how: (np.ones(len(squares)), scales(squares, d, clip, **how)[1]),
        )


@fault("quantile without noise", lambda: mean_refuted(ZERO_OR_LONG))
def bare_quantile(patch):
    patch.setattr(
        mean,
        "typical_length",
        lambda source, mu, run: float(np.exp(np.log(np.maximum(np.linalg.norm(source, axis=1), 2.0**-40)).mean())),
    )


@fault("shares that sum above one", lambda: mean_refuted(OPPOSITE, norm_bound=1.0, runs=MANY))
def generous_ledger(patch):
    spend = MuLedger.spend

    def treble(self, name, share, gain=1.0):
        return 3.0 * spend(self, name, share, gain)

    patch.setattr(MuLedger, "spend", treble)
    patch.setattr(MuLedger, "cost", lambda self: Budget(EPSILON, DELTA).cost())


@fault("the same noise on every call", lambda: mean_refuted(OPPOSITE, norm_bound=1.0))
def repeated(patch):
    patch.setattr(calls, "open_run", lambda account, rng: Run(account, open_streams(0)))


def fitted_components(table, rng):
    from privspan import PrivatePCA

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of seeds, and of tables too small to be of use
        model = PrivatePCA(1, epsilon=EPSILON, delta=DELTA, center=False, random_state=rng).fit(table)
    return model.release_


@fault("seeded noise reused by clones", lambda: refuted(fitted_components, TIE))
def shared_seed(patch):
    patch.setattr(Run, "on", lambda self, child: Run(self.account, open_streams(child.value[0])))


def low_bits(table, rng):
    """Whether a released sum has digits finer than a float64 between 1 and 2 can hold."""
    released = private_mean(table, epsilon=EPSILON, delta=SMALL_DELTA, norm_bound=1.0, rng=rng)
    total = float(released.mean[0]) * len(table)
    return {"finer than 2^-52": float(Fraction(total) * 2**52 % 1 != 0)}


# Sums 0 and 2. Four rows, so that dividing by n loses nothing.
LOW_BITS_PAIR = last_replaced(np.array([[1.0], [0.0], [0.0], [0.0]]), (-1.0,), (1.0,))


@fault(
    "float rounding that leaks low bits", lambda: refuted(low_bits, LOW_BITS_PAIR, runs=2 * MANY, delta=SMALL_DELTA)
)
def naive_float_noise(patch):
    def naive(self, values, sigma, grid=None):
        generator = np.random.default_rng(self.streams.noise.below(2**64))
        return values + sigma * generator.standard_normal(values.shape)

    patch.setattr(Run, "gaussian", naive)


@fault("lazy noise that is not fresh", lambda: task_refuted("LazyGauss", runs=300))
def stale_noise(patch):
    start, seeds = lazy_gauss.LazyGauss.__init__, [0]

    def begun(self, source, mu, run, **options):
        seeds[0] = run.streams.noise.below(2**64)
        start(self, source, mu, run, **options)

    def stale(self, values, sigma, grid=None):
        """Add noise that starts again at the same place in every block."""
        return values + sigma * np.random.default_rng(seeds[0]).standard_normal(values.shape)

    patch.setattr(lazy_gauss.LazyGauss, "__init__", begun)
    patch.setattr(Run, "gaussian", stale)


PLANE = Subspace(np.eye(2))


@fault(
    "a grid laid around the scores",
    lambda: algorithm_refuted(private_score_map, ZERO_OR_LONG, PLANE, bins=2, runs=FEW),
)
def grid_around_the_scores(patch):
    def half_widths(scores, *_):
        return (1.0 + np.abs(scores).max(axis=0)).tolist()

    patch.setattr(score_map, "_half_widths", half_widths)


def classified_refuted() -> bool:
    pair = classifier_pairs()["opposite rows"]
    mu = mu_from_budget(EPSILON, DELTA)

    def run(table, rng):
        options = {"classes": (0, 1, 2), "epsilon": EPSILON, "delta": DELTA, "rng": rng}
        return private_classifier(table[:, :-1], table[:, -1], **options)

    return spent_by(run, *pair) > mu**2


@fault("residuals as long as they are", classified_refuted)
def residuals_unshortened(patch):
    def longer(scores, labels):
        found = np.zeros_like(scores)
        known = labels >= 0
        found[known, labels[known].astype(int)] = np.sqrt(2.0)
        return found

    patch.setattr(classifier, "residuals", longer)


# ---- Localised rounds ------------------------------------------------------------------------------------------

FLIPPED = last_replaced(np.tile([[1.0, 0.0]], (4, 1)), (1.0, 1.0), (1.0, -1.0))
MU = mu_from_budget(EPSILON, DELTA)


def localised_round(table, rng):
    """One round: the typical size, then the sums clipped to it; what it released and the noise it says it used."""
    run = seeded(rng)
    rows = Rows(table)
    view = local_view(rows, np.array([[1.0], [0.0]]))
    sizes = view.off * np.abs(view.coordinates[:, 0])
    typical = rounds.geometric_mean(sizes, 0.01, 1.0, 0.6 * MU, run)
    found = localised_sums(rows, view, np.ones(1), 0.7 * typical, 0.7 * MU, 0.3 * MU, run)
    return {"cross": float(found.cross[1, 0]) / found.cross_noise, "cross noise": found.cross_noise}


def cross_sum(table, rng):
    """The sum of residuals alone, with all of the budget."""
    rows = Rows(table)
    view = local_view(rows, np.array([[1.0], [0.0]]))
    found = localised_sums(rows, view, np.ones(1), 0.1, MU, MU, seeded(rng))
    return {"cross": float(found.cross[1, 0])}


@fault("residual sums with the sensitivity of one side", lambda: refuted(cross_sum, FLIPPED, runs=MANY))
def one_sided(patch):
    bounds = localised.cross_bounds
    patch.setattr(localised, "cross_bounds", lambda n, d, k, clip, **single: bounds(n, d, k, 0.5 * clip, **single))


@fault("residual sums in float32 charged as if in float64", lambda: folding.lost_cross_over_charge() > 1.0)
def free_single_residuals(patch):
    patch.setattr(localised, "single_cross_error", lambda: 0.0)


INSIDE_OR_OFF = last_replaced(np.tile([[1.0, 0.1]], (4, 1)), (1.0, 1.0), (1.0, 0.1))


@fault("weights from quantiles without noise", lambda: refuted(localised_round, INSIDE_OR_OFF))
def bare_weights(patch):
    def exact_mean(values, low, high, mu, bits):
        return float(np.exp(np.log(np.clip(values, low, high)).mean()))

    patch.setattr(rounds, "geometric_mean", exact_mean)
