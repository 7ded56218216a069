"""Exact audits of the discrete mechanisms, over every pair of neighbours of a small domain."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from privspan.audit.exact import Distribution, ExactAudit, tightest_delta
from privspan.exact.arithmetic import integer_rows
from privspan.exact.enumeration import gap_winner
from privspan.exact.search import majority_winner
from privspan.exact.votes import vote_winner
from privspan.privacy.randomness import open_streams
from privspan.privacy.selection import ReleaseRule, TruncatedLaplace, release_probability, vote_margin

_One = TypeVar("_One", bound=Hashable)  # one record

EPSILON, DELTA = 1.0, 0.05
"""What every mechanism here claims, and is called with."""

_LINES = ((1, 0), (0, 1), (1, 1), (0, 0))
_PLANES = ((1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 2, 0), (0, 0, 1))
_LAST_MARGIN = 16  # release is certain from a smaller one on


def _release_or_abstain(winner: object, margin: int, release: ReleaseRule = "optimal") -> Distribution:
    chance = release_probability(margin, EPSILON, DELTA, release)
    return {("released", winner): chance, "abstained": 1 - chance}


def _margins(release: ReleaseRule) -> ExactAudit[int]:
    """Consecutive margins up to certain release."""
    return tightest_delta(
        lambda margin: _release_or_abstain("winner", margin, release),
        range(_LAST_MARGIN + 1),
        lambda margin: [margin + 1] if margin < _LAST_MARGIN else [],
        EPSILON,
    )


def _laplace(sensitivity: int) -> ExactAudit[int]:
    """An integer plus truncated Laplace noise, shifted by up to the sensitivity."""
    noise = TruncatedLaplace(EPSILON, DELTA, sensitivity)
    law = {z: Fraction(noise.weights[abs(z)], noise.total) for z in range(-noise.bound, noise.bound + 1)}
    return tightest_delta(
        lambda shift: {z + shift: chance for z, chance in law.items()},
        range(sensitivity + 1),
        lambda shift: range(1, sensitivity + 1) if shift == 0 else [],
        EPSILON,
    )


def _sequences(
    domain: tuple[_One, ...], length: int, law: Callable[[tuple[_One, ...]], Distribution]
) -> ExactAudit[tuple[_One, ...]]:
    """All sequences; neighbours differ in one place."""

    def neighbours(sequence: tuple[_One, ...]) -> Iterator[tuple[_One, ...]]:
        for place, own in enumerate(sequence):
            for other in domain:
                if other != own:
                    yield (*sequence[:place], other, *sequence[place + 1 :])

    return tightest_delta(law, itertools.product(domain, repeat=length), neighbours, EPSILON)


def _multisets(
    domain: tuple[_One, ...], size: int, law: Callable[[tuple[_One, ...]], Distribution]
) -> ExactAudit[tuple[_One, ...]]:
    """All multisets, for mechanisms that do not look at the order of the records."""

    def neighbours(table: tuple[_One, ...]) -> Iterator[tuple[_One, ...]]:
        for leaving, joining in itertools.permutations(domain, 2):
            if leaving in table:
                rest = list(table)
                rest.remove(leaving)
                yield tuple(sorted((*rest, joining), key=domain.index))

    return tightest_delta(law, itertools.combinations_with_replacement(domain, size), neighbours, EPSILON)


def _majority(table: Sequence[tuple[int, ...]], k: int) -> Distribution:
    charged = open_streams(0).charged
    found = majority_winner(integer_rows(np.array(table)), k, failure=1e-9, max_bits=256, bits=charged)
    return _release_or_abstain(*found)


def _gap(table: Sequence[tuple[int, ...]], k: int) -> Distribution:
    return _release_or_abstain(*gap_winner(integer_rows(np.array(table)), k, open_streams(0).charged))


def _votes(table: Sequence[tuple[int, ...]]) -> Distribution:
    rows = integer_rows(np.array(table))
    return _release_or_abstain(*vote_winner(rows, 1, block_size=1, streams=open_streams(0)))


_ON_LINES, _IN_SPACE = "eight records on three lines", "seven records on five lines in space"

DOMAINS: Mapping[tuple[str, str], Callable[[], ExactAudit[Any]]] = {
    ("release_probability", "margins 0 to 16"): lambda: _margins("optimal"),
    ("release_probability (truncated Laplace)", "margins 0 to 16"): lambda: _margins("truncated-laplace"),
    ("TruncatedLaplace", "integers one apart"): lambda: _laplace(1),
    ("TruncatedLaplace", "integers up to three apart"): lambda: _laplace(3),
    ("stable_vote", "five ballots, three keys or none"): lambda: _sequences(
        ("a", "b", "c", None), 5, lambda ballots: _release_or_abstain(*vote_margin(ballots))
    ),
    ("exact_subspace (majority)", _ON_LINES): lambda: _multisets(_LINES, 8, lambda X: _majority(X, 1)),
    ("exact_subspace (majority)", _IN_SPACE): lambda: _multisets(_PLANES, 7, lambda X: _majority(X, 2)),
    ("exact_subspace (gap)", _ON_LINES): lambda: _multisets(_LINES, 8, lambda X: _gap(X, 1)),
    ("exact_subspace (gap)", _IN_SPACE): lambda: _multisets(_PLANES, 7, lambda X: _gap(X, 2)),
    ("exact_subspace (votes)", "six records on three lines"): lambda: _sequences(_LINES[:3], 6, _votes),
}
"""Every exact audit, by the mechanism and the domain that is enumerated, in words."""
