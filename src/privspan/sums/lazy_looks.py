"""Looks at wide tables: second moments about the mean, revealed where they are looked at, mixed and judged.

What `privspan.sums.judge` does with whole matrices is done here with what a block Krylov iteration asks for.
Directions are chosen from C + t N (and the unit look, if there is one), with N a symmetric noise from the public
stream, drawn in the same directions; C - N / t, whose noise is independent of that, judges what was found.  Then the
iteration goes on with C itself, strengthened by what was kept for a unit look that is not needed, or with the chosen
mixture.  docs/explanation/everyday-tables.md, lemmas 3 and 4.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan.privacy.run import Run
from privspan.rows.partitioned_rows import AnyRows, PerRow
from privspan.sums.centred_gauss import CentredGauss
from privspan.sums.everyday_tuning import EVERYDAY, EverydayTuning
from privspan.sums.judge import (
    Verdict,
    added_by,
    captured,
    is_clear,
    loadings_std,
    steady,
)
from privspan.sums.krylov import leading_pairs
from privspan.sums.lazy_gauss import within_memory
from privspan.sums.lifts import Lift
from privspan.sums.loadings import turns
from privspan.sums.looks import CONSTANT

Array = NDArray[np.float64]


@dataclass(frozen=True)
class LookedAt:
    """What looks at rows of length at most 1 end with: a verdict, the mean of the rows, its noise, and the passes.

    Also the whole second moment that the variances are of, where it was looked at, and whether there was a look at
    unit rows beside that at clipped ones.
    """

    verdict: Verdict
    mean: Array
    mean_noise: float
    passes: int = 1
    moment: Array | None = None
    unit: bool = False


class _Columns:
    """A tall matrix that grows by columns, of which there is room for so many."""

    def __init__(self, d: int, most: int) -> None:
        self._room, self._count = np.empty((d, most), order="F"), 0

    @property
    def whole(self) -> Array:
        return self._room[:, : self._count]

    def append(self, columns: Array) -> None:
        start, self._count = self._count, self._count + columns.shape[1]
        self._room[:, start : self._count] = columns


class _PublicNoise:
    """A symmetric normal matrix from the public stream, drawn in the directions of others, of which `most` exist."""

    def __init__(self, sigma: float, d: int, most: int, public: np.random.Generator) -> None:
        self._sigma, self._public, self._columns = sigma, public, _Columns(d, most)

    @property
    def image(self) -> Array:
        return self._columns.whole

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
        self._columns.append(outside)


class _Mixture:
    """A weighted sum of moments, and of a public noise, in the form that the Krylov iteration asks."""

    complete = False

    def __init__(self, looks: CentredGauss, weights: Sequence[float], split: _PublicNoise, part: float) -> None:
        self._looks, self._weights, self._split, self._part = looks, weights, split, part
        noises = (weight * noise for weight, noise in zip(weights, looks.noises, strict=True))
        self.noise = math.hypot(*noises, part * looks.noises[0])
        self._image = _Columns(len(self.basis), looks.most_directions)

    @property
    def basis(self) -> Array:
        return self._looks.directions

    @property
    def image(self) -> Array:
        known = self._image.whole.shape[1]
        if known < self.basis.shape[1]:
            parts = [weight * self._looks.image(i, known) for i, weight in enumerate(self._weights) if weight]
            parts += [self._part * self._split.image[:, known:]] if self._part else []
            self._image.append(np.asarray(sum(parts)))
        return self._image.whole

    def extend(self, block: Array) -> bool:
        extended = self._looks.extend(block)
        if extended:
            self._split.follow(self.basis)
        return extended

    def reveal_all(self) -> None:
        """Do nothing: these matrices are wide."""


def lazy_looks(
    rows: AnyRows,
    factors: PerRow | None,
    mus: Sequence[float],
    k: int,
    run: Run,
    *,
    total: float,
    total_std: float = 0.0,
    shortened: float = 0.0,
    constant: float = CONSTANT,
    lift: Lift | None = None,
    count: float | None = None,
    tuning: EverydayTuning = EVERYDAY,
) -> LookedAt:
    """Look at rows with factors, in as few directions as it takes, and at unit rows besides where that may help.

    Parameters
    ----------
    rows : Rows
        Unit rows.
    factors : (n,) array or RowValues
        As for `AugmentedGram`; None for the rows as they are.
    mus : sequence of float
        Privacy of the look, and of a second one: at the same rows once more if the first is clear, or at unit rows.
    k : int
        At most d.
    run : Run
    total, total_std : float
        Sum of the squared lengths of the rows with factors, public or released, and its noise.
    shortened : float
        About how many rows were clipped; as for `is_clear`.
    constant, lift, count
        As for `released_looks`.
    tuning : EverydayTuning, optional

    Guarantee
    ---------
    Each look is Gaussian with its mu.  Proof: docs/explanation/everyday-tables.md, lemmas 3 and 4.
    """
    d, public = rows.shape[1], run.streams.public
    block, passes = min(_block_size(k, tuning), d), tuning.early + tuning.passes + tuning.finish_passes + 2
    start = (
        min(block + tuning.together - 1, d) if constant else block
    )  # the mean is one more direction of the first pass
    columns, first = max(within_memory(start + (passes - 1) * block, d), start), public.standard_normal((d, start))
    # Not clear even if half of the variance were along k directions alike: then both looks share all passes.
    both = len(mus) == 2 and not is_clear(np.full(k, total / (2 * k)), 1.0 / mus[0], d, shortened, tuning)
    numbers: Any = {"first": first, "columns": columns, "passes": passes, "lift": lift, "count": count}
    looks = CentredGauss(rows, factors, constant, mus, run, unit=both, **numbers)
    split, t = _PublicNoise(looks.noises[0], d, looks.most_directions, public), math.sqrt(tuning.splitting.square)
    split.follow(looks.directions)
    if len(mus) == 2 and not both:
        # By C + t N, as all else that decides about directions: what judges them is then independent of its noise.
        values, _ = leading_pairs(
            _Mixture(looks, [1.0], split, t), k, block, tuning.early, public, small=tuning.small
        )
        both = not is_clear(values[:k], looks.noises[0], d, shortened, tuning)
        if both:
            looks.look_at_unit_rows()
    sizes = (total, float(rows.shape[0] if count is None else count))
    traces = [max(size - float(added @ added), 1.0) for added, size in zip(looks.added, sizes, strict=False)]
    halves = _shares(0.5, traces)
    leading_pairs(_Mixture(looks, halves, split, halves[0] * t), k, block, tuning.passes, public, small=tuning.small)
    weights = tuning.weights if both else tuning.weights[:1]
    judged = _judged(looks, traces, split, t, weights, k)
    chosen = int(np.argmax([variances.sum() for variances in judged]))
    noise = math.sqrt(2.0) * looks.noises[0] * math.hypot(1.0, added_by(tuning.splitting))
    best = float(_top(_inner(looks.directions, looks.image(0)), k).sum())
    deviation = math.sqrt(2.0 * k) * looks.noises[0] * added_by(tuning.splitting) / 2.0
    seen = captured(float(judged[chosen].sum()), float(judged[0].sum()), best, deviation, k * (d - k), tuning)
    if len(mus) == 2 and not both:  # what noise turns away falls with its square
        seen = replace(seen, value=1.0 - (1.0 - seen.value) * looks.strengthen())
    final = _Mixture(looks, _shares(weights[chosen], traces), split, 0.0)
    values, basis = leading_pairs(final, k, block, tuning.finish_passes, public, small=tuning.finish_small, trace=1.0)
    beside = final.basis @ np.linalg.eigh(_inner(final.basis, final.image))[1][:, ::-1][:, k : k + 1]  # (d, 1)
    loadings = loadings_std(basis, turns(values[:k], values[:k], final.noise), values, final.noise, np.eye(k), beside)
    variances, found = np.sort(np.maximum(judged[chosen], 0.0))[::-1], steady(values, final.noise, d, tuning)
    verdict = Verdict(basis, variances, noise, traces[0], total_std, seen, found, weights[chosen], loadings)
    return LookedAt(verdict, looks.mean, looks.mean_noise, looks.passes, unit=both)


def _block_size(k: int, tuning: EverydayTuning) -> int:
    """Return how many directions a pass asks for."""
    return -(-max(k + tuning.oversampling, tuning.least_block) // tuning.together) * tuning.together


def _shares(weight: float, traces: Sequence[float]) -> list[float]:
    """Return what the looks are multiplied by in a mixture of trace 1, the unit look, if there is one, last."""
    return [1.0 / traces[0]] if len(traces) == 1 else [(1.0 - weight) / traces[0], weight / traces[1]]


def _inner(basis: Array, image: Array) -> Array:
    within = basis.T @ image
    return np.asarray(0.5 * (within + within.T))


def _top(within: Array, k: int) -> Array:
    """Return the k largest eigenvalues of a matrix, falling; (k,)."""
    return np.asarray(np.linalg.eigvalsh(within)[::-1][:k], np.float64)


def _judged(
    looks: CentredGauss, traces: Sequence[float], split: _PublicNoise, t: float, weights: Sequence[float], k: int
) -> list[Array]:
    """Return the variances along the basis of each mixture, within what was revealed; (k,) each."""
    basis = looks.directions
    within, noise = [_inner(basis, looks.image(i)) for i in range(len(traces))], _inner(basis, split.image)
    maker, measure = within[0] + t * noise, within[0] - noise / t  # (m, m)
    judged = []
    for weight in weights:
        parts = zip(_shares(weight, traces), [maker, *within[1:]], strict=True)
        turn = np.linalg.eigh(sum(share * part for share, part in parts))[1][:, ::-1][:, :k]
        judged.append(np.einsum("ij,ij->j", turn, measure @ turn))
    return judged
