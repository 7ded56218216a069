"""What a fitted private PCA is good for elsewhere: a covariance, synthetic rows, a PCA of scikit-learn.

Everything here is a function of what ``fit`` has stored, and so costs nothing: post-processing.  The model behind it
is that of probabilistic PCA: the released variances along the components, and what is left of the total variance
spread evenly over all other directions.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from sklearn.utils.validation import check_is_fitted

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.rows.gaps import filled

Array = NDArray[np.float64]


_MOST_NAMED = 10  # columns in a message


class PCAModel:
    """Methods of a fitted `privspan.PrivatePCA` that need its attributes alone."""

    n_features_in_: int
    n_components_: int
    components_: Array
    explained_variance_: Array
    explained_variance_ratio_: Array
    singular_values_: Array
    noise_variance_: float
    mean_: Array
    scale_: Array
    low_: Array
    high_: Array
    estimates_: str = "covariances"
    whiten: bool
    release_: Any

    def get_covariance(self) -> Array:
        """Covariance of the columns by the released variances, in the units of the table.

        Variance that no component has is spread evenly over the other directions, as in scikit-learn.
        With ``scale=True`` it is the correlation matrix, of what `estimates_` says. Post-processing.

        Returns
        -------
        (n_features, n_features) array
        """
        along, off = self._measured_variances()
        more = self.components_ * np.sqrt(along - off)[:, None]
        inside = off * np.eye(self.n_features_in_) + more.T @ more
        if self._standardised:
            units = 1.0 / np.sqrt(np.diagonal(inside))  # the model makes some columns vary a little more than others
            return np.asarray(inside * np.outer(units, units))
        return np.asarray(inside * np.outer(self.scale_, self.scale_))

    def get_precision(self) -> Array:
        """Inverse of `get_covariance`; directions without any variance are left out of it. Post-processing.

        Returns
        -------
        (n_features, n_features) array
        """
        along, off = self._measured_variances()
        inverse, rest = (np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0) for size in (along, off))
        inside = rest * np.eye(self.n_features_in_) + (self.components_.T * (inverse - rest)) @ self.components_
        if self._standardised:
            return np.asarray(np.linalg.pinv(self.get_covariance(), hermitian=True))
        return np.asarray(inside / np.outer(self.scale_, self.scale_))

    def score_samples(self, X: Any) -> Array:
        """Log-likelihood of each row by the released model. Not private: it is computed from the rows handed in.

        Parameters
        ----------
        X : (n_samples, n_features) array-like
            In the units of the table; a missing cell counts as the mean.

        Returns
        -------
        (n_samples,) array
            NaN where the model has no likelihood: variances were not measured, or a direction has none at all.
        """
        check_is_fitted(self)
        self._check_units()
        rows: Any = self._validated(self._taken(X), reset=False, dtype=np.float64)  # type: ignore[attr-defined]
        measured = np.isfinite([*self.explained_variance_, self.noise_variance_]).all()
        covariance = self.get_covariance() if measured else np.zeros((self.n_features_in_, self.n_features_in_))
        sign, log_determinant = np.linalg.slogdet(covariance)
        if sign <= 0.0:
            return np.full(rows.shape[0], np.nan)
        units = self.scale_ if self._standardised else np.ones(self.n_features_in_)
        dense = rows.toarray() if hasattr(rows, "toarray") else rows
        rows = (filled(dense, self.mean_) - self.mean_) / units
        squares = np.einsum("ij,ij->i", rows, np.linalg.solve(covariance, rows.T).T)
        constant = self.n_features_in_ * np.log(2.0 * np.pi) + log_determinant + 2.0 * np.log(units).sum()
        return np.asarray(-0.5 * (squares + constant))

    def score(self, X: Any, y: object = None) -> float:
        """Mean log-likelihood of rows by the released model, as in scikit-learn. Not private, like `score_samples`.

        Parameters
        ----------
        X : (n_samples, n_features) array-like
        y : ignored

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def sample(self, n_samples: int = 1, rng: int | np.random.Generator | None = None) -> Array:
        """Draw synthetic rows: normal, with the released mean, variances and rest. Post-processing.

        The rows are nobody's. They have the linear relations that were released, and nothing else of the table:
        no skewness, no clusters, no whole numbers.

        Parameters
        ----------
        n_samples : int, default=1
        rng : None, int or Generator
            A seed is safe here: this noise protects nobody's data.

        Returns
        -------
        (n_samples, n_features) array
            In the units of the table.
        """
        checks.integer_at_least(1, n_samples=n_samples)
        self._check_units()
        along, off = self._measured_variances()
        normal = np.random.default_rng(rng).standard_normal((int(n_samples), self.n_features_in_))
        scores = normal @ self.components_.T  # (n, k), independent of what is left
        rest = np.sqrt(off) * (normal - scores @ self.components_)
        return np.asarray(self.mean_ + self.scale_ * (rest + (scores * np.sqrt(along)) @ self.components_))

    def to_sklearn(self) -> BaseEstimator:
        """Return what was learnt as a fitted object of scikit-learn alone, for programs that know no privspan.

        Its ``transform`` and ``inverse_transform`` agree with those here, up to rounding, and so does its
        ``get_covariance`` where columns have no units. Post-processing.

        Returns
        -------
        PCA, or Pipeline of StandardScaler and PCA
            The latter where columns have units (`scale_`), which a PCA of scikit-learn does not know; before it, with
            ``scale=True``, a step that cuts cells off at `low_` and `high_`.
        """
        check_is_fitted(self)
        self._check_units()
        with_units = bool((self.scale_ != 1.0).any())
        n, centre = int(self.release_.parameters["n"]), self.mean_.copy()
        pca = PCA(self.n_components_, whiten=bool(self.whiten))
        spreads = self._spreads()
        variances = np.broadcast_to(spreads, (self.n_components_,)) ** 2 if self.whiten else self.explained_variance_
        learnt = {
            "components_": self.components_.copy(),
            "mean_": np.zeros_like(centre) if with_units else centre,
            "explained_variance_": np.array(variances),
            "explained_variance_ratio_": np.array(self.explained_variance_ratio_),
            "singular_values_": self.singular_values_.copy(),
            "noise_variance_": self.noise_variance_,
            "n_components_": self.n_components_,
            "n_samples_": n,
            "n_features_in_": self.n_features_in_,
        }
        vars(pca).update(learnt)
        first: BaseEstimator = pca
        if with_units:
            first = StandardScaler()
            vars(first).update(mean_=centre, scale_=self.scale_.copy(), var_=self.scale_**2)
            vars(first).update(n_features_in_=self.n_features_in_, n_samples_seen_=n)
        if hasattr(self, "feature_names_in_"):
            vars(first)["feature_names_in_"] = self.feature_names_in_.copy()
        steps = [("scale", first), ("pca", pca)]
        if np.isfinite(self.high_).any():
            cut = FunctionTransformer(np.clip, kw_args={"a_min": self.low_.copy(), "a_max": self.high_.copy()})
            steps = [("cut", cut.fit(np.zeros((1, self.n_features_in_)))), *steps]
        return Pipeline(steps) if with_units else pca

    @property
    def _standardised(self) -> bool:
        return self.estimates_ != "covariances"

    def _check_units(self) -> None:
        """Refuse where centre or unit of a column is not known: only standardised columns can lack them."""
        lacking = ~(np.isfinite(self.mean_) & np.isfinite(self.scale_))
        if not lacking.any():
            return
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        shown = ", ".join(str(name) for name in names[lacking][:_MOST_NAMED])
        more = f" and {int(lacking.sum()) - _MOST_NAMED} more" if lacking.sum() > _MOST_NAMED else ""
        raise ParameterError(
            "Scores need a centre and a scale for every column; none are known for {shown}{more}: too few rows at "
            "this epsilon to measure them. Fit again with public {bounds} for these columns, with more rows, or "
            "with a larger epsilon. Components, variances and plots do not need them.",
            shown=shown,
            more=more,
        )

    def _spreads(self) -> Any:
        """Return what scores are divided by: if they are to be whitened, the standard deviations that are known."""
        if not self.whiten:
            return 1.0
        measured = np.isfinite(self.explained_variance_) & (self.explained_variance_ > 0.0)
        return np.sqrt(np.where(measured, self.explained_variance_, 1.0))

    def _measured_variances(self) -> tuple[Array, Array]:
        """Return the variances along the components, at least that of any other direction, and the latter."""
        check_is_fitted(self)
        if not np.isfinite([*self.explained_variance_, self.noise_variance_]).all():
            raise ParameterError("The table was too small to measure variances, so there is no covariance.")
        return np.maximum(self.explained_variance_, self.noise_variance_), np.array(self.noise_variance_)
