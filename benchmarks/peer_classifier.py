"""Fit logistic regressions of diffprivlib. Run as a script, in that library's environment; knows nothing of privspan.

``python peer_classifier.py TABLE.npz EPSILON NORM…`` prints one line of JSON: the accuracy on new rows for each norm
of the data and each strength of the penalty. The table holds ``X``, ``y``, ``new_X`` and ``new_y``.
"""

import importlib
import json
import sys
import warnings

import numpy as np

PENALTIES = (1.0, 0.01)  # the parameter C


def run(table: str, epsilon: str, *norms: str) -> None:
    """Print how often each setting is right."""
    model = importlib.import_module("diffprivlib.models").LogisticRegression
    with np.load(table) as held, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        X, y, new_X, new_y = (held[name] for name in ("X", "y", "new_X", "new_y"))
        right = {
            f"norm {float(norm):.3g}, C = {penalty:g}": float(
                model(epsilon=float(epsilon), data_norm=float(norm), C=penalty, max_iter=300)
                .fit(X, y)
                .score(new_X, new_y)
            )
            for norm in norms
            for penalty in PENALTIES
        }
    print(json.dumps(right))


if __name__ == "__main__":
    run(*sys.argv[1:])
