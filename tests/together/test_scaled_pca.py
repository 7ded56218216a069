"""PCA of tables in mixed units: private scales, then the everyday course on the rows in these units."""

from __future__ import annotations

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from privspan import NoSpreadWarning, private_pca
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
    rows = np.asarray(X, dtype=float)
    factors = release.extras["scale"] / rows.std(axis=0)
    basis = np.linalg.qr(release.subspace.basis * factors[:, None])[0]
    correlation = np.corrcoef(rows.T)
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
@pytest.mark.filterwarnings("ignore::privspan.NoSpreadWarning")
@pytest.mark.filterwarnings("ignore::privspan.private.UselessPlanWarning")
def test_a_whole_run_spends_no_more_than_mu(options, n, records):
    X = patients(1, n).astype(float)
    one, other = X.copy(), X.copy()
    one.iloc[3], other.iloc[3] = records
    budget = {"epsilon": 3.0, "delta": 1e-6}
    spent = spent_by(lambda table: private_pca(table, 2, **budget, **options, rng=3), one, other)
    assert spent <= Budget(**budget).mu ** 2


def test_the_same_release_wherever_the_rows_are(tmp_path):
    X = patients(2, 9_000).astype(float)
    rows = X.to_numpy()
    np.save(tmp_path / "X.npy", rows)
    expected = private_pca(rows, 2, **BUDGET, scale=True, rng=4)
    for table in (np.asfortranarray(rows), sparse.csr_array(rows), X):
        again = private_pca(table, 2, **BUDGET, scale=True, rng=4)
        np.testing.assert_allclose(again.extras["scale"], expected.extras["scale"], rtol=1e-6)
        assert again.subspace.distance(expected.subspace) < 1e-3
    mapped = private_pca(open_rows(tmp_path / "X.npy"), 2, **BUDGET, scale=True, rng=4)
    assert captured(mapped, X, 2) > 0.93  # pairs are drawn in another order
    lengths = (3_000, 4_097, 1, 1_902)
    here = private_pca(partition_rows(rows, lengths), 2, **BUDGET, scale=True, rng=4)
    there = private_pca(da.from_array(rows, chunks=(lengths, 6)), 2, **BUDGET, scale=True, rng=4)
    np.testing.assert_array_equal(here.subspace.basis, there.subspace.basis)
    narrow = rows.astype(np.float32)
    in_single, in_double = (
        private_pca(table, 2, **BUDGET, scale=True, rng=4) for table in (narrow, narrow.astype(float))
    )
    np.testing.assert_array_equal(in_single.extras["scale"], in_double.extras["scale"])
    np.testing.assert_array_equal(in_single.subspace.basis, in_double.subspace.basis)


def test_booleans_are_bounded_by_their_type_in_frames_here_and_far():
    X = patients(3, 8_000)
    rare = X.assign(smoker=np.random.default_rng(0).random(8_000) < 0.03)  # hardly enough for a vote
    far = dd.from_pandas(rare, npartitions=3)
    for table in (rare, far):
        release = private_pca(table, 2, **BUDGET, scale=True, rng=0)
        assert release.parameters["left_out"] == ()
        assert release.extras["scale"][-1] == pytest.approx(0.17, rel=0.3)


def test_columns_without_spread_are_named_and_left_out():
    with pytest.warns(NoSpreadWarning, match="clinic"):
        release = private_pca(patients(3).assign(clinic=7.0), 2, **BUDGET, scale=True, rng=0)
    assert release.parameters["left_out"] == ("clinic",)
    np.testing.assert_array_equal(release.subspace.basis[-1], 0.0)


def test_what_cannot_be_afforded_is_refused_with_what_helps():
    with pytest.raises(ValueError, match=r"`bounds=`.*`scale=\{…\}`"):
        private_pca(np.full((200, 6), np.nan), 2, **BUDGET, scale=True)
