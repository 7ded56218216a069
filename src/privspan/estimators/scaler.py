"""A private relative of scikit-learn's `StandardScaler`."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils.validation import check_is_fitted

from privspan._lib import checks
from privspan._lib.errors import ParameterTypeError
from privspan.estimators._base import PrivateEstimator
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.persons import MOST_ROWS
from privspan.privacy.randomness import RandomLike
from privspan.rows.categories import Categories
from privspan.rows.columns import PublicBounds, public_columns
from privspan.rows.compressed import as_dense
from privspan.rows.door import given_table
from privspan.rows.gaps import filled
from privspan.rows.table import Missing, check_missing
from privspan.standard.column_scales import NoSpreadWarning, empty_share, scales_within


@dataclass(eq=False, repr=False)
class PrivateStandardScaler(OneToOneFeatureMixin, PrivateEstimator):  # type: ignore[misc]
    """Standardise columns by private means and standard deviations, with extreme cells clipped.

    Put it before :class:`privspan.PrivatePCA` where columns have different units. The two budgets add up.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee for everything that ``fit`` stores, together.
    with_mean : bool, default=True
        Whether ``transform`` subtracts the means.
    bounds : mapping, (2,) or (2, n_features) array, optional
        Public bounds of columns, by name or position, as in ``{"age": (0, 120)}``; or (low, high) for all columns
        alike; or low ends and high ends, NaN where nothing is known.
        Columns of booleans have them by themselves.
    categories : mapping or "declared", optional
        Columns of words and the words they may hold, as for :func:`privspan.private_scales`.
    max_rows : int, default=8
        The most rows that are used of one person, where ``fit`` gets `person`.
    missing : {"fill", "zero-row"}, default="fill"
        How a gap is treated, as for :func:`privspan.private_scales`.
    random_state : None, int, SeedSequence, Generator or RandomState, default=None
        None draws from the operating system. Anything else makes the fit repeatable and **not private**.
    ledger : path, Ledger or Page, default=None
        Where every fit is charged, before it reads any data; clones charge the same file. See
        :class:`privspan.ledger.Ledger`.

    Attributes
    ----------
    mean_ : (n_features,) array
        Private means of the columns, cut off at `low_` and `high_`; 0 for columns that are left as they are.
    scale_ : (n_features,) array
        Private standard deviations of the same; 1 for columns that are left as they are.
    var_ : (n_features,) array
        Their squares; 0 for columns that are left as they are.
    mean_std_, scale_std_ : (n_features,) array
        Standard errors due to noise; infinite for columns that are left as they are.
    low_, high_ : (n_features,) array
        Where cells are cut off, by ``transform`` too; infinite for columns that are left as they are.
    gaps_ : (n_features,) array
        Noisy number of gaps in each column; means and deviations are those of the other cells. NaN where they were
        not counted.
    left_as_they_are_ : list
        Names, or positions, of columns in which no range could be found at this budget.
    release_ : PrivateScales
        The release; its ``cost`` is that of all fitted attributes together.
    n_features_in_ : int

    See Also
    --------
    privspan.private_scales : the same as a function.

    Guarantee
    ---------
    The fitted attributes together are (epsilon, delta)-differentially private for replace-one neighbours, for all
    data, when `random_state` is None and each person is one row; the number of rows and columns, declared types and
    all parameters are public. With `person`, for replacing one person; their number is public, that of rows is not.
    ``transform`` of private rows is not private. Proof: ``docs/explanation/standardised.md``,
    ``docs/explanation/several-rows.md``.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from privspan import NotPrivateWarning
    >>> X = np.random.default_rng(0).standard_normal((20_000, 2)) * [1e-3, 1e6] + 5.0
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotPrivateWarning)
    ...     scaler = PrivateStandardScaler(epsilon=1.0, delta=1e-6, random_state=0).fit(X)
    >>> bool((np.abs(scaler.transform(X).std(axis=0) - 1.0) < 0.1).all())
    True
    """

    _: KW_ONLY
    with_mean: bool = True
    bounds: PublicBounds | None = None
    categories: Categories | None = None
    max_rows: int = MOST_ROWS
    missing: Missing = "fill"
    random_state: RandomLike = None
    ledger: LedgerLike = None

    def _rows_of_a_person(self) -> int:
        return self.max_rows

    def _learn(self, call: Call, X: Any, names: list[str] | None, declared: Any) -> None:
        if not isinstance(self.with_mean, bool | np.bool_):
            raise ParameterTypeError("{with_mean} must be True or False.")
        public = public_columns(declared, self.n_features_in_, names=names, bounds=self.bounds)
        check_missing(self.missing)
        run = call.begin(gaussian=True, empty=empty_share(call.budget.mu, X, public, self.missing))
        release = scales_within(run, X, public, self.missing)
        self.release_, found = release, release.measured
        self.mean_, self.scale_ = np.where(found, release.mean, 0.0), np.where(found, release.scale, 1.0)
        self.mean_std_, self.scale_std_ = (np.where(found, x, np.inf) for x in (release.mean_std, release.scale_std))
        self.low_, self.high_ = np.where(found, release.low, -np.inf), np.where(found, release.high, np.inf)
        self.gaps_ = np.full(len(found), np.nan) if release.gaps is None else release.gaps
        self.var_ = np.where(found, self.scale_**2, 0.0)
        left = np.flatnonzero(~release.measured).tolist()
        self.left_as_they_are_ = left if names is None else [names[column] for column in left]

    def _warn(self, call: Call) -> None:
        super()._warn(call)
        if self.left_as_they_are_:
            shown = ", ".join(repr(column) for column in self.left_as_they_are_[:10])
            more = len(self.left_as_they_are_) - 10
            what = f"{shown} and {more} more" if more > 0 else shown
            message = f"These columns are NOT standardised, as no range was found at this budget: {what}."
            call.warn(message, NoSpreadWarning)

    def transform(self, X: Any) -> Any:
        """Cut off extreme cells, subtract the means and divide by the standard deviations; a gap counts as the mean.

        Not private when the rows are.

        Parameters
        ----------
        X : (n_samples, n_features) array-like or RowSource

        Returns
        -------
        (n_samples, n_features) array
        """
        check_is_fitted(self)
        X = self._taken(X)
        if (table := given_table(X)) is not None:
            self._check_columns(table)
            rows: Any = table.here()[:]
        else:
            rows = self._validated(X, reset=False, dtype=(np.float64, np.float32))
        checks.columns(rows, self.n_features_in_)
        with np.errstate(all="ignore"):
            cells = np.clip(as_dense(filled(rows, self.mean_)), self.low_, self.high_)
            return np.asarray((cells - self._centre()) / self.scale_)

    def _centre(self) -> Any:
        return self.mean_ if self.with_mean else 0.0

    def inverse_transform(self, X: Any) -> Any:
        """Multiply by the standard deviations and add the means.

        Parameters
        ----------
        X : (n_samples, n_features) array-like

        Returns
        -------
        (n_samples, n_features) array
        """
        check_is_fitted(self)
        rows = checks.matrix(X)
        checks.columns(rows, self.n_features_in_)
        with np.errstate(all="ignore"):
            return np.asarray(rows * self.scale_ + self._centre())
