"""What a noisy second moment shows at first: its leading pairs, and which directions stand out of the noise.

A direction is found when its expected error, the spread of the noise over its eigenvalue, is small.  Plain
post-processing of what `LazyGauss` reveals, and the choice of what it is asked next; the adaptive algorithm decides
by it how to go on.  Derivation: docs/explanation/everyday-pca.md, "What is estimated".
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privspan.sums.adaptive_tuning import ADAPTIVE, AdaptiveTuning
from privspan.sums.estimate import Estimate
from privspan.sums.krylov import leading_pairs
from privspan.sums.lazy_gauss import LazyGauss
from privspan.sums.loadings import spiked_eigenvalues
from privspan.sums.off_constant import OffConstant

Array = NDArray[np.float64]


@dataclass(frozen=True)
class FirstLook:
    """Leading pairs of the first noisy second moment, everything per row."""

    lazy: LazyGauss
    vectors: Array  # (d, k)
    eigenvalues: Array  # (k,)
    values: Array  # (k + 1,), of the noisy sum as they are, off a constant where there is one
    stands_out: int
    no_gap: bool
    mean: Estimate | None  # the direction of the mean and the constant, where there is one

    @property
    def explained(self) -> Array:
        """Mean squares of a unit row along what is found, that direction included."""
        found = self.eigenvalues[: self.stands_out]
        return found if self.mean is None else np.append(found, self.mean.eigenvalues)

    def whole(self, basis: Array) -> Array:
        """Add that direction to a basis."""
        if self.mean is None:
            return basis
        return np.linalg.qr(np.hstack([basis, self.mean.basis]))[0]


def count_found(errors: Array, eigenvalues: Array, tuning: AdaptiveTuning = ADAPTIVE) -> int:
    """Count the directions whose expected errors, which rise, are small; a little more is allowed to all of them."""
    if errors.max() < tuning.found_late and eigenvalues[-1] > 0.4 * eigenvalues[0]:
        return len(errors)
    return int((errors < tuning.found).sum())


def first_look(
    lazy: LazyGauss,
    n: int,
    k: int,
    block: int,
    passes: int,
    public: np.random.Generator,
    *,
    constant: bool,
    tuning: AdaptiveTuning = ADAPTIVE,
) -> FirstLook:
    """Find k leading pairs of the second moment of n rows and decide which directions stand out of the noise.

    Up to `passes` blocks of `block` directions are asked for; `constant` tells whether the last column is one.
    """
    d = lazy.basis.shape[0]
    seen = OffConstant(lazy, tuning) if constant else lazy
    values, vectors = leading_pairs(seen, k, block, passes, public, small=tuning.small_look, trace=float(n))
    eigenvalues = spiked_eigenvalues(values, lazy.noise, d) / n  # (k + 1,)
    next_value, eigenvalues = float(eigenvalues[k]), eigenvalues[:k]
    found = count_found(lazy.noise * math.sqrt(d) / (eigenvalues * n), eigenvalues, tuning)
    above = values[k] > 1.15 * 2.0 * lazy.noise * math.sqrt(d)
    no_gap = bool(above and next_value > 0.25 * eigenvalues[-1])
    mean = seen.mean_direction(n) if isinstance(seen, OffConstant) else None
    return FirstLook(lazy, vectors, eigenvalues, values, found, no_gap, mean)
