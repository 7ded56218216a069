"""k-DP-PCA (Düngler, Sanyal 2025, after Liu, Kong, Jain, Oh 2022): Oja's steps with noise as large as gradients vary.

One direction after the other is found, off those found before.  A step looks at the gradients x (xᵀw) at the current
direction w: a private histogram of octaves tells how far they lie from a released centre, they are clipped to that
distance, and their mean gets noise in proportion to it.  Where the records agree there is little to hide and so
little noise, which a fixed clip cannot offer.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import repeat

import numpy as np

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan._lib.rounding import relative_error
from privspan.baselines._common import Array, Table, baseline, open_table
from privspan.baselines._tuning import RIVALS
from privspan.baselines.noisy_range_finder import MOST_ENTRIES
from privspan.privacy import Part, Release, share_mu
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Run
from privspan.rows.partitioned_rows import AnyRows, ChunkSums, PerRow, per_row
from privspan.rows.scaling import Piece, combined
from privspan.rows.unit import CHUNK_ROWS
from privspan.subspace import Subspace
from privspan.sums.grid import SumBounds, gaussian_sum
from privspan.sums.localised import residual_slack
from privspan.sums.variance import typical_size

_OCTAVES = (-22, 1)  # of the distances that are told apart; none exceeds 1 by more than rounding
_LEAST_RADIUS = 2.0**-20  # below, float64 would add more than one per cent to the sensitivity
_INWARDS = 1.0 + 2.0**-36  # rounding: more than the relative error of a weight

NO_CLIP = 4.0
"""A radius that no gradient reaches: they are bounded by 2."""


@baseline
def k_dp_pca(
    X: object,
    k: int,
    *,
    epsilon: float,
    delta: float,
    steps: int | None = None,
    single_pass: bool = False,
    rng: RandomLike = None,
) -> Release:
    """Find one direction after the other by Oja's steps, with noise that adapts to the spread of the gradients.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row; rows are scaled to unit length, entries that are not finite count as 0.
    k : int
        Dimension.  Times d it must be at most 2^27.
    steps : int, optional
        Steps for each direction, by default 8, or 16 if k is 1; 4 in a single pass.
    single_pass : bool, default=False
        As published: every step has records of its own, about ``n / (k steps)``, and the whole budget.  By default
        all steps look at all records and share the budget, which takes less noise.

    Returns
    -------
    Release
        Never abstains.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k and the options are
    public.  Rounding and the noise are exact; assumed is that the products of a matrix library compute every output
    row from its own input row.  Proof: docs/explanation/baselines.md, "k-DP-PCA".
    """
    with open_table(X, k, epsilon=epsilon, delta=delta, rng=rng, widest=None) as table:
        n, d, k = table.n, table.d, table.k
        steps = default_steps(k, single_pass) if steps is None else steps
        checks.integer_at_least(1, steps=steps)
        if k * d > MOST_ENTRIES:
            template = "{k} times d must be at most {most_entries}; got {got} times {d}."
            raise ParameterError(template, most_entries=MOST_ENTRIES, got=k, d=d)
        if single_pass and k * steps > n:
            template = "{steps} times k must be at most the number of rows, {n}, in a single pass; got {got!r}."
            raise ParameterError(template, n=n, got=steps)
        mu = table.budget.mu
        shares = (mu,) * k if single_pass else share_mu(mu, *[1.0] * k)
        batches = _own_batches(table, k * steps) if single_pass else repeat(table.rows)
        basis: Array = np.zeros((d, 0))
        for share in shares:
            mus = (share,) * steps if single_pass else share_mu(share, *[1.0] * steps)
            start = table.run.streams.public.standard_normal(d)
            direction = _direction(batches, mus, basis, start, table.run)
            basis = np.linalg.qr(np.column_stack([basis, direction]))[0]
        # A record is in one batch of a single pass, and nowhere else: the whole budget is spent once.
        parts = (
            [table.whole("the step with the record", mu)]
            if single_pass
            else [Part.gaussian(f"direction {i + 1}", share, table.budget.delta) for i, share in enumerate(shares)]
        )
        return table.release("k_dp_pca", Subspace(basis), *parts, steps=int(steps), single_pass=bool(single_pass))


def default_steps(k: int, single_pass: bool) -> int:
    """Return the steps for each direction; a single one can be followed for longer, as its records agree the most."""
    if single_pass:
        return RIVALS.oja_steps_of_a_pass
    return RIVALS.oja_steps_alone if k == 1 else RIVALS.oja_steps


def _own_batches(table: Table, count: int) -> Iterator[AnyRows]:
    """Yield the rows of one batch after the other, dealt in a public order: each record is in one of them."""
    source = table.source.here()
    order = table.run.streams.public.permutation(table.n)
    for numbers in np.array_split(order, count):
        yield source.draw(np.sort(numbers)).rows()


def _direction(batches: Iterator[AnyRows], mus: tuple[float, ...], basis: Array, start: Array, run: Run) -> Array:
    """Release one direction off the basis, by Oja's steps from a public start; (d,)."""
    direction, centre = _normalised(_off(start, basis), start), np.zeros_like(start)
    known = 0.0  # precision of the direction, as far as its steps count
    for step, mu in enumerate(mus):
        noisy, noise = _mean_gradient(next(batches), Gradients(basis, direction, centre), mu, run)
        mean = _off(noisy, basis)
        eigenvalue = float(mean @ direction)
        precision = float(mean @ mean) / noise**2
        # Of Oja's rates, the one that makes the direction an average of what the steps found, the precise ones first.
        rate = math.inf if known == 0.0 or eigenvalue <= 0.0 else precision / (known * eigenvalue)
        direction = _normalised(mean if math.isinf(rate) else direction + rate * mean, direction)
        if step >= RIVALS.oja_forgotten:
            known += precision
            # At an eigenvector the mean gradient is the eigenvalue times it; no gradient is longer than 1.
            centre = min(max(eigenvalue, 0.0), 1.0) * direction
    return direction


def _off(vector: Array, basis: Array) -> Array:
    return np.asarray(vector - basis @ (basis.T @ vector))


def _normalised(vector: Array, otherwise: Array) -> Array:
    """Return the vector scaled to length 1, or `otherwise` if it has no length."""
    length = float(np.linalg.norm(vector))
    return vector / length if length > 0.0 else otherwise / np.linalg.norm(otherwise)


@dataclass(frozen=True)
class Gradients:
    """What the gradient g = s (x - U z) - c of a record is made of, with s = wᵀx and z = Uᵀx as computed."""

    basis: Array  # U (d, j), released and orthonormal up to rounding: the directions found before
    direction: Array  # w (d,), released or public, of length 1 up to rounding
    centre: Array  # c (d,), released, of length at most 1 up to rounding

    def lengths(self, squares: Array, products: Array) -> Array:
        """Return upper bounds on ||g|| from ||x||² (n,) and the products (n, j + 2) of rows with `frame`."""
        along, inside, with_centre = products[:, 0], products[:, 1:-1], products[:, -1]
        off = np.maximum(squares - np.einsum("ij,ij->i", inside, inside), 0.0)  # ||x - U z||²
        turned = with_centre - inside @ (self.basis.T @ self.centre)  # cᵀ(x - U z)
        square = along**2 * off - 2.0 * along * turned + self.centre @ self.centre
        return np.asarray(np.sqrt(np.maximum(square, 0.0) + self.slack))

    @property
    def frame(self) -> Array:
        """What rows are multiplied by: w, U and c; (d, j + 2)."""
        return np.column_stack([self.direction, self.basis, self.centre])

    @property
    def slack(self) -> float:
        """Bound on the error of a computed ||g||²."""
        d, j = self.basis.shape
        return float(1.1 * (residual_slack(self.basis) + 8.0 * (1.0 + math.sqrt(j)) * relative_error(d + j + 8)))

    def bounds(self, n: int, radius: float) -> SumBounds:
        """Bound what a replacement does to the sum of n gradients clipped to `radius`, and one chunk's rounding.

        Two clipped ones differ by at most twice the radius; two that are not clipped by ||(xxᵀ - yyᵀ) w|| <= 1.
        """
        d, j = self.basis.shape
        sensitivity = 1.0 + 4.0 * self.slack if radius == NO_CLIP else 2.0 * radius
        # Of three sums over the chunk, the product with U, and what is done once with each record and each sum.
        error = 3.0 * relative_error(CHUNK_ROWS + 4) + math.sqrt(j) * relative_error(j + 1) + 12.0 * relative_error(1)
        return SumBounds(sensitivity, 1.15 * CHUNK_ROWS * error, d, 1.05 * n * radius)


def _mean_gradient(rows: AnyRows, at: Gradients, mu: float, run: Run) -> tuple[Array, float]:
    """Release the mean gradient (d,) and tell the standard deviation of its noise, mu-GDP together."""
    mu_spread, mu_mean = share_mu(mu, RIVALS.oja_spread, 1.0 - RIVALS.oja_spread)
    frame = at.frame
    products = rows.map_rows(lambda piece: piece @ frame)  # (n, j + 2)
    lengths = per_row(at.lengths, rows.squared_lengths(), products)  # (n,)
    low, high = (2.0**octave for octave in _OCTAVES)
    spread = typical_size(per_row(lambda each: np.clip(each, low, high), lengths), _OCTAVES, mu_spread, run)
    radius = max(RIVALS.oja_clip * spread, _LEAST_RADIUS)
    radius = radius if radius < 0.5 else NO_CLIP  # from 1/2 on, clipping would save no noise
    n, d = rows.shape
    sums = clipped_sums(rows, at, products, lengths, radius)
    total, sigma = gaussian_sum(sums, (d,), at.bounds(n, radius), mu_mean, run)
    return at.centre + total / n, sigma / n


def clipped_sums(rows: AnyRows, at: Gradients, products: PerRow, lengths: PerRow, radius: float) -> ChunkSums:
    """Return the sums of the gradients of each chunk, each shortened to `radius` where it is longer; (d,).

    They are Xᵀ(ωs) - U (Zᵀ(ωs)) - c sum ω, so that no gradient is formed.
    """
    d, j = at.basis.shape

    def parts(piece: Piece, known: Array, lengths: Array) -> Array:
        weights = np.minimum(1.0, radius / (lengths * _INWARDS))  # ω
        coefficients = (weights * known[:, 0])[:, None]
        inside = known[:, 1:-1].T @ coefficients
        return np.concatenate([combined(piece, coefficients).ravel(), inside.ravel(), [weights.sum()]])

    def joined(sums: Array) -> Array:
        return np.asarray(sums[:d] - at.basis @ sums[d : d + j] - at.centre * sums[-1])

    sums: ChunkSums = rows.map_chunks(parts, products, lengths, finish=joined)
    return sums
