"""FriendlyCore averaging of block subspaces (Tsfadia 2024, after Tsfadia, Cohen, Kaplan, Mansour, Stemmer 2022).

The records are dealt into blocks, and each block has a projector.  A block passes the filter if, with noise, more
than half of the blocks are within a public radius of it.  Any two blocks that pass have a friend in common and so are
close to each other; the average of those that pass moves little under a replacement and gets little noise.  The proof
is for replacement, where the core's size can change too.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from privspan._lib import checks
from privspan._lib.rounding import relative_error
from privspan.baselines._common import Array, baseline, leading_subspace, open_table
from privspan.blocks.bases import BlockBases, block_bases
from privspan.privacy import Budget, Part, Release, share_mu
from privspan.privacy.noise import add_gaussian, grid_for
from privspan.privacy.randomness import BitSource, RandomLike
from privspan.rows.dealing import dealt
from privspan.subspace import Subspace
from privspan.sums.grid import SumBounds, gaussian_symmetric, noise_level, upper_triangle

MOST_BLOCKS = 2**14
_MOST_ENTRIES = 2**27  # of all block bases together
_SHARES = (0.60, 0.05, 0.35)  # of mu²: filter, size of the core, average
_ORTHONORMAL = 2.0**-40  # a block whose basis is worse than this does not vote
_DISTANCE_SLACK = 2.0**-30  # per k: float64 error of a squared distance between projectors
_DELTA_SHARE = 0.25  # of delta, for a stranger in the core; half of it again for a size that was overestimated


@dataclass(frozen=True)
class CorePlan:
    """Noise levels and thresholds, all public."""

    filter_sigma: float
    filter_threshold: float  # a block passes when its number of friends plus noise reaches it
    size_sigma: float
    size_offset: float  # taken off the noisy size of the core, so that it is not overestimated
    mu_average: float
    parts: tuple[Part, ...]


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
        Records per block, at least k; by default ``2 k``, or more where that would make more than 16384 blocks.
        At epsilon = 1, delta = 1e-6 some 10,000 blocks are needed.

    Returns
    -------
    Release
        Abstains when the core is too small.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k and the options are
    public.  Rounding and the noise are exact.  Proof: docs/explanation/baselines.md, "FriendlyCore".
    """
    table = open_table(X, k, epsilon=epsilon, delta=delta, rng=rng, dense=True)
    n = table.n
    checks.positive(radius=radius)
    block_size = _default_block_size(n, table.d, table.k) if block_size is None else block_size
    checks.integer_at_least(table.k, block_size=block_size)
    blocks = n // block_size
    if not 2 <= blocks <= MOST_BLOCKS:
        raise ValueError(f"`block_size` must make 2 to {MOST_BLOCKS} blocks of the {n} rows; got {block_size!r}.")
    plan, noise = core_plan(blocks, table.budget), table.streams.noise
    records, order = dealt(table.source, table.streams.public)
    bases = block_bases(records, table.k, block_size, order=order)
    core = _with_noise(friend_counts(bases, radius), plan.filter_sigma, noise) >= plan.filter_threshold  # (t,)
    size = float(_with_noise(core.sum(), plan.size_sigma, noise)) - plan.size_offset
    subspace = _noisy_average(bases.bases[core], radius, size, plan, noise) if size >= 1.0 else None
    extras = {"core_size_lower_bound": size}
    public = {"radius": float(radius), "block_size": int(block_size), "blocks": blocks}
    return table.release("friendly_core", subspace, *plan.parts, extras=extras, **public)


def core_plan(blocks: int, budget: Budget) -> CorePlan:
    """Share the budget out; docs/explanation/baselines.md, "FriendlyCore"."""
    without_filter, filter_delta = budget.reserve_delta(_DELTA_SHARE)
    rest, size_delta = without_filter.reserve_delta(0.5 * _DELTA_SHARE)
    mu_filter, mu_size, mu_average = share_mu(rest.mu, *_SHARES)
    filter_sigma = math.sqrt(blocks - 1) / mu_filter * (1.0 + 2.0**-40)
    # A stranger passes with probability at most p = Phi(-z); it is charged (blocks + e^epsilon) times.
    tail = filter_delta * math.exp(-float(np.logaddexp(math.log(blocks), budget.epsilon)) - 1e-9)
    margin = -float(ndtri(tail)) * (1.0 + 1e-9) * filter_sigma + 2.0 * _grid(filter_sigma)
    size_sigma = 1.0 / mu_size * (1.0 + 2.0**-40)
    size_offset = -float(ndtri(size_delta)) * (1.0 + 1e-9) * size_sigma + 2.0 * _grid(size_sigma) + 1.0
    parts = tuple(
        Part.gaussian(name, mu, rest.delta)
        for name, mu in (("filter", mu_filter), ("size of the core", mu_size), ("average", mu_average))
    )
    failures = (Part("a stranger in the core", 0.0, filter_delta), Part("size overestimated", 0.0, size_delta))
    threshold = friends_needed(blocks) + 1.0 + margin
    return CorePlan(filter_sigma, threshold, size_sigma, size_offset, mu_average, (*parts, *failures))


def friends_needed(blocks: int) -> int:
    """Return how many friends, itself included, make sure that two blocks, even of neighbouring tables, share one."""
    return (blocks - 1) // 2 + 2


def friend_counts(bases: BlockBases, radius: float) -> NDArray[np.int64]:
    """Count the blocks within `radius` of each, itself included; blocks without a vote have no friends, (t,)."""
    t, _, k = bases.bases.shape
    columns = np.ascontiguousarray(bases.bases.transpose(2, 0, 1))  # (k, t, d)
    gram = np.einsum("tda,tdb->tab", bases.bases, bases.bases)  # (t, k, k)
    votes = bases.votes & (np.linalg.norm(gram - np.eye(k), axis=(1, 2)) <= _ORTHONORMAL)
    counts = np.zeros(t, dtype=np.int64)
    step = max(1, 2**22 // t)
    for start in range(0, t, step):
        stop = min(t, start + step)
        overlap = np.zeros((stop - start, t))  # ||V_iᵀ V_j||_F²
        for own in columns[:, start:stop]:  # (s, d)
            for other in columns:  # (t, d)
                cosines = own @ other.T
                overlap += np.square(cosines, out=cosines)
        friends = (2.0 * (k - overlap) <= radius * radius) & votes[None, :] & votes[start:stop, None]
        counts[start:stop] = friends.sum(axis=1)
    return counts


def _default_block_size(n: int, d: int, k: int) -> int:
    most = max(2, min(MOST_BLOCKS, _MOST_ENTRIES // (d * k)))
    return max(1, min(max(2 * k, -(-n // most)), max(k, n // 2)))


def _grid(sigma: float) -> float:
    """Return a grid that holds whole numbers, so that counts are not rounded."""
    return min(1.0, grid_for(sigma))


def _with_noise(counts: ArrayLike, sigma: float, bits: BitSource) -> Array:
    return add_gaussian(np.asarray(counts, dtype=np.float64), sigma, bits, grid=_grid(sigma))


def _noisy_average(bases: Array, radius: float, size: float, plan: CorePlan, bits: BitSource) -> Subspace:
    """Release the average projector of the core; two of its blocks are within 2 radius of each other."""
    c, d, k = bases.shape
    flat = np.ascontiguousarray(bases.transpose(1, 0, 2)).reshape(d, c * k)
    average = flat @ flat.T / max(c, 1)
    movement = 2.0 * math.sqrt(radius * radius + _DISTANCE_SLACK * k) / (size + 1.0)
    error = 1.01 * k * relative_error(MOST_BLOCKS * k + 2)  # of inner products of c k terms, then divided by c
    bounds = SumBounds(movement / math.sqrt(2.0) * (1.0 + 2.0**-40), error, upper_triangle(d), 1.01)
    level = noise_level(bounds, plan.mu_average)
    return leading_subspace(gaussian_symmetric(average, level, bits), k)
