"""Private PCA: one budget for units, components, variances and a mean."""

from privspan.pca.function import BY_PCA, EVERYDAY, check_pca, learn_pca, private_pca
from privspan.pca.settings import PCA_METHODS, PCASettings, takes_sparse

__all__ = [
    "BY_PCA",
    "EVERYDAY",
    "PCA_METHODS",
    "PCASettings",
    "check_pca",
    "learn_pca",
    "private_pca",
    "takes_sparse",
]
