"""Leading eigenpairs of a noisy second moment that is revealed by and by: block Krylov iteration.

Plain post-processing of what `LazyGauss` reveals, and the choice of what it is asked next.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from privspan.rows.about import WIDEST_DENSE

Array = NDArray[np.float64]


@dataclass(frozen=True)
class KrylovTuning:
    """Of when passes end; benchmarks/scripts/wide_stopping.py measures what that leaves, and what passes it saves."""

    small: float = 0.1  # of the gap, and of the noise's spread: a residual that ends the search, by hand
    standing_out: float = 0.5  # spreads of the noise that one may have where its value is far beyond all others


KRYLOV = KrylovTuning()


class Revealed(Protocol):
    """A noisy symmetric matrix that is known in some directions, and can be asked for more; see `LazyGauss`."""

    @property
    def basis(self) -> Array:
        """Directions revealed so far, (d, m)."""

    @property
    def image(self) -> Array:
        """The matrix times these directions, (d, m)."""

    @property
    def noise(self) -> float:
        """Standard deviation of an off-diagonal entry of the noise."""

    @property
    def complete(self) -> bool:
        """Whether every direction has been revealed."""

    def extend(self, block: Array) -> bool:
        """Reveal the matrix on the directions of `block` that are new; False if nothing could be revealed."""

    def reveal_all(self) -> None:
        """Reveal the whole matrix at once, for small d."""


def leading_pairs(
    lazy: Revealed,
    k: int,
    block_size: int,
    passes: int,
    public: np.random.Generator,
    *,
    small: float | None = None,
    trace: float | None = None,
    tuning: KrylovTuning = KRYLOV,
) -> tuple[Array, Array]:
    """Find leading eigenpairs of A + N by block Krylov iteration on what is revealed.

    Up to `passes` blocks of `block_size` >= k directions are added to what is known already, the first at random.  It
    stops early when what another pass could change is small against the noise and against the gap; or, if `small` is
    given, that small against the spread of the noise alone: a gap that noise hides is not worth a pass.

    With the `trace` of A, a last step that takes no pass turns the vectors further: towards their images, less what
    lies in all other directions alike.  Residuals may then be larger by as much as that step makes of them, and up to
    half of the spread the further a value stands out: only close to the others is a residual worth a pass.

    Returns k + 1 values, largest first, the last NaN where only k directions exist, and the vectors (d, k),
    orthonormal to working precision.
    """
    d = lazy.basis.shape[0]
    if d <= max(WIDEST_DENSE, block_size + 1) and not lazy.complete:
        lazy.reveal_all()
    if not lazy.complete and lazy.basis.shape[1] == 0:
        lazy.extend(public.standard_normal((d, block_size)))
        passes -= 1
    within = np.empty((0, 0))
    values, inner, within = _ritz(lazy, within)
    spread = lazy.noise * math.sqrt(d)
    for _ in range(0 if lazy.complete else passes):
        wanted = inner[:, :block_size]
        residual = lazy.image @ wanted - lazy.basis @ (wanted * values[:block_size])  # (d, b)
        sizes, enough = np.linalg.norm(residual[:, :k], axis=0), _enough(values, k, spread, tuning.small, small)
        if trace is not None:
            left = _left_by_turning(values, k, block_size, spread, trace, d)
            sizes, enough = sizes * left, np.maximum(enough, tuning.standing_out * spread * (1.0 - left))
        if (sizes <= enough).all() or not lazy.extend(residual):
            break
        values, inner, within = _ritz(lazy, within)
    vectors = lazy.basis @ inner[:, :k]
    if trace is not None and not lazy.complete:
        above = _above_rest(values[:k], trace, d)
        turned = lazy.image @ inner[:, :k] - vectors * (values[:k] - above)
        vectors = np.where(above > spread, turned, vectors)
    return np.append(values, np.nan)[: k + 1], np.linalg.qr(vectors)[0]


def _enough(values: Array, k: int, spread: float, usual: float, small: float | None) -> Array:
    """Return the size of a residual that ends the iteration; (k,)."""
    gap = values[k - 1] - values[k] if len(values) > k else 0.0
    return np.full(min(k, len(values)), usual * min(gap, spread) if small is None else small * spread)


def _left_by_turning(values: Array, k: int, block: int, spread: float, trace: float, d: int) -> Array:
    """Return the share of each residual that the last step leaves: what lies beyond a block grows by less; (k,).

    That is, by no more than the edge of the noise, 2 spreads, or the next of the values if it is above that.
    """
    above = _above_rest(values[:k], trace, d)
    beyond = max(2.0 * spread, float(values[min(block, len(values) - 1)] - (values[0] - above[0])))
    return np.asarray(np.minimum(1.0, beyond / np.maximum(above, spread)))


def _above_rest(values: Array, trace: float, d: int) -> Array:
    """Return by how much k values are above the mean of all others, which the trace tells."""
    k = len(values)
    return np.asarray(values - max(trace - float(values.sum()), 0.0) / max(d - k, 1))


def _ritz(lazy: Revealed, known: Array) -> tuple[Array, Array, Array]:
    """Return the eigenpairs of A + N within the revealed directions, largest first, and the matrix there, (m, m).

    `known` is that matrix as it was before the last directions were revealed.
    """
    before, columns = len(known), lazy.basis.T @ lazy.image[:, len(known) :]  # (m, b)
    within = np.empty((len(columns), len(columns)))
    within[:before, :before] = known
    within[before:, :before], within[:, before:] = columns[:before].T, columns
    values, vectors = np.linalg.eigh(0.5 * (within + within.T))
    return values[::-1], vectors[:, ::-1], within
