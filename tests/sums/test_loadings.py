"""Standard errors of loadings: what is told is what noise does."""

import numpy as np
import pytest

import privspan as ps
from privspan.sums.loadings import errors_after_turning, loading_errors, turns

D, K = 12, 3
SPECTRUM = np.array([10.0, 9.0, 4.0, *np.linspace(1.0, 0.5, D - K)])


def noisy_components(noise: float, draws: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Leading eigenvectors of a matrix with noise, signs as without, the true ones, and the values: (draws, d, k)."""
    rng = np.random.default_rng(seed)
    axes = np.linalg.qr(rng.standard_normal((D, D)))[0]
    matrix, found, values = axes * SPECTRUM @ axes.T, [], []
    for _ in range(draws):
        normal = rng.standard_normal((D, D))
        value, vectors = np.linalg.eigh(matrix + noise * (normal + normal.T) / np.sqrt(2.0))
        vectors = vectors[:, ::-1][:, :K]
        found.append(vectors * np.sign((vectors * axes[:, :K]).sum(axis=0)))
        values.append(value[::-1][:K])
    return np.array(found), axes[:, :K], np.array(values)


@pytest.mark.parametrize("noise", [0.01, 0.1, 0.2])
def test_errors_are_those_of_a_perturbed_matrix(noise):
    found, truth, values = noisy_components(noise, 600)
    actual = np.sqrt(((found - truth) ** 2).mean(axis=0)).T  # (k, d)
    told = []
    for basis, value in zip(found, values, strict=True):
        off = noise**2 / (value - SPECTRUM[K:].mean()) ** 2
        told.append(loading_errors(basis, turns(value, value, noise), off))
    ratio = actual / np.median(told, axis=0)  # a gap that seems to be none makes a few of them large
    assert 0.75 < ratio.min() < ratio.max() < 1.5
    assert np.sqrt((ratio**2).mean()) == pytest.approx(1.0, abs=0.15)


def test_equal_variances_turn_by_any_angle_and_wide_gaps_by_the_ratio():
    assert turns(np.array([1.0]), np.array([1.0]), 0.1)[0, 0] == pytest.approx(0.5)
    assert turns(np.array([2.0]), np.array([1.0]), 1e-3)[0, 0] == pytest.approx(1e-6, rel=1e-4)


def test_what_is_turned_away_is_missing_along_the_component():
    basis = np.eye(50, 1)
    errors = loading_errors(basis, np.zeros((1, 1)), np.array([0.01]))
    assert errors[0, 1] == pytest.approx(0.1)
    assert errors[0, 0] == pytest.approx(1.0 - np.sqrt(1.0 - 0.49))
    beside = (np.eye(50)[1], np.array([0.25]))
    assert loading_errors(basis, np.zeros((1, 1)), np.array([0.01]), beside)[0, 1] == pytest.approx(0.5)
    whole = errors_after_turning(np.eye(3), np.array([9.0, 4.0, 1.0]), 0.01, 0.0)
    assert whole.shape == (3, 3)
    assert whole[0, 1] == pytest.approx(0.01 / np.sqrt(2.0) / 5.0, rel=1e-3)


@pytest.mark.parametrize(
    ("options", "n"),
    [({}, 5_000), ({}, 400), ({"method": "adaptive"}, 8_000), ({"method": "analyze-gauss"}, 8_000)],
)
def test_a_private_pca_tells_the_errors_of_its_loadings(options, n):
    rng = np.random.default_rng(5)
    turn = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    X = rng.standard_normal((n, 8)) * np.array([5.0, 3.0, *np.ones(6)]) @ turn + 3.0
    fits = [ps.private_pca(X, 2, epsilon=1.0, delta=1e-6, rng=seed, **options) for seed in range(24)]
    fits = [fit for fit in fits if fit.extras.get("stands_out", 2) == 2]
    assert len(fits) > 12
    found = np.array([fit.subspace.basis.T for fit in fits])  # (fits, k, d)
    found *= np.sign((found * found[0]).sum(axis=2))[:, :, None]
    told = np.array([fit.extras["components_std"] for fit in fits])
    spread = np.sqrt(((found - found.mean(axis=0)) ** 2).sum(axis=0).mean(axis=1) / (len(fits) - 1))  # (k,)
    ratio = spread / np.sqrt((told**2).mean(axis=(0, 2)))
    assert ((ratio > 0.6) & (ratio < 1.5)).all(), ratio


def test_components_that_are_noise_have_no_finite_error():
    X = np.random.default_rng(0).standard_normal((3_000, 12)) * np.array([6.0, *np.ones(11)])
    with pytest.warns(ps.NotPrivateWarning):
        model = ps.PrivatePCA(3, epsilon=1.0, delta=1e-6, random_state=1).fit(X)
    assert model.stands_out_ == 1
    assert np.isfinite(model.components_std_[0]).all()
    assert np.isinf(model.components_std_[1:]).all()
    assert np.isfinite(np.asarray(model.release_.extras["components_std"])).all()  # as files hold finite numbers only
