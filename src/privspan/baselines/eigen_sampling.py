"""Covariance by sampled eigenvectors (Amin, Dick, Kulesza, Muñoz Medina, Vassilvitskii, NeurIPS 2019).

The leading eigenvalues get Laplace noise, and the eigenvectors are drawn one by one by the exponential mechanism.
Where only a subspace is wanted this is `exponential_pca` with less budget for the vectors; it buys the spectrum.
"""

from __future__ import annotations

import numpy as np

from privspan.baselines._bingham import deflated_vectors, plan_draws
from privspan.baselines._common import add_laplace, baseline, open_table, second_moment, spectrum
from privspan.baselines._tuning import RIVALS
from privspan.privacy import Release
from privspan.privacy.randomness import RandomLike
from privspan.subspace import Subspace


@baseline
def eigen_sampling(X: object, k: int, *, epsilon: float, delta: float, rng: RandomLike = None) -> Release:
    """Release the k leading eigenvalues with Laplace noise and draw k eigenvectors by the exponential mechanism.

    Parameters
    ----------
    epsilon, delta : float
        Privacy budget.  A tenth of epsilon is for the eigenvalues, whose noise is then some 20 / epsilon rows; the
        vectors have the rest.

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
    """
    with open_table(X, k, epsilon=epsilon, delta=delta, rng=rng) as table:
        what = "Laplace noise on eigenvalues, exponential mechanism on vectors"
        eigenvalue_epsilon = RIVALS.eigenvalues * table.budget.epsilon
        step, tries, parts = plan_draws(table, what, table.k, eigenvalue_epsilon)
        matrix = second_moment(table).matrix
        noise = eigenvalue_change(table.k) / eigenvalue_epsilon
        eigenvalues = table.run.draw(add_laplace, spectrum(matrix)[0][: table.k], noise)
        eigenvalues = np.sort(eigenvalues)[::-1]  # (k,)
        vectors = deflated_vectors(matrix, table.k, 0.5 * step, tries, table.run)
        found = None if vectors is None else Subspace(vectors)
        extras = {"eigenvalues": tuple(eigenvalues.tolist())}
        return table.release("eigen_sampling", found, *parts, extras=extras, step_epsilon=step, most_tries=tries)


def eigenvalue_change(k: int) -> float:
    """Return the most that the k leading eigenvalues change by in sum under replacement: lemma 2."""
    return float(min(2, k))
