"""People near a subspace that need not go through zero: what one record can do, and what is found."""

import math

import numpy as np
import pytest
from everyday_replay import BY_A_DRAW, DELTA, near, replayed
from runs import seeded

from privspan import NotPrivateWarning, PrivatePCA, private_pca
from privspan.audit.tables import last_replaced
from privspan.datasets import gaussian_subspace
from privspan.privacy import Budget, mu_from_budget
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.reading import Reading
from privspan.rows import partition_rows
from privspan.rows.door import open_table
from privspan.stable import near as near_course
from privspan.stable.near import _cut, _Measured, _off, can_be_near, most_are_near, most_off
from privspan.stable.records import group_grams, public_groups
from privspan.subspace import Subspace
from privspan.sums import adaptive
from privspan.sums.estimate import Estimate, constant_last

MU = mu_from_budget(1.0, DELTA)


@pytest.fixture(scope="module")
def people():
    X, truth = gaussian_subspace(4_000, 24, 2, gamma_w=0.1, rng=0)
    return X + 3.0, truth


HOSTILE = {
    "zero": np.zeros(24),
    "tiny": np.full(24, 1e-200),
    "huge": np.full(24, 1e300),
    "far": 1e3 * np.eye(24)[0],
    "nan": np.full(24, np.nan),
    "infinite": np.full(24, np.inf),
    "off the subspace": 3.0 + 5.0 * np.eye(24)[5],
}


@pytest.mark.parametrize("row", HOSTILE)
def test_no_replacement_costs_more_than_mu(people, row):
    X, _ = people
    assert near(X).course == "near a subspace"
    spent, same = replayed(*last_replaced(X, X[-1], HOSTILE[row]), near)
    assert same
    assert spent <= MU**2 * (1 + 1e-9)


def test_no_replacement_costs_more_than_mu_where_float32_is_added_up_and_a_draw_is_polished(people, spied):
    """Whether the row is in the draw, and pays for the search and for polishing, or not."""
    X, mu, all_spent = people[0].astype(np.float32), mu_from_budget(8.0, DELTA), []
    calls = spied(near_course, "polished_centre")

    def run(table, rng):
        return near(table, rng, epsilon=8.0, tuning=BY_A_DRAW)

    for row in np.array([np.zeros(24), 1e30 * np.eye(24)[0], np.full(24, np.nan)], dtype=np.float32):
        for place in range(0, 4_000, 500):
            spent, same = replayed(*last_replaced(np.roll(X, place, axis=0), X[place - 1], row), run)
            assert same
            assert spent <= mu**2 * (1 + 1e-9)
            all_spent.append(spent)
    assert {rows.shape[0] for _, (rows, *_), _ in calls} == {1_000}
    assert min(all_spent) < 0.99 * max(all_spent)


COURSES = {
    "few people": (2_000, 50, 3, 0.3, 1.0, 1.0),
    "wide": (6_000, 300, 2, 0.1, 1.0, 1.0),
    "weak directions": (10_000, 60, 4, 0.1, 100.0, 1.0),
    "plain finish": (2_000, 300, 3, 0.3, 1.0, 0.7),
}


@pytest.mark.parametrize("name", COURSES)
def test_no_replacement_costs_more_than_mu_on_other_courses(name):
    n, d, k, gamma_w, condition, epsilon = COURSES[name]
    X, _ = gaussian_subspace(n, d, k, gamma_w=gamma_w, condition=condition, rng=0)
    steps = []

    def run(table, rng):
        look = near(table + 1.0, rng, k=k, epsilon=epsilon)
        steps.append(tuple(step for step, _ in look.shares))
        assert look.course == "near a subspace"
        return look

    for row in (np.zeros(d), np.full(d, 1e300), np.full(d, np.nan), 1e3 * np.eye(d)[5]):
        spent, same = replayed(*last_replaced(X, X[-1], row), run)
        assert same
        assert spent <= mu_from_budget(epsilon, DELTA) ** 2 * (1 + 1e-9)
    assert len(set(steps)) == 1
    assert "centre" in steps[0][steps[0].index("near a subspace?") :]  # it is polished


def test_the_other_courses_are_what_they_are_called(monkeypatch):
    seen = []

    def told(*arguments, **options):
        release = adaptive.adaptive_within(*arguments, **options)
        seen.append((release.parameters["course"], tuple(step for step, _ in release.parameters["shares"])))
        return release

    monkeypatch.setattr("privspan.stable.course.adaptive_within", told)
    for n, d, k, gamma_w, condition, epsilon in COURSES.values():
        X, _ = gaussian_subspace(n, d, k, gamma_w=gamma_w, condition=condition, rng=0)
        near(X + 1.0, k=k, epsilon=epsilon)
    assert [course for course, _ in seen] == ["localised", "localised", "localised", "Analyze Gauss"]
    assert ["preconditioned look" in steps for _, steps in seen] == [False, False, True, False]


def test_a_table_that_is_not_near_pays_for_the_question_and_goes_on():
    X = np.random.default_rng(0).standard_normal((4_000, 24)) * np.linspace(2.0, 1.0, 24) + 3.0
    look = near(X)
    assert look.course in ("one look", "two looks")
    assert dict(look.shares)["near a subspace?"] < 0.04
    for row in HOSTILE.values():
        spent, same = replayed(*last_replaced(X, X[-1], row), near)
        assert same
        assert spent <= MU**2 * (1 + 1e-9)


@pytest.mark.parametrize("but_first", [False, True])
def test_a_record_moves_the_count_by_one_group_at_most(people, but_first):
    rows = open_table(people[0][:600]).with_constant(np.full(24, 3.0), 0.5)
    groups = public_groups(600, 7, np.random.default_rng(0))
    before = np.concatenate([_off(grams, 3, but_first) for grams in group_grams(open_table(rows), groups)])
    for row in HOSTILE.values():
        other = people[0][:600].copy()
        other[17] = row
        changed = open_table(other).with_constant(np.full(24, 3.0), 0.5)
        after = np.concatenate([_off(grams, 3, but_first) for grams in group_grams(open_table(changed), groups)])
        moved = np.flatnonzero(before != after)
        assert len(moved) <= 1
        assert all(17 in groups[group] for group in moved)


def test_the_count_is_of_rows_near_a_subspace_and_not_of_equal_rows(people):
    """Groups with a few rows many times must not pass for a subspace."""
    few_kinds = np.random.default_rng(0).integers(0, 2, (4_000, 24)).astype(float)
    few_kinds = few_kinds[np.random.default_rng(1).integers(0, 40, 4_000)]  # forty kinds of people
    for table, expected in ((people[0], True), (few_kinds, False)):
        rows = open_table(table).with_constant(table.mean(axis=0), 0.4 * np.median(np.linalg.norm(table, axis=1)))
        assert most_are_near(open_table(rows), 2, 400, 0.06, 1.0, seeded(0)) is expected


def test_what_all_rows_have_in_common_does_not_pass_for_a_subspace(people):
    """Far from their centre, any rows are near one direction; off that, these are near nothing, and people are."""
    ball = np.random.default_rng(0).standard_normal((4_000, 24))
    for table, expected in ((ball, False), (people[0], True)):
        rows = open_table(table + 40.0).with_constant(np.zeros(24), 10.0)
        assert most_are_near(open_table(rows), 2, 400, 0.06, 1.0, seeded(0))
        assert most_are_near(open_table(rows), 2, 400, 0.06, 1.0, seeded(0), but_first=True) is expected


def test_the_cut_of_an_exact_subspace_gives_directions_variances_and_mean():
    rng = np.random.default_rng(3)
    axes = np.linalg.qr(rng.standard_normal((9, 2)))[0]
    X = rng.standard_normal((50_000, 2)) * [3.0, 1.0] @ axes.T + rng.standard_normal(9)
    rows = np.column_stack([X, np.full(len(X), 0.7)])
    basis = np.linalg.svd(rows[:500], full_matrices=False)[2][:3].T  # (10, 3)
    cut = _cut(_Measured(basis, basis.T @ rows.T @ rows @ basis / len(X), 0.0, 0.0), 0.7, 1.0)
    assert Subspace(cut.basis).distance(Subspace(axes)) < 1e-9
    np.testing.assert_allclose(cut.variances, np.linalg.eigvalsh(np.cov(X.T))[:-3:-1], rtol=1e-3)
    np.testing.assert_allclose(cut.point, X.mean(axis=0), atol=1e-9)


def test_private_pca_takes_the_course_and_says_so(people):
    X, truth = people
    release = private_pca(X, 2, epsilon=1.0, delta=1e-6, rng=0)
    assert release.parameters["course"] == "near a subspace"
    plain = private_pca(X - 3.0, 2, epsilon=1.0, delta=1e-6, center=False, rng=0)
    assert Subspace(release.subspace.basis).distance(truth) < 2.0 * max(plain.subspace.distance(truth), 0.005)
    assert np.abs(release.extras["mean"] - X.mean(axis=0)).max() < 0.1
    np.testing.assert_allclose(release.extras["explained_variance"], 1.0, atol=0.3)
    assert release.extras["captured_variance"] > 0.95
    assert "cannot be bounded" in Reading(release).whole_rows  # no count of clipped rows is released


def test_it_is_the_same_wherever_the_rows_are(people, tmp_path):
    X, _ = people
    np.save(tmp_path / "rows.npy", X)
    here = near(X)
    for table in (np.load(tmp_path / "rows.npy", mmap_mode="r"), partition_rows(X, [1_500, 2_500])):
        there = near(table)
        assert there.course == here.course
        assert Subspace(there.basis).distance(Subspace(here.basis)) < 0.02  # Groups are other ones in partitions.


def test_the_test_of_stable_leverage_is_paid_for_on_every_path():
    """Where it may be made, its delta is set aside, whether or not the table turns out to be near a subspace."""
    budget = Budget(1.0, 1e-6)
    for gamma_w in (1e-3, 1.0):
        X, _ = gaussian_subspace(4_000, 500, 3, gamma_w=gamma_w, rng=0)
        share = near_course.test_share(open_table(X), 3, budget)
        assert share > 0.0
        cost = private_pca(X + 0.1, 3, epsilon=1.0, delta=1e-6, rng=0).cost
        aside = [part.delta for part in cost.parts if part.mu is None]
        assert aside == [MuLedger(budget, test_share=share).set_aside]


@pytest.mark.parametrize("size", [1.0, 1e20, 1e150])
@pytest.mark.parametrize("k", [1, 2])
def test_there_is_an_answer_where_one_direction_is_all_there_is(size, k):
    rng = np.random.default_rng(7)
    X = np.where(rng.random((2_500, 1)) < 0.5, 1.0, -1.0) * rng.standard_normal(12) * 3.0 * size
    for seed in range(5):
        assert private_pca(X, k, epsilon=1.0, delta=1e-6, rng=seed).subspace is not None


def test_where_it_is_not_worth_asking_nothing_is_asked():
    X = np.zeros((4_000, 8))
    assert not can_be_near(open_table(X), 3, MU)  # hardly any room off a subspace
    assert not can_be_near(open_table(np.zeros((300, 50))), 3, MU)
    model = PrivatePCA(3, epsilon=1.0, delta=1e-6, random_state=0)
    with pytest.warns(NotPrivateWarning):
        assert "near a subspace?" not in {part.name for part in model.fit(X + 1.0).release_.cost.parts}


def test_a_tail_as_heavy_as_one_direction_is_near_where_columns_are_many():
    X, truth = gaussian_subspace(10_000, 50, 3, gamma_w=1.0, rng=1)
    release = private_pca(X + 0.3, 3, epsilon=1.0, delta=DELTA, rng=1)
    assert release.parameters["course"] == "near a subspace"
    assert Subspace(release.subspace.basis).distance(truth) < 0.023  # two looks: 0.026
    many = {k: most_off(10_000, 50, k, MU) for k in (2, 3, 5, 20)}
    assert 0.06 == many[20] < many[5] < many[3] == many[2] == 0.205
    assert most_off(10_000, 23, 3, MU) == most_off(1_000, 50, 3, MU) == 0.06
    assert most_off(1_000, 400, 3, MU) < 0.01
    assert most_off(10_000, 50, 3, MU, 0.5) == pytest.approx(0.75 * many[3])  # the error of the centre is no tail
    assert most_off(10_000, 50, 3, MU, math.inf) == 0.06


def test_weak_components_are_not_mixed_with_strong_ones_while_the_mean_is_carried_along():
    X, truth = gaussian_subspace(10_000, 100, 10, gamma_w=0.1, condition=100.0, rng=40)
    release = private_pca(X + 0.3, 10, epsilon=1.0, delta=DELTA, rng=1_040)
    assert release.parameters["course"] == "near a subspace"
    assert Subspace(release.subspace.basis).distance(truth) < 0.025  # formerly 0.065


def test_with_the_constant_last_the_other_directions_follow_their_spread():
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.standard_normal((9, 4)))[0]
    eigenvalues = np.array([8.0, 4.0, 2.0, 1.0])
    estimate = Estimate(basis, np.diag([4.0, 3.0, 2.0, 1.0]), eigenvalues)
    turned = constant_last(estimate)
    assert np.allclose(turned.basis[-1, :-1], 0.0)
    turn = basis.T @ turned.basis
    assert np.allclose(turn.T @ turn, np.eye(4))
    moment = (turn.T * eigenvalues) @ turn  # of the turned coordinates
    assert np.allclose(moment[:-1, :-1], np.diag(turned.eigenvalues[:-1]))
    assert np.all(np.diff(turned.eigenvalues[:-1]) <= 0.0)
    assert np.allclose(turned.precision, turn.T @ estimate.precision @ turn)
