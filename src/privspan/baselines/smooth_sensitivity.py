"""Smooth sensitivity PCA (Gonem, Gilad-Bachrach 2018): noise on the basis, scaled to how stable the subspace is.

The leading basis is rotated by a secret uniformly random rotation and gets Gaussian noise in proportion to a smooth
upper bound of its local sensitivity.  The paper leaves a constant open; here the bound is explicit, a record that
turns the basis is seen to be one that hardly moves the gap and the reverse, and the two parameters of the noise come
from the exact delta between normal laws with different variances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from privspan._lib.errors import ParameterError
from privspan.baselines._common import Array, baseline, haar_rotation, open_table, second_moment, spectrum
from privspan.baselines._loss import NEAREST_POLE, Complex, LogMoment, log_loss_delta, log_plus_one
from privspan.baselines._renyi import least_level
from privspan.baselines._tuning import RIVALS
from privspan.privacy import Budget, Release
from privspan.privacy.noise import grid_for
from privspan.privacy.randomness import RandomLike
from privspan.subspace import Subspace

_FINEST = 2**7  # time: parts of the grid below; bounds hold between its points
_TURNS = 0.5 * math.pi * np.linspace(0.0, 1.0, _FINEST + 1) ** 2  # to moving the gap: any grid bounds all
_TIGHT = 2.0**-11  # time: how far, relatively, the multiplier may be from its least
_BASIS_ERROR = 2.0**-48  # per d k: float64 error of the rotated basis


@dataclass(frozen=True)
class SmoothNoise:
    """Noise of standard deviation `multiplier` times a `rate`-smooth bound of the sensitivity."""

    rate: float
    multiplier: float


@baseline
def smooth_sensitivity(X: object, k: int, *, epsilon: float, delta: float, rng: RandomLike = None) -> Release:
    """Release the leading basis with noise scaled to its smooth sensitivity.

    Parameters
    ----------
    k : int
        Dimension, below d.

    Returns
    -------
    Release
        Never abstains; where the gap is small the result is noise.  The noise level is private and not released.

    Guarantee
    ---------
    (epsilon, delta)-differentially private for replace-one neighbours and every data set; n, d, k are public.
    Numerical model: the noise and its rounding are exact; the rotation is drawn in float64 from 256 secure bits, the
    noise level is computed in float64, and the eigensolver's backward error is assumed to be at most 2^-46 d times
    the norm of the matrix.  Not hardened.  Proof: docs/explanation/baselines.md, "Smooth sensitivity".
    """
    with open_table(X, k, epsilon=epsilon, delta=delta, rng=rng, proper=True) as table:
        n, d = table.n, table.d
        moment = second_moment(table)
        most = math.sqrt(2.0 * min(table.k, d - table.k))
        widest = np.array([1.01 * n + 3.0 * moment.stretch])  # no gap is wider
        least = float(local_sensitivity(widest, moment.stretch, most)[0])
        grid = grid_for(least / table.budget.mu)
        rounding = (math.sqrt(d * table.k) * grid + 2.0 * _BASIS_ERROR * d * table.k) / least
        noise = smooth_noise(d * table.k, table.budget, rounding, typical_gap=n / (2 * table.k), most=most)
        values, vectors = spectrum(moment.matrix)
        gap = float(values[table.k - 1] - values[table.k])
        sensitivity = smooth_bound(min(gap, 1.01 * n), moment.stretch, most, noise.rate)
        rotated = vectors[:, : table.k] @ table.run.draw(haar_rotation, table.k)  # (d, k)
        noisy = table.run.gaussian(rotated, noise.multiplier * sensitivity, grid)
        found = Subspace(np.linalg.qr(noisy)[0])
        part = table.whole("basis with noise at its smooth sensitivity")
        return table.release("smooth_sensitivity", found, part, rate=noise.rate, multiplier=noise.multiplier)


@lru_cache(maxsize=256)  # of public numbers only
def smooth_noise(entries: int, budget: Budget, rounding: float, *, typical_gap: float, most: float) -> SmoothNoise:
    """Return the rate and the multiplier that serve a table with a typical gap best; public numbers only.

    A low rate lets the noise level reveal less, which leaves more for the multiplier, but makes it rise further away
    from where the subspace is unstable.  There are d k `entries`; `most` is the largest local sensitivity, and
    `rounding` what rounding and float64 add to it, in units of the smallest that can occur.
    """
    rates = [math.sqrt(share / (2.0 * entries)) * budget.mu for share in RIVALS.scales]
    by_bound = {smooth_bound(typical_gap, 1.0, most, rate): rate for rate in rates}  # of equal bounds the least rate
    best, start, least = None, math.inf, math.inf
    for bound, rate in sorted(by_bound.items()):
        if bound / budget.mu >= 0.98 * least:  # no multiplier is below 1 / mu
            break
        records = _Records(rate, entries, budget, rounding)
        multiplier = records.first_multiplier()
        if multiplier * bound < least:
            best, start, least = records, multiplier, multiplier * bound
    if best is None:
        raise ParameterError(
            "{delta} must be larger at epsilon = {epsilon!r}; got {got!r}.", epsilon=budget.epsilon, got=budget.delta
        )
    return SmoothNoise(best.rate, best.multiplier(start))


@dataclass(frozen=True)
class _Records:
    """All records that may be replaced, from those that turn the basis to those that move the gap.

    A record turns the basis by cos(w) of the most and moves the gap by sin(w) of the most.  Those with w between two
    of `_TURNS` are covered by the cosine of the first and the sine of the second.
    """

    rate: float
    entries: int
    budget: Budget
    rounding: float

    def excess(self, multiplier: float, start: int, end: int) -> float:
        """Return log(delta) above what the budget has, for records between two turns."""
        shift, change = math.cos(_TURNS[start]) + self.rounding, self.rate * math.sin(_TURNS[end])
        found = smooth_log_delta(shift / multiplier, change, self.entries, self.budget.epsilon)
        return found - math.log(self.budget.delta) + 1e-12

    def exceeded(self, multiplier: float, start: int = 0, end: int = _FINEST) -> list[tuple[float, int]]:
        """Return the smallest ranges that do not pass, and by how much."""
        above = self.excess(multiplier, start, end)
        if above <= 0.0:
            return []
        if end - start == 1:
            return [(above, start)]
        middle = (start + end) // 2
        return self.exceeded(multiplier, start, middle) + self.exceeded(multiplier, middle, end)

    def least(self, turn: int, start: float) -> float:
        """Return about the least multiplier for one of the smallest ranges."""
        return least_level(lambda level: self.excess(level, turn, turn + 1) <= 0.0, self.budget, start, 1.1, _TIGHT)

    def first_multiplier(self) -> float:
        """Return about the least multiplier for a few of the ranges, infinite if there is none."""
        if self.excess(math.inf, 0, _FINEST) > -0.2:
            return math.inf  # the change of the noise level alone reveals too much
        start = 1.0 / self.budget.mu
        probes = range(0, _FINEST, _FINEST // 16)
        try:
            return self.least(max(probes, key=lambda turn: self.excess(start, turn, turn + 1)), start)
        except ValueError:
            return math.inf

    def multiplier(self, start: float) -> float:
        """Return a multiplier that passes on all ranges, about the least."""
        while found := self.exceeded(start):
            start = max(start, self.least(max(found)[1], start) * (1.0 + _TIGHT))
        return start


def smooth_log_delta(shift: float, rate: float, entries: int, epsilon: float) -> float:
    """Return the log of delta for normal laws whose noise levels differ by at most a factor exp(rate).

    `shift` is the distance of their centres in units of the smaller noise level.  It is the largest over both orders
    and all smaller shifts and factors.  Proof: docs/explanation/baselines.md, lemma 6.
    """
    if 0.5 * shift * shift > epsilon:
        return 0.0
    ratio, distance = math.exp(2.0 * rate), shift * shift
    worst = log_loss_delta(shifted_moment(1.0 / ratio, distance / ratio, entries), epsilon)  # the second is narrower
    total = distance + 2.0 * epsilon
    start = total / (2.0 * entries)  # up to the variance 1 + start, delta falls where the second law is the wider
    if ratio - 1.0 > start:
        stop = start
        while entries * math.log1p(stop) + (entries - 1) * stop < total:
            stop *= 1.05  # and beyond 1 + stop it rises
        for variance, moved in ((ratio, distance), (1.0 + stop, distance * stop / start)):
            wider = log_loss_delta(shifted_moment(variance, moved, entries), epsilon, enough=worst)
            worst = max(worst, wider)
    return worst


def shifted_moment(variance: float, distance: float, entries: int) -> LogMoment:
    """Return the moments of the loss of N(0, I) against N(v, variance I), |v|² = `distance`, in that many entries."""
    excess, log_variance = variance - 1.0, math.log(variance)

    def log_moment(s: Complex) -> tuple[Complex, Array]:
        order = 1.0 + s
        exists = 1.0 + order.real * excess > NEAREST_POLE
        mixed = np.where(exists, order * excess, 0.0)  # variance of the tilted law, over that of the second, less 1
        terms = 0.5 * distance * order * s / (1.0 + mixed), 0.5 * entries * log_variance * order
        scale = 0.5 * entries * log_plus_one(mixed)
        value = np.where(exists, terms[0] + terms[1] - scale, np.inf)
        return value, np.abs(terms[0]) + np.abs(terms[1]) + np.abs(scale)

    return log_moment


def local_sensitivity(gaps: Array, stretch: float, most: float) -> Array:
    """Bound the change of the basis, up to a rotation, at these eigenvalue gaps; it falls as the gap grows.

    Below `unstable_gap` it is `most`, so that where no better bound holds on one of two neighbours, it is the same on
    both.
    """
    wide = gaps > unstable_gap(stretch, most)
    return np.where(wide, stretch / (np.where(wide, gaps, 3.0 * stretch) - 2.0 * stretch), most)


def unstable_gap(stretch: float, most: float) -> float:
    """Return a gap two steps above that from which one replacement can move the basis by at most `most`."""
    return 4.0 * stretch + stretch / most


def smooth_bound(gap: float, stretch: float, most: float, rate: float) -> float:
    """Return the largest of exp(-rate u) times the local sensitivity at gap - 2 stretch u, over all u >= 0.

    The logarithm of that is convex up to the step of the local sensitivity, so it is largest at 0 or at the step.
    """
    away = max(0.0, gap - unstable_gap(stretch, most)) / (2.0 * stretch)
    return max(float(local_sensitivity(np.array([gap]), stretch, most)[0]), most * math.exp(-rate * away))
