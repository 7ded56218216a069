"""``PrivatePCA``: `private_pca` as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from privspan._lib.entry import entry
from privspan.estimators._base import SubspaceEstimator, parameters_named_as_here
from privspan.pca import PCASettings, takes_sparse
from privspan.privacy import Release
from privspan.private import PrivateMethod


@dataclass(eq=False, repr=False)
class PrivatePCA(SubspaceEstimator):
    """Principal component analysis under differential privacy.

    For any table of numbers with one row per person: no bound on the values is asked for, and the method is chosen
    by the planner. What ``fit`` stores is private. ``transform`` is not: it shows a row per person.

    Parameters
    ----------
    n_components : int or "auto"
        Number of components. "auto" chooses it privately, at a part of epsilon.
    epsilon, delta : float
        The guarantee for everything that ``fit`` stores, together.
    center, method, gamma, norm_bound, max_components
        As for :func:`privspan.private_pca`.
    random_state : None, int, SeedSequence, Generator or RandomState, default=None
        None draws from the operating system. Anything else makes the fit repeatable and **not private**; two fits
        with one seed draw the same noise, and their difference reveals a record.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Orthonormal rows, by falling private variance.
    explained_variance_ : (n_components,) array
        Private variances along the components.
    explained_variance_ratio_ : (n_components,) array
        The same over the total, which is private too.
    total_variance_ : float
    mean_ : (n_features,) array
        Private mean; zeros when ``center=False``.
    n_components_, n_features_in_ : int
    subspace_ : Subspace
        Affine, through `mean_`, when centred.
    plan_ : Plan
        What was predicted, from public numbers.
    release_ : Release
        What was released; its ``cost`` is that of all fitted attributes together.
    succeeded_ : bool
        False after an abstention, which only "stable" and "approximate" know.

    See Also
    --------
    privspan.private_pca : the function behind it, with all parameters explained.
    privspan.private_subspace : the subspace alone, without centring and variances.
    privspan.plan : what to expect before looking at data.

    Notes
    -----
    Every ``fit`` spends the budget again: cross-validation with f folds costs f + 1 budgets.

    Guarantee
    ---------
    The fitted attributes together are (epsilon, delta)-differentially private for replace-one neighbours, for all
    data, when `random_state` is None and each person is one row; the number of rows and columns and all parameters
    are public. ``transform`` of private rows is not private. Proof: ``docs/explanation/planning.md``.

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

    n_components: int | Literal["auto"]
    _: KW_ONLY
    center: bool = True
    method: PrivateMethod = "auto"
    gamma: float | None = None
    norm_bound: float | None = None
    max_components: int | None = None

    def _takes_sparse(self) -> bool:
        return takes_sparse(self.method)

    def _settings(self) -> PCASettings:
        return PCASettings(**{name: value for name, value in self._options().items() if name != "rng"})

    @entry
    def check_table(self, X: Any) -> None:
        """Refuse what ``fit`` would refuse, from types and shapes alone: no value is read and nothing is spent.

        Parameters
        ----------
        X : as for ``fit``
        """
        with parameters_named_as_here():
            self._settings().check(X)

    def _release(self, X: Any, names: list[str] | None) -> Release:
        release, self.plan_ = self._settings().learn(X, self.random_state, names)
        extras: Any = release.extras
        self.explained_variance_ = extras["explained_variance"]
        self.total_variance_ = extras["total_variance"]
        self.explained_variance_ratio_ = extras["explained_variance_ratio"]
        self.mean_ = extras["mean"]
        return release

    def _centre(self) -> Any:
        return self.mean_
