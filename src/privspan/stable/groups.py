"""Stable leverage on groups: the private top-k space of block bases, whatever the conditioning of the signal.

Every block of records hands in an orthonormal basis of its own top-k space, so the strength of the signal is known
in advance and only the typical distance between two bases has to be released before planning. The rest is the
record version with items of k columns. Proofs: ``docs/explanation/stable-leverage.md``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privspan.privacy import Budget, Part
from privspan.privacy.run import Run
from privspan.stable.inverse import diagonal_blocks
from privspan.stable.leverage import GRID, block_norms, combination, exact_gram
from privspan.stable.plan import certified_plan, group_shares
from privspan.stable.release import certified_release
from privspan.stable.scales import each_alone, released_tail
from privspan.stable.tuning import STABLE
from privspan.subspace import Subspace

Array = NDArray[np.float64]

_SLICE_BYTES = 2**26
_SHRINK = 1e-7  # rounding: bases are no longer than 1 by proof


def stable_group_step(
    bases: Array,
    votes: NDArray[np.bool_],
    *,
    budget: Budget,
    run: Run,
    split: Mapping[str, float] | None = None,
    **options: object,
) -> tuple[Subspace | None, dict[str, object], tuple[Part, ...]]:
    """Release the subspace that most groups agree on, or abstain.

    There is one orthonormal basis per group, (t, d, k); whatever the slot of a group holds that does not vote is
    ignored. `options` are `STABLE_OPTIONS`, of which `split` knows the steps ``tail``, ``test`` and ``noise`` here.
    Returned are the subspace, None after an abstention; public and released numbers; and what each step may have
    spent, which is the budget in full whatever the outcome.

    Guarantee
    ---------
    (budget.epsilon, budget.delta)-differential privacy for neighbours whose bases and votes differ in one group; so
    for replace-one neighbours if every record reaches one group only and groups are computed one by one. It holds for
    all contents of the arrays. Proof: ``docs/explanation/stable-leverage.md``.
    """
    t, d, k = bases.shape
    shares = group_shares(t, k, budget, split)
    items = _GridBases(bases, votes)
    gram = exact_gram(items.column_slices(), t * k)  # (tk, tk)
    items.drop(_too_long(gram, k), gram)
    tail = released_tail(_pair_distances(gram, k), shares.mu_tail, run)
    plan = certified_plan(t, d, STABLE.group_strength * t, tail, shares.coin, STABLE.groups, options, width=k)
    parameters: dict[str, object] = {"groups": t, "tail_length": tail}
    if plan is None:
        return None, parameters, shares.parts()
    pull = partial(combination, items.column_slices)
    subspace = certified_release(gram, k, pull, plan, k, shares, run)
    return subspace, parameters | asdict(plan), shares.parts()


class _GridBases:
    """Bases of norm at most 1 on the grid 2⁻²⁶; groups without a vote are zero, each by its own entries."""

    def __init__(self, bases: Array, votes: NDArray[np.bool_]) -> None:
        t, d, k = bases.shape
        self._bases, self._step = bases, max(1, _SLICE_BYTES // (8 * t * k))
        self._scale = 1 - np.sqrt(d * k) * GRID - _SHRINK
        with np.errstate(over="ignore", invalid="ignore"):
            largest = np.abs(bases).max(axis=(1, 2))
            self._present = votes & (largest <= 1.5)  # False for NaN; longer columns are found in the Gram matrix

    def column_slices(self) -> Iterator[Array]:
        """Slices (tk, some columns), in the order of the columns."""
        t, d, k = self._bases.shape
        for start in range(0, d, self._step):
            part = self._bases[:, start : start + self._step, :].transpose(0, 2, 1)  # (t, k, step)
            part = np.where(self._present[:, None, None], part, 0.0).reshape(t * k, -1)
            yield np.rint(part * (self._scale / GRID)) * GRID

    def drop(self, absent: NDArray[np.bool_], gram: Array) -> None:
        """Take groups out, from here on and from the Gram matrix."""
        self._present = self._present & ~absent
        rows = np.repeat(absent, self._bases.shape[2])
        gram[rows] = 0.0
        gram[:, rows] = 0.0


def _too_long(gram: Array, k: int) -> NDArray[np.bool_]:
    """Groups whose basis is longer than 1 in some direction: not what a block hands in, so no vote."""
    own = diagonal_blocks(gram, k)  # (t, k, k)
    traces = np.einsum("tii->t", own)
    own[~(traces <= 2 * k)] = 2 * np.eye(k)
    return block_norms(own) > 1 - _SHRINK / 4


def _pair_distances(gram: Array, k: int) -> Array:
    """Half the squared sine of the largest angle between the groups 2j and 2j + 1; NaN without two bases."""
    pairs = len(gram) // k // 2
    own = diagonal_blocks(gram, k)
    first, second = own[0 : 2 * pairs : 2], own[1 : 2 * pairs : 2]  # (pairs, k, k)
    j = 2 * np.arange(pairs)
    across = gram.reshape(len(gram) // k, k, -1, k)[j, :, j + 1, :]  # (pairs, k, k)
    return each_alone(_half_squared_sines, first, second, across)


def _half_squared_sines(first: Array, second: Array, across: Array) -> Array:
    """The same from the Gram matrices of both bases and between them, (pairs, k, k) each."""
    k = first.shape[1]
    present = (np.linalg.eigvalsh(first)[:, 0] > 0.5) & (np.linalg.eigvalsh(second)[:, 0] > 0.5)
    safe = np.where(present[:, None, None], first, np.eye(k))
    rest = second - across.transpose(0, 2, 1) @ np.linalg.solve(safe, across)
    return np.where(present, np.linalg.eigvalsh(rest)[:, -1] / 2, np.nan)
