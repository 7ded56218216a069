"""MOD-SuLQ (Chaudhuri, Sarwate, Sinha, NeurIPS 2012): the second moment plus independent noise in its upper triangle.

The system is kept as it is, all distinct entries with the same noise; its calibration is replaced by the exact one,
which does not grow with d as the published one does.  With noise of another shape, smaller off the diagonal, it
becomes `privspan.baselines.analyze_gauss`.
"""

from __future__ import annotations

import math

import numpy as np

from privspan._lib.entry import entry
from privspan.baselines._common import leading_subspace, open_table
from privspan.privacy import Budget, Part, Release
from privspan.privacy.randomness import RandomLike
from privspan.sums.grid import SumBounds, gaussian_sum, upper_triangle
from privspan.sums.lazy_gauss import UnitGram

_REPLACEMENT = math.nextafter(math.sqrt(2.0), 2.0)  # of the upper triangle with its diagonal: lemma 1


@entry
def mod_sulq(X: object, k: int, *, epsilon: float, delta: float, rng: RandomLike = None) -> Release:
    """Release the leading subspace of the second moment plus i.i.d. symmetric Gaussian noise.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row; rows are scaled to unit length, non-finite rows count as zero.  d is at most 2048.
    k : int
        Dimension.
    epsilon, delta : float
        Privacy budget.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.

    Returns
    -------
    Release
        Never abstains.  ``parameters["noise"]`` is the standard deviation used, on the scale of the sum;
        ``parameters["published_noise"]`` is what the paper's formula asks for, for comparison.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k are public.
    Rounding and the noise are exact.  Proof: docs/explanation/baselines.md, "MOD-SuLQ".

    Examples
    --------
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(5_000, 10, 2, gamma_w=0.1, rng=0)
    >>> release = mod_sulq(X, 2, epsilon=1.0, delta=1e-6, rng=1)
    >>> release.subspace.distance(truth) < 0.1
    True
    """
    table = open_table(X, k, epsilon=epsilon, delta=delta, rng=rng)
    gram = UnitGram(table.rows)
    d = table.d
    triangle = np.triu_indices(d)
    bounds = SumBounds(_REPLACEMENT, gram.chunk_error(d), upper_triangle(d), 1.02 * table.n)
    mu = table.budget.mu
    sums = gram.products(None, lambda total: total[triangle])
    values, sigma = gaussian_sum(sums, (upper_triangle(d),), bounds, mu, table.streams.noise)
    noisy = np.zeros((d, d))
    noisy[triangle] = values
    noisy = noisy + np.triu(noisy, 1).T
    part = Part("noisy second moment", table.budget.epsilon, table.budget.delta, mu)
    public = table.public(noise=sigma, published_noise=published_noise(d, table.budget))
    cost = table.budget.cost(part)
    return Release(leading_subspace(noisy, table.k), cost, "baseline/mod_sulq", public, table.streams.private)


def published_noise(d: int, budget: Budget) -> float:
    """Return n times the paper's beta: the noise on the sum that its formula asks for."""
    entries = (d * d + d) / (2.0 * math.sqrt(2.0 * math.pi) * budget.delta)
    root = math.sqrt(2.0 * math.log(max(entries, math.e)))
    return (d + 1) / budget.epsilon * root + 1.0 / math.sqrt(budget.epsilon)
