"""Rotations of releases: numbers are right, and their errors are those that noise makes."""

import json
import warnings

import numpy as np
import pytest

import privspan as ps

OWN = np.repeat([0, 1, 2], 4)


def factors(n: int, seed: int = 0) -> np.ndarray:
    """Return three factors with four columns each, and a mean."""
    rng = np.random.default_rng(seed)
    strengths = np.tile([0.9, 0.8, 0.7, 0.6], 3) * np.repeat([1.0, 0.95, 0.9], 4)
    hidden = rng.standard_normal((n, 3))[:, OWN]
    return hidden * strengths + rng.standard_normal((n, 12)) * np.sqrt(1.0 - strengths**2) + 2.0


@pytest.fixture(scope="module")
def fitted() -> list[ps.Release]:
    X = factors(20_000)
    return [ps.private_pca(X, 3, epsilon=2.0, delta=1e-6, rng=seed) for seed in range(12)]


@pytest.mark.parametrize("criterion", ["varimax", "quartimax", "promax", "oblimin"])
def test_columns_load_on_their_own_factor_and_errors_are_true(fitted, criterion):
    made = [release.rotate(criterion) for release in fitted]
    places = [np.array([np.abs(one.loadings[f == OWN]).sum(axis=0).argmax() for f in range(3)]) for one in made]
    own = [(np.abs(one.loadings).argmax(axis=1) == at[OWN]).mean() for one, at in zip(made, places, strict=True)]
    assert np.mean(own) >= 0.95
    found = np.array([one.loadings[:, at] for one, at in zip(made, places, strict=True)])
    errors = np.array([one.loadings_std[:, at] for one, at in zip(made, places, strict=True)])
    off = (found - found.mean(axis=0)) * np.sqrt(12 / 11)
    assert 1 / 1.5 < np.sqrt((off**2).mean() / (errors**2).mean()) < 1.5
    assert (np.abs(off) < 2.0 * errors).mean() > 0.85
    shared = np.array([one.communalities for one in made])
    told = np.array([one.communalities_std for one in made])
    off = (shared - shared.mean(axis=0)) * np.sqrt(12 / 11)
    assert 1 / 1.5 < np.sqrt((off**2).mean() / (told**2).mean()) < 1.5


def test_the_errors_of_factor_correlations_are_true(fitted):
    made = [release.rotate("oblimin") for release in fitted]
    at = np.triu_indices(3, 1)
    sizes = np.array([np.sort(one.correlations[at]) for one in made])
    told = np.array([one.correlations_std[at] for one in made])
    spread = np.sqrt(((sizes - sizes.mean(axis=0)) ** 2).mean() * 12 / 11)
    assert 0.4 < spread / np.sqrt((told**2).mean()) < 1.5  # sorted, so that they spread less


def test_noise_is_left_out_and_nothing_is_refused_in_plain_words():
    rng = np.random.default_rng(0)
    X = factors(3_000)[:, :4] @ np.ones((4, 1)) @ np.ones((1, 6)) + 0.3 * rng.standard_normal((3_000, 6))
    rotated = ps.private_pca(X, 3, epsilon=0.5, delta=1e-6, rng=0).rotate()
    assert rotated.loadings.shape == (6, 1)
    assert (rotated.left_out, "2 components" in rotated.about) == (2, True)
    nothing = ps.private_pca(rng.standard_normal((5_000, 20)), 2, epsilon=0.3, delta=1e-6, rng=0)
    with pytest.raises(ValueError, match="no component stands out"):
        nothing.rotate()
    with pytest.raises(ValueError, match="`criterion` must be one of varimax"):
        ps.private_pca(X, 1, epsilon=1.0, delta=1e-6, rng=0).rotate("equamax")


def test_a_subspace_without_variances_is_rotated_as_it_is():
    X = factors(8_000) * np.r_[np.full(4, 30.0), np.full(8, 1.0)]
    release = ps.private_subspace(X, 2, epsilon=1.0, delta=1e-6, method="analyze-gauss", rng=0)
    rotated = release.rotate("varimax")
    assert (rotated.variances_are, "orthonormal" in rotated.about) == ("none", True)
    assert np.abs(rotated.loadings.T @ rotated.loadings - np.eye(2)).max() < 1e-12
    assert 0.0 < rotated.loadings_std.max() < 0.2


def test_standardised_columns_have_correlations_with_their_factors():
    X = factors(20_000) * np.geomspace(1e-3, 1e3, 12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ps.PrivatePCA(3, epsilon=2.0, delta=1e-6, scale=True, random_state=1).fit(X)
    rotated = model.rotate("varimax")
    assert np.abs(rotated.loadings).max() < 1.1
    assert len(set(zip(OWN, np.abs(rotated.loadings).argmax(axis=1), strict=True))) == 3
    assert rotated.communalities == pytest.approx((rotated.loadings**2).sum(axis=1), abs=0.02)


def test_a_rotation_is_shown(fitted):
    rotated = fitted[0].rotate("promax", columns=[f"question {i}" for i in range(12)])
    card = rotated._repr_html_()
    assert "question 3" in card
    assert "communality" in card
    assert "Correlations of factors" in card
    assert "Not private" in card
    told = json.loads(json.dumps(rotated.to_dict()))
    assert np.array(told["loadings"]).shape == (12, 3)
    assert told["criterion"] == "promax"
    assert repr(rotated) == "Rotated(promax, 3 factors of 12 columns, private=False)"
    same = fitted[0].rotate("promax")
    assert np.array_equal(same.loadings_std, rotated.loadings_std)  # the simulation is repeatable
