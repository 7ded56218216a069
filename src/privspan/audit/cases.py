"""The registry of end-to-end audits: every public algorithm and baseline, each on several pairs of neighbours.

A `Case` runs an algorithm as a user would, at an epsilon and delta large enough that a few thousand runs can see what
it spends, on tables small enough that they are quick. Its pairs are the worst ones known: a tie, the threshold of an
abstention, an outlier that becomes an inlier, weights on the slope, a zero row against a huge one, a NaN row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from numpy.typing import NDArray

from privspan.privacy import Release
from privspan.privacy.randomness import RandomLike
from privspan.sums.mean import PrivateMean
from privspan.sums.regression import PrivateRegression

Pair: TypeAlias = tuple[NDArray[Any], NDArray[Any]]
Outcome: TypeAlias = Release | PrivateMean | PrivateRegression | int


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
        Neighbouring tables by what is special about them.
    run : callable
        From a table and a source of randomness to what is released.
    share : float
        Share of the asked number of runs; below 1 for slow algorithms.
    """

    name: str
    epsilon: float
    delta: float
    pairs: Mapping[str, Pair]
    run: Callable[[NDArray[Any], RandomLike], Outcome]
    share: float = 1.0


_CASES: dict[str, Case] = {}


def register(case: Case) -> None:
    """Add a case under its name, which must be new."""
    if case.name in _CASES:
        raise ValueError(f"`name` must be new; got {case.name!r}.")
    _CASES[case.name] = case


def registered() -> Mapping[str, Case]:
    """Return every case by name, in the order of registration."""
    # Imported here: these modules register their cases when they are loaded.
    from privspan.audit import baseline_cases, own_cases  # noqa: F401

    return dict(_CASES)
