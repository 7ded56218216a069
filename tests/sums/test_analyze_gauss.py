"""The reference: calibration, both storage forms, odd inputs."""

import numpy as np
import pytest
from runs import seeded
from scipy import sparse

from privspan.audit.replay import spent_by
from privspan.datasets import gaussian_subspace
from privspan.privacy import mu_from_budget
from privspan.rows.source import as_source
from privspan.sums.analyze_gauss import GaussTuning, analyze_gauss, analyze_gauss_within
from privspan.sums.grid import MOMENTS, most_share


def test_noise_is_the_best_calibration():
    X, _ = gaussian_subspace(500, 10, 2, gamma_w=0.1, rng=0)
    release = analyze_gauss(X, 2, epsilon=1.0, delta=1e-6, rng=0)
    assert release.parameters["noise"] == pytest.approx(1.0 / mu_from_budget(1.0, 1e-6), rel=1e-3)
    assert release.parameters["noise"] > 1.0 / mu_from_budget(1.0, 1e-6)
    assert not release.private
    assert release.method == "analyze-gauss"


def test_replacing_a_record_costs_at_most_the_budget():
    X = np.eye(6)[[0, 1, 2, 3]]
    other = X.copy()
    other[0] = np.eye(6)[5]
    mu = mu_from_budget(1.0, 1e-6)
    spent = spent_by(lambda rows, rng: analyze_gauss(rows, 2, epsilon=1.0, delta=1e-6, rng=rng), X, other)
    assert 0.99 * mu**2 < spent <= mu**2


def test_error_is_that_of_theory():
    n, d, k = 10_000, 60, 3
    errors = []
    for seed in range(8):
        X, truth = gaussian_subspace(n, d, k, gamma=0.0, rng=seed)
        errors.append(analyze_gauss(X, k, epsilon=1.0, delta=1e-6, rng=seed).subspace.distance(truth))
    expected = (np.sqrt(d) + np.sqrt(k)) * k / (mu_from_budget(1.0, 1e-6) * n)
    assert np.median(errors) == pytest.approx(expected, rel=0.2)


def test_looking_and_forming_agree():
    n, d, k = 3_000, 300, 3
    formed, looked = [], []
    for seed in range(6):
        X, truth = gaussian_subspace(n, d, k, gamma_w=0.5, rng=seed)
        formed.append(analyze_gauss(X, k, epsilon=1.0, delta=1e-6, rng=seed).subspace.distance(truth))
        run = seeded(seed, empty=most_share(0.0, MOMENTS))
        release = analyze_gauss_within(run, as_source(X), k, GaussTuning(widest=10))
        assert not release.parameters["whole_matrix"]
        looked.append(release.subspace.distance(truth))
    assert np.median(looked) == pytest.approx(np.median(formed), rel=0.15)


def test_sparse_and_dense_agree():
    X = np.random.default_rng(0).standard_normal((200, 12)) * (np.random.default_rng(1).random((200, 12)) < 0.3)
    dense = analyze_gauss(X, 2, epsilon=5.0, delta=1e-6, rng=0).subspace
    assert analyze_gauss(sparse.csr_array(X), 2, epsilon=5.0, delta=1e-6, rng=0).subspace.distance(dense) < 1e-6


@pytest.mark.parametrize("X", [np.zeros((5, 4)), np.full((5, 4), np.nan), np.full((5, 4), 1e308), np.ones((4, 4))])
@pytest.mark.parametrize("k", [1, 4])
def test_every_value_gives_a_release(X, k):
    assert analyze_gauss(X, k, epsilon=1.0, delta=1e-6).subspace.dimension == k


def test_refusals():
    with pytest.raises(ValueError, match="`k`"):
        analyze_gauss(np.ones((5, 4)), 5, epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="`delta`"):
        analyze_gauss(np.ones((5, 4)), 1, epsilon=1.0, delta=0.0)
