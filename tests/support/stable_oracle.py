"""Slow, exact stable leverage in rational arithmetic, straight from the definitions; for a handful of items."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

Matrix = list[list[Fraction]]


def rational(matrix: NDArray[np.float64]) -> Matrix:
    return [[Fraction(float(value)) for value in row] for row in matrix]


def product(left: Matrix, right: Matrix) -> Matrix:
    columns = list(zip(*right, strict=True))
    return [[_dot(row, column) for column in columns] for row in left]


def _dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def transpose(matrix: Matrix) -> Matrix:
    return [list(column) for column in zip(*matrix, strict=True)]


def inverse(matrix: Matrix) -> Matrix:
    """Gauss–Jordan; the matrices here are positive definite, so no pivoting is needed."""
    size = len(matrix)
    work = [list(row) + [Fraction(int(i == j)) for j in range(size)] for i, row in enumerate(matrix)]
    for i in range(size):
        pivot = work[i][i]
        work[i] = [value / pivot for value in work[i]]
        for j in range(size):
            if j != i and work[j][i]:
                factor = work[j][i]
                work[j] = [a - factor * b for a, b in zip(work[j], work[i], strict=True)]
    return [row[size:] for row in work]


def is_psd(matrix: Matrix) -> bool:
    """Decide positive semidefiniteness by symmetric elimination."""
    work = [list(row) for row in matrix]
    for i in range(len(work)):
        pivot = work[i][i]
        if pivot < 0 or (pivot == 0 and any(work[i][j] for j in range(i, len(work)))):
            return False
        if pivot == 0:
            continue
        for j in range(i + 1, len(work)):
            factor = work[j][i] / pivot
            work[j] = [a - factor * b for a, b in zip(work[j], work[i], strict=True)]
    return True


def leverage_matrices(items: list[Matrix], chosen: set[int], ridge: float) -> dict[int, Matrix]:
    """Yᵀ (A_S + λI)⁻¹ Y for the items of S; an item is (width, d), its columns as rows."""
    d = len(items[0][0])
    total = [[Fraction(ridge) * int(i == j) for j in range(d)] for i in range(d)]
    for index in chosen:
        outer = product(transpose(items[index]), items[index])
        total = [[a + b for a, b in zip(x, y, strict=True)] for x, y in zip(total, outer, strict=True)]
    solved = inverse(total)
    return {i: product(product(items[i], solved), transpose(items[i])) for i in chosen}


def at_most(matrix: Matrix, threshold: Fraction) -> bool:
    """Whether the operator norm of a positive semidefinite matrix is at most the threshold, exactly."""
    size = len(matrix)
    return is_psd([[threshold * int(i == j) - matrix[i][j] for j in range(size)] for i in range(size)])


def largest_good_set(items: list[Matrix], ridge: float, threshold: Fraction) -> set[int]:
    """Return the largest set whose items all have leverage at most the threshold."""
    chosen = set(range(len(items)))
    while chosen:
        matrices = leverage_matrices(items, chosen, ridge)
        bad = {i for i in chosen if not at_most(matrices[i], threshold)}
        if not bad:
            break
        chosen -= bad
    return chosen


def levels(items: list[Matrix], ridge: float, highest: int) -> list[int]:
    """The last H up to `highest` whose set S_H holds the item."""
    result = [0] * len(items)
    for level in range(1, highest + 1):
        for index in largest_good_set(items, ridge, Fraction(1, level)):
            result[index] = level
    return result
