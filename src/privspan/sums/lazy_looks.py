"""Looks at wide tables: second moments about the mean, revealed where they are looked at, mixed and judged.

What `privspan.sums.judge` does with whole matrices is done here with what a block Krylov iteration asks for.
All looks are asked for the same directions.  These are chosen from C + t N (and the unit look), with N a symmetric
noise from the public stream, drawn in the same directions; C - N / t, whose noise is independent of that, judges what
was found.  Then the iteration goes on with C itself and the chosen mixture.
docs/explanation/everyday-tables.md, lemmas 3 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan.privacy.randomness import BitSource, Streams
from privspan.rows.partitioned_rows import AnyRows, PerRow
from privspan.sums.judge import WEIGHTS, Splitting, Verdict, captured, loadings_std, steady, unseen_variance
from privspan.sums.krylov import leading_pairs
from privspan.sums.lazy_gauss import Asked, UnitGram, within_memory
from privspan.sums.lifts import Lift
from privspan.sums.loadings import turns
from privspan.sums.looks import CONSTANT, AugmentedGram, mean_part, shared_levels

Array = NDArray[np.float64]

_SPLITTING = Splitting(0.1, 1)
_OVERSAMPLING = 7  # directions per pass beyond k
_PASSES, _FINISH_PASSES = 8, 5  # most passes before and after the judgement
_SMALL, _FINISH_SMALL = 0.2, 0.1  # residuals, in spreads of the noise, that end these: noise turns directions further


@dataclass(frozen=True)
class LookedAt:
    """What looks at rows of length at most 1 end with: a verdict, the mean of the rows, its noise, and the passes.

    Also the whole second moment that the variances are of, where it was looked at.
    """

    verdict: Verdict
    mean: Array
    mean_noise: float
    passes: int = 1
    moment: Array | None = None


class CentredGauss(Asked):
    """Noisy second moments of rows about their means, revealed block by block on the same directions.

    Parameters
    ----------
    rows : Rows
        Of length at most 1.
    factors : sequence of (n,) arrays or RowValues
        One for each moment, as for `AugmentedGram`.
    constant : float
        0 if the mean is known to be zero; then there is one moment, of the rows as they are.
    mus : sequence of float
        Privacy of everything that is ever revealed of each moment.
    bits : BitSource
        Private noise.
    first : (d, b) array
        First directions, public.
    columns, passes : int
        Most directions, and most passes over the rows.
    lift, count
        As for `whole_looks`.

    Attributes
    ----------
    directions : (d, m) array
        Revealed so far.
    noises : list of float
        Standard deviations off the diagonal, of each moment.
    added : list of (d,) arrays
        b, if the mean has added b bᵀ to the sum.
    mean, mean_noise : (d,) array, float
        Of the rows of the last moment.
    passes : int
        Made so far.

    Guarantee
    ---------
    What is revealed of a moment is mu-GDP for its mu, for replace-one neighbours, and all of it Gaussian, so that the
    squares of the mus add up.  Proof: docs/explanation/everyday-tables.md, lemma 3.
    """

    def __init__(
        self,
        rows: AnyRows,
        factors: Sequence[PerRow | None],
        constant: float,
        mus: Sequence[float],
        bits: BitSource,
        *,
        first: Array,
        columns: int,
        passes: int,
        lift: Lift | None = None,
        count: float | None = None,
    ) -> None:
        self._d, n = rows.shape[1], rows.shape[0] if count is None else count
        self._own = 1 if constant else 0  # directions that are for the mean
        source = AugmentedGram(rows, factors, constant, lift) if constant else UnitGram(rows, lift)
        super().__init__(source, most_columns=columns + self._own, most_passes=passes)
        self._bits, self._levels = bits, shared_levels(self._bounds, mus)
        self._images = [self._room_for_columns() for _ in mus]
        self.noises, self.passes = [level.sigma for level in self._levels], 0
        last = np.zeros((self._d + self._own, self._own))
        last[self._d :] = 1.0
        self._reveal(np.hstack([last, self._padded(first)]))
        # The first direction is plus or minus the last axis, if that is for the mean.
        columns_of_means = [image[: self._d, 0] * self.basis[-1, 0] for image in self._images]
        parts = [
            mean_part(column, noise, n, constant) for column, noise in zip(columns_of_means, self.noises, strict=True)
        ]
        self.added = [added for _, _, added in parts]
        self.mean, self.mean_noise, _ = parts[-1]

    def _padded(self, block: Array) -> Array:
        return np.vstack([block, np.zeros((self._own, block.shape[1]))])

    @property
    def directions(self) -> Array:
        """Directions revealed so far."""
        return self.basis[: self._d, self._own :]

    def image(self, number: int) -> Array:
        """Return that moment about the mean, times the directions."""
        image, added = self._images[number][: self._d, self._own : self._columns], self.added[number]
        return image - np.outer(added, added @ self.directions) if self._own else image

    def extend(self, block: Array) -> bool:
        """Reveal all moments on the directions of `block` that are new; False if nothing could be revealed."""
        return self._reveal(self._padded(block))

    def _reveal(self, block: Array) -> bool:
        before = self._columns
        fresh = self._asked(block)
        if fresh is None:
            return False
        self.passes += 1
        seen = self._seen(fresh, self._levels[0].grid)
        for image, part, level in zip(self._images, seen, self._levels, strict=True):
            known = self.basis[:, :before] @ (image[:, :before].T @ fresh)  # by symmetry
            image[:, before : self._columns] = known + self._noisy(fresh, part, level, self._bits)
        return True


class _PublicNoise:
    """A symmetric normal matrix from the public stream, drawn in the directions of others."""

    def __init__(self, sigma: float, public: np.random.Generator) -> None:
        self._sigma, self._public = sigma, public
        self.image: Array = np.empty((0, 0))

    def follow(self, basis: Array) -> None:
        """Draw what the last columns of an orthonormal basis, those that are new, ask for."""
        known = self.image.shape[1]
        fresh = basis[:, known:]
        d, b = fresh.shape
        square = self._public.standard_normal((b, b))
        outside = self._sigma * self._public.standard_normal((d, b))
        outside -= basis @ (basis.T @ outside)
        outside += fresh @ (self._sigma / math.sqrt(2.0) * (square + square.T))
        if known:
            outside += basis[:, :known] @ (self.image.T @ fresh)
        self.image = np.hstack([self.image.reshape(d, known), outside])


class _Mixture:
    """A weighted sum of moments, and of a public noise, in the form that the Krylov iteration asks."""

    complete = False

    def __init__(self, looks: CentredGauss, weights: Sequence[float], split: _PublicNoise, part: float) -> None:
        self._looks, self._weights, self._split, self._part = looks, weights, split, part
        noises = (weight * noise for weight, noise in zip(weights, looks.noises, strict=True))
        self.noise = math.hypot(*noises, part * looks.noises[-1])

    @property
    def basis(self) -> Array:
        return self._looks.directions

    @property
    def image(self) -> Array:
        parts = [weight * self._looks.image(i) for i, weight in enumerate(self._weights) if weight]
        total = np.asarray(sum(parts))
        return total + self._part * self._split.image if self._part else total

    def extend(self, block: Array) -> bool:
        extended = self._looks.extend(block)
        if extended:
            self._split.follow(self.basis)
        return extended

    def reveal_all(self) -> None:
        """Do nothing: these matrices are wide."""


def lazy_looks(
    rows: AnyRows,
    factors: Sequence[PerRow | None],
    mus: Sequence[float],
    k: int,
    streams: Streams,
    *,
    total: float,
    total_std: float = 0.0,
    shortened: float = 0.0,
    constant: float = CONSTANT,
    lift: Lift | None = None,
    count: float | None = None,
) -> LookedAt:
    """Look once or twice at rows with factors, in as few directions as it takes.

    Parameters
    ----------
    rows : Rows
        Unit rows.
    factors : sequence of (n,) arrays or RowValues
        One or two, as for `AugmentedGram`.  None for the rows as they are, which is the first of two.
    mus : sequence of float
        Privacy of each look.
    k : int
        Less than d.
    streams : Streams
    total, total_std : float
        Sum of the squared lengths of the rows of the last look, public or released, and its noise.
    shortened : float
        As for `judged_mixture`.
    constant, lift, count
        As for `whole_looks`.

    Guarantee
    ---------
    Each look is Gaussian with its mu.  Proof: docs/explanation/everyday-tables.md, lemmas 3 and 4.
    """
    d, n = rows.shape[1], rows.shape[0] if count is None else count
    block = min(k + _OVERSAMPLING, d)
    columns = within_memory((_PASSES + _FINISH_PASSES + 1) * block, d)
    first = streams.public.standard_normal((d, block))
    passes = _PASSES + _FINISH_PASSES + 1
    numbers: Any = {"first": first, "columns": columns, "passes": passes, "lift": lift, "count": count}
    looks = CentredGauss(rows, factors, constant, mus, streams.noise, **numbers)
    sizes = (float(n), total)[-len(mus) :]
    traces = [max(size - float(added @ added), 1.0) for added, size in zip(looks.added, sizes, strict=True)]
    split = _PublicNoise(looks.noises[-1], streams.public)
    split.follow(looks.directions)
    weights = WEIGHTS if len(mus) == 2 else (0.0,)
    halves = _shares(0.5, traces)
    maker = _Mixture(looks, halves, split, halves[-1] * math.sqrt(_SPLITTING.square))
    leading_pairs(maker, k, block, _PASSES, streams.public, small=_SMALL)
    judged = _judged(looks, traces, split, weights, k)
    chosen = int(np.argmax([variances.sum() for variances in judged]))
    weight = weights[chosen]
    tops = [_top(_inner(looks.directions, looks.image(i)), k) for i in range(len(mus))]
    shares = [
        (top / trace, math.sqrt(2.0 * k) * own / trace)
        for top, trace, own in zip(tops, traces, looks.noises, strict=True)
    ]
    unseen = unseen_variance(shares[0], shares[-1], shortened)
    final = _Mixture(looks, _shares(weight, traces), split, 0.0)
    values, basis = leading_pairs(final, k, block, _FINISH_PASSES, streams.public, small=_FINISH_SMALL)
    beside = final.basis @ np.linalg.eigh(_inner(final.basis, final.image))[1][:, [-k - 1]]  # (d, 1)
    noise = math.sqrt(2.0) * looks.noises[-1] * _SPLITTING.excess
    kept, own = judged[chosen], judged[0]
    verdict = Verdict(
        basis,
        np.sort(np.maximum(kept, 0.0))[::-1],
        noise,
        traces[-1],
        total_std,
        captured(float(kept.sum()), float(own.sum()), tops[-1], math.sqrt(k) * noise, unseen),
        steady(values, final.noise, d),
        weight,
        loadings_std(basis, turns(values[:k], values[:k], final.noise), values, final.noise, np.eye(k), beside),
    )
    return LookedAt(verdict, looks.mean, looks.mean_noise, looks.passes)


def _shares(weight: float, traces: Sequence[float]) -> list[float]:
    """Return what the looks are multiplied by in a mixture of trace 1, the unit look first."""
    return [1.0 / traces[0]] if len(traces) == 1 else [weight / traces[0], (1.0 - weight) / traces[1]]


def _inner(basis: Array, image: Array) -> Array:
    within = basis.T @ image
    return np.asarray(0.5 * (within + within.T))


def _top(within: Array, k: int) -> float:
    return float(np.linalg.eigvalsh(within)[::-1][:k].sum())


def _judged(
    looks: CentredGauss, traces: Sequence[float], split: _PublicNoise, weights: Sequence[float], k: int
) -> list[Array]:
    """Return the variances along the basis of each mixture, within what was revealed; (k,) each."""
    basis, t = looks.directions, math.sqrt(_SPLITTING.square)
    within, noise = [_inner(basis, looks.image(i)) for i in range(len(traces))], _inner(basis, split.image)
    maker, measure = within[-1] + t * noise, within[-1] - noise / t  # (m, m)
    judged = []
    for weight in weights:
        parts = zip(_shares(weight, traces), [*within[:-1], maker], strict=True)
        turn = np.linalg.eigh(sum(share * part for share, part in parts))[1][:, ::-1][:, :k]
        judged.append(np.einsum("ij,ij->j", turn, measure @ turn))
    return judged
