"""What several baselines share: opening a table, its second moment, leading eigenvectors, float64 samplers.

The samplers here are *not hardened*: they are NumPy's float64 algorithms, fed by a generator that is seeded with 256
bits of the private noise stream.  The guarantee of a baseline that uses one is for real arithmetic and says so
(docs/explanation/baselines.md, "What is hardened").
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan.privacy import Budget
from privspan.privacy.randomness import BitSource, RandomLike, Streams, open_streams
from privspan.rows.partitioned_rows import AnyRows, open_unit_rows
from privspan.rows.unit import as_rows_input
from privspan.subspace import Subspace
from privspan.sums.grid import grid_total
from privspan.sums.lazy_gauss import UnitGram

Array = NDArray[np.float64]

WIDEST_MATRIX = 2048
"""Largest d for which a baseline forms a (d, d) matrix; wider tables are refused."""

_EIGENSOLVER = (
    2.0**-46
)  # assumed: backward error of the eigensolver at most this times d times the norm of the matrix


@dataclass(frozen=True)
class Table:
    """A checked call: the unit rows, the public sizes, the budget and the random streams."""

    rows: AnyRows
    n: int
    d: int
    k: int
    budget: Budget
    streams: Streams

    def public(self, **more: object) -> dict[str, object]:
        """Return the public parameters of the call, for the release."""
        return {"n": self.n, "d": self.d, "k": self.k, **more}


def open_table(
    X: object,
    k: int,
    *,
    epsilon: float,
    delta: float,
    rng: RandomLike,
    widest: int | None = WIDEST_MATRIX,
    proper: bool = False,
) -> Table:
    """Check the parameters, which are all public, and open the table.

    Parameters
    ----------
    X, k, epsilon, delta, rng
        As every baseline takes them.
    widest : int, optional
        Largest d that is accepted.
    proper : bool, default=False
        Whether k must be below d, for mechanisms that need the eigenvalue after the k-th.
    """
    budget = Budget(epsilon, delta)
    source = as_rows_input(X, accept_partitions=True)
    n, d = int(source.shape[0]), int(source.shape[1])
    checks.dimension(k=k, d=d, n=n)
    if widest is not None and d > widest:
        raise ValueError(f"`X` must have at most {widest} columns for this baseline; got {d}.")
    if proper and k == d:
        raise ValueError(f"`k` must be below the number of columns, {d}, for this baseline; got {k!r}.")
    return Table(open_unit_rows(source), n, d, int(k), budget, open_streams(rng))


@dataclass(frozen=True)
class Moment:
    """The second moment of unit rows, and what float64 adds to its replacement sensitivity.

    Attributes
    ----------
    matrix : (d, d) array
        The sum of x xᵀ.
    stretch : float
        Neighbouring matrices, as the eigensolver sees them, differ by at most ``stretch`` in operator norm and
        ``stretch * sqrt(2)`` in Frobenius norm.  At least 1.
    """

    matrix: Array
    stretch: float


def second_moment(table: Table) -> Moment:
    """Return A = sum x xᵀ, summed exactly over chunks on a public grid."""
    gram = UnitGram(table.rows)
    grid = 2.0 ** (math.frexp(1.02 * table.n)[1] - 52)  # every partial sum stays below 2**53 steps
    matrix = grid_total(gram.products(None), (table.d, table.d), grid)
    solver = _EIGENSOLVER * table.d * 1.01 * table.n
    return Moment(matrix, 1.0 + 2.0 * (gram.chunk_error(table.d) + solver) + table.d * grid)


def spectrum(matrix: Array) -> tuple[Array, Array]:
    """Return eigenvalues, largest first, and eigenvectors of a symmetric matrix; never raises."""
    try:
        values, vectors = np.linalg.eigh(matrix)
    except np.linalg.LinAlgError:  # not seen on finite matrices; an exception would speak about the data
        return np.zeros(len(matrix)), np.eye(len(matrix))
    return values[::-1], vectors[:, ::-1]


def leading_subspace(matrix: Array, k: int) -> Subspace:
    """Return the span of the k leading eigenvectors of a symmetric matrix."""
    return Subspace(np.linalg.qr(spectrum(0.5 * (matrix + matrix.T))[1][:, :k])[0])


def float_generator(bits: BitSource) -> np.random.Generator:
    """Return a NumPy generator seeded with 256 bits of the noise stream, for samplers that are not hardened."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(int.from_bytes(bits.bytes(32), "little"))))


def bartlett_factor(d: int, degrees: int, generator: np.random.Generator) -> Array:
    """Return a lower triangular T such that T Tᵀ is Wishart with identity scale (Bartlett's decomposition).

    Parameters
    ----------
    d, degrees : int
        Size, and degrees of freedom, at least d.
    generator : numpy.random.Generator
        Source of the draw.
    """
    factor = np.tril(generator.standard_normal((d, d)), -1)
    factor[np.diag_indices(d)] = np.sqrt(generator.chisquare(degrees - np.arange(d)))
    return factor


def haar_rotation(k: int, generator: np.random.Generator) -> Array:
    """Return a uniformly distributed orthogonal (k, k) matrix."""
    rotation, triangle = np.linalg.qr(generator.standard_normal((k, k)))
    return np.asarray(rotation * np.where(np.diagonal(triangle) < 0, -1.0, 1.0))
