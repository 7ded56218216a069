"""Looks at centred rows: second moments that bring the mean along.

A look releases the sum of the outer products of the rows (f u, a): u is a row about a released centre scaled to unit
length, f <= 1 a factor of its own (1 for a look at unit rows, min(1, length / R) for rows clipped at R), and a is a
constant.  The last column, over a, is a noisy sum of the rows, so the second moment about their *mean* is known too:
an error of the centre, which would show as a direction, is taken away.  One record moves the sum by sqrt(2) (1 + a²).
Proofs: docs/explanation/everyday-tables.md, lemma 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privspan._lib.rounding import SINGLE_ROUNDOFF, relative_error
from privspan.privacy.run import Run
from privspan.rows.partitioned_rows import AnyRows, ChunkSums, PerRow
from privspan.rows.scaling import Piece, combined, gram_of, single_sum_error
from privspan.rows.unit import CHUNK_ROWS, Finish
from privspan.sums.early_gram import ClippedGram
from privspan.sums.grid import (
    NoiseLevel,
    SumBounds,
    gaussian_symmetric,
    grid_total,
    look_empty,
    noise_level,
    upper_triangle,
)
from privspan.sums.lifts import Lift

Array = NDArray[np.float64]

CONSTANT = 13.0 / 64.0
"""The constant entry a: exact in binary, and so is 1 + a²."""

_NARROW, _NARROW_RUN = 32, 2048  # columns, and rows at a time that stay in the processor's cache with their multiples


class AugmentedGram:
    """The second moments of the rows (f u, a), one for each kind of f, as a `privspan.sums.lazy_gauss.GramSource`.

    Parameters
    ----------
    rows : Rows
        Of length at most 1.
    factors : sequence of (n,) arrays or RowValues
        f, each from its own record and released values, between 0 and 1; None for 1.
    constant : float
        a; 0 for rows that need no mean.
    lift : Lift, optional
        Of persons with several rows: all of (f u, a) is multiplied by the factor of the person.
    """

    def __init__(
        self,
        rows: AnyRows,
        factors: Sequence[PerRow | None] = (None,),
        constant: float = CONSTANT,
        lift: Lift | None = None,
    ) -> None:
        self._rows, self._constant = rows, constant
        self._single = rows.single
        self._is_known, self._known = [], []
        for known in (None if lift is None else lift.factors, *factors):
            self._is_known.append(known is not None)
            if known is not None:
                self._known.append(known)
        self.shape, self.moments = (rows.shape[0], rows.shape[1] + 1), len(factors)
        self.size = 1.0 + constant * constant
        self.largest = self.size if lift is None else self.size * lift.most
        self.empty = look_empty(constant, 1.0 if lift is None else lift.most)

    def products(self, block: Array | None, finish: Finish | None = None) -> ChunkSums:
        """Return one array (d + 1, moments * b) per chunk; the inner products of the rows are shared."""
        a, is_known, single = self._constant, self._is_known, self._single
        narrow = block[:-1].astype(np.float32) if single and block is not None else None
        dtype = np.float32 if single else np.float64

        def part(piece: Piece, scales: Array, *known: Array) -> Array:
            arrays, lift = iter(known), None
            if is_known[0]:
                lift = next(arrays)
            factors, grams = [], []
            for given in is_known[1:]:
                factors.append(scales * next(arrays) if given else scales)
            if block is None:
                if single:
                    piece = piece.astype(np.float64)
                for f in factors:
                    grams.append(_gram(piece, f if lift is None else f * lift, a, lift))
                return np.hstack(grams)
            inner = piece @ (block[:-1] if narrow is None else narrow)
            inner = np.ascontiguousarray(inner.T, dtype=np.float64)  # (b, rows): what follows goes along the rows
            b, last = len(inner), a * block[-1][:, None]
            own, made = np.empty((len(factors) * b, len(scales)), dtype), np.empty((len(factors) * b, len(block)))
            for i, f in enumerate(factors):
                of_moment = slice(i * b, (i + 1) * b)
                products = inner * f
                products += last
                if lift is not None:
                    products *= lift * lift
                made[of_moment, -1] = a * products.sum(axis=1)
                own[of_moment] = np.multiply(products, f, out=products)
            combined(piece, own.T, out=made[:, :-1].T)
            return made.T

        return self._rows.map_folded(part, *self._known, finish=finish)

    def chunk_error(self, columns: int) -> float:
        """Bound the error of two products of one moment, as for unit rows, with a few more roundings each.

        In float32 a replacement changes the inner products of its own row only, and sums over its own piece.
        """
        spread = self._rows.rounding
        inner = np.sqrt(columns) * relative_error(self.shape[1] + 8)
        error = CHUNK_ROWS * spread * (inner + spread * relative_error(CHUNK_ROWS + 8))
        if self._single and columns:  # whole matrices are formed in float64
            error += np.sqrt(columns) * relative_error(self.shape[1] + 8, SINGLE_ROUNDOFF)
            error += single_sum_error()
        return float(1.01 * self.size * error)


def _gram(piece: Piece, factors: Array, a: float, lift: Array | None) -> Array:
    """Return the sum of outer products of rows times factors, the constant times a lift appended; (d + 1, d + 1)."""
    m, d = piece.shape
    gram = np.empty((d + 1, d + 1))
    if isinstance(piece, np.ndarray) and d <= _NARROW:
        gram[:d, :d] = _narrow_gram(piece, factors * factors)
    else:
        rows = piece * factors[:, None]
        gram[:d, :d] = gram_of(rows)
    sums = combined(piece, (factors if lift is None else factors * lift)[:, None])
    gram[:d, d] = gram[d, :d] = a * sums[:, 0]
    gram[d, d] = a * a * (m if lift is None else float(lift @ lift))
    return gram


def _narrow_gram(rows: Array, squares: Array) -> Array:
    """Return the sum of the outer products of rows times numbers: a matrix times another is faster than by itself."""
    total = np.zeros((rows.shape[1], rows.shape[1]))
    for start in range(0, len(rows), _NARROW_RUN):
        run = rows[start : start + _NARROW_RUN]
        total += run.T @ (run * squares[start : start + _NARROW_RUN, None])
    return np.asarray(0.5 * (total + total.T))


@dataclass(frozen=True)
class Look:
    """A released second moment of rows of length at most 1 about their mean.

    Attributes
    ----------
    moment : (d, d) array
        Noise included; a sum over the rows, not a mean.
    noise : float
        Standard deviation off the diagonal; sqrt(2) times that on it.
    mean : (d,) array
        Of the rows, shrunk.
    mean_noise : float
        Standard deviation of every coordinate of the mean.
    """

    moment: Array
    noise: float
    mean: Array
    mean_noise: float


def released_looks(
    gram: AugmentedGram | ClippedGram, mus: Sequence[float], run: Run, constant: float, count: float | None = None
) -> Iterator[Look]:
    """Sum up a second moment in one pass, release it once for each mu, and yield what is known each time.

    What is yielded is the mean of all releases so far, by their precision: a look with the root of the sum of the
    squares of their mus.  A release that is not asked for is not made.

    Parameters
    ----------
    gram : AugmentedGram or ClippedGram
        What is summed up: of clipped rows in one pass, or in those in which it was begun.
    mus : sequence of float
        Privacy of each release.
    run : Run
        Draws the noise.
    constant : float
        That of `gram`: 0 for rows whose mean is known to be zero.
    count : float, optional
        Sum of the squares of the factors of persons, released; without it the number of rows.

    Guarantee
    ---------
    Each release is Gaussian with its mu, for the bounds that `gram` promises.  Proof:
    docs/explanation/everyday-tables.md, lemma 3, and docs/explanation/several-rows.md, lemma 3.
    """
    n, d = gram.shape[0], gram.shape[1] - 1
    bounds = SumBounds(gram.size, gram.chunk_error(0), upper_triangle(d + 1), 1.02 * n * gram.largest, gram.empty)
    levels = shared_levels(bounds, mus)
    total = grid_total(gram.products(None), (d + 1, d + 1), levels[0].grid)
    known, precision = np.zeros_like(total), 0.0
    for level in levels:
        fresh = level.sigma**-2
        precision += fresh
        known += (gaussian_symmetric(total, level, run) - known) * (fresh / precision)
        noise = precision**-0.5
        mean, mean_noise, added = mean_part(known[:d, d], noise, n if count is None else count, constant)
        yield Look(known[:d, :d] - np.outer(added, added), noise, mean, mean_noise)


def shared_levels(bounds: SumBounds, mus: Sequence[float]) -> list[NoiseLevel]:
    """Return the noise of releases of sums from one pass, each with its own mu, on one grid for all."""
    grid, levels = 0.0, []
    for mu in mus:
        grid = max(grid, noise_level(bounds, mu).grid)
    for mu in mus:
        levels.append(noise_level(bounds, mu, grid=grid))
    return levels


def mean_part(column: Array, noise: float, n: float, constant: float) -> tuple[Array, float, Array]:
    """Return the shrunk mean of the rows, its error, and the vector b whose b bᵀ the mean adds to the sum.

    Parameters
    ----------
    column : (d,) array
        Last column of the augmented sum, without the corner.
    noise : float
        Of its entries.
    n : float
        Number of rows.
    constant : float
        a.
    """
    d = len(column)
    if constant == 0.0:
        return np.zeros(d), 0.0, np.zeros(d)
    total, sigma = column / constant, noise / constant
    square = float(total @ total)
    shrink = max(0.0, 1.0 - d * sigma**2 / square) if square > 0.0 else 0.0  # James and Stein
    error = sigma / n * math.sqrt(max(shrink, min(2.0 / d, 1.0)))  # what is shrunk has less
    return shrink * total / n, error, np.sqrt(shrink / n) * total
