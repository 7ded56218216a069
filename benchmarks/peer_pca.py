"""Fit one private PCA of another library. Run as a script, in that library's environment; knows nothing of privspan.

``python peer_pca.py PEER RECORDS.npy K EPSILON`` prints one line of JSON: components, seconds, version. The records
are centred and of length 1, which both peers are told.
"""

import importlib
import importlib.metadata
import json
import sys
import time
import warnings
from typing import Any

import numpy as np


def diffprivlib(X: Any, k: int, epsilon: float) -> tuple[Any, float]:
    """Return components and seconds of diffprivlib's PCA."""
    model = importlib.import_module("diffprivlib.models").PCA(k, epsilon=epsilon, data_norm=1.0, centered=True)
    start = time.perf_counter()
    model.fit(X)
    return model.components_, time.perf_counter() - start


def opendp(X: Any, k: int, epsilon: float) -> tuple[Any, float]:
    """Return components and seconds of OpenDP's PCA; distance 2 is one record replaced."""
    dp = importlib.import_module("opendp.prelude")
    dp.enable_features("contrib", "idealized-numerics", "honest-but-curious")
    n, d = X.shape
    domain = dp.numpy.array2_domain(norm=1.0, p=2, origin=np.zeros(d), size=n, num_columns=d, T=float)
    start = time.perf_counter()
    fit = dp.sklearn.decomposition.make_private_pca(
        domain, dp.symmetric_distance(), unit_epsilon=epsilon, num_components=k
    )
    components = fit(X).Vt[:k]
    return components, time.perf_counter() - start


def run(peer: str, records: str, k: str, epsilon: str) -> None:
    """Print what the peer found."""
    X = np.load(records)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        components, seconds = {"diffprivlib": diffprivlib, "opendp": opendp}[peer](X, int(k), float(epsilon))
    version = importlib.metadata.version(peer)
    print(json.dumps({"components": np.asarray(components).tolist(), "seconds": seconds, "version": version}))


if __name__ == "__main__":
    run(*sys.argv[1:])
