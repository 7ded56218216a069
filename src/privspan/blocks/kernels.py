"""The top-k basis, or the spectrum, of every block in a stack of small matrices.

The kernel is the small Gram matrix of the block, B Bᵀ (m, m), or Bᵀ B (d, d) for blocks longer than wide:
with eigenpairs (w, E) the basis is Bᵀ E / √w, followed by one (k, k) re-orthonormalisation. Blocks with more than
`LARGEST_GRAM` rows and columns, for which `eigh` would take longer than all the rest, get subspace iteration from a
fixed start instead. All arithmetic is float64 whatever the storage.

Every product and every decomposition is done per block, and a block that needs special care is redone on its own: see
`privspan.blocks.bases` for why.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Votes = NDArray[np.bool_]

RANK_TOLERANCE = 2.0**-42
"""A block votes only if its k-th squared singular value exceeds this share of its first, which rounding may make."""

LARGEST_GRAM = 96
"""Blocks with both sides longer than this are decomposed by subspace iteration: beyond, `eigh` takes most time."""

_EXTRA_DIRECTIONS, _PASSES = 4, 3  # time: of subspace iteration; the error shrinks by (s_{k+5}/s_k)² per pass
_SAFE_SQUARE = 2.0**600  # float64: sums of squares within [1/_SAFE_SQUARE, _SAFE_SQUARE] are not beyond its range

Kernel = Callable[[Array], tuple[Array, Votes, Votes]]  # values, who votes, and who was in range


def bases_of(blocks: Array, k: int) -> tuple[Array, Votes]:
    """Return the top-k basis of every block (c, m, d), and which blocks have one; k is at most m and d.

    The bases (c, k, d) have orthonormal rows; zeros for a block that does not vote.
    """
    kernel = _gram_bases if min(blocks.shape[1:]) <= LARGEST_GRAM else _iterated_bases
    return _with_care(blocks, lambda clean: kernel(clean, k))


def spectra_of(blocks: Array, count: int) -> tuple[Array, Votes]:
    """Return the `count` largest squared singular values of every block over its largest, and which blocks have any.

    Blocks (c, m, d) give squares (c, count) and votes (c,); `count` is at most m and d.
    """
    return _with_care(blocks, lambda clean: _spectrum(clean, count))


def _with_care(blocks: Array, kernel: Kernel) -> tuple[Array, Votes]:
    """Run the kernel on all blocks at once, then redo on its own every block whose numbers were unsafe."""
    with np.errstate(all="ignore"):
        values, votes, safe = kernel(blocks)
        for j in np.flatnonzero(~safe):
            values[j : j + 1], votes[j : j + 1], _ = kernel(_cleaned(blocks[j])[None])
    return values, votes


def _cleaned(block: Array) -> Array:
    """Turn gaps into zeros and scale by a power of two so that the largest entry is about 1."""
    clean = np.where(np.isfinite(block), block, 0.0)  # (m, d)
    exponent = int(np.frexp(np.abs(clean).max())[1])
    return np.ldexp(clean, -exponent)


def _gram_bases(blocks: Array, k: int) -> tuple[Array, Votes, Votes]:
    """Compute the top-k bases (c, k, d) of clean blocks (c, m, d); also which vote and which were in range."""
    gram, by_rows = _gram(blocks)  # (c, g, g)
    safe = _in_range(gram)
    squares, vectors = _each_alone(np.linalg.eigh, _or_identity(gram, safe))
    squares, vectors = squares[:, ::-1][:, :k], vectors[:, :, ::-1][:, :, :k]  # (c, k), (c, g, k)
    votes = safe & (squares[:, -1] > RANK_TOLERANCE * squares[:, 0])
    inverse_roots = 1.0 / np.sqrt(np.where(votes[:, None], squares, 1.0))  # (c, k)
    # Multiplying by B once more shrinks what E wrongly holds of the lower singular directions.
    left = vectors if by_rows else blocks @ (vectors * inverse_roots[:, None, :])  # (c, m, k)
    rough = (left * inverse_roots[:, None, :]).transpose(0, 2, 1) @ blocks  # (c, k, d)
    bases, sound = _orthonormal_rows(rough, votes)
    bases[~sound] = 0.0
    return bases, sound, safe


def _iterated_bases(blocks: Array, k: int) -> tuple[Array, Votes, Votes]:
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
    # Singular values (c, width) and right singular vectors (c, width, width).
    values, rotations = _each_alone(lambda some: np.linalg.svd(some, full_matrices=False)[1:], clean @ directions)
    votes = safe & (values[:, k - 1] ** 2 > RANK_TOLERANCE * values[:, 0] ** 2)
    bases = rotations[:, :k] @ directions.transpose(0, 2, 1)  # (c, k, d)
    bases[~votes] = 0.0
    return bases, votes, safe


def _spectrum(blocks: Array, count: int) -> tuple[Array, Votes, Votes]:
    """Compute the leading squared singular values of clean blocks, relative to the first."""
    gram, _ = _gram(blocks)
    safe = _in_range(gram)
    squares, _ = _each_alone(np.linalg.eigh, _or_identity(gram, safe))
    squares = np.maximum(squares[:, ::-1][:, :count], 0.0)  # (c, count)
    votes = safe & (squares[:, 0] > 0.0)
    return np.where(votes[:, None], squares / squares[:, :1], 0.0), votes, safe


def _gram(blocks: Array) -> tuple[Array, bool]:
    """Return the smaller Gram matrix of every block, and whether it is the one of the rows."""
    _, m, d = blocks.shape
    by_rows = m <= d
    transposed = blocks.transpose(0, 2, 1)
    return (blocks @ transposed if by_rows else transposed @ blocks), by_rows


def _in_range(gram: Array) -> Votes:
    """Tell which blocks were finite and of moderate size: the diagonal holds the sums of squares."""
    return _moderate(np.diagonal(gram, axis1=1, axis2=2).max(axis=1))  # the maximum is NaN if any is NaN


def _moderate(squares: Array) -> Votes:
    """Tell which sums of squares are finite, and far from over- and underflow."""
    return np.asarray((squares <= _SAFE_SQUARE) & (squares >= 1.0 / _SAFE_SQUARE))


def _or_identity(matrices: Array, keep: Votes) -> Array:
    """Replace the matrices not kept by the identity, so that one block cannot make a batch call fail."""
    if keep.all():
        return matrices
    return np.where(keep[:, None, None], matrices, np.eye(matrices.shape[1]))


def _each_alone(decompose: Callable[[Array], tuple[Array, Array]], matrices: Array) -> tuple[Array, Array]:
    """Decompose a batch; if one matrix fails, which fails the whole call, decompose them one by one.

    Whatever fails gets zeros for its values (c, w) and vectors (c, w, w), hence no vote.
    """
    try:
        return decompose(matrices)
    except np.linalg.LinAlgError:
        count, _, width = matrices.shape
        values, vectors = np.zeros((count, width)), np.zeros((count, width, width))
        for j in range(count):
            with suppress(np.linalg.LinAlgError):
                values[j], vectors[j] = (part[0] for part in decompose(matrices[j : j + 1]))
        return values, vectors


def _orthonormal_rows(rough: Array, votes: Votes) -> tuple[Array, Votes]:
    """Make nearly orthonormal rows (c, k, d) orthonormal to rounding, by the Cholesky factor of their Gram matrix."""
    gram = rough @ rough.transpose(0, 2, 1)  # (c, k, k), close to the identity for every block that votes
    off = np.abs(gram - np.eye(gram.shape[1])).max(axis=(1, 2))
    sound = votes & (off < 0.5 / gram.shape[1])  # diagonally dominant, so the factor exists; False for NaN
    factors = np.linalg.cholesky(_or_identity(gram, sound))
    return np.linalg.inv(factors) @ rough, sound
