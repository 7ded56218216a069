"""Gaps: filled by a rule of the record and of released numbers, counted in private, made up for afterwards."""

import numpy as np
import pytest
from everyday_replay import DELTA, replayed
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from runs import seeded
from scipy import sparse

import privspan as ps
from privspan.audit.replay import spent_by
from privspan.privacy import mu_from_budget
from privspan.privacy.randomness import open_streams
from privspan.rows import partition_rows
from privspan.rows.door import open_table
from privspan.rows.gaps import gap_counts, without_gaps
from privspan.rows.unit import Rows
from privspan.sums.gaps import Gaps, count_sensitivity, gap_share, released_gaps
from privspan.sums.pairs import pair_differences

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
ANY = st.floats(width=64, allow_nan=True, allow_infinity=True)
STRANGE = [np.nan, np.inf, -np.inf, 1e308, -1e308, 0.0]


def with_holes(seed=0, n=20_000, d=10, share=0.1, columns=(0, 3, 7)):
    """A table of three factors, complete and with cells missing at random."""
    rng = np.random.default_rng(seed)
    X = 3.0 * rng.standard_normal((n, 3)) @ rng.standard_normal((3, d)) + 0.5 * rng.standard_normal((n, d))
    X += np.linspace(5.0, 50.0, d)
    holes = X.copy()
    for column in columns:
        holes[rng.random(n) < share, column] = np.nan
    return X, holes


# ---- What a filled row is --------------------------------------------------------------------------------------


@given(arrays(np.float64, (4, 3), elements=ANY), arrays(np.float64, 3, elements=st.floats(-1e6, 1e6)))
def test_a_gap_about_a_centre_is_the_centre_dense_and_sparse(X, centre):
    with np.errstate(all="ignore"):
        filled = np.where(np.isfinite(X - centre), X, centre)
    (dense,) = (piece for _, piece in open_table(X).rows(centre, clip=10.0, single=True).pieces())
    (wanted,) = (piece for _, piece in open_table(filled).rows(centre, clip=10.0, single=True).pieces())
    np.testing.assert_allclose(dense, wanted, rtol=1e-12, atol=1e-300)
    assert (np.linalg.norm(dense, axis=1) <= 1.0 + 1e-12).all()


def test_a_sparse_gap_is_filled_with_the_centre():
    X, centre = sparse.csr_array(np.array([[np.nan, 2.0, 0.0], [1.0, 0.0, np.inf]])), np.array([3.0, 1.0, 0.0])
    ((_, piece),) = open_table(X).rows(centre, clip=10.0, single=True).pieces()
    shown = piece._scaled.toarray() - np.outer(piece._weights, centre)
    np.testing.assert_allclose(shown * 10.0, [[0.0, 1.0, 0.0], [-2.0, -1.0, 0.0]], atol=1e-6)


def test_a_gap_makes_no_difference_in_its_own_column():
    X = np.array([[1.0, np.nan, 5.0], [4.0, 2.0, np.inf]])
    for table in (X, sparse.csr_array(X), partition_rows(X, [2])):
        difference = pair_differences(table, open_streams(0).public)
        rows = difference.place.fetch(difference.parts, [1])[0] if hasattr(difference, "place") else difference
        ((_, piece),) = Rows(rows).pieces()
        shown = np.abs(piece.toarray() if sparse.issparse(piece) else piece)
        np.testing.assert_allclose(shown, [[1.0, 0.0, 0.0]], atol=1e-9)


@pytest.mark.parametrize("missing", ["fill", "zero-row"])
@pytest.mark.parametrize("cell", STRANGE)
def test_one_cell_changes_its_own_row_only_wherever_rows_are(tmp_path, missing, cell):
    X = np.random.default_rng(0).standard_normal((60, 4)) + 2.0
    other = X.copy()
    other[17, 2] = cell
    for make in (np.asarray, sparse.csr_array, np.asfortranarray, lambda table: _mapped(tmp_path, table)):
        pieces = []
        for table in (X, other):
            ((_, piece),) = Rows(open_table(make(table)).with_gaps(missing)).pieces()
            pieces.append(piece.toarray() if sparse.issparse(piece) else np.array(piece))
        same = (pieces[0] == pieces[1]).all(axis=1)
        assert same[np.arange(60) != 17].all()
        assert np.isfinite(pieces[1]).all()
        if missing == "zero-row" and not np.isfinite(cell):
            assert not pieces[1][17].any()
        elif not np.isfinite(cell):
            assert pieces[1][17][[0, 1, 3]].all()
            assert pieces[1][17][2] == 0.0


def _mapped(folder, table):
    np.save(folder / "table.npy", table)
    return np.load(folder / "table.npy", mmap_mode="r")


def test_zero_rows_are_what_they_were():
    X, holes = with_holes(n=3_000, share=0.02)
    zeros = np.where(np.isnan(holes).any(axis=1, keepdims=True), 0.0, holes)
    for run in (ps.private_mean, lambda table, **more: ps.private_subspace(table, 2, method="adaptive", **more)):
        spoiled, wanted = run(holes, **BUDGET, missing="zero-row", rng=0), run(zeros, **BUDGET, rng=0)
        numbers = [made.mean if hasattr(made, "mean") else made.subspace.basis for made in (spoiled, wanted)]
        np.testing.assert_array_equal(*numbers)
    with pytest.raises(ValueError, match="`missing` must be one of 'fill', 'zero-row'"):
        ps.private_mean(X, **BUDGET, missing="drop")


# ---- Counts ----------------------------------------------------------------------------------------------------


@given(arrays(np.float64, (3, 5), elements=ANY), arrays(np.float64, 5, elements=ANY))
def test_one_record_moves_the_counts_by_no_more_than_claimed(X, row):
    other = X.copy()
    other[1] = row
    assert np.linalg.norm(gap_counts(X) - gap_counts(other)) <= count_sensitivity(5)
    np.testing.assert_array_equal(gap_counts(X), gap_counts(sparse.csr_array(X)))


def counted(table, rng=0):
    return released_gaps(open_table(table), np.ones(4, bool), seeded(rng))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", ">f4", "g"])
@pytest.mark.parametrize("gap", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("laid", [np.ascontiguousarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=0)[::2]])
def test_gaps_are_seen_in_every_type_and_layout(dtype, gap, laid):
    X = laid(np.linspace(1.0, 250.0, 12, dtype=np.float64).reshape(4, 3).astype(dtype))
    np.testing.assert_array_equal(gap_counts(X), np.zeros(3))
    np.testing.assert_array_equal(without_gaps(X), X.astype(np.float64))
    X[1, 2] = X[3, 2] = gap
    np.testing.assert_array_equal(gap_counts(X), [0.0, 0.0, 2.0])
    found = without_gaps(X)
    assert found.dtype == np.float64
    np.testing.assert_array_equal(found, np.where(np.isfinite(X), X, 0.0).astype(np.float64))


def test_counts_cost_what_they_say_and_only_where_they_are_worth_it():
    mu = mu_from_budget(1.0, 1e-6)
    assert gap_share(20_000, 10, mu) <= 0.02
    assert gap_share(500, 10, mu) == 0.0
    assert gap_share(20_000, 0, mu) == 0.0
    X = np.zeros((5_000, 4))
    full = X.copy()
    full[3] = np.nan
    spent = spent_by(counted, X, full)
    assert spent <= mu**2 * gap_share(5_000, 4, mu) * (1 + 1e-9)
    assert spent >= 0.9 * mu**2 * gap_share(5_000, 4, mu)


def test_whole_numbers_pay_nothing():
    X = np.random.default_rng(0).integers(0, 9, (20_000, 4))
    release = ps.private_pca(X, 1, **BUDGET, rng=0)
    assert "gaps" not in release.extras
    assert not any(part.name == "gaps" for part in release.cost.parts)
    assert any(part.name == "gaps" for part in ps.private_pca(X.astype(float), 1, **BUDGET, rng=0).cost.parts)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300, -1e4])
def test_a_replay_on_a_neighbour_with_gaps_costs_no_more_than_the_budget(value):
    _, holes = with_holes(n=3_000, d=4, columns=(0, 2))
    other = holes.copy()
    other[7] = value
    spent, same = replayed(holes, other)
    assert same
    assert spent <= mu_from_budget(1.0, DELTA) ** 2 * (1 + 1e-9)


# ---- What the counts tell --------------------------------------------------------------------------------------


def test_means_and_variances_of_present_cells_follow_from_those_of_the_filled_table():
    X, holes = with_holes(n=200_000, share=0.3)
    centre = X.mean(axis=0) + 2.0
    counts = np.isnan(holes).sum(axis=0).astype(float)
    gaps = Gaps(counts, 1.0, len(X), np.ones(10, bool))
    filled = np.where(np.isnan(holes), centre, holes)
    mean, error = gaps.mean(filled.mean(axis=0), centre, 0.1)
    np.testing.assert_allclose(mean, np.nanmean(holes, axis=0), rtol=1e-9)
    assert (error >= 0.1).all()
    moment, basis = np.cov((filled - centre).T), np.linalg.eigh(np.cov(X.T))[1][:, :-4:-1]
    grown = gaps.variances(moment, basis, pairs=False, away=(mean - centre) ** 2)
    true, whole = np.einsum("ij,ij->j", basis, np.cov(X.T) @ basis), np.trace(np.cov(X.T))
    np.testing.assert_allclose(np.einsum("ij,ij->j", basis, moment @ basis) * grown.along, true, rtol=0.01)
    np.testing.assert_allclose(np.trace(moment) * grown.total, whole, rtol=0.01)
    assert np.trace(moment) * gaps.variances(moment, basis, pairs=False).total > 1.001 * whole  # a centre that is off
    differences = np.nan_to_num(holes[::2] - holes[1::2])
    grown = gaps.variances(differences.T @ differences, basis, pairs=True)
    seen = np.einsum("ij,ij->j", basis, differences.T @ differences @ basis) / (2 * len(differences))
    np.testing.assert_allclose(seen * grown.along, true, rtol=0.03)


@pytest.mark.parametrize("pairs", [False, True])
def test_errors_of_counts_become_errors_of_variances(pairs):
    X, _ = with_holes(n=2_000, share=0.3)
    moment, basis = np.cov(X.T), np.linalg.eigh(np.cov(X.T))[1][:, :-4:-1]
    rng, made = np.random.default_rng(0), []
    for _ in range(400):
        gaps = Gaps(np.full(10, 600.0) + 20.0 * rng.standard_normal(10), 20.0, 2_000, np.ones(10, bool))
        grown = gaps.variances(moment, basis, pairs=pairs)
        made.append([*grown.along, grown.total])
    expected = Gaps(np.full(10, 600.0), 20.0, 2_000, np.ones(10, bool)).variances(moment, basis, pairs=pairs)
    wanted = [*expected.along_std, expected.total_std]
    np.testing.assert_allclose(np.std(made, axis=0), wanted, rtol=0.2)


@pytest.mark.parametrize(("n", "d", "tail"), [(20_000, 30, 0.02), (20_000, 300, 0.5)])
def test_every_course_makes_up_for_gaps(n, d, tail):
    """Near a subspace, and in tables of more than 256 columns, where no whole moment is released."""
    rng = np.random.default_rng(33)
    X = rng.standard_normal((n, 2)) * [3.0, 2.0] @ np.linalg.qr(rng.standard_normal((d, 2)))[0].T
    X += tail * rng.standard_normal((n, d)) + 1.0
    holes = np.where(rng.random(X.shape) < 0.2, np.nan, X)
    ratios = []
    for table in (X, holes):
        release = ps.private_pca(table, 2, epsilon=3.0, delta=1e-6, rng=0)
        assert release.parameters["gaps"] == "counted"
        ratios.append([*release.extras["explained_variance"], release.extras["total_variance"]])
    np.testing.assert_allclose(ratios[1], ratios[0], rtol=0.12)  # .61, .66 and .75 of them without


def test_counts_within_the_noise_change_nothing():
    gaps = Gaps(np.array([15.0, 0.0, 950.0]), 10.0, 1_000, np.ones(3, bool))
    np.testing.assert_array_equal(gaps.present, 1.0)  # too few to tell, none, too many to make up for


@pytest.mark.parametrize("seed", range(5))
def test_a_tenth_of_the_cells_missing_moves_mean_and_variance_by_less_than_a_twentieth(seed):
    X, holes = with_holes(seed)
    release = ps.private_pca(holes, 3, **BUDGET, rng=seed)
    np.testing.assert_allclose(release.extras["mean"], X.mean(axis=0), rtol=0.05)
    first = np.linalg.eigvalsh(np.cov(X.T))[-1]
    np.testing.assert_allclose(release.extras["explained_variance"][0], first, rtol=0.05)
    assert np.abs(release.extras["gaps"] - np.isnan(holes).sum(axis=0)).max() < 6 * release.extras["gaps_std"]


def test_scales_and_means_of_columns_make_up_for_gaps():
    X, holes = with_holes(n=60_000, share=0.3)
    found, complete = (ps.private_scales(table, epsilon=8.0, delta=1e-6, rng=0) for table in (holes, X))
    np.testing.assert_allclose(found.scale, complete.scale, rtol=0.08)
    np.testing.assert_allclose(found.mean, X.mean(axis=0), rtol=0.02)
    assert (np.abs(found.gaps - np.isnan(holes).sum(axis=0)) < 6 * found.gaps_std).all()
