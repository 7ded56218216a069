"""Private PCA by named and robust methods: the promise is kept, and blocks are refused before anything is spent."""

import numpy as np
import pytest
from promises import promised_and_paid
from runs import NoDraws

from privspan.pca import PCASettings, check_pca, learn_pca
from privspan.privacy.call import Call


@pytest.mark.parametrize(
    "options", [{"robust": True}, {"center": False}, {"method": "adaptive"}, {"method": "analyze-gauss", "k": "auto"}]
)
def test_the_promise_is_what_is_paid(options):
    X = np.random.default_rng(0).standard_normal((4_000, 6)) * [9.0, 7.0, 0.1, 0.1, 0.1, 0.1] + 5.0
    promised, paid = promised_and_paid(X, **options)
    vote = options.get("k") == "auto"  # which is beside mu in the cost, and composed with it in the promise
    assert promised[1] == paid[1]
    assert (promised[0] > paid[0]) if vote else (promised[0] == pytest.approx(paid[0], rel=1e-12))


@pytest.mark.parametrize(("rows", "words"), [(30, "Centring makes one row of every two"), (4_000, "")])
def test_blocks_that_are_too_few_are_refused_before_anything_is_released(rows, words):
    settings, X = PCASettings(2, method="approximate"), np.zeros((rows, 6))
    if words:
        for act in (check_pca, learn_pca):
            with (
                pytest.raises(ValueError, match="must") as refused,
                Call("private_pca", 1.0, 1e-6, NoDraws()) as call,
            ):
                act(settings, call, X)
            assert any(words in note for note in refused.value.__notes__)
    else:
        with Call("private_pca", 1.0, 1e-6, NoDraws()) as call:
            assert check_pca(settings, call, X) is None  # its steps are not Gaussian throughout
