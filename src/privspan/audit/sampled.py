"""Sampled audits: a lower bound on epsilon or on mu, with confidence, from runs on two neighbouring inputs.

If a mechanism is (epsilon, delta)-private, then Pr[event on one input] <= e^epsilon Pr[event on the other] + delta
for every event. An event is chosen on the first half of the runs; on the second half its two probabilities are
bounded by the limits of Clopper and Pearson, one from below and one from above. Both directions are tried, and the
chance that any of the four limits is wrong is shared among them. The choice of the event cannot hurt validity, only
power.

If it is mu-GDP, then no event tells the inputs apart better than a threshold tells N(0, 1) from N(mu, 1): from an
event of probability at least p on one input and at most q on the other follows mu >= Φ⁻¹(p) - Φ⁻¹(q). That sees more
of a Gaussian mechanism than its epsilon at one delta, for which events matter that hardly ever occur.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv, ndtri

from privspan._lib import checks
from privspan.privacy.gdp import mu_from_budget

Array = NDArray[np.float64]
Observation = Mapping[str, float]

_MOST_THRESHOLDS = 256  # that are tried for one number; more cost time and find little
_LIMITS = 4  # two directions and two one-sided limits share what may go wrong
_CHOICE_ERROR = 0.05  # of the limits by which a set of outcomes is chosen, which need not be sure


class _Bounds(Protocol):
    """Bounds on epsilon or mu, from counts of events that are likely on one input and rare on the other."""

    def __call__(self, likely: ArrayLike, rare: ArrayLike, *, runs: int, error: float) -> Array: ...


@dataclass(frozen=True)
class SampledAudit:
    """What the runs of one audit showed.

    Attributes
    ----------
    epsilon_lower : float
        With the stated confidence the true epsilon, at the claimed delta, is at least this. Never negative.
    refuted : bool
        Whether the claimed epsilon, or the mu that it stands for, lies below that bound.
    event : frozenset or str
        What tells the two inputs apart best, chosen on the first half of the runs: a set of outcomes, or a
        statistic and a threshold in words. Empty if nothing did.
    runs : int
        Runs on each input.
    confidence : float
        Probability with which the bounds hold.
    mu_lower : float
        With the same confidence, and from the same event, the mu of the mechanism is at least this.
    """

    epsilon_lower: float
    refuted: bool
    event: frozenset[Hashable] | str
    runs: int
    confidence: float
    mu_lower: float = 0.0


def sampled_audit(
    on_first: Callable[[], Hashable],
    on_second: Callable[[], Hashable],
    *,
    epsilon: float,
    delta: float,
    runs: int = 2000,
    confidence: float = 0.999,
) -> SampledAudit:
    """Lower bound on epsilon from runs of a mechanism with discrete outcomes on two neighbouring inputs.

    Parameters
    ----------
    on_first, on_second : callable
        Run the mechanism once on either input and return a hashable label of what came out.
    epsilon, delta : float
        The claim under test.
    runs : int, default=2000
        Runs on each input. The event is chosen on one half and measured on the other.
    confidence : float, default=0.999
        A true claim is refuted with probability at most one minus this.

    Returns
    -------
    SampledAudit
    """
    _check_claim(epsilon, delta, runs, confidence)
    half = runs // 2
    choose, measure = (
        [Counter(run() for _ in range(count)) for run in (on_first, on_second)] for count in (half, runs - half)
    )
    best, least_mu, best_event = 0.0, 0.0, frozenset[Hashable]()
    for chosen, measured in ((choose, measure), (choose[::-1], measure[::-1])):
        event = _best_event(*chosen, delta=delta, runs=half)
        counts = [sum(sample[outcome] for outcome in event) for sample in measured]
        bound, mu = _certified(counts, runs - half, delta, (1 - confidence) / _LIMITS)
        least_mu = max(least_mu, mu)
        if bound > best:
            best, best_event = bound, event
    return SampledAudit(best, best > epsilon, best_event, runs, confidence, least_mu)


def scalar_audit(
    on_first: Callable[[], Observation],
    on_second: Callable[[], Observation],
    *,
    epsilon: float,
    delta: float,
    runs: int = 2000,
    confidence: float = 0.999,
    measure: Literal["epsilon", "mu"] = "epsilon",
) -> SampledAudit:
    """Lower bound on epsilon from runs of a mechanism with continuous outcomes on two neighbouring inputs.

    Every run is described by a few named numbers. The events are "this number is at least c" and "at most c"; which
    number, which side and which c is chosen on the first half of the runs.

    Parameters
    ----------
    on_first, on_second : callable
        Run the mechanism once on either input and return the numbers by name. Infinite values are welcome; a number
        that is missing from a run, or NaN, counts as minus infinity.
    epsilon, delta, runs, confidence
        As for `sampled_audit`.
    measure : {"epsilon", "mu"}, default="epsilon"
        With "mu" the claim under test is mu-GDP for the largest mu that implies (epsilon, delta), and the event is
        chosen to show as much of that as it can.

    Returns
    -------
    SampledAudit
        `event` says what gave the inputs away.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> def noisy(value):
    ...     return lambda: {"value": value + rng.laplace(scale=0.5)}  # so epsilon is 2
    >>> audit = scalar_audit(noisy(0.0), noisy(1.0), epsilon=1.0, delta=1e-6, runs=4000)
    >>> audit.refuted, 1.0 < audit.epsilon_lower <= 2.0
    (True, True)
    """
    _check_claim(epsilon, delta, runs, confidence)
    checks.one_of(("epsilon", "mu"), measure=measure)
    observed = [[run() for _ in range(runs)] for run in (on_first, on_second)]
    names = sorted({name for side in observed for each in side for name in each})
    samples = [np.array([[each.get(name, -np.inf) for name in names] for each in side]) for side in observed]
    samples = [np.where(np.isnan(sample), -np.inf, sample) for sample in samples]  # (runs, names)
    half, error = runs // 2, (1 - confidence) / _LIMITS
    bounds = _mu_bounds if measure == "mu" else partial(_epsilon_bounds, delta=delta)
    best, least_epsilon, least_mu, best_event = 0.0, 0.0, 0.0, ""
    for likely, rare in (samples, samples[::-1]):
        column, sign, cut = _best_threshold(likely[:half], rare[:half], bounds, error)
        counts = [int(np.count_nonzero(sign * side[half:, column] >= cut)) for side in (likely, rare)]
        epsilon_bound, mu_bound = _certified(counts, runs - half, delta, error)
        bound = mu_bound if measure == "mu" else epsilon_bound
        least_epsilon, least_mu = max(least_epsilon, epsilon_bound), max(least_mu, mu_bound)
        if bound > best:
            best, best_event = bound, f"{names[column]} {'>=' if sign > 0 else '<='} {sign * cut:.4g}"
    refuted = best > (mu_from_budget(epsilon, delta) if measure == "mu" else epsilon)
    return SampledAudit(least_epsilon, refuted, best_event, runs, confidence, least_mu)


def _certified(counts: Sequence[int], runs: int, delta: float, error: float) -> tuple[float, float]:
    """Return what an event shows of epsilon, at delta, and of mu."""
    epsilon = _epsilon_bounds(*counts, runs=runs, delta=delta, error=error)
    return float(epsilon), float(_mu_bounds(*counts, runs=runs, error=error))


def _check_claim(epsilon: float, delta: float, runs: int, confidence: float) -> None:
    checks.budget(epsilon, delta)
    checks.integer_at_least(2, runs=runs)
    checks.probability(confidence=confidence)


def _best_event(
    likely: Counter[Hashable], rare: Counter[Hashable], *, delta: float, runs: int
) -> frozenset[Hashable]:
    """Outcomes in falling order of likelihood ratio, cut where the estimated bound is largest."""
    order = sorted(likely, key=lambda outcome: (rare[outcome] + 1) / likely[outcome])
    counts = [np.cumsum([sample[outcome] for outcome in order]) for sample in (likely, rare)]
    bounds = _epsilon_bounds(*counts, runs=runs, delta=delta, error=_CHOICE_ERROR)
    return frozenset(order[: int(np.argmax(bounds)) + 1])


def _best_threshold(likely: Array, rare: Array, bounds_of: _Bounds, error: float) -> tuple[int, float, float]:
    """Column, sign and cut for which {sign * value >= cut} has the largest estimated bound."""
    best, chosen = -1.0, (0, 1.0, math.inf)
    for column in range(likely.shape[1]):
        for sign in (1.0, -1.0):
            first, second = np.sort(sign * likely[:, column]), np.sort(sign * rare[:, column])
            cuts = np.unique(np.concatenate([first, second]))
            cuts = cuts[np.unique(np.linspace(0, len(cuts) - 1, _MOST_THRESHOLDS).astype(int))]
            counts = [len(side) - np.searchsorted(side, cuts, side="left") for side in (first, second)]
            bounds = bounds_of(*counts, runs=len(first), error=error)
            place = int(np.argmax(bounds))
            if bounds[place] > best:
                best, chosen = float(bounds[place]), (column, sign, float(cuts[place]))
    return chosen


def _epsilon_bounds(likely: ArrayLike, rare: ArrayLike, *, runs: int, delta: float, error: float) -> Array:
    """Log of (lower limit of the likely probability - delta) over the upper limit of the rare one."""
    lower, upper = _limits(likely, rare, runs, error)
    return np.where(lower > delta, np.maximum(0.0, np.log(np.maximum(lower - delta, 1e-300) / upper)), 0.0)


def _mu_bounds(likely: ArrayLike, rare: ArrayLike, *, runs: int, error: float) -> Array:
    """Normal quantile of the lower limit of the likely probability, less that of the upper limit of the rare one."""
    lower, upper = _limits(likely, rare, runs, error)
    return np.maximum(0.0, ndtri(lower) - ndtri(upper))


def _limits(likely: ArrayLike, rare: ArrayLike, runs: int, error: float) -> tuple[Array, Array]:
    """Return the limits of Clopper and Pearson, from below for the likely count and from above for the rare one."""
    hits, misses = np.asarray(likely, dtype=np.float64), np.asarray(rare, dtype=np.float64)
    lower = np.where(hits > 0, betaincinv(np.maximum(hits, 1), runs - hits + 1, error), 0.0)
    upper = np.where(misses < runs, betaincinv(misses + 1, np.maximum(runs - misses, 1), 1 - error), 1.0)
    return lower, upper
