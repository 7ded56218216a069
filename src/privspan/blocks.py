"""Top-k bases of disjoint blocks of records: the row-touching half of subsample-and-aggregate.

n records are cut into t = n // m blocks of m by row number and a public order, so one record reaches exactly one
block. Every block is turned into an orthonormal basis of its top-k subspace, or into "no vote" when it has none
(zero, rank deficient, or a failed decomposition). Nothing here is private; the aggregates that read the bases are.

What the aggregates rely on (docs/explanation/approximate-case.md, "One record, one block"): the result of a
block is a function of the records of that block and of public numbers alone, to the last bit. So every block
keeps its own slot, every matrix product and every decomposition is done per block, and a block that needs
special care is redone on its own instead of changing what the batch computes.

The kernel is the small Gram matrix of the block, B Bᵀ (m, m), or Bᵀ B (d, d) for blocks longer than wide:
with eigenpairs (w, E) the basis is Bᵀ E / √w, followed by one (k, k) re-orthonormalisation. Blocks with more than
`LARGEST_GRAM` rows and columns, for which `eigh` would take longer than all the rest, get subspace iteration from a
fixed start instead. All arithmetic is float64 whatever the storage.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan.rows import PartitionedTable, RowSource
from privspan.unit_rows import is_sparse

Array = NDArray[np.float64]
Table: TypeAlias = NDArray[np.generic] | RowSource | PartitionedTable


@dataclass(frozen=True)
class PartitionOrders:
    """Public orders of the rows within each partition, drawn where the partition is from one seed per partition."""

    seeds: tuple[int, ...]


RowOrder: TypeAlias = NDArray[np.intp] | None
Order: TypeAlias = RowOrder | PartitionOrders

RANK_TOLERANCE = 2.0**-42
"""A block votes only if its k-th squared singular value exceeds this share of its first."""

LARGEST_GRAM = 96
"""Blocks with both sides longer than this are decomposed by subspace iteration."""

_CHUNK_BYTES = 2**23
_EXTRA_DIRECTIONS, _PASSES = 4, 3  # of subspace iteration; the error shrinks by (s_{k+5}/s_k)² per pass
_SAFE_SQUARE = 2.0**600  # sums of squares within [1/_SAFE_SQUARE, _SAFE_SQUARE] cannot have over- or underflowed


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


def public_order(
    n: int, generator: np.random.Generator, *, edges: NDArray[np.intp] | None = None
) -> NDArray[np.intp]:
    """Draw the order in which rows are dealt into blocks: a permutation that depends on public numbers only.

    Parameters
    ----------
    n : int
        Number of rows.
    generator : numpy.random.Generator
        Public.
    edges : (windows + 1,) int array, optional
        Where the windows of a file begin (see :class:`privspan.rows.RowSource`), and n.  Rows then change places
        within their window only, so that one pass over the file serves all blocks in turn.
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

    Parameters
    ----------
    X : (n, d) array, RowSource or PartitionedTable
        Of a large file the rows come back in another, public order (see `privspan.rows.DealtRows`).
    generator : numpy.random.Generator
        Public.
    """
    table = X.dealt(generator) if isinstance(X, RowSource) else X
    return table, table_order(table, generator)


def table_order(X: Table, generator: np.random.Generator) -> Order:
    """Draw the order in which the rows of a table are dealt into blocks: within windows or partitions if it has any.

    Parameters
    ----------
    X : (n, d) array, RowSource or PartitionedTable
        Only its shape, and where its windows or partitions begin, are looked at.
    generator : numpy.random.Generator
        Public.
    """
    if isinstance(X, PartitionedTable):
        return PartitionOrders(tuple(generator.integers(2**63, size=len(X.parts)).tolist()))
    return public_order(X.shape[0], generator, edges=table_edges(X))


def block_count(X: Table, block_size: int) -> int:
    """Return the number of blocks: whole ones only, and none across two partitions."""
    if isinstance(X, PartitionedTable):
        return sum(length // block_size for length in X.lengths)
    return int(X.shape[0]) // block_size


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
        Public permutation of the rows (see `table_order`); contiguous blocks if omitted.

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
    kernel = _gram_bases if min(block_size, d) <= LARGEST_GRAM else _iterated_bases
    with _one_blas_thread():
        for slots, block in _chunks(X, block_size, order):
            bases[slots], votes[slots] = _with_care(block, lambda clean: kernel(clean, k))
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
            squares[slots], votes[slots] = _with_care(block, lambda clean: _spectrum(clean, count))
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
        yield slice(start, stop), chunk.reshape(stop - start, block_size, d)


def _narrowed_blocks(X: Any, block_size: int, order: RowOrder) -> Iterator[tuple[slice, Array]]:
    """Yield the blocks of a sparse table one by one, (1, m, c), without the columns in which they store nothing."""
    for j in range(X.shape[0] // block_size):
        numbers = slice(j * block_size, (j + 1) * block_size)
        block = (X[numbers] if order is None else X[order[numbers]]).tocsr()
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


Kernel = Callable[[Array], tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]]


def _with_care(blocks: Array, kernel: Kernel) -> tuple[Array, NDArray[np.bool_]]:
    """Run the kernel on all blocks at once, then redo on its own every block whose numbers were unsafe."""
    with np.errstate(all="ignore"):
        values, votes, safe = kernel(blocks)
        for j in np.flatnonzero(~safe):
            values[j : j + 1], votes[j : j + 1], _ = kernel(_cleaned(blocks[j])[None])
    return values, votes


def _cleaned(block: Array) -> Array:
    """Turn non-finite rows into zero rows and scale by a power of two so that the largest entry is about 1."""
    finite = np.asarray(np.isfinite(block).all(axis=1))  # (m,)
    clean = np.where(finite[:, None], block, 0.0)  # (m, d)
    exponent = int(np.frexp(np.abs(clean).max())[1])
    return np.ldexp(clean, -exponent)


def _gram_bases(blocks: Array, k: int) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Compute the top-k bases (c, k, d) of clean blocks (c, m, d); also which vote and which were in range."""
    gram, by_rows = _gram(blocks)  # (c, g, g)
    safe = _in_range(gram)
    squares, vectors = _eigh(_or_identity(gram, safe))
    squares, vectors = squares[:, ::-1][:, :k], vectors[:, :, ::-1][:, :, :k]  # (c, k), (c, g, k)
    votes = safe & (squares[:, -1] > RANK_TOLERANCE * squares[:, 0])
    inverse_roots = 1.0 / np.sqrt(np.where(votes[:, None], squares, 1.0))  # (c, k)
    # Multiplying by B once more shrinks what E wrongly holds of the lower singular directions.
    left = vectors if by_rows else blocks @ (vectors * inverse_roots[:, None, :])  # (c, m, k)
    rough = (left * inverse_roots[:, None, :]).transpose(0, 2, 1) @ blocks  # (c, k, d)
    bases, sound = _orthonormal_rows(rough, votes)
    bases[~sound] = 0.0
    return bases, sound, safe


def _iterated_bases(blocks: Array, k: int) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Do the same for blocks with many rows and columns, by subspace iteration."""
    _, m, d = blocks.shape
    safe = _moderate(np.einsum("cmd,cmd->c", blocks, blocks))
    clean = blocks if safe.all() else np.where(safe[:, None, None], blocks, 0.0)
    width = min(k + _EXTRA_DIRECTIONS, m, d)
    # The start is the same for every block and every call, so a block's result depends on the block alone.
    start = np.random.default_rng(0).standard_normal((width, m))
    spanning = start @ clean  # (c, width, d)
    for _ in range(_PASSES - 1):
        directions = np.linalg.qr(spanning.transpose(0, 2, 1))[0]  # (c, d, width)
        spanning = (clean @ directions).transpose(0, 2, 1) @ clean
    directions = np.linalg.qr(spanning.transpose(0, 2, 1))[0]
    values, rotations = _right_svd(clean @ directions)  # (c, width), (c, width, width)
    votes = safe & (values[:, k - 1] ** 2 > RANK_TOLERANCE * values[:, 0] ** 2)
    bases = rotations[:, :k] @ directions.transpose(0, 2, 1)  # (c, k, d)
    bases[~votes] = 0.0
    return bases, votes, safe


def _right_svd(matrices: Array) -> tuple[Array, Array]:
    """Batched singular values and right singular vectors; zeros, hence no vote, where the iteration fails."""
    return _each_alone(lambda stack: np.linalg.svd(stack, full_matrices=False)[1:], matrices, matrices.shape[2])


def _spectrum(blocks: Array, count: int) -> tuple[Array, NDArray[np.bool_], NDArray[np.bool_]]:
    """Compute the leading squared singular values of clean blocks, relative to the first."""
    gram, _ = _gram(blocks)
    safe = _in_range(gram)
    squares, _ = _eigh(_or_identity(gram, safe))
    squares = np.maximum(squares[:, ::-1][:, :count], 0.0)  # (c, count)
    votes = safe & (squares[:, 0] > 0.0)
    return np.where(votes[:, None], squares / squares[:, :1], 0.0), votes, safe


def _gram(blocks: Array) -> tuple[Array, bool]:
    """Return the smaller Gram matrix of every block, and whether it is the one of the rows."""
    _, m, d = blocks.shape
    by_rows = m <= d
    transposed = blocks.transpose(0, 2, 1)
    return (blocks @ transposed if by_rows else transposed @ blocks), by_rows


def _in_range(gram: Array) -> NDArray[np.bool_]:
    """Tell which blocks were finite and of moderate size: the diagonal holds the sums of squares."""
    return _moderate(np.diagonal(gram, axis1=1, axis2=2).max(axis=1))  # the maximum is NaN if any is NaN


def _moderate(squares: Array) -> NDArray[np.bool_]:
    """Tell which sums of squares are finite, and far from over- and underflow."""
    safe: NDArray[np.bool_] = (squares <= _SAFE_SQUARE) & (squares >= 1.0 / _SAFE_SQUARE)
    return safe


def _or_identity(matrices: Array, keep: NDArray[np.bool_]) -> Array:
    """Replace the matrices not kept by the identity, so that one block cannot make a batch call fail."""
    if keep.all():
        return matrices
    return np.where(keep[:, None, None], matrices, np.eye(matrices.shape[1]))


def _eigh(matrices: Array) -> tuple[Array, Array]:
    """Batched `eigh`; zeros, hence no vote, for a matrix whose iteration fails."""
    return _each_alone(np.linalg.eigh, matrices, matrices.shape[1])


def _each_alone(decompose: Callable[[Array], tuple[Array, Array]], matrices: Array, size: int) -> tuple[Array, Array]:
    """Decompose a batch; if one matrix fails, which fails the whole call, decompose them one by one."""
    try:
        return decompose(matrices)
    except np.linalg.LinAlgError:
        values, vectors = np.zeros((len(matrices), size)), np.zeros((len(matrices), size, size))
        for j in range(len(matrices)):
            try:
                values[j], vectors[j] = (part[0] for part in decompose(matrices[j : j + 1]))
            except np.linalg.LinAlgError:
                continue
        return values, vectors


def _orthonormal_rows(rough: Array, votes: NDArray[np.bool_]) -> tuple[Array, NDArray[np.bool_]]:
    """Make nearly orthonormal rows (c, k, d) orthonormal to rounding, by the Cholesky factor of their Gram matrix."""
    gram = rough @ rough.transpose(0, 2, 1)  # (c, k, k), close to the identity for every block that votes
    off = np.abs(gram - np.eye(gram.shape[1])).max(axis=(1, 2))
    sound = votes & (off < 0.5 / gram.shape[1])  # diagonally dominant, so the factor exists; False for NaN
    factors = np.linalg.cholesky(_or_identity(gram, sound))
    return np.linalg.inv(factors) @ rough, sound
