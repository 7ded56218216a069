"""The private mean: its sensitivity, its noise, its pairs."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse, stats

from privspan.audit.replay import spent_by
from privspan.privacy import Budget
from privspan.privacy.randomness import open_streams
from privspan.rows import PartitionedTable, RowSource, partition_rows
from privspan.rows.door import open_table
from privspan.rows.shifting import less
from privspan.rows.unit import Rows
from privspan.subspace import Subspace
from privspan.sums.grid import row_bounds
from privspan.sums.mean import private_mean
from privspan.sums.pairs import pair_differences

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64) | st.floats(-10, 10)
ROWS = hnp.arrays(np.float64, (2, 5), elements=NUMBERS)


def clipped_sum(X, clip):
    return sum(piece.sum(axis=0) for _, piece in Rows(X, clip=clip).pieces())


@settings(max_examples=200, deadline=None)
@given(ROWS, st.floats(1e-6, 1e6))
def test_one_record_moves_the_sum_by_at_most_two(rows, clip):
    with np.errstate(all="ignore"):
        change = clipped_sum(rows[:1], clip) - clipped_sum(rows[1:], clip)
    assert np.linalg.norm(change) <= row_bounds(1, 5).sensitivity


def test_the_bound_is_attained():
    rows = np.array([[3.0, 0.0], [-5.0, 0.0]])
    change = clipped_sum(rows[:1], 1.0) - clipped_sum(rows[1:], 1.0)
    assert np.linalg.norm(change) == pytest.approx(2.0)


def neighbours(seed, n=300, d=6):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 1.0
    other = X.copy()
    X[5], other[5] = 1e6 * rng.standard_normal(d), -1e6 * rng.standard_normal(d)
    return X, other


@pytest.mark.parametrize("within", [False, True])
@pytest.mark.parametrize("norm_bound", [None, 2.0])
def test_a_whole_run_spends_no_more_than_mu(within, norm_bound):
    subspace = Subspace(np.eye(6, 2)) if within else None
    mu = Budget(**BUDGET).mu

    def run(X, rng):
        return private_mean(X, subspace=subspace, **BUDGET, norm_bound=norm_bound, rng=rng)

    spent = [spent_by(run, *neighbours(seed)) for seed in range(6)]
    assert max(spent) <= mu**2
    X = np.ones((300, 6))
    opposite = X.copy()
    opposite[0] = -1.0
    spent_most = spent_by(run, 1e6 * X, 1e6 * opposite)
    # Opposite records come close to the bound where it is given; a private bound is three times their length.
    assert (0.3 if norm_bound else 0.08) * mu**2 <= spent_most <= mu**2


def test_noise_has_the_stated_size_and_is_smaller_in_a_subspace():
    X = np.zeros((500, 40))
    subspace = Subspace(np.eye(40, 2))
    plain = [private_mean(X, **BUDGET, norm_bound=1.0, rng=seed) for seed in range(20)]
    values = np.concatenate([release.mean / release.noise for release in plain])
    assert stats.kstest(values, "norm").pvalue > 1e-4  # seeded
    assert plain[0].noise == pytest.approx(2.0 / (Budget(**BUDGET).mu * 500), rel=1e-3)
    within = private_mean(X, subspace=subspace, **BUDGET, norm_bound=1.0, rng=0)
    assert np.count_nonzero(within.mean) == 2
    assert np.linalg.norm(within.mean) < 0.5 * np.linalg.norm(plain[0].mean)


def test_the_mean_is_right_when_there_are_many_rows():
    rng = np.random.default_rng(0)
    centre = np.array([5.0, -2.0, 0.0, 1.0])
    X = rng.standard_normal((50_000, 4)) + centre
    for norm_bound in (None, 15.0):
        release = private_mean(X, epsilon=3.0, delta=1e-6, norm_bound=norm_bound, rng=1)
        np.testing.assert_allclose(release.mean, centre, atol=0.02)
    assert release.norm_bound == 15.0
    assert not release.private
    assert (release.cost.epsilon, release.cost.delta) == (3.0, 1e-6)


def test_an_affine_subspace_measures_from_its_offset():
    X = np.random.default_rng(0).standard_normal((20_000, 3)) * [1.0, 0.0, 0.0] + [0.0, 100.0, 7.0]
    line = Subspace(np.array([[1.0], [0.0], [0.0]]), offset=np.array([0.0, 100.0, 7.0]))
    release = private_mean(X, subspace=line, **BUDGET, norm_bound=3.0, rng=0)
    np.testing.assert_allclose(release.mean, [0.0, 100.0, 7.0], atol=0.05)


def test_sparse_rows_and_rows_that_are_not_finite():
    X = np.random.default_rng(0).standard_normal((300, 8)) * (np.arange(8) < 3)
    dense = private_mean(X, **BUDGET, norm_bound=4.0, rng=2)
    thin = private_mean(sparse.csr_array(X), **BUDGET, norm_bound=4.0, rng=2)
    np.testing.assert_allclose(thin.mean, dense.mean, atol=1e-6)
    X[0, 0], X[1, 1] = np.nan, np.inf
    assert np.isfinite(private_mean(X, subspace=Subspace(np.eye(8, 2)), **BUDGET, rng=0).mean).all()
    assert np.isfinite(private_mean(X, **BUDGET, rng=0).mean).all()


def test_wrong_parameters_are_named():
    X = np.zeros((10, 3))
    with pytest.raises(ValueError, match="`norm_bound` must be"):
        private_mean(X, **BUDGET, norm_bound=-1.0)
    with pytest.raises(ValueError, match="must have 4 columns"):
        private_mean(X, subspace=Subspace(np.eye(4, 1)), **BUDGET)


# ---- Differences of pairs -----------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(
    hnp.arrays(np.float64, st.tuples(st.integers(2, 9), st.just(3)), elements=st.floats(-5, 5)),
    st.integers(0, 2**32 - 1),
    st.data(),
)
def test_one_record_reaches_one_difference(X, seed, data):
    index = data.draw(st.integers(0, len(X) - 1))
    other = X.copy()
    other[index] = data.draw(hnp.arrays(np.float64, 3, elements=NUMBERS))
    before, after = pair_differences(X, open_streams(seed).public), pair_differences(other, open_streams(seed).public)
    assert before.shape == (len(X) // 2, 3)
    assert int(((before != after).any(axis=1)).sum()) <= 1


def test_differences_forget_the_mean_and_double_the_covariance():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 2)) * [2.0, 1.0] + 50.0
    differences = pair_differences(X, open_streams(0).public)
    np.testing.assert_allclose(differences.mean(axis=0), 0.0, atol=0.1)
    np.testing.assert_allclose(np.cov(differences.T), np.diag([8.0, 2.0]), atol=0.2)
    np.testing.assert_allclose(pair_differences(X + 7.0, open_streams(0).public), differences, atol=1e-9)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.int64, bool])
def test_unsigned_and_narrow_numbers_do_not_wrap(dtype):
    X = np.array([[0, 1], [1, 0], [0, 1], [1, 1]]).astype(dtype)
    differences = pair_differences(X, open_streams(1).public)
    assert differences.dtype == np.float64
    assert set(np.unique(differences)) <= {-1.0, 0.0, 1.0}
    np.testing.assert_array_equal(
        pair_differences(sparse.csr_array(X), open_streams(1).public).toarray(), differences
    )


class HeldRows(RowSource):
    """An array as a source that is read in windows of three rows."""

    def __init__(self, values):
        self._values, self.shape, self.dtype = values, values.shape, values.dtype
        self.edges = np.append(np.arange(0, len(values), 3), len(values))

    def _run(self, start, stop):
        return self._values[start:stop].copy()

    def _take(self, numbers):
        return self._values[numbers]


def in_partitions(X, index):
    """Partitions of two rows, two rows and the rest."""
    return partition_rows(X, [len(piece) for piece in np.split(X, [2, 4])])


def shuffled_csr(X, index):
    """Row `index` is stored backwards, its first cell in two parts; the others as usual."""
    rows = []
    for number, row in enumerate(X):
        columns = np.arange(len(row))[:: -1 if number == index else 1]
        data = row[columns]
        if number == index:
            columns, data = np.append(columns, 0), np.append(data, data.dtype.type(1))
        rows.append((columns, data))
    starts = np.concatenate([[0], np.cumsum([len(columns) for columns, _ in rows])])
    return sparse.csr_array(
        (np.concatenate([data for _, data in rows]), np.concatenate([columns for columns, _ in rows]), starts),
        shape=X.shape,
    )


TABLES = {  # how a table is held, whose row `index` is another and may need another type
    "array": lambda X, index: X,
    "columns together": lambda X, index: np.asfortranarray(X),
    "sparse": lambda X, index: sparse.csr_array(X),
    "sparse, one row in disorder": shuffled_csr,
    "windows": lambda X, index: HeldRows(X),
    "partitions": in_partitions,
}


def difference_bits(table, seed, make):
    """Return the differences as bit patterns, one row per pair; NaN counts as NaN, whatever its digits."""
    public = open_streams(seed).public
    differences = pair_differences(table, public) if make is None else open_table(table).pairs(public, make)
    if isinstance(differences, PartitionedTable):
        differences = np.concatenate([part() for part in differences.parts])
    elif sparse.issparse(differences):
        differences = differences.toarray()
    differences = np.asarray(differences)
    values = np.where(np.isnan(differences), np.nan, differences + 0.0)  # one NaN, one zero
    return values.astype(np.float64).view(np.uint64)


def changed_pairs(kind, X, index, row, seed, make=None):
    """Count the differences that change when one row is replaced by one that needs float64."""
    if kind.startswith("sparse") and X.dtype == np.float16:
        X = X.astype(np.float32)  # SciPy has no narrower floats
    wide = X.astype(np.float64)
    wide[index] = row
    with np.errstate(all="ignore"):
        before, after = (
            difference_bits(TABLES[kind](X, -1), seed, make),
            difference_bits(TABLES[kind](wide, index), seed, make),
        )
    return int((before != after).any(axis=1).sum())


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(sorted(TABLES)),
    st.sampled_from([np.float16, np.float32, np.float64, np.int8, np.uint16, np.int64, np.uint64, bool]),
    st.data(),
)
def test_the_bits_of_a_difference_depend_on_its_two_rows_alone(kind, dtype, data):
    """Lemma 2 of private-mean.md, arithmetic included: whatever the other rows hold, and whatever type they need."""
    n = data.draw(st.integers(2, 9))
    X = data.draw(hnp.arrays(dtype, (n, 3)))
    index, seed = data.draw(st.integers(0, n - 1)), data.draw(st.integers(0, 2**32 - 1))
    row = data.draw(hnp.arrays(np.float64, 3, elements=NUMBERS))
    assert changed_pairs(kind, X, index, row, seed) <= 1


@pytest.mark.parametrize("kind", TABLES)
def test_columns_near_the_limit_of_float32(kind):
    """The same where it used to fail: in float32 these differences overflow, in float64 they are numbers."""
    X = np.full((9, 3), 3e38, dtype=np.float32)
    X[::2] *= -1.0
    assert max(changed_pairs(kind, X, index, [0.1, 0.2, 0.3], 5) for index in range(9)) == 1


def test_differences_in_the_type_of_the_table_are_seen():
    """The planted fault: one row's type for everybody's arithmetic."""

    def narrow(rows, subtrahend, out=None):
        kind = np.result_type(rows.dtype, np.float32)
        return np.subtract(rows, subtrahend, out=out, dtype=kind, casting="unsafe")

    X = np.random.default_rng(0).standard_normal((9, 3)).astype(np.float32)
    assert changed_pairs("array", X, 4, np.ones(3), 5, narrow) > 1
    assert changed_pairs("array", X, 4, np.ones(3), 5, less) == 1


@pytest.mark.parametrize("step", [1, 3, 7])
def test_differences_do_not_depend_on_the_pieces_they_are_formed_in(step):
    X = np.random.default_rng(0).standard_normal((101, 5)).astype(np.float32)
    whole = pair_differences(X, open_streams(2).public)
    pairs = open_table(X).pairs(open_streams(2).public, less)
    assert np.array_equal(np.concatenate([pairs[at : at + step] for at in range(0, len(pairs), step)]), whole)


def test_a_released_mean_is_taken_away_without_a_word_about_values():
    X = np.full((4, 2), 1.7e308)
    mean = np.array([-1.7e308, 0.0])
    for table in (X, HeldRows(X)):
        with np.errstate(all="raise"):
            shifted = np.asarray(open_table(table).less(mean))
        assert np.isinf(shifted[:, 0]).all()


def test_the_error_of_a_private_mean_follows_its_formula():
    n, d = 2_000, 100
    release = private_mean(np.zeros((n, d)), **BUDGET, norm_bound=1.0, rng=0)
    expected = 2.0 * math.sqrt(d) / (Budget(**BUDGET).mu * n)
    assert np.linalg.norm(release.mean) == pytest.approx(expected, rel=0.3)
