"""``PrivatePCA``: `private_pca` as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

from privspan._lib.errors import ParameterTypeError
from privspan._lib.streams import is_stream, native
from privspan.estimators._base import SubspaceEstimator, parameters_named_as_here
from privspan.estimators._model import PCAModel
from privspan.pca import PCASettings, check_pca, learn_pca, takes_sparse
from privspan.privacy import Release
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.persons import MOST_ROWS
from privspan.privacy.randomness import RandomLike
from privspan.privacy.reading import Reading
from privspan.private import PrivateMethod
from privspan.rows.categories import Categories
from privspan.rows.columns import PublicBounds, PublicNumbers
from privspan.rows.compressed import as_dense
from privspan.rows.door import taken
from privspan.rows.gaps import filled
from privspan.rows.table import Missing
from privspan.standard.column_scales import NoSpreadWarning
from privspan.standard.course import Standard


@dataclass(eq=False, repr=False)
class PrivatePCA(PCAModel, SubspaceEstimator):
    """Principal component analysis under differential privacy.

    For any table of numbers with one row per person; no bounds on the values are needed. With more rows, or a larger
    epsilon, the result approaches that of ordinary PCA. What ``fit`` stores is private. ``transform`` is not: it
    shows one row per person.

    Parameters
    ----------
    n_components : int, float or "auto"
        Number of components; or the share of the variance, between 0 and 1, that they should explain; or "auto",
        which chooses the number privately and spends a part of epsilon on it. See :func:`privspan.private_pca`.
    epsilon, delta : float
        The guarantee for everything that ``fit`` stores, together.
    center, scale, robust, max_components
        As for :func:`privspan.private_pca`.
    whiten : bool, default=False
        Whether ``transform`` divides scores by their released standard deviations.
    bounds, units, around, categories, max_rows, missing, method, gamma
        As for :func:`privspan.private_pca`.
    random_state : None, int, SeedSequence, Generator or RandomState, default=None
        None draws from the operating system. Anything else makes the fit repeatable and **not private**; two fits
        with one seed draw the same noise, and their difference reveals a record.
    ledger : path, Ledger or Page, default=None
        Where every fit is charged, before it reads any data; clones charge the same file. See
        :class:`privspan.ledger.Ledger`.

    Attributes
    ----------
    captured_variance_, captured_variance_std_ : float
        Estimated share of the variance of the best components that these capture, and its standard error, from
        released numbers alone. It is the variance of the rows after clipping at ``release_.extras["clip"]`` (about
        `rows_shortened_` rows were clipped) or, in small tables, after scaling them to one length. NaN where no
        component stands out of the noise, by a named or robust method, and where a share of the variance left
        components out.
    stands_out_ : int
        How many components stand out of the noise; those after them cannot be distinguished from it.
    components_ : (n_components, n_features) array
        Orthonormal rows, sorted by falling private variance; of the columns divided by `scale_`.
    components_std_ : (n_components, n_features) array
        Standard errors of the loadings, due to the noise alone; they do not count sampling error. Infinite for
        components that cannot be distinguished from noise, NaN where the method gives none. With ``scale=True``
        columns hidden by noise have less weight, ``release_.extras["column_weights"]``; loadings are those of the
        weighted correlations.
    explained_variance_, explained_variance_std_ : (n_components,) array
        Private variances along the components, of the clipped rows (of rows scaled to one length in small tables),
        and their standard errors. The variances of the table itself are larger, by the part of long rows beyond the
        clip; the errors do not cover that. NaN where the table is too small to measure them.
    explained_variance_ratio_ : (n_components,) array
        The same divided by the total variance, which is private too.
    total_variance_, total_variance_std_ : float
        The variance in all directions, of the same rows.
    singular_values_ : (n_components,) array
        The square roots of ``(n_samples_ - 1) * explained_variance_``, as in scikit-learn.
    noise_variance_ : float
        The variance that the components do not explain, per remaining direction.
    mean_, mean_std_ : (n_features,) array
        Private mean of the clipped rows and its standard error, in the units of the table. The clip moves the mean of
        skewed columns, and the error does not cover that. The public centre or zeros, and infinite, where the table
        is too small to measure it. Zeros when ``center=False``.
    scale_, scale_std_ : (n_features,) array
        What each column is divided by, and its standard error: ones and zeros without `scale`, `units` and `bounds`.
        With ``scale=True`` the standard deviations of the columns cut off at `low_` and `high_`, and `mean_` are the
        means of the same; NaN where no scale is known. Components and variances do not depend on them.
    low_, high_ : (n_features,) array
        Where ``transform`` cuts cells off: infinite without ``scale=True``.
    estimates_ : str
        What components are made from: "covariances", "rank correlations" or "correlations of winsorised columns".
    rows_shortened_ : float
        Noisy number of rows that were clipped; NaN if none was, or they were not counted.
    gaps_, gaps_std_ : (n_features,) array, float
        Noisy number of gaps in each column, and the standard deviation of the noise: means, variances and scales are
        then those of the cells without a gap. NaN where they were not counted, because types declare that there are
        none or the table is too small: means and variances are those of the filled table.
    n_components_, n_features_in_, n_samples_ : int
        The last is the number of rows, or of persons with `person`.
    subspace_ : Subspace
        Affine, through `mean_`, when centred.
    plan_ : Plan
        The prediction for ideal data, from public numbers.
    release_ : Release
        The release; its ``cost`` is that of all fitted attributes together.
    succeeded_ : bool
        False after an abstention; only "stable" and "approximate" can abstain.

    See Also
    --------
    privspan.private_pca : the function behind it, with all parameters explained.
    privspan.private_subspace : the subspace alone, without centring and variances.
    privspan.plan : what to expect before looking at data.

    Notes
    -----
    Every ``fit`` spends the budget again: cross-validation with five folds spends five budgets, and the final fit on
    all rows a sixth.

    Guarantee
    ---------
    The fitted attributes together are (epsilon, delta)-differentially private for replace-one neighbours, for all
    data, when `random_state` is None and each person is one row; the number of rows and columns and all parameters
    are public. With `person`, for replacing one person; their number is public, that of rows is not. ``transform`` of
    private rows is not private. Proof: ``docs/explanation/planning.md``, ``docs/explanation/several-rows.md``.

    Examples
    --------
    >>> import warnings
    >>> from privspan import NotPrivateWarning
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(20_000, 30, 2, gamma_w=0.1, rng=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotPrivateWarning)
    ...     model = PrivatePCA(2, epsilon=1.0, delta=1e-6, random_state=0).fit(X + 1.0)
    >>> bool(model.subspace_.distance(truth) < 0.05), model.release_.cost.epsilon
    (True, 1.0)
    """

    n_components: int | float | Literal["auto"]
    _: KW_ONLY
    center: bool = True
    scale: bool | Standard = False
    robust: bool = False
    max_components: int | None = None
    whiten: bool = False
    bounds: PublicBounds | None = None
    units: PublicNumbers | None = None
    around: PublicNumbers | None = None
    categories: Categories | None = None
    max_rows: int = MOST_ROWS
    missing: Missing = "fill"
    method: PrivateMethod = "auto"
    gamma: float | None = None
    random_state: RandomLike = None
    ledger: LedgerLike = None

    def _takes_sparse(self) -> bool:
        return takes_sparse(self.method)

    def _settings(self) -> PCASettings:
        return PCASettings(
            self.n_components,
            self.center,
            self.scale,
            self.robust,
            self.max_components,
            self.bounds,
            self.units,
            self.around,
            self.missing,
            self.method,
            self.gamma,
        )

    def _rows_of_a_person(self) -> int:
        return self.max_rows

    def check_table(self, X: Any) -> None:
        """Raise the errors of ``fit`` that follow from types and shapes alone; no value is read and nothing is spent.

        Parameters
        ----------
        X : as for ``fit``
        """
        with Call(type(self).__name__, self.epsilon, self.delta) as call, parameters_named_as_here():
            if is_stream(native(X)):
                what = (
                    "no stream, which can be read once; open it by `open_rows`, and check and fit what that returns"
                )
                raise ParameterTypeError("{X} must be {what}.", what=what)
            check_pca(self._settings(), call, taken(X, None, self.categories))

    def _release(self, call: Call, X: Any, names: list[str] | None, declared: Any) -> Release:
        if not isinstance(self.whiten, bool | np.bool_):
            raise ParameterTypeError("{whiten} must be True or False.")
        release, self.plan_ = learn_pca(self._settings(), call, X, names, declared)
        d, k = int(X.shape[1]), int(release.extras["explained_variance_ratio"].shape[0])  # type: ignore[attr-defined]
        centred = release.parameters["centring"] != "none"
        unmeasured: dict[str, Any] = {
            "explained_variance": np.full(k, np.nan),
            "explained_variance_std": np.full(k, np.nan),
            "mean_std": np.full(d, np.inf if centred else 0.0),
            "mean": np.full(d, np.nan),
            "scale": np.full(d, np.nan if release.parameters["scale"] else 1.0),
            "scale_std": np.zeros(d),
            "low": np.full(d, -np.inf),
            "high": np.full(d, np.inf),
            "gaps": np.full(d, np.nan),
        }
        for name in _RELEASED:
            setattr(self, f"{name}_", release.extras.get(name, unmeasured.get(name, np.nan)))
        self.estimates_ = str(release.parameters.get("estimates", "covariances"))
        if release.parameters.get("without_units"):
            without = Reading(release, names).without_units
            self.mean_, self.scale_ = self.mean_.copy(), self.scale_.copy()
            self.mean_[without] = self.scale_[without] = np.nan
        left = self.total_variance_ - self.explained_variance_.sum()
        self.n_samples_ = int(release.parameters["n"])  # type: ignore[call-overload]
        self.singular_values_ = np.sqrt((self.n_samples_ - 1) * np.maximum(self.explained_variance_, 0.0))
        self.noise_variance_ = max(0.0, float(left)) / (d - k) if d > k else 0.0
        standing: Any = release.extras.get("stands_out", k)
        self.components_std_ = np.array(release.extras.get("components_std", np.full((k, d), np.nan)))
        self.components_std_[int(standing) :] = np.inf
        self.stands_out_ = int(release.extras.get("stands_out", release.parameters.get("stands_out", k)))  # type: ignore[call-overload]
        return release

    def _warn(self, call: Call) -> None:
        super()._warn(call)
        if self.whiten and not (self.explained_variance_ > 0.0).all():  # nor where it is NaN
            message = "Scores along components without a measurable variance are not whitened."
            call.warn(message, NoSpreadWarning)

    def _coordinates(self, X: Any) -> Any:
        rows = filled(X, self.mean_)  # a gap counts as the centre, as it does in `fit`
        return super()._coordinates(
            np.clip(as_dense(rows), self.low_, self.high_) if np.isfinite(self.high_).any() else rows
        )

    def _centre(self) -> Any:
        return self.mean_

    def _units(self) -> Any:
        return self.scale_

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:  # the parameter is scikit-learn's
        said = "" if not hasattr(self, "release_") else self.release_.headline
        return f"{super().__repr__(N_CHAR_MAX)}{f': {said}' if said else ''}"


_RELEASED = (
    "captured_variance",
    "captured_variance_std",
    "explained_variance",
    "explained_variance_std",
    "explained_variance_ratio",
    "total_variance",
    "total_variance_std",
    "mean",
    "mean_std",
    "scale",
    "scale_std",
    "low",
    "high",
    "rows_shortened",
    "gaps",
    "gaps_std",
)
