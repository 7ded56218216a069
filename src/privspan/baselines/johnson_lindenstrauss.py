"""The Johnson-Lindenstrauss mechanism (Blocki, Blum, Datta, Sheffet 2012; Sheffet 2019) at its exact divergence.

Releasing R A' for a Gaussian R and the table A' with w I below it is releasing independent normal vectors with
covariance A + w² I.  Their Rényi divergence between neighbours has a closed form; w² is the smallest that it allows,
about a fifth of the published one.  The vectors are drawn through their Wishart matrix, so that their number
costs nothing.
"""

from __future__ import annotations

import numpy as np

from privspan._lib import checks
from privspan._lib.entry import entry
from privspan.baselines._common import (
    Table,
    bartlett_factor,
    float_generator,
    leading_subspace,
    open_table,
    second_moment,
    spectrum,
)
from privspan.baselines._renyi import covariance_ridge
from privspan.privacy import Part, Release, rho_from_budget
from privspan.privacy.randomness import RandomLike

_MOST_DRAWS = 2**40


@entry
def johnson_lindenstrauss(
    X: object, k: int, *, epsilon: float, delta: float, draws: int | None = None, rng: RandomLike = None
) -> Release:
    """Release normal vectors with covariance A + w² I and take their leading principal subspace.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row; rows are scaled to unit length, non-finite rows count as zero.  d is at most 2048.
    k : int
        Dimension.
    epsilon, delta : float
        Privacy budget.
    draws : int, optional
        Number of vectors, rows of the projection, at least d.  More of them means a larger w² and less sampling
        error.  By default what balances the two for eigenvalues of size n / k, see `public_draws`.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure bits.  A seed makes the run repeatable and not private.

    Returns
    -------
    Release
        Never abstains.  ``parameters["ridge"]`` is w².

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k and `draws` are
    public.  Numerical model: real arithmetic.  The sampler is a float64 one seeded with 256 secure bits and is not
    hardened against what floating point reveals.  Proof: docs/explanation/baselines.md, "Johnson-Lindenstrauss".

    Examples
    --------
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(5_000, 10, 2, gamma_w=0.1, rng=0)
    >>> release = johnson_lindenstrauss(X, 2, epsilon=1.0, delta=1e-6, rng=1)
    >>> release.subspace.distance(truth) < 0.1
    True
    """
    table = open_table(X, k, epsilon=epsilon, delta=delta, rng=rng)
    draws = public_draws(table) if draws is None else draws
    checks.integer_at_least(table.d, draws=draws)
    ridge = covariance_ridge(draws, table.budget)
    values, vectors = spectrum(second_moment(table).matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0) + ridge)  # root rootᵀ = A + w² I
    sample = root @ bartlett_factor(table.d, draws, float_generator(table.streams.noise))
    part = Part("normal vectors with the noisy covariance", table.budget.epsilon, table.budget.delta)
    return Release(
        leading_subspace(sample @ sample.T / draws, table.k),
        table.budget.cost(part),
        "baseline/johnson_lindenstrauss",
        table.public(draws=int(draws), ridge=ridge),
        table.streams.private,
    )


def public_draws(table: Table) -> int:
    """Return 2 rho (n / k)², at least 2 d: at that number the ridge is about n / k, as large as the eigenvalues."""
    rho = rho_from_budget(table.budget.epsilon, table.budget.delta)
    return int(min(_MOST_DRAWS, max(2 * table.d, 2.0 * rho * (table.n / table.k) ** 2)))
