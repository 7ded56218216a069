"""What a private PCA releases, whatever course it took."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from privspan.sums.gaps import Gaps

Array = NDArray[np.float64]
_Value = TypeVar("_Value", float, NDArray[np.float64])


@dataclass(frozen=True, eq=False)
class Noisy(Generic[_Value]):
    """A released number, or array of numbers, and its standard error.

    Attributes
    ----------
    value : float or array
    std : float or array
        The standard error of each number, or one for all; not finite where it is not known.

    Examples
    --------
    >>> Noisy(0.98, 0.01).named("captured_variance")
    {'captured_variance': 0.98, 'captured_variance_std': 0.01}
    """

    value: _Value
    std: float | NDArray[np.float64]

    @property
    def measured(self) -> bool:
        """Whether value and error are finite."""
        return bool(np.isfinite(self.value).all() and np.isfinite(self.std).all())

    def named(self, name: str) -> dict[str, object]:
        """Return what is known by name: the value, and an error for each number of it."""
        if not np.isfinite(self.value).all():
            return {}
        if not self.measured:
            return {name: self.value}
        std = np.array(np.broadcast_to(self.std, np.shape(self.value))) if np.ndim(self.value) else self.std
        return {name: self.value, f"{name}_std": std}


@dataclass(frozen=True)
class PCAResult:
    """What a private PCA releases, in the units of the rows that it looked at.

    A value or an error that is not finite was not measured: there were too few data.

    Attributes
    ----------
    basis : (d, k) array
        Orthonormal, by falling variance.
    ratios : Noisy, (k,)
        Variances over the total, which need no scale.
    variances : Noisy, (k,)
        Along the basis, of rows clipped at `clip` (or, without one, in proportion to unit rows).
    total : Noisy
        In all d directions.
    course : str
        "clipped look", "two looks", "one look", "pairs", "centre not found" (by pairs too), "near a subspace",
        "ranks", "deviations", or the name of a method.
    mean : Noisy, (d,), or None
        None where nothing was taken away; a public centre has no finite error.
    components_std : (k, d) array or None
        Standard errors of the entries of the basis, due to noise.
    captured : Noisy or None
        Variance along the basis over that of the best basis, in the rows as they were looked at; where two looks tell
        that long rows lead elsewhere, it allows for that.
    stands_out : int or None
        Components that stand out of the noise and of what is left out; the others are guesses.
    clip : float or None
        Rows further than this from the centre were clipped; None where only unit rows were looked at.
    shortened : Noisy or None
        About how many rows that were.
    at_least : (float, float) or None
        What the basis captures at least, but for two deviations of noise, of the variance of rows clipped at the
        second instead of at `clip`; None where rows were not clipped, or not counted further out.
    gaps : Gaps or None
        Where given, mean and variances are those of the present cells; else of the filled table.
    filled : (d,) array or None
        What gaps were filled with where the mean was measured.
    moment : (d, d) array or None
        The released second moment that the variances are of, up to a factor; None where there was no whole one.
    shares : tuple of (str, float)
        Steps and their shares of mu².
    about : mapping
        Public parameters and released values that describe the run.
    """

    basis: Array
    ratios: Noisy[Array]
    variances: Noisy[Array]
    total: Noisy[float]
    course: str
    mean: Noisy[Array] | None
    components_std: Array | None = None
    captured: Noisy[float] | None = None
    stands_out: int | None = None
    clip: float | None = None
    shortened: Noisy[float] | None = None
    at_least: tuple[float, float] | None = None
    gaps: Gaps | None = None
    filled: Array | None = None
    moment: Array | None = None
    shares: tuple[tuple[str, float], ...] = ()
    about: Mapping[str, object] = field(default_factory=dict)

    def told(self) -> dict[str, object]:
        """Return what is told of it by name, errors beside; what there was too little data to measure is left out."""
        told: dict[str, object] = {}
        told |= self.ratios.named("explained_variance_ratio")
        told |= self.variances.named("explained_variance") | self.total.named("total_variance")
        if self.components_std is not None:
            told["components_std"] = self.components_std
        if self.stands_out is not None:
            told["stands_out"] = self.stands_out
        if self.stands_out and self.captured is not None:  # of guesses there is no number worth telling
            told |= self.captured.named("captured_variance")
        if self.stands_out and self.at_least is not None:
            told["captured_variance_at_least"], told["longest_counted"] = self.at_least
        if self.clip is not None:
            told["clip"] = self.clip
        if self.shortened is not None:
            told |= self.shortened.named("rows_shortened")
        if self.gaps is not None:
            told |= {"gaps": self.gaps.counts, "gaps_std": self.gaps.std}
        return told

    def of_present_cells(self, gaps: Gaps) -> PCAResult:
        """Return the same for the cells that are there, as far as the released counts tell: post-processing."""
        pairs, away, mean = self.course in ("pairs", "centre not found"), None, self.mean
        variances, total, ratios = self.variances, self.total, self.ratios
        if mean is not None and self.filled is not None:
            mean = Noisy(*gaps.mean(mean.value, self.filled, mean.std))
            if not (pairs or math.isnan(total.value)) and mean.measured:
                away = np.maximum((mean.value - self.filled) ** 2 - np.square(mean.std), 0.0)
        if self.moment is not None:
            grown = gaps.variances(self.moment, self.basis, pairs=pairs, away=away)
        elif math.isnan(total.value):  # shares need no scale
            grown = gaps.variances_of_few(ratios.value, 1.0, self.basis, pairs=pairs)
        else:
            grown = gaps.variances_of_few(variances.value, total.value, self.basis, pairs=pairs, away=away)
        along, sum_along = variances.value * grown.along, total.value * grown.total
        return replace(
            self,
            gaps=gaps,
            mean=mean,
            variances=Noisy(along, np.hypot(variances.std * grown.along_noise, variances.value * grown.along_std)),
            total=Noisy(
                sum_along if math.isnan(sum_along) else max(sum_along, float(along.sum())),
                math.hypot(total.std * grown.total_noise, total.value * grown.total_std),
            ),
            ratios=Noisy(
                np.minimum(ratios.value * grown.along / grown.total, 1.0),
                np.hypot(ratios.std * grown.along_noise, ratios.value * grown.along_std) / grown.total,
            ),
        )


def share_errors(variances: Array, std: float, total: float, total_std: float, *, within: bool) -> Array:
    """Return the errors of variances over their total, (k,), whose noise has that of the variances in it, or not."""
    shares = variances / total
    common = 2.0 * shares * std**2 if within else 0.0
    return np.asarray(np.sqrt(np.maximum(std**2 + (shares * total_std) ** 2 - common, 0.0)) / total)
