"""What a noisy second moment of rows with a constant says of them about their mean.

The last entry of every row is a constant.  Its column of the second moment tells the mean, as far as noise allows,
and what is left after the mean is taken away (a Schur complement) has the directions that are looked for: they need
not stand out of the noise together with one more, whose place is known.  Plain post-processing of what `LazyGauss`
reveals.  Derivation: docs/explanation/near-a-subspace.md, "The first look".
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privspan.rows.about import WIDEST_DENSE
from privspan.sums.adaptive_tuning import ADAPTIVE, AdaptiveTuning
from privspan.sums.estimate import Estimate
from privspan.sums.krylov import Revealed

Array = NDArray[np.float64]


class OffConstant:
    """A revealed second moment (d, d) of rows with a constant, less what their mean explains: see `Revealed`."""

    def __init__(self, lazy: Revealed, tuning: AdaptiveTuning = ADAPTIVE) -> None:
        self._lazy, self._tuning = lazy, tuning
        if lazy.basis.shape[0] <= WIDEST_DENSE and not lazy.complete:
            lazy.reveal_all()

    @property
    def _others(self) -> NDArray[np.bool_]:
        """Which of the revealed directions, all of them orthogonal to one another, are not the constant's."""
        return np.asarray(np.abs(self._lazy.basis[-1]) < 0.5)  # (m,)

    @property
    def basis(self) -> Array:
        """Directions revealed so far but the constant's, (d, m)."""
        return self._lazy.basis[:, self._others]

    @property
    def image(self) -> Array:
        """The matrix, less what the mean explains, times these directions, (d, m)."""
        image = self._lazy.image
        mixed, square = self._column()
        seen = image[:, self._others] - np.outer(mixed, image[-1, self._others] / square)
        seen[-1] = 0.0
        return np.asarray(seen)

    @property
    def noise(self) -> float:
        """Standard deviation of an off-diagonal entry of the noise."""
        return self._lazy.noise

    @property
    def complete(self) -> bool:
        """Whether every direction has been revealed."""
        return self._lazy.complete

    def extend(self, block: Array) -> bool:
        """Reveal the matrix on the directions of `block` that are new; False if nothing could be revealed."""
        block = block.copy()
        block[-1] = 0.0
        if self._lazy.basis.shape[1] == 0:  # the constant's own direction is asked for before any other, by the way
            block = np.hstack([np.eye(len(block), 1, 1 - len(block)), block])
        return self._lazy.extend(block)

    def reveal_all(self) -> None:
        """Nothing: where that can be done it was done first."""

    def _column(self) -> tuple[Array, float]:
        """Return the second moments of the constant with all columns (d,), and its own."""
        lazy = self._lazy
        column = lazy.image @ lazy.basis[-1]  # (d,)
        edge = lazy.noise * np.sqrt(len(column))
        return column, max(float(column[-1]), self._tuning.least_square * float(edge))

    def mean_direction(self, n: int) -> Estimate:
        """Return the direction of the mean and the constant, (d, 1), with its precision: shrunk as noise deserves.

        The slopes, mean over constant, have noise of a known size.  Their squared length tells how much of them is
        noise, whatever the mean is (James and Stein): so much is taken off.
        """
        column, square = self._column()
        slopes = column[:-1] / square
        variance = (self.noise / square) ** 2
        noise = len(slopes) * variance / max(float(slopes @ slopes), 1e-300)
        believed = max(1.0 - noise, self._tuning.sure)
        direction = np.append(believed * slopes, 1.0)
        length_square = float(direction @ direction)
        basis = (direction / np.sqrt(length_square))[:, None]
        precision = length_square / (believed * variance)
        return Estimate(basis, np.array([[precision]]), np.array([min(1.0, length_square * square / n)]))


def beside(estimate: Estimate, mean: Estimate) -> Estimate:
    """Put the direction of the mean behind others, orthogonal to them."""
    rest = mean.basis - estimate.basis @ (estimate.basis.T @ mean.basis)  # (d, 1), long: the others have no constant
    k = len(estimate.eigenvalues)
    precision = np.zeros((k + 1, k + 1))
    precision[:k, :k] = estimate.precision
    precision[k:, k:] = mean.precision
    basis = np.hstack([estimate.basis, rest / np.linalg.norm(rest)])
    return Estimate(basis, precision, np.append(estimate.eigenvalues, mean.eigenvalues))
