"""Block votes of the exact case: polynomial in everything, at the price of a few more records.

The records are dealt into blocks that depend on row numbers and public randomness only. A block votes for its
span when that has dimension exactly k, and otherwise casts no vote. One record touches one block, so the lead of
the most common span changes by at most two and half of it by at most one. Spans are compared in exact canonical
form. See ``docs/explanation/exact-case.md``.
"""

from __future__ import annotations

import numpy as np

from privspan.exact.arithmetic import ExactSpan, IntegerRows, hashed_rows, random_prime, span_of_rank
from privspan.privacy.randomness import Streams
from privspan.privacy.selection import vote_margin
from privspan.subspace.relations import ExactForm


def vote_winner(rows: IntegerRows, k: int, *, block_size: int, streams: Streams) -> tuple[ExactForm | None, int]:
    """The span that most blocks agree on, and the margin of its lead.

    The margin has sensitivity one and its winner agrees between neighbours with positive margins, for every value
    of the randomness; ``docs/explanation/exact-case.md`` has the proof.
    """
    blocks = len(rows) // block_size  # the last few records are dropped
    order = streams.public.permutation(len(rows))[: blocks * block_size].reshape(blocks, block_size)
    prime = random_prime(streams.charged)
    hashed = hashed_rows(rows, k + 1, prime, streams.charged)  # (n, k + 1); only the running time depends on it
    ballots: list[ExactForm | None] = []
    latest: ExactSpan | None = None
    for block in order:
        span = span_of_rank(rows, np.sort(block), k, hashed, prime, guess=latest)
        latest = span or latest
        ballots.append(span.form if span else None)
    return vote_margin(ballots)
