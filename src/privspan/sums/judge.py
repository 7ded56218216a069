"""Which mixture of two looks is best, and how good is it?  Answers from the looks themselves, at no cost.

A basis must not be judged by the noisy matrix it came from: it follows the noise.  But noise can be *split*: with a
fresh N of the same law, C + t N and C - N / t have independent noises.  One makes the basis, the other measures the
variance along it without bias; averages over several N are steadier.  All of this is post-processing of released
matrices, so N may come from the public stream.  docs/explanation/everyday-tables.md, lemma 4.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from privspan.sums.everyday_tuning import EVERYDAY, EverydayTuning, Splitting
from privspan.sums.loadings import above_the_rest, loading_errors, separation_errors, turns
from privspan.sums.looks import Look
from privspan.sums.pca_result import Noisy

Array = NDArray[np.float64]

_SMALLEST_TRACE = 1e-9  # float64: against division by nothing, where noise has taken all
_SMALL = 40  # time: columns up to which all eigenvectors are as fast as some


def added_by(splitting: Splitting) -> float:
    """Return the standard deviation that draws add to what is measured, over that of the look; none, if paired."""
    return 0.0 if splitting.paired else 1.0 / math.sqrt(splitting.square * splitting.draws)


@dataclass(frozen=True)
class Verdict:
    """The basis of the chosen mixture and what is estimated of it; variances in units of the clipped rows' sum.

    Attributes
    ----------
    basis : (d, k) array
        By falling variance.
    variances : (k,) array
        Along the columns, not negative.
    variances_std, total, total_std : float
    captured : Noisy
    stands_out : int
        Columns that stand out of the noise and of what is left out.
    weight : float
        Of the unit look.
    loadings_std : (k, d) array
        Standard errors of the entries of the basis, due to noise.
    """

    basis: Array
    variances: Array
    variances_std: float
    total: float
    total_std: float
    captured: Noisy[float]
    stands_out: int
    weight: float
    loadings_std: Array


def is_clear(values: Array, noise: float, d: int, shortened: float, tuning: EverydayTuning = EVERYDAY) -> bool:
    """Tell whether unit rows could add anything to the k largest eigenvalues of a clipped look, falling, (k,).

    Nothing to the directions if the last stands far out of the noise, and the clipped rows carry next to nothing.
    """
    unseen, clear = tuning.unseen * shortened, tuning.clear * noise * math.sqrt(d)
    return bool(values[-1] >= clear and unseen <= tuning.negligible * float(values.sum()))


def judged_mixture(
    first: Look, unit: Look | None, k: int, public: np.random.Generator, tuning: EverydayTuning = EVERYDAY
) -> Verdict:
    """Choose the mixture of both looks that has the largest judged variance, and estimate what it captures.

    Parameters
    ----------
    first : Look
        What variances are of.
    unit : Look or None
        At unit rows, where `first` is at clipped ones and both are to be mixed.
    k : int
        At most d.
    public : numpy.random.Generator
    tuning : EverydayTuning, optional
    """
    weight = 0.0
    if unit is not None:
        weights = _candidates(first, k, tuning)
        sums = np.array(_judged(unit, first, weights, k, tuning.choosing, public)).sum(axis=1)  # (weights,)
        weight = weights[int(np.argmax(sums))]
    other = first if unit is None else unit
    d = len(first.moment)
    splitting = tuning.estimating if d <= tuning.wide else tuning.estimating_wide
    judged = _judged(other, first, (0.0,) if weight == 0.0 else (0.0, weight), k, splitting, public)
    own, chosen = judged[0], judged[-1]  # (k,)
    values, vectors = leading(_mixed(other.moment, first.moment, weight), k)
    basis, turn, along = _turned(vectors[:, :k], first.moment)
    total = _trace(first.moment)
    noise = math.hypot((1.0 - weight) * first.noise / total, weight * other.noise / _trace(other.moment))
    best, vectors_of_best = leading(first.moment, k)
    apart = math.sqrt(max(2.0 * (k - float(((basis.T @ vectors_of_best[:, :k]) ** 2).sum())), 0.0))
    deviation = math.sqrt(2.0) * first.noise * math.hypot(apart, math.sqrt(k) * added_by(splitting) / 2.0)
    return Verdict(
        basis,
        np.sort(np.maximum(chosen, 0.0))[::-1],
        math.sqrt(2.0) * first.noise * math.hypot(1.0, added_by(splitting)),
        total,
        math.sqrt(2.0 * d) * first.noise,
        captured(float(chosen.sum()), float(own.sum()), float(best[:k].sum()), deviation, k * (d - k), tuning),
        steady(values, noise, d, tuning) if total > tuning.not_noise * math.sqrt(2.0 * d) * first.noise else 0,
        weight,
        loadings_std(basis, turns(along, along, first.noise), values, noise, turn, vectors[:, k:]),
    )


def _candidates(clipped: Look, k: int, tuning: EverydayTuning = EVERYDAY) -> tuple[float, ...]:
    """Return the weights to choose from: a choice has noise of its own, and is offered where mixing may pay."""
    values = leading(clipped.moment, k)[0][:k]
    worth_it = len(clipped.moment) >= tuning.many_columns or values[0] > tuning.steep * values[-1]
    return tuning.weights if worth_it else tuning.weights[:1]


def captured(
    got: float, own: float, best: float, noise: float, entries: int, tuning: EverydayTuning = EVERYDAY
) -> Noisy[float]:
    """Estimate which share of the best variance a basis has.

    Parameters
    ----------
    got, own : float
        Judged variance of the basis, and of that of the matrix itself.
    best : float
        Sum of the k largest eigenvalues of the noisy matrix, which is too large by what `own` is too small.
    noise : float
        Standard deviation of `got` less the mean of the other two.
    entries : int
        Those of the noise that turn the basis, k (d - k).  What is lost is a sum of so many squares: with few of
        them it may be far from its mean, which is what is estimated.
    """
    truth = max((best + max(own, 0.0)) / 2.0, _SMALLEST_TRACE)
    value = min(1.0, max(got, 0.0) / truth)
    of_loss = math.sqrt(tuning.of_loss**2 + 2.0 / max(entries, 1))
    return Noisy(value, math.hypot(noise / truth, of_loss * (1.0 - value)))


def steady(values: Array, noise: float, d: int, tuning: EverydayTuning = EVERYDAY) -> int:
    """Count the leading directions that stand out of the noise and of the rest, for a matrix of trace 1."""
    k = len(values) - 1
    return k if d == k else int((separation_errors(values, noise, 1.0, d) < tuning.stands_out).sum())


def loadings_std(basis: Array, within: Array, values: Array, noise: float, turn: Array, beside: Array) -> Array:
    """Return the standard errors of the entries of a basis, (k, d), which a mixture of trace 1 and a turn made.

    Parameters
    ----------
    basis : (d, k) array
    within : (k, k) array
        Mean square sines of the turns of the columns towards one another.
    values : (k + 1,) array
        Largest eigenvalues of the mixture.
    noise : float
        Of the mixture.
    turn : (k, k) array
        What made the basis of the leading eigenvectors.
    beside : (d, 1) array, or (d, 0)
        The next eigenvector.
    """
    d, k = basis.shape
    if d == k:
        return loading_errors(basis, within, np.zeros(k))
    above = above_the_rest(values, noise, 1.0, d)
    off = noise**2 / (above**2 + noise**2)
    towards = np.maximum(turns(values[:k], values[k:], noise)[:, 0], off)
    turned = turn**2  # within the span; off it mean square sines turn along
    return loading_errors(basis, within, off @ turned, (beside[:, 0], towards @ turned))


def leading(matrix: Array, k: int, beyond: int = 1) -> tuple[Array, Array]:
    """Return k largest eigenvalues and `beyond`, 0 or 1, more (NaN if there is none), and eigenvectors that exist."""
    d = len(matrix)
    first = max(d - k - beyond, 0)
    try:
        values, vectors = linalg.eigh(matrix, subset_by_index=(first, d - 1), check_finite=False)
    except linalg.LinAlgError:  # where many are equal to the last bit, a solver for a few of them may give up
        values, vectors = (found[..., first:] for found in np.linalg.eigh(matrix))
    return np.append(values[::-1], np.nan)[: k + beyond], vectors[:, ::-1]


def _judged(
    unit: Look, first: Look, weights: tuple[float, ...], k: int, splitting: Splitting, public: np.random.Generator
) -> list[Array]:
    """Return the variances of the rows behind `first` along the basis of every mixture; (k,) each."""
    t, d, draws = math.sqrt(splitting.square), len(first.moment), splitting.draws
    normal = public.standard_normal((draws // (1 + splitting.paired), d, d))
    noises = (normal + normal.mT) / math.sqrt(2.0) * first.noise  # of deviation sqrt(2) on the diagonal
    if splitting.paired:
        noises = np.concatenate([noises, -noises])
    makers, measures = first.moment + t * noises, first.moment + (-1.0 / t) * noises  # (draws, d, d)
    judged = []
    for weight in weights:
        bases = _leading_bases(_mixed(unit.moment, makers, weight), k)
        turned = _turned(bases, makers)[0]  # (draws, d, k)
        judged.append(np.einsum("tij,tij->j", turned, measures @ turned) / draws)
    return judged


def _leading_bases(matrices: Array, k: int) -> Array:
    """Return k leading eigenvectors of each matrix, (matrices, d, k); small ones all at once, which is faster."""
    if matrices.shape[1] <= _SMALL:
        return np.asarray(np.linalg.eigh(matrices)[1][:, :, ::-1][:, :, :k])
    return np.array([leading(matrix, k)[1][:, :k] for matrix in matrices])


def _mixed(unit: Array, clipped: Array, weight: float) -> Array:
    """Return mixtures of trace 1, (..., d, d), of one second moment and others."""
    traces = np.maximum(np.trace(clipped, axis1=-2, axis2=-1), _SMALLEST_TRACE)[..., None, None]
    return np.asarray((1.0 - weight) * clipped / traces + weight * unit / _trace(unit))


def _trace(matrix: Array) -> float:
    return max(float(np.trace(matrix)), _SMALLEST_TRACE)


def _turned(basis: Array, moment: Array) -> tuple[Array, Array, Array]:
    """Turn bases within their spans to the principal directions of second moments there, largest first.

    Returns the bases (..., d, k), the turns (..., k, k) and the eigenvalues (..., k).
    """
    within = basis.mT @ moment @ basis
    values, axes = np.linalg.eigh(0.5 * (within + within.mT))
    turn = axes[..., ::-1]
    return np.asarray(basis @ turn), turn, values[..., ::-1]
