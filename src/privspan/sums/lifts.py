"""Persons in second moments: divided by the size of what they bring, not by the number of their rows.

The average of the outer products of a person's unit rows has Frobenius norm 1 only if all of them are alike; rows
that point elsewhere make it smaller, down to 1/sqrt(width), and leave room in the sensitivity.  So every person's
rows are lifted by a factor of their own until the norm is that of a single row: positive semidefinite matrices of
norm at most 1 differ by at most sqrt(2), which is what the noise is made for.  Rows that a look shortens, each to a
part of its own, are lifted by the same factor, which provides for every such part.
Proof: docs/explanation/several-rows.md, lemma 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privspan._lib.rounding import relative_error
from privspan.privacy.run import Run
from privspan.rows.compressed import inner_products
from privspan.rows.partitioned_rows import AnyRows, PerRow, known_chunks
from privspan.rows.scaling import Piece
from privspan.rows.unit import CHUNK_ROWS
from privspan.sums.grid import SumBounds, gaussian_sum

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Lift:
    """Factors of persons' rows in a second moment.

    Attributes
    ----------
    factors : PersonValues
        One for each row, the same for all rows of a person, from 1 (or a little less) to width to the power 1/4.
    most : float
        Bound on the square of a factor: sqrt(width).
    """

    factors: PerRow
    most: float


def person_lift(rows: AnyRows, constant: float) -> Lift | None:
    """Return the factors for rows (f u, a), 0 <= f <= 1; None where every person has one row.

    Parameters
    ----------
    rows : Rows
        Of length at most 1.
    constant : float
        The entry a that a second moment appends to every row.
    """
    if rows.width == 1:
        return None
    width, (_, d), most = rows.width, rows.shape, math.sqrt(rows.width)
    size = 1.0 + constant * constant
    # More than the error of the norm below: every inner product is off by gamma_d, or as many times that as the parts
    # of sparse rows are long, and there are width² of them.
    slack = 1.1 * width * max(size, rows.rounding**2) * relative_error(d + width * width + 8)

    def factors(piece: Piece) -> Array:
        inner = _inner_products(piece, width) + constant * constant  # (persons, width, width)
        inner = _largest(inner, constant * constant)
        norms = np.sqrt(np.einsum("pij,pij->p", inner, inner)) + slack
        squares = np.minimum(width * size / norms, most)  # (persons,)
        return np.repeat(np.sqrt(squares) * (1.0 - 4.0 * 2.0**-53), width)

    return Lift(rows.map_rows(factors), most)


def _inner_products(piece: Piece, width: int) -> Array:
    """Return those of the rows of each person, from these rows alone; (persons, width, width)."""
    if hasattr(piece, "inner_products"):
        return np.asarray(piece.inner_products(width))
    if not isinstance(piece, np.ndarray):
        return inner_products(piece, width)
    persons = piece.reshape(-1, width, piece.shape[1])
    return np.asarray(persons @ persons.transpose(0, 2, 1))


def _largest(inner: Array, square: float) -> Array:
    """Bound the inner products <u, v> + a² of a person's rows, also where a look shortens the rows.

    Then they are p <u, v> + a² with some p from 0 to 1: no larger than at one of the two ends.
    """
    return np.maximum(np.abs(inner), square)


def released_weight(lift: Lift, n: int, mu: float, run: Run) -> tuple[float, float]:
    """Release the sum of the squared factors, one per person, and its noise: what stands for the number of rows.

    Guarantee
    ---------
    mu-GDP for replacing one person: what a person adds to n lies between 0 and sqrt(width) - 1.
    Proof: docs/explanation/several-rows.md, lemma 3.
    """
    error = lift.most * CHUNK_ROWS * relative_error(CHUNK_ROWS + 4)
    bounds = SumBounds(lift.most - 1.0, error, 1, 1.1 * n * lift.most)
    noisy, sigma = gaussian_sum(known_chunks(_above_one, lift.factors), (1,), bounds, mu, run)
    return n + min(max(float(noisy[0]), 0.0), (lift.most - 1.0) * n), sigma


def _above_one(factors: Array) -> Array:
    return np.array([np.maximum(factors * factors - 1.0, 0.0).sum()])
