"""The inverse Wishart mechanism (Sheffet 2019): a draw from the posterior of a covariance, private by itself.

M is inverse Wishart with scale A + ψ I; its inverse is the Wishart matrix of independent normal vectors with
covariance (A + ψ I)^-1, whose divergence between neighbours is that of the Johnson-Lindenstrauss mechanism with the
two tables exchanged.  So ψ is calibrated as w² there.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from privspan._lib import checks
from privspan._lib.entry import entry
from privspan.baselines._common import (
    bartlett_factor,
    float_generator,
    leading_subspace,
    open_table,
    second_moment,
    spectrum,
)
from privspan.baselines._renyi import covariance_ridge
from privspan.baselines.johnson_lindenstrauss import public_draws
from privspan.privacy import Part, Release
from privspan.privacy.randomness import RandomLike


@entry
def inverse_wishart(
    X: object, k: int, *, epsilon: float, delta: float, degrees: int | None = None, rng: RandomLike = None
) -> Release:
    """Draw an inverse Wishart matrix around the second moment and take its leading eigenvectors.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row; rows are scaled to unit length, non-finite rows count as zero.  d is at most 2048.
    k : int
        Dimension.
    epsilon, delta : float
        Privacy budget.
    degrees : int, optional
        Degrees of freedom, at least d; the paper has n + d.  By default what balances sampling error against ψ for
        eigenvalues of size n / k, as in `johnson_lindenstrauss`.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure bits.  A seed makes the run repeatable and not private.

    Returns
    -------
    Release
        Never abstains.  ``parameters["ridge"]`` is ψ.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k and `degrees` are
    public.  Numerical model: real arithmetic.  The sampler is a float64 one seeded with 256 secure bits and is not
    hardened against what floating point reveals.  Proof: docs/explanation/baselines.md, "Inverse Wishart".

    Examples
    --------
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(5_000, 10, 2, gamma_w=0.1, rng=0)
    >>> release = inverse_wishart(X, 2, epsilon=1.0, delta=1e-6, rng=1)
    >>> release.subspace.distance(truth) < 0.1
    True
    """
    table = open_table(X, k, epsilon=epsilon, delta=delta, rng=rng)
    degrees = public_draws(table) if degrees is None else degrees
    checks.integer_at_least(table.d, degrees=degrees)
    ridge = covariance_ridge(degrees, table.budget)
    values, vectors = spectrum(second_moment(table).matrix)
    root = vectors * np.sqrt(np.maximum(values, 0.0) + ridge)  # root rootᵀ = A + ψ I
    factor = bartlett_factor(table.d, degrees, float_generator(table.streams.noise))
    # (T Tᵀ)^-1 = T^-ᵀ T^-1, so root T^-ᵀ is a root of the inverse Wishart draw.
    sample = solve_triangular(factor, root.T, lower=True).T * np.sqrt(degrees)
    part = Part("inverse Wishart draw", table.budget.epsilon, table.budget.delta)
    return Release(
        leading_subspace(sample @ sample.T, table.k),
        table.budget.cost(part),
        "baseline/inverse_wishart",
        table.public(degrees=int(degrees), ridge=ridge),
        table.streams.private,
    )
