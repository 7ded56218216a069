"""How much variance a released subspace explains, and how much there is: private second moments along it.

For a released orthonormal basis V and rows y of length at most R, the release is the pair

    sum z zᵀ  (k, k),    sum ||r||²     with z = Vᵀ y and r = y - V z,

one record moves it by at most sqrt(2) R² jointly.  Its eigenvectors order and turn the basis, its eigenvalues are
the explained variances, and its trace with the second part is the total.  Rows longer than R are shortened to R,
which is given, or chosen as a multiple of a private geometric mean of the lengths.
Proof: docs/explanation/everyday-pca.md, lemma 10.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan._lib.rounding import SINGLE_ROUNDOFF, relative_error
from privspan.privacy import Release, share_mu
from privspan.privacy.call import Call
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Run
from privspan.rows.partitioned_rows import AnyRows, ChunkSums, PerRow, count_error, known_chunks, per_row
from privspan.rows.scaling import Piece, squared_lengths_of
from privspan.rows.table import Table
from privspan.rows.unit import CHUNK_ROWS
from privspan.subspace import Subspace
from privspan.sums.grid import (
    MOMENTS,
    ROOT_HALF,
    SumBounds,
    gaussian_sum,
    gaussian_symmetric,
    grid_total,
    most_share,
    noise_level,
    upper_triangle,
)
from privspan.sums.localised import geometric_mean

Array = NDArray[np.float64]

_OCTAVES = (-40, 40)  # of the lengths that are told apart: all within the range of exact counts


@dataclass(frozen=True)
class LengthTuning:
    """Of a typical length, and of means and variances that are clipped at it.

    Chosen by hand, in round numbers; benchmarks/scripts/downstream_mean.py measures means that are made with them.
    """

    of_mean: float = 0.2  # share of mu², for the typical length of a mean when no bound is given
    of_variance: float = 0.3  # the same of variances, which grow with the square of the bound
    clip: float = 3.0  # × the geometric mean of the lengths: few rows are longer, where lengths vary as normal ones
    octave: float = 1.0  # part of mu² of the octave of a typical size
    logarithms: float = 1.0  # and of the mean of the logarithms
    around: tuple[int, int] = (-2, 3)  # octaves about the fullest three, in which lengths count as they are


LENGTHS = LengthTuning()


def explained_variance(
    X: object,
    subspace: Subspace,
    *,
    epsilon: float,
    delta: float,
    norm_bound: float | None = None,
    rng: RandomLike = None,
) -> Release:
    """Release the variances of the rows of X along a subspace, and their total variance, about zero.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row, centred if variances about the mean are wanted.  Entries that are not finite count as 0.
    subspace : Subspace
        Public or released; an offset is ignored.
    epsilon, delta : float
        Privacy budget.
    norm_bound : float, optional
        Rows longer than this are clipped to it.  If omitted, 3 times a private geometric mean of the row lengths
        (searched between 2**-40 and 2**40), which costs 30 % of mu².
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.

    Returns
    -------
    Release
        ``subspace`` has the same span, its basis ordered by variance.  ``extras`` hold ``explained_variance`` (k,),
        ``total_variance`` and ``explained_variance_ratio`` (k,), none negative, and the standard deviations of the
        noise in the first two (``explained_variance_std``, ``total_variance_std``).

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set, for a subspace that is
    public or was released at its own cost; n and d are public.
    Proof: docs/explanation/everyday-pca.md, lemmas 3, 8 and 10.
    """
    with Call("explained_variance", epsilon, delta, rng) as call:
        if norm_bound is not None:
            checks.moderate(norm_bound=norm_bound)
        source = call.open(X)
        check_columns(source, subspace)
        return call.finish(
            variance_within(call.begin(gaussian=True, empty=empty_share(norm_bound)), source, subspace, norm_bound)
        )


def empty_share(norm_bound: float | None) -> float:
    """Return the share of mu² that an empty place can tell: docs/explanation/zero-out.md."""
    return most_share(0.0 if norm_bound is not None else LENGTHS.of_variance, MOMENTS)


def variance_within(run: Run, source: Table, subspace: Subspace, norm_bound: float | None) -> Release:
    """Do what `explained_variance` does for the mu of a run: docs/explanation/everyday-pca.md, lemma 10."""
    n, d = source.shape
    if norm_bound is None:
        mu_length = run.account.spend("typical length", LENGTHS.of_variance)
        norm_bound = LENGTHS.clip * typical_length(source, mu_length, run)
    mu = run.account.spend("second moments", run.account.left, MOMENTS)
    rows = source.rows(clip=float(norm_bound))
    inside, outside, noise = second_moments(rows, subspace.basis, mu, run)
    variances, turn = np.linalg.eigh(inside * (norm_bound**2 / n))
    variances = np.maximum(variances[::-1], 0.0)  # (k,)
    total = float(variances.sum()) + max(outside * norm_bound**2 / n, 0.0)
    noise *= norm_bound**2 / n
    extras = {
        "explained_variance": variances,
        "explained_variance_std": np.full(len(variances), noise),
        "total_variance": total,
        "total_variance_std": noise * math.sqrt(len(variances) + 1.0),
        "explained_variance_ratio": variances / total if total > 0.0 else np.zeros_like(variances),
    }
    # Not `from_spanning`: it may turn the basis, and column j has to stay the direction of variance j.
    turned = Subspace(np.linalg.qr(subspace.basis @ turn[:, ::-1])[0])
    parameters = {"n": n, "d": d, "k": subspace.dimension, "norm_bound": float(norm_bound)}
    return Release(turned, run.account.cost(), "explained-variance", parameters, run.private, extras)


def check_columns(source: Table, subspace: Subspace | None) -> None:
    """Refuse a table with another number of columns than the subspace, if there is one."""
    d = source.shape[1]
    if subspace is not None and d != subspace.ambient_dimension:
        template = "{X} must have {dimension} columns, as the subspace has; got {d}."
        raise ParameterError(template, dimension=subspace.ambient_dimension, d=d)


def second_moments(rows: AnyRows, basis: Array, mu: float, run: Run) -> tuple[Array, float, float]:
    """Release sum z zᵀ (k, k) and sum ||r||² of rows of length at most 1, for a released orthonormal basis (d, k).

    Guarantee
    ---------
    mu-GDP for replace-one neighbours.  Proof: docs/explanation/everyday-pca.md, lemma 10.
    """
    n, k = rows.shape[0], basis.shape[1]
    # The diagonal and the scalar are released with sqrt(2) times the noise: in units of the noise the change is
    # (||inside||_F² + outside²)^1/2 / sqrt(2) <= 1.
    bounds = SumBounds(1.0, moment_error(rows, basis), upper_triangle(k) + 1, 1.1 * n, ROOT_HALF)
    level = noise_level(bounds, mu)
    stacked = grid_total(moment_sums(rows, basis), (k, k + 1), level.grid)  # (k, k + 1)
    inside = gaussian_symmetric(stacked[:, :k], level, run)
    sigma = level.sigma * math.nextafter(math.sqrt(2.0), 2.0)
    return inside, float(run.gaussian(stacked[:1, k], sigma, level.grid)[0]), sigma


def moment_error(rows: AnyRows, basis: Array) -> float:
    """Bound the error of one array of `moment_sums`; in float32, what a replacement changes of it."""
    d, k = basis.shape
    defect = float(np.linalg.norm(basis.T @ basis - np.eye(k))) * 1.01 + 2.0 * k * relative_error(d + 2)
    row_error = math.sqrt(k) * relative_error(d + 1) + 2.0 * relative_error(d + k + 4) + defect
    error = 2.2 * CHUNK_ROWS * (row_error + relative_error(CHUNK_ROWS))
    if rows.single:  # of the record's own row only: what is summed over rows is float64
        error += 2.2 * (math.sqrt(k) + 2.0) * relative_error(d + k + 8, SINGLE_ROUNDOFF)
    return float(error)


def moment_sums(rows: AnyRows, basis: Array) -> ChunkSums:
    """Return [sum z zᵀ, sum ||y||² - ||z||² in the corner of a further column] of each chunk; (k, k + 1)."""
    directions = basis.astype(np.float32) if rows.single else basis

    def part(piece: Piece, factors: Array) -> Array:
        coordinates = np.ascontiguousarray((piece @ directions).T, dtype=np.float64)  # (k, rows): along the rows
        coordinates *= factors
        inside = np.einsum("ij,ij->j", coordinates, coordinates)
        column = np.zeros((basis.shape[1], 1))
        column[0, 0] = np.maximum(squared_lengths_of(piece) * factors**2 - inside, 0.0).sum()
        return np.hstack([coordinates @ coordinates.T, column])

    return rows.map_folded(part)


def typical_length(source: Table, mu: float, run: Run) -> float:
    """Release the geometric mean of the lengths of the rows, first to within a few octaves, then closely.

    It lies between 2**-40 and 2**40 or so.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours.  Proof: docs/explanation/everyday-pca.md, lemma 8.
    """
    return typical_size(_row_lengths(source), _OCTAVES, mu, run)


def typical_size(lengths: PerRow, octaves: tuple[int, int], mu: float, run: Run) -> float:
    """Release the geometric mean of one length per record, of which the octaves (first, last) are told apart.

    Entry i is a function of record i, and of public and released values.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours.  Proof: docs/explanation/everyday-pca.md, lemma 8.
    """
    mu_octave, mu_mean = share_mu(mu, LENGTHS.octave, LENGTHS.logarithms)
    size = octaves[1] - octaves[0] + 1
    # One bin loses, one gains; the float is above the root.
    bounds = SumBounds(math.sqrt(2.0), count_error(lengths), size, 1.1 * len(lengths))
    counts = known_chunks(partial(_octave_counts, octaves=octaves), lengths)
    noisy, _ = gaussian_sum(counts, (size,), bounds, mu_octave, run)
    middle = int(np.argmax(np.convolve(noisy, np.ones(3), "same"))) + octaves[0]
    low, high = LENGTHS.around
    return geometric_mean(lengths, 2.0 ** (middle + low), 2.0 ** (middle + high), mu_mean, run)


def size_noise(n: int, mu: float) -> float:
    """Return the noise of the logarithm of a `typical_size` of n records that was released with mu."""
    low, high = LENGTHS.around
    return (high - low) * math.log(2.0) / (n * share_mu(mu, LENGTHS.octave, LENGTHS.logarithms)[1])


def _octave_counts(lengths: Array, octaves: tuple[int, int] = _OCTAVES) -> Array:
    """Return the number of rows in each octave, those at or below the range left out; (octaves,)."""
    first, last = octaves
    # The exponent of a float is exact. A logarithm is not, and its last bit may depend on where in the array an
    # entry stands, which the rows before it would decide if those of length zero were taken out first.
    of_rows = np.frexp(lengths)[1] - 1  # 2**octave <= length < 2**(octave + 1)
    counts = np.bincount(np.where(lengths > 2.0**first, of_rows - first + 1, 0), minlength=last - first + 2)
    return counts[1:].astype(np.float64)


def _row_lengths(source: Table) -> PerRow:
    """Return the length of every row, clipped to the range that is searched; every entry from its own row; (n,)."""
    low, high = (2.0**octave for octave in _OCTAVES)
    return per_row(lambda lengths: np.clip(lengths, low, high), source.rows(keep=False).lengths())
