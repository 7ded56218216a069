"""PCA of standardised columns, from the door to the release: real shapes of tables, wherever their rows are."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from privspan import private_pca
from privspan.audit.replay import spent_by
from privspan.privacy import Budget
from privspan.rows import open_rows, partition_rows

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def patients(seed: int, n: int = 6_000) -> pd.DataFrame:
    """People in mixed units with one hidden state; income has a long tail, and smokers are few."""
    rng = np.random.default_rng(seed)
    share = np.array([0.5, 0.5, 0.6, 0.4, 0.2])
    state = rng.standard_normal((n, 1))
    numbers = share * state + np.sqrt(1.0 - share**2) * rng.standard_normal((n, 5))
    table = pd.DataFrame(
        [50.0, 27.0, 130.0, 200.0, 10.3] + numbers * [15.0, 5.0, 18.0, 40.0, 0.7],
        columns=["age", "bmi", "pressure", "cholesterol", "income"],
    )
    return table.assign(income=np.exp(table["income"]), smoker=rng.random(n) < 0.25)


def captured(release, X, k):
    """Return the captured variance of truly standardised columns, over the best."""
    basis, correlation = release.subspace.basis, np.corrcoef(np.asarray(X, dtype=float).T)
    return np.trace(basis.T @ correlation @ basis) / np.linalg.eigvalsh(correlation)[-k:].sum()


@pytest.mark.parametrize("declared", [True, False])
def test_patients_are_captured_in_their_own_units(declared):
    for seed in range(5):
        X = patients(seed)
        release = private_pca(X if declared else X.astype(float), 2, **BUDGET, scale=True, rng=seed)
        rows = X.to_numpy(dtype=float)
        assert captured(release, X, 2) > 0.93
        assert (np.abs(release.extras["mean"] - rows.mean(axis=0)) < 0.3 * rows.std(axis=0)).all()


@pytest.mark.parametrize(
    "options",
    [{"scale": True}, {"scale": True, "bounds": {"age": (0, 120)}}, {"scale": True, "bounds": (-1e3, 1e6)}],
    ids=str,
)
@pytest.mark.parametrize("n", [600, 3_000])
@pytest.mark.parametrize("records", [(1e12, -1e12), (np.nan, 1e9), (0.0, 1e-9)], ids=str)
@pytest.mark.filterwarnings("ignore::privspan.private.UselessPlanWarning")
def test_a_whole_run_spends_no_more_than_mu(options, n, records):
    X = patients(1, n).astype(float)
    one, other = X.copy(), X.copy()
    one.iloc[3], other.iloc[3] = records
    budget = {"epsilon": 3.0, "delta": 1e-6}
    spent = spent_by(lambda table, rng: private_pca(table, 2, **budget, **options, rng=rng), one, other)
    assert spent <= Budget(**budget).mu ** 2


@pytest.mark.parametrize("course", ["ranks", "deviations"])
def test_the_same_release_wherever_the_rows_are(tmp_path, course):
    X = patients(2, 9_000).astype(float)
    rows = X.to_numpy()
    np.save(tmp_path / "X.npy", rows)
    expected = private_pca(rows, 2, **BUDGET, scale=course, rng=4)
    tables = [np.asfortranarray(rows), X, open_rows(tmp_path / "X.npy"), partition_rows(rows, (9_000,))]
    for table in tables[: 3 if course == "ranks" else 4]:  # partitions draw pairs of their own
        again = private_pca(table, 2, **BUDGET, scale=course, rng=4)
        np.testing.assert_allclose(again.extras["scale"], expected.extras["scale"], rtol=1e-6)
        assert again.subspace.distance(expected.subspace) < 1e-3
    lengths = (3_000, 4_097, 1, 1_902)
    here = private_pca(partition_rows(rows, lengths), 2, **BUDGET, scale=course, rng=4)
    there = private_pca(da.from_array(rows, chunks=(lengths, 6)), 2, **BUDGET, scale=course, rng=4)
    np.testing.assert_array_equal(here.subspace.basis, there.subspace.basis)
    narrow = rows.astype(np.float32)
    in_single, in_double = (
        private_pca(table, 2, **BUDGET, scale=course, rng=4) for table in (narrow, narrow.astype(float))
    )
    np.testing.assert_array_equal(in_single.extras["scale"], in_double.extras["scale"])
    np.testing.assert_array_equal(in_single.subspace.basis, in_double.subspace.basis)


def test_sparse_rows_are_ranked_as_dense_ones():
    rows = patients(2, 3_000).to_numpy(dtype=float)
    rows[rows < 20.0] = 0.0
    dense, stored = (
        private_pca(table, 2, epsilon=0.6, delta=1e-6, scale=True, rng=4) for table in (rows, sparse.csr_array(rows))
    )  # too little data to measure units, so that both draw the same noise
    assert dense.parameters["course"] == stored.parameters["course"] == "ranks"
    assert dense.subspace.distance(stored.subspace) < 1e-6


def test_booleans_are_bounded_by_their_type_in_frames_here_and_far():
    X = patients(3, 12_000)
    rare = X.assign(smoker=np.random.default_rng(0).random(12_000) < 0.03)  # hardly enough to be found otherwise
    far = dd.from_pandas(rare, npartitions=3)
    for table in (rare, far):
        release = private_pca(table, 2, **BUDGET, scale=True, rng=0)
        assert release.parameters["without_units"] == ()
        assert release.extras["scale"][-1] == pytest.approx(0.17, rel=0.3)
        assert release.extras["low"][-1] == 0.0
        assert release.extras["high"][-1] == 1.0


@pytest.mark.parametrize("n", [700, 20_000])
def test_a_column_of_one_value_is_named_and_keeps_its_place(n):
    release = private_pca(patients(3, n).assign(clinic=7.0), 2, **BUDGET, scale=True, rng=0)
    assert "clinic" in release.parameters["not_seen"]
    assert np.abs(release.subspace.basis[-1]).max() < 0.5
    assert np.isfinite(release.extras["components_std"]).all()


@pytest.mark.filterwarnings("ignore::privspan.private.UselessPlanWarning")
@pytest.mark.parametrize("rows", [2, 3, 30, 200])
@pytest.mark.parametrize("cell", [np.nan, 0.0, 1e308, -np.inf, 5e-324])
def test_no_table_is_refused_and_every_number_is_finite(rows, cell):
    table = np.full((rows, 3), cell)
    table[0] = [1.0, -2.0, 1e300]
    release = private_pca(table, 1, **BUDGET, scale=True, rng=0)
    numbers = [value for value in release.extras.values() if isinstance(value, np.ndarray | float)]
    assert all(np.isfinite(value).all() for value in numbers)
