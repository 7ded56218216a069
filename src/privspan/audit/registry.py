"""What an audit of a whole algorithm is, and the list of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from privspan._lib.arrays import Reals
from privspan._lib.errors import ParameterError
from privspan.audit.releases import Released
from privspan.audit.tables import Pair
from privspan.privacy.randomness import RandomLike

CaseKind: TypeAlias = Literal["sampled", "replayed"]

EPSILON, DELTA = 2.0, 0.1
"""The claim of most cases: large enough that a few thousand runs see what is spent, small enough to be refuted."""


@dataclass(frozen=True)
class Case:
    """One algorithm under audit.

    Attributes
    ----------
    name : str
        Of the algorithm, with its variant if it has one.
    epsilon, delta : float
        The claim, and what the algorithm is called with.
    pairs : mapping of str to pair of tables
        Neighbouring tables by what is special about them. The first is the one on which most can be seen; a sampled
        audit runs at most half as often on the others, which are there to find leaks.
    run : callable
        From a table and a source of randomness to what is released.
    share : float
        Share of the asked number of runs; below 1 for slow algorithms.
    kind : {"sampled", "replayed"}
        Whether it is run many times on either table, or its transcript is replayed.
    reason : str
        Why no pair that is known uses the whole claim up, where that is so.
    """

    name: str
    epsilon: float
    delta: float
    pairs: Mapping[str, Pair]
    run: Callable[[Reals, RandomLike], Released]
    share: float = 1.0
    kind: CaseKind = "sampled"
    reason: str = ""


_CASES: dict[tuple[CaseKind, str], Case] = {}


def register(case: Case) -> None:
    """Add a case under its kind and name, which must be new."""
    if (case.kind, case.name) in _CASES:
        raise ParameterError("{name} must be new; got {got!r}.", got=case.name)
    _CASES[case.kind, case.name] = case


def registered(kind: CaseKind = "sampled") -> Mapping[str, Case]:
    """Return every case of a kind by name, in the order of registration."""
    return {case.name: case for case in _CASES.values() if case.kind == kind}


def add(
    name: str,
    algorithm: Callable[..., Released],
    pairs: Mapping[str, Pair],
    *arguments: object,
    epsilon: float = EPSILON,
    delta: float = DELTA,
    share: float = 1.0,
    kind: CaseKind = "sampled",
    reason: str = "",
    **options: object,
) -> None:
    """Register ``algorithm(table, *arguments, epsilon=…, delta=…, rng=…, **options)`` as a case."""

    def run(table: Reals, rng: RandomLike) -> Released:
        return algorithm(table, *arguments, epsilon=epsilon, delta=delta, rng=rng, **options)

    register(Case(name, epsilon, delta, pairs, run, share, kind, reason))
