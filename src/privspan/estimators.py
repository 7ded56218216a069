"""scikit-learn estimators around the algorithms; the only module that imports scikit-learn.

What is private is what :meth:`fit` stores. :meth:`transform` of the private rows themselves is **not** private:
it shows one row per person.
"""

from __future__ import annotations

import warnings
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

try:
    from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
    from sklearn.utils import Tags
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as error:  # pragma: no cover - the extra is part of every development set-up
    raise ImportError("The estimators need scikit-learn: pip install 'privspan[sklearn]'.") from error

from privspan.algorithms.exact import exact_subspace
from privspan.planner_exact import DEFAULT_MAX_WORK, ExactMethod, ExactRule
from privspan.privacy import Release
from privspan.randomness import RandomLike
from privspan.selection import ReleaseRule
from privspan.subspace import Subspace


class AbstentionWarning(UserWarning):
    """The private step abstained: the fitted subspace is a placeholder that does not depend on the data."""


class NotPrivateWarning(UserWarning):
    """A seed was given, so the noise can be repeated and the result is not private."""


class _SubspaceEstimator(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the estimators share: fitting from a Release, projecting, and honest warnings."""

    n_components: int
    random_state: RandomLike

    @abstractmethod
    def _release(self, X: NDArray[Any], names: list[str] | None) -> Release:
        """Run the algorithm on validated rows."""

    def fit(self, X: Any, y: object = None) -> Self:
        """Learn the subspace privately.

        Parameters
        ----------
        X : (n_samples, n_features) array-like
            One person per row.
        y : ignored
            Present for the scikit-learn interface.

        Returns
        -------
        self
            Fitted. A private abstention does not raise: it warns, sets ``succeeded_ = False`` and leaves a
            subspace that does not depend on the data.
        """
        X = validate_data(self, X, dtype=None, ensure_all_finite=False, ensure_min_samples=2)
        names = getattr(self, "feature_names_in_", None)
        self.release_ = self._release(X, None if names is None else [str(name) for name in names])
        self.succeeded_ = not self.release_.abstained
        self.subspace_ = self.release_.subspace or _first_axes(X.shape[1], self.n_components)
        self.components_ = self.subspace_.basis.T.copy()  # (k, d)
        self.n_components_ = self.components_.shape[0]
        self._warn()
        return self

    def _warn(self) -> None:
        if not self.release_.private:
            message = "`random_state` was given: equal noise can be drawn again, so this fit is not private."
            warnings.warn(message, NotPrivateWarning, stacklevel=3)
        if not self.succeeded_:
            message = (
                "The private step abstained and its budget is spent. `components_` are the first coordinate axes, "
                "not a result; check `succeeded_`."
            )
            warnings.warn(message, AbstentionWarning, stacklevel=3)

    def transform(self, X: Any) -> NDArray[np.float64]:
        """Coordinates of rows in the learnt subspace. Not private when the rows are.

        Parameters
        ----------
        X : (n_samples, n_features) array-like

        Returns
        -------
        (n_samples, n_components) array
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=(np.float64, np.float32), ensure_all_finite=False, reset=False)
        coordinates: NDArray[np.float64] = (X - self._centre()) @ self.components_.T
        return coordinates

    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """Rows of the original space with these coordinates.

        Parameters
        ----------
        X : (n_samples, n_components) array-like

        Returns
        -------
        (n_samples, n_features) array
        """
        check_is_fitted(self)
        return np.asarray(X) @ self.components_ + self._centre()

    def _centre(self) -> NDArray[np.float64] | float:
        return 0.0 if self.subspace_.offset is None else self.subspace_.offset

    @property
    def _n_features_out(self) -> int:
        """Number of output columns, for scikit-learn's feature names."""
        return int(self.n_components_)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # a row that is not finite counts as zero; raising would tell
        tags.non_deterministic = self.random_state is None
        return tags


def _first_axes(d: int, k: int) -> Subspace:
    """A subspace that depends on public numbers only."""
    return Subspace(np.eye(d, k))


class ExactSubspace(_SubspaceEstimator):
    """The subspace that holds the records exactly, learnt privately.

    Use it when columns are derived from one another (totals, conversions, one-hot groups) or the data lie in a
    low-dimensional subspace with no error at all. The number of records it needs does not depend on the number of
    columns.

    Parameters
    ----------
    n_components : int
        Dimension of the subspace.
    epsilon, delta : float
        The guarantee.
    method : {"auto", "gap-max", "votes"}, default="auto"
    rule : {"majority", "gap"}, default="majority"
    release : {"optimal", "truncated-laplace"}, default="optimal"
    affine : bool, default=False
        Whether the subspace may miss the origin.
    decimals : int, optional
        Round values to that many decimals and treat them as exact.
    block_size : int, optional
        Records per block of the votes.
    max_work : int
        Refuse a search that looks at more points than this.
    random_state : None, int, SeedSequence, Generator or RandomState, default=None
        None draws from the operating system. Anything else makes the fit repeatable and **not private**.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Orthonormal rows that span the subspace.
    n_components_ : int
    n_features_in_ : int
    subspace_ : Subspace
        With its exact rational form and ``relations()``, after a success.
    release_ : Release
        What was released and what it cost.
    succeeded_ : bool
        False after an abstention.

    See Also
    --------
    privspan.exact_subspace : the function behind it, with all parameters explained.

    Guarantee
    ---------
    The fitted attributes are (epsilon, delta)-differentially private for replace-one neighbours, for all data, when
    `random_state` is None and each person is one row. ``transform`` of private rows is not private. Proof:
    ``docs/explanation/exact-case.md``.

    Examples
    --------
    >>> import numpy as np, warnings
    >>> from privspan import ExactSubspace, NotPrivateWarning
    >>> parts = np.random.default_rng(0).integers(0, 100, (80, 2))
    >>> table = np.column_stack([parts, parts.sum(axis=1)])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotPrivateWarning)
    ...     model = ExactSubspace(2, epsilon=1.0, delta=1e-6, random_state=0).fit(table)
    >>> model.succeeded_
    True
    >>> [relation.describe() for relation in model.subspace_.relations()]
    ['x2 = x0 + x1']
    """

    def __init__(
        self,
        n_components: int,
        *,
        epsilon: float,
        delta: float,
        method: ExactMethod = "auto",
        rule: ExactRule = "majority",
        release: ReleaseRule = "optimal",
        affine: bool = False,
        decimals: int | None = None,
        block_size: int | None = None,
        max_work: int = DEFAULT_MAX_WORK,
        random_state: RandomLike = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.rule = rule
        self.release = release
        self.affine = affine
        self.decimals = decimals
        self.block_size = block_size
        self.max_work = max_work
        self.random_state = random_state

    def _release(self, X: NDArray[Any], names: list[str] | None) -> Release:
        return exact_subspace(
            X,
            self.n_components,
            epsilon=self.epsilon,
            delta=self.delta,
            method=self.method,
            rule=self.rule,
            release=self.release,
            affine=self.affine,
            decimals=self.decimals,
            block_size=self.block_size,
            max_work=self.max_work,
            names=names,
            rng=self.random_state,
        )
