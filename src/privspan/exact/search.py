"""The majority rule of the exact case: the one subspace that could win, and its margin.

The score of a k-dimensional subspace s is ``u(s) = |X in s| - max |X in t|`` over the proper subspaces t of s. If
``u(s) > n/2`` then every other k-dimensional subspace holds fewer than n/2 records, so **any** subspace that holds
at least n/2 + 1 of them is either the winner or proof that there is none. It is enough to find one such *heavy*
subspace and to compute its score exactly; see ``docs/explanation/exact-case.md``.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from privspan.exact.arithmetic import ExactSpan, IntegerRows, hashed_rows, random_prime, reduced
from privspan.exact.hyperplane import densest_hyperplane
from privspan.exact.plan import search_plan
from privspan.privacy.randomness import BitSource, secret_order
from privspan.privacy.selection import majority_margin
from privspan.subspace.relations import ExactForm


def majority_winner(
    rows: IntegerRows, k: int, *, failure: float, max_bits: int, bits: BitSource
) -> tuple[ExactForm | None, int]:
    """The heavy subspace and its margin; ``(None, 0)`` when there is none.

    With probability at least ``1 - failure`` over `bits` alone the pair equals the ideal one, whose margin has
    sensitivity one and whose winner agrees between neighbours with positive margins. The caller charges twice
    `failure` to delta. ``docs/explanation/exact-case.md`` has the proof.
    """
    heavy = len(rows) // 2 + len(rows) % 2 + 1  # the least count, and score, with a positive margin
    for prime, hashed, tries in _hash_groups(rows, k, failure, max_bits, bits):
        for _ in range(tries):
            tuple_ids, claimed = greedy_span(hashed, secret_order(len(rows), bits), k, prime)
            if len(claimed) < heavy:
                continue
            form = rows.form(tuple_ids)
            inside = claimed[ExactSpan(form).contains(rows.take(claimed))]
            if len(inside) >= heavy:
                return form, majority_margin(score_of(form, rows, inside, bits), len(rows))
    return None, 0


def score_of(form: ExactForm, rows: IntegerRows, inside: NDArray[np.intp], bits: BitSource) -> int:
    """Score u of a span, given the indices of all records inside it; exact."""
    # In reduced echelon form the coordinates of a member are its own entries in the pivot columns.
    coordinates = rows.integers(inside, columns=form.pivots)
    return len(inside) - densest_hyperplane(coordinates, bits)


def _hash_groups(
    rows: IntegerRows, k: int, failure: float, max_bits: int, bits: BitSource
) -> Iterator[tuple[int, NDArray[np.int64], int]]:
    """Prime, hashed rows (n, k + 1) and number of tries of each group, drawn when they are needed."""
    groups, tries = search_plan(k, failure, max_bits)
    for _ in range(groups):
        prime = random_prime(bits)
        yield prime, hashed_rows(rows, k + 1, prime, bits), tries


def greedy_span(
    hashed: NDArray[np.int64], order: NDArray[np.intp], k: int, prime: int
) -> tuple[list[int], NDArray[np.intp]]:
    """First k independent records along the order, and every record in their span modulo the prime."""
    chosen, rest = reduced(hashed[order], prime, k)
    inside = order[~rest.any(axis=1)] if len(chosen) == k else order[:0]
    return order[chosen].tolist(), np.sort(inside)
