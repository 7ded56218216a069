"""Simpler integer vectors that annihilate the same rows, by lattice reduction.

Lattice reduction (LLL, from python-flint) finds short vectors, but short need not mean simple: it may mix
three readable relations into three that nobody recognises.  So its vectors only join the ones it is given,
and the simplest independent vectors of both are kept.  Choosing them greedily gives the least total, as for
any choice of a basis from a pool of vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

_MOST_VECTORS = 200  # time
_MOST_COLUMNS = 1_000  # time
_MOST_ROW_BITS = 100_000_000  # of all entries of the rows together
_MOST_LATTICE_BITS = 5_000_000  # of all entries of the lattice basis; reducing it takes a second or two
_PRIME = 2**61 - 1  # exact: independent modulo a prime implies independent; the converse is not relied on


def is_cheap(vectors: int, columns: int) -> bool:
    """Return whether it is worth while to look for simpler vectors in a problem of this size."""
    return 1 < vectors <= _MOST_VECTORS and columns <= _MOST_COLUMNS


def simplified(
    vectors: Sequence[Sequence[int]],
    rows: Sequence[Sequence[int]],
    most_bits: int = _MOST_LATTICE_BITS,
    prime: int = _PRIME,
) -> list[list[int]]:
    """Return as many independent vectors (m, columns) that annihilate the rows, the simplest that were found.

    Fewest nonzeros first, then the smallest sum of magnitudes.  `vectors` are a rational basis of those that
    annihilate the independent `rows` (columns - m, columns), and the result when python-flint is not installed or the
    numbers are too long for the reduction.
    """
    given = [list(vector) for vector in vectors]
    try:
        import flint
    except ImportError:
        return given
    if _bits(rows) > _MOST_ROW_BITS:
        return given
    # The Hermite form of the transposed rows is U rows' = [T; 0] with U unimodular, so the last rows of U are a basis
    # of all integer vectors that annihilate the rows.
    lattice = _integers(flint.fmpz_mat(rows).transpose().hnf(True)[1])[len(rows) :]
    if _bits(lattice) > most_bits:
        return given
    proposed = _integers(flint.fmpz_mat(lattice).lll())
    kept = _first_independent(flint, sorted(given + proposed, key=_simplicity), prime)
    # If the prime divides too much, settle for the better of the two.
    return (
        kept if len(kept) == len(given) else min(given, proposed, key=lambda basis: _simplicity([*chain(*basis)])[:2])
    )


def _first_independent(flint: Any, vectors: list[list[int]], prime: int) -> list[list[int]]:
    """Return every vector that is independent, modulo the prime, of the ones before it."""
    reduced, rank = flint.nmod_mat(flint.fmpz_mat(vectors).transpose(), prime).rref()
    return [vectors[next(j for j, entry in enumerate(row) if int(entry))] for row in reduced.tolist()[:rank]]


def _integers(matrix: Any) -> list[list[int]]:
    return [[int(entry) for entry in row] for row in matrix.tolist()]


def _bits(rows: Sequence[Sequence[int]]) -> int:
    longest = max(entry.bit_length() for row in rows for entry in row)
    return len(rows) * len(rows[0]) * longest


def _simplicity(vector: Sequence[int]) -> tuple[int, int, list[int]]:
    return sum(1 for entry in vector if entry), sum(map(abs, vector)), [-abs(entry) for entry in vector]
