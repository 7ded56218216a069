"""Which rows go together into blocks: by row number, public numbers and public randomness, never by a value.

The proofs are in docs/explanation/partitioning.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

SPAWN_DOMAIN = 0x70726976
"""First number, the letters "priv", in the keys of the children of a seed."""


@dataclass(frozen=True)
class PartitionOrders:
    """Public orders of the rows within each partition, drawn where the partition is from one seed per partition."""

    seeds: tuple[int, ...]


RowOrder: TypeAlias = NDArray[np.intp] | None
Order: TypeAlias = RowOrder | PartitionOrders


def public_order(
    n: int, generator: np.random.Generator, *, edges: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Draw the order in which n rows are dealt into blocks: a permutation, from a public generator.

    With the `edges` of the windows of a file (see :class:`privspan.rows.RowSource`) rows change places within their
    window only, so that one pass over the file serves all blocks in turn.
    """
    if edges is None or len(edges) <= 2:
        return generator.permutation(n).astype(np.intp, copy=False)
    windows = (start + generator.permutation(stop - start) for start, stop in pairwise(edges.tolist()))
    return np.concatenate(list(windows)).astype(np.intp, copy=False)


def public_stream(seed: int) -> np.random.Generator:
    """Return the public stream of an integer seed, as `privspan.privacy.randomness.open_streams` opens it."""
    return np.random.Generator(np.random.PCG64DXSM(np.random.SeedSequence(seed, spawn_key=(SPAWN_DOMAIN, 1))))
