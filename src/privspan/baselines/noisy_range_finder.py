"""A private random range finder (after Hardt, Roth 2012 and Arora, Braverman, Upadhyay 2018).

The rows are multiplied by public random directions, Y = sum x (Vᵀ x)ᵀ = A V: few columns, and the range of A.
One noisy release of Y is enough: its leading left singular vectors are the result.  Random directions see little of
any fixed row, so each sketch Vᵀ x is clipped to the length that it has on average, and the noise is for that; the
guarantee holds for all V, not just with high probability over them.
"""

from __future__ import annotations

import math

import numpy as np

from privspan._lib import checks
from privspan._lib.errors import Parameter, ParameterError
from privspan._lib.rounding import relative_error
from privspan.baselines._common import Array, Table, baseline, leading_range, open_table
from privspan.baselines._tuning import RIVALS
from privspan.privacy import Release
from privspan.privacy.randomness import RandomLike
from privspan.rows.unit import CHUNK_ROWS
from privspan.sums.grid import SumBounds, gaussian_sum

MOST_ENTRIES = 2**27
"""Largest number of entries of a (d, directions) block."""

_SAFE_SIDE = 1.0 + 2.0**-50  # rounding: more than a few operations can be off


@baseline
def noisy_range_finder(
    X: object, k: int, *, epsilon: float, delta: float, sketch: int | None = None, rng: RandomLike = None
) -> Release:
    """Release a noisy sketch of the second moment and take its leading left singular vectors.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row; rows are scaled to unit length, entries that are not finite count as 0.
    sketch : int, optional
        Columns of the sketch, from k to d; by default ``32 k``, or d if that is less.  Times d it must be at most
        2^27; before the default exceeds that it falls, down to ``k + 10``.

    Returns
    -------
    Release
        Never abstains.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set, and for every value of the
    random directions, which may be published; n, d, k and the options are public.  Rounding and the noise are exact.
    Proof: docs/explanation/baselines.md, "The noisy range finder".
    """
    with open_table(X, k, epsilon=epsilon, delta=delta, rng=rng, widest=None) as table:
        width = default_width(table, RIVALS.columns) if sketch is None else sketch
        check_width(table, sketch=width)
        mu = table.budget.mu
        noisy, sigma = noisy_sketch(table, width, mu)
        found, part = leading_range(noisy, table.k), table.whole("noisy sketch", mu)
        return table.release("noisy_range_finder", found, part, sketch=int(width), noise=sigma)


def default_width(table: Table, columns: int) -> int:
    """Return so many columns for each dimension, or fewer where d or the limit on the entries asks for it."""
    return min(table.d, max(table.k + 10, min(columns * table.k, MOST_ENTRIES // table.d)))


def check_width(table: Table, **width: int) -> None:
    """Refuse a block of fewer columns than k, of more than d, or with too many entries."""
    checks.integer_at_least(table.k, **width)
    ((name, columns),) = width.items()
    if columns > table.d or columns * table.d > MOST_ENTRIES:
        limits = f"at most d = {table.d}, and d times it at most {MOST_ENTRIES}"
        raise ParameterError(
            "{name} must be {limits}; got {columns}.", name=Parameter(name), limits=limits, columns=columns
        )


def noisy_sketch(table: Table, width: int, mu: float) -> tuple[Array, float]:
    """Release the sum of x clip(Vᵀ x)ᵀ for public random directions V, (d, width), and tell its noise."""
    directions = contraction(table.run.streams.public.standard_normal((table.d, width)))
    radius = math.sqrt(width / table.d)  # root of the mean square length of the sketch of a unit row
    product_error = relative_error(table.d) * float(np.linalg.norm(directions)) * 1.01 + relative_error(width + 16)
    chunk_error = 1.01 * CHUNK_ROWS * (product_error + relative_error(CHUNK_ROWS))
    bounds = SumBounds(sketch_sensitivity(radius), chunk_error, table.d * width, 1.02 * table.n)
    products = table.rows.map_chunks(lambda rows: rows.T @ clipped_sketches(rows @ directions, radius))
    return gaussian_sum(products, (table.d, width), bounds, mu, table.run)


def sketch_sensitivity(radius: float) -> float:
    """Bound the change of the sum of x clip(Vᵀ x)ᵀ under replacement, for a radius of at most 1: lemma 8."""
    square = radius * radius
    change = 2.0 * radius * math.sqrt(1.0 - square) if 3.0 * square <= 1.0 else (1.0 + square) / math.sqrt(2.0)
    return change * _SAFE_SIDE


def clipped_sketches(sketches: Array, radius: float) -> Array:
    """Shorten the rows that are longer than the radius to it."""
    lengths = np.sqrt(np.einsum("ij,ij->i", sketches, sketches))
    return np.asarray(sketches / np.maximum(lengths / radius, 1.0)[:, None])


def contraction(block: Array) -> Array:
    """Return orthonormal directions of the block, scaled so that their operator norm is at most 1 for certain."""
    directions = np.linalg.qr(block)[0]  # (d, b)
    d, b = directions.shape
    defect = float(np.linalg.norm(directions.T @ directions - np.eye(b)))
    # ||V||² <= 1 + ||VᵀV - I||_F; the last term is what float64 may have hidden from the measurement.
    return np.asarray(directions / (1.0 + 1.01 * defect + 4.0 * b * relative_error(d + 2)))
