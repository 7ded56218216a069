"""scikit-learn estimators around the algorithms; the only package that imports scikit-learn.

What is private is what ``fit`` stores. ``transform`` of the private rows themselves is **not** private: it shows one
row per person.
"""

from privspan.estimators.approximate import ApproximateSubspace
from privspan.estimators.boosted import BoostedSubspace
from privspan.estimators.exact import ExactSubspace
from privspan.estimators.pca import PrivatePCA
from privspan.privacy import AbstentionWarning, NotPrivateWarning

__all__ = [
    "AbstentionWarning",
    "ApproximateSubspace",
    "BoostedSubspace",
    "ExactSubspace",
    "NotPrivateWarning",
    "PrivatePCA",
]
