"""Leverages and top-k spaces in ball arithmetic: slow, and right whatever the data are.

`stable.leverage` and what builds on it compute in float64 with bounds on the error. Should such a bound ever be too
large for its purpose, or LAPACK report a failure, the same numbers are computed here with python-flint's interval
matrices, whose results enclose the exact ones; the precision is doubled until the enclosure is narrow enough. Nothing
here can fail. See ``docs/explanation/stable-leverage.md``.
"""

from __future__ import annotations

import math

import flint
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_FIRST_PRECISION = 128  # bits; doubled until balls are small enough
_BASIS_RADIUS = 2.0**-70  # bound of the balls, far below float64
_GROWTH = 1.375  # proof: of x in [0, 1/2] under x(3 - x²)/2, at least


def ball_leverage_blocks(gram: Array, width: int, ridge: float, error: float) -> Array:
    """Blocks (t, w, w) whose norms are the leverages of all items of an exact Gram matrix, within half of `error`.

    In dual form they are the diagonal blocks of ``I - ridge (K + ridge I)^-1``. K is positive semidefinite, so the
    inverse exists and some precision suffices.
    """
    precision = _FIRST_PRECISION
    while (blocks := _narrow_blocks(gram, width, ridge, error / (2 * width), precision)) is None:
        precision *= 2
    return blocks


def _narrow_blocks(gram: Array, width: int, ridge: float, radius: float, precision: int) -> Array | None:
    """Centres of the enclosures of the diagonal blocks (t, w, w), or None if one is wider than `radius`."""
    size = len(gram)
    blocks = np.empty((size // width, width, width))
    with flint.ctx.workprec(precision):
        shifted = flint.arb_mat(gram.tolist()) + ridge * _identity(size)
        try:
            inverse = shifted.inv()
        except ZeroDivisionError:  # not seen to be invertible at this precision
            return None
        for item, i, j in np.ndindex(*blocks.shape):
            entry = int(i == j) - ridge * inverse[item * width + i, item * width + j]
            if float(entry.rad()) > radius:
                return None
            blocks[item, i, j] = float(entry.mid())
    return blocks


def ball_top_space(matrix: Array, k: int, low: float, high: float) -> Array | None:
    """Orthonormal basis (N, k) of the eigenvectors above `high`, rounded once; None if the gap is not there.

    The gap is there if k eigenvalues of the positive semidefinite matrix are at least `high` and the others at most
    `low`. Newton–Schulz steps x(3 - x²)/2 then carry the eigenvalues to ±1, on whichever side of the middle they are.
    """
    precision = _FIRST_PRECISION
    while True:
        with flint.ctx.workprec(precision):
            sign = _sign_function(matrix, low, high, precision)
            size = sign.nrows()
            astray = abs(size - (sign * sign).trace()), abs(sign.trace() - (2 * k - size))  # 0 if the gap is there
            if astray[0] > 2.0**-20 or astray[1] > 0.5:
                return None
            if astray[0] < 2.0**-10 and astray[1] < 1.0:
                basis = _orthonormal_columns((sign + _identity(size)) / 2, k, precision)
                if basis is not None:
                    return basis
        precision *= 2


def _identity(size: int) -> flint.arb_mat:
    return flint.arb_mat(size, size, np.eye(size).ravel().tolist())


def _sign_function(matrix: Array, low: float, high: float, precision: int) -> flint.arb_mat:
    """Enclose the image of the matrix after as many steps as carry a gap to ±1 within 2^-precision."""
    size, middle = len(matrix), (low + high) / 2
    bound = 1.01 * max(float(np.trace(matrix)), middle)  # at least the norm of what follows
    sign = (flint.arb_mat(matrix.tolist()) - middle * _identity(size)) / bound
    steps = math.log(bound / (high - low)) / math.log(_GROWTH) + math.log2(precision) + 3
    for _ in range(math.ceil(steps)):
        sign = sign * (3 * _identity(size) - sign * sign) / 2
    return sign


def _orthonormal_columns(projector: flint.arb_mat, k: int, precision: int) -> Array | None:
    """Gram–Schmidt on columns of a projector of rank k, which is known to 2^-precision beside its enclosure.

    What is left of it is a projector of lower rank, so its largest diagonal entry is at least 1/N.
    """
    size = projector.nrows()
    projector += flint.arb_mat(size, size, [flint.arb(0, 2.0**-precision)] * size**2)
    basis = np.empty((size, k))
    for column in range(k):
        pivot = max(range(size), key=lambda i: float(projector[i, i].mid()))
        if not projector[pivot, pivot] > 0:
            return None
        root = projector[pivot, pivot].sqrt()
        found = flint.arb_mat(size, 1, [projector[i, pivot] / root for i in range(size)])
        if max(float(entry.rad()) for entry in found.entries()) > _BASIS_RADIUS:
            return None
        basis[:, column] = [float(entry.mid()) for entry in found.entries()]
        projector -= found * found.transpose()
    return basis
