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

from privspan.exact.arithmetic import (
    ExactSpan,
    IntegerRows,
    Primes,
    UnluckyPrime,
    eliminate,
    exact_rank,
    hashed_rows,
    inverses_mod,
    leading_independent,
    random_prime,
    rational_form,
    with_lucky_prime,
)
from privspan.exact.search import greedy_span, score_of
from privspan.privacy.randomness import BitSource
from privspan.privacy.selection import gap_margin
from privspan.subspace.relations import ExactForm

_BRUTE_FORCE_RECORDS = 12  # exact: so few that the prime puts together wrongly are told apart over the rationals


def gap_winner(
    rows: IntegerRows, k: int, bits: BitSource, primes: Primes = random_prime
) -> tuple[ExactForm | None, int]:
    """The best subspace and the margin of its lead over the second best; exact for every draw of `bits`.

    The scores have sensitivity one, so the margin has too (``docs/explanation/exact-case.md``).
    """
    return with_lucky_prime(
        lambda: _Ranking(rows, k, bits).from_primes(primes), lambda: _Ranking(rows, k, bits).from_every_choice()
    )


@dataclass
class _Ranking:
    """Scores found so far; a subspace is recognised by the records inside it."""

    rows: IntegerRows
    k: int
    bits: BitSource
    scores: list[int] = field(default_factory=list)
    forms: list[ExactForm] = field(default_factory=list)
    inside: list[NDArray[np.bool_]] = field(default_factory=list)  # each (n,)

    def from_primes(self, primes: Primes) -> tuple[ExactForm | None, int]:
        """Score the subspaces spanned modulo a random prime, from the largest bound down."""
        prime = primes(self.bits)
        hashed = hashed_rows(self.rows, self.k + 2, prime, self.bits)  # (n, k + 2)
        everyone = np.arange(len(self.rows))
        independent = leading_independent(hashed, prime, self.k)
        if len(independent) < self.k:
            if self._span_everything(independent):
                return None, 0
            raise UnluckyPrime
        for bound, spanning in sorted(self._spanned(hashed, everyone, [], [], prime), key=lambda entry: -entry[0]):
            if bound <= self._second():
                break
            order = np.concatenate([spanning, np.setdiff1d(everyone, spanning)])
            claimed = greedy_span(hashed, order, self.k, prime)[1]
            if not self._known(claimed):
                self._score(spanning, claimed)
        return self._winner()

    def from_every_choice(self) -> tuple[ExactForm | None, int]:
        """Score every subspace over the rationals alone."""
        self._score_among(range(len(self.rows)))
        return self._winner()

    def _spanned(
        self, points: NDArray[np.int64], ids: NDArray[np.intp], fixed: list[int], inside: list[int], prime: int
    ) -> Iterator[tuple[int, list[int]]]:
        """Subspaces that k records span modulo the prime, as (bound on the score, k spanning records).

        `points` (N, r) are the records after the last fixed one, in the quotient by the fixed ones; `inside` are
        the earlier records in the span of the fixed ones. The entry that starts with the first independent records
        of a subspace sees all of its records, so its bound holds; later entries of the same subspace see fewer.
        Bounds below 2 are left out: a score of 1 never leads by two.
        """
        zero = ~points.any(axis=1)
        inside = inside + ids[zero].tolist()
        points, ids = points[~zero], ids[~zero]
        if len(fixed) < self.k - 1:
            for i in range(len(points)):
                quotient = eliminate(points[i + 1 :], points[i], prime)
                here = int(ids[i])
                yield from self._spanned(quotient, ids[i + 1 :], [*fixed, here], [*inside, here], prime)
            return
        _, first, counts = np.unique(_directions(points, prime), axis=0, return_index=True, return_counts=True)
        if not counts.size or len(inside) + counts.max() <= self.k:
            return
        # A proper subspace verified to hold all of `inside` takes that many records off the score.
        shared = len(inside) < self.k or exact_rank(self.rows.integers(inside)) < self.k
        taken = len(inside) if shared else self.k - 1
        for i, bound in zip(first.tolist(), (len(inside) - taken + counts).tolist(), strict=True):
            if bound >= 2:
                yield bound, [*fixed, int(ids[i])]

    def _span_everything(self, records: list[int]) -> bool:
        """Whether all rows lie in the span of the named ones, over the rationals."""
        if not records:
            return not self.rows.magnitude.any()
        return bool(ExactSpan(rational_form(self.rows.integers(records))).contains(self.rows).all())

    def _known(self, records: Sequence[int] | NDArray[np.intp]) -> bool:
        """Whether a scored subspace holds all of these records, of which k are independent."""
        return any(mask[list(records)].all() for mask in self.inside)

    def _score(self, spanning: list[int], claimed: NDArray[np.intp]) -> None:
        """Score the span of the records; `claimed` share it modulo the prime."""
        form = self.rows.form(spanning)
        if ExactSpan(form).contains(self.rows.take(claimed)).all():
            self._add(form, claimed)
        elif len(claimed) <= _BRUTE_FORCE_RECORDS:
            self._score_among(claimed.tolist())
        else:  # a subspace modulo the prime hides many different ones
            raise UnluckyPrime

    def _score_among(self, records: Sequence[int]) -> None:
        """Score the span of every k independent ones of the records."""
        for spanning in itertools.combinations(records, self.k):
            if not self._known(spanning) and exact_rank(self.rows.integers(spanning)) == self.k:
                form = self.rows.form(spanning)
                self._add(form, np.flatnonzero(ExactSpan(form).contains(self.rows)))

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


def _directions(points: NDArray[np.int64], prime: int) -> NDArray[np.int64]:
    """Nonzero points (N, r), each scaled so that its first nonzero coordinate is one."""
    leading = points[np.arange(len(points)), (points != 0).argmax(axis=1)]
    return points * inverses_mod(leading, prime)[:, None] % prime
