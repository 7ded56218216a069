"""scikit-learn estimators around the algorithms; the only package that imports scikit-learn.

What is private is what ``fit`` stores. ``transform`` of the private rows themselves is **not** private: it shows one
row per person.
"""

from privspan.estimators._base import PrivateEstimator  # noqa: F401 - it says first that scikit-learn is missing
from privspan.estimators.logistic_regression import PrivateLogisticRegression, budgeted_pipeline
from privspan.estimators.pca import PrivatePCA
from privspan.estimators.scaler import PrivateStandardScaler
from privspan.estimators.subspaces import PrivateSubspace
from privspan.privacy import AbstentionWarning, NotPrivateWarning

__all__ = [
    "AbstentionWarning",
    "NotPrivateWarning",
    "PrivateLogisticRegression",
    "PrivatePCA",
    "PrivateStandardScaler",
    "PrivateSubspace",
    "budgeted_pipeline",
]
