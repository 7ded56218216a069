"""FriendlyCore averaging of block subspaces (Tsfadia 2024, after Tsfadia, Cohen, Kaplan, Mansour, Stemmer 2022).

The records are dealt into blocks, and each block has a projector.  A block's weight rises from 0, where half of the
blocks are within a public radius of it, to 1, where all are: the chance with which the paper's filter keeps it.  Any
two blocks with weight have a friend in common and so are close to each other; the weighted average moves little under
a replacement and gets little noise.  The paper draws the core at random; its average needs no draw, and the counts no
noise.  The proof is for replacement, where the weight of the core can change too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan._lib.rounding import relative_error
from privspan.baselines._common import Array, baseline, leading_subspace, open_table
from privspan.baselines._tuning import RIVALS
from privspan.blocks.bases import BlockBases, block_bases
from privspan.privacy import Budget, Part, Release, share_mu
from privspan.privacy.noise import grid_for
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Run
from privspan.subspace import Subspace
from privspan.sums.grid import SumBounds, gaussian_symmetric, noise_level, upper_triangle

MOST_BLOCKS = 2**14  # memory: of all pairs
_MOST_ENTRIES = 2**27  # of all block bases together
_ORTHONORMAL = 2.0**-40  # rounding: a block whose basis is worse than this does not vote
_DISTANCE_SLACK = 2.0**-30  # per k: float64 error of a squared distance between projectors


@dataclass(frozen=True)
class CorePlan:
    """Noise levels, all public."""

    blocks: int
    count_sigma: float  # of the noise on the sum of counts, which is `full` times the weight of the core
    count_offset: float  # taken off the noisy sum, so that it is not overestimated
    mu_average: float
    parts: tuple[Part, ...]

    @property
    def needed(self) -> int:
        """How many friends do not count."""
        return friends_needed(self.blocks)

    @property
    def full(self) -> int:
        """How many that count make the weight 1."""
        return self.blocks - self.needed

    @property
    def largest_change(self) -> float:
        """Of the weight of the core under replacement: one block's own, and a friend less for all others."""
        return (self.full + self.blocks - 1) / self.full

    def movement(self, weight: float) -> float:
        """Bound the movement of a core of at least that weight, in units of its diameter: lemma 11 of the note."""
        missing = 1.0 - (weight - self.largest_change - 2.0) / (self.blocks - 1)
        movement = 1.0 + (0.5 + self.largest_change) * missing
        return min(self.largest_change, movement) / weight


@baseline
def friendly_core(
    X: object,
    k: int,
    *,
    epsilon: float,
    delta: float,
    radius: float = 0.2,
    block_size: int | None = None,
    rng: RandomLike = None,
) -> Release:
    """Average the projectors of blocks that have many friends, with noise, or abstain.

    Parameters
    ----------
    X : (n, d) array, memory map, dense RowSource, or Dask array or dataframe
        One person per row; an entry that is not finite counts as 0.  d is at most 2048.
    radius : float, default=0.2
        Public: Frobenius distance of projectors up to which two blocks are friends.  A bad choice costs accuracy,
        never privacy.
    block_size : int, optional
        Records per block, at least k.  By default ``4 k``, fewer where that leaves few blocks and more where there
        are plenty, see `public_block_size`.  At epsilon = 1, delta = 1e-6 at least 150 blocks are needed.

    Returns
    -------
    Release
        Abstains when the core is too small.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k and the options are
    public.  Rounding and the noise are exact.  Proof: docs/explanation/baselines.md, "FriendlyCore".
    """
    with open_table(X, k, epsilon=epsilon, delta=delta, rng=rng, dense=True) as table:
        n = table.n
        checks.positive(radius=radius)
        block_size = public_block_size(n, table.d, table.k, table.budget) if block_size is None else block_size
        checks.integer_at_least(table.k, block_size=block_size)
        blocks = n // block_size
        if not 2 <= blocks <= MOST_BLOCKS:
            template = "{block_size} must make 2 to {most_blocks} blocks of the {n} rows; got {got!r}."
            raise ParameterError(template, most_blocks=MOST_BLOCKS, n=n, got=block_size)
        plan, run = core_plan(blocks, table.budget), table.run
        records, order = table.source.deal(run.streams.public)
        bases = block_bases(records, table.k, block_size, order=order)
        counts = np.maximum(friend_counts(bases, radius) - plan.needed, 0)  # (t,)
        noisy_sum = run.gaussian(np.array(float(counts.sum())), plan.count_sigma, _grid(plan.count_sigma))
        weight = (float(noisy_sum) - plan.count_offset) / plan.full
        enough = weight > plan.largest_change
        subspace = _noisy_average(bases.bases, counts, radius, weight, plan, run) if enough else None
        extras = {"core_weight_lower_bound": weight}
        public = {"radius": float(radius), "block_size": int(block_size), "blocks": blocks}
        return table.release("friendly_core", subspace, *plan.parts, extras=extras, **public)


@lru_cache(maxsize=256)  # of public numbers only
def core_plan(blocks: int, budget: Budget) -> CorePlan:
    """Share the budget out so that blocks that all agree get the least noise; "FriendlyCore" in the note."""
    rest, weight_delta = budget.reserve_delta(RIVALS.core_delta)
    plans = [_plan(blocks, rest, weight_delta, share) for share in RIVALS.core]
    return min(plans, key=_expected_noise)


def _plan(blocks: int, budget: Budget, weight_delta: float, share: float) -> CorePlan:
    mu_weight, mu_average = share_mu(budget.mu, share, 1.0 - share)
    full = blocks - friends_needed(blocks)
    sigma = (full + blocks - 1) / mu_weight * (1.0 + 2.0**-40)
    offset = -float(ndtri(weight_delta)) * (1.0 + 1e-9) * sigma + 2.0 * _grid(sigma)
    steps = (("weight of the core", mu_weight), ("average", mu_average))
    parts = tuple(Part.gaussian(name, mu, budget.delta) for name, mu in steps)
    return CorePlan(blocks, sigma, offset, mu_average, (*parts, Part("weight overestimated", 0.0, weight_delta)))


def _expected_noise(plan: CorePlan) -> float:
    """Return the noise when all blocks agree, infinite where even then there would be no release."""
    weight = plan.blocks - 1.5 * plan.count_offset / plan.full
    return plan.movement(weight) / plan.mu_average if weight > plan.largest_change else math.inf


def public_block_size(n: int, d: int, k: int, budget: Budget) -> int:
    """Return the default number of rows per block, from public numbers.

    It is 4 k, or 2 k where that leaves few blocks.  Where there are plenty, half of what is beyond goes to more
    blocks and half to larger ones, which agree better, in powers.
    """
    size = 4 * k if n >= 4 * k * RIVALS.few_blocks / budget.mu else 2 * k
    plenty = RIVALS.plenty_blocks / budget.mu
    if n > plenty * size:
        size = math.ceil(math.sqrt(n * size / plenty))
    most = max(2, min(MOST_BLOCKS, _MOST_ENTRIES // (d * k)))
    return max(1, min(max(size, -(-n // most)), max(k, n // 2)))


def friends_needed(blocks: int) -> int:
    """Return how many friends, itself included, a block has before any of them counts.

    Two that have more, even of neighbouring tables, share one that is in both tables.
    """
    return (blocks - 1) // 2 + 1


def friend_counts(bases: BlockBases, radius: float) -> NDArray[np.int64]:
    """Count the blocks within `radius` of each, itself included; blocks without a vote have no friends, (t,)."""
    t, _, k = bases.bases.shape
    columns = np.ascontiguousarray(bases.bases.transpose(2, 0, 1))  # (k, t, d)
    gram = np.einsum("tda,tdb->tab", bases.bases, bases.bases)  # (t, k, k)
    votes = bases.votes & (np.linalg.norm(gram - np.eye(k), axis=(1, 2)) <= _ORTHONORMAL)
    counts: NDArray[np.int64] = votes.astype(np.int64)
    step = max(1, 2**22 // t)
    for start in range(0, t, step):
        stop = min(t, start + step)
        overlap = np.zeros((stop - start, t))  # ||V_iᵀ V_j||_F²
        for own in columns[:, start:stop]:  # (s, d)
            for other in columns:  # (t, d)
                cosines = own @ other.T
                overlap += np.square(cosines, out=cosines)
        friends = (2.0 * (k - overlap) <= radius * radius) & votes[None, :] & votes[start:stop, None]
        friends &= np.arange(t)[None, :] > np.arange(start, stop)[:, None]  # each pair is judged once, for both
        counts[start:stop] += friends.sum(axis=1)
        counts += friends.sum(axis=0)
    return counts


def _grid(sigma: float) -> float:
    """Return a grid that holds whole numbers, so that counts are not rounded."""
    return min(1.0, grid_for(sigma))


def _noisy_average(
    bases: Array, counts: NDArray[np.int64], radius: float, weight: float, plan: CorePlan, run: Run
) -> Subspace:
    """Release the weighted average projector; two blocks with weight are within 2 radius of each other."""
    core = counts > 0
    c, d, k = bases[core].shape
    roots = np.sqrt(counts[core] / max(int(counts.sum()), 1))  # (c,)
    flat = np.ascontiguousarray((bases[core] * roots[:, None, None]).transpose(1, 0, 2)).reshape(d, c * k)
    average = flat @ flat.T
    movement = 2.0 * math.sqrt(radius * radius + _DISTANCE_SLACK * k) * plan.movement(weight)
    error = 1.01 * k * relative_error(MOST_BLOCKS * k + 6)  # of inner products of c k terms with rounded weights
    bounds = SumBounds(movement / math.sqrt(2.0) * (1.0 + 2.0**-40), error, upper_triangle(d), 1.01)
    level = noise_level(bounds, plan.mu_average)
    return leading_subspace(gaussian_symmetric(average, level, run), k)
