"""The first half of stable leverage: private lengths and shares, from noisy counts of small groups of records.

Groups are disjoint and public, and what is counted of a group is a function of its own records, so a record moves one
count by one, or one item from one bin to another. Proofs: ``docs/explanation/stable-leverage.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privspan.privacy.run import Run
from privspan.stable.tuning import STABLE, StableTuning

Array = NDArray[np.float64]

_PER_OCTAVE = 3  # bins, a fixed number of them: the histogram has exact counts whatever the lengths are
_BINS = 26 * _PER_OCTAVE  # what lies beyond counts in the last: exact counts
# An octave to either side of a bin, what is nearer counts more; of exact counts.
_WINDOW = np.array([1, 2, 3, 4, 3, 2, 1])


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


def noisy_histogram(bins: NDArray[np.int64], size: int, mu: float, run: Run) -> Array:
    """Count the bins from 0 to size − 1 and add rounded Gaussian noise; other bins count nowhere.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours if a record decides one bin alone: the counts move by at most √2.
    Proof: ``docs/explanation/stable-leverage.md``.
    """
    counts = np.bincount(bins[(bins >= 0) & (bins < size)], minlength=size)
    return run.gaussian(counts.astype(np.float64), math.sqrt(2.0) / mu * (1 + 1e-12), 1.0)


def log_bins(squares: Array) -> NDArray[np.int64]:
    """Bin of each squared length below 1: bin j holds lengths from 2^(−(j+1)/3) to 2^(−j/3); −1 for NaN."""
    missing = np.isnan(squares)
    depth = np.floor(-0.5 * _PER_OCTAVE * np.log2(np.where(missing, 1.0, np.maximum(squares, 2.0**-60))))
    return np.where(missing, -1, np.clip(depth, 0, _BINS - 1)).astype(np.int64)


def released_tail(squares: Array, mu: float, run: Run, tuning: StableTuning = STABLE) -> float:
    """Release a length that most of the given squared lengths stay below, about four of five.

    Where the lengths are is read off a noisy log-histogram through a window of an octave to either side, since a
    single bin of few groups drowns in the noise; which of them it is, off the sums over that window from above.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours if a record decides one of the squared lengths alone. The rest is
    post-processing. Proof: ``docs/explanation/stable-leverage.md``.
    """
    counts = noisy_histogram(log_bins(squares), _BINS, mu, run)
    centre = int(np.argmax(np.convolve(counts, _WINDOW, "same")))
    start = max(0, centre - _PER_OCTAVE)
    longer = np.cumsum(counts[start : centre + _PER_OCTAVE + 1])  # than the lower edge of each bin
    longer = np.maximum.accumulate(np.concatenate([[0], longer]))
    place = start + np.interp(tuning.tail_longer * longer[-1], longer, np.arange(len(longer))) - tuning.tail_caution
    return float(2.0 ** (-place / _PER_OCTAVE))


def released_share(long: int, groups: int, mu: float, run: Run) -> float:
    """Release which share of disjoint groups is long, less one standard deviation of its noise.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours if a record decides one group alone: the count moves by at most 1.
    Proof: ``docs/explanation/stable-leverage.md``.
    """
    sigma = (1 + 1e-12) / mu
    noisy = run.gaussian(np.array([float(long)]), sigma, 1.0)
    return float(noisy[0] - sigma) / max(groups, 1)
