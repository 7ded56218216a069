"""The certificate of stable leverage: how far a data set is from one whose top-k space could move too much.

A `LeveragePlan` holds the public numbers of one run. `leverage_levels` computes the levels of all items,
`certified_margin` the integer margin g that changes by at most one between neighbours, and `sine_bound` how far the
weighted top-k spaces of neighbours with margins at least one can be apart. Eigenvalues are computed with two-sided
error bounds, and the bars leave room for them. Nothing here is private. Proofs:
``docs/explanation/stable-leverage.md``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import lapack
from scipy.sparse.linalg import ArpackError, eigsh

from privspan.leverage import Array, LeverageFilter, split_gram, top_factor

TAIL_TOLERANCE = 1e-4
"""Error of a computed (k+1)-th eigenvalue, in units of the ridge."""

EIGENVALUE_TOLERANCE = 0.05
"""Error of `kth_eigenvalue`."""

_SIGNAL_TOLERANCE = 1e-6
_DENSE_SIZE = 600  # below, all eigenvalues cost no more than a few


@dataclass(frozen=True)
class LeveragePlan:
    """The public numbers of one run: levels, ramp, certificate.

    Attributes
    ----------
    full_level, ramp : int
        Items of level at least `full_level` have weight 1, items of level at most ``full_level - ramp`` weight 0.
    movers : int
        B: fewer than this many items may lie on the ramp.
    signal : float
        G: certified lower bound on the k-th eigenvalue.
    spread : float
        ρ₀²: certified bound on (λ_{k+1} + λ) / level.
    ridge : float
        λ.
    largest_margin : int
        Margins are cut off here.
    """

    full_level: int
    ramp: int
    movers: int
    signal: float
    spread: float
    ridge: float
    largest_margin: int

    @property
    def empty_level(self) -> int:
        """b, the last level of weight 0."""
        return self.full_level - self.ramp

    @property
    def tail(self) -> float:
        """E, the certified bound on the (k+1)-th eigenvalue."""
        return self.spread * self.empty_level - self.ridge

    def weights(self, levels: NDArray[np.int64]) -> Array:
        """Weight of each item: 0 up to `empty_level`, rising by 1/ramp per level, 1 from `full_level` on."""
        return np.asarray(np.clip((levels - self.empty_level) / self.ramp, 0.0, 1.0))

    def signal_bars(self) -> Array:
        """λ_k that condition (b) asks for at margin 0, 1, …: what a replaced item can take off is added back."""
        slack = self.tail + _SIGNAL_TOLERANCE
        bars = [self.signal + self.ridge]
        for margin in range(1, self.largest_margin + 1):
            level, last = self.full_level + margin, bars[-1] + slack
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
    """Compute λ_k(K) within `EIGENVALUE_TOLERANCE`: by Weyl's inequality from K = F Fᵀ + T when T is small."""
    factor, tail = split_gram(gram, top_factor(gram, k))
    if np.linalg.norm(tail) < EIGENVALUE_TOLERANCE / 2:
        return float(np.linalg.eigvalsh(factor.T @ factor)[0])
    return float(np.linalg.eigvalsh(gram)[-k])


@dataclass(frozen=True)
class _Spectrum:
    """Two consecutive eigenvalues of a Gram matrix: λ_k within λ_{k+1} + 1e-6 from below, λ_{k+1} within 1e-4 λ."""

    signal: float
    tail: float


def _spectrum(own: Array, k: int, ridge: float) -> _Spectrum:
    """Compute λ_k and λ_{k+1} from K = F Fᵀ + T: of the compression to range F, and of T on its complement."""
    if len(own) <= k:
        return _Spectrum(0.0, 0.0)
    factor, tail = split_gram(own, top_factor(own, k))
    basis = np.linalg.qr(factor)[0]  # (N, k)
    pushed = tail @ basis
    inner = basis.T @ pushed
    signal = float(np.linalg.eigvalsh(basis.T @ factor @ factor.T @ basis + inner)[0])
    coupling = float(np.linalg.norm(pushed - basis @ inner))
    tail -= basis @ pushed.T
    tail -= pushed @ basis.T
    tail += basis @ inner @ basis.T
    tail = (tail + tail.T) / 2
    largest = _largest_eigenvalue(tail, TAIL_TOLERANCE * ridge / 4)
    slip = coupling**2 / (signal - largest) if signal > largest else np.inf
    if slip > min(_SIGNAL_TOLERANCE / 2, TAIL_TOLERANCE * ridge / 4):
        values = np.linalg.eigvalsh(own)
        return _Spectrum(float(values[-k]), float(values[-k - 1]))
    return _Spectrum(signal, largest)


def _largest_eigenvalue(matrix: Array, tolerance: float) -> float:
    """Largest eigenvalue, at most `tolerance` off: a Ritz value from below, checked from above by Cholesky."""
    size = len(matrix)
    if size > _DENSE_SIZE:
        start = np.random.default_rng(1).standard_normal(size)
        try:
            guess = float(eigsh(matrix, k=1, which="LA", v0=start, tol=1e-6, return_eigenvectors=False)[0])
        except ArpackError:
            guess = -np.inf
        if np.isfinite(guess):
            shifted = -matrix
            shifted.ravel()[:: size + 1] += guess + tolerance
            if lapack.dpotrf(shifted, lower=1, overwrite_a=1)[1] == 0:
                return guess
    return float(np.linalg.eigvalsh(matrix)[-1])


def certified_margin(gram: Array, width: int, k: int, levels: NDArray[np.int64], plan: LeveragePlan) -> int:
    """Largest margin g at which the three conditions hold; changes by at most one between neighbours.

    (a) fewer than B − g + 1 items have levels from b − g to full + g − 1; (b) λ_k of the items of level at least
    full + g clears its bar; (c) so does λ_{k+1} of the items of level at least b − g. The computed conditions
    at g imply those at g − 1, so bisection finds the largest.
    """
    signal_bars, tail_bars = plan.signal_bars(), plan.tail_bars()
    known: dict[int, _Spectrum] = {}

    def spectrum(level: int) -> _Spectrum:
        chosen = levels >= level
        key = int(np.count_nonzero(chosen))  # the sets are nested, so their size tells them apart
        if key not in known:
            rows = np.flatnonzero(np.repeat(chosen, width))
            known[key] = _spectrum(gram[np.ix_(rows, rows)], k, plan.ridge)
        return known[key]

    def holds(margin: int) -> bool:
        low, high = plan.empty_level - margin, plan.full_level + margin
        if np.count_nonzero((levels >= low) & (levels < high)) > plan.movers - margin:
            return False
        if spectrum(low).tail > tail_bars[margin]:
            return False
        return bool(spectrum(high).signal >= signal_bars[margin])

    passed, failed = 0, plan.largest_margin + 1
    while failed - passed > 1:
        middle = (passed + failed) // 2
        passed, failed = (middle, failed) if holds(middle) else (passed, middle)
    return passed
