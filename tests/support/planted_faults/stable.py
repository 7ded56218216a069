"""Faults in stable leverage."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np
from runs import seeded
from stable_attacks import hidden_rows

from planted_faults.registry import DELTA, fault, refuted
from privspan.audit.tables import last_replaced, near_axis
from privspan.privacy import epsilon_from_mu
from privspan.privacy.coin import GaussianCoin
from privspan.privacy.run import Run
from privspan.stable import certificate as leverage_certificate
from privspan.stable import records as stable
from privspan.stable import release as stable_release
from privspan.stable.certificate import LeveragePlan
from privspan.stable.leverage import GRID, LeverageFilter, exact_gram
from privspan.stable.plan import StableBudget
from privspan.stable.records import stable_subspace
from privspan.stable.release import certified_release

SLOPE = {"full_level": 36, "ramp": 12, "movers": 23, "signal": 20.0, "spread": 1.5e-6, "ridge": 1e-5}


def stable_refuted(pair: Any, *, runs: int = 200, **options: Any) -> bool:
    def run(table, rng):
        return stable_subspace(table, 1, epsilon=2.0, delta=DELTA, rng=rng, **options)

    return refuted(run, pair, runs=runs, epsilon=2.0)


def norm_pair() -> Any:
    """Nine or ten short records of forty: the quarter that decides the scale."""
    table = near_axis(40)
    table[:9] *= 0.5
    other = table.copy()
    other[9] *= 0.5
    return table, other


@fault("scales without noise", lambda: stable_refuted(norm_pair(), runs=120, split={"norm_quantile": 0.25}))
def bare_scales(patch):
    def counts(bins, size, mu, bits):
        return np.bincount(bins[(bins >= 0) & (bins < size)], minlength=size)

    patch.setattr(stable, "noisy_histogram", counts)


# Twenty of sixty records are tilted, and whether they count hangs on a single level. Replacing another record by
# zeros takes that level away, and their weight drops from 1 to 0: far more movers than the plan allows.
CLIFF = {"full_level": 29, "ramp": 1, "movers": 2, "signal": 20.0, "spread": 3.61e-7, "ridge": 1e-5}


def cliff_pair() -> Any:
    table = np.tile([[1.0, 0.0]], (60, 1))
    table[:20, 1] = 1.1e-3
    return last_replaced(table, (1.0, 0.0), (0.0, 0.0))


def every_level(gram, width, k, plan):
    """Levels of all items, without giving up where the certificate is sure to fail."""
    sets = LeverageFilter(gram, width, plan.ridge, k, plan.full_level + plan.largest_margin)
    levels = np.zeros(len(gram) // width, dtype=np.int64)
    for level in range(1, plan.full_level + plan.largest_margin + 1):
        if not sets.advance(level):
            break
        levels[sets.kept] = level
    return levels


@fault("certificate skipped", lambda: stable_refuted(cliff_pair(), split={"noise": 0.9}, **CLIFF))
def no_certificate(patch):
    patch.setattr(stable_release, "leverage_levels", every_level)
    patch.setattr(stable_release, "certified_margin", lambda *_: 1000)


@fault("certificate at margin zero", lambda: stable_refuted(cliff_pair(), **CLIFF))
def certificate_at_zero(patch):
    def passes_or_not(gram, width, k, levels, plan):
        on_ramp = np.count_nonzero((levels >= plan.empty_level) & (levels < plan.full_level))
        return 1000 if on_ramp <= plan.movers else 0

    patch.setattr(stable_release, "leverage_levels", every_level)
    patch.setattr(stable_release, "certified_margin", passes_or_not)


def tail_or_none_pair() -> Any:
    """All records exactly on a line, or all but one; either way the same certified bound holds."""
    return last_replaced(np.tile([[1.0, 0.0]], (60, 1)), (1.0, 3e-4), (1.0, 0.0))


@fault(
    "noise from the achieved bound",
    lambda: stable_refuted(tail_or_none_pair(), runs=120, split={"test": 0.9}, **SLOPE),
)
def achieved_noise(patch):
    weighted, turned = stable_release._weighted_basis, Run._turned
    achieved = {}

    def measure(gram, weights, pull, plan, k):
        values = np.linalg.eigvalsh(gram * np.sqrt(np.outer(weights, weights)))
        achieved["ratio"] = max(float(values[-k - 1]) / plan.tail, 1e-9)
        return weighted(gram, weights, pull, plan, k)

    patch.setattr(stable_release, "_weighted_basis", measure)
    patch.setattr(Run, "_turned", lambda self, basis, shift, mu: turned(self, basis, shift * achieved["ratio"], mu))


# The tail of one record, either way, is what the certificate just allows; with its true leverage it has no weight.
BLIND = LeveragePlan(50, 4, movers=3, signal=54.0, spread=1e-6, ridge=1e-6, largest_margin=3)


def one_tail_pair() -> Any:
    return last_replaced(np.tile([[1.0, 0.0]], (60, 1)), (1.0, 6.3e-3), (1.0, -6.3e-3))


def second_half(table, rng):
    """Filter, certificate, test and noise, on records that are scaled already."""
    rows = np.rint(table * (0.9999 / GRID)) * GRID
    shares = {field.name: 0.8 for field in fields(StableBudget)}
    budget = StableBudget(**{**shares, "coin": GaussianCoin(0.8, 0.05), "delta_rotation": 1e-3})
    gram = exact_gram([rows], len(rows))
    found = certified_release(gram, 1, lambda c: rows.T @ c, BLIND, 1, budget, seeded(rng))
    return {} if found is None else {"slope": float(found.basis[1, 0] / found.basis[0, 0])}


# The test and the noise together are 0.8 * sqrt(2)-GDP up to the two deltas.
SECOND_HALF_EPSILON = epsilon_from_mu(0.8 * math.sqrt(2.0), DELTA - 0.051)


@fault(
    "leverage without the right ridge",
    lambda: refuted(second_half, one_tail_pair(), runs=500, epsilon=SECOND_HALF_EPSILON),
)
def blind_leverage(patch):
    def blind(gram, width, ridge, dimension, highest):
        return LeverageFilter(gram, width, 1e6 * ridge, dimension, highest)

    patch.setattr(leverage_certificate, "LeverageFilter", blind)


# The top direction is orthogonal to the public start of the power steps on one table, and not quite on the other.
# On both the margin is the same; only what happens after the coin tells them apart.
PATIENT = LeveragePlan(18, 6, movers=6, signal=18.0, spread=0.13, ridge=1.0, largest_margin=5)


def hidden_pair() -> Any:
    table = hidden_rows(60, 1e-4)
    return last_replaced(table, table[-1], np.zeros(10))


def after_the_coin(table, rng, plan=PATIENT):
    shares = {field.name: 0.8 for field in fields(StableBudget)}
    budget = StableBudget(**{**shares, "coin": GaussianCoin(0.8, 0.05), "delta_rotation": 1e-3})
    gram = exact_gram([table], len(table))
    found = stable_release.certified_release(gram, 1, lambda c: table.T @ c, plan, 1, budget, seeded(rng))
    return {} if found is None else {"answered": 1.0}


@fault(
    "giving up after the coin",
    lambda: refuted(after_the_coin, hidden_pair(), runs=200, epsilon=SECOND_HALF_EPSILON),
)
def gives_up(patch):
    release, guesses = stable_release.certified_release, stable_release._guesses

    def first_only(*given):
        yield next(guesses(*given))
        raise np.linalg.LinAlgError

    def or_none(*args):
        try:
            return release(*args)
        except np.linalg.LinAlgError:
            return None

    patch.setattr(stable_release, "_guesses", first_only)
    patch.setattr(stable_release, "certified_release", or_none)


# Sixty records on a line are just above the certified strength, fifty-nine are below it.
STRONG = LeveragePlan(45, 4, movers=12, signal=59.5, spread=1e-6, ridge=1e-6, largest_margin=8)


def strength_pair() -> Any:
    return last_replaced(np.tile([[1.0, 0.0]], (60, 1)), (1.0, 0.0), (0.0, 0.0))


def strong_enough(table, rng):
    return {"answered": float(bool(after_the_coin(table, rng, STRONG)))}


@fault(
    "bars without what a record takes off",
    lambda: refuted(strong_enough, strength_pair(), runs=300, epsilon=SECOND_HALF_EPSILON),
)
def flat_bars(patch):
    patch.setattr(LeveragePlan, "signal_bars", lambda self: np.full(self.largest_margin + 1, self.signal))
