"""Public numbers of stable leverage: how the budget is split, and levels and bars from what was released.

`plan_stable_split` sees n, k, epsilon, delta and a preset only. `plan_levels` sees besides these the released
scales. Neither sees data, so every choice made here is free of charge; a poor choice costs accuracy or an
abstention, never privacy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from itertools import product
from typing import Literal

import numpy as np
from scipy.special import chdtr, chdtrc, chdtri, ndtri

from privspan._lib import checks
from privspan.privacy import Budget, Part, mu_from_budget, share_mu
from privspan.stable.certificate import LeveragePlan, sine_bound

StablePreset = Literal["auto", "tight", "robust"]
STABLE_PRESETS: tuple[StablePreset, ...] = ("auto", "tight", "robust")


@dataclass(frozen=True)
class Allowance:
    """What the plan leaves room for.

    Attributes
    ----------
    movers : float
        Share of the items that may lie on the ramp.
    tail_factor : float
        The tail may be this much longer than the released scale.
    tail_spectrum : float
        λ_{k+1} that may occur beyond that of a normal tail, in units of the ridge.
    signal_margin : float
        Share of the items by which λ_k may fall short.
    """

    movers: float
    tail_factor: float
    tail_spectrum: float
    signal_margin: float


TIGHT = Allowance(movers=0.004, tail_factor=1.12, tail_spectrum=0.03, signal_margin=0.01)
ROBUST = Allowance(movers=0.02, tail_factor=2.2, tail_spectrum=0.12, signal_margin=0.015)
GROUPS = Allowance(movers=0.05, tail_factor=1.5, tail_spectrum=0.05, signal_margin=0.03)

LONG_TAIL = 1.2
"""A group counts as long if its tail exceeds the released length by this factor."""

SIGNAL_QUANTILE = 2.0
"""Standard deviations of its noise that are taken off the released signal strength."""

GROUP_STRENGTH = 0.97
"""Assumed λ_k of the sum of t block projectors, over t."""

SMALLEST_RIDGE = 2.0**-36
"""Smaller ridges gain nothing, since items lie on a grid, and float64 could not certify their leverages."""

_SMALLEST_MU = 2.0**-45  # of a step: with less its noise would leave the range of integers, after others have spent
_HIGHEST_LEVEL = 2**40

_ROTATION_SHARE = 1e-3
_LONG_ERROR, _MOST_LONG = 0.035, 0.05  # standard deviation of the share of long groups, and its largest weight
_QUANTILES = (0.25, 0.35, 0.45, 0.55)
_SIGNAL_WEIGHTS = (0.005, 0.01, 0.02, 0.04, 0.07, 0.1)
_TEST_WEIGHTS = tuple(float(weight) for weight in np.arange(0.04, 0.62, 0.03))


@dataclass(frozen=True)
class StableBudget:
    """Shares of one budget, for the steps in their order.

    Attributes
    ----------
    mu_scale, mu_tail, mu_long, mu_signal, mu_test, mu_noise : float
        Gaussian-DP shares; their squares add up to at most the square of the whole. Zero for a step that is left out.
    delta_test : float
        Chance to go on at margin 1, charged to delta beside the Gaussian steps.
    delta_rotation : float
        Chance that the random rotation is less exact than charged.
    norm_quantile : float
        Quantile of the norms that becomes the scale of a record.
    """

    mu_scale: float
    mu_tail: float
    mu_long: float
    mu_signal: float
    mu_test: float
    mu_noise: float
    delta_test: float
    delta_rotation: float
    norm_quantile: float

    def parts(self) -> tuple[Part, ...]:
        """Name the steps and what each may spend."""
        named = {
            "norm scale": self.mu_scale, "tail length": self.mu_tail, "long tails": self.mu_long,
            "signal strength": self.mu_signal, "test": self.mu_test, "noise": self.mu_noise,
        }  # fmt: skip
        gaussian = tuple(Part(name, 0.0, 0.0, mu) for name, mu in named.items() if mu > 0)
        return (*gaussian, Part("chance to go on wrongly", 0.0, self.delta_test + self.delta_rotation))

    @property
    def margins(self) -> tuple[int, int]:
        """Margins at which the test goes on with probability Φ(2) and Φ(3)."""
        return _margins(float(ndtri(self.delta_test)), self.mu_test)


@lru_cache(maxsize=256)
def _normal_scales(k: int, quantile: float) -> tuple[float, float]:
    """That quantile of the norms of normal records, and λ_k / n after division by max(norm, quantile)."""
    square = chdtri(k, 1.0 - quantile)
    share = (k * chdtr(k + 2, square) + square * chdtrc(k, square)) / square / k
    return float(np.sqrt(square)), float(share)


@dataclass(frozen=True)
class StableSplit:
    """How one budget is shared out.

    Attributes
    ----------
    scale, tail, long, signal, test, noise : float
        Weights of the Gaussian steps: shares of mu², in proportion. Zero leaves a step out.
    delta_test : float
        Share of delta that the test may go on with at margin 1.
    norm_quantile : float
        Quantile of the norms that becomes the scale of a record.
    """

    scale: float
    tail: float
    long: float
    signal: float
    test: float
    noise: float
    delta_test: float
    norm_quantile: float

    def overridden(self, changes: Mapping[str, float]) -> StableSplit:
        """Replace what the caller fixed; a step that is left out stays out."""
        if not isinstance(changes, Mapping):
            raise TypeError(f"`split` must be a mapping; got an object of type {type(changes).__name__}.")
        for name, value in changes.items():
            checks.one_of([field.name for field in fields(self)], split=name)
            if name in ("delta_test", "norm_quantile"):
                checks.probability(**{name: value})
            else:
                checks.positive(**{name: value})
        return replace(self, **{name: float(value) for name, value in changes.items() if getattr(self, name) > 0})

    def budget(self, epsilon: float, delta: float) -> StableBudget:
        """Share the budget exactly: delta by sums of fractions, mu² by weights."""
        gaussian, delta_test = Budget(epsilon, delta).reserve_delta(self.delta_test)
        gaussian, delta_rotation = gaussian.reserve_delta(_ROTATION_SHARE)
        weights = (self.scale, self.tail, self.long, self.signal, self.test, self.noise)
        shares = share_mu(gaussian.mu, *(weight for weight in weights if weight > 0))
        if delta_test == 0.0 or min(shares) < _SMALLEST_MU:
            raise ValueError("`split` must leave every step a share that it can work with; one is next to nothing.")
        positive = iter(shares)
        scale, tail, long, signal, test, noise = (next(positive) if weight > 0 else 0.0 for weight in weights)
        return StableBudget(scale, tail, long, signal, test, noise, delta_test, delta_rotation, self.norm_quantile)


def scale_weights(n: int, k: int, mu: float) -> tuple[float, float, float]:
    """Weights of the steps that release scales: norms, tails, and how many tails are long."""
    scale = min(0.1, max(0.002, (61.0 / (mu * n)) ** 2))
    tail = min(0.15, max(0.004, (20.3 * (k + 1) / (mu * n)) ** 2))
    return scale, tail, min(_MOST_LONG, ((k + 1) / (mu * _LONG_ERROR * n)) ** 2)


@lru_cache(maxsize=256)
def plan_stable_split(n: int, k: int, epsilon: float, delta: float, *, counts_long: bool = True) -> StableSplit:
    """Split the budget so that normal records with equal signal eigenvalues get the least noise."""
    best, least = (
        StableSplit(0.1, 0.15, 0.05, 0.1, 0.35, 0.25, 0.1, 0.45),
        np.inf,
    )  # for too few records, which abstain
    for test_share in (0.1, 0.3):
        mu, first = mu_from_budget(epsilon, delta * (1 - test_share)), ndtri(test_share * delta)
        scale, tail, long = scale_weights(n, k, mu)
        long = long if counts_long else 0.0
        for quantile, signal, test in product(_QUANTILES, _SIGNAL_WEIGHTS, _TEST_WEIGHTS):
            noise = 1 - scale - tail - long - signal - test
            if noise < 0.1:
                continue
            scale_norm, share = _normal_scales(k, quantile)
            strength = n * share - SIGNAL_QUANTILE * 1.1 / (mu * np.sqrt(signal))
            plan = plan_levels(n, n, strength, 1e-3 / scale_norm, _margins(first, mu * np.sqrt(test)), TIGHT)
            error = np.inf if plan is None else plan.sensitivity() / (mu * np.sqrt(noise))
            if error < least:
                best, least = StableSplit(scale, tail, long, signal, test, noise, test_share, quantile), error
    return best


@lru_cache(maxsize=256)
def plan_group_split(groups: int, k: int, epsilon: float, delta: float) -> StableSplit:
    """Split the budget of the group version, which needs neither norm scale nor signal strength."""
    best, least = StableSplit(0.0, 0.2, 0.0, 0.0, 0.4, 0.4, 0.1, 1.0), np.inf
    for test_share in (0.1, 0.3):
        mu, first = mu_from_budget(epsilon, delta * (1 - test_share)), ndtri(test_share * delta)
        tail = min(0.2, max(0.004, (34.0 / (mu * groups)) ** 2))
        for test in _TEST_WEIGHTS:
            noise = 1 - tail - test
            if noise < 0.08:
                continue
            strength = GROUP_STRENGTH * groups
            margins = _margins(first, mu * np.sqrt(test))
            plan = plan_levels(groups, groups, strength, 1e-3, margins, GROUPS, width=k)
            error = np.inf if plan is None else plan.sensitivity() / (mu * np.sqrt(noise))
            if error < least:
                best, least = StableSplit(0.0, tail, 0.0, 0.0, test, noise, test_share, 1.0), error
    return best


def _margins(first: float, mu: float) -> tuple[int, int]:
    """Margins at which the test goes on with probability Φ(2) and Φ(3)."""
    return 1 + int(np.ceil((2.0 - first) / mu)), 1 + int(np.ceil((3.0 - first) / mu))


def allowance_for(preset: StablePreset, long_share: float = 0.0) -> Allowance:
    """Room for a preset; that of "auto" grows with the released share of groups whose tails are long."""
    if preset == "auto":
        share = min(max(long_share, 0.0), 1.0)
        return replace(ROBUST, movers=min(0.02, 0.01 + 0.08 * share), tail_factor=min(3.2, 1.25 + 6.5 * share))
    return TIGHT if preset == "tight" else ROBUST


def plan_levels(
    n: int,
    d: int,
    strength: float,
    tail: float,
    margins: tuple[int, int],
    allowance: Allowance,
    *,
    width: int = 1,
) -> LeveragePlan | None:
    """Choose levels, ramp, ridge and bars with the least sensitivity at which typical data reach the target margin.

    Parameters
    ----------
    n, d : int
        Number of items and of coordinates.
    strength : float
        Lower estimate of λ_k of all items.
    tail : float
        Length of the part of a typical item outside the top-k space.
    margins : pair of int
        Margin that typical data should reach, and margin at which to stop counting.
    allowance : Allowance
        Room to leave.
    width : int
        Columns per item.

    Returns
    -------
    LeveragePlan or None
        None if there is no plan with a useful bound.
    """
    target, largest = margins
    if not strength > target + 10:
        return None
    length = tail * allowance.tail_factor * (1 + 2.3 / np.sqrt(d))  # lengths of even normal tails differ
    bulk = (tail * (1 + np.sqrt(n / d))) ** 2  # top eigenvalue of a normal tail
    share = np.geomspace(0.05, 5, 60)[:, None] / strength  # tail part of the leverage, (60, 1)
    ridge = np.maximum(length**2 / share, SMALLEST_RIDGE)
    share = length**2 / ridge
    full = np.floor(0.97 / (1 / strength + share)) - target
    ramp = np.unique(np.geomspace(2, max(3, n), 60).astype(int))[None, :]  # (1, ramps)
    movers = target + max(4, int(allowance.movers * n))
    signal = strength - target - allowance.signal_margin * n
    level = full - ramp
    with np.errstate(divide="ignore", invalid="ignore"):
        spread = ((1 + allowance.tail_spectrum) * ridge + bulk) / np.where(level > target + 2, level - target, np.nan)
    bound = sine_bound(full, ramp, movers, signal, spread, ridge)
    bound = np.where((bound * np.sqrt(width) < 0.5) & np.isfinite(spread), bound, np.inf)
    row, column = np.unravel_index(int(np.argmin(bound)), bound.shape)
    if not np.isfinite(bound[row, column]):
        return None
    full_level, chosen_ramp = int(full[row, 0]), int(ramp[0, column])
    return LeveragePlan(
        full_level=full_level,
        ramp=chosen_ramp,
        movers=movers,
        signal=float(signal),
        spread=float(spread[row, column]),
        ridge=float(ridge[row, 0]),
        largest_margin=min(largest, full_level - chosen_ramp - 2),
    )


def check_overrides(changes: Mapping[str, object]) -> None:
    """Refuse, before anything is read, levels and bounds that no plan could have."""
    for name in ("full_level", "ramp", "movers"):
        if changes.get(name) is not None:
            checks.integer_at_least(1, **{name: changes[name]})
            if int(changes[name]) > _HIGHEST_LEVEL:  # type: ignore[call-overload]
                raise ValueError(f"`{name}` must be at most 2**40.")
    for name in ("signal", "spread", "ridge"):
        if changes.get(name) is not None:
            checks.moderate(**{name: changes[name]})


def override(
    plan: LeveragePlan | None, changes: Mapping[str, float | int | None], *, width: int = 1
) -> LeveragePlan | None:
    """Replace the numbers that the caller fixed; None if what results has no useful bound."""
    if plan is None:
        return None
    plan = replace(plan, **{name: value for name, value in changes.items() if value is not None})  # type: ignore[arg-type]
    plan = replace(plan, largest_margin=min(plan.largest_margin, plan.empty_level - 2))
    usable = plan.largest_margin >= 1 and plan.movers >= 1 and plan.sensitivity() * np.sqrt(width) < 0.5
    usable = usable and plan.tail <= plan.signal / 4  # a clear gap: power steps find the space within a few steps
    return plan if usable and plan.ridge >= SMALLEST_RIDGE else None
