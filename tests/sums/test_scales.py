"""Private scales of columns: what one record can do to them, what they spend, and how good they are."""

from __future__ import annotations

from dataclasses import replace

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from privspan.sums.scales import ladder_sensitivity, rung_sums, vote_counts, vote_sensitivity
from scipy import sparse

from privspan import private_scales
from privspan.audit.replay import spent_by
from privspan.privacy import Budget
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import open_streams
from privspan.rows import open_rows, partition_rows
from privspan.rows.columns import public_columns
from privspan.sums import scales
from privspan.sums.about import in_units

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
MU = Budget(**BUDGET).mu
HOSTILE = [0.0, 5e-324, 2.0**-60, 2.0**-0.5, np.nextafter(2.0**-0.5, 1), 1.0, 2.0**60, 1.7e308, np.nan, -np.inf]
CELLS = st.sampled_from(HOSTILE) | st.floats(allow_nan=True, allow_infinity=True) | st.floats(-100, 100)
RECORDS = hnp.arrays(np.float64, (2, 5), elements=CELLS)
LOWEST = st.floats(2.0**-60, 2.0**60)


def of_rows(function, rows, **options):
    with np.errstate(all="ignore"):
        return function(*scales._sizes(rows), rows.shape[1], **options)


# ---- Lemmas --------------------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(RECORDS, st.lists(st.booleans(), min_size=5, max_size=5).filter(any))
def test_one_difference_moves_the_votes_by_no_more_than_lemma_1_says(rows, voting):
    voting = np.array(voting)
    one, other = (of_rows(vote_counts, row[None], voting=voting) for row in rows)
    assert np.linalg.norm(one - other) <= vote_sensitivity(int(voting.sum()))


@settings(max_examples=300, deadline=None)
@given(RECORDS, hnp.arrays(np.float64, 5, elements=LOWEST), hnp.arrays(np.intp, 5, elements=st.integers(0, 7)))
def test_one_difference_moves_the_rungs_by_no_more_than_lemma_2_says(rows, lowest, rungs):
    rungs[0] = max(rungs[0], 1)  # one column at least is measured
    one, other = (of_rows(rung_sums, row[None], lowest=lowest, rungs=rungs) for row in rows)
    assert min(one.min(), other.min()) >= 0.0
    assert np.linalg.norm(one - other) <= ladder_sensitivity(rungs)


def test_both_bounds_are_attained():
    rows = np.array([[1e-3] * 4, [1e9] * 4])
    one, other = (of_rows(vote_counts, row[None], voting=np.ones(4, dtype=bool)) for row in rows)
    assert np.linalg.norm(one - other) == pytest.approx(vote_sensitivity(4), rel=1e-15)
    rungs, lowest = np.array([7, 3, 1, 7]), np.full(4, 0.1)
    one, other = (of_rows(rung_sums, row, lowest=lowest, rungs=rungs) for row in (0.0 * rows[:1], rows[1:]))
    assert np.linalg.norm(one - other) == pytest.approx(ladder_sensitivity(rungs), rel=1e-15)


@settings(max_examples=100, deadline=None)
@given(hnp.arrays(np.float64, (6, 3), elements=st.floats(-1e3, 1e3)), st.floats(0.01, 100.0))
def test_rungs_add_up_to_the_clipped_second_moment(rows, lowest):
    added = of_rows(rung_sums, rows, lowest=np.full(3, lowest), rungs=np.full(3, 5))
    for top in range(5):
        clips = lowest * 2.0 ** np.arange(top + 1)
        expected = (np.minimum(np.abs(rows), clips[-1]) ** 2).sum(axis=0)
        np.testing.assert_allclose(
            (added[: top + 1] * clips[:, None] ** 2).sum(axis=0), expected, rtol=1e-12, atol=1e-300
        )


@settings(max_examples=100, deadline=None)
@given(hnp.arrays(np.float64, (6, 5), elements=CELLS), st.integers(0, 5))
def test_a_row_counts_alike_whatever_stands_beside_it(rows, index):
    """Sums of single rows, sparse or dense, are those of the table: exactly for votes, up to rounding for rungs."""
    voting, options = np.ones(5, dtype=bool), {"lowest": np.full(5, 0.3), "rungs": np.full(5, 4)}
    singly = sum(of_rows(vote_counts, row[None], voting=voting) for row in rows)
    stored = sparse.csr_array(np.where(rows == 0.0, 0.0, rows))
    for table in (rows, stored):
        np.testing.assert_array_equal(of_rows(vote_counts, table, voting=voting), singly)
        expected = sum(of_rows(rung_sums, row[None], **options) for row in rows)
        np.testing.assert_allclose(of_rows(rung_sums, table, **options), expected, rtol=1e-12, atol=1e-300)


def test_bins_are_those_of_the_logarithm():
    sizes = 2.0 ** np.random.default_rng(0).uniform(-59.9, 59.9, size=(500, 1))
    counts = of_rows(vote_counts, sizes, voting=np.ones(1, dtype=bool))[0]
    np.testing.assert_array_equal(counts, np.histogram(np.log2(sizes), bins=80, range=(-60, 60))[0])


# ---- What a run spends ---------------------------------------------------------------------------------------------


def neighbours(kind, n=2_000, d=4):
    rng = np.random.default_rng(len(kind))
    X = rng.standard_normal((n, d)) * 10.0 ** np.arange(-2, d - 2) + 5.0
    other = X.copy()
    X[7], other[7] = {"far": (1e12, -1e12), "not finite": (np.nan, 1e9), "still": (X[8], X[8] + 1e-9)}[kind]
    return X, other


@pytest.mark.parametrize("kind", ["far", "not finite", "still"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"center": False},
        {"bounds": {0: (0, 1), 2: (-9, 9)}},
        {"bounds": (-50.0, 50.0)},
        {"scale": {0: 0.01, 3: 10.0}, "bounds": {1: (0, 1)}},
        {"scale": [1.0, 2.0, 3.0, 4.0]},
    ],
    ids=str,
)
@pytest.mark.parametrize("epsilon", [1.0, 20.0])  # one rung, and all
@pytest.mark.filterwarnings("ignore::privspan.WeakPrivacyWarning")
def test_a_whole_run_spends_no_more_than_mu(kind, options, epsilon):
    budget = {"epsilon": epsilon, "delta": 1e-6}

    def run(X):
        return private_scales(X, **budget, **options, rng=3)

    assert spent_by(run, *neighbours(kind)) <= Budget(**budget).mu ** 2


def test_a_run_nearly_spends_mu_when_one_record_decides():
    X = np.ones((2_000, 4))
    other = X.copy()
    X[0], other[0] = 1.0 + 1e-9, 1e15
    spent = spent_by(lambda rows: private_scales(rows, **BUDGET, center=False, rng=3), X, other)
    assert 0.9 * MU**2 <= spent <= MU**2


@pytest.mark.parametrize("wrong", ["vote_sensitivity", "ladder_sensitivity"])
def test_a_sensitivity_of_one_is_seen(monkeypatch, wrong):
    monkeypatch.setattr(scales, wrong, lambda _: 1.0)
    X = np.ones((2_000, 4))
    other = X.copy()
    X[0], other[0] = 1.0 + 1e-9, 1e15
    spent = spent_by(lambda rows: private_scales(rows, **BUDGET, center=False, rng=3), X, other)
    assert spent > 1.5 * MU**2


def test_a_clip_from_unreleased_values_is_seen(monkeypatch):

    def exact(differences, voting, ladder, mu, bits):
        return np.abs(differences).max(axis=0)[voting], np.ones(int(voting.sum()), dtype=bool)

    monkeypatch.setattr(scales, "_voted_clips", exact)
    X = np.random.default_rng(0).standard_normal((2_000, 4))
    other = X.copy()
    other[0] = 1e12
    spent = spent_by(lambda rows: private_scales(rows, **BUDGET, center=False, rng=3), X, other)
    assert spent > MU**2


# ---- How good they are ---------------------------------------------------------------------------------------------


def mixed(n, d, seed):
    """Half Gaussian, a quarter log-normal, a quarter 0/1, in units from 1e-3 to 1e6, far from zero."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    sort = np.arange(d) % 4  # 0, 1 Gaussian, 2 log-normal, 3 0/1
    X[:, sort == 2] = np.exp(rng.uniform(0.5, 1.0, (sort == 2).sum()) * X[:, sort == 2])
    X[:, sort == 3] = X[:, sort == 3] > 0.8
    X[:, sort < 3] = (X[:, sort < 3] + 10.0) * 10.0 ** rng.uniform(-3, 6, (sort < 3).sum())
    return X, sort


def test_scales_of_every_sort_of_column():
    X, sort = mixed(60_000, 20, 1)
    errors = np.log2(private_scales(X, **BUDGET, center=False, rng=2).scale / X.std(axis=0))
    for kind, most in ((0, 0.15), (1, 0.15), (2, 0.3), (3, 0.15)):
        assert np.sqrt(np.mean(errors[sort == kind] ** 2)) < most


def test_a_long_tail_is_not_cut_off():
    """What the ladder is for: with a single clip these columns are more than half an octave short."""
    rng = np.random.default_rng(5)
    X = np.exp(rng.standard_normal((100_000, 8)))
    errors = np.log2(private_scales(X, **BUDGET, center=False, rng=6).scale / X.std(axis=0))
    assert np.sqrt(np.mean(errors**2)) < 0.25


def test_the_stated_noise_is_the_noise():
    """For booleans, which have one rung; pairs are drawn alike in all runs."""
    X = np.random.default_rng(0).random((4_000, 30)) < 0.5
    known, ledgers = public_columns(X, 30), [MuLedger(Budget(**BUDGET)) for _ in range(20)]
    found = [
        scales.column_scales(
            X, ledger, replace(open_streams(0), noise=open_streams(seed).noise), known, votes=0.0, moments=1.0
        )
        for seed, ledger in enumerate(ledgers)
    ]
    values = np.array([released.scale for released in found])
    stated = np.median([released.std for released in found])
    assert (values / values.mean(axis=0)).std() == pytest.approx(stated, rel=0.15)


def test_the_same_release_wherever_the_rows_are(tmp_path):
    X, _ = mixed(9_000, 4, 3)
    np.save(tmp_path / "X.npy", X)
    expected = private_scales(X, **BUDGET, rng=4)
    for table in (np.asfortranarray(X), open_rows(tmp_path / "X.npy"), X.tolist()):
        again = private_scales(table, **BUDGET, rng=4)
        np.testing.assert_allclose(again.scale, expected.scale, rtol=1e-5)
        np.testing.assert_allclose(again.mean, expected.mean, rtol=1e-5)
    lengths = [3_000, 4_097, 1, 1_902]
    here = private_scales(partition_rows(X, lengths), **BUDGET, rng=4)
    there = private_scales(da.from_array(X, chunks=(tuple(lengths), 4)), **BUDGET, rng=4)
    np.testing.assert_array_equal(here.scale, there.scale)
    np.testing.assert_array_equal(here.mean, there.mean)
    np.testing.assert_allclose(np.log2(here.scale / X.std(axis=0)), 0.0, atol=0.7)
    thin = private_scales(sparse.csr_array(X), **BUDGET, center=False, rng=4).scale
    np.testing.assert_allclose(thin, private_scales(X, **BUDGET, center=False, rng=4).scale, rtol=1e-5)


def test_public_bounds_let_few_rows_do():
    X = np.random.default_rng(0).uniform(0.0, 1.0, (500, 3)) * [1.0, 120.0, 1e5]
    with pytest.raises(ValueError, match="`bounds=`"):
        private_scales(X, epsilon=0.5, delta=1e-6)
    released = private_scales(X, **BUDGET, bounds=[(0, 0, 0), (1, 120, 1e5)], rng=0)
    assert released.found.all()
    np.testing.assert_allclose(released.scale / X.std(axis=0), 1.0, atol=0.4)


def test_public_scales_are_kept_and_cost_nothing():
    X = np.random.default_rng(0).standard_normal((4_000, 3)) * [1.0, 10.0, 100.0]
    known = public_columns(X, 3, scale={1: 7.0})
    ledger, alone = MuLedger(Budget(**BUDGET)), MuLedger(Budget(**BUDGET))
    released = scales.scales_within(ledger, X, known, open_streams(0))
    scales.scales_within(alone, X[:, [0, 2]], public_columns(X, 2), open_streams(0))
    assert released.scale[1] == 7.0
    assert released.std[1] == 0.0
    assert released.found.all()
    assert ledger.shares == alone.shares
    assert ladder_sensitivity(np.array([7, 0, 7])) == ladder_sensitivity(np.array([7, 7]))
    untouched = MuLedger(Budget(**BUDGET))
    every = scales.scales_within(untouched, X, public_columns(X, 3, scale=[1, 10, 100]), open_streams(0))
    np.testing.assert_array_equal(every.scale, [1.0, 10.0, 100.0])
    assert untouched.shares == ()
    assert scales.scale_shares(0, public_columns(X, 3, scale=[1, 10, 100]), MU) == (0.0, 0.0)


def test_the_mean_has_it_all_where_scales_are_public():
    X = np.random.default_rng(0).standard_normal((2_000, 3)) + 4.0
    released = private_scales(X, **BUDGET, scale=[1, 1, 1], rng=0)
    assert (released.mean_std < private_scales(X, **BUDGET, rng=0).mean_std).all()
    assert not any("scales" in part.name for part in released.cost.parts)
    with pytest.raises(ValueError, match="`scale` must leave"):
        private_scales(X, **BUDGET, scale=[1, 1, 1], center=False)


def test_what_a_row_counts_for_does_not_depend_on_the_type_of_the_table():
    """float32 cells are taken as they are; differences, finiteness and clips are those of float64."""
    X = np.random.default_rng(0).standard_normal((5_000, 3)).astype(np.float32)
    X[3], X[10, 1] = np.float32(3e38), np.nan
    X[4] = -X[3]  # the difference of both overflows in float32 only
    narrow = private_scales(X, **BUDGET, center=False, rng=4)
    np.testing.assert_array_equal(narrow.scale, private_scales(X.astype(float), **BUDGET, center=False, rng=4).scale)


@pytest.mark.parametrize(
    ("pair", "counts"),
    [((1.7e308, 1.6e308), True), ((1.7e308, -1.7e308), False), ((np.inf, np.inf), False), ((np.nan, 1.0), False)],
)
def test_finiteness_is_that_of_the_difference(pair, counts):
    """Decided after the subtraction, for every column by itself, dense and sparse."""
    rows = np.column_stack([pair, [1.0, 0.0]])
    for table in (rows, sparse.csr_array(rows)):
        sizes = scales._sizes(scales.pair_differences(table, 0))[0].ravel()
        assert (sizes > 0.0).tolist() == [counts, True]


def test_a_sparse_table_is_never_filled(monkeypatch):
    X = sparse.random_array((6_000, 40), density=0.3, rng=0, format="csr")
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    monkeypatch.setattr(sparse.csr_array, "todense", None)
    released = private_scales(X, **BUDGET, center=False, scale={0: 1.0}, rng=0)
    viewed = in_units(X, released.scale)
    assert sparse.issparse(viewed)
    assert viewed.nnz == X.nnz


def test_a_mean_far_away_is_found():
    X = np.random.default_rng(0).standard_normal((6_000, 3)) + np.array([1e4, 0.0, -3.0])
    released = private_scales(X, **BUDGET, rng=0)
    np.testing.assert_allclose(released.mean, X.mean(axis=0), atol=0.3)
    assert (np.abs(released.mean - X.mean(axis=0)) < 5.0 * released.mean_std + 0.02).all()


def test_partitions_without_a_pair_are_refused():
    with pytest.raises(ValueError, match="at least two rows in one of its partitions"):
        private_scales(partition_rows(np.ones((3, 2)), [1, 1, 1]), **BUDGET)


def test_noise_does_not_pass_for_a_vote():
    """Constant columns: some column of a table is voted for with probability 1/1000 at most, and then measured."""
    zeros, voting = np.zeros((10, 5)), np.ones(5, dtype=bool)
    votes = [scales._voted_clips(zeros, voting, True, MU, open_streams(seed).noise)[1] for seed in range(400)]
    assert np.any(votes, axis=1).sum() <= 3


def test_columns_of_few_values_are_clipped_where_they_are():
    """All votes in one bin: the ladder starts where it begins, a single clip is where it ends."""
    rng = np.random.default_rng(0)
    flags = np.abs(np.diff(rng.random((40_000, 2)) < 0.1, axis=0).astype(float))
    counts = of_rows(vote_counts, flags, voting=np.ones(2, dtype=bool))
    for ladder, expected in ((True, 1.0), (False, 2.0**1.5)):
        clips, seen = scales.clips_from_votes(counts, 100.0, ladder)
        np.testing.assert_array_equal(clips, expected)
        assert seen.all()
    assert not scales.clips_from_votes(counts, counts.max() / 5.0, True)[1].any()
