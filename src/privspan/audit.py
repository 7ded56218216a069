"""Checks of a privacy claim that anyone can run: exact for small discrete mechanisms, statistical for all others.

An exact audit takes the output distributions on two neighbouring inputs and returns the smallest delta for which
they satisfy the definition at a given epsilon. A sampled audit runs the mechanism on both inputs many times and
returns a lower bound on epsilon that holds with stated confidence: a claim below that bound is refuted. A sampled
audit can refute, never prove; the proofs are in the explanation pages of the documentation.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from fractions import Fraction

from scipy.special import betaincinv

from privspan import _checks
from privspan.selection import exp_bounds

__all__ = ["SampledAudit", "exact_delta", "sampled_audit"]

Distribution = Mapping[Hashable, Fraction]


def exact_delta(first: Distribution, second: Distribution, epsilon: float) -> Fraction:
    """Smallest delta for which two output distributions satisfy (epsilon, delta), both ways.

    Parameters
    ----------
    first, second : mapping of outcome to fractions.Fraction
        Exact output distributions on two neighbouring inputs.
    epsilon : float
        The claimed epsilon.

    Returns
    -------
    fractions.Fraction
        The larger of the two hockey-stick divergences, rounded up by less than 1e-60.
    """
    grow, _ = exp_bounds(Fraction(epsilon))
    outcomes = set(first) | set(second)
    return max(
        sum(
            (max(Fraction(0), p.get(o, Fraction(0)) - grow * q.get(o, Fraction(0))) for o in outcomes),
            Fraction(0),
        )
        for p, q in ((first, second), (second, first))
    )


@dataclass(frozen=True)
class SampledAudit:
    """What the runs of one audit showed.

    Attributes
    ----------
    epsilon_lower : float
        With the stated confidence the true epsilon, at the claimed delta, is at least this. Never negative.
    refuted : bool
        Whether the claimed epsilon lies below that bound.
    event : frozenset
        The set of outcomes that tells the two inputs apart best, chosen on the first half of the runs.
    runs : int
        Runs on each input.
    confidence : float
        Probability with which the bound holds.
    """

    epsilon_lower: float
    refuted: bool
    event: frozenset[Hashable]
    runs: int
    confidence: float


def sampled_audit(
    on_first: Callable[[], Hashable],
    on_second: Callable[[], Hashable],
    *,
    epsilon: float,
    delta: float,
    runs: int = 2000,
    confidence: float = 0.999,
) -> SampledAudit:
    """Lower bound on epsilon from runs of a mechanism on two neighbouring inputs.

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
    _checks.budget(epsilon, delta)
    _checks.integer_at_least(2, runs=runs)
    _checks.probability(confidence=confidence)
    half = runs // 2
    choose = [Counter(run() for _ in range(half)) for run in (on_first, on_second)]
    measure = [Counter(run() for _ in range(runs - half)) for run in (on_first, on_second)]
    best, best_event = 0.0, frozenset[Hashable]()
    for chosen, measured in ((choose, measure), (choose[::-1], measure[::-1])):
        event = _best_event(*chosen, delta=delta, runs=half)
        counts = [sum(sample[outcome] for outcome in event) for sample in measured]
        # Two directions and two one-sided limits share what may go wrong.
        bound = _epsilon_bound(*counts, runs=runs - half, delta=delta, error=(1 - confidence) / 4)
        if bound > best:
            best, best_event = bound, event
    return SampledAudit(best, best > epsilon, best_event, runs, confidence)


def _best_event(
    likely: Counter[Hashable], rare: Counter[Hashable], *, delta: float, runs: int
) -> frozenset[Hashable]:
    """Outcomes in falling order of likelihood ratio, cut where the estimated bound is largest."""
    order = sorted(likely, key=lambda outcome: (rare[outcome] + 1) / likely[outcome])
    best, best_length, counts = -1.0, 0, [0, 0]
    for length, outcome in enumerate(order, start=1):
        counts = [counts[0] + likely[outcome], counts[1] + rare[outcome]]
        bound = _epsilon_bound(*counts, runs=runs, delta=delta, error=0.05)
        if bound > best:
            best, best_length = bound, length
    return frozenset(order[:best_length])


def _epsilon_bound(likely: int, rare: int, *, runs: int, delta: float, error: float) -> float:
    """Log of (lower limit of the likely count - delta) over the upper limit of the rare one (Clopper-Pearson)."""
    lower = float(betaincinv(likely, runs - likely + 1, error)) if likely else 0.0
    upper = float(betaincinv(rare + 1, runs - rare, 1 - error)) if rare < runs else 1.0
    return max(0.0, math.log((lower - delta) / upper)) if lower > delta else 0.0
