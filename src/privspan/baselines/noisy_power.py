"""The noisy power method (Hardt, Roth 2013; Hardt, Price 2014) with noise for the replacement of a whole row.

Each round multiplies a few orthonormal directions by A, adds Gaussian noise and orthonormalises again.  The published
noise hides one entry of the data; here a person is a row, and all rounds share one mu-GDP budget.
"""

from __future__ import annotations

import math

import numpy as np

from privspan._lib import checks
from privspan._lib.rounding import relative_error
from privspan.baselines._common import REPLACEMENT, Array, baseline, leading_range, open_table
from privspan.privacy import Part, Release, share_mu
from privspan.privacy.randomness import RandomLike
from privspan.sums.grid import SumBounds, gaussian_sum
from privspan.sums.lazy_gauss import UnitGram

MOST_ENTRIES = 2**27
"""Largest number of entries of a (d, directions) block."""


@baseline
def noisy_power(
    X: object,
    k: int,
    *,
    epsilon: float,
    delta: float,
    rounds: int | None = None,
    directions: int | None = None,
    rng: RandomLike = None,
) -> Release:
    """Find the leading subspace by subspace iteration with noise in every round.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row; rows are scaled to unit length, entries that are not finite count as 0.
    rounds : int, optional
        Passes over the data; the noise grows with its root.  By default ``2 + ceil(log10(d))``: enough where the
        eigenvalue gap is wide, which is where the method works at all.
    directions : int, optional
        Width of the block, at least k; by default ``min(d, 2 k)``.  Times d it must be at most 2^27.

    Returns
    -------
    Release
        Never abstains.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k and the options are
    public.  Rounding and the noise are exact.  Proof: docs/explanation/baselines.md, "The noisy power method".
    """
    table = open_table(X, k, epsilon=epsilon, delta=delta, rng=rng, widest=None)
    n, d = table.n, table.d
    rounds = 2 + math.ceil(math.log10(d)) if rounds is None else rounds
    width = min(d, 2 * table.k) if directions is None else directions
    checks.integer_at_least(1, rounds=rounds)
    checks.integer_at_least(table.k, directions=width)
    if width > d or width * d > MOST_ENTRIES:
        raise ValueError(f"`directions` must be at most d = {d}, and d times it at most {MOST_ENTRIES}; got {width}.")
    gram = UnitGram(table.rows)
    bounds = SumBounds(REPLACEMENT, gram.chunk_error(width), d * width, 1.02 * n)
    shares = share_mu(table.budget.mu, *[1.0] * rounds)
    block: Array = table.streams.public.standard_normal((d, width))
    sigma = 0.0
    for mu in shares:
        products = gram.products(contraction(block))
        block, sigma = gaussian_sum(products, (d, width), bounds, mu, table.streams.noise)
    found = leading_range(block, table.k)
    parts = [Part.gaussian(f"round {i + 1}", mu, table.budget.delta) for i, mu in enumerate(shares)]
    return table.release("noisy_power", found, *parts, rounds=int(rounds), directions=int(width), noise=sigma)


def contraction(block: Array) -> Array:
    """Return orthonormal directions of the block, scaled so that their operator norm is at most 1 for certain."""
    directions = np.linalg.qr(block)[0]  # (d, b)
    d, b = directions.shape
    defect = float(np.linalg.norm(directions.T @ directions - np.eye(b)))
    # ||V||² <= 1 + ||VᵀV - I||_F; the last term is what float64 may have hidden from the measurement.
    return np.asarray(directions / (1.0 + 1.01 * defect + 4.0 * b * relative_error(d + 2)))
