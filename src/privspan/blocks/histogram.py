"""The paper's aggregate of block subspaces: a vote of cubic cells (DPASE), with the cell side that works.

Every block projects q public reference points on its subspace. The projections, one point of R^{qd} per block, fall
into cells of a randomly shifted cubic grid; the cell that most blocks share is released by the stable vote, and the
top-k subspace of its centre is the answer. Two things differ from the printed algorithm: the side of a cell grows
with √(qd) (as printed, blocks stop meeting when d grows), and the centre is returned instead of a random point.

A cell is a list of qd integers c. It is never stored per block: its ballot is the pair Σ a_i c_i mod 2^61 − 1 for two
secret random vectors a, which tells two cells apart except with probability 2^-121.9; that chance is charged to
delta. When the tail size is unknown, the side is chosen by a private median of the distances between disjoint pairs
of blocks. The proof note is docs/explanation/approximate-case.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from privspan.blocks import plan as planner_blocks
from privspan.blocks.bases import BlockBases
from privspan.blocks.plan import BLOCKS, HistogramPlan
from privspan.privacy import Part
from privspan.privacy.mu_ledger import left_of
from privspan.privacy.randomness import BitSource
from privspan.privacy.run import Run
from privspan.privacy.selection import vote_margin

Array = NDArray[np.float64]
Ballot = tuple[int, int]

_PRIME = 2**61 - 1  # lemma of the hash: collisions are rarer than one over it
_LIMB = 21  # bits per limb: sums of 2^12 products of centred limbs stay below 2^53, hence exact in float64
_LONGEST_RUN = 4096  # exact: sums of so many products stay below 2^53
_BATCH_ENTRIES = 2**18  # coordinates handled at a time: one block in high dimension, many in low


@dataclass(frozen=True)
class ReferenceFrame:
    """Public reference points and the shift of the grid."""

    points: Array  # (d, q), standard normal reference points P
    shift: Array  # (d, q), uniform in [0, 1): walls of coordinate i lie at (shift_i + integer) · side

    @classmethod
    def draw(cls, d: int, q: int, generator: np.random.Generator) -> ReferenceFrame:
        """Draw the frame from public randomness; privacy holds for every value of it."""
        return cls(generator.standard_normal((d, q)), generator.random((d, q)))

    @cached_property
    def finest_side(self) -> float:
        """Smallest admissible side: no projection spans more than `MOST_CELLS` cells."""
        longest = float(np.linalg.norm(self.points, axis=0).max())
        return 4.0 * longest / planner_blocks.MOST_CELLS

    def project(self, bases: Array) -> Array:
        """Return V Vᵀ P (..., d, q) for bases V (..., d, k); stacked bases are multiplied one by one."""
        return np.asarray(bases @ (np.swapaxes(bases, -1, -2) @ self.points))

    def cell(self, bases: Array, side: float) -> Array:
        """Return the cells of the projections as whole numbers in float64 (..., d, q), below 2^40 in size."""
        return np.floor(self.project(bases) / side - self.shift)

    def centre(self, cell: Array, side: float) -> Array:
        """Return the middle of a cell (d, q)."""
        return (cell + self.shift + 0.5) * side


class CellHash:
    """Two secret linear maps from cells to the integers modulo 2^61 − 1, evaluated exactly with float64 products.

    For two cells that differ in some coordinate by less than 2^61 − 1, each map agrees with probability exactly
    1/(2^61 − 1) over its secret vector.
    """

    def __init__(self, length: int, bits: BitSource) -> None:
        self._run = min(length, _LONGEST_RUN)
        self._runs = -(-length // self._run)
        keys = np.zeros((2, self._runs * self._run), dtype=np.int64)
        keys[:, :length] = _uniform_below_prime((2, length), bits)
        limbs = np.stack(_centred_limbs(keys, 3)).astype(np.float64)  # (3, 2, runs * run)
        self._limbs = limbs.reshape(6, self._runs, self._run).transpose(1, 2, 0)  # (runs, run, 6)

    def __call__(self, cells: Array) -> list[Ballot]:
        """Hash stacked cells (c, ...) of whole numbers below 2^40."""
        flat = cells.reshape(len(cells), -1)
        entries = np.zeros((len(cells), self._runs * self._run), dtype=np.int64)
        entries[:, : flat.shape[1]] = flat
        limbs = np.stack(_centred_limbs(entries, 2)).astype(np.float64)  # (2, c, runs * run)
        limbs = limbs.reshape(2, len(cells), self._runs, self._run).transpose(1, 2, 0, 3)
        products = (limbs @ self._limbs).astype(np.int64)  # (c, runs, 2, 6), exact
        return [_combine(sums) for sums in products.astype(object).sum(axis=1)]  # Python integers: no overflow


def _combine(sums: NDArray[np.object_]) -> Ballot:
    """Put the sums over limb i of the cell and limb j of both keys, at [i, 2j] and [i, 2j + 1], together."""
    first, second = (
        sum(int(sums[i, 2 * j + key]) << (_LIMB * (i + j)) for i in range(2) for j in range(3)) for key in range(2)
    )
    return first % _PRIME, second % _PRIME


def _uniform_below_prime(shape: tuple[int, ...], bits: BitSource) -> NDArray[np.int64]:
    """Draw uniform integers in [0, 2^61 − 1) by throwing away the single value that is too large."""
    mask = np.uint64(_PRIME)
    values = bits.uint64(shape) & mask
    while (values == mask).any():
        values = np.where(values == mask, bits.uint64(shape) & mask, values)
    return values.astype(np.int64)


def _centred_limbs(values: NDArray[np.int64], count: int) -> list[NDArray[np.int64]]:
    """Write integers as Σ limb_i 2^(21 i) with every limb but the last in [−2^20, 2^20)."""
    limbs = []
    for _ in range(count - 1):
        low = ((values + (1 << (_LIMB - 1))) & ((1 << _LIMB) - 1)) - (1 << (_LIMB - 1))
        limbs.append(low)
        values = (values - low) >> _LIMB
    return [*limbs, values]


def histogram_step(
    blocks: BlockBases, plan: HistogramPlan, *, delta: float, run: Run
) -> tuple[Array | None, float, tuple[Part, ...]]:
    """Aggregate block subspaces by the vote of cells, within the plan's shares of epsilon and the whole of `delta`.

    Returns an orthonormal basis (d, k), None if the vote abstained; the side of the cells, public or released by the
    private median; and what was spent.

    Guarantee
    ---------
    (plan.scale_epsilon + plan.vote_epsilon, delta)-differentially private for replace-one neighbours, for every data
    set. Proof: docs/explanation/approximate-case.md.
    """
    _, d, k = blocks.bases.shape
    frame = ReferenceFrame.draw(d, plan.references, run.streams.public)
    side, parts = plan.side, list[Part]()
    if side is None:
        distance = private_pair_distance(blocks, frame, plan.scale_epsilon, run)
        to_spread = BLOCKS.median * math.sqrt(math.pi) / 2.0  # of the L1 distance of two blocks: √(π/2)/√2, if normal
        side = plan.cell_constant * to_spread * distance
        parts.append(Part("cell side", plan.scale_epsilon, 0.0))
    side = max(side, frame.finest_side)
    collision = planner_blocks.collision_delta(plan.block_count)
    vote_delta = left_of(delta, collision)
    parts += [Part("cell vote", plan.vote_epsilon, vote_delta), Part("hash collisions", 0.0, collision)]
    basis = None
    if plan.error(d, k, side) <= BLOCKS.largest_error:  # known from what is public or released by now
        cell = _winning_cell(blocks, frame, side, plan.vote_epsilon, vote_delta, run)
        if cell is not None:
            basis = np.linalg.svd(frame.centre(cell, side), full_matrices=False)[0][:, :k]
    return basis, side, tuple(parts)


def private_pair_distance(blocks: BlockBases, frame: ReferenceFrame, epsilon: float, run: Run) -> float:
    """Release a value near the median L1 distance between the projections of disjoint pairs of blocks.

    The candidates are a public geometric grid. The score of r is how far the half of all pairs lies outside the range
    from the number of pairs within the next smaller candidate to the number within r, with a minus sign; one record
    moves it by at most one. (Scoring r by its own count alone fails when all distances fall between two candidates:
    every candidate then looks equally bad.)

    Guarantee
    ---------
    (epsilon, 0)-differentially private for replace-one neighbours. Proof: docs/explanation/approximate-case.md.
    """
    largest = 2.0 * math.sqrt(frame.points.size) * float(np.linalg.norm(frame.points))
    return _private_median(_pair_distances(blocks, frame), largest, epsilon, run)


def _private_median(distances: Array, largest: float, epsilon: float, run: Run) -> float:
    steps = np.arange(BLOCKS.scales_per_doubling * BLOCKS.scale_doublings)
    candidates = largest * 2.0 ** (-steps / BLOCKS.scales_per_doubling)
    within = np.count_nonzero(distances[:, None] <= candidates, axis=0)  # (candidates,)
    below = np.append(within[1:], 0)  # the candidates decrease
    half = len(distances) // 2
    scores = [-max(0, int(low) - half, half - int(high)) for low, high in zip(below, within, strict=True)]
    return float(candidates[run.select(scores, epsilon)])


def _pair_distances(blocks: BlockBases, frame: ReferenceFrame) -> Array:
    """L1 distances of blocks 2j and 2j + 1; infinite if one of them does not vote."""
    pairs = len(blocks.votes) // 2
    distances = np.full(pairs, np.inf)
    both = blocks.votes[0 : 2 * pairs : 2] & blocks.votes[1 : 2 * pairs : 2]
    for batch in _batches(pairs, frame):
        first, second = (blocks.bases[2 * batch.start + i : 2 * batch.stop : 2] for i in range(2))
        apart = np.abs(frame.project(first) - frame.project(second)).sum(axis=(1, 2))
        distances[batch] = np.where(both[batch], apart, np.inf)
    return distances


def _batches(count: int, frame: ReferenceFrame) -> Iterator[slice]:
    step = max(1, _BATCH_ENTRIES // frame.points.size)
    return (slice(start, min(count, start + step)) for start in range(0, count, step))


def _winning_cell(
    blocks: BlockBases, frame: ReferenceFrame, side: float, epsilon: float, delta: float, run: Run
) -> Array | None:
    """Release the cell that leads the vote of the blocks, or None."""
    digest = CellHash(frame.points.size, run.streams.charged)
    ballots: list[Ballot | None] = []
    for batch in _batches(len(blocks.votes), frame):
        hashes = digest(frame.cell(blocks.bases[batch], side))
        ballots += [key if votes else None for key, votes in zip(hashes, blocks.votes[batch], strict=True)]
    winner, margin = vote_margin(ballots)
    if not run.decide(margin, epsilon, delta) or winner is None:
        return None
    supporters = (frame.cell(blocks.bases[j], side) for j, ballot in enumerate(ballots) if ballot == winner)
    first = next(supporters)
    # Different cells behind one hash are the collision that delta pays for; the honest answer is then none.
    return first if all(np.array_equal(first, other) for other in supporters) else None
