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
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from privspan._lib import checks

Array = NDArray[np.float64]


class PCAModel:
    """Methods of a fitted `privspan.PrivatePCA` that need its attributes alone."""

    n_features_in_: int
    n_components_: int
    components_: Array
    explained_variance_: Array
    explained_variance_ratio_: Array
    noise_variance_: float
    mean_: Array
    scale_: Array
    whiten: bool
    release_: Any

    def get_covariance(self) -> Array:
        """Covariance of the columns by the released variances, in the units of the table.

        Variance that no component has is spread evenly over the other directions, as in scikit-learn.
        Post-processing.

        Returns
        -------
        (n_features, n_features) array
        """
        along, off = self._measured_variances()
        more = self.components_ * np.sqrt(along - off)[:, None]
        inside = off * np.eye(self.n_features_in_) + more.T @ more
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
        return np.asarray(inside / np.outer(self.scale_, self.scale_))

    def sample(self, n_samples: int = 1, rng: int | np.random.Generator | None = None) -> Array:
        """Draw synthetic rows: normal, with the released mean, variances and rest. Post-processing.

        The rows are nobody's. They have the linear relations that were released, and nothing else of the table:
        no skewness, no clusters, no whole numbers.

        Parameters
        ----------
        n_samples : int, default=1
        rng : None, int or Generator
            A seed does no harm here: no noise that protects anybody is drawn.

        Returns
        -------
        (n_samples, n_features) array
            In the units of the table.
        """
        checks.integer_at_least(1, n_samples=n_samples)
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
            The latter where columns have units (`scale_`), which a PCA of scikit-learn does not know.
        """
        check_is_fitted(self)
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
            "singular_values_": np.sqrt((n - 1) * self.explained_variance_),
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
        return Pipeline([("scale", first), ("pca", pca)]) if with_units else pca

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
            raise ValueError("The table was too small to measure variances: there is no covariance to tell.")
        return np.maximum(self.explained_variance_, self.noise_variance_), np.array(self.noise_variance_)
