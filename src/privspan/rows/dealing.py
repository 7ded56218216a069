"""Which rows go together into blocks: by row number, public numbers and public randomness, never by a value.

The proofs are in docs/explanation/partitioning.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspan.rows import PartitionedTable, RowSource
from privspan.rows.persons import PersonTable

Table: TypeAlias = NDArray[np.generic] | RowSource | PartitionedTable | PersonTable


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


def table_edges(X: Table) -> NDArray[np.intp] | None:
    """Return where the windows of a file begin, and None for a table whose rows cost the same in any order."""
    return X.edges if isinstance(X, RowSource) else None


def dealt(X: Table, generator: np.random.Generator) -> tuple[Table, Order]:
    """Return a table whose blocks are cheap to read in the order that is returned with it.

    Of a large file the rows come back in another, public order (see `privspan.rows.DealtRows`).
    """
    table = X.dealt(generator) if isinstance(X, RowSource) else X
    return table, table_order(table, generator)


def table_order(X: Table, generator: np.random.Generator) -> Order:
    """Draw the order in which the rows of a table are dealt into blocks: within windows or partitions if it has any.

    Only its shape, and where its windows or partitions begin, are looked at.
    """
    if isinstance(X, PartitionedTable):
        return PartitionOrders(tuple(generator.integers(2**63, size=len(X.parts)).tolist()))
    return public_order(X.shape[0], generator, edges=table_edges(X))


def block_count(X: Table, block_size: int) -> int:
    """Return the number of blocks: whole ones only, and none across two partitions."""
    if isinstance(X, PartitionedTable):
        return sum(length // block_size for length in X.lengths)
    return int(X.shape[0]) // block_size
