"""scikit-learn estimators around the algorithms; the only package that imports scikit-learn.

What is private is what ``fit`` stores. ``transform`` of the private rows themselves is **not** private: it shows one
row per person.
"""

from privspan.estimators._base import AbstentionWarning, NotPrivateWarning
from privspan.estimators.exact import ExactSubspace

__all__ = ["AbstentionWarning", "ExactSubspace", "NotPrivateWarning"]
