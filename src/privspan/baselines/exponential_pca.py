"""PCA by the exponential mechanism (Chaudhuri, Sarwate, Sinha 2012; Kapralov, Talwar 2013; Wei et al. 2016).

One direction at a time is drawn with density proportional to exp((e/2) uᵀ A u), exactly, by rejection; the next is
drawn in the orthogonal complement of those before.  Chaudhuri et al. draw all k at once by a Markov chain, whose
distance from its limit nobody can bound, so its privacy is not proved; one by one is Kapralov and Talwar's way.
"""

from __future__ import annotations

from privspan.baselines._bingham import deflated_vectors, plan_draws
from privspan.baselines._common import baseline, open_table, second_moment
from privspan.privacy import Release
from privspan.privacy.randomness import RandomLike
from privspan.subspace import Subspace


@baseline
def exponential_pca(X: object, k: int, *, epsilon: float, delta: float, rng: RandomLike = None) -> Release:
    """Draw k orthonormal vectors by the exponential mechanism, one after the other.

    Parameters
    ----------
    epsilon, delta : float
        Privacy budget.  Of delta one part in a hundred pays for the cap on the number of tries; the rest makes the
        draws heavier than 2 epsilon / (k + 1), the most that pure privacy allows: by half at k = 10, epsilon = 1.

    Returns
    -------
    Release
        Abstains only if the cap is reached, with probability below delta / 100.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k are public.
    Numerical model: real arithmetic.  The sampler is a float64 one seeded with 256 secure bits and is not hardened
    against what floating point reveals.  Proof: docs/explanation/baselines.md, "The exponential mechanism".
    """
    with open_table(X, k, epsilon=epsilon, delta=delta, rng=rng) as table:
        step, tries, parts = plan_draws(table, "exponential mechanism, all vectors")
        matrix = second_moment(table).matrix
        vectors = deflated_vectors(matrix, table.k, 0.5 * step, tries, table.run)
        found = None if vectors is None else Subspace(vectors)
        return table.release("exponential_pca", found, *parts, step_epsilon=step, most_tries=tries)
