"""Leverages in ball arithmetic: slow, and right whatever the data are.

`privspan.leverage` computes leverages in float64 with a bound on their error. Should that bound ever be too large for
its purpose, the same numbers are computed here with python-flint's interval matrices, whose results enclose the exact
ones; the precision is doubled until the enclosure is narrow enough. See ``docs/explanation/stable-leverage.md``.
"""

from __future__ import annotations

import flint
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

_FIRST_PRECISION = 128


def ball_leverages(gram: Array, width: int, ridge: float, error: float) -> Array:
    """Leverages of all items of an exact Gram matrix (t * width, t * width), each within `error`.

    In dual form they are the norms of the diagonal blocks of ``I - ridge (K + ridge I)^-1``. K is positive
    semidefinite, so the inverse exists and some precision suffices.
    """
    precision = _FIRST_PRECISION
    while True:
        blocks = _narrow_blocks(gram, width, ridge, error / (2 * width), precision)
        if blocks is not None:
            return np.asarray(np.linalg.eigvalsh(blocks)[:, -1])
        precision *= 2


def _narrow_blocks(gram: Array, width: int, ridge: float, radius: float, precision: int) -> Array | None:
    """Centres of the enclosures of the diagonal blocks (t, w, w), or None if one is wider than `radius`."""
    size = len(gram)
    blocks = np.empty((size // width, width, width))
    with flint.ctx.workprec(precision):
        shifted = flint.arb_mat(gram.tolist()) + ridge * flint.arb_mat(size, size, np.eye(size).ravel().tolist())
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
