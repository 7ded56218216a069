"""A private random range finder (after Hardt, Roth 2012 and Arora, Braverman, Upadhyay 2018).

The rows are multiplied by a public random matrix, Y = sum x (Ωᵀ x)ᵀ = A Ω, which has few columns and the range of A.
One noisy release of Y is enough: its leading left singular vectors are the result.  Each sketch Ωᵀ x is clipped to a
public length, so that the guarantee holds for every Ω, not just with high probability over it.
"""

from __future__ import annotations

import math

import numpy as np

from privspan._lib import checks
from privspan._lib.rounding import relative_error
from privspan.baselines._common import Array, baseline, leading_range, open_table
from privspan.baselines.noisy_power import MOST_ENTRIES
from privspan.privacy import Release
from privspan.privacy.randomness import RandomLike
from privspan.rows.unit import CHUNK_ROWS
from privspan.sums.grid import SumBounds, gaussian_sum


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
        Columns of the sketch, at least k; by default ``max(4 k, k + 10)``.  Times d it must be at most 2^27.

    Returns
    -------
    Release
        Never abstains.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set, and for every value of the
    random matrix, which may be published; n, d, k and the options are public.  Rounding and the noise are exact.
    Proof: docs/explanation/baselines.md, "The noisy range finder".
    """
    table = open_table(X, k, epsilon=epsilon, delta=delta, rng=rng, widest=None)
    d = table.d
    width = max(4 * table.k, table.k + 10) if sketch is None else sketch
    checks.integer_at_least(table.k, sketch=width)
    if width * d > MOST_ENTRIES:
        raise ValueError(f"`sketch` times d must be at most {MOST_ENTRIES}; got {width} times {d}.")
    # Sketches of unit vectors have length about 1, and are clipped to it.
    public_matrix: Array = table.streams.public.standard_normal((d, width)) / math.sqrt(width)
    product_error = relative_error(d) * float(np.linalg.norm(public_matrix)) * 1.01 + relative_error(width + 16)
    chunk_error = 1.01 * CHUNK_ROWS * (product_error + relative_error(CHUNK_ROWS))
    bounds = SumBounds(sensitivity=2.0, chunk_error=chunk_error, entries=d * width, largest=1.02 * table.n)
    mu = table.budget.mu
    products = table.rows.map_chunks(lambda rows: rows.T @ clipped_sketches(rows @ public_matrix))
    noisy, sigma = gaussian_sum(products, (d, width), bounds, mu, table.streams.noise)
    found, part = leading_range(noisy, table.k), table.whole("noisy sketch", mu)
    return table.release("noisy_range_finder", found, part, sketch=int(width), noise=sigma)


def clipped_sketches(sketches: Array) -> Array:
    """Shorten the rows that are longer than 1 to length 1."""
    lengths = np.sqrt(np.einsum("ij,ij->i", sketches, sketches))
    return np.asarray(sketches / np.maximum(lengths, 1.0)[:, None])
