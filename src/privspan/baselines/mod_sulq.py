"""MOD-SuLQ (Chaudhuri, Sarwate, Sinha, NeurIPS 2012): the second moment plus independent noise in its upper triangle.

The system is kept as it is, all distinct entries with the same noise; its calibration is replaced by the exact one,
which does not grow with d as the published one does.  With noise of another shape, smaller off the diagonal, it
becomes `privspan.baselines.analyze_gauss`.
"""

from __future__ import annotations

import math

import numpy as np

from privspan.baselines._common import REPLACEMENT, baseline, leading_subspace, open_table
from privspan.privacy import Budget, Release
from privspan.privacy.randomness import RandomLike
from privspan.sums.grid import SumBounds, gaussian_sum, upper_triangle
from privspan.sums.lazy_gauss import UnitGram


@baseline
def mod_sulq(X: object, k: int, *, epsilon: float, delta: float, rng: RandomLike = None) -> Release:
    """Release the leading subspace of the second moment plus i.i.d. symmetric Gaussian noise.

    Returns
    -------
    Release
        Never abstains.  ``parameters["noise"]`` is the standard deviation used, on the scale of the sum;
        ``parameters["published_noise"]`` is what the paper's formula asks for, for comparison.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k are public.
    Rounding and the noise are exact.  Proof: docs/explanation/baselines.md, "MOD-SuLQ".
    """
    with open_table(X, k, epsilon=epsilon, delta=delta, rng=rng) as table:
        gram = UnitGram(table.rows)
        d = table.d
        triangle = np.triu_indices(d)
        bounds = SumBounds(REPLACEMENT, gram.chunk_error(d), upper_triangle(d), 1.02 * table.n)
        mu = table.budget.mu
        sums = gram.products(None, lambda total: total[triangle])
        values, sigma = gaussian_sum(sums, (upper_triangle(d),), bounds, mu, table.run)
        noisy = np.zeros((d, d))
        noisy[triangle] = values
        noisy = noisy + np.triu(noisy, 1).T
        part = table.whole("noisy second moment", mu)
        published = published_noise(d, table.budget)
        found = leading_subspace(noisy, table.k)
        return table.release("mod_sulq", found, part, noise=sigma, published_noise=published)


def published_noise(d: int, budget: Budget) -> float:
    """Return n times the paper's beta: the noise on the sum that its formula asks for."""
    entries = (d * d + d) / (2.0 * math.sqrt(2.0 * math.pi) * budget.delta)
    root = math.sqrt(2.0 * math.log(max(entries, math.e)))
    return (d + 1) / budget.epsilon * root + 1.0 / math.sqrt(budget.epsilon)
