"""Numbers of the block methods, chosen from public parameters only: how many blocks, how long, how fine a grid.

Every function here is data-free, so its result may be published and the calculator and the algorithms share one
formula. The constants are derived in docs/explanation/approximate-case.md (histogram), docs/explanation/boosted.md
and docs/explanation/choosing-k.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from itertools import count

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.privacy.mu_ledger import left_of
from privspan.privacy.selection import release_probability

MOST_GROUP_COLUMNS = 3000
"""Columns of all block bases together that the stable aggregate takes on by default: memory, 72 MB of Gram matrix."""

MOST_CELLS = 2**40
"""No coordinate of a reference point is cut into more cells: docs/explanation/approximate-case.md, sums of a hash."""

_LONGEST_HISTOGRAM_BLOCK = 4096  # bounds the memory of one block
_INNER_MAJORITY = Fraction(6, 10)  # of parts: docs/explanation/boosted.md, "parts"
_MOST_PARTS = 1000  # time: of a search by public numbers


@dataclass(frozen=True)
class BlockTuning:
    """Of votes and cells: simulated, where a line does not say otherwise, for docs/explanation/approximate-case.md.

    benchmarks/scripts/block_speed.py runs them.  What is by hand is a share that the answer hardly depends on.
    """

    success: float = 0.95  # probability with which a vote of that many blocks is released, by hand
    largest_error: float = 0.5  # coarser cells are not used: the method refuses or abstains, by hand
    cell_offset: float = 0.7  # of `cell_constant`, a line
    cell_slope: float = 14.0  # of that line
    contested: Fraction = Fraction(1, 2)  # share of blocks up to which the line holds
    singular_value: float = 1.2  # a (k, 4k) normal matrix has s_k ≥ (√q − √k)/1.2 with probability 0.95
    scale: float = 0.25  # of epsilon, for the private choice of the cell side, by hand
    median: float = 1.3  # × the side: the private median of distances is noisy
    scales_per_doubling: int = 2  # candidates for that median
    scale_doublings: int = 88  # down to the finest side of 2⁴⁰ cells and beyond
    least_rank: float = 0.05  # of epsilon, for choosing the dimension, by hand
    most_rank: float = 0.5  # the same at most


BLOCKS = BlockTuning()


def stable_block_size(n: int, k: int) -> int:
    """Records per block for the stable aggregate.

    Short blocks give many voters, long ones straight voters. The aggregate's error falls faster than one over the
    number of blocks, so blocks should be short; but the tilt of a block grows with 1/s_k of its m × k signal, whose
    law near zero is s^(m − k), and too many crooked blocks make the certificate fail. The rule m = 2k + 5 was picked
    by simulation at n = 4,000, epsilon = 1 and k = 1, 2, 3, 6: shorter blocks abstain more often. Blocks grow with n
    once their bases have `MOST_GROUP_COLUMNS` columns together: the aggregate factors the Gram matrix of these.
    """
    checks.integer_at_least(1, k=k)
    return max(2 * k + 5, -(-n * k // MOST_GROUP_COLUMNS))


def cell_constant(contested: float) -> float:
    """Return c of the cell side c·√(qd)·r such that blocks meet with a lead of that share of all blocks.

    `r` is the root mean square distance of a block's point from the centre. The value is 15 % above a straight line
    fitted to the constant at which a simulation of the cuts by cell walls leads with probability 0.8, for shares
    up to one half.
    """
    return BLOCKS.cell_offset + BLOCKS.cell_slope * contested


def histogram_lead(epsilon: float, delta: float) -> int:
    """Return the lead, in ballots, at which the stable vote answers with probability `BlockTuning.success`."""
    return next(2 * margin for margin in count(1) if release_probability(margin, epsilon, delta) >= BLOCKS.success)


@dataclass(frozen=True)
class HistogramPlan:
    """Public numbers of one run of the histogram aggregate."""

    block_size: int  # m, records per block
    block_count: int  # t
    references: int  # q, the number of reference points
    cell_constant: float  # side of a cell over √(qd) times the typical distance of a block from the centre
    scale_epsilon: float  # for the private choice of the side; 0 when `gamma` is known
    vote_epsilon: float
    side: float | None  # of the cells, when `gamma` is known

    def error(self, d: int, k: int, side: float) -> float:
        """Distance to the true subspace that is kept with probability 0.7, for cells of that side.

        The centre of the cell differs from the projected references by independent uniform errors of standard
        deviation side/√12; seen from the k-dimensional row space of the references this is a (d, k) matrix of norm
        at most √d + √k of them, against a k-th singular value of at least (√q − √k)/1.2.
        """
        q = self.references
        noise = side / math.sqrt(12.0) * (math.sqrt(d) + math.sqrt(k))
        return BLOCKS.singular_value * noise / (math.sqrt(q) - math.sqrt(k))


def plan_histogram(
    n: int,
    d: int,
    k: int,
    *,
    epsilon: float,
    delta: float,
    gamma: float | None = None,
    block_size: int | None = None,
    references: int | None = None,
) -> HistogramPlan:
    """Choose block size, number of references and cell side of the histogram aggregate.

    The error is proportional to c(lead/t)·q/(√q − √k) / √(m − k − 1): q = 4k is best, and t balances the constant
    against the length of the blocks. Refuses an n too small for a vote that would be released, naming the number that
    it takes, and a gamma too large for cells of any use.
    """
    scale_epsilon = 0.0 if gamma is not None else BLOCKS.scale * epsilon
    vote_epsilon = left_of(epsilon, scale_epsilon)
    lead = histogram_lead(vote_epsilon, delta)
    fewest = math.ceil(lead / BLOCKS.contested)
    if gamma is None:
        fewest = max(fewest, _blocks_for_scale(scale_epsilon))
    shortest = 2 * k + 2
    m = _best_block_size(n, k, lead, fewest, shortest) if block_size is None else block_size
    t = n // m
    if t < fewest:
        template = (
            '{X} must have at least {least} rows for aggregate="histogram" with blocks of {m} rows at this '
            "epsilon and delta; got {n}."
        )
        raise ParameterError(template, least=fewest * m, m=m, n=n)
    q = 4 * k if references is None else references
    checks.integer_at_least(k + 1, references=q)
    constant = cell_constant(lead / t)
    side = None if gamma is None else constant * math.sqrt(q * d) * block_spread(d, k, m, q, gamma)
    plan = HistogramPlan(m, t, q, constant, scale_epsilon, vote_epsilon, side)
    if gamma is not None and side is not None and plan.error(d, k, side) > BLOCKS.largest_error:
        largest = gamma * BLOCKS.largest_error / plan.error(d, k, side)  # the side is in proportion to gamma
        template = (
            '{gamma} must be at most {largest:.1e} for aggregate="histogram" to be of use for {k} of {d} '
            "dimensions from {n} rows; got {got!r}."
        )
        raise ParameterError(template, largest=largest, k=k, d=d, n=n, got=gamma)
    return plan


def _best_block_size(n: int, k: int, lead: int, fewest: int, shortest: int) -> int:
    """Minimise c(lead/t) / √(m − k − 1) over block sizes that leave enough blocks."""
    longest = min(_LONGEST_HISTOGRAM_BLOCK, n // fewest)
    sizes = range(shortest, max(shortest, longest) + 1)
    return min(sizes, key=lambda m: cell_constant(lead / max(1, n // m)) / math.sqrt(m - k - 1))


def block_spread(d: int, k: int, m: int, q: int, gamma: float) -> float:
    """Root mean square of ‖(Π_j − Π)P‖_F for a block of m normal records and q normal reference points.

    E‖(Π_j − Π)P‖² = 2q E‖sin Θ‖²_F, and to first order E‖sin Θ‖²_F ≤ γ²dk/(m − k − 1): the tail energy dγ² times
    the mean trace of an inverse Wishart matrix. Blocks of k + 1 records or fewer have no such mean; they are given
    the value of k + 2.
    """
    return gamma * math.sqrt(2.0 * q * d * k / max(1, m - k - 1))


def _blocks_for_scale(epsilon: float) -> int:
    """Blocks that make the private median of their pairwise distances land between the 10th and 90th percentile.

    Permute-and-flip over 180 candidates misses by more than (2/ε)·ln(180/0.02) pairs with probability 0.02 at most,
    which must be within 40 % of t/2 pairs.
    """
    return math.ceil(2.0 / 0.4 * (2.0 / epsilon) * math.log(180 / 0.02))


def collision_delta(block_count: int) -> float:
    """Bound the chance that two different cells among those of two neighbouring data sets share a hash.

    There are at most t + 1 cells, hence t(t + 1)/2 pairs, each with probability (2^61 − 1)^-2 < 1.01·2^-122.
    """
    return (block_count + 1) ** 2 * 2.0**-122


def boosting_parts(beta: float) -> int:
    """Smallest t with Pr[Bin(t, 0.7) < 0.6 t] ≤ beta, by exact integer arithmetic."""
    checks.probability(beta=beta)
    for parts in range(1, _MOST_PARTS + 1):
        if _failure_probability(parts) <= Fraction(beta):
            return parts
    raise ParameterError(
        "{beta} must be at least {least:.1e}; got {got!r}.", least=float(_failure_probability(_MOST_PARTS)), got=beta
    )


def needed_successes(parts: int) -> int:
    """Smallest count that is at least 0.6 of the parts."""
    return math.ceil(_INNER_MAJORITY * parts)


def _failure_probability(parts: int) -> Fraction:
    """Pr[Bin(parts, 0.7) < 0.6 parts], from integer weights over 10^parts."""
    weight, total = 3**parts, 0
    for successes in range(needed_successes(parts)):
        total += weight
        weight = weight * (parts - successes) * 7 // ((successes + 1) * 3)  # divides exactly
    return Fraction(total, 10**parts)


def rank_block_size(max_components: int) -> int:
    """Records per block when blocks vote for the dimension: enough for a clear (max_components + 1)-th value."""
    return 2 * max_components + 2


def rank_epsilon(block_count: int, max_components: int, epsilon: float) -> float:
    """Share of epsilon for choosing the dimension.

    Permute-and-flip errs with probability at most 0.02 once the lead exceeds (2/ε)·ln(max_components/0.02); this
    spends what a lead of half of the blocks needs, but at least 5 % and at most 50 % of epsilon.
    """
    wanted = 2.0 * math.log(max_components / 0.02) / (0.5 * max(1, block_count))
    return min(max(wanted, BLOCKS.least_rank * epsilon), BLOCKS.most_rank * epsilon)
