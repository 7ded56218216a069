"""The certificate of stable leverage: how far a data set is from one whose top-k space could move too much.

A `LeveragePlan` holds the public numbers of one run. `leverage_levels` computes the levels of all items,
`certified_margin` the integer margin g that changes by at most one between neighbours, and `sine_bound` how far the
weighted top-k spaces of neighbours with margins at least one can be apart. Eigenvalues are computed with two-sided
error bounds, and the bars leave room for them. Nothing here is private. Proofs:
``docs/explanation/stable-leverage.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import blas, eigh, lapack
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from privspan._lib.rounding import relative_error as gamma
from privspan.stable.balls import ball_top_space
from privspan.stable.inverse import SLAB
from privspan.stable.leverage import Array, LeverageFilter, gram_of, split_gram, top_factor

TAIL_TOLERANCE = 1e-4
"""Error of a computed (k+1)-th eigenvalue, over the ridge, at most: docs/explanation/stable-leverage.md."""

EIGENVALUE_TOLERANCE = 0.05
"""Bound of the error of `kth_eigenvalue`: docs/explanation/stable-leverage.md."""

LEAST_GAP = 1.0
"""Smallest G − E of a plan: with less, rounding errors could not be told from the gap."""

_SIGNAL_TOLERANCE = 1e-6  # proof: room between bars for rounding
_CORE_SHIFT = 1e-7  # more than rounding can take off an eigenvalue of K
_BISECTIONS = 100  # time: of float64, which they exhaust
_VECTOR_PRECISIONS = (1e-3, 1e-6)  # rounding: relative residuals of eigenvectors, whose squares count
_DENSE_SIZE = 600  # time: below, all eigenvalues cost no more than a few


@dataclass(frozen=True)
class LeveragePlan:
    """The public numbers of one run: levels, ramp, certificate."""

    full_level: int  # items of this level at least have weight 1
    ramp: int  # items of level at most full_level - ramp have weight 0
    movers: int  # B: fewer than this many items may lie on the ramp
    signal: float  # G: certified lower bound on the k-th eigenvalue
    spread: float  # ρ₀²: certified bound on (λ_{k+1} + λ) / level
    ridge: float  # λ
    largest_margin: int  # margins are cut off here

    @property
    def empty_level(self) -> int:
        """b, the last level of weight 0."""
        return self.full_level - self.ramp

    @property
    def tail(self) -> float:
        """E, the certified bound on the (k+1)-th eigenvalue."""
        return self.spread * self.empty_level - self.ridge

    def computable(self, size: int) -> bool:
        """Whether float64 resolves the plan on a Gram matrix of that many rows; public, so that asking is free."""
        tolerance, gap = TAIL_TOLERANCE * self.ridge, self.signal - self.tail
        rounding = 8 * size * gamma(size + 4) * (self.tail + self.ridge)  # of Cholesky factorisations
        coupling = gamma(16 * size) * size  # between range F and its complement, from computing a basis of the former
        return gap >= LEAST_GAP and rounding <= tolerance / 8 and coupling**2 <= tolerance / 16 * gap

    def weights(self, levels: NDArray[np.int64]) -> Array:
        """Weight of each item: 0 up to `empty_level`, rising by 1/ramp per level, 1 from `full_level` on."""
        return np.asarray(np.clip((levels - self.empty_level) / self.ramp, 0.0, 1.0))

    def signal_bars(self) -> Array:
        """λ_k that condition (b) asks for at margin 0, 1, …: what a replaced item can take off is added back."""
        bars = [self.signal + self.ridge]
        for margin in range(1, self.largest_margin + 1):
            level, last = self.full_level + margin, bars[-1] + _SIGNAL_TOLERANCE
            bars.append(min(last + 1, last * level / (level - 1)))
        return np.array(bars) - self.ridge

    def tail_bars(self) -> Array:
        """λ_{k+1} that condition (c) allows at margin 0, 1, …."""
        margins = np.arange(self.largest_margin + 1)
        slack = 3 * TAIL_TOLERANCE * self.ridge / (self.empty_level - self.largest_margin)
        return np.asarray((self.spread - margins * slack) * (self.empty_level - margins) - self.ridge)

    def sensitivity(self) -> float:
        """Bound ‖sin Θ‖_F between the top-k spaces of neighbours with margins at least 1; inf if there is none."""
        return float(sine_bound(self.full_level, self.ramp, self.movers, self.signal, self.spread, self.ridge))


def sine_bound(
    full: ArrayLike, ramp: ArrayLike, movers: ArrayLike, signal: ArrayLike, spread: ArrayLike, ridge: ArrayLike
) -> Array:
    """Evaluate the bound of the proof for items of width 1 (times √k for width k), elementwise.

    The terms are the replaced item, out and in, and the weights of at most B − 1 others that move by 1/L; each
    item is as far from the top-k space as its level and the tilt by the ramp allow.
    """
    full, ramp, movers, signal, spread, ridge = map(np.asarray, (full, ramp, movers, signal, spread, ridge))
    level = full - ramp
    with np.errstate(all="ignore"):
        gap = signal - (spread * level - ridge)
        distance = np.sqrt(spread)
        reach = np.minimum(1.0, np.sqrt((signal + ridge) / (level - movers)))
        tilt = reach * distance * (movers - 1) / gap
        pair = distance * (np.sqrt(level / full) + np.sqrt(level / (full - 1))) + 2 * tilt
        bound = reach * (pair + (movers - 1) / ramp * (distance + tilt)) / gap
        valid = (gap > 0) & (level > movers) & (spread * level >= ridge) & (ramp >= 1)
    return np.where(valid, bound, np.inf)


def leverage_levels(gram: Array, width: int, dimension: int, plan: LeveragePlan) -> NDArray[np.int64] | None:
    """Level τ of every item, as far as the certificate of `plan` can tell levels apart.

    Returns None when margin 1 is sure to fail: more than B − 1 items in the window of condition (a), or too few
    items left for the k-th eigenvalue of condition (b).
    """
    lowest, highest = plan.empty_level - plan.largest_margin, plan.full_level + plan.largest_margin
    sets = LeverageFilter(gram, width, plan.ridge, dimension, highest)
    levels = np.full(len(gram) // width, lowest - 1, dtype=np.int64)
    fewest = max(1, int(np.ceil(plan.signal)))
    level = lowest
    while level <= highest:
        if not sets.advance(level, fewest):
            return None if level <= plan.full_level + 1 else levels
        level = max(level, min(sets.idle_until(), highest))
        levels[sets.kept] = level
        if level >= plan.empty_level - 1:  # from here on every deletion is one more item in the window
            candidates = int(np.count_nonzero(levels >= plan.empty_level - 1))
            fewest = max(fewest, candidates - plan.movers + 1)
        level += 1
    return levels


def kth_eigenvalue(gram: Array, k: int) -> float:
    """Compute λ_k(K) within `EIGENVALUE_TOLERANCE`: by Weyl's inequality from K = F Fᵀ + T when T is small.

    There is no iteration that could fail to converge: eigenvalues come from Cholesky factorisations or, where T is
    not small, from the signs of pivots of a tridiagonal form.
    """
    factor = top_factor(gram, k)
    slabs = (slice(start, start + SLAB) for start in range(0, len(gram), SLAB))
    rest = np.hypot.reduce([float(np.linalg.norm(gram[rows] - factor[rows] @ factor.T)) for rows in slabs])
    if rest < EIGENVALUE_TOLERANCE / 2:  # rounding is far below
        return -_largest_eigenvalue(-(factor.T @ factor), EIGENVALUE_TOLERANCE / 8)
    _, diagonal, off, _, _ = lapack.dsytrd(gram, lower=1, lwork=32 * len(gram))
    low, high = 0.0, float(np.trace(gram))
    while high - low > EIGENVALUE_TOLERANCE / 8:
        middle = (low + high) / 2
        low, high = (middle, high) if _count_above(diagonal, off, middle) >= k else (low, middle)
    return low


def _count_above(diagonal: Array, off: Array, bar: float) -> int:
    """Eigenvalues of a tridiagonal matrix above the bar: positive pivots of its elimination (Sturm)."""
    pivot, count = 1.0, 0
    for entry, square in zip(diagonal.tolist(), [0.0, *(off**2).tolist()], strict=True):
        pivot = entry - bar - square / pivot
        pivot = pivot if abs(pivot) > 1e-290 else -1e-290
        count += pivot > 0
    return count


class _Spectrum(NamedTuple):
    """Two consecutive eigenvalues of a Gram matrix: λ_k within 1e-6 from below, λ_{k+1} within 1e-4 λ.

    Or minus and plus infinity, which pass no bar, where λ_k is below the plan's G or λ_{k+1} above its E.
    """

    signal: float
    tail: float


_NO_GAP = _Spectrum(-np.inf, np.inf)


def _spectrum(own: Array, k: int, plan: LeveragePlan) -> _Spectrum:
    """Compute λ_k and λ_{k+1} from K = F Fᵀ + T, with better and better F until that settles the plan's gap."""
    for factor in _factors(own, k, plan):
        found = _compressed(own, factor, plan)
        if found is not None:
            return found
    return _NO_GAP


def _factors(own: Array, k: int, plan: LeveragePlan) -> Iterator[Array]:
    """Factors (N, k) of the top-k part of K: of power steps, of dense eigenvectors, of ball arithmetic."""
    if len(own) > k:
        yield top_factor(own, k)
        for basis in sure_bases(own, k, plan.tail, plan.signal):
            core = basis.T @ own @ basis + _CORE_SHIFT * np.eye(k)
            yield basis @ lapack.dpotrf(core, lower=1, clean=1)[0]


def sure_bases(matrix: Array, k: int, low: float, high: float) -> Iterator[Array]:
    """Orthonormal bases (N, k) of the top-k space of a positive semidefinite matrix, until one is good enough.

    First dense eigenvectors, of which nothing is assumed. Then ball arithmetic, which cannot fail: it gives the space
    to the last bit if k eigenvalues are at least `high` and the others at most `low`, and nothing otherwise.
    """
    with suppress(np.linalg.LinAlgError):
        yield eigh(matrix, subset_by_index=[len(matrix) - k, len(matrix) - 1], check_finite=False)[1]
    exact = ball_top_space(matrix, k, low, high) if high - low >= LEAST_GAP / 2 else None
    if exact is not None:
        yield exact


def _compressed(own: Array, factor: Array, plan: LeveragePlan) -> _Spectrum | None:
    """λ_k of the compression to range F and λ_1 of that of T to its complement; None if these settle nothing.

    They do if they are tight, or show that λ_k is below the plan's G or λ_{k+1} above its E.
    """
    factor, tail = split_gram(own, factor)
    rounding = gamma(32 * factor.size) * float(np.linalg.norm(tail))
    basis = np.linalg.qr(factor)[0]  # (N, k)
    pushed = tail @ basis
    inner = basis.T @ pushed
    core = basis.T @ factor @ factor.T @ basis + inner
    signal = -_largest_eigenvalue(-(core + core.T) / 2, _SIGNAL_TOLERANCE / 8)
    coupling = float(np.linalg.norm(pushed - basis @ inner))
    halved = pushed - basis @ inner / 2  # P T P = T - basis halvedᵀ - halved basisᵀ
    tail = blas.dsyr2k(-1.0, basis, halved, 1.0, tail.T, lower=1, overwrite_c=1)  # symmetric; only its lower half
    tolerance = TAIL_TOLERANCE * plan.ridge
    largest = _largest_eigenvalue(tail, tolerance / 4)
    gap = signal - (largest + tolerance)
    slip = coupling**2 / gap if gap > 0 else np.inf
    if slip + rounding <= min(_SIGNAL_TOLERANCE / 2, tolerance / 4):
        return _Spectrum(signal, largest)
    highest = max(signal, largest) + coupling + _SIGNAL_TOLERANCE + rounding  # λ_k is below
    lowest = max(largest - slip - tolerance, min(signal, largest) - coupling - _SIGNAL_TOLERANCE) - rounding
    return _NO_GAP if highest < plan.signal or lowest > plan.tail else None


def _largest_eigenvalue(matrix: Array, tolerance: float) -> float:
    """Largest eigenvalue, at most `tolerance` off: a Rayleigh quotient from below, checked from above by Cholesky.

    Of the matrix only the lower half is read. Should the check fail, for a rough eigenvector and for a good one,
    bisection by Cholesky factorisations, each of which exists or not, settles it.
    """
    for precision in _VECTOR_PRECISIONS:
        vector = _leading_vector(matrix, precision)
        value = float(vector @ blas.dsymv(1.0, matrix, vector, lower=1) / (vector @ vector))
        if _is_bound(matrix, value + tolerance):
            return value
    low, high = float(matrix.diagonal().max()), 1.5 * float(np.linalg.norm(np.tril(matrix))) + tolerance
    for _ in range(_BISECTIONS):
        if high - low <= tolerance:
            break
        middle = (low + high) / 2
        low, high = (low, middle) if _is_bound(matrix, middle) else (middle, high)
    return high


def _leading_vector(matrix: Array, precision: float) -> Array:
    """Guess the eigenvector of the largest eigenvalue."""
    size = len(matrix)
    start = np.random.default_rng(1).standard_normal(size)
    product = LinearOperator((size, size), lambda x: blas.dsymv(1.0, matrix, x.ravel(), lower=1), dtype=np.float64)
    try:
        if size <= _DENSE_SIZE:
            return np.asarray(np.linalg.eigh(matrix)[1][:, -1])
        found = np.asarray(eigsh(product, k=1, which="LA", v0=start, tol=precision)[1][:, 0])
    except (ArpackError, np.linalg.LinAlgError):
        return start
    return found if np.isfinite(found).all() and found.any() else start


def _is_bound(matrix: Array, bound: float) -> bool:
    """Whether ``bound I - matrix`` has a Cholesky factor: if and only if no eigenvalue is above, but for rounding."""
    shifted = np.negative(matrix, order="F")
    shifted[np.diag_indices(len(matrix))] += bound
    return bool(lapack.dpotrf(shifted, lower=1, overwrite_a=1, clean=0)[1] == 0)


def certified_margin(gram: Array, width: int, k: int, levels: NDArray[np.int64], plan: LeveragePlan) -> int:
    """Largest margin g at which the three conditions hold; changes by at most one between neighbours.

    (a) fewer than B − g + 1 items have levels from b − g to full + g − 1; (b) λ_k of the items of level at least
    full + g clears its bar; (c) so does λ_{k+1} of the items of level at least b − g. The computed conditions
    at g imply those at g − 1, so bisection finds the largest.
    """
    known: dict[int, _Spectrum] = {}

    def spectrum(level: int) -> _Spectrum:
        chosen = levels >= level
        key = int(np.count_nonzero(chosen))  # the sets are nested, so their size tells them apart
        if key not in known:
            known[key] = _spectrum(gram_of(np.flatnonzero(chosen), gram, width), k, plan)
        return known[key]

    return largest_margin(levels, plan, spectrum)


def largest_margin(levels: NDArray[np.int64], plan: LeveragePlan, spectrum: Callable[[int], _Spectrum]) -> int:
    """Return the largest margin at which the conditions hold for the spectra of items from a level on."""
    signal_bars, tail_bars = plan.signal_bars(), plan.tail_bars()

    def holds(margin: int) -> bool:
        low, high = plan.empty_level - margin, plan.full_level + margin
        return bool(
            np.count_nonzero((levels >= low) & (levels < high)) <= plan.movers - margin
            and spectrum(low).tail <= tail_bars[margin]
            and spectrum(high).signal >= signal_bars[margin]
        )

    passed, failed = 0, plan.largest_margin + 1
    while failed - passed > 1:
        middle = (passed + failed) // 2
        passed, failed = (middle, failed) if holds(middle) else (passed, middle)
    return passed
