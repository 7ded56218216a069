"""Typical lengths and clip radii by counting how many rows are longer.

A count changes by at most one when a record is replaced, whatever the lengths are, so no bound on the data is needed.
`bisected_radius` halves a geometric list of radii by one noisy count after the other; which radius is asked about
next depends on earlier answers only.  Proof: docs/explanation/everyday-tables.md, lemma 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from privspan.privacy import share_mu
from privspan.privacy.run import Run
from privspan.rows.partitioned_rows import AnyRows, PerRow, count_error, known_chunks, per_row
from privspan.sums.grid import SumBounds, gaussian_sum

Array = NDArray[np.float64]

LONGEST = 2.0**64
"""Lengths beyond this are taken for this: everyday-tables, lemma 1."""

_FURTHER = 2.0  # lemma 1 bounds what lies beyond a count: from so many times a radius on


@dataclass(frozen=True)
class Radius:
    """A radius between two neighbours of the list, and about how many rows are longer.

    Attributes
    ----------
    radius : float
        Midway between them, in octaves.
    below : float
        The lower one, which enough rows exceed, but for noise.
    longer : float
        Noisy, from the counts at the neighbours that were asked for.
    longer_std : float
        Standard deviation of the noise of one count.
    lowest : bool
        Whether it is the first of the list, so that a shorter one might have been found in a longer list.
    counts : tuple of (float, float)
        All radii that were asked about, rising from 0, and how many rows exceed each, with noise.
    """

    radius: float
    below: float
    longer: float
    longer_std: float
    lowest: bool
    counts: tuple[tuple[float, float], ...]

    def most_beyond(self) -> tuple[float, float] | None:
        """Return what rows can have between the radius and a further one, and that one; None if none was asked about.

        The first is the sum of squared lengths, up to the second, less squared radii: no more, but for two deviations
        of the counts.  The number of rows longer than r falls with r, so between two radii it is no more than the
        count at the lower one.
        """
        furthest = math.inf
        for radius, _ in self.counts:
            if radius >= _FURTHER * self.radius:
                furthest = min(furthest, radius)
        if math.isinf(furthest):
            return None
        most, beyond = math.inf, 0.0
        for (radius, count), (further, _) in pairwise(self.counts):
            most = min(most, max(count, 0.0) + 2.0 * self.longer_std)
            low, high = max(radius, self.radius), min(further, furthest)
            beyond += most * max(high**2 - low**2, 0.0)
        return beyond, furthest


def lengths_of(rows: AnyRows) -> PerRow:
    """Return the length of every row before it was scaled, at most `LONGEST`; (n,)."""
    return per_row(partial(np.minimum, LONGEST), rows.lengths())


def bisected_radius(
    lengths: PerRow,
    wanted: float,
    low: float,
    steps: int,
    mu: float,
    run: Run,
    *,
    far: float,
    per_octave: int = 2,
) -> Radius:
    """Release about the largest of the radii ``low * 2**(j / per_octave)``, j < 2**steps, that `wanted` rows exceed.

    Parameters
    ----------
    lengths : (n,) array, RowValues or PersonValues
        One number per record, each from its own record and released values.
    wanted, low : float
        Public or released.
    steps : int
        Number of counts.
    mu : float
        Privacy of all of them together.
    run : Run
        Draws the noise.
    far : float
        So many rows must exceed a radius for steps of more than an octave to go beyond it: where that is more than
        `wanted`, noise leads astray less often, and up to so many rows may exceed what is found.
    per_octave : int
        How many radii there are per factor of two.

    Returns
    -------
    Radius
        Between the one that was found and the next.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours, whatever the lengths are.
    Proof: docs/explanation/everyday-tables.md, lemma 1.
    """
    bounds = SumBounds(1.0, count_error(lengths), 1, 1.1 * len(lengths))
    first, last, seen, sigma = 0, 2**steps - 1, {}, math.inf
    for share in share_mu(mu, *[1.0] * steps):
        middle = (first + last + 1) // 2
        counts = known_chunks(partial(_count_longer, radius=low * 2.0 ** (middle / per_octave)), lengths, exact=True)
        noisy, sigma = gaussian_sum(counts, (1,), bounds, share, run)
        seen[middle] = float(noisy[0])
        bar = far if middle - first > per_octave else wanted
        first, last = (middle, last) if noisy[0] >= bar else (first, middle - 1)
    nearby, asked = [], [(0.0, float(len(lengths)))]
    for j in sorted(seen):
        asked.append((low * 2.0 ** (j / per_octave), seen[j]))
        if j in (first, first + 1):
            nearby.append(seen[j])
    longer = min(max(float(np.mean(nearby)), 0.0), float(len(lengths)))
    radius, below = low * 2.0 ** ((first + 0.5) / per_octave), low * 2.0 ** (first / per_octave)
    return Radius(radius, below, longer, sigma, first == 0, tuple(asked))


def _count_longer(lengths: Array, radius: float) -> Array:
    return np.array([np.count_nonzero(lengths > radius)], dtype=np.float64)
