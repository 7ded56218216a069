"""The gap rule of the exact case: the two best scores over all k-dimensional subspaces.

A subspace that the records do not span scores 0 and one that k independent records span scores at least 1, so the
two largest scores of the whole output space belong to spanned subspaces, or are 0. All spanned ones are listed
modulo a prime; a list entry holds at least the records of every subspace over the rationals behind it, which
bounds its score. Entries are then scored exactly, over the rationals, from the largest bound down until no bound
exceeds the second-best score. See ``docs/explanation/exact-case.md``.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from privspan.algorithms.exact_search import greedy_span, score_of
from privspan.exact_arithmetic import (
    IntegerRows,
    eliminate,
    exact_rank,
    hashed_rows,
    inverses_mod,
    members,
    random_prime,
    rational_form,
)
from privspan.randomness import BitSource
from privspan.relations import ExactForm
from privspan.selection import gap_margin

_BRUTE_FORCE_RECORDS = 12
_MAX_PRIMES = 40


class _UnluckyPrime(Exception):
    """A subspace modulo the prime hides many different ones; another prime is drawn."""


def gap_winner(rows: IntegerRows, k: int, bits: BitSource) -> tuple[ExactForm | None, int]:
    """The best subspace and the margin of its lead over the second best; exact for every draw of `bits`.

    The scores have sensitivity one, so the margin has too (``docs/explanation/exact-case.md``).
    """
    for _ in range(_MAX_PRIMES):
        try:
            return _Ranking(rows, k, bits).from_primes()
        except _UnluckyPrime:
            continue
    return _Ranking(rows, k, bits).from_every_choice()


@dataclass
class _Ranking:
    """Scores found so far; a subspace is recognised by the records inside it."""

    rows: IntegerRows
    k: int
    bits: BitSource
    scores: list[int] = field(default_factory=list)
    forms: list[ExactForm] = field(default_factory=list)
    inside: list[NDArray[np.bool_]] = field(default_factory=list)  # each (n,)

    def from_primes(self) -> tuple[ExactForm | None, int]:
        """Score the subspaces spanned modulo a random prime, from the largest bound down."""
        prime = random_prime(self.bits)
        hashed = hashed_rows(self.rows, self.k + 2, prime, self.bits)  # (n, k + 2)
        everyone = np.arange(len(self.rows))
        entries = sorted(_spanned(hashed, everyone, [], 0, self.k, prime), key=lambda entry: -entry[0])
        for count, spanning in entries:
            if count - (self.k - 1) <= self._second():
                break
            if not self._known(spanning):
                order = np.concatenate([spanning, np.setdiff1d(everyone, spanning)])
                self._score(spanning, greedy_span(hashed, order, self.k, prime)[1])
        return self._winner()

    def from_every_choice(self) -> tuple[ExactForm | None, int]:
        """Score every subspace over the rationals alone."""
        self._score_among(range(len(self.rows)))
        return self._winner()

    def _known(self, spanning: Sequence[int]) -> bool:
        """Whether a scored subspace holds these k independent records, and so is their span."""
        return any(mask[list(spanning)].all() for mask in self.inside)

    def _score(self, spanning: list[int], claimed: NDArray[np.intp]) -> None:
        """Score the span of the records; `claimed` share it modulo the prime."""
        form = rational_form(self.rows.integers(spanning), homogeneous=self.rows.homogeneous)
        if members(form, self.rows.integers(claimed)).all():
            self._add(form, claimed)
        elif len(claimed) <= _BRUTE_FORCE_RECORDS:
            self._score_among(claimed.tolist())
        else:
            raise _UnluckyPrime

    def _score_among(self, records: Sequence[int]) -> None:
        """Score the span of every k independent ones of the records."""
        everyone = np.arange(len(self.rows))
        for spanning in itertools.combinations(records, self.k):
            if not self._known(spanning) and exact_rank(self.rows.integers(spanning)) == self.k:
                form = rational_form(self.rows.integers(spanning), homogeneous=self.rows.homogeneous)
                self._add(form, everyone[members(form, self.rows.integers(everyone))])

    def _add(self, form: ExactForm, records: NDArray[np.intp]) -> None:
        mask = np.zeros(len(self.rows), dtype=np.bool_)
        mask[records] = True
        self.forms.append(form)
        self.inside.append(mask)
        self.scores.append(score_of(form, self.rows, records, self.bits))

    def _second(self) -> int:
        """Second-best score of the whole output space, as far as it is known."""
        spanned = 1 if self.inside and not self.inside[0].all() else 0  # a record outside spans another subspace
        return max([spanned, *sorted(self.scores)[:-1]])

    def _winner(self) -> tuple[ExactForm | None, int]:
        if not self.scores:
            return None, 0
        best = int(np.argmax(self.scores))
        return self.forms[best], gap_margin(self.scores[best], self._second())


def _spanned(
    points: NDArray[np.int64], ids: NDArray[np.intp], fixed: list[int], inside: int, k: int, prime: int
) -> Iterator[tuple[int, list[int]]]:
    """Every subspace that k records span modulo the prime, as (records inside, k spanning records).

    `points` (N, r) are the records after the last fixed one, in the quotient by the fixed ones; `inside` counts
    the earlier records of the quotient's zero. The entry that starts with the first independent records of a
    subspace counts all of its records; the other entries of the same subspace count fewer.
    """
    zero = ~points.any(axis=1)
    inside += int(zero.sum())
    points, ids = points[~zero], ids[~zero]
    if len(fixed) == k - 1:
        _, first, counts = np.unique(_directions(points, prime), axis=0, return_index=True, return_counts=True)
        for i, count in zip(first.tolist(), counts.tolist(), strict=True):
            yield inside + count, [*fixed, int(ids[i])]
        return
    for i in range(len(points)):
        quotient = eliminate(points[i + 1 :], points[i], prime)
        yield from _spanned(quotient, ids[i + 1 :], [*fixed, int(ids[i])], inside + 1, k, prime)


def _directions(points: NDArray[np.int64], prime: int) -> NDArray[np.int64]:
    """Nonzero points (N, r), each scaled so that its first nonzero coordinate is one."""
    leading = points[np.arange(len(points)), (points != 0).argmax(axis=1)]
    return points * inverses_mod(leading, prime)[:, None] % prime
