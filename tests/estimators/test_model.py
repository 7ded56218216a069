"""What people do with a fitted private PCA: scikit-learn, covariances, synthetic rows, a share of the variance."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline

import privspan as ps
from privspan.estimators import _base

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SPREADS = np.array([8.0, 5.0, 2.0, 0.5, 0.5, 0.5])
UNITS = np.array([1.0, 100.0, 1.0, 0.01, 1.0, 1.0])


@pytest.fixture(scope="module")
def table():
    return (np.random.default_rng(0).standard_normal((20_000, 6)) * SPREADS + 3.0) * UNITS


def fitted(X, k=2, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.NotPrivateWarning)
        return ps.PrivatePCA(k, **BUDGET | options, random_state=0).fit(X)


PLAIN, SCALED = {}, {"units": UNITS}
MODELS = [PLAIN, SCALED, {"scale": True}, {"whiten": True}, {"whiten": True, **SCALED}, {"center": False}]


# --- scikit-learn ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", MODELS)
def test_scikit_learn_does_the_same_with_it(table, options):
    model = fitted(table, **options)
    plain = model.to_sklearn()
    assert type(plain) is (Pipeline if {"scale", "units"} & {*options} else PCA)
    scores = model.transform(table)
    np.testing.assert_allclose(plain.transform(table), scores, rtol=1e-9, atol=1e-9 * np.abs(scores).max())
    np.testing.assert_allclose(plain.inverse_transform(scores), model.inverse_transform(scores), rtol=1e-9)


def test_its_covariance_is_ours(table):
    model = fitted(table / UNITS)  # as it is, one column drowns what the others leave, and there is no inverse
    plain = model.to_sklearn()
    np.testing.assert_allclose(plain.get_covariance(), model.get_covariance(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(plain.get_precision(), model.get_precision(), rtol=1e-6, atol=1e-9)
    assert plain.n_samples_ == len(table)
    assert plain.noise_variance_ == model.noise_variance_


def test_it_knows_the_names_of_columns(table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table, columns=list("abcdef"))
    for options in (PLAIN, SCALED):
        plain = fitted(frame, **options).to_sklearn()
        assert list(plain.feature_names_in_) == list("abcdef")
        with pytest.raises(ValueError, match="feature names"):
            plain.transform(frame[list("fedcba")])


@pytest.mark.parametrize("units", [None, UNITS])
def test_whitened_scores_have_unit_variance_and_come_back(table, units):
    X = table / UNITS if units is None else table
    model, plain = (fitted(X, whiten=whiten, units=units) for whiten in (True, False))
    scores = model.transform(X)
    assert scores.std(axis=0) == pytest.approx(1.0, abs=0.1)
    np.testing.assert_allclose(model.inverse_transform(scores), plain.inverse_transform(plain.transform(X)))


def test_what_cannot_be_measured_is_not_whitened():
    X = np.random.default_rng(0).standard_normal((40, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.UselessPlanWarning)
        with pytest.warns(ps.NoSpreadWarning, match="not whitened"):
            model = ps.PrivatePCA(2, **BUDGET, whiten=True).fit(X)
    scores = model.transform(X)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(model.to_sklearn().transform(X), scores, atol=1e-12)
    for ask in (model.get_covariance, model.get_precision, model.sample):
        with pytest.raises(ValueError, match="too small"):
            ask()


def test_whiten_is_yes_or_no(table):
    with pytest.raises(TypeError, match="`whiten` must be"):
        fitted(table, whiten="yes")


def test_a_pipeline_with_a_classifier_is_validated_and_told_of_once(table):
    """One warning for all folds and steps, whatever scikit-learn does with the filters in between."""
    _base._tell_that_rows_are_not_private.cache_clear()
    y = table[:, 0] > 3.0
    pipeline = make_pipeline(ps.PrivateStandardScaler(**BUDGET), ps.PrivatePCA(6, **BUDGET), LogisticRegression())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        scores = cross_val_score(pipeline, table, y, cv=3)
    assert scores.min() > 0.8
    told = [str(one.message) for one in seen if one.category is ps.TransformedRowsWarning]
    assert len(told) == 1
    assert "Every fit spends its own budget" in told[0]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ps.PrivatePCA(2, **BUDGET).fit(table)  # says nothing: no row has left


def test_output_of_fit_transform_can_be_a_frame(table):
    pytest.importorskip("pandas")
    made = ps.PrivatePCA(2, **BUDGET).set_output(transform="pandas").fit_transform(table)
    assert list(made.columns) == ["privatepca0", "privatepca1"]


# --- Covariance and synthetic rows -----------------------------------------------------------------------


@pytest.mark.parametrize("units", [None, UNITS])
def test_the_covariance_is_about_that_of_the_table(table, units):
    X, spreads = (table / UNITS, np.ones(6)) if units is None else (table, UNITS)
    model = fitted(X, 3, units=units)
    found = model.get_covariance()
    error = (found - np.cov(X.T)) / np.outer(spreads, spreads) / SPREADS[0] ** 2
    assert np.abs(error).max() < 0.02
    np.testing.assert_allclose(model.get_precision() @ found, np.eye(6), atol=1e-9)
    np.testing.assert_array_equal(found, found.T)


@pytest.mark.parametrize("units", [None, UNITS])
def test_synthetic_rows_have_the_released_mean_and_covariance(table, units):
    model = fitted(table, 3, units=units)
    rows = model.sample(50_000, rng=1)
    assert rows.shape == (50_000, 6)
    covariance = model.get_covariance()
    spreads = np.sqrt(np.diag(covariance))
    assert np.abs((rows.mean(axis=0) - model.mean_) / spreads).max() < 6 / np.sqrt(50_000)
    assert np.abs((np.cov(rows.T) - covariance) / np.outer(spreads, spreads)).max() < 10 / np.sqrt(50_000)
    np.testing.assert_array_equal(model.sample(3, rng=7), model.sample(3, rng=7))


def test_they_are_a_function_of_what_was_stored(table, monkeypatch):
    model = fitted(table)
    monkeypatch.setattr(ps.privacy.randomness.BitSource, "bytes", lambda *_: pytest.fail("noise was drawn"))
    model.sample(2), model.get_covariance(), model.to_sklearn()


def test_all_components_leave_no_rest(table):
    model = fitted(table / UNITS, 6, epsilon=50.0)
    assert model.noise_variance_ == 0.0
    assert model.sample(4, rng=0).shape == (4, 6)


# --- A share of the variance -----------------------------------------------------------------------------

# The squares of the spreads: 64, 25, 4 and three times a quarter; so .68, .95, .992, .995, ...
SHARES = [(0.5, 1), (0.9, 2), (0.97, 3)]


@pytest.mark.parametrize(("share", "k"), SHARES)
def test_as_many_components_as_hold_the_share(table, share, k):
    model = fitted(table / UNITS, share, epsilon=5.0)
    assert model.n_components_ == k == model.release_.extras["n_components"]
    assert model.explained_variance_.shape == model.explained_variance_ratio_.shape == (k,)
    assert model.explained_variance_ratio_.sum() >= share
    assert model.release_.cost.epsilon == 5.0
    assert np.isnan(model.captured_variance_)
    np.testing.assert_allclose(model.inverse_transform(model.transform(model.mean_[None])), model.mean_[None])


@pytest.mark.parametrize(("share", "k"), SHARES)
def test_the_number_follows_from_what_all_components_release(table, share, k):
    """Post-processing: the same run with all components, cut where the released ratios say."""
    X, options = table / UNITS, {"epsilon": 5.0, "delta": 1e-6, "rng": 0}
    whole, cut = ps.private_pca(X, 6, **options), ps.private_pca(X, share, **options)
    np.testing.assert_array_equal(cut.subspace.basis, whole.subspace.basis[:, :k])
    np.testing.assert_array_equal(cut.extras["explained_variance"], whole.extras["explained_variance"][:k])
    np.testing.assert_array_equal(cut.extras["mean"], whole.extras["mean"])
    assert cut.parameters["considered"] == 6
    assert cut.cost == whole.cost


def test_a_share_out_of_reach_keeps_all_and_says_so(table):
    X = table / UNITS
    with pytest.warns(UserWarning, match="do not hold 0.99"):
        release = ps.private_pca(X, 0.99, max_components=2, **BUDGET, rng=0)
    assert release.subspace.dimension == 2
    assert "captured_variance" in release.extras  # all that were looked for are there


def test_a_cut_release_can_be_kept_and_shown(table, tmp_path):
    release = ps.private_pca(table / UNITS, 0.9, epsilon=5.0, delta=1e-6)
    assert ps.Release.load(release.save(tmp_path / "cut")) == release
    page = ps.report.report_html(release)
    assert "nan" not in page.lower().split()
    assert "private_pca(table, 0.9, epsilon=5.0" in page


@pytest.mark.parametrize(
    ("k", "options", "message"),
    [
        (1.5, {}, "`k` must be an integer, at least 1, a share"),
        (0.0, {}, "a share"),
        (np.nan, {}, "a share"),
        (0.9, {"max_components": 7}, "`max_components` must be at most 6"),
        (0.9, {"max_components": 0}, "`max_components` must be an integer"),
        (2, {"max_components": 3}, "or a share"),
    ],
)
def test_shares_that_make_no_sense_are_refused(table, k, options, message):
    with pytest.raises(ValueError, match=message):
        ps.private_pca(table, k, **BUDGET, **options)


def test_the_precision_leaves_out_directions_without_variance():
    model = ps.PrivatePCA(1, **BUDGET)
    model.components_, model.n_features_in_ = np.array([[0.6, 0.8]]), 2
    model.explained_variance_, model.noise_variance_ = np.array([4.0]), 0.0
    model.scale_ = np.ones(2)
    np.testing.assert_allclose(model.get_precision(), np.linalg.pinv(model.get_covariance()), atol=1e-12)
