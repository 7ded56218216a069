"""The private regression: its sensitivity, its noise, its answers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from privspan.audit.replay import spent_by
from privspan.privacy import Budget
from privspan.rows import partition_rows
from privspan.rows.unit import Rows
from privspan.subspace import Subspace
from privspan.sums.regression import _moment_sums, _scaled_targets, moment_bounds, private_regression

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
BOUNDS = {"norm_bound": 1.0, "target_bound": 1.0}
NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64) | st.floats(-10, 10)


def change_in_units_of_noise(X, y):
    """The two rows are the record before and after its replacement."""
    sums = [next(_moment_sums(Rows(X[i : i + 1], clip=1.0), _scaled_targets(y[i : i + 1], 1.0))) for i in range(2)]
    moments, products = np.split(sums[0] - sums[1], [X.shape[1]], axis=1)
    return math.sqrt(np.sum(moments**2) / 2 + np.sum(products**2))


@settings(max_examples=300, deadline=None)
@given(hnp.arrays(np.float64, (2, 4), elements=NUMBERS), hnp.arrays(np.float64, 2, elements=NUMBERS))
def test_one_record_moves_the_sums_by_at_most_three_halves(X, y):
    assert change_in_units_of_noise(X, y) <= moment_bounds(1, 4).sensitivity * (1 + 1e-12)


def test_the_bound_is_attained():
    """At an inner product of 1/2 and opposite targets, as the proof says."""
    X = np.array([[1.0, 0.0], [0.5, math.sqrt(0.75)]])
    assert change_in_units_of_noise(X, np.array([-1.0, 1.0])) == pytest.approx(1.5, abs=1e-9)


def opposite_targets(n=300, d=4):
    X = np.zeros((n, d))
    other = X.copy()
    X[0, 0], other[0, :2] = 9.0, [0.5, math.sqrt(0.75)]
    return np.column_stack([X, np.eye(n)[0] * -9.0]), np.column_stack([other, np.eye(n)[0] * 9.0])


def split_run(table, rng):
    return private_regression(table[:, :-1], table[:, -1], **BUDGET, **BOUNDS, rng=rng)


def test_a_whole_run_spends_no_more_than_mu():
    spent = spent_by(split_run, *opposite_targets())
    mu = Budget(**BUDGET).mu
    assert 0.99 * mu**2 <= spent <= mu**2


def test_coefficients_are_right_when_there_are_many_rows_dense_or_sparse():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 5))
    truth = np.array([1.0, -2.0, 0.0, 0.5, 3.0])
    y = X @ truth + 0.1 * rng.standard_normal(60_000)
    options = {**BUDGET, "norm_bound": 5.0, "target_bound": 15.0, "rng": 1}
    fit = private_regression(X, y, **options)
    np.testing.assert_allclose(fit.coefficients, truth, atol=0.1)
    assert fit.intercept == 0.0
    assert not fit.private
    again = private_regression(sparse.csr_array(X), y, **options)
    np.testing.assert_allclose(again.coefficients, fit.coefficients, atol=1e-6)


def test_a_subspace_saves_noise_and_an_offset_gives_an_intercept():
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((200, 2)))[0]
    offset = rng.standard_normal(200)
    z = rng.standard_normal((4_000, 2))
    X, y = z @ axes.T + offset, z @ [1.0, -1.0]
    line = Subspace(axes, offset=offset)
    fit = private_regression(X, y, subspace=line, **BUDGET, norm_bound=3.0, target_bound=4.0, rng=0)
    errors = X @ fit.coefficients + fit.intercept - y
    assert np.sqrt(np.mean(errors**2)) < 0.15
    plain = private_regression(X - offset, y, **BUDGET, norm_bound=3.0, target_bound=4.0, rng=0)
    assert np.sqrt(np.mean(((X - offset) @ plain.coefficients - y) ** 2)) > 3 * np.sqrt(np.mean(errors**2))


def test_a_gap_counts_as_zero_and_a_record_without_a_target_does():
    X, y = np.ones((10, 2)), np.ones(10)
    zero, gap = X.copy(), X.copy()
    zero[3], gap[3, 0] = 0.0, 0.0
    wanted = private_regression(zero, y, **BUDGET, **BOUNDS, rng=0).coefficients
    for value in (np.nan, np.inf, -np.inf):
        bad_target, bad_row = y.copy(), X.copy()
        bad_target[3], bad_row[3, 0] = value, value
        np.testing.assert_array_equal(
            private_regression(X, bad_target, **BUDGET, **BOUNDS, rng=0).coefficients, wanted
        )
        np.testing.assert_array_equal(
            private_regression(bad_row, y, **BUDGET, **BOUNDS, rng=0).coefficients,
            private_regression(gap, y, **BUDGET, **BOUNDS, rng=0).coefficients,
        )
        spoiled = private_regression(bad_row, y, **BUDGET, **BOUNDS, missing="zero-row", rng=0)
        np.testing.assert_array_equal(spoiled.coefficients, wanted)


class Secretive:
    """Refuses to be an array, and says why."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Smith earns 4711")


@pytest.mark.parametrize(
    ("y", "error", "message"),
    [
        (np.ones(9), ValueError, r"one entry per row, shape \(10,\); got shape \(9,\)"),
        (np.ones((10, 1)), ValueError, r"got shape \(10, 1\)"),
        (np.array(["a"] * 10), TypeError, "at most 64 bits; got dtype str"),
        (np.ones(10, dtype=np.longdouble), TypeError, "at most 64 bits; got dtype longdouble|float"),
        (np.ma.masked_greater(np.arange(10.0), 5), TypeError, "a plain array; got a masked array"),
        (sparse.csr_array(np.ones((10, 1))), TypeError, "a dense array; got a sparse"),
        ([[4711.0], *[1.0] * 9], TypeError, "got an object of type list that NumPy cannot convert"),
        (Secretive(), TypeError, "got an object of type Secretive that NumPy cannot convert"),
    ],
)
@pytest.mark.parametrize("partitions", [False, True])
def test_targets_of_another_shape_or_kind_are_refused_and_not_quoted(y, error, message, partitions):
    X = partition_rows(np.ones((10, 2)), [4, 6]) if partitions else np.ones((10, 2))
    with pytest.raises(error, match=f"`y` must .*{message}") as refused:
        private_regression(X, y, **BUDGET, **BOUNDS)
    assert "4711" not in str(refused.value)
    assert refused.value.__suppress_context__ or refused.value.__context__ is None
