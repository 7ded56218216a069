"""Whether a first look by stable leverage pays off, and what its steps should spend: no data, only numbers.

`forecast` predicts the error of the course that begins with such a look, `pays` compares it with the adaptive
algorithm, and `course_for` says up to which tail the look is worth it. Both go by public numbers, so the planner and
the course ask the same functions. `plan_look` shares out the budget once the scales of the data are released.
Errors are sines, by privacy alone. Derivations: docs/explanation/one-algorithm.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache, partial

from scipy.special import chdtr, chdtri

from privspan.privacy import mu_from_budget
from privspan.privacy.coin import GaussianCoin
from privspan.privacy.joint import JointShares
from privspan.rows.limits import LIMITS, Limits
from privspan.stable import plan as stable_plan
from privspan.stable.tuning import STABLE, Allowance, StableTuning
from privspan.sums import plan as sums_plan
from privspan.sums.adaptive_tuning import LEAN


@dataclass(frozen=True)
class Public:
    """The public numbers of one course."""

    n: int
    d: int
    k: int
    mu: float  # of a course in which there is no test
    delta_test: float
    rows: int  # that are drawn for the look, at most n
    joint: JointShares | None = None  # what the test and what follows it have, if they are accounted together
    tuning: StableTuning = STABLE


def public_numbers(
    n: int, d: int, k: int, mu: float, delta_test: float, *, copied: bool, limits: Limits = LIMITS
) -> Public:
    """Say how many rows are drawn: at most `drawn_rows`, and where they have to be copied no more than fit."""
    fit = limits.drawn_bytes // (8 * d) if copied or n > limits.drawn_rows else n
    return Public(n, d, k, mu, delta_test, min(n, limits.drawn_rows, fit))


@lru_cache(maxsize=1024)  # of public numbers only, here and below
def accounted_together(public: Public, epsilon: float, delta: float, gamma: float | None) -> Public | None:
    """Return the same course with test, look and what follows accounted together; None where that does not pay.

    Its mu is a little smaller, and what follows *no* has half of what is left or less: the price of a look with less
    noise. The coin is planned for the tail of that `gamma` or, if none is given, for a short one.
    """
    if not _can_look(public):
        return None
    tail = public.tuning.short_tail if gamma is None else gamma * math.sqrt(public.d - public.k)
    useful = adaptive_error(public, tail) < public.tuning.useful
    no = public.tuning.after_no if useful else public.tuning.little_after_no
    whole = public.tuning.whole * mu_from_budget(epsilon, delta)
    alone = replace(public, mu=whole, joint=None)
    scales = scales_for(alone)
    # A grid, so that tables of chances are made once for many numbers of rows.
    step = public.tuning.before_step
    share = math.pow(step, math.ceil(math.log(_before_coin(alone, gamma), step)))
    if share > public.tuning.most_before:
        return None
    before, otherwise = whole * math.sqrt(share), whole * math.sqrt(1.0 - share)
    length, strength = _expected_scales(alone, scales, tail)
    released = min(1.0, public.tuning.tail_read * tail / length)
    room = stable_plan.allowance_for("auto")
    levels = partial(stable_plan.plan_levels, public.rows, public.d, strength, released, allowance=room)
    rotation = delta * public.tuning.test * public.tuning.rotation
    shares = stable_plan.steepest_of(epsilon, delta, before, no, otherwise, rotation, levels)
    if shares is None:
        return None
    together = replace(alone, mu=shares.whole, joint=shares)
    if not (pays(together, tail) and may_pay(together, gamma)) or _before_coin(together, gamma) > share:
        return None
    now, then = forecast(public, tail) if pays(public, tail) else None, forecast(together, tail)
    if then is None or then.rounds:  # rounds have measured to gain more from what a Gaussian test leaves
        return None
    return together if now is None or then.error < public.tuning.better * now.error else None


def _before_coin(public: Public, gamma: float | None) -> float:
    """Return the share of mu² that is spent before the coin, and a little more."""
    return (scales_for(public).total + (probe_share(public) if gamma is None else 0.0)) * (1.0 + 1e-9)


@dataclass(frozen=True)
class Scales:
    """Shares of mu² for what stable leverage has to know before it can plan."""

    norm: float
    tail: float
    long: float  # zero leaves this one out
    signal: float
    quantile: float  # of the norms, that becomes the scale of a record

    @property
    def total(self) -> float:
        """All of them."""
        return self.norm + self.tail + self.long + self.signal


@dataclass(frozen=True)
class LookPlan:
    """Shares of mu² for the test and the noise of the look, and what is expected of it."""

    error: float  # after everything, by privacy alone
    test: float
    noise: float
    rounds: bool  # whether localised rounds follow, with what is then left


@dataclass(frozen=True)
class Course:
    """The question whether tails are short."""

    probe: float  # its share of mu²
    longest: float  # the tail energy up to which the look pays off; zero if it never does


def probe_share(public: Public) -> float:
    """Return the share of mu² at which the number of short groups is known well enough to be compared with half."""
    groups = public.rows // (public.k + 1)
    share = math.pow(2.0 * public.tuning.sure / (public.mu * max(groups, 1)), 2)
    return min(public.tuning.most_probe, max(public.tuning.least_probe, share))


def group_length(k: int, tail: float) -> float:
    """Return the usual smallest singular value of k + 1 unit rows whose tail energy is `tail` (fitted to k to 20)."""
    return tail / math.sqrt(k - 1.55 + 0.8 / k)


def moment_share(n: int, k: int, mu: float) -> float:
    """Return the share of the (k, k) second moment along the basis: enough for errors of a tenth."""
    least, most, off = STABLE.moments
    return min(most, max(least, math.pow(k, 3) / (off * mu * n) ** 2))


def scales_for(public: Public) -> Scales:
    """Share out what the scales may cost: enough to know each about as well as the plan can use."""
    m, k, mu = public.rows, public.k, public.mu
    norm, tail, long = stable_plan.scale_weights(m, k, mu)
    error = (k + 1) / (mu * math.sqrt(long) * m)  # of the share of long tails
    limits = public.tuning.least_signal, public.tuning.most_signal, public.tuning.signal_size
    signal = stable_plan.size_share(limits, mu * m, k)
    if m * mu < public.tuning.few:
        norm, tail = public.tuning.thrift * norm, public.tuning.thrift * tail
        quantile = public.tuning.thrifty_quantile
    else:
        quantile = public.tuning.quantile
    return Scales(norm, tail, long if error < public.tuning.long_error else 0.0, signal, quantile)


def may_pay(public: Public, gamma: float | None) -> bool:
    """Tell whether stable leverage may pay off, for the tail of that `gamma` or, if none is given, for any."""
    return pays(public, public.tuning.tails[0] if gamma is None else gamma * math.sqrt(public.d - public.k))


def _can_look(public: Public) -> bool:
    enough = public.rows >= public.tuning.fewest_groups * (public.k + 1)
    return enough and public.d >= public.tuning.fewest_columns and public.d > public.k


@lru_cache(maxsize=4096)
def pays(public: Public, tail: float) -> bool:
    """Tell whether a look is predicted to be worth it for this tail energy."""
    if not _can_look(public):
        return False
    look = forecast(public, tail)
    few = public.rows * public.mu < public.tuning.few
    if look is None or (few and forecast(public, tail, public.tuning.unlucky) is None):
        return False
    weakest, off_square = sums_plan.signal_strength(public.k, tail)
    sampling = sums_plan.sampling_error(public.n, public.d, public.k, weakest, math.sqrt(off_square))
    share = public.tuning.worth_it if public.n * public.d < public.tuning.large else public.tuning.worth_it_large
    return math.hypot(look.error, sampling) < min(share * adaptive_error(public, tail), public.tuning.useful)


@lru_cache(maxsize=256)
def course_for(public: Public) -> Course:
    """Decide up to which tail a look by stable leverage pays off: the longer the tail, the less it gains."""
    low, high = public.tuning.tails
    if not pays(public, low):
        return Course(0.0, 0.0)
    while high > public.tuning.tail_steps * low:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if pays(public, middle) else (low, middle)
    return Course(probe_share(public), low)


@lru_cache(maxsize=4096)
def forecast(public: Public, tail: float, unlucky: float = 0.0) -> LookPlan | None:
    """Predict a course with a look for normal records of this tail energy; None if there is no plan for it.

    Scales are as expected, and the strength is lowered by `unlucky` standard deviations of its noise.
    """
    k, scales = public.k, scales_for(public)
    length, strength = _expected_scales(public, scales, tail)
    strength -= unlucky * _strength_noise(public, scales)
    weakest, off_square = sums_plan.signal_strength(k, tail)
    left = 1.0 - probe_share(public) - scales.total
    released = min(1.0, public.tuning.tail_read * tail / length)
    room = stable_plan.allowance_for("auto")
    return plan_look(public, strength, released, weakest, math.sqrt(off_square), left, room)


def _expected_scales(public: Public, scales: Scales, tail: float) -> tuple[float, float]:
    """Return the norm that records are divided by, and the strength that is released, for normal records."""
    m, k = public.rows, public.k
    square = public.tuning.norm_edge**2 * float(chdtri(k, 1.0 - scales.quantile))
    length, share = stable_plan.normal_scales(k, float(chdtr(k, square)), tail)
    weakest = share * (1.0 - public.tuning.sampled * math.sqrt(k / m))
    usual = stable_plan.usual_strength(m, weakest, public.mu, scales.signal)
    return length, bolder_strength(public, scales, usual)


def bolder_strength(public: Public, scales: Scales, strength: float) -> float:
    """Take less off the released strength than stable leverage does alone: after a *no* there is something else."""
    return strength + (public.tuning.signal_quantile - public.tuning.caution) * _strength_noise(public, scales)


def _strength_noise(public: Public, scales: Scales) -> float:
    return public.tuning.strength_noise / (public.mu * math.sqrt(scales.signal))


def plan_released(
    public: Public, scales: Scales, strength: float, tail: float, left: float, allowance: Allowance
) -> LookPlan | None:
    """Plan with released numbers; None if stable leverage has no plan or does not promise enough.

    What localised rounds and the adaptive algorithm make of the same data is inferred as for normal records.
    """
    k, mu = public.k, public.mu
    length, usual = _expected_scales(public, scales, 0.0)
    flat, off_square = sums_plan.signal_strength(k, min(tail / public.tuning.tail_read, 1.0) * length)
    weakest, off = flat * min(1.0, max(strength / usual, public.tuning.weakest)), math.sqrt(off_square)
    look = plan_look(public, strength, tail, weakest, off, left, allowance)
    rest = sums_plan.lively(mu, k, public.d) * math.sqrt(left)
    adaptive = public.tuning.by_adaptive * sums_plan.error_at(public.n, public.d, k, rest, weakest, off)
    return look if look is not None and look.error < adaptive else None


def plan_look(
    public: Public, strength: float, tail: float, weakest: float, off: float, left: float, allowance: Allowance
) -> LookPlan | None:
    """Share out `left` of mu² between the test, the noise of the look and the rounds; or all that follows *yes*.

    `strength` and `tail` are those of the scaled rows that were drawn; `weakest` and `off` are lambda_k and g of all
    unit rows, as localised rounds see them. None if stable leverage has no plan.
    """
    if tail > public.tuning.longest_tail:
        return None
    n, d, k = public.n, public.d, public.k
    mu = public.mu if public.joint is None else public.joint.yes
    size, moment = math.sqrt(d) + math.sqrt(k), moment_share(n, k, mu)
    levels = partial(stable_plan.plan_levels, public.rows, d, strength, tail, allowance=allowance)
    plain = sums_plan.analyze_gauss_error(n, d, k, mu, weakest)
    best: LookPlan | None = None
    least = math.inf
    tests = public.tuning.look_tests if public.joint is None else (0.0,)
    for test in tests:
        if public.joint is None:
            rest = left - test
            margins = GaussianCoin(mu * math.sqrt(test), public.delta_test).margins(allowance.usual)
        else:
            rest, margins = 1.0, public.joint.coin.margins(allowance.usual)
        plan = levels(margins) if rest > public.tuning.least_left else None
        if plan is None:
            continue
        alone = plan.sensitivity() * size / mu  # the error of the look, for all of mu²
        options = [LookPlan(alone / math.sqrt(rest), test, rest, rounds=False)]
        for part in public.tuning.noises:
            noise = part * rest
            start = min(1.0, alone / math.sqrt(noise))
            left_over = rest - noise - moment
            if left_over < public.tuning.least_rounds:
                continue
            error = sums_plan.rounds_error(
                n, d, k, sums_plan.lively(mu, k, d), weakest, off, start, left_over, public.tuning.rounds, LEAN.probe
            )
            options.append(LookPlan(public.tuning.by_rounds * error, test, noise, rounds=True))
        first = min(options, key=lambda one: one.error)
        # What the test takes is missed after a no.
        risk = first.error + public.tuning.risk * min(1.0, plain / math.sqrt(rest))
        if risk < least:
            best, least = first, risk
    return best


def adaptive_error(public: Public, tail: float) -> float:
    """Predict the adaptive algorithm with what the probe leaves, for normal records of this tail energy."""
    n, d, k = public.n, public.d, public.k
    mu = sums_plan.lively(public.mu, k, d) * math.sqrt(1.0 - probe_share(public))
    return public.tuning.by_adaptive * sums_plan.predicted_error(n, d, k, mu, tail)
