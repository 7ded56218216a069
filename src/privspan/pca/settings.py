"""The public choices of one private PCA, and what no table could make sense of.

What follows from them is in a file for each course: `everyday`, `standardised`, and `named` for a method or a robust
target that is asked for, and for rows that are not to be centred.  `course` takes the one that is meant.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from privspan._lib import checks
from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan.private import ALGORITHMS, PRIVATE_METHODS
from privspan.rows.columns import PublicBounds, PublicNumbers
from privspan.rows.table import Missing
from privspan.standard.course import Standard

PCA_METHODS = tuple(method for method in PRIVATE_METHODS if method != "exact")

_SCALES = 'True, False, "ranks" or "deviations"'


@dataclass(frozen=True)
class PCASettings:
    """The public choices of one private PCA, named as in `private_pca`; the budget is that of the call."""

    k: int | float | Literal["auto"]
    center: bool = True
    scale: bool | Standard = False
    robust: bool = False
    max_components: int | None = None
    bounds: PublicBounds | None = None
    units: PublicNumbers | None = None
    around: PublicNumbers | None = None
    missing: Missing = "fill"
    method: str = "auto"
    gamma: float | None = None

    def __post_init__(self) -> None:
        """Refuse values that no table could make sense of."""
        checks.one_of(PCA_METHODS, method=self.method)
        checks.one_of(get_args(Missing), missing=self.missing)
        self._check_k()
        if not isinstance(self.robust, bool | np.bool_):
            raise ParameterTypeError("{robust} must be True or False.")
        if not isinstance(self.center, bool | np.bool_):
            raise ParameterTypeError("{center} must be True or False; a public centre goes into {around}.")
        if self.gamma is not None:
            checks.probability(gamma=self.gamma)
        if not isinstance(self.scale, bool | np.bool_ | str):
            raise ParameterTypeError("{scale} must be {known}; public units go into {units}.", known=_SCALES)
        if self.named_scale not in (None, "ranks", "deviations"):
            raise checks.refusal(ParameterError, "scale", _SCALES, self.named_scale)
        if self.around is not None and not self.center:
            raise ParameterError("{around} must be given only with {center:True}.")
        if self.units is not None and self.standardised:
            raise ParameterError("{units} must not be given with {scale:True}, which measures them.")
        if self.standardised and (self.method != "auto" or not self.center):
            raise ParameterError(
                '{scale:True} must be used with {method:"auto"} and {center:True}: correlations are computed '
                "about the mean, by a method of their own. Public {units} can be used with any method."
            )
        if self.named_scale == "deviations" and self.robust:
            raise ParameterError('{scale} must be True or "ranks" with {robust:True}.')

    def _check_k(self) -> None:
        """Refuse a number of components that is none: a count, a share of the variance or "auto"."""
        known = 'an integer, at least 1, a share of the variance between 0 and 1, or "auto"'
        if isinstance(self.k, str) and self.k == "auto":
            return
        if self.share is None and not checks.is_integer(self.k):
            raise checks.refusal(ParameterTypeError, "k", known, self.k)
        if not (self.k >= 1 if self.share is None else 0.0 < self.share < 1.0):  # also for NaN
            raise checks.refusal(ParameterError, "k", known, self.k)

    @property
    def share(self) -> float | None:
        """The share of the variance that decides how many components are kept, if one does."""
        return float(self.k) if isinstance(self.k, float | np.floating) else None

    @property
    def named_scale(self) -> str | None:
        """The course of standardised columns that was asked for by name."""
        return self.scale if isinstance(self.scale, str) else None

    @property
    def standardised(self) -> bool:
        """Whether columns are to weigh the same, whatever their units."""
        return bool(self.scale)

    @property
    def everyday(self) -> bool:
        """Whether the everyday course is taken, rather than that of a named or robust method."""
        return self.method == "auto" and not self.robust and self.center and not self.standardised


def takes_sparse(method: str) -> bool:
    """Tell whether a private PCA by this method, or by the one that "auto" chooses, takes sparse tables."""
    return method == "auto" or (method in PCA_METHODS and ALGORITHMS[method].sparse)
