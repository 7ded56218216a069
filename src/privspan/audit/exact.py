"""Exact audits: the smallest delta of a discrete mechanism, over every pair of neighbours of a small domain.

No sampling and no rounding that matters: laws are fractions, and e^epsilon enters as a rational number from below, so
that what comes out is never smaller than the truth.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Generic, TypeVar

from privspan.privacy.selection import exp_bounds

Distribution = Mapping[Hashable, Fraction]
Table = TypeVar("Table", bound=Hashable)


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
    grow, zero = _growth(epsilon), Fraction(0)
    return max(
        sum((max(zero, chance - grow * q.get(outcome, zero)) for outcome, chance in p.items()), zero)
        for p, q in ((first, second), (second, first))
    )


@lru_cache(maxsize=32)
def _growth(epsilon: float) -> Fraction:
    """Return e^epsilon from below; an enumeration asks for the same one thousands of times."""
    return exp_bounds(Fraction(epsilon))[0]


@dataclass(frozen=True)
class ExactAudit(Generic[Table]):
    """What enumerating all neighbours showed.

    Attributes
    ----------
    delta : fractions.Fraction
        The tightest delta at the given epsilon: attained by `worst`, exceeded by no other pair.
    worst : tuple of two inputs, or None
        A pair of neighbours that attains it; None if every pair has the same law.
    pairs : int
        Pairs of neighbours looked at.
    """

    delta: Fraction
    worst: tuple[Table, Table] | None
    pairs: int


def tightest_delta(
    law: Callable[[Table], Distribution],
    tables: Iterable[Table],
    neighbours: Callable[[Table], Iterable[Table]],
    epsilon: float,
) -> ExactAudit[Table]:
    """Enumerate a discrete mechanism and return its tightest delta at epsilon.

    Parameters
    ----------
    law : callable
        From an input to its exact output distribution; called once for each input.
    tables : iterable
        Every input of the domain, hashable.
    neighbours : callable
        From an input to its neighbours in the domain.
    epsilon : float
        At which delta is wanted.

    Returns
    -------
    ExactAudit

    Examples
    --------
    >>> from privspan.privacy.selection import release_probability
    >>> def law(margin):
    ...     chance = release_probability(margin, 1.0, 0.01)
    ...     return {"released": chance, "abstained": 1 - chance}
    >>> audit = tightest_delta(law, range(9), lambda margin: [margin + 1] if margin < 8 else [], 1.0)
    >>> round(float(audit.delta), 12), audit.pairs
    (0.01, 8)
    """
    laws = {table: law(table) for table in tables}
    worst, worst_pair, pairs = Fraction(0), None, 0
    for table, own in laws.items():
        for other in neighbours(table):
            pairs += 1
            delta = exact_delta(own, laws[other], epsilon)
            if delta > worst:
                worst, worst_pair = delta, (table, other)
    return ExactAudit(worst, worst_pair, pairs)
