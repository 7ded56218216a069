"""Public numbers of stable leverage: how the budget is split, and levels and bars from what was released.

`plan_stable_split` sees n, k, epsilon, delta and a preset only. `plan_levels` sees besides these the released
scales. Neither sees data, so every choice made here is free of charge; a poor choice costs accuracy or an
abstention, never privacy.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache, partial
from itertools import product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtr, chdtrc, chdtri

from privspan._lib import checks
from privspan._lib.errors import Parameter, ParameterError
from privspan.privacy import NEIGHBOURS, Budget, Part, PrivacyCost, compose_mu, mu_from_budget, share_mu
from privspan.privacy.coin import USUAL_SCORE, Coin, GaussianCoin
from privspan.privacy.joint import JointShares
from privspan.stable.certificate import LeveragePlan, sine_bound
from privspan.stable.steepest import accepted, steepest
from privspan.stable.tuning import STABLE, Allowance, StableTuning

StablePreset = Literal["auto", "tight", "robust"]
STABLE_PRESETS: tuple[StablePreset, ...] = ("auto", "tight", "robust")


SMALLEST_RIDGE = 2.0**-36
"""Smaller ridges gain nothing, since items lie on a grid, and float64 could not certify their leverages."""

_SMALLEST_MU = 2.0**-45  # of a step: noise of less leaves the range of 64-bit integers, after others have spent
_HIGHEST_LEVEL = 2**40  # counts up to here are exact in float64, with room for sums

_TAIL_SHARES = np.geomspace(0.05, 5, 60)[:, None]  # of a leverage: all of which bound the same, the least is taken


Levels = Callable[[tuple[int, int]], LeveragePlan | None]
"""`plan_levels` of everything but the margins."""


@dataclass(frozen=True)
class StableBudget:
    """Shares of one budget, for the steps in their order.

    The squares of the Gaussian-DP shares add up to at most the square of the whole; zero for a step that is left out.
    """

    mu_scale: float
    mu_tail: float
    mu_long: float
    mu_signal: float
    coin: Coin  # Gaussian, or a table that is accounted for together with the other steps
    mu_noise: float
    delta_rotation: float  # chance that the random rotation is less exact than charged
    norm_quantile: float  # of the norms, that becomes the scale of a record

    def parts(self) -> tuple[Part, ...]:
        """Name the steps and what each may spend."""
        named = {
            "norm scale": self.mu_scale, "tail length": self.mu_tail, "long tails": self.mu_long,
            "signal strength": self.mu_signal, "noise": self.mu_noise,
        }  # fmt: skip
        gaussian = tuple(Part(name, 0.0, 0.0, mu) for name, mu in named.items() if mu > 0)
        if not isinstance(self.coin, GaussianCoin):
            return (*gaussian, Part("test", 0.0, 0.0))
        wrong = Part("chance to go on wrongly", 0.0, self.coin.delta + self.delta_rotation)
        return (*gaussian[:-1], Part("test", 0.0, 0.0, self.coin.mu), gaussian[-1], wrong)

    def cost(self, budget: Budget) -> PrivacyCost:
        """Return what all steps cost; their sum is checked once more, or was when they were accounted together."""
        if isinstance(self.coin, GaussianCoin):
            return budget.cost(*self.parts())
        return PrivacyCost(budget.epsilon, budget.delta, NEIGHBOURS, self.parts())


@lru_cache(maxsize=256)
def normal_scales(k: int, quantile: float, tail: float = 0.0) -> tuple[float, float]:
    """That quantile of the norms of normal records with a tail of that length, and λ_k / n after division by it.

    More exactly after division by max(norm, quantile), which leaves λ_k to the records that are shorter.
    """
    square = float(chdtri(k, 1.0 - quantile))  # of the squared length, in the subspace
    share = (k * chdtr(k + 2, square) + square * chdtrc(k, square)) / (square + tail**2) / k
    return math.sqrt(square + tail**2), float(share)


@dataclass(frozen=True)
class StableSplit:
    """How one budget is shared out: weights of the Gaussian steps are shares of mu², in proportion."""

    scale: float  # zero leaves a step out
    tail: float
    long: float
    signal: float
    test: float
    noise: float
    delta_test: float  # share of delta that the test may go on with at margin 1
    norm_quantile: float  # of the norms, that becomes the scale of a record

    def overridden(self, changes: Mapping[str, float]) -> StableSplit:
        """Replace what the caller fixed; a step that is left out stays out."""
        settings = checks.settings(_SPLIT_CHECKS, "split", changes)
        return replace(self, **{name: float(value) for name, value in settings.items() if getattr(self, name) > 0})

    def budget(self, epsilon: float, delta: float) -> StableBudget:
        """Share the budget exactly: delta by sums of fractions, mu² by weights."""
        gaussian, delta_test = Budget(epsilon, delta).reserve_delta(self.delta_test)
        gaussian, delta_rotation = gaussian.reserve_delta(STABLE.rotation)
        weights = (self.scale, self.tail, self.long, self.signal, self.test, self.noise)
        shares = share_mu(gaussian.mu, *(weight for weight in weights if weight > 0))
        if delta_test == 0.0 or min(shares) < _SMALLEST_MU:
            raise ParameterError("{split} must give every step a usable share; one is close to zero.")
        positive = iter(shares)
        scale, tail, long, signal, test, noise = (next(positive) if weight > 0 else 0.0 for weight in weights)
        coin = GaussianCoin(test, delta_test)
        return StableBudget(scale, tail, long, signal, coin, noise, delta_rotation, self.norm_quantile)


def scale_weights(n: int, k: int, mu: float, tuning: StableTuning = STABLE) -> tuple[float, float, float]:
    """Weights of the steps that release scales: norms, tails, and how many tails are long."""
    scale, tail = size_share(tuning.norms, mu * n), size_share(tuning.tail_lengths, mu * n, k + 1)
    return scale, tail, min(tuning.most_long, ((k + 1) / (mu * tuning.long_known * n)) ** 2)


def group_tail_weight(groups: int, mu: float) -> float:
    """Weight of the only scale that the group version releases."""
    return size_share(STABLE.group_tails, mu * groups)


def size_share(limits: tuple[float, float, float], data: float, times: float = 1.0) -> float:
    """Return the share that makes a size as well known as the plan can use, within limits."""
    least, most, size = limits
    return min(most, max(least, (size * times / data) ** 2))


@lru_cache(maxsize=256)
def plan_stable_split(
    n: int, k: int, epsilon: float, delta: float, *, counts_long: bool = True, tuning: StableTuning = STABLE
) -> StableSplit:
    """Split the budget so that normal records with equal signal eigenvalues get the least noise."""
    splits = [
        split_of_mu(n, k, mu, share, share * delta, counts_long=counts_long, tuning=tuning)
        for share, mu in _test_shares(epsilon, delta)
    ]
    return min(splits, key=lambda one: one[0])[1]


def split_of_mu(
    n: int,
    k: int,
    mu: float,
    share: float,
    delta_test: float,
    *,
    counts_long: bool = True,
    tuning: StableTuning = STABLE,
) -> tuple[float, StableSplit]:
    """The same for a given mu and chance to go on wrongly, with the error to expect; infinite for too few records.

    The error is the noise of an entry of the basis at the ideal tail, `share` is noted as that of delta.
    """
    best = StableSplit(*tuning.abstaining, share, tuning.quantiles[2])  # for too few records, which abstain
    least = math.inf
    scale, tail, long = scale_weights(n, k, mu, tuning)
    long = long if counts_long else 0.0
    for quantile, signal in product(tuning.quantiles, tuning.signals):
        scale_norm, strength_share = normal_scales(k, quantile)
        strength = usual_strength(n, strength_share, mu, signal, tuning)
        levels = partial(plan_levels, n, n, strength, tuning.ideal / scale_norm, allowance=tuning.tight)
        left = 1 - scale - tail - long - signal
        error, test, noise, _ = least_noise(left, mu, delta_test, levels, tuning.tests)
        if error < least:
            best, least = StableSplit(scale, tail, long, signal, test, noise, share, quantile), error
    return least, best


def record_shares(
    n: int, k: int, budget: Budget, split: Mapping[str, float], *, counts_long: bool = True
) -> StableBudget:
    """Share out the budget of the record version, as planned but for what the caller fixed.

    Test and noise are accounted together, unless the caller gives one of them a share or there is no such coin.
    """
    planned = plan_stable_split(n, k, budget.epsilon, budget.delta, counts_long=counts_long).overridden(split)
    shares = planned.budget(budget.epsilon, budget.delta)
    if split.keys() & {"test", "noise", "delta_test"}:
        return shares
    found = _joint_shares(n, k, budget.epsilon, budget.delta, planned)
    account = None if found is None else accepted(budget.epsilon, budget.delta, found)
    if account is None:
        return shares
    return replace(shares, coin=account.shares.coin, mu_noise=account.shares.yes)


@lru_cache(maxsize=256)  # of public numbers only
def _joint_shares(n: int, k: int, epsilon: float, delta: float, split: StableSplit) -> JointShares | None:
    """Propose what coin and noise may have beside the steps of a split, for the least noise; None if no less."""
    shares = split.budget(epsilon, delta)
    scale_norm, strength_share = normal_scales(k, split.norm_quantile)
    mu = shares.mu_signal / math.sqrt(split.signal)  # of all steps
    strength = usual_strength(n, strength_share, mu, split.signal)
    levels = partial(plan_levels, n, n, strength, STABLE.ideal / scale_norm, allowance=STABLE.tight)
    before = [mu for mu in (shares.mu_scale, shares.mu_tail, shares.mu_long, shares.mu_signal) if mu > 0]
    now = levels(shares.coin.margins())
    least = math.inf if now is None else now.sensitivity() / shares.mu_noise
    return steepest_of(epsilon, delta, compose_mu(*before), 0.0, 0.0, shares.delta_rotation, levels, least)


def steepest_of(
    epsilon: float,
    delta: float,
    before: float,
    no: float,
    otherwise: float,
    rotation: float,
    levels: Levels,
    least: float = math.inf,
) -> JointShares | None:
    """Propose what is done after *yes*, for a noise less than `least`; `no` is a share of what is left for it."""
    best, left = None, math.sqrt(max(mu_from_budget(epsilon, delta) ** 2 - before**2, 0.0))
    for shares in STABLE.after_yes:  # one way, then the other, as long as the noise falls
        for share in shares:
            found = steepest(epsilon, delta, before, share * left, no * left, otherwise, rotation)
            plan = None if found is None else levels(found.coin.margins())
            noise = math.inf if plan is None else plan.sensitivity() / (share * left)
            if best is not None and noise >= least:
                break
            if noise < least:
                best, least = found, noise
    return best


def usual_strength(n: int, share: float, mu: float, signal: float, tuning: StableTuning = STABLE) -> float:
    """Signal strength to expect of a release with a share `signal` of mu², when λ_k is that share of n."""
    return n * share - tuning.signal_quantile * tuning.strength_noise / (mu * math.sqrt(signal))


@lru_cache(maxsize=256)
def plan_group_split(groups: int, k: int, epsilon: float, delta: float, tuning: StableTuning = STABLE) -> StableSplit:
    """Split the budget of the group version, which needs neither norm scale nor signal strength."""
    best, least = StableSplit(*tuning.abstaining_groups, tuning.test_deltas[0], 1.0), math.inf
    strength = tuning.group_strength * groups
    levels = partial(plan_levels, groups, groups, strength, tuning.ideal, allowance=tuning.groups, width=k)
    for test_share, mu in _test_shares(epsilon, delta):
        tail = group_tail_weight(groups, mu)
        error, test, noise, _ = least_noise(
            1 - tail, mu, test_share * delta, levels, tuning.tests, tuning.least_noise_groups
        )
        if error < least:
            best, least = StableSplit(0.0, tail, 0.0, 0.0, test, noise, test_share, 1.0), error
    return best


def group_shares(groups: int, k: int, budget: Budget, split: Mapping[str, float] | None) -> StableBudget:
    """Share out the budget of the group version, as planned but for what the caller fixed."""
    planned = plan_group_split(groups, k, budget.epsilon, budget.delta)
    return planned.overridden(split or {}).budget(budget.epsilon, budget.delta)


def _test_shares(epsilon: float, delta: float) -> list[tuple[float, float]]:
    """Shares of delta for the test, and the mu that the rest of delta leaves beside each."""
    return [(share, mu_from_budget(epsilon, delta * (1 - share))) for share in STABLE.test_deltas]


def allowance_for(preset: StablePreset, long_share: float | None = None) -> Allowance:
    """Room for a preset; that of "auto" grows with the released share of groups whose tails are long."""
    if preset == "auto":
        share = min(max(long_share or 0.0, 0.0), 1.0)
        usual = USUAL_SCORE if long_share is None or share > 0.0 else STABLE.even_score  # None: nobody asked
        movers, factor = (
            min(most, none + each * share) for none, each, most in (STABLE.long_movers, STABLE.long_factor)
        )
        return replace(STABLE.robust, movers=movers, tail_factor=factor, usual=usual)
    return STABLE.tight if preset == "tight" else STABLE.robust


def least_noise(
    left: float,
    mu: float,
    delta_test: float,
    levels: Levels,
    tests: Sequence[float],
    smallest: float = STABLE.least_noise,
) -> tuple[float, float, float, float]:
    """Divide what is left of mu² between test and noise, which gets the `smallest` weight at least.

    Returns the error, which is sensitivity over mu √noise and infinite if there is no plan; the weights of test and
    noise; and the sensitivity, for items of width 1.
    """
    best = math.inf, 0.0, 1.0, math.inf
    for test in tests:
        noise = left - test
        plan = levels(GaussianCoin(mu * math.sqrt(test), delta_test).margins()) if noise >= smallest else None
        if plan is not None:
            sensitivity = plan.sensitivity()
            best = min(best, (sensitivity / (mu * math.sqrt(noise)), test, noise, sensitivity))
    return best


def plan_levels(
    n: int, d: int, strength: float, tail: float, margins: tuple[int, int], allowance: Allowance, *, width: int = 1
) -> LeveragePlan | None:
    """Choose levels, ramp, ridge and bars with the least sensitivity at which typical data reach the target margin.

    There are n items of `width` columns in d coordinates; λ_k of all of them is estimated to be at least `strength`,
    and `tail` is how long the part of a typical item outside the top-k space is. `margins` are the one that typical
    data should reach and the one at which to stop counting. None if there is no plan with a useful bound.
    """
    target, largest = margins
    if not strength > target + STABLE.clear_target:
        return None
    length = tail * allowance.tail_factor * (1 + STABLE.even_tails / np.sqrt(d))
    bulk = (tail * (1 + np.sqrt(n / d))) ** 2  # top eigenvalue of a normal tail
    share = _TAIL_SHARES / strength  # tail part of the leverage, (60, 1)
    ridge = np.maximum(length**2 / share, SMALLEST_RIDGE)
    share = length**2 / ridge
    full = np.floor(STABLE.full / (1 / strength + share)) - target
    ramp = _ramps(n)  # (1, ramps)
    movers = target + max(STABLE.fewest_movers, int(allowance.movers * n))
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
    margin = min(largest, full_level - chosen_ramp - 2)
    bounds = float(signal), float(spread[row, column]), float(ridge[row, 0])
    return LeveragePlan(full_level, chosen_ramp, movers, *bounds, margin)


@lru_cache(maxsize=256)
def _ramps(n: int) -> NDArray[np.int64]:
    """Lengths of the ramp to choose from, (1, at most 60)."""
    return np.unique(np.geomspace(2, max(3, n), 60).astype(np.int64))[None, :]


def certified_plan(
    n: int,
    d: int,
    strength: float,
    tail: float,
    coin: Coin,
    room: Allowance,
    changes: Mapping[str, Any] | None = None,
    *,
    width: int = 1,
) -> LeveragePlan | None:
    """Plan for a coin, with what the caller fixed; None if there is no plan with a useful bound.

    `strength` and `tail` are released or public, as are all other arguments.
    """
    planned = plan_levels(n, d, strength, tail, coin.margins(room.usual), room, width=width)
    return override(planned, changes, width=width)


def override(plan: LeveragePlan | None, changes: Mapping[str, Any] | None, *, width: int = 1) -> LeveragePlan | None:
    """Replace the numbers that the caller fixed; None if what results has no useful bound."""
    if plan is None:
        return None
    plan = replace(plan, **{name: value for name, value in (changes or {}).items() if name != "split"})
    plan = replace(plan, largest_margin=min(plan.largest_margin, plan.empty_level - 2))
    usable = plan.largest_margin >= 1 and plan.movers >= 1 and plan.sensitivity() * np.sqrt(width) < 0.5
    usable = usable and plan.tail <= plan.signal / 4  # a clear gap: power steps find the space within a few steps
    return plan if usable and plan.ridge >= SMALLEST_RIDGE else None


def _level(**parameters: int) -> None:
    checks.integer_at_least(1, **parameters)
    for name, value in parameters.items():
        if int(value) > _HIGHEST_LEVEL:
            raise ParameterError("{name} must be at most 2**40.", name=Parameter(name))


_SPLIT_CHECKS: checks.Checks = {
    **{field.name: checks.positive for field in fields(StableSplit)},
    **dict.fromkeys(("delta_test", "norm_quantile"), checks.probability),
}
STABLE_OPTIONS: checks.Checks = {
    **dict.fromkeys(("full_level", "ramp", "movers"), _level),
    **dict.fromkeys(("signal", "spread", "ridge"), checks.moderate),
    "split": lambda split: checks.settings(_SPLIT_CHECKS, "split", split),
}
"""Expert settings of stable leverage: numbers of a `LeveragePlan`, and `split` with those of a `StableSplit`."""
