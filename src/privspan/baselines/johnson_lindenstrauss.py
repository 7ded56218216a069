"""The Johnson-Lindenstrauss mechanism (Blocki, Blum, Datta, Sheffet 2012; Sheffet 2019) at its exact privacy.

Releasing R A' for a Gaussian R and the table A' with w I below it is releasing independent normal vectors with
covariance A + w² I.  Their worst neighbours are known, and w² is the smallest whose exact delta is in budget, less
than a fifth of the published one.  The vectors are drawn through their Wishart matrix, so that their number costs
nothing.
"""

from __future__ import annotations

from privspan._lib import checks
from privspan.baselines._common import Table, baseline, leading_subspace, open_table, shifted_root, wishart_root
from privspan.baselines._loss import covariance_ridge
from privspan.privacy import Release
from privspan.privacy.randomness import RandomLike

_MOST_DRAWS = 2**40  # exact integers in float64, with room


@baseline
def johnson_lindenstrauss(
    X: object, k: int, *, epsilon: float, delta: float, draws: int | None = None, rng: RandomLike = None
) -> Release:
    """Release normal vectors with covariance A + w² I and take their leading principal subspace.

    Parameters
    ----------
    draws : int, optional
        Number of vectors, rows of the projection, at least d.  More of them means a larger w² and less sampling
        error.  By default what balances the two for eigenvalues of size n / k, see `public_draws`.

    Returns
    -------
    Release
        Never abstains.  ``parameters["ridge"]`` is w².

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k and `draws` are
    public.  Numerical model: real arithmetic.  The sampler is a float64 one seeded with 256 secure bits and is not
    hardened against what floating point reveals.  Proof: docs/explanation/baselines.md, "Johnson-Lindenstrauss".
    """
    with open_table(X, k, epsilon=epsilon, delta=delta, rng=rng) as table:
        draws = public_draws(table) if draws is None else draws
        checks.integer_at_least(table.d, draws=draws)
        ridge = covariance_ridge(draws, table.budget)
        sample = table.run.draw(wishart_root, shifted_root(table, ridge), draws, False)
        found = leading_subspace(sample @ sample.T / draws, table.k)
        part = table.whole("normal vectors with the noisy covariance")
        return table.release("johnson_lindenstrauss", found, part, draws=int(draws), ridge=ridge)


def public_draws(table: Table) -> int:
    """Return (mu n / k)², at least 2 d: at that number the ridge is about n / k, as large as the eigenvalues."""
    return int(min(_MOST_DRAWS, max(2 * table.d, (table.budget.mu * table.n / table.k) ** 2)))
