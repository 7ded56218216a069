"""Read components off a noisy second moment whose columns are to weigh the same: post-processing.

A released moment M = S + sigma N has its own diagonal, which tells how much each column varies.  Divided by it, M is
a correlation matrix with noise.  Two things are known of that matrix beforehand and cost nothing: its diagonal is 1,
so the noise there is thrown away; and its trace is d, so shares of the variance need no noisy total.  A column whose
diagonal drowns in noise is tamed by a ridge, not dropped.
Derivations: docs/explanation/standardised.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg, special

from privspan.sums.judge import leading
from privspan.sums.pca_result import Noisy

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ReadingTuning:
    """How a moment is read: benchmarks/scripts/standardised_tables.py, fitted on other tables than it reports."""

    ridge: float = 8.0  # × sigma² d / level, on the diagonal: captures what 4 sigma sqrt(d) does, with less bias
    doubt: float = 2.0  # noise deviations: a diagonal below is doubted where the ridge is smaller still
    split: float = 0.1  # t²: which part of the noise makes the basis that the rest judges
    draws: int = 60  # of split noise, in pairs of opposite sign
    few_draws: int = 12  # with many columns, whose eigenvectors take long and scatter less
    bars: int = 200  # draws of pure noise for the bar that a component must rise above
    few_bars: int = 10  # the same with many columns
    many_columns: int = 64  # beyond so many there are few draws: each takes time
    level: float = 0.95  # quantile of the largest eigenvalue of noise
    least_left: float = 0.25  # of a column's variance after taming: more than fourfold is not given back
    second_order: float = 1.2  # × the variance of what is told of a component that stands out: second-order noise
    unseen: float = 0.25  # of the variance of tamed columns, that the best components may have besides
    most_own: float = 0.2  # variance of the logarithm of a weight, which taming keeps from going further


READING = ReadingTuning()
_WIDENED = 4.0  # × the noise between two components, in a squared gap: docs/explanation/standardised.md, "Loadings"
_ALL_VECTORS = 40  # time: columns up to which all eigenvectors are as fast as some


@dataclass(frozen=True)
class NoisyMoment:
    """A released second moment of rows of length at most 1, a sum over rows.

    Attributes
    ----------
    moment : (d, d) array
        Noise included.
    noise : float
        Standard deviation off the diagonal; sqrt(2) times that on it.
    sampling : float
        Variance that a correlation of unrelated columns has because other people might have been in the table;
        infinite where columns were cut off too roughly to tell any component.
    present : (d,) array
        Which share of the terms of each column is there: below 1 where gaps were counted.
    drawn : float
        The part of `sampling` that is due to the public draw of pairs, and so differs from fit to fit.
    """

    moment: Array
    noise: float
    sampling: float
    present: Array
    drawn: float = 0.0


@dataclass(frozen=True)
class Components:
    """Components of a correlation matrix and what is known of them; the total variance is d.

    Attributes
    ----------
    basis : (d, k) array
        Orthonormal, by falling variance.
    variances, variances_std : (k,) arrays
        Eigenvalues of the correlation matrix and their standard errors.
    captured : Noisy
        Variance along the basis over that of the best basis.
    loadings_std : (k, d) array
        Standard errors of the entries of the basis, due to noise.
    stands_out : int
        Components that rise above noise and sampling.
    seen : (d,) array of bool
        Columns whose own variance can be distinguished from noise; the others are tamed most.
    weights : (d,) array
        Components are those of correlations multiplied by these: about 1, and less for a column that noise hides.
    """

    basis: Array
    variances: Array
    variances_std: Array
    captured: Noisy[float]
    loadings_std: Array
    stands_out: int
    seen: NDArray[np.bool_]
    weights: Array


@dataclass(frozen=True)
class _Weights:
    """What columns are multiplied by.

    Attributes
    ----------
    values : (d,) array
        For the off-diagonal: 1 / sqrt(diagonal), tamed, and made up for gaps.
    left : (d,) array
        Which part of a column's variance the taming leaves: about 1, less for a rare column.
    diagonal : (d,) array
        Of the correlations less the identity: 0, and down to -1/2 for a column that may well be constant.
    own, common : (d,) array, float
        Variances of log weights, what taming took given back: of each column by itself, and of all together.
    jitter : (d,) array
        Variance of the logarithm of the square of each weight from fit to fit.
    """

    values: Array
    left: Array
    diagonal: Array
    own: Array
    common: float
    jitter: Array

    def scaled(self, moment: Array) -> Array:
        """Return w M w with a known diagonal: correlations less the identity, which changes no eigenvector."""
        made = np.asarray(moment * np.outer(self.values, self.values))
        np.fill_diagonal(made, self.diagonal)
        return made


def read_components(
    released: NoisyMoment, k: int, public: np.random.Generator, tuning: ReadingTuning = READING
) -> Components:
    """Return the k leading components of the correlation matrix behind a released moment.

    Parameters
    ----------
    released : NoisyMoment
    k : int
        From 1 to d.
    public : numpy.random.Generator
        Noise that judges noise: it protects nobody.
    tuning : ReadingTuning, optional
    """
    d = len(released.moment)
    weights = _column_weights(np.diagonal(released.moment), released, tuning)
    w, sigma = weights.values, released.noise
    correlations = weights.scaled(released.moment)
    entries = _entry_variances(released, w)
    values, vectors = np.linalg.eigh(correlations)
    values, vectors = values[::-1], vectors[:, ::-1]
    basis, best = vectors[:, :k], 1.0 + values[:k]
    many = d > tuning.many_columns
    draws = tuning.few_draws if many else tuning.draws
    # What taming took from a column is given back where variances are measured, not where components are chosen.
    untamed = 1.0 / np.sqrt(np.maximum(weights.left, tuning.least_left))  # (d,)
    judged, told, by_draws = _judged(released, weights, untamed, k, public, tuning.split, draws)
    told = _possible(told, d)
    # Component a is turned towards component b by E_ab / gap, E being the noise among eigenvectors.
    gaps = values[:k, None] - values  # (k, d)
    between = _noise_between(basis, vectors, entries)  # (k, d)
    holes = (vectors**2).T @ (1.0 / released.present)  # (d,)
    between += released.drawn * _draw_between(1.0 + values[:k], 1.0 + values, d) * np.outer(holes[:k], holes)
    # Weights are noisy too: a factor 1 + e_i of w_i adds sum_i e_i a_i b_i (value of a + value of b) to E_ab.
    between += (values[:k, None] + values) ** 2 / 4.0 * ((basis**2).T @ (weights.jitter[:, None] * vectors**2))
    turns = _turned(np.maximum(gaps**2 - _WIDENED * between, 0.0), between)
    turns[np.arange(k), np.arange(k)] = 0.0
    shortened = 1.0 - np.sqrt(1.0 - np.minimum(turns.sum(axis=1), 1.0))  # (k,)
    seen = np.diagonal(released.moment) > 2.0 * math.sqrt(2.0) * sigma
    stands_out = _stands_out(released, correlations, w, basis, seen, public, tuning)
    found = int(np.argmin(np.append(stands_out, False)))  # the first ones only
    along = basis * untamed[:, None]
    variance = np.diagonal(_noise_between(along, along, entries)) + by_draws
    variance += released.drawn * np.diagonal(_draw_between(told, told, d)) * holes[:k] ** 2
    added = along * ((correlations - np.diag(weights.diagonal)) @ along)  # by each column, (d, k)
    sums = np.maximum(added.sum(axis=0), 1e-300)
    added *= np.clip(told - 1.0, 0.0, sums) / sums  # no more than was judged
    # Noise of weights that gives back too much in one column gives back too much on average, in all together.
    by_weights = weights.own @ added**2 + (weights.own @ added) ** 2 + (told - 1.0) ** 2 * weights.common
    # A component within the noise turns with it, and its eigenvalue moves the less for that.
    stands = np.arange(k) < found
    variance = np.where(stands, tuning.second_order * (variance + by_weights), variance)
    variance = _cut(np.where(stands, told, np.maximum(told, 1.0)), variance, d / np.arange(1.0, k + 1.0))
    lost = gaps[:, k:] * turns[:, k:]
    captured = _captured(lost, weights, best, judged, stands_out, tuning)
    return Components(
        basis,
        told,
        np.sqrt(variance),
        Noisy(1.0, 0.0) if k == d else captured,
        np.sqrt(turns @ (vectors**2).T + shortened[:, None] ** 2 * basis.T**2),
        found,
        seen,
        np.sqrt(np.maximum(weights.left, 0.0)),
    )


def _draw_between(first: Array, second: Array, d: int) -> Array:
    """Return what the draw of pairs makes between components, by their variances, over one of two columns; (k, m).

    As for normal rows, less the more of the total a component has: the lengths of sign rows are fixed.
    """
    parts = [np.clip(values, 0.0, d) * (1.0 - np.clip(values, 0.0, d) / d) ** 1.25 for values in (first, second)]
    return np.asarray(np.outer(*parts) * (1.0 + np.eye(len(first), len(second))))


def _column_weights(diagonal: Array, released: NoisyMoment, tuning: ReadingTuning) -> _Weights:
    d, sigma = len(diagonal), released.noise
    level = max(float(diagonal.mean()), sigma / math.sqrt(d))
    ridge, positive = tuning.ridge * sigma**2 * d / level, np.maximum(diagonal, 0.0)
    w = np.sqrt((1.0 + ridge / level) / (positive + ridge))
    sure = positive**2 + ridge**2  # with little data the ridge alone decides; with much, noise must not be blown up
    w *= np.sqrt(sure / (sure + 2.0 * (tuning.doubt * sigma) ** 2))
    spread = max(float(diagonal.var(ddof=1)) - 2.0 * sigma**2, 0.0) if d > 1 else 0.0
    trust = spread / (spread + 2.0 * sigma**2)  # 0: the columns may well have equal diagonals
    left = 1.0 + trust * (w**2 * diagonal - 1.0)
    known = np.minimum(left - 1.0, 0.0) / 2.0  # a column that hardly varies is rare, or constant: half of either
    own = 2.0 * sigma**2 * trust * w**4
    own *= np.where(left > tuning.least_left, np.maximum(left, tuning.least_left) ** -2.0, 1.0)
    own = np.minimum(own, tuning.most_own)
    noise = own, 2.0 * sigma**2 * (1.0 - trust) / (d * level**2)
    jitter = 2.0 * sigma**2 / (positive + ridge) ** 2
    return _Weights(w / np.sqrt(released.present), left, known, *noise, jitter)


def _turned(squared_gaps: Array, between: Array) -> Array:
    """Return by how much of its length, squared, a component is expected to be turned towards another.

    Half of the gap and the noise between the two are a point of the plane with normal noise, and components turn by
    half of the angle that the point turns by about zero.
    """
    squared = squared_gaps / np.maximum(4.0 * between, 1e-12 * squared_gaps + 1e-300)  # the point's, in noise
    cosine = np.sqrt(math.pi / 8.0 * squared) * (special.ive(0, squared / 4.0) + special.ive(1, squared / 4.0))
    far = 0.25 / np.maximum(squared, 1.0)  # the same, without the rounding of 1 - cosine
    return np.asarray(np.where(squared > 1e6, far, (1.0 - np.minimum(cosine, 1.0)) / 2.0))


def _possible(numbers: Array, total: float) -> Array:
    """Return the closest numbers that do not rise, are not below zero and have at most that sum."""
    pools: list[tuple[float, int]] = []  # sums and counts: neighbours that rise are told as their mean
    for number in numbers.tolist():
        pools.append((number, 1))
        while len(pools) > 1 and pools[-2][0] * pools[-1][1] < pools[-1][0] * pools[-2][1]:
            last, count = pools.pop()
            pools[-1] = pools[-1][0] + last, pools[-1][1] + count
    falling: Array = np.repeat([sums / count for sums, count in pools], [count for _, count in pools])
    if np.maximum(falling, 0.0).sum() <= total:
        return np.asarray(np.maximum(falling, 0.0))
    # All lose as much, but none more than it has: the excess is shared by the largest that still have some then.
    shares = (np.cumsum(falling) - total) / np.arange(1, len(falling) + 1)
    return np.asarray(np.maximum(falling - shares[np.flatnonzero(falling > shares)[-1]], 0.0))


def _cut(mean: Array, variance: Array, high: Array) -> Array:
    """Return the variances of normal numbers that are told as 0 or as `high` where they are beyond."""
    std = np.sqrt(np.maximum(variance, 1e-300))  # float64: it is divided by
    low, high = np.clip(np.stack([-mean, high - mean]) / std, -40.0, 40.0)  # beyond, nothing is cut off
    below, above = special.ndtr(low), special.ndtr(-high)
    at_low, at_high = (np.exp(-0.5 * end**2) / math.sqrt(2.0 * math.pi) for end in (low, high))
    first = low * below + high * above + at_low - at_high
    second = low**2 * below + high**2 * above + 1.0 - below - above + low * at_low - high * at_high
    return np.asarray(std**2 * np.maximum(second - first**2, 0.0))


def _symmetric(d: int, public: np.random.Generator) -> Array:
    normal = public.standard_normal((d, d))
    return (normal + normal.T) / math.sqrt(2.0)


def _judged(
    released: NoisyMoment,
    weights: _Weights,
    untamed: Array,
    k: int,
    public: np.random.Generator,
    split: float,
    draws: int,
) -> tuple[Array, Array, Array]:
    """Return the variances along the leading components without the bias of having been chosen; three (k,).

    One part of a split noise makes a basis, the other, which is independent of it, measures along it: of tamed
    columns, as the components were chosen, and of the columns as they are; and what the variance of these is due to
    the draws being so few.
    """
    d, t = len(released.moment), math.sqrt(split)
    pairs, noise = np.zeros((draws // 2, 2, k)), np.zeros((d, d))
    for draw in range(draws):
        noise = -noise if draw % 2 else released.noise * _symmetric(d, public)  # in pairs: what is linear cancels
        basis = _leading(weights.scaled(released.moment + t * noise), k)
        measure = weights.scaled(released.moment - noise / t)
        tamed = np.einsum("ij,ij->j", basis, measure @ basis)
        np.fill_diagonal(measure, 0.0)  # every column has variance 1
        basis *= untamed[:, None]
        pairs[draw // 2] += [tamed / 2.0, np.einsum("ij,ij->j", basis, measure @ basis) / 2.0]
    tamed, told = 1.0 + pairs.mean(axis=0)
    return tamed, told, pairs[:, 1].var(axis=0) / (draws // 2 - 1)


def _leading(matrix: Array, k: int) -> Array:
    """Return the k leading eigenvectors; (d, k)."""
    d = len(matrix)
    if d <= _ALL_VECTORS:
        return np.asarray(np.linalg.eigh(matrix)[1][:, ::-1][:, :k])
    return leading(matrix, k, beyond=0)[1]


def _entry_variances(released: NoisyMoment, w: Array) -> Array:
    """Return how much each correlation varies by the noise; the diagonal is known; (d, d)."""
    variances = released.noise**2 * np.outer(w, w) ** 2
    np.fill_diagonal(variances, 0.0)
    return np.asarray(variances)


def _noise_between(first: Array, second: Array, entries: Array) -> Array:
    """Return the variance of a' E b for columns a of one basis and b of another; (k, m).

    E is symmetric, with independent entries of these variances.
    """
    both = np.array([((entries @ (a[:, None] * second)) * (a[:, None] * second)).sum(axis=0) for a in first.T])
    return np.asarray(np.maximum((first**2).T @ entries @ second**2 + both, 0.0))  # it may round to less


def _stands_out(
    released: NoisyMoment,
    correlations: Array,
    w: Array,
    basis: Array,
    seen: NDArray[np.bool_],
    public: np.random.Generator,
    tuning: ReadingTuning,
) -> NDArray[np.bool_]:
    """Tell which components rise above the largest eigenvalue of noise, sampling of unrelated columns included; (k,).

    Columns that cannot be seen have much noise, which must not hide a component of the others: one that lies in these
    for the most part may rise above the noise of these alone, and both bars are higher for there being two.
    """
    if math.isinf(released.sampling):
        return np.zeros(basis.shape[1], dtype=bool)
    d, deviations = len(w), np.sqrt(released.noise**2 * np.outer(w, w) ** 2 + released.sampling)
    np.fill_diagonal(deviations, 0.0)
    draws = tuning.few_bars if d > tuning.many_columns else tuning.bars
    noises = [_symmetric(d, public) * deviations for _ in range(draws)]
    groups = [np.ones(d, dtype=bool)] if seen.all() or not seen.any() else [np.ones(d, dtype=bool), seen]
    out = np.zeros(basis.shape[1], dtype=bool)
    for columns in groups:
        block, part = np.ix_(columns, columns), basis[columns]
        tops = [linalg.eigvalsh(noise[block], check_finite=False)[-1] for noise in noises]
        bar = float(np.quantile(tops, 1.0 - (1.0 - tuning.level) / len(groups))) + len(part) * released.sampling
        inside = (part**2).sum(axis=0)
        out |= (inside > 0.5) & (np.einsum("ij,ij->j", part, correlations[block] @ part) > bar * inside)
    return out


def _captured(
    lost: Array, weights: _Weights, best: Array, judged: Array, stands_out: NDArray[np.bool_], tuning: ReadingTuning
) -> Noisy[float]:
    """Estimate which share of the best variance the components have.

    A component within the noise may be as weak as it is judged, or nearly strong enough to be seen: between the two.
    Tamed columns hide variance; what that lowers the estimate by is counted as an error too.
    """
    k = len(best)
    half = float(np.where(stands_out, 0.0, (best - judged) / 4.0).sum())
    truth = max(float(best.sum() + judged.sum()) / 2.0 - half, float(k))  # the best k have 1 each at least
    hidden = tuning.unseen * float(np.maximum(1.0 - weights.left, 0.0).sum())
    got = max(float(judged.sum()), 0.0)
    shown, value = min(1.0, got / truth), min(1.0, got / (truth + hidden))
    noise = 2.0 * math.sqrt(float(np.sum(lost**2)))  # as a square of a normal number, which is skewed
    return Noisy(value, math.sqrt((noise / truth) ** 2 + (value * half / truth) ** 2 + (shown - value) ** 2))
