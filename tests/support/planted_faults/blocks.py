"""Faults in votes of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from planted_faults.registry import DELTA, EPSILON, fault, refuted
from privspan.approximate import approximate_subspace
from privspan.blocks import histogram
from privspan.rows.source import RowSource


def line_blocks_pair() -> Any:
    """Records on two lines; the first half, all that a doubled order reads, is nearly tied."""
    table = np.array([(1.0, 0.0)] * 16 + [(0.0, 1.0)] * 14 + [(1.0, 0.0)] * 16 + [(0.0, 1.0)] * 14)
    other = table.copy()
    other[0] = (0.0, 1.0)
    return table, other


def cell_vote(table, rng):
    return approximate_subspace(
        table,
        1,
        epsilon=EPSILON,
        delta=DELTA,
        block_size=1,
        aggregate="histogram",
        gamma=1e-4,
        options={"references": 2},
        rng=rng,
    )


@fault("one record in two blocks", lambda: refuted(cell_vote, line_blocks_pair(), runs=400))
def doubled_order(patch):
    patch.setattr(RowSource, "deal", lambda X, generator: (X, np.repeat(np.arange(len(X) // 2), 2)))


def spread_pair() -> Any:
    """Pairs of blocks of which one decides where the median distance lies."""
    angles = np.repeat([0.0, 1e-3, 0.0, 1.0], 100)
    table = np.column_stack([np.cos(angles), np.sin(angles)])[np.arange(400).reshape(4, 100).T.ravel()]
    other = table.copy()
    other[-1] = other[-2]
    return table, other


def chosen_side(table, rng):
    return approximate_subspace(
        table,
        1,
        epsilon=EPSILON,
        delta=DELTA,
        block_size=1,
        aggregate="histogram",
        options={"references": 2},
        shuffle=False,
        rng=rng,
    )


@fault("radius without privacy", lambda: refuted(chosen_side, spread_pair()))
def bare_radius(patch):
    def largest(blocks, frame, epsilon, bits):
        return float(np.sort(np.linalg.norm(np.diff(blocks.bases[:, :, 0], axis=0), axis=1))[len(blocks.votes) // 2])

    patch.setattr(histogram, "private_pair_distance", largest)
