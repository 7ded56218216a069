"""Localised rounds: from a subspace that is found, measure what is off it until the budget is spent.

A round asks for the typical size of residuals, plans with it how many rounds are to come and what each may take, and
moves the basis by noisy sums of residuals that are clipped to that size.  Every decision rests on released values.
Proofs: docs/explanation/everyday-pca.md.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from privspan.privacy.run import Run
from privspan.rows.partitioned_rows import AnyRows, per_row
from privspan.rows.table import Table
from privspan.sums import plan as planner
from privspan.sums.adaptive_tuning import ADAPTIVE, LEAN, AdaptiveTuning
from privspan.sums.estimate import Estimate, constant_last, joined, local_slope, residual_size, turned, whitening
from privspan.sums.grid import MOMENTS, SUMS
from privspan.sums.localised import (
    INNER_CAP,
    LocalView,
    geometric_mean,
    local_view,
    localised_sums,
    residual_slack,
    single_cross_error,
    smallest_clip,
)

Array = NDArray[np.float64]


def localised_rounds(source: Table, start: Estimate, off: float, run: Run, *, constant: bool = False) -> Estimate:
    """Spend all that is left of an account on localised rounds over the unit rows of a table, from a released start.

    `off` is how long residuals are typically due to the data, as far as that has been released: a bound for planning.

    Guarantee
    ---------
    Gaussian steps with the mu of the shares that they take, for replace-one neighbours, provided that `start` is
    public or released.  Proof: docs/explanation/everyday-pca.md, lemmas 2, 6, 7 and 8.
    """
    tuning = AdaptiveTuning(probe=LEAN.probe, most_off=off)
    rows = source.rows()
    return Rounds(rows, source.looked_at(rows), run, tuning.most_rounds, tuning, constant=constant).until_spent(start)


class Rounds:
    """Rounds over the unit rows of a table: the data, what is left of the budget, and how it is planned.

    `looked_at` are the same rows, in float32 where that may be: they serve as long as residuals are not short.
    `probe` is the share of mu² that one question for a typical length gets.
    """

    def __init__(
        self,
        rows: AnyRows,
        looked_at: AnyRows,
        run: Run,
        most_rounds: int,
        tuning: AdaptiveTuning = ADAPTIVE,
        *,
        constant: bool = False,
    ) -> None:
        self._rows, self._looked_at, self._run = rows, looked_at, run
        # One direction more to be found takes a round more, where residuals are short.
        self._most_rounds, self._constant = most_rounds + int(constant), constant
        self._n, self._d = rows.shape
        self._tuning = tuning
        self._off: float | None = None  # how long residuals are due to the data, as the last round saw it
        self.probe = tuning.probe * planner.probe_share(self._n, run.account.mu)

    def first(self, estimate: Estimate) -> Estimate | None:
        """Run one round, or return None when a plain finish is predicted to do better."""
        return self._round(estimate, self._most_rounds, if_worth_it=True)

    def until_spent(self, estimate: Estimate, rounds: int = 0) -> Estimate:
        """Go on with localised rounds until the budget is spent; so many there were before."""
        while self._run.account.left > 1e-9:
            improved = self._round(estimate, max(1, self._most_rounds - rounds), if_worth_it=False)
            assert improved is not None  # a plain finish was not offered
            estimate, rounds = improved, rounds + 1
        return constant_last(estimate) if self._constant else estimate

    def _round(self, estimate: Estimate, rounds_left: int, *, if_worth_it: bool) -> Estimate | None:
        """Run one localised round, unless only a round that is worth it was asked for and this one would not be."""
        if self._constant:
            estimate = constant_last(estimate)
        scale = self._whitening(estimate, last=False)
        rows = self._rows_for(estimate)
        view = local_view(rows, estimate.basis)
        typical = self._typical_size(view, scale, estimate.residual)
        setting = self._setting(estimate, typical)
        self._off = setting.off
        plan = planner.plan_rounds(setting, self._run.account.left, self.probe, rounds_left, self._tuning)
        if if_worth_it and not self._worth_it(estimate, plan.error, setting.off):
            return None
        last = len(plan.shares) == 1
        scale = self._whitening(estimate, last=last)  # the typical size is about the same
        share = self._run.account.left if last else min(plan.shares[0], self._run.account.left)
        part = planner.inner_part(share, setting, self._tuning)
        mu_inner = self._run.account.spend("inner matrix", part * share, MOMENTS)
        rest = self._run.account.left if last else min((1.0 - part) * share, self._run.account.left)
        mu_cross = self._run.account.spend("residuals", rest, SUMS)
        clip = max(self._tuning.clip * typical, smallest_clip())
        single = rows.single and clip >= self._tuning.beyond_sums * single_cross_error()
        steepness = typical / self._tuning.across
        sums = localised_sums(
            rows, view, scale, clip, mu_cross, mu_inner, self._run, steepness=steepness, single=single
        )
        slope, precision, moment = local_slope(
            sums, estimate, scale, self._n, setting.spread, constant=self._constant, tuning=self._tuning
        )
        found = joined(estimate, slope, precision, planner.left_behind(part * share, setting))
        return turned(found, moment, self._tuning)

    def _rows_for(self, estimate: Estimate) -> AnyRows:
        """Return rows of float32 if what that adds to residuals is little beside what has been released of them."""
        off = residual_size(estimate.eigenvalues) if self._off is None else math.hypot(self._off, estimate.residual)
        short = off * off < self._tuning.beyond_rounding * residual_slack(estimate.basis, single=True)
        return self._rows if short else self._looked_at

    def _whitening(self, estimate: Estimate, *, last: bool) -> Array:
        constant = self._tuning.constant_last if last else self._tuning.constant
        return whitening(estimate.eigenvalues, self._tuning.whitening, constant if self._constant else None)

    def _setting(self, estimate: Estimate, typical: float) -> planner.Setting:
        """Put what is released so far into the planner's terms."""
        n, d, mu = self._n, self._d, self._run.account.mu
        k, weakest = len(estimate.eigenvalues), float(self._looked_for(estimate).min())
        tuning = self._tuning
        longer = tuning.longer_beside_constant if self._constant else tuning.longer
        off = math.sqrt(max(longer * typical**2 - estimate.residual**2, (0.1 * typical) ** 2))
        off = min(tuning.off * off, tuning.most_off)
        unexplained = residual_size(estimate.eigenvalues, tuning=tuning)
        return planner.Setting(
            noise=planner.round_noise(n, d, k, mu, weakest),
            off=off if unexplained**2 <= tuning.hidden else max(off, unexplained),
            start=estimate.residual,
            spread=planner.prior_spread(self._looked_for(estimate)),
            unit_noise=planner.inner_unit_noise(n, k, mu, INNER_CAP),
            pull=planner.weight_pull(d, k),
        )

    def _looked_for(self, estimate: Estimate) -> Array:
        """Return the mean squares along the directions that are looked for, which a constant's is not."""
        others = self._constant and len(estimate.eigenvalues) > 1
        return estimate.eigenvalues[:-1] if others else estimate.eigenvalues

    def _worth_it(self, estimate: Estimate, predicted: float, off: float) -> bool:
        """Tell whether localising is predicted to do as well as a plain finish, sampling error included."""
        k, weakest = len(estimate.eigenvalues), float(self._looked_for(estimate).min())
        plain = planner.analyze_gauss_error(self._n, self._d, k, self._run.account.mu, weakest)
        sampling_square = off * off / (self._n * weakest)
        tuning = self._tuning
        hidden = residual_size(estimate.eigenvalues, tuning=tuning) ** 2 > tuning.hidden
        share = tuning.worth_it_hidden if hidden else tuning.worth_it
        return predicted**2 + sampling_square <= share * (plain**2 + sampling_square)

    def _typical_size(self, view: LocalView, scale: Array, residual: float) -> float:
        """Ask for the geometric mean of ||r|| ||u||, within a range that released values suggest."""

        def size(coordinates: Array, off: Array) -> Array:
            whitened = coordinates * scale
            return np.asarray(off * np.sqrt(np.einsum("ij,ij->i", whitened, whitened)))

        high = min(max(1.0, 3.0 * residual), 0.5 * float(scale.max()))
        low = min(0.1 * residual, high / 8.0)
        share = min(self.probe, 0.5 * self._run.account.left)
        sizes = per_row(size, view.coordinates, view.off)  # (n,)
        return geometric_mean(sizes, low, high, self._run.account.spend("typical residual", share), self._run)
