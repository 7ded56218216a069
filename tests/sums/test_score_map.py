"""The map of scores: its sensitivity, its cells, and what it shows."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

import privspan as ps
from privspan.audit.replay import spent_by
from privspan.privacy import Budget
from privspan.rows import partition_rows
from privspan.sums import score_map
from privspan.sums.score_map import ScoreMap, cells_of, count_bounds

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
PLANE = ps.Subspace(np.eye(4, 2))
SQUARE = ((-1.0, 1.0), (-2.0, 2.0))
NUMBERS = st.floats(allow_nan=True, allow_infinity=True, width=64) | st.floats(-3, 3)
SCORES = hnp.arrays(np.float64, (2, 2), elements=NUMBERS)
GRID = [np.linspace(-1.0, 1.0, 4), np.linspace(-2.0, 2.0, 6)]


def clusters(n: int = 20_000) -> np.ndarray:
    """Two clusters along the first of four axes, at 15 and at 25."""
    rng = np.random.default_rng(0)
    sides = rng.choice([-5.0, 5.0], size=n)
    return rng.standard_normal((n, 4)) * [1.0, 3.0, 0.3, 0.3] + np.outer(sides, [1, 0, 0, 0]) + [20, -7, 3, 0]


# --- Privacy ---------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(SCORES)
def test_one_record_moves_the_counts_by_at_most_the_root_of_two(scores):
    one, other = (np.bincount(cells_of(row[None], GRID), minlength=16) for row in scores)
    assert one.sum() == other.sum() == 1
    assert np.linalg.norm(one - other) <= count_bounds(1, 16).sensitivity


@settings(max_examples=200, deadline=None)
@given(hnp.arrays(np.float64, (30, 2), elements=st.floats(-1.2, 1.2) | st.sampled_from([-1.0, 1.0, 2.0, -2.0])))
def test_cells_are_those_of_an_ordinary_histogram(scores):
    expected, *_ = np.histogram2d(*scores.T, bins=GRID)
    counts = np.bincount(cells_of(scores, GRID), minlength=16)
    np.testing.assert_array_equal(counts[:-1].reshape(3, 5), expected)
    assert counts[-1] == 30 - expected.sum()


@settings(max_examples=200, deadline=None)
@given(SCORES, hnp.arrays(np.float64, 2, elements=st.sampled_from([-1.0, 0.0, 1.0, 2.0])))
def test_one_record_moves_the_counts_by_class_by_at_most_the_root_of_two(scores, classes):
    cells = score_map._of_classes(cells_of(scores, GRID), classes, 15, 3)
    one, other = (np.bincount([cell], minlength=46) for cell in cells)
    assert one.sum() == other.sum() == 1
    assert np.linalg.norm(one - other) <= count_bounds(1, 46).sensitivity


def by_class(X, y, **options):
    return ps.private_score_map(X, PLANE, **BUDGET, classes=y, ranges=((0, 40), (-20, 6)), rng=0, **options)


def test_classes_have_maps_of_their_own_and_all_together_one():
    X = clusters()
    y = np.where(X[:, 0] > 20.0, "right", "left")
    y[:100] = "?"
    picture = by_class(X, y, labels=["left", "right"])
    assert picture.class_counts.shape[0] == 2
    np.testing.assert_array_equal(picture.class_counts.sum(axis=0), picture.counts)
    assert picture.outside == pytest.approx(100, abs=6 * picture.noise + 20)
    left, right = (picture.of(label) for label in ("left", "right"))
    assert left.noise == pytest.approx(picture.noise / math.sqrt(2))
    assert abs(left.n - 9_950) < 600
    middle = np.searchsorted(picture.edges[0], 20.0)
    assert left.smoothed()[middle + 1 :].sum() < 0.05 * left.n < 0.05 * left.smoothed()[: middle + 1].sum() * 2
    assert right.smoothed()[: middle - 1].sum() < 0.05 * right.n
    with pytest.raises(ValueError, match="one of the labels of this map: left, right"):
        picture.of("middle")
    with pytest.raises(ValueError, match="one of the labels of this map: none"):
        left.of("left")


def test_a_map_by_class_spends_no_more_than_mu_and_says_the_same_from_every_container():
    X, _ = neighbours(1)
    y = np.arange(300) % 3
    z = y.copy()
    z[5] = (z[5] + 1) % 3
    mu = Budget(**BUDGET).mu

    def run(table, rng):
        return ps.private_score_map(
            table[:, :-1], PLANE, **BUDGET, classes=table[:, -1], labels=(0, 1, 2), ranges=SQUARE, rng=rng
        )

    assert 0.8 * mu**2 <= spent_by(run, np.column_stack([X, y]), np.column_stack([X, z])) <= mu**2
    expected = by_class(X, y, labels=(0, 1, 2)).class_counts
    parts = partition_rows(X, [100, 200])
    ids = np.arange(300)
    for table, classes in ((X, y.tolist()), (X, y.astype(str)), (parts, y)):
        np.testing.assert_array_equal(by_class(table, classes, labels=(0, 1, 2)).class_counts, expected)
    persons = by_class(X, y, labels=(0, 1, 2), person=ids)
    assert persons.class_counts.sum(axis=(1, 2)) == pytest.approx([100, 100, 100], abs=900)
    assert persons.cost.neighbours == "replace-one-person"


def test_classes_and_labels_go_together():
    X, _ = neighbours(0)
    with pytest.raises(ValueError, match="go together"):
        by_class(X, np.zeros(300))
    with pytest.raises(ValueError, match="`labels` must list two or more"):
        by_class(X, np.zeros(300), labels=[0])
    with pytest.raises(ValueError, match="`classes` must have one entry per row"):
        by_class(X, np.zeros(299), labels=[0, 1])


def neighbours(seed, n=300):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    other = X.copy()
    X[5], other[5] = rng.choice([0.3, 1e6, np.nan]), -0.3
    return X, other


@pytest.mark.parametrize("ranges", [None, SQUARE])
def test_a_whole_run_spends_no_more_than_mu(ranges):
    mu = Budget(**BUDGET).mu

    def run(X, rng):
        return ps.private_score_map(X, PLANE, **BUDGET, ranges=ranges, bins=6, rng=rng)

    spent = [spent_by(run, *neighbours(seed)) for seed in range(6)]
    assert 0.8 * mu**2 <= max(spent) <= mu**2


def test_a_record_reaches_its_own_cell_alone():
    """With the same noise, replacing a record by anything changes two counts, by one each."""
    X, _ = neighbours(1)
    before = ps.private_score_map(X, PLANE, **BUDGET, ranges=SQUARE, bins=8, rng=0)
    for value in (np.nan, np.inf, 1e300, 5e-324, 0.9, -0.9):
        other = X.copy()
        other[7] = value
        after = ps.private_score_map(other, PLANE, **BUDGET, ranges=SQUARE, bins=8, rng=0)
        moved = np.append(after.counts - before.counts, after.outside - before.outside)
        assert np.abs(moved).sum() <= 2.001
        assert np.count_nonzero(np.abs(moved) > 0.5) in (0, 2)


def test_the_noise_is_as_promised():
    maps = [ps.private_score_map(np.zeros((5, 4)), PLANE, **BUDGET, ranges=SQUARE, bins=20) for _ in range(5)]
    noise = np.concatenate([one.counts[:9].ravel() for one in maps])  # the origin is not in these rows
    assert maps[0].noise == pytest.approx(math.sqrt(2.0) / Budget(**BUDGET).mu, rel=1e-3)
    assert noise.std() == pytest.approx(maps[0].noise, rel=0.15)  # 900 draws: six standard errors
    assert maps[0].private
    assert (maps[0].cost.epsilon, maps[0].cost.delta) == (1.0, 1e-6)


# --- What it shows ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"units": {1: 3.0}}, {"scale": True}])
def test_scores_are_those_of_transform(options):
    """Units and centre of the release are respected: with next to no noise the map is the histogram of the scores."""
    X = clusters(4_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ps.PrivatePCA(3, epsilon=1e3, delta=1e-6, **options, random_state=0).fit(X)
        made = ps.private_score_map(X, model, epsilon=1e4, delta=1e-6, components=(2, 0), rng=0)
    scores = model.transform(X)[:, [2, 0]]
    expected, *_ = np.histogram2d(*scores.T, bins=made.edges)
    assert np.abs(made.counts - expected).sum() <= 0.05 * len(X)  # noise of .014 in each of the 4,096 cells
    assert made.outside == pytest.approx(len(X) - expected.sum(), abs=1.0)
    spreads = [edge[-1] for edge in made.edges]
    assert spreads == pytest.approx(3.0 * np.sqrt(model.explained_variance_[[2, 0]]))


def test_gaps_count_as_the_centre_as_they_do_in_transform():
    X = clusters(4_000)
    X[:2_000, 1], X[7] = np.nan, np.inf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ps.PrivatePCA(2, epsilon=1e3, delta=1e-6, units={1: 3.0}, random_state=0).fit(X)
        made = ps.private_score_map(X, model, epsilon=1e4, delta=1e-6, bins=16, rng=0)
    scores = model.transform(X)
    assert np.isfinite(scores).all()
    np.testing.assert_allclose(scores[7], 0.0, atol=1e-9)
    np.testing.assert_allclose(model.transform(sparse.csr_array(X)), scores, atol=1e-9)
    expected, *_ = np.histogram2d(*scores.T, bins=made.edges)
    assert np.abs(made.counts - expected).sum() <= 0.01 * len(X)


def test_two_clusters_are_seen_and_the_gap_between_them():
    X = clusters(2_000)
    release = ps.private_pca(X, 2, epsilon=1.0, delta=1e-6, rng=0)
    picture = ps.private_score_map(X, release, **BUDGET, rng=1)
    along = picture.smoothed().sum(axis=1)
    middle = len(along) // 2
    assert along[middle - 1 : middle + 1].max() < 0.2 * min(along[:middle].max(), along[middle:].max())


def test_without_variances_the_spreads_are_measured_for_a_tenth():
    X = clusters()
    bare = ps.Subspace(np.eye(4, 2), offset=[20.0, -7.0, 0.0, 0.0])
    made = ps.private_score_map(X, bare, **BUDGET, rng=0)
    assert [part.name for part in made.cost.parts] == ["spread 1", "spread 2", "counts"]
    assert made.outside < 0.05 * len(X)
    assert made.counts.shape == (64, 64)  # the most by itself
    for edge, spread in zip(made.edges, (5.1, 3.0), strict=True):
        assert 2.0 * spread < edge[-1] < 6.0 * spread


def test_every_container_gives_the_same_map(tmp_path):
    import pandas as pd

    X = clusters(5_000)
    made = ps.private_score_map(X, PLANE, **BUDGET, rng=0)
    np.save(tmp_path / "people.npy", X)
    for table in (pd.DataFrame(X), np.load(tmp_path / "people.npy", mmap_mode="r"), partition_rows(X, [4096, 904])):
        np.testing.assert_array_equal(ps.private_score_map(table, PLANE, **BUDGET, rng=0).counts, made.counts)
    thin = ps.private_score_map(sparse.csr_array(X), PLANE, **BUDGET, ranges=SQUARE, bins=5, rng=0)
    np.testing.assert_allclose(
        thin.counts, ps.private_score_map(X, PLANE, **BUDGET, ranges=SQUARE, bins=5, rng=0).counts, atol=1e-9
    )


def test_of_persons_with_several_rows_one_is_counted():
    """Their numbers of rows show nowhere: a person with a hundred rows has one cell, like everybody."""
    X, many = clusters(500), np.repeat([0, *range(1, 401)], [100, *[1] * 400])
    made = ps.private_score_map(X, PLANE, epsilon=1e4, delta=1e-6, ranges=((0, 40), (-30, 30)), person=many, rng=0)
    assert made.n == 401
    assert made.counts.sum() + made.outside == pytest.approx(401, abs=5)
    assert made.cost.neighbours != "replace-one"


# --- Post-processing -------------------------------------------------------------------------------------


def a_map(counts, noise=1.0, outside=0.0, n=None):
    counts = np.asarray(counts, float)
    edges = tuple(np.linspace(0.0, 1.0, side + 1) for side in counts.shape)
    n = int(counts.sum()) if n is None else n
    return ScoreMap(counts, edges, outside, noise, n, (0, 1), Budget(**BUDGET).cost(), True)


@settings(max_examples=100, deadline=None)
@given(hnp.arrays(np.float64, (4, 5), elements=st.floats(-50, 50)), st.floats(-10, 120), st.none() | st.floats(0, 5))
def test_smoothed_counts_are_counts_of_people(counts, outside, width):
    smooth = a_map(counts, outside=outside, n=100).smoothed(width)
    assert (smooth >= 0.0).all()
    assert smooth.sum() == pytest.approx(min(max(100 - outside, 0.0), 100.0), abs=1e-9)


def test_the_width_follows_the_noise():
    rng = np.random.default_rng(0)
    hill = 40.0 * np.exp(-0.5 * (np.linspace(-3, 3, 32)[:, None] ** 2 + np.linspace(-3, 3, 32) ** 2))
    errors = {}
    for noise in (0.1, 10.0):
        people = rng.poisson(hill)
        made = a_map(people + noise * rng.standard_normal(hill.shape), noise, n=people.sum())
        errors[noise] = [np.abs(made.smoothed(width) - hill).sum() for width in (0.0, None, 16.0)]
        assert errors[noise][1] <= 1.2 * min(errors[noise])
    assert errors[10.0][1] < 0.5 * errors[10.0][0]


def test_points_fall_where_people_are():
    made = a_map([[0, 0, 80], [0, 0, 0], [20, 0, 0]])
    points = made.sample(500, 3)
    assert points.shape == (500, 2)
    inside, *_ = np.histogram2d(*points.T, bins=made.edges)
    assert inside.sum() == 500
    assert inside[0, 2] > 3 * inside[2, 0] > 0
    with pytest.raises(ValueError, match="nothing to sample from"):
        a_map([[0.0]], outside=10.0, n=5).sample(3)


# --- Refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"components": (0, 2)}, "two different ones of 2"),
        ({"components": (1, 1)}, "two different"),
        ({"components": 3}, "`components` must be two"),
        ({"bins": 0}, "`bins` must be an integer"),
        ({"bins": 2000}, "at most 1024"),
        ({"ranges": (0, 1)}, "two pairs"),
        ({"ranges": ((1, 0), (0, 1))}, "lower one first"),
    ],
)
def test_what_makes_no_sense_is_refused_first(options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        ps.private_score_map(np.zeros((9, 4)), PLANE, **BUDGET, **options)


def test_a_subspace_is_needed_and_its_columns():
    with pytest.raises(ValueError, match="4 columns"):
        ps.private_score_map(np.zeros((9, 3)), PLANE, **BUDGET)
    with pytest.raises(TypeError, match="a Release or a Subspace"):
        ps.private_score_map(np.zeros((9, 4)), np.eye(4), **BUDGET)
    abstained = ps.Release(None, Budget(**BUDGET).cost(), "none")
    with pytest.raises(ValueError, match="abstained"):
        ps.private_score_map(np.zeros((9, 4)), abstained, **BUDGET)


def test_a_map_is_shown_in_one_line_without_its_arrays() -> None:
    counts, edges = np.ones((30, 20)), (np.arange(31.0), np.arange(21.0))
    shown = ScoreMap(counts, edges, 3.0, 1.5, 4_000, (0, 2), ps.PrivacyCost(1.0, 1e-6), True)
    assert repr(shown) == (
        "ScoreMap(30 × 20 cells, components 1 and 3, 4,000 records, each count ± 1.5 (noise), "
        "(1, 1e-06)-DP, replace-one)"
    )
