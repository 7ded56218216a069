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
from scipy import sparse

from privspan._lib.watch import rows_seen
from privspan.blocks.kernels import Array, Votes, bases_of, spectra_of
from privspan.rows import RowSource
from privspan.rows.dealing import Order, RowOrder
from privspan.rows.table import Table


@dataclass(frozen=True)
class BlockBases:
    """Orthonormal bases of t blocks."""

    bases: Array  # (t, d, k), zeros where a block does not vote; its (t, k, d) view is contiguous
    votes: Votes  # (t,), whether block j has a top-k subspace


def block_bases(X: Table, k: int, block_size: int, *, order: Order = None) -> BlockBases:
    """Compute the top-k basis of every block of m = `block_size` rows, k at most min(m, d), of a dense table.

    An entry that is not finite counts as 0. The blocks follow `order` (`privspan.rows.table.Table.order`), or
    the rows as they are; its last n % m records are left out, of every partition if there are partitions.
    """
    bases, votes = _of_blocks(X, block_size, order, partial(bases_of, k=k), (k, X.shape[1]))
    return BlockBases(bases.transpose(0, 2, 1), votes)


def block_spectra(X: Table, count: int, block_size: int, *, order: Order = None) -> tuple[Array, Votes]:
    """Compute the `count` largest squared singular values of every block, largest first; `X` may be sparse.

    They are (t, count) in units of each block's largest, so the first column is 1 (0 for a block that does not vote).
    A block votes, (t,), if it has any non-zero singular value.
    """
    return _of_blocks(X, block_size, order, partial(spectra_of, count=count), (count,))


def _of_blocks(
    X: Table, block_size: int, order: Order, kernel: Callable[[Array], tuple[Array, Votes]], shape: tuple[int, ...]
) -> tuple[Array, Votes]:
    """Collect what a kernel finds in chunks of blocks, of that shape per block, and which blocks vote."""
    found = X.each_part(partial(_of_part, block_size, kernel, shape), order, block_size)
    values, votes = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return values, votes


def _of_part(
    block_size: int,
    kernel: Callable[[Array], tuple[Array, Votes]],
    shape: tuple[int, ...],
    rows: RowSource,
    order: RowOrder,
    width: int,
) -> tuple[Array, Votes]:
    """Collect what a kernel finds in the blocks of one part; one of persons is the block of all their rows."""
    m = block_size * width
    t = rows.shape[0] // m
    values, votes = np.zeros((t, *shape)), np.zeros(t, dtype=bool)
    chunks = _narrowed_blocks if rows.is_sparse else _chunks
    with _one_blas_thread():
        for slots, block in chunks(rows, m, order):
            values[slots], votes[slots] = kernel(block)
    return values, votes


def _chunks(X: RowSource, block_size: int, order: RowOrder) -> Iterator[tuple[slice, Array]]:
    """Yield runs of blocks as float64 arrays (c, m, d) that fit in cache, with the slots they fill."""
    t, d = X.shape[0] // block_size, X.shape[1]
    per_chunk = max(1, X.limits.blocks_bytes // (8 * block_size * d))
    for start in range(0, t, per_chunk):
        stop = min(t, start + per_chunk)
        rows = slice(start * block_size, stop * block_size)
        chunk = np.ascontiguousarray(
            X.lend(rows) if order is None else X[order[rows]], dtype=np.float64
        )  # (c * m, d)
        rows_seen(len(chunk))
        yield slice(start, stop), chunk.reshape(stop - start, block_size, d)


def _narrowed_blocks(X: RowSource, block_size: int, order: RowOrder) -> Iterator[tuple[slice, Array]]:
    """Yield the blocks of a sparse table one by one, (1, m, c), without the columns in which they store nothing."""
    for j in range(X.shape[0] // block_size):
        numbers = slice(j * block_size, (j + 1) * block_size)
        block = sparse.csr_array(X[numbers] if order is None else X[order[numbers]])
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
    return nullcontext() if controller is None else controller.limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _blas_controller() -> Any:
    try:
        return importlib.import_module("threadpoolctl").ThreadpoolController()
    except ImportError:
        return None
