"""Top-k bases of disjoint blocks of records: the row-touching half of subsample-and-aggregate.

n records are cut into t = n // m blocks of m by row number and a public order, so one record reaches exactly one
block. Every block is turned into an orthonormal basis of its top-k subspace, or into "no vote" when it has none
(zero, rank deficient, or a failed decomposition). Nothing here is private; the aggregates that read the bases are.

What the aggregates rely on (docs/explanation/approximate-case.md, "One record, one block"): the result of a
block is a function of the records of that block and of public numbers alone, to the last bit. So every block
keeps its own slot, every matrix product and every decomposition is done per block, and a block that needs
special care is redone on its own instead of changing what the batch computes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan._lib.watch import rows_seen
from privspan.blocks.kernels import bases_of, spectra_of
from privspan.rows import PartitionedTable, RowSource
from privspan.rows.dealing import Order, PartitionOrders, RowOrder, Table, public_order
from privspan.rows.unit import is_sparse

Array = NDArray[np.float64]

_CHUNK_BYTES = 2**23


@dataclass(frozen=True)
class BlockBases:
    """Orthonormal bases of t blocks.

    Attributes
    ----------
    bases : (t, d, k) array
        Slot j holds the basis of block j, zeros if the block does not vote. (A transposed view of memory laid
        out as (t, k, d), so that ``bases.transpose(0, 2, 1)`` is contiguous.)
    votes : (t,) bool array
        Whether block j has a top-k subspace.
    """

    bases: Array
    votes: NDArray[np.bool_]


def block_bases(X: Table, k: int, block_size: int, *, order: Order = None) -> BlockBases:
    """Compute the top-k basis of every block of `block_size` rows.

    Parameters
    ----------
    X : (n, d) array, dense RowSource or PartitionedTable
        One record per row, any real dtype. A row with a non-finite entry counts as zeros.
    k : int
        Dimension, at most ``min(block_size, d)``.
    block_size : int
        Records per block, m. The last ``n % m`` records of the order are left out, of every partition if there are
        partitions.
    order : (n,) int array or PartitionOrders, optional
        Public permutation of the rows (see `privspan.rows.dealing.table_order`); contiguous blocks if omitted.

    Returns
    -------
    BlockBases
    """
    if isinstance(X, PartitionedTable):
        found = _within_partitions(X, partial(_bases_within, k, block_size), order)
        bases, votes = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return BlockBases(bases.transpose(0, 2, 1), votes)
    assert not isinstance(order, PartitionOrders)
    t, d = X.shape[0] // block_size, X.shape[1]
    bases = np.zeros((t, k, d))
    votes = np.zeros(t, dtype=bool)
    with _one_blas_thread():
        for slots, block in _chunks(X, block_size, order):
            bases[slots], votes[slots] = bases_of(block, k)
    return BlockBases(bases.transpose(0, 2, 1), votes)


def block_spectra(X: Table, count: int, block_size: int, *, order: Order = None) -> tuple[Array, NDArray[np.bool_]]:
    """Compute the `count` largest squared singular values of every block, largest first; `X` may be sparse.

    Returns
    -------
    squares : (t, count) array
        In units of each block's largest, so the first column is 1 (0 for a block that does not vote).
    votes : (t,) bool array
        Whether the block has any non-zero singular value.
    """
    if isinstance(X, PartitionedTable):
        found = _within_partitions(X, partial(_spectra_within, count, block_size), order)
        squares, votes = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return squares, votes
    assert not isinstance(order, PartitionOrders)
    t = X.shape[0] // block_size
    squares = np.zeros((t, count))
    votes = np.zeros(t, dtype=bool)
    chunks = _narrowed_blocks if is_sparse(X) else _chunks
    with _one_blas_thread():
        for slots, block in chunks(X, block_size, order):
            squares[slots], votes[slots] = spectra_of(block, count)
    return squares, votes


def _within_partitions(
    X: PartitionedTable, function: Callable[..., Any], order: Order
) -> list[tuple[Array, NDArray[np.bool_]]]:
    """Return what a function of a partition and the seed of its order finds in each, in turn."""
    seeds = order.seeds if isinstance(order, PartitionOrders) else (None,) * len(X.parts)
    return X.place.fetch(X.place.map(function, X.parts, X.place.send(seeds)), X.lengths)


def _bases_within(k: int, block_size: int, part: NDArray[Any], seed: int | None) -> tuple[Array, NDArray[np.bool_]]:
    blocks = block_bases(part, k, block_size, order=_order_within(part, seed))
    return blocks.bases.transpose(0, 2, 1), blocks.votes


def _spectra_within(
    count: int, block_size: int, part: NDArray[Any], seed: int | None
) -> tuple[Array, NDArray[np.bool_]]:
    return block_spectra(part, count, block_size, order=_order_within(part, seed))


def _order_within(part: NDArray[Any], seed: int | None) -> RowOrder:
    return None if seed is None else public_order(len(part), np.random.default_rng(seed))


def _chunks(X: NDArray[np.generic] | RowSource, block_size: int, order: RowOrder) -> Iterator[tuple[slice, Array]]:
    """Yield runs of blocks as float64 arrays (c, m, d) that fit in cache, with the slots they fill."""
    t, d = X.shape[0] // block_size, X.shape[1]
    per_chunk = max(1, _CHUNK_BYTES // (8 * block_size * d))
    for start in range(0, t, per_chunk):
        stop = min(t, start + per_chunk)
        rows = slice(start * block_size, stop * block_size)
        chunk = np.asarray(X[rows] if order is None else X[order[rows]])
        chunk = np.ascontiguousarray(chunk, dtype=np.float64)  # (c * m, d)
        rows_seen(len(chunk))
        yield slice(start, stop), chunk.reshape(stop - start, block_size, d)


def _narrowed_blocks(X: Any, block_size: int, order: RowOrder) -> Iterator[tuple[slice, Array]]:
    """Yield the blocks of a sparse table one by one, (1, m, c), without the columns in which they store nothing."""
    for j in range(X.shape[0] // block_size):
        numbers = slice(j * block_size, (j + 1) * block_size)
        block = (X[numbers] if order is None else X[order[numbers]]).tocsr()
        rows_seen(block_size)
        columns, places = np.unique(block.indices, return_inverse=True)
        width = max(len(columns), block_size)  # a few columns of zeros change no singular value
        narrow = sparse.csr_array((block.data.astype(np.float64), places, block.indptr), shape=(block_size, width))
        with np.errstate(all="ignore"):
            yield slice(j, j + 1), narrow.toarray()[None]  # adds up what is stored several times


def _one_blas_thread() -> AbstractContextManager[object]:
    """Keep BLAS to one thread: thousands of small products lose more to waking threads than they gain.

    On a busy machine the difference is a factor of twenty. Without threadpoolctl nothing but speed changes.
    """
    controller = _blas_controller()
    limited: AbstractContextManager[object] = (
        controller.limit(limits=1, user_api="blas") if controller else nullcontext()
    )
    return limited


@lru_cache(maxsize=1)
def _blas_controller() -> Any:
    try:
        return importlib.import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return None
