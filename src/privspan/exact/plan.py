"""Choices of the exact case, from public numbers alone: which method, how much work, how large a block."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass
from typing import Literal, get_args

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.exact.arithmetic import rank_loss_probability
from privspan.privacy.selection import ReleaseRule, release_probability

ExactMethod = Literal["auto", "gap-max", "votes"]
ExactRule = Literal["majority", "gap"]
METHODS: tuple[ExactMethod, ...] = get_args(ExactMethod)
DEFAULT_MAX_WORK = 10**8
"""Projected points of a search: time, at most about half a minute on one core."""

DEFAULT_MAX_BITS = 256

_POINTS_PER_BATCH = 2000  # time: what the innermost batch of the search costs beside its points
_POINTS_PER_TRY = 500  # time: one try costs about as much as looking at so many points


@dataclass(frozen=True)
class ExactTuning:
    """Of the plan of a search: chosen by hand, and no script has fitted it."""

    search: float = 1 / 1024  # of delta, for a search that misses: work grows with the logarithm of one over it
    comfortable: float = 0.999  # release probability that is wanted for clean data: one run in a thousand abstains


EXACT = ExactTuning()


@dataclass(frozen=True)
class ExactPlan:
    """What :func:`privspan.exact_subspace` will do; data-free."""

    method: Literal["gap-max", "votes"]
    rule: ExactRule  # how gap-max turns scores into a margin; block votes always use their lead
    work: int  # projected points that the search looks at, at most; 0 for votes
    block_size: int  # layout of the votes, as the next; 0 for gap-max
    blocks: int
    release_probability: float  # chance of an answer if all records lie in one such subspace, in general position

    @property
    def search_share(self) -> float:
        """Share of delta that pays for a search that may miss the winner."""
        return EXACT.search if (self.method, self.rule) == ("gap-max", "majority") else 0.0


def plan_exact(
    n: int,
    k: int,
    *,
    epsilon: float,
    delta: float,
    method: ExactMethod = "auto",
    rule: ExactRule = "majority",
    release: ReleaseRule = "optimal",
    max_work: int = DEFAULT_MAX_WORK,
    block_size: int | None = None,
) -> ExactPlan:
    """Plan an exact search among n records for a subspace of (internal) dimension k.

    ``"auto"`` takes gap-max, which needs the fewest records, whenever its work fits; otherwise votes.
    """
    work = gap_max_work(n, k, rule, delta)
    if method == "gap-max" and work > max_work:
        template = (
            "{max_work} must be at least {work:,} for method='gap-max', rule={rule!r} with n = {n:,} and "
            "dimension {k}; got {got:,}. Raise it, or use method='votes', which needs more records but little "
            "work."
        )
        raise ParameterError(template, work=work, rule=rule, n=n, k=k, got=max_work)
    if method == "gap-max" or (method == "auto" and block_size is None and work <= max_work):
        margin = max(0, n - (k - 1) - (n + 1) // 2) if rule == "majority" else (n - (k - 1)) // 2
        chance = float(release_probability(margin, epsilon, delta, release))
        return ExactPlan("gap-max", rule, work, 0, 0, chance)
    size = choose_block_size(n, k, epsilon, delta, release) if block_size is None else block_size
    checks.integer_at_least(k, block_size=size)
    blocks = n // size
    chance = float(release_probability(blocks // 2, epsilon, delta, release))
    return ExactPlan("votes", rule, 0, size, blocks, chance)


def gap_max_work(n: int, k: int, rule: ExactRule, delta: float) -> int:
    """Projected points that gap-max looks at, at most.

    The densest hyperplane takes n choose (k-1), in batches of which each costs as much as many points. The
    majority rule adds the tries that look for the winner, the gap rule lists every subspace instead.
    """
    hyperplanes = math.comb(n, k - 1) + _POINTS_PER_BATCH * math.comb(n, max(0, k - 3))
    if rule == "gap":
        return hyperplanes * n
    groups, tries = search_plan(k, delta * EXACT.search / 2, DEFAULT_MAX_BITS)
    return hyperplanes + groups * tries * (_POINTS_PER_TRY + n)


def search_plan(k: int, failure: float, max_bits: int) -> tuple[int, int]:
    """Number of independent primes, and of tries with each, that keep the chance of missing a winner small.

    A try follows a random order of the records and keeps each one outside the span so far. While the span is
    inside the winner, more than half of the records outside the span are in the winner, so the try succeeds with
    probability above 2**-k; a prime spoils it with probability at most `loss`. One prime group fails with
    probability at most ``(1 - 2**-k)**tries + loss``, and the groups are independent.
    """
    loss = float(rank_loss_probability(k, k + 1, max_bits))
    groups = 1
    while failure ** (1 / groups) < 4 * loss:
        groups += 1
    per_group = failure ** (1 / groups) - loss
    return groups, math.ceil(-math.log(per_group)) * 2**k  # (1 - 2**-k)**(2**k) < 1/e


def blocks_needed(epsilon: float, delta: float, release: ReleaseRule, limit: int) -> int:
    """Fewest unanimous blocks that are released almost surely, or `limit` if even those are not enough."""

    def chance(margin: int) -> float:
        return float(release_probability(margin, epsilon, delta, release))

    return min(limit, 2 * bisect.bisect_left(range(limit // 2 + 1), EXACT.comfortable, key=chance))


def choose_block_size(n: int, k: int, epsilon: float, delta: float, release: ReleaseRule = "optimal") -> int:
    """Block size that shares spare records evenly between larger blocks and more blocks.

    Larger blocks see rare directions; more blocks survive those that hold an outlier. With s times the records
    that unanimous blocks of k would need, both the block size and the number of blocks grow by the root of s.
    """
    spare = n / (max(1, blocks_needed(epsilon, delta, release, n // k)) * k)  # n may be below k
    return max(k, int(k * math.sqrt(max(1.0, spare))))
