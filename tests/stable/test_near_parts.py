"""What the course near a subspace hands from one part to the next: constants, bars, rounds, errors and the mean."""

import math
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from everyday_replay import DELTA, near
from runs import seeded

from privspan.datasets import gaussian_subspace
from privspan.privacy import mu_from_budget
from privspan.rows.door import open_table
from privspan.rows.source import RowSource
from privspan.stable import near as near_course
from privspan.stable.near import NearCourse, can_be_near, most_are_near, most_off, probe_share
from privspan.sums import adaptive, rounds
from privspan.sums.centre import Centre
from privspan.sums.estimate import Estimate
from privspan.sums.off_constant import OffConstant

MU = mu_from_budget(1.0, DELTA)


@pytest.fixture(scope="module")
def people():
    return gaussian_subspace(6_000, 60, 5, gamma_w=0.1, rng=0)[0] + 1.0


def test_the_cut_knows_the_constant_of_the_rows(people, spied):
    looked, cuts = spied(RowSource, "with_constant"), spied(near_course, "_cut")
    look = near(people, k=5)
    asked, rows, cut = (arguments for _, arguments, _ in (*looked, *cuts))
    assert rows[2] == cut[1] == pytest.approx(0.44 / math.sqrt(5) * look.about["typical_length"])
    assert asked[2] > rows[2]


def test_the_bar_knows_the_error_of_the_centre(people, spied):
    calls = spied(near_course, "most_off", "most_are_near")
    near(people, k=5)
    (_, (*_, error, _), bar), (_, asked, _) = calls
    assert 0.0 < error < 1.0
    assert asked[3] == bar < most_off(6_000, 60, 5, MU)


def test_no_record_is_in_two_groups():
    ids, asked = np.arange(5_000.0)[:, None] + np.zeros(20), []

    def made(drawn):
        asked.append(drawn[:][:, 0])
        return drawn

    most_are_near(open_table(ids), 2, 300, 0.5, 1.0, seeded(0), made=made)
    assert len(np.unique(asked)) == 300 * 8


@pytest.mark.parametrize("error", [0.5, 0.6])
def test_with_very_little_data_a_centre_that_is_hardly_found_is_not_asked_about(error, spied):
    calls = spied(near_course, "most_are_near")
    course(1_300, 400)(Centre(np.zeros(400), error, 1.0, 0.9, None, True))
    assert len(calls) == (error == 0.5)


class Known:
    """A noisy second moment that has been revealed as a whole."""

    noise, complete = 1.0, True

    def __init__(self, matrix):
        self.basis, self.image = np.eye(len(matrix)), matrix


def test_a_mean_that_is_all_noise_is_taken_for_a_tenth_of_itself():
    matrix = np.diag(np.r_[np.ones(99), 50.0])
    matrix[:-1, -1] = matrix[-1, :-1] = 0.9 * np.random.default_rng(0).standard_normal(99)
    found = OffConstant(Known(matrix)).mean_direction(100).basis
    np.testing.assert_allclose(found[:-1, 0] / found[-1, 0], 0.1 * matrix[:-1, -1] / 50.0)


@pytest.mark.parametrize("square", [0.0, -3.0, 1e-300])
def test_noise_in_the_constants_own_square_does_no_harm(square):
    matrix = np.ones((100, 100))
    matrix[-1, -1] = square
    seen = OffConstant(Known(matrix))
    mean = seen.mean_direction(1_000)
    assert np.abs(seen.image).max() <= 2.0
    assert 0.0 < mean.eigenvalues[0] <= 1.0
    assert 0.0 < mean.precision[0, 0] < np.inf


def test_a_constant_column_takes_no_square_matrix():
    class Wide:
        noise, complete = 1.0, False
        basis = image = np.zeros((5_000, 0))

        def extend(self, block):
            assert np.array_equal(np.flatnonzero(block[:, 0]), [4_999])  # before any other
            assert not block[-1, 1:].any()
            return True

    tracemalloc.start()
    OffConstant(Wide()).extend(np.ones((5_000, 2)))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_the_error_is_that_of_the_components(people, monkeypatch, spied):
    monkeypatch.setattr(Estimate, "error_but_last", property(lambda self: 0.0123))
    calls = spied(near_course, "course_within")
    near(people, k=5)
    assert calls[0][2].parameters["expected_error"] == 0.0123


def test_the_constant_is_light_in_the_last_round_only_and_slopes_know_it(people, spied):
    calls = spied(rounds, "whitening", "localised_sums", "local_slope")
    near(people, k=5)
    lights = [arguments[2] for name, arguments, _ in calls if name == "whitening"]
    assert lights == [1.0] * (len(lights) - 1) + [0.1]
    sums, slopes = (
        [arguments[2] for name, arguments, _ in calls if name == one] for one in ("localised_sums", "local_slope")
    )
    assert all(one is other for one, other in zip(sums, slopes, strict=True))


def test_what_is_looked_for_is_planned_without_the_constant(people, spied):
    calls = spied(adaptive.planner, "first_share", "plan_rounds")
    near(people, k=5)
    (_, first, _), (_, later, _), *_ = calls
    assert first[2] == 5
    assert later[3] == 6  # one round more for one direction more


def test_what_is_explained_has_the_constant(people, spied):
    calls = spied(adaptive._Course, "_pairs")
    near(people, k=5)
    look = calls[0][2]
    assert len(look.explained) == look.stands_out + 1


def course(n, d, k=3):
    run = seeded(0, 1.0, DELTA)
    return NearCourse(open_table(np.broadcast_to(0.0, (n, d))), k, run, run)


def test_polishing_looks_at_all_rows_where_it_pays(monkeypatch):
    handed = []
    monkeypatch.setattr(near_course, "polished_centre", lambda *given: handed.append(given) or given[1])
    centre = Centre(np.zeros(50), 0.5, 1.0, 0.9, None, True, rows="a few")
    course(10_000, 50)._polished(centre)
    assert handed[0][1].rows is None
    assert handed[0][3] == 0.75
    course(2_000, 1_000)._polished(replace(centre, centre=np.zeros(1_000)))
    assert len(handed) == 1


@pytest.mark.parametrize(("n", "d", "few"), [(300_000, 20, True), (40_000, 20, True), (100_000, 200, False)])
def test_polishing_goes_on_among_a_draw_that_does_as_well_as_all_rows(spied, n, d, few):
    calls, one, rng = spied(near_course, "polished_centre"), course(n, d), np.random.default_rng(0)
    drawn = open_table(rng.standard_normal((2**14, d)) / np.sqrt(d))
    centre = Centre(np.full(d, 0.1), 0.4, 1.0, 0.9, None, True, rows=drawn.rows(np.full(d, 0.1)), among=drawn)
    polished = one._polished(centre)
    ((_, (table, given, *_), _),) = calls
    assert table is (drawn if few else one.source)
    assert (given.rows is None) != few
    assert not few or np.linalg.norm(polished.centre) < 0.2 < np.linalg.norm(centre.centre)


@pytest.mark.parametrize("change", [{"located": False}, {"length": 2.0**63}])
def test_a_centre_that_is_lost_while_it_is_polished_is_not_taken(monkeypatch, change):
    monkeypatch.setattr(near_course, "polished_centre", lambda *given: replace(given[1], **change))
    centre = Centre(np.zeros(50), 0.5, 1.0, 0.9, None, True)
    assert course(10_000, 50)._polished(centre) is centre


def test_the_question_costs_4_percent_at_most_and_has_noise_of_a_fifth_at_most():
    asked = [n for n in range(300, 3_000, 10) if can_be_near(open_table(np.broadcast_to(0.0, (n, 40))), 3, MU)]
    assert asked
    for n in asked:
        share = probe_share(n, 40, 3, MU)
        assert share <= 0.04
        assert 1.0 / (MU * math.sqrt(share)) <= near_course._groups(n, 40, 3, MU) / 5 * (1 + 1e-9)


def test_neither_a_guess_nor_the_constant_is_counted_as_found():
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((24, 3)))[0]
    X = rng.standard_normal((4_000, 3)) * [1.0, 1.0, 0.0] @ axes.T + 1e-2 * rng.standard_normal((4_000, 24)) + 1.0
    assert near(X, 2, k=3).stands_out == 2


def test_the_mean_is_no_worse_than_the_centre(spied):
    calls = spied(RowSource, "with_constant")
    X = gaussian_subspace(10_000, 100, 10, gamma_w=0.1, rng=0)[0] + 1.0
    look = near(X, 50, k=10)
    mean, centre = (np.linalg.norm(found - X.mean(axis=0)) for found in (look.mean.value, calls[-1][1][1]))
    assert mean <= 1.1 * centre
    assert mean <= 2.0 * np.linalg.norm(look.mean.std)
    truth, noise = np.linalg.eigvalsh(np.cov(X.T))[-10:].sum(), math.sqrt(10) * look.variances.std
    assert look.variances.value.sum() == pytest.approx(truth, abs=3.0 * noise)
