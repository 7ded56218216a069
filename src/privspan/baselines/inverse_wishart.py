"""The inverse Wishart mechanism (Sheffet 2019): a draw from the posterior of a covariance, private by itself.

M is inverse Wishart with scale A + ψ I; its inverse is the Wishart matrix of independent normal vectors with
covariance (A + ψ I)^-1, which tell neighbours apart exactly as those of the Johnson-Lindenstrauss mechanism do with
the two tables exchanged.  So ψ is calibrated as w² there.
"""

from __future__ import annotations

import numpy as np

from privspan._lib import checks
from privspan.baselines._common import baseline, leading_subspace, open_table, shifted_root, wishart_root
from privspan.baselines._loss import covariance_ridge
from privspan.baselines.johnson_lindenstrauss import public_draws
from privspan.privacy import Release
from privspan.privacy.randomness import RandomLike


@baseline
def inverse_wishart(
    X: object, k: int, *, epsilon: float, delta: float, degrees: int | None = None, rng: RandomLike = None
) -> Release:
    """Draw an inverse Wishart matrix around the second moment and take its leading eigenvectors.

    Parameters
    ----------
    degrees : int, optional
        Degrees of freedom, at least d; the paper has n + d.  By default what balances sampling error against ψ for
        eigenvalues of size n / k, as in `johnson_lindenstrauss`.

    Returns
    -------
    Release
        Never abstains.  ``parameters["ridge"]`` is ψ.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k and `degrees` are
    public.  Numerical model: real arithmetic.  The sampler is a float64 one seeded with 256 secure bits and is not
    hardened against what floating point reveals.  Proof: docs/explanation/baselines.md, "Inverse Wishart".
    """
    with open_table(X, k, epsilon=epsilon, delta=delta, rng=rng) as table:
        degrees = public_draws(table) if degrees is None else degrees
        checks.integer_at_least(table.d, degrees=degrees)
        ridge = covariance_ridge(degrees, table.budget)
        root = shifted_root(table, ridge)  # of A + ψ I
        sample = table.run.draw(wishart_root, root, degrees, True) * np.sqrt(degrees)
        found = leading_subspace(sample @ sample.T, table.k)
        part = table.whole("inverse Wishart draw")
        return table.release("inverse_wishart", found, part, degrees=int(degrees), ridge=ridge)
