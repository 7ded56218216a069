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

import numpy as np
from numpy.typing import NDArray

from privspan.privacy.randomness import BitSource, Streams
from privspan.rows.partitioned_rows import AnyRows, PerRow
from privspan.sums.judge import WEIGHTS, Splitting, Verdict, captured, steady
from privspan.sums.krylov import leading_pairs
from privspan.sums.lazy_gauss import LazyGauss, UnitGram, within_memory
from privspan.sums.looks import CONSTANT, AugmentedGram, mean_part

Array = NDArray[np.float64]

_SPLITTING = Splitting(0.1, 1)
_OVERSAMPLING = 7  # directions per pass beyond k
_PASSES, _FINISH_PASSES = 12, 8  # most passes before and after the judgement


@dataclass(frozen=True)
class LookedAt:
    """What looks at rows of length at most 1 end with: a verdict, and the mean of the rows with its noise."""

    verdict: Verdict
    mean: Array
    mean_noise: float


class CentredGauss:
    """A noisy second moment of rows about their mean, revealed block by block.

    Parameters
    ----------
    rows : Rows
        Of length at most 1.
    factors : (n,) array or RowValues, optional
        As for `AugmentedGram`.
    constant : float
        0 if the mean is known to be zero.
    mu : float
        Privacy of everything that is ever revealed.
    bits : BitSource
        Private noise.
    first : (d, b) array
        First directions, public.
    columns : int
        Most directions.

    Attributes
    ----------
    basis, image : (d, m) arrays
        Directions revealed so far, and the matrix times these.
    noise : float
        Standard deviation off the diagonal.
    added : (d,) array
        b, if the mean has added b bᵀ to the sum.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours: what `LazyGauss` reveals of `AugmentedGram`, and post-processing.
    Proof: docs/explanation/everyday-tables.md, lemma 3.
    """

    complete = False

    def __init__(
        self,
        rows: AnyRows,
        factors: PerRow | None,
        constant: float,
        mu: float,
        bits: BitSource,
        *,
        first: Array,
        columns: int,
    ) -> None:
        n, self._d = rows.shape
        source = AugmentedGram(rows, factors, constant) if constant else UnitGram(rows)
        passes = _PASSES + _FINISH_PASSES + 1
        self._own = 1 if constant else 0  # columns of the lazy matrix that are for the mean
        self._lazy = LazyGauss(source, mu, bits, most_columns=columns + self._own, most_passes=passes)
        self.noise = self._lazy.noise
        column = np.zeros(self._d)
        if constant:
            last = np.zeros((self._d + 1, 1))
            last[-1] = 1.0
            self._lazy.extend(np.hstack([last, self._padded(first)]))
            column = (
                self._lazy.image[:-1, 0] * self._lazy.basis[-1, 0]
            )  # that direction is plus or minus the last axis
        else:
            self._lazy.extend(first)
        self.mean, self.mean_noise, self.added = mean_part(column, self.noise, n, constant)

    def _padded(self, block: Array) -> Array:
        return np.vstack([block, np.zeros((self._own, block.shape[1]))])

    @property
    def basis(self) -> Array:
        """Directions revealed so far."""
        return self._lazy.basis[: self._d, self._own :]

    @property
    def image(self) -> Array:
        """The matrix times these directions."""
        return self._lazy.image[: self._d, self._own :] - np.outer(self.added, self.added @ self.basis)

    def extend(self, block: Array) -> bool:
        """Reveal the matrix on the directions of `block` that are new; False if nothing could be revealed."""
        return self._lazy.extend(self._padded(block))


class _PublicNoise:
    """A symmetric normal matrix from the public stream, drawn in the directions of others."""

    def __init__(self, sigma: float, public: np.random.Generator) -> None:
        self._sigma, self._public = sigma, public
        self.image: Array | None = None

    def follow(self, basis: Array) -> None:
        """Draw what the last columns of an orthonormal basis, those that are new, ask for."""
        known = 0 if self.image is None else self.image.shape[1]
        fresh = basis[:, known:]
        d, b = fresh.shape
        square = self._public.standard_normal((b, b))
        outside = self._sigma * self._public.standard_normal((d, b))
        outside -= basis @ (basis.T @ outside)
        outside += fresh @ (self._sigma / math.sqrt(2.0) * (square + square.T))
        if self.image is None:
            self.image = outside
        else:
            self.image = np.hstack([self.image, outside + basis[:, :known] @ (self.image.T @ fresh)])


class _Mixture:
    """A weighted sum of looks (and of a public noise), in the form that the Krylov iteration asks."""

    complete = False

    def __init__(
        self, looks: Sequence[CentredGauss], weights: Sequence[float], split: _PublicNoise | None, part: float
    ) -> None:
        used = [(look, weight) for look, weight in zip(looks, weights, strict=True) if weight or split]
        self._looks, self._weights = zip(*used, strict=True)
        self._split, self._part = split, part
        self.noise = math.hypot(*(weight * look.noise for look, weight in used), part * looks[-1].noise)

    @property
    def basis(self) -> Array:
        found: Array = self._looks[0].basis
        return found

    @property
    def image(self) -> Array:
        total = sum(weight * look.image for look, weight in zip(self._looks, self._weights, strict=True) if weight)
        if self._split is not None and self._part:
            assert self._split.image is not None
            total = total + self._part * self._split.image
        return np.asarray(total)

    def extend(self, block: Array) -> bool:
        extended = [look.extend(block) for look in self._looks]  # alike for all, which have the same directions
        if all(extended) and self._split is not None:
            self._split.follow(self.basis)
        return all(extended)

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
    constant: float = CONSTANT,
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
    constant : float
        As for `whole_looks`.

    Guarantee
    ---------
    Each look is Gaussian with its mu.  Proof: docs/explanation/everyday-tables.md, lemmas 3 and 4.
    """
    n, d = rows.shape
    block = min(k + _OVERSAMPLING, d)
    columns = within_memory((_PASSES + _FINISH_PASSES + 1) * block, d)
    first = streams.public.standard_normal((d, block))
    looks = [
        CentredGauss(rows, known, constant, mu, streams.noise, first=first, columns=columns)
        for known, mu in zip(factors, mus, strict=True)
    ]
    last = looks[-1]
    sizes = (float(n), total)[-len(looks) :]
    traces = [max(size - float(look.added @ look.added), 1.0) for look, size in zip(looks, sizes, strict=True)]
    split = _PublicNoise(last.noise, streams.public)
    split.follow(last.basis)
    t = math.sqrt(_SPLITTING.square)
    weights = WEIGHTS if len(looks) == 2 else (0.0,)
    halves = _shares(0.5, traces)
    maker = _Mixture(looks, halves, split, halves[-1] * t)
    leading_pairs(maker, k, block, _PASSES, streams.public)
    judged = _judged(looks, traces, split, weights, k)
    chosen = int(np.argmax([variances.sum() for variances in judged]))
    weight = weights[chosen]
    best = np.linalg.eigvalsh(_inner(last.basis, last.image))[::-1][:k].sum()
    final = _Mixture(looks, _shares(weight, traces), None, 0.0)
    values, basis = leading_pairs(final, k, block, _FINISH_PASSES, streams.public)
    noise = math.sqrt(2.0) * last.noise * _SPLITTING.excess
    kept, own = judged[chosen], judged[0]
    verdict = Verdict(
        basis,
        np.sort(np.maximum(kept, 0.0))[::-1],
        noise,
        traces[-1],
        total_std,
        captured(float(kept.sum()), float(own.sum()), float(best), math.sqrt(k) * noise),
        steady(values, final.noise, d),
        weight,
    )
    return LookedAt(verdict, last.mean, last.mean_noise)


def _shares(weight: float, traces: Sequence[float]) -> list[float]:
    """Return what the looks are multiplied by in a mixture of trace 1, the unit look first."""
    return [1.0 / traces[0]] if len(traces) == 1 else [weight / traces[0], (1.0 - weight) / traces[1]]


def _inner(basis: Array, image: Array) -> Array:
    within = basis.T @ image
    return np.asarray(0.5 * (within + within.T))


def _judged(
    looks: Sequence[CentredGauss], traces: Sequence[float], split: _PublicNoise, weights: Sequence[float], k: int
) -> list[Array]:
    """Return the variances along the basis of each mixture, within what was revealed; (k,) each."""
    assert split.image is not None
    basis, t = looks[-1].basis, math.sqrt(_SPLITTING.square)
    within, noise = [_inner(basis, look.image) for look in looks], _inner(basis, split.image)
    maker, measure = within[-1] + t * noise, within[-1] - noise / t  # (m, m)
    judged = []
    for weight in weights:
        parts = zip(_shares(weight, traces), [*within[:-1], maker], strict=True)
        turn = np.linalg.eigh(sum(share * part for share, part in parts))[1][:, ::-1][:, :k]
        judged.append(np.einsum("ij,ij->j", turn, measure @ turn))
    return judged
