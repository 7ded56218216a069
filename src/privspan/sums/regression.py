"""A private linear regression from Gaussian-noised second moments, of all columns or within a released subspace.

Least squares needs the sums of z zᵀ and of t z over the records, z the row and t the target, both shortened to known
bounds.  They are released once with Gaussian noise; solving for the coefficients is post-processing.  All d columns
need d² noisy numbers; within a subspace k² are enough, which is what a private subspace is for.
Proofs: docs/explanation/private-mean.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.arrays import Reals
from privspan._lib.rounding import relative_error
from privspan.privacy import PrivacyCost
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.persons import MOST_ROWS
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Run
from privspan.rows.partitioned_rows import AnyRows, ChunkSums, PerRow, per_row
from privspan.rows.scaling import Piece
from privspan.rows.table import Missing, Table
from privspan.rows.unit import CHUNK_ROWS, is_sparse
from privspan.subspace import Subspace
from privspan.sums.grid import SumBounds, gaussian_symmetric, grid_total, most_share, noise_level, upper_triangle
from privspan.sums.variance import check_columns

Array = NDArray[np.float64]

_TARGET_WEIGHT = math.nextafter(math.sqrt(0.5), 0.0)  # w of t z beside z zᵀ, rounded down: private-mean.md, lemma 3


@dataclass(frozen=True)
class PrivateRegression:
    """Released coefficients and what they cost.

    Attributes
    ----------
    coefficients : (d,) array
        Read-only; in the subspace if one was given. The prediction for a row x is ``x @ coefficients + intercept``.
    intercept : float
        Zero unless the subspace has an offset: the regression passes through that offset, or through the origin.
    noise : float
        Standard deviation of the noise in the scaled sums.
    cost : PrivacyCost
    private : bool
        False when a seed was given.
    """

    coefficients: Array
    intercept: float
    noise: float
    cost: PrivacyCost
    private: bool


def private_regression(
    X: object,
    y: object,
    *,
    epsilon: float,
    delta: float,
    subspace: Subspace | None = None,
    norm_bound: float,
    target_bound: float,
    person: object = None,
    max_rows: int = MOST_ROWS,
    missing: Missing = "fill",
    rng: RandomLike = None,
    ledger: LedgerLike = None,
) -> PrivateRegression:
    """Release the coefficients of a least-squares fit of y by the rows of X.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row.
    y : (n,) array, or Dask array or series
        One number per person.  One that is not finite makes the record count as zero.  In Dask it must be in the
        partitions of `X`.
    epsilon, delta : float
        Privacy budget.
    subspace : Subspace, optional
        Public, or released at its own cost.  Only the k coordinates in it are used: k (k + 3) / 2 noisy numbers.
    norm_bound, target_bound : float
        Rows (or their coordinates in the subspace) and targets larger than these are clipped to them.   They must
        not be read off the data.
    person : (n,) array-like or str, optional
        Who each row belongs to, where people have several rows: one id per row, or the name of the column of `X` that
        holds the ids.  The guarantee is then for persons, and n is their number: docs/explanation/several-rows.md.
    max_rows : int, default=8
        With `person`: the most rows that are used of one person.
    missing : {"fill", "zero-row"}, default="fill"
        How a gap (a missing or non-finite cell) is treated: it counts as the offset of the subspace, or as 0 without
        one; or it makes its whole record a row of zeros.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.
    ledger : path, Ledger or Page, optional
        Where the budget is charged, before any data are read; see :class:`privspan.ledger.Ledger`.

    Returns
    -------
    PrivateRegression

    Guarantee
    ---------
    (epsilon, delta)-differential privacy, and mu-GDP with the mu of that budget, for replace-one neighbours (a row
    and its target together) and every data set; n, d and all parameters are public.  Assumed: float64 arithmetic, and
    that the products of a matrix library compute every output row from its own input row.  With `person`, for
    replacing one person.  Proof: docs/explanation/private-mean.md, docs/explanation/several-rows.md.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).standard_normal((50_000, 3))
    >>> y = X @ [1.0, -2.0, 0.0]
    >>> fit = private_regression(X, y, epsilon=1.0, delta=1e-6, norm_bound=4.0, target_bound=8.0, rng=0)
    >>> (fit.coefficients.round(1) + 0.0).tolist()
    [1.0, -2.0, 0.0]
    """
    with Call("private_regression", epsilon, delta, rng, ledger, X, person) as call:
        table = call.persons(X, person, max_rows)
        checks.moderate(norm_bound=norm_bound, target_bound=target_bound)
        source = call.open(table).with_gaps(missing)
        check_columns(source, subspace)
        given = source.column(y)
        bounds = float(norm_bound), float(target_bound)
        run = call.begin(gaussian=True, empty=most_share(0.0, moment_bounds(1, 1).gain))
        return call.finish(regression_within(run, source, given, subspace, *bounds))


def regression_within(
    run: Run, source: Table, given: PerRow, subspace: Subspace | None, norm_bound: float, target_bound: float
) -> PrivateRegression:
    """Do what `private_regression` does for the mu of a run: docs/explanation/private-mean.md."""
    n = source.shape[0]
    targets = per_row(partial(_scaled_targets, bound=target_bound), given)
    if subspace is not None:
        source = source.coordinates(subspace.basis, subspace.offset)  # (n, k)
    rows = source.rows(clip=norm_bound)
    k = rows.shape[1]
    bounds = moment_bounds(n, k)
    level = noise_level(bounds, run.account.spend("second moments", 1.0, bounds.gain))
    sums = grid_total(_moment_sums(rows, targets), (k, k + 1), level.grid)
    moments = gaussian_symmetric(sums[:, :k], level, run)  # (k, k)
    products = run.gaussian(sums[:, k], level.sigma, level.grid) / _TARGET_WEIGHT  # (k,)
    solved = _solved(moments, products, level.sigma) * (target_bound / norm_bound)  # (k,)
    coefficients = solved if subspace is None else subspace.basis @ solved
    shift = 0.0 if subspace is None or subspace.offset is None else float(subspace.offset @ coefficients)
    coefficients.flags.writeable = False
    return PrivateRegression(coefficients, -shift, level.sigma, run.account.cost(), run.private)


def moment_bounds(n: int, k: int) -> SumBounds:
    """Return what one record can do to the two sums, in units of the noise: move them by 3/2, or by 1 if it goes."""
    # Sums of at most CHUNK_ROWS products of numbers whose squares sum to at most 1 per row, twice.
    chunk_error = 2.2 * CHUNK_ROWS * relative_error(CHUNK_ROWS + 4)
    return SumBounds(1.5, chunk_error, upper_triangle(k) + k, 1.1 * n, empty=1.0)


def _scaled_targets(targets: Reals, bound: float) -> Array:
    """Return targets in units of the bound, cut to [-1, 1]; NaN where a target is not finite."""
    with np.errstate(all="ignore"):
        finite = np.where(np.isfinite(targets), targets.astype(np.float64), np.nan)
        return np.clip(finite / bound, -1.0, 1.0)


def _moment_sums(rows: AnyRows, targets: PerRow) -> ChunkSums:
    """Return [sum z zᵀ, weighted sum t z] of each chunk, (k, k + 1)."""
    return rows.map_chunks(_moments, targets)


def _moments(piece: Piece, targets: Array) -> Array:
    known = ~np.isnan(targets)
    kept = piece[np.flatnonzero(known)]  # a record without a target counts as zero
    square = kept.T @ kept
    products = kept.T @ (_TARGET_WEIGHT * targets[known])
    return np.column_stack([square.toarray() if is_sparse(square) else square, products])


def _solved(moments: Array, products: Array, sigma: float) -> Array:
    """Solve for the coefficients, trusting no eigenvalue below the size of the noise matrix."""
    values, vectors = np.linalg.eigh(moments)
    floor = 2.0 * sigma * math.sqrt(len(values))  # operator norm of the noise
    return np.asarray(vectors @ ((vectors.T @ products) / np.maximum(values, floor)))
