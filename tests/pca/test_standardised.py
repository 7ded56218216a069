"""Private PCA of standardised columns: refusals, and a promise that is kept."""

import numpy as np
import pytest
from promises import promised_and_paid
from runs import NoDraws
from scipy import sparse

from privspan.pca import PCASettings, check_pca, learn_pca
from privspan.privacy.call import Call


@pytest.mark.parametrize(
    ("X", "options"),
    [
        (sparse.csr_array((900, 6)), {"scale": "deviations"}),
        (np.zeros((900, 1_100)), {"scale": "deviations"}),
        (np.zeros((900, 1_100)), {"scale": True, "k": "auto"}),
        (np.zeros((900, 6)), {"scale": "both"}),
        (np.zeros((900, 6)), {"scale": "deviations", "robust": True}),
        (np.zeros((900, 6)), {"scale": True, "center": False}),
        (np.zeros((900, 6)), {"scale": True, "method": "adaptive"}),
        (np.zeros((900, 6)), {"scale": True, "k": 7}),
    ],
)
def test_what_cannot_be_standardised_is_refused_before_anything_is_released(X, options):
    for act in (check_pca, learn_pca):
        with pytest.raises(ValueError, match="must be"), Call("private_pca", 1.0, 1e-6, NoDraws()) as call:
            act(PCASettings(**({"k": 2} | options)), call, X)


@pytest.mark.parametrize("scale", ["ranks", "deviations"])
def test_the_promise_is_what_is_paid(scale):
    X = np.random.default_rng(0).standard_normal((900, 6))
    promised, paid = promised_and_paid(X, scale=scale)
    assert promised[1] == 0.0
    assert paid[0] in (None, promised[0])
