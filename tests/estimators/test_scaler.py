"""PrivateStandardScaler as its users see it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from privspan import NoSpreadWarning, NotPrivateWarning, PrivatePCA, PrivateStandardScaler, private_scales
from privspan.rows.columns import public_columns

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def patients(seed: int, n: int = 6_000) -> pd.DataFrame:
    """People in mixed units: one hidden state, six columns, income with a long tail."""
    rng = np.random.default_rng(seed)
    ill = rng.standard_normal(n)

    def measured(centre, spread, share):
        return centre + spread * (share * ill + np.sqrt(1.0 - share**2) * rng.standard_normal(n))

    return pd.DataFrame(
        {
            "age": measured(50.0, 15.0, 0.5),
            "bmi": measured(27.0, 5.0, 0.5),
            "pressure": measured(130.0, 18.0, 0.6),
            "cholesterol": measured(200.0, 40.0, 0.4),
            "income": np.exp(measured(10.3, 0.7, 0.2)),
            "smoker": rng.random(n) < 0.25,
        }
    )


def fitted(X, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NotPrivateWarning)
        return PrivateStandardScaler(**BUDGET, **options, random_state=0).fit(X)


@pytest.mark.parametrize("bounds", [None, {"age": (0, 120), "bmi": (10, 60)}])
def test_patients_get_means_and_scales_in_their_own_units(bounds):
    for seed in range(5):
        X = patients(seed)
        scaler = fitted(X, bounds=bounds)
        truth = X.to_numpy(dtype=float)
        spread = truth.std(axis=0)
        assert (np.abs(scaler.mean_ - truth.mean(axis=0)) < 0.3 * spread).all()
        assert (np.abs(np.log2(scaler.scale_ / spread)) < 0.7).all()
        assert abs(np.log2(scaler.scale_[-1] / spread[-1])) < 0.1  # a boolean by its type
        assert not scaler.left_as_they_are_
        assert scaler.release_.cost.epsilon == 1.0


def test_round_trip_names_and_a_pipeline():
    X = patients(0)
    scaler = fitted(X)
    rows = scaler.transform(X)
    within = np.clip(X.to_numpy(dtype=float), scaler.low_, scaler.high_)
    np.testing.assert_allclose(scaler.inverse_transform(rows), within, rtol=1e-9, atol=1e-12)
    assert (within == X.to_numpy(dtype=float)).mean() > 0.98  # little is cut off
    assert list(scaler.get_feature_names_out()) == list(X.columns)
    assert clone(scaler).get_params() == scaler.get_params()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipeline = make_pipeline(clone(scaler), PrivatePCA(2, **BUDGET, random_state=0)).fit(X)
    assert pipeline.transform(X).shape == (len(X), 2)


def test_columns_with_one_value_are_standardised_all_the_same():
    X = patients(0)[["age", "bmi"]].assign(clinic=7.0, rare=np.arange(6_000) == 0)
    scaler = fitted(X)
    assert not scaler.left_as_they_are_
    assert list(scaler.release_.mostly_one_value) == [False, False, True, False]
    rows = scaler.transform(X)
    assert np.isfinite(rows).all()
    assert np.abs(rows[:, 2:]).max() < 1_000.0
    assert (scaler.scale_std_[2:] >= 0.4 * scaler.scale_[2:]).all()  # nothing but noise was seen


def test_columns_that_cannot_be_found_are_named_and_left_alone():
    X = patients(0, 60)[["age", "bmi"]]
    with pytest.warns(NoSpreadWarning, match="'age', 'bmi'"):
        scaler = fitted(X)
    assert scaler.left_as_they_are_ == ["age", "bmi"]
    np.testing.assert_array_equal(scaler.scale_, 1.0)
    np.testing.assert_array_equal(scaler.var_, 0.0)
    np.testing.assert_array_equal(scaler.transform(X), X)


def test_sparse_tables_are_refused():
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        fitted(sparse.csr_array(np.eye(50)))


def test_a_seed_warns_and_no_seed_is_private():
    X = patients(0)
    with pytest.warns(NotPrivateWarning):
        PrivateStandardScaler(**BUDGET, random_state=1).fit(X)
    assert PrivateStandardScaler(**BUDGET).fit(X).release_.private


def test_wrong_parameters_are_named():
    X = patients(0)
    for bounds in (
        {"agee": (0, 1)},
        {"age": (1, 0)},
        {"age": (0, np.inf)},
        {9: (0, 1)},
        np.zeros((3, 2)),
        {"age": 3},
    ):
        with pytest.raises(ValueError, match="`bounds` must"):
            private_scales(X, **BUDGET, bounds=bounds)
    with pytest.raises(TypeError, match="`with_mean` must"):
        PrivateStandardScaler(**BUDGET, with_mean="yes").fit(X)


FRAME = pd.DataFrame({"dtype": [1.0, 2.0], "column_names": [3.0, 4.0], "flag": [True, False]})


@pytest.mark.parametrize(
    "table",
    [
        FRAME,
        FRAME.astype({"flag": "boolean"}),
        FRAME.convert_dtypes(dtype_backend="pyarrow"),
        pl.DataFrame(FRAME.to_dict("list")),
        pa.table(FRAME.to_dict("list")),
    ],
)
def test_booleans_are_known_by_their_type(table):
    """A column that is called like an attribute of tables is not taken for it."""
    np.testing.assert_array_equal(public_columns(table, 3).boolean, [False, False, True])
    assert public_columns(FRAME.to_numpy() == 1.0, 3).boolean.all()


def test_names_are_those_of_the_columns():
    bounds = {"column_names": (0.0, 10.0), "dtype": (0.0, 10.0)}
    tall = pd.concat([FRAME] * 8_000, ignore_index=True)
    found = private_scales(tall, **BUDGET, bounds=bounds, rng=0).scale
    np.testing.assert_allclose(found, 0.5, rtol=0.2)
