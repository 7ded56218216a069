"""The estimators as scikit-learn and its users see them."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

from privspan import AbstentionWarning, NotPrivateWarning, PrivateStandardScaler, PrivateSubspace

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
LARGE = {"epsilon": 1e3, "delta": 1e-6}  # with which private scales are affordable for the few rows of these checks
EXPECTED_FAILURES = {
    "check_dtype_object": "object arrays are refused by dtype: converting them would raise on values",
}


@pytest.mark.filterwarnings("ignore::privspan.estimators.AbstentionWarning")
@pytest.mark.filterwarnings("ignore::privspan.NoSpreadWarning")
@pytest.mark.filterwarnings("ignore::privspan.estimators.NotPrivateWarning")
@pytest.mark.filterwarnings("ignore::privspan.WeakPrivacyWarning")
@pytest.mark.filterwarnings("ignore::privspan.UselessPlanWarning")
@parametrize_with_checks(
    [
        PrivateSubspace(1, **BUDGET),
        PrivateSubspace(1, **BUDGET, method="exact"),
        PrivateSubspace(1, **BUDGET, method="exact", options={"affine": True, "method": "votes"}),
        PrivateStandardScaler(**LARGE),
        PrivateStandardScaler(**LARGE, with_mean=False),
    ],
    expected_failed_checks=lambda _estimator: EXPECTED_FAILURES,
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture
def table():
    parts = np.random.default_rng(0).integers(0, 100, (90, 2))
    return np.column_stack([parts, parts.sum(axis=1)])


def exact(k, **options):
    return PrivateSubspace(k, **BUDGET, method="exact", **options)


def fitted(X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return exact(options.pop("k", 2), random_state=0, options=options).fit(X)


def test_fitted_attributes(table):
    model = fitted(table)
    assert model.succeeded_
    assert model.components_.shape == (2, 3)
    assert model.n_components_ == 2
    assert model.n_features_in_ == 3
    assert model.release_.cost.epsilon == 1.0
    np.testing.assert_allclose(model.inverse_transform(model.transform(table)), table, atol=1e-9)
    assert list(model.get_feature_names_out()) == ["privatesubspace0", "privatesubspace1"]


def test_affine_round_trip(table):
    model = fitted(table + 5, affine=True)
    np.testing.assert_allclose(model.inverse_transform(model.transform(table + 5)), table + 5, atol=1e-9)


def test_abstention_warns_and_leaves_a_placeholder_that_does_not_depend_on_data():
    placeholders = []
    for seed in (1, 2):
        X = np.random.default_rng(seed).normal(size=(40, 5))
        with pytest.warns(AbstentionWarning, match="budget is spent"):
            model = exact(2).fit(X)
        assert not model.succeeded_
        placeholders.append(model.components_)
        assert model.transform(X).shape == (40, 2)
    np.testing.assert_array_equal(*placeholders)


def test_a_seed_warns(table):
    with pytest.warns(NotPrivateWarning, match="not private"):
        exact(2, random_state=1).fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert exact(2).fit(table).release_.private


def test_names_of_a_data_frame_reach_the_relations_and_the_output(table):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(table, columns=["a", "b", "total"])
    model = fitted(frame)
    assert [r.describe(model.subspace_.names) for r in model.subspace_.relations()] == ["total = a + b"]
    assert list(model.set_output(transform="pandas").transform(frame).columns) == [
        "privatesubspace0",
        "privatesubspace1",
    ]


def test_whole_numbers_stay_whole():
    big = 2**60
    a, b = np.random.default_rng(0).integers(big, 2 * big, (2, 80))
    assert fitted(np.column_stack([a, b, a + b])).succeeded_


def test_pickle_clone_and_pipeline(table):
    model = fitted(table)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.components_, model.components_)
    assert again.release_.cost == model.release_.cost
    assert clone(model).get_params() == model.get_params()
    pipeline = make_pipeline(FunctionTransformer(), exact(2)).fit(table)
    assert pipeline.transform(table).shape == (90, 2)


def test_wrong_parameters_are_named(table):
    for change in ({"n_components": 9}, {"epsilon": -1}, {"method": "magic"}, {"options": {"rule": "magic"}}):
        with pytest.raises(ValueError, match="must be"):
            PrivateSubspace(**({"n_components": 2, "method": "exact"} | BUDGET | change)).fit(table)


def test_nan_rows_do_not_raise(table):
    X = table.astype(float)
    X[0, 0] = np.nan
    assert fitted(X).succeeded_
