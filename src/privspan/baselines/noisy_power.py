"""The noisy power method (Hardt, Roth 2013; Hardt, Price 2014) with noise for the replacement of a whole row.

Each round multiplies a few orthonormal directions by A, adds Gaussian noise and orthonormalises again.  The published
noise hides one entry of the data and is the smaller, the less the directions see of it; here a person is a row, and
all rounds share one mu-GDP budget.  The first directions are random and see little of any fixed row: with sketches
clipped accordingly that round needs little of the budget.
"""

from __future__ import annotations

from privspan._lib import checks
from privspan.baselines._common import REPLACEMENT, baseline, leading_range, open_table
from privspan.baselines._tuning import RIVALS
from privspan.baselines.noisy_range_finder import check_width, contraction, default_width, noisy_sketch
from privspan.privacy import Part, Release, share_mu
from privspan.privacy.randomness import RandomLike
from privspan.sums.grid import SumBounds, gaussian_sum
from privspan.sums.lazy_gauss import UnitGram


@baseline
def noisy_power(
    X: object,
    k: int,
    *,
    epsilon: float,
    delta: float,
    rounds: int = 2,
    directions: int | None = None,
    rng: RandomLike = None,
) -> Release:
    """Find the leading subspace by subspace iteration with noise in every round.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row; rows are scaled to unit length, entries that are not finite count as 0.
    rounds : int, default 2
        Passes over the data.  The last has five sixths of mu², the others share the rest: more of them help where
        the eigenvalue gap is narrow and there is data to spare.
    directions : int, optional
        Width of the block, from k to d; by default ``16 k``, or d if that is less.  Times d it must be at most 2^27;
        before the default exceeds that it falls, down to ``k + 10``.

    Returns
    -------
    Release
        Never abstains.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k and the options are
    public.  Rounding and the noise are exact.  Proof: docs/explanation/baselines.md, "The noisy power method".
    """
    with open_table(X, k, epsilon=epsilon, delta=delta, rng=rng, widest=None) as table:
        width = default_width(table, RIVALS.directions) if directions is None else directions
        checks.integer_at_least(1, rounds=rounds)
        check_width(table, directions=width)
        gram = UnitGram(table.rows)
        bounds = SumBounds(REPLACEMENT, gram.chunk_error(width), table.d * width, 1.02 * table.n)
        shares = share_mu(table.budget.mu, *[1.0] * (rounds - 1), RIVALS.last * max(1, rounds - 1))
        block, sigma = noisy_sketch(table, width, shares[0])
        for mu in shares[1:]:
            products = gram.products(contraction(block))
            block, sigma = gaussian_sum(products, block.shape, bounds, mu, table.run)
        found = leading_range(block, table.k)
        parts = [Part.gaussian(f"round {i + 1}", mu, table.budget.delta) for i, mu in enumerate(shares)]
        return table.release("noisy_power", found, *parts, rounds=int(rounds), directions=int(width), noise=sigma)
