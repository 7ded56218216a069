"""The public choices of one private PCA, the table they are for, and all that is refused of either for every course.

What follows from them is in a file for each course: `everyday`, `standardised`, and `named` for a method or a robust
target that is asked for, and for rows that are not to be centred.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import Parameter, ParameterError, ParameterTypeError
from privspan.blocks.plan import rank_block_size, rank_epsilon
from privspan.blocks.rank import check_choice
from privspan.privacy.call import Call
from privspan.private import ALGORITHMS, PRIVATE_METHODS
from privspan.rows.columns import PublicBounds, PublicColumns, PublicNumbers, column_names, public_columns
from privspan.rows.table import Missing, Table
from privspan.standard.course import Standard

PCA_METHODS = tuple(method for method in PRIVATE_METHODS if method != "exact")

Array = NDArray[np.float64]

_SCALES = 'True, False, "ranks" or "deviations"'
_MOST_COMPONENTS = 10  # time and memory: a vote among more would also take more rows than most tables have


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
        if isinstance(self.scale, str) and self.scale not in get_args(Standard):
            raise checks.refusal(ParameterError, "scale", _SCALES, self.scale)
        if self.around is not None and not self.center:
            raise ParameterError("{around} must be given only with {center:True}.")
        if self.units is not None and self.standardised:
            raise ParameterError("{units} must not be given with {scale:True}, which measures them.")
        if self.standardised and (self.method != "auto" or not self.center):
            raise ParameterError(
                '{scale:True} must be used with {method:"auto"} and {center:True}: correlations are computed '
                "about the mean, by a method of their own. Public {units} can be used with any method."
            )
        if self.scale == "deviations" and self.robust:
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


@dataclass(frozen=True)
class PCATable:
    """A table as the steps take it, and what is public of its columns.

    Attributes
    ----------
    source : Table
    public : PublicColumns
    names : tuple of str, or None
    centred : Table
        What stands for the rows once they are centred, where only its numbers of rows mean anything: half as many,
        as for differences of pairs, or the rows themselves where they are not to be centred.
    considered : range
        The numbers of components among which k is chosen.
    gapped : (d,) array of bool
        Columns whose gaps are counted, where that is worth it.
    units : (d,) array, or None
        Public units that the columns are divided by; None if they stay in their own.
    vote : float
        The part of epsilon that choosing k by a vote costs; 0 where there is none.
    """

    source: Table
    public: PublicColumns
    names: tuple[str, ...] | None
    centred: Table
    considered: range
    gapped: NDArray[np.bool_]
    units: Array | None
    vote: float

    def named(self, columns: NDArray[np.bool_]) -> tuple[str | int, ...]:
        """Return the names, or the positions, of some columns."""
        return tuple(self.names[i] if self.names else int(i) for i in np.flatnonzero(columns))


def opened(settings: PCASettings, call: Call, X: object, names: Sequence[str] | None, declared: object) -> PCATable:
    """Return the table, or refuse what no course can do with it, from types and shapes alone."""
    source = call.open(X, min_rows=2, accept_sparse=takes_sparse(settings.method))
    if settings.missing == "zero-row":
        source = source.with_gaps(settings.missing)
    names = names or column_names(source if column_names(X) is None else X)
    checks.distinct_names(names)
    public = public_columns(
        declared, source.shape[1], names=names, bounds=settings.bounds, units=settings.units, around=settings.around
    )
    centred = source.halved() if settings.center else source
    considered, vote = _considered(settings, centred.shape), 0.0
    if settings.k == "auto" and not settings.standardised:  # which needs no vote
        most = considered[-1]
        check_choice(centred, most)
        vote = rank_epsilon(centred.blocks(rank_block_size(most)), most, call.budget.epsilon)
    gapped = ~public.complete if settings.missing == "fill" else np.zeros(source.shape[1], dtype=bool)
    units = np.where(public.scaled, public.units, 1.0)
    if public.said:  # what is declared as booleans stays as it is unless the user says otherwise
        units = np.where(public.bounded & ~public.scaled, public.half_range, units)
    in_units = None if (units == 1.0).all() else units
    return PCATable(source, public, tuple(names) if names else None, centred, considered, gapped, in_units, vote)


def _considered(settings: PCASettings, shape: tuple[int, int]) -> range:
    """Return the numbers of components among which k is chosen, or refuse what so many rows and columns have not."""
    shared, most = settings.share is not None, settings.max_components
    if settings.k == "auto":
        if most is None:
            most = min(_MOST_COMPONENTS, shape[1] - 1, shape[0] // 2 - 1)
            most = max(most, 1) if settings.standardised else most
        checks.integer_at_least(1, max_components=most)
        return range(1, int(most) + 1)
    if shared and most is None:
        most = min(_MOST_COMPONENTS, *shape)
    name, k = ("max_components", most) if shared else ("k", settings.k)
    checks.integer_at_least(1, **{name: k})
    assert k is not None
    if int(k) > min(shape):
        what = "pairs of rows" if settings.center else "rows"
        smaller = f"{min(shape)}, the smaller of the number of columns and of {what}"
        raise ParameterError(
            "{name} must be at most {most}; got {got}.", name=Parameter(name), most=smaller, got=int(k)
        )
    if most is not None and not shared:
        raise ParameterError('{max_components} must be given only with {k:"auto"} or a share.')
    return range(int(k), int(k) + 1)
