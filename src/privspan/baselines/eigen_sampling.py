"""Covariance by sampled eigenvectors (Amin, Dick, Kulesza, Muñoz Medina, Vassilvitskii, NeurIPS 2019).

The leading eigenvalues get Laplace noise, and the eigenvectors are drawn one by one by the exponential mechanism.
Where only a subspace is wanted this is `exponential_pca` with less budget for the vectors; it buys the spectrum.
"""

from __future__ import annotations

import numpy as np

from privspan._lib.entry import entry
from privspan.baselines._bingham import CAP_SHARE, cap_on_tries, deflated_vectors, step_epsilon
from privspan.baselines._common import float_generator, open_table, second_moment, spectrum
from privspan.privacy import Part, Release
from privspan.privacy.randomness import RandomLike
from privspan.subspace import Subspace

_EIGENVALUE_CHANGE = 2.0  # sum of the absolute changes of all eigenvalues under replacement: lemma 2


@entry
def eigen_sampling(X: object, k: int, *, epsilon: float, delta: float, rng: RandomLike = None) -> Release:
    """Release the k leading eigenvalues with Laplace noise and draw k eigenvectors by the exponential mechanism.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row; rows are scaled to unit length, non-finite rows count as zero.  d is at most 2048.
    k : int
        Dimension.
    epsilon, delta : float
        Privacy budget, shared equally by the eigenvalues and each of the k vectors.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure bits.  A seed makes the run repeatable and not private.

    Returns
    -------
    Release
        ``extras["eigenvalues"]`` holds the noisy eigenvalues of the sum of x xᵀ, largest first.  Abstains only if the
        cap on the number of tries is reached, with probability below delta / 100.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k are public.
    Numerical model: real arithmetic.  The samplers are float64 ones seeded with 256 secure bits and are not hardened
    against what floating point reveals.  Proof: docs/explanation/baselines.md, "Sampled eigenvectors".

    Examples
    --------
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(5_000, 10, 2, gamma_w=0.1, rng=0)
    >>> release = eigen_sampling(X, 2, epsilon=4.0, delta=1e-6, rng=1)
    >>> release.subspace.distance(truth) < 0.1
    True
    """
    table = open_table(X, k, epsilon=epsilon, delta=delta, rng=rng)
    rest, reserved = table.budget.reserve_delta(CAP_SHARE)
    step = step_epsilon(rest, table.k, laplace_steps=1)
    tries = cap_on_tries(table.d, table.k, rest.epsilon, reserved)
    generator = float_generator(table.streams.noise)
    matrix = second_moment(table).matrix
    noise = generator.laplace(scale=_EIGENVALUE_CHANGE / step, size=table.k)
    eigenvalues = np.sort(spectrum(matrix)[0][: table.k] + noise)[::-1]  # (k,)
    vectors = deflated_vectors(matrix, table.k, 0.5 * step, tries, generator)
    parts = (
        Part("Laplace noise on eigenvalues, exponential mechanism on vectors", rest.epsilon, rest.delta),
        Part("cap on the tries of the sampler", 0.0, reserved),
    )
    return Release(
        None if vectors is None else Subspace(vectors),
        table.budget.cost(*parts),
        "baseline/eigen_sampling",
        table.public(step_epsilon=step, most_tries=tries),
        table.streams.private,
        {"eigenvalues": tuple(float(value) for value in eigenvalues)},
    )
