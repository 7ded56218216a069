"""Prior systems, one function each, with the signature and the `Release` of our own algorithms."""

from privspan.baselines.additive_wishart import additive_wishart
from privspan.baselines.analyze_gauss_gap import analyze_gauss_gap
from privspan.baselines.eigen_sampling import eigen_sampling
from privspan.baselines.exponential_pca import exponential_pca
from privspan.baselines.friendly_core import friendly_core
from privspan.baselines.inverse_wishart import inverse_wishart
from privspan.baselines.johnson_lindenstrauss import johnson_lindenstrauss
from privspan.baselines.k_dp_pca import k_dp_pca
from privspan.baselines.mod_sulq import mod_sulq
from privspan.baselines.noisy_power import noisy_power
from privspan.baselines.noisy_range_finder import noisy_range_finder
from privspan.baselines.smooth_sensitivity import smooth_sensitivity
from privspan.sums.analyze_gauss import analyze_gauss

__all__ = [
    "additive_wishart",
    "analyze_gauss",
    "analyze_gauss_gap",
    "eigen_sampling",
    "exponential_pca",
    "friendly_core",
    "inverse_wishart",
    "johnson_lindenstrauss",
    "k_dp_pca",
    "mod_sulq",
    "noisy_power",
    "noisy_range_finder",
    "smooth_sensitivity",
]
