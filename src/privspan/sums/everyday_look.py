"""What everyday PCA releases, whatever course it took; see `privspan.sums.everyday`."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from privspan.sums.gaps import Gaps
from privspan.sums.judge import Captured

Array = NDArray[np.float64]


@dataclass(frozen=True)
class EverydayLook:
    """What everyday PCA releases; variances are those of the table, in its units.

    Attributes
    ----------
    basis : (d, k) array
        Orthonormal, by falling variance.
    mean : (d,) array
        The public centre, or zero, where there is too little data for more.
    mean_std : float or (d,) array
        Standard deviation of the noise of every coordinate of the mean; infinite where it was not measured.
    variances : (k,) array
        Along the basis, of rows shortened to `clip` (or, without one, in proportion to unit rows); NaN, and so are
        the next three, where there is too little data to tell the scale.
    variances_std, total, total_std : float
        The total is that of all d directions.
    ratios, ratios_std : (k,) array
        Variances over the total, which need no scale, and their errors.
    captured : Captured
        Variance along the basis over that of the best basis: estimate and standard error.  It speaks of the rows as
        they were looked at; where the two looks tell that long rows lead elsewhere, it allows for that.
    stands_out : int
        Directions that stand out of the noise and of what is left out; the others are guesses.
    clip : float or None
        Rows further than this from the centre were shortened to it; None where only unit rows were looked at.
    shortened : float or None
        About how many rows that were, noise included.
    shortened_std : float or None
    length : float or None
        Typical length about the centre (40 % of the rows are longer); of differences, for pairs.
    rounds : int
        Of the search for the centre.
    course : {"clipped look", "two looks", "one look", "pairs", "centre not found", "near a subspace"}
        "centre not found" is by pairs too.
    weight : float
        Of the unit look in the mixture.
    shares : tuple of (str, float)
        Steps and their shares of mu².
    passes : int or None
        Over the rows of the table.
    basis_std : (k, d) array
        Standard errors of the entries of the basis, due to noise.
    moment : (d, d) array or None
        The released second moment that the variances are of, up to a factor; None where there was no whole one.
    filled : (d,) array or None
        What gaps were filled with where the mean was measured.
    at_least, counted_to : float or None
        What the basis captures at least, but for two deviations of noise, of the variance of rows clipped at the
        second instead of at `clip`; None where rows were not clipped, or not counted further out.
    gaps : Gaps or None
        Where given, mean and variances are those of the present cells; else of the filled table.
    """

    basis: Array
    mean: Array
    mean_std: float | Array
    variances: Array
    variances_std: float | Array
    total: float
    total_std: float
    ratios: Array
    ratios_std: Array
    captured: Captured
    stands_out: int
    clip: float | None
    shortened: float | None
    shortened_std: float | None
    length: float | None
    rounds: int
    course: str
    weight: float
    shares: tuple[tuple[str, float], ...]
    passes: int | None
    basis_std: Array
    moment: Array | None = None
    filled: Array | None = None
    at_least: float | None = None
    counted_to: float | None = None
    gaps: Gaps | None = None

    def of_present_cells(self, gaps: Gaps) -> EverydayLook:
        """Return the same for the cells that are there, as far as the released counts tell: post-processing."""
        pairs, away = self.course in ("pairs", "centre not found"), None
        mean, mean_std = self.mean, self.mean_std
        if self.filled is not None:
            mean, mean_std = gaps.mean(self.mean, self.filled, self.mean_std)
        if self.filled is not None and not (pairs or math.isnan(self.total)) and np.isfinite(mean_std).all():
            away = np.maximum((mean - self.filled) ** 2 - np.square(mean_std), 0.0)
        if self.moment is not None:
            grown = gaps.variances(self.moment, self.basis, pairs=pairs, away=away)
        elif math.isnan(self.total):  # shares need no scale
            grown = gaps.variances_of_few(self.ratios, 1.0, self.basis, pairs=pairs)
        else:
            grown = gaps.variances_of_few(self.variances, self.total, self.basis, pairs=pairs, away=away)
        variances, total = self.variances * grown.along, self.total * grown.total
        total = max(total, float(variances.sum())) if not math.isnan(total) else total
        return replace(
            self,
            gaps=gaps,
            mean=mean,
            mean_std=mean_std,
            variances=variances,
            variances_std=np.hypot(self.variances_std * grown.along_noise, self.variances * grown.along_std),
            total=total,
            total_std=math.hypot(self.total_std * grown.total_noise, self.total * grown.total_std),
            ratios=np.minimum(self.ratios * grown.along / grown.total, 1.0),
            ratios_std=np.hypot(self.ratios_std * grown.along_noise, self.ratios * grown.along_std) / grown.total,
        )


def share_errors(variances: Array, std: float, total: float, total_std: float, *, within: bool) -> Array:
    """Return the errors of variances over their total, (k,), whose noise has that of the variances in it, or not."""
    shares = variances / total
    common = 2.0 * shares * std**2 if within else 0.0
    return np.asarray(np.sqrt(np.maximum(std**2 + (shares * total_std) ** 2 - common, 0.0)) / total)
