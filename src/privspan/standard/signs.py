"""Rank correlations by signs of pairs: in which columns is one row of a pair larger than the other.

A pair of rows becomes the vector of the signs of its differences, scaled to unit length.  That needs no unit, no
centre, no bound and no clip: any increasing change of a column leaves it as it is, and one extreme cell counts as
any other.  The sum of outer products, divided by its own diagonal, is Kendall's tau (tau-b, pairs weighted by how
many columns differ).  Averaging over several pairings costs no privacy, as a replacement changes one pair of each.
Proof: docs/explanation/standardised.md, lemma 1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privspan.privacy.run import Run
from privspan.rows.table import Table
from privspan.standard.correlations import NoisyMoment
from privspan.sums.grid import GridSum, SumBounds, gaussian_symmetric, grid_total, noise_level, upper_triangle
from privspan.sums.lifts import person_lift
from privspan.sums.looks import AugmentedGram
from privspan.sums.pairs import pair_signs

Array = NDArray[np.float64]


@dataclass(frozen=True)
class SignTuning:
    """Of the pairings; chosen by the formula of `sampling_variance`: docs/explanation/standardised.md."""

    most: int = 16  # pairings: sampling variance is then 22 % above that of all pairs
    rows: int = 64_000  # in all pairings together: with more, noise and time matter more than the draw of pairs


SIGNS = SignTuning()


def pairings(n: int) -> int:
    """Return how many pairings a table of n rows gets: a power of two, so that averaging them is exact."""
    return int(2 ** np.clip(math.floor(math.log2(SIGNS.rows / n)), 0, math.log2(SIGNS.most)))


def sampling_variance(n: int) -> float:
    """Return the variance of a rank correlation of unrelated columns, over tables of n rows.

    4/9 for all pairs of rows; one pairing has 2, and several come between the two.
    """
    return 4.0 / 9.0 / n + pairing_variance(n)


def pairing_variance(n: int) -> float:
    """Return the part of it that is due to the draw of pairs, with the table given."""
    return 14.0 / 9.0 / pairings(n) / n


def sign_moment(source: Table, mu: float, run: Run, present: Array) -> NoisyMoment:
    """Release the second moment of the sign vectors of pairs, averaged over pairings.

    Parameters
    ----------
    source : Table
        At least two rows.  A gap makes no difference in its column.
    mu : float
    run : Run
        Public for the pairs, private for the noise.
    present : (d,) array
        Which share of the cells of each column is there, as far as it was released.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours and every data set; n, d and lengths of partitions are public.
    Proof: docs/explanation/standardised.md, lemma 1.
    """
    n, d = source.shape
    m = pairings(n)
    grams = [_sign_gram(source, run.streams.public) for _ in range(m)]
    bounds = sign_bounds(grams[0], n // 2, m)
    level = noise_level(bounds, mu)
    total = GridSum((d + 1, d + 1), level.grid)
    for gram in grams:
        average = partial(np.multiply, 1.0 / m)  # exact: a power of two
        total.add(grid_total(gram.products(None, average), (d + 1, d + 1), level.grid))
    noisy = gaussian_symmetric(total.total()[:d, :d], level, run)
    there = present**2  # a pair needs both cells
    return NoisyMoment(noisy, level.sigma, sampling_variance(n), there, pairing_variance(n))


def sign_bounds(gram: AugmentedGram, pairs: int, m: int) -> SumBounds:
    """Return what one record can do to the average over m pairings of sums of outer products of sign vectors.

    It is in one pair of each pairing, so it moves m sums of weight 1/m by one term each, and touches m chunks, whose
    errors have that weight too.  Each of these is rounded to the grid by itself: m times the square root of the
    entries, as m² times the entries say.
    """
    entries = upper_triangle(gram.shape[1])
    return SumBounds(gram.size, gram.chunk_error(0), m * m * entries, 1.02 * pairs * gram.largest, gram.empty)


def _sign_gram(source: Table, public: np.random.Generator) -> AugmentedGram:
    rows = pair_signs(source, public).rows(keep=False)
    return AugmentedGram(rows, constant=0.0, lift=person_lift(rows, 0.0))
