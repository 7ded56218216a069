"""Releasing one discrete thing privately, or abstaining.

Everything here rests on one lemma. Let a *margin* be an integer ``g >= 0`` that moves by at most one between
neighbouring data sets, such that a positive margin on both sides means the same candidate on both sides.
Releasing the candidate with probability ``pi(g)``, and abstaining otherwise, is (epsilon, delta)-differentially
private when ``pi(0) = 0`` and every step from ``g - 1`` to ``g`` satisfies the four inequalities of the
definition; :func:`release_probability` is the largest such ``pi`` (Desfontaines, Voss, Gipson and Mandayam,
"Differentially private partition selection", PoPETs 2022). No noise is drawn: one exact Bernoulli trial decides.

When an answer is wanted in any case, :func:`permute_and_flip` draws a nearly best candidate instead.

The proofs are in ``docs/explanation/release-probability.md`` and ``docs/explanation/choosing-k.md``.
"""

from __future__ import annotations

import decimal
import math
from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Literal, TypeVar

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.privacy.randomness import BitSource

GRID_BITS = 128
"""Release probabilities are whole multiples of ``2 ** -GRID_BITS``."""

_ONE = 1 << GRID_BITS
_LARGEST_SUPPORT = 1_000_000  # memory
_MOST_FACTORS = 10_000  # series terms of one exponential coin; reached with chance below 1/10000!
_LAPLACE_UNIT = 1 << 64  # the smallest weight of the truncated Laplace table; larger ones lose less to rounding

ReleaseRule = Literal["optimal", "truncated-laplace"]
Key = TypeVar("Key", bound=Hashable)
RELEASE_RULES: tuple[ReleaseRule, ...] = ("optimal", "truncated-laplace")


def exp_bounds(exponent: Fraction) -> tuple[Fraction, Fraction]:
    """Rational numbers on either side of ``exp(exponent)``, relatively within 1e-70 of it.

    ``Decimal.exp`` is correctly rounded, so its two neighbours enclose the exponential of its argument; the
    argument itself is first rounded down for the lower bound and up for the upper one.
    """
    ours = decimal.Context(prec=80, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)  # whatever the caller has set
    with decimal.localcontext(ours) as context:
        numerator, denominator = decimal.Decimal(exponent.numerator), decimal.Decimal(exponent.denominator)
        context.rounding = decimal.ROUND_FLOOR
        lower = (numerator / denominator).exp().next_minus()
        context.rounding = decimal.ROUND_CEILING
        upper = (numerator / denominator).exp().next_plus()
    return Fraction(lower), Fraction(upper)


class _OptimalTable:
    """The release probabilities of one (epsilon, delta), as integers on the grid, grown on demand.

    Threads share it.  The entries never change once they are seen: a longer tuple is built aside and takes the place
    of the shorter one in a single assignment, and whoever comes second with another puts equal numbers there.
    """

    def __init__(self, epsilon: float, delta: float) -> None:
        grow_lower, _ = exp_bounds(Fraction(epsilon))
        _, shrink_upper = exp_bounds(-Fraction(epsilon))
        # Floors and ceilings on the grid keep the recursion in integers; both err towards abstaining.
        self._grow = math.floor(grow_lower * _ONE)
        self._shrink = math.ceil(shrink_upper * _ONE)
        self._delta_floor = math.floor(Fraction(delta) * _ONE)
        self._entries: tuple[int, ...] = (0,)

    def __call__(self, margin: int) -> int:
        entries = self._entries
        if len(entries) <= margin and entries[-1] < _ONE:
            entries = self._entries = self._grown(entries, margin)
        return entries[min(margin, len(entries) - 1)]

    def _grown(self, entries: tuple[int, ...], margin: int) -> tuple[int, ...]:
        """Return the entries up to this margin and half as far again, or up to the first one that is certain."""
        longer = list(entries)
        while len(longer) <= margin + margin // 2 and longer[-1] < _ONE:
            longer.append(self._next(longer[-1]))
        return tuple(longer)

    def _next(self, last: int) -> int:
        """The largest grid point that both inequalities allow after ``last``."""
        by_release = (self._grow * last >> GRID_BITS) + self._delta_floor
        unreleased = max(0, _ONE - last - self._delta_floor)
        by_abstention = _ONE + (-self._shrink * unreleased >> GRID_BITS)  # -(x) >> bits is a ceiling of x
        return max(last, min(by_release, by_abstention, _ONE))


class TruncatedLaplace:
    """Discrete Laplace noise cut off at ``[-bound, bound]``, as an exact table of integer weights.

    The weight of ``z`` falls by at most ``exp(epsilon / sensitivity)`` from one integer to the next away from
    zero, and ``bound`` is the smallest one for which the mass that a shift by ``sensitivity`` pushes out of the
    support is at most ``delta``. Both hold for the integers of the table, not only for what they approximate.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee of adding this noise to an integer.
    sensitivity : int, default=1
        By how much that integer may differ between neighbours.

    Guarantee
    ---------
    Integer + noise is (epsilon, delta)-differentially private for every relation under which the integer moves by
    at most ``sensitivity``. Proof: ``docs/explanation/release-probability.md``.
    """

    def __init__(self, epsilon: float, delta: float, sensitivity: int = 1) -> None:
        checks.positive(epsilon=epsilon)
        checks.probability(delta=delta)
        checks.integer_at_least(1, sensitivity=sensitivity)
        if sensitivity / epsilon * -math.log(delta) > _LARGEST_SUPPORT:
            what = f"large enough for a support below {_LARGEST_SUPPORT:,} integers"
            raise ParameterError("{epsilon} must be {what}; got {got!r}.", what=what, got=epsilon)
        step, _ = exp_bounds(Fraction(epsilon) / sensitivity)
        step_floor = math.floor(step * _ONE)
        # Built from the edge of the support inwards: weights[j] belongs to |z| = bound - j.
        weights = [_LAPLACE_UNIT]
        outside, total = 0, _LAPLACE_UNIT
        while len(weights) <= sensitivity or outside > Fraction(delta) * total:
            if len(weights) <= sensitivity:
                outside += weights[-1]
            weights.append(step_floor * weights[-1] >> GRID_BITS)
            total += weights[-2] + weights[-1]  # the old centre now stands on both sides of the new one
        self.bound = len(weights) - 1
        self.weights = tuple(reversed(weights))  # weights[|z|]
        self.total = total

    def probability_at_least(self, threshold: int) -> Fraction:
        """Pr[noise >= threshold]."""
        values = range(max(threshold, -self.bound), self.bound + 1)
        return Fraction(sum(self.weights[abs(z)] for z in values), self.total)

    def sample(self, bits: BitSource) -> int:
        """One draw, exact."""
        rest = bits.below(self.total)
        for z in range(-self.bound, self.bound + 1):
            rest -= self.weights[abs(z)]
            if rest < 0:
                return z
        raise AssertionError("the weights sum to the total")


_optimal_table = lru_cache(maxsize=32)(_OptimalTable)
_laplace_table = lru_cache(maxsize=32)(TruncatedLaplace)


def release_probability(margin: int, epsilon: float, delta: float, release: ReleaseRule = "optimal") -> Fraction:
    """Probability with which a candidate of that margin is released.

    Parameters
    ----------
    margin : int
        How many records would have to change before another candidate could win; 0 means never release.
    epsilon, delta : float
        The guarantee.
    release : {"optimal", "truncated-laplace"}, default="optimal"
        ``"optimal"`` is pointwise the largest probability that the guarantee allows. ``"truncated-laplace"`` is
        the paper's: release when margin + truncated Laplace noise exceeds the bound of the noise.

    Returns
    -------
    fractions.Fraction
        The exact probability.

    Guarantee
    ---------
    For a margin that moves by at most one between neighbours and is positive on both sides only when the
    candidates agree, releasing the candidate with this probability and abstaining otherwise is
    (epsilon, delta)-differentially private. Proof: ``docs/explanation/release-probability.md``.

    Examples
    --------
    >>> [round(float(release_probability(g, 1.0, 1e-6)), 4) for g in (0, 14, 16, 20)]
    [0.0, 0.6999, 0.9594, 0.9993]
    """
    checks.not_too_large(epsilon)
    checks.budget(epsilon, delta)
    checks.integer_at_least(0, margin=margin)
    checks.one_of(RELEASE_RULES, release=release)
    if release == "optimal":
        return Fraction(_optimal_table(float(epsilon), float(delta))(margin), _ONE)
    laplace = _laplace_table(float(epsilon), float(delta))
    return laplace.probability_at_least(laplace.bound + 1 - margin)


def releases(margin: int, epsilon: float, delta: float, bits: BitSource, release: ReleaseRule = "optimal") -> bool:
    """Decide by one exact draw whether a candidate of that margin is released.

    Guarantee
    ---------
    That of :func:`release_probability`; see ``docs/explanation/release-probability.md``.
    """
    checks.not_too_large(epsilon)
    checks.budget(epsilon, delta)
    checks.one_of(RELEASE_RULES, release=release)
    if release == "optimal":
        return bits.bernoulli(_optimal_table(float(epsilon), float(delta))(margin), GRID_BITS)
    laplace = _laplace_table(float(epsilon), float(delta))
    return margin + laplace.sample(bits) > laplace.bound


def gap_margin(top: int, second: int) -> int:
    """Margin of the best candidate from the two largest scores of the **whole** output space.

    The scores are integers that move by at most one between neighbours, so ``G = max(0, top - second - 1)`` moves
    by at most two and ``ceil(G / 2)`` by at most one. Candidates that the data did not suggest count: pass the
    score that they have (usually 0) as ``second`` when nothing else is larger.
    """
    return max(0, top - second) // 2  # = ceil(max(0, top - second - 1) / 2)


def majority_margin(score: int, voters: int) -> int:
    """Margin of a candidate whose score counts its supporters, when supporters of two candidates are disjoint.

    Positive only when ``score > voters / 2`` holds on this data set and on every neighbour.
    """
    return max(0, score - (voters + 1) // 2)


def vote_margin(keys: Sequence[Key | None]) -> tuple[Key | None, int]:
    """Winner and margin of a vote in which one record changes at most one ballot.

    ``None`` is "no vote": it is never the winner and its ballots are not a runner-up.
    """
    counts = Counter(key for key in keys if key is not None)
    if not counts:
        return None, 0
    (winner, top), (_, second) = [*counts.most_common(2), (None, 0)][:2]
    return winner, gap_margin(top, second)


def stable_vote(
    keys: Sequence[Key | None], epsilon: float, delta: float, bits: BitSource, release: ReleaseRule = "optimal"
) -> Key | None:
    """Release the key that most ballots name, if its lead is large enough; otherwise ``None``.

    Parameters
    ----------
    keys : sequence of hashable or None
        One ballot per block; ``None`` is "no vote".
    epsilon, delta : float
        The guarantee.
    bits : BitSource
        Private noise.
    release : {"optimal", "truncated-laplace"}, default="optimal"
        See :func:`release_probability`.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours whenever one record influences at most one
    ballot and the number of ballots is public. Proof: ``docs/explanation/release-probability.md``.
    """
    winner, margin = vote_margin(keys)
    return winner if releases(margin, epsilon, delta, bits, release) else None


def permute_and_flip(scores: Sequence[int], epsilon: float, bits: BitSource) -> int:
    """Draw the index of a nearly largest score.

    The candidates are visited in random order; one whose score is x below the best is taken with probability
    exp(-epsilon x / 2). The best one is always taken, so one round is enough.

    Guarantee
    ---------
    (epsilon, 0)-differentially private whenever every score moves by at most one between neighbours.
    Proof: docs/explanation/choosing-k.md.

    Examples
    --------
    >>> from privspan.privacy.randomness import open_streams
    >>> permute_and_flip([3, 200, 5], 1.0, open_streams(0).noise)
    1
    """
    checks.not_too_large(epsilon)
    best = max(scores)
    half = Fraction(epsilon) / 2
    waiting = list(range(len(scores)))
    while len(waiting) > 1:
        candidate = waiting.pop(bits.below(len(waiting)))
        if _coin_exp(half * (best - scores[candidate]), bits):
            return candidate
    return waiting[0]


def _coin_exp(x: Fraction, bits: BitSource) -> bool:
    """Return True with probability exactly exp(-x), x >= 0."""
    whole, rest = divmod(x, 1)
    # exp(-whole) is `whole` heads of exp(-1) in a row; the first tail ends it, so the loop is short.
    return all(_coin_exp_small(Fraction(1), bits) for _ in range(whole)) and _coin_exp_small(rest, bits)


def _coin_exp_small(x: Fraction, bits: BitSource) -> bool:
    """Return True with probability exactly exp(-x), 0 <= x <= 1: the parity of a run of coins x/1, x/2, x/3, ..."""
    for factor in range(1, _MOST_FACTORS):
        if bits.below(x.denominator * factor) >= x.numerator:
            return factor % 2 == 1
    raise RuntimeError("The random source is broken: a run of probability 1/10000! occurred.")
