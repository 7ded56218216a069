"""As many components as hold a wanted share of the variance, chosen from a release alone: post-processing."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from privspan.privacy import Release
from privspan.subspace import Subspace

_ALONG = (
    *("explained_variance", "explained_variance_std", "explained_variance_ratio", "explained_variance_ratio_std"),
    "components_std",
)
_OF_ALL = (  # speak of all components that were looked for
    *("captured_variance", "captured_variance_std", "captured_variance_at_least", "longest_counted"),
)


def cut_to_share(release: Release, share: float) -> tuple[Release, bool]:
    """Keep the first components that together have this share of the total variance; also tell whether they do.

    Parameters
    ----------
    release : Release
        Of a private PCA, components by falling variance.
    share : float
        Between 0 and 1.

    Returns
    -------
    Release
        With all components where even these fall short, or where the table is too small to tell.
    bool
    """
    ratios: Any = release.extras["explained_variance_ratio"]
    reached = np.cumsum(ratios) >= share  # False where a ratio is NaN
    enough, considered = bool(reached.any()), len(ratios)
    k = int(np.argmax(reached)) + 1 if enough else considered
    left_out = _OF_ALL if k < considered else ()
    extras: dict[str, Any] = {name: value for name, value in release.extras.items() if name not in left_out}
    extras |= {name: extras[name][:k] for name in _ALONG if name in extras}
    told: dict[str, Any] = {**release.parameters, "k": k, "share": float(share), "considered": considered}
    for values in (extras, told):
        if "stands_out" in values:
            values["stands_out"] = min(values["stands_out"], k)
    whole = release.subspace
    kept = None if whole is None else Subspace(whole.basis[:, :k], offset=whole.offset, names=whole.names)
    return replace(release, subspace=kept, parameters=told, extras={**extras, "n_components": k}), enough
