"""The first half of stable leverage: private lengths and shares, from noisy counts of small groups of records.

Groups are disjoint and public, and what is counted of a group is a function of its own records, so a record moves one
count by one, or one item from one bin to another. Proofs: ``docs/explanation/stable-leverage.md``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privspan.privacy.noise import rounded_normal
from privspan.privacy.randomness import BitSource

Array = NDArray[np.float64]


def each_alone(function: Callable[..., Array], *stacks: Array) -> Array:
    """Apply a batched routine of LAPACK that returns one number per matrix; where it fails, that number is NaN.

    A batch fails as a whole when one matrix does, which would let a record decide about all the others.
    """
    try:
        return function(*stacks)
    except np.linalg.LinAlgError:
        if len(stacks[0]) == 1:
            return np.full(1, np.nan)
        return np.concatenate([each_alone(function, *(s[i : i + 1] for s in stacks)) for i in range(len(stacks[0]))])


def smallest_squares(grams: Array) -> Array:
    """Smallest eigenvalue of each Gram matrix (groups, m, m): the squared length of what m records have too much."""
    return each_alone(lambda some: np.linalg.eigvalsh(some)[:, 0], grams)


def noisy_histogram(bins: NDArray[np.int64], size: int, mu: float, bits: BitSource) -> NDArray[np.int64]:
    """Count the bins from 0 to size − 1 and add rounded Gaussian noise; other bins count nowhere.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours if a record decides one bin alone: the counts move by at most √2.
    Proof: ``docs/explanation/stable-leverage.md``.
    """
    counts = np.bincount(bins[(bins >= 0) & (bins < size)], minlength=size)
    return counts + rounded_normal(size, np.sqrt(2.0) / mu * (1 + 1e-12), bits)


def log_bins(squares: Array, per_octave: int, size: int) -> NDArray[np.int64]:
    """Bin of each squared length below 1: bin j holds lengths from 2^(−(j+1)/p) to 2^(−j/p); −1 for NaN."""
    missing = np.isnan(squares)
    depth = np.floor(-0.5 * per_octave * np.log2(np.where(missing, 1.0, np.maximum(squares, 2.0**-60))))
    return np.where(missing, -1, np.clip(depth, 0, size - 1)).astype(np.int64)


def released_tail(squares: Array, mu: float, bits: BitSource, per_octave: int) -> float:
    """Release a length that most of the given squared lengths stay below.

    It is the upper edge of the first bin of a noisy log-histogram that clearly holds a good share.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours if a record decides one of the squared lengths alone. The rest is
    post-processing. Proof: ``docs/explanation/stable-leverage.md``.
    """
    size = 26 * per_octave
    counts = noisy_histogram(log_bins(squares, per_octave, size), size, mu, bits)
    bar = max(3.6 * np.sqrt(2.0) / mu, 0.08 * len(squares))
    clear = np.flatnonzero(counts >= bar)
    first = int(clear[0]) if len(clear) else int(np.argmax(counts))
    return float(2.0 ** (-first / per_octave))


def released_share(long: int, groups: int, mu: float, bits: BitSource) -> float:
    """Release which share of disjoint groups is long, less one standard deviation of its noise.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours if a record decides one group alone: the count moves by at most 1.
    Proof: ``docs/explanation/stable-leverage.md``.
    """
    sigma = (1 + 1e-12) / mu
    return float(long + rounded_normal(1, sigma, bits)[0] - sigma) / max(groups, 1)
