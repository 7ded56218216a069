"""Everyday PCA: what one record can do to each of its parts and to whole runs, and what it finds."""

import math
import tracemalloc
from dataclasses import replace
from fractions import Fraction
from functools import cache, partial

import numpy as np
import pytest
from everyday_replay import BY_A_DRAW, DELTA, fitted, numbers, replayed
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import seeded
from scipy import sparse

import privspan as ps
from privspan._lib.watch import watching_rows
from privspan.audit import replay
from privspan.privacy import mu_from_budget
from privspan.privacy.randomness import open_streams
from privspan.privacy.reading import Reading
from privspan.rows import partition_rows
from privspan.rows.about import SPREAD, CentredSparseRows
from privspan.rows.door import open_table
from privspan.rows.source import HeldRows, as_source
from privspan.rows.unit import Rows
from privspan.sums import centre, everyday, lazy_looks
from privspan.sums.centred_gauss import CentredGauss
from privspan.sums.everyday_tuning import EVERYDAY, EverydayTuning
from privspan.sums.judge import _candidates, captured, is_clear, leading
from privspan.sums.lengths import bisected_radius, lengths_of
from privspan.sums.looks import CONSTANT, AugmentedGram, Look, released_looks

MU = mu_from_budget(1.0, DELTA)


@cache
def table(n=3000, d=6, offset=3.0, seed=0, uneven=0.0, kind=np.float64, strong=(1.0,)):
    """Normal rows with an offset, some longer than others if they are to be uneven, and some columns stronger."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, d)) * np.linspace(3.0, 0.5, d)
    rows[:, : len(strong)] *= strong
    return (rows * np.exp(uneven * rng.standard_normal((n, 1))) + offset).astype(kind)


def adversaries(d, far, huge=1e300):
    """Rows that somebody might have: none at all, tiny, huge, broken, opposite."""
    axis, aside = far * np.eye(d)[:2]
    rows = {"zero": np.zeros(d), "tiny": np.full(d, 1e-200), "huge": np.full(d, huge), "far": axis, "aside": aside}
    return {**rows, "opposite": -axis, "nan": np.full(d, np.nan), "infinite": np.full(d, np.inf)}


LONG_AND_WIDE = {"n": 12_000, "d": 300, "strong": (60.0, 60.0)}
COURSES = {
    "pairs": ("pairs", {}, {"n": 150}),
    "pairs, mean and scale measured": ("pairs", {}, {"n": 645, "d": 256}),
    "centre not found": ("centre not found", {"epsilon": 0.7}, {"n": 600, "offset": 1e9}),
    "one look": ("one look", {"epsilon": 0.3}, {"n": 1500, "d": 12}),
    "two looks": ("two looks", {}, {}),
    "two looks, far from zero": ("two looks", {}, {"offset": 1e5}),
    # Wide tables are asked for few directions; with a larger k, for enough to tell what a replacement costs.
    "pairs, wide": ("pairs", {"k": 40}, {"n": 500, "d": 300}),
    "one look, wide": ("one look", {}, {"n": 1600, "d": 300}),
    "one look, lengths alike": ("one look", {"k": 40}, {"n": 3300, "d": 300}),
    "two looks, wide": ("two looks", {"k": 40}, {"n": 3300, "d": 300, "uneven": 0.5}),
    "two looks, wide, float32": ("two looks", {"k": 40}, {"n": 3300, "d": 300, "uneven": 0.5, "kind": np.float32}),
    "clipped look": ("clipped look", {"epsilon": 3.0}, {"n": 20_000}),
    "clipped look, wide": ("clipped look", {"epsilon": 50.0}, LONG_AND_WIDE),
    "unit rows later, wide": ("two looks", {"epsilon": 50.0, "k": 3}, LONG_AND_WIDE),
    "public centre": ("two looks", {"around": np.full(6, 2.5)}, {}),
    "public start": ("two looks", {"around": np.full(6, -50.0), "search": True}, {}),
    "public centre, little data": ("one look", {"around": np.full(6, 2.5)}, {"n": 150}),
}


@pytest.mark.parametrize("name", COURSES)
def test_no_replacement_costs_more_than_mu_along_any_course(name):
    course, options, shape = COURSES[name]
    X, run = table(**shape), partial(fitted, **options)
    assert run(X).course == course
    budget = mu_from_budget(options.get("epsilon", 1.0), DELTA) ** 2
    rows = adversaries(X.shape[1], 1e3 + 2 * shape.get("offset", 3.0), 1e30 if X.dtype == np.float32 else 1e300)
    costs = []
    pairs = (("far", "aside"), ("nan", "huge"), ("far", "opposite"), ("zero", "far"), ("tiny", "infinite"))
    for first, second in pairs[: 2 if X.shape[1] > 200 else 5]:
        one, other = X.copy(), X.copy()
        one[-1], other[-1] = rows[first], rows[second]
        spent, same = replayed(one, other, run)
        assert same, "something that is released depends on more than the released sums"
        assert spent <= budget * (1 + 1e-9)
        costs.append(spent / budget)
    assert max(costs) > 0.3  # the pairs are bad enough to tell


def test_polishing_and_a_lost_centre_are_replayed_too():
    """A heavy tail and a share of rows elsewhere, so that rounds go on after the centre was found."""
    rng = np.random.default_rng(3)
    X = rng.standard_t(1.5, (2500, 5)) + np.where(rng.random((2500, 1)) < 0.3, 40.0, 0.0)
    rounds = set()
    for seed in range(4):
        other = X.copy()
        other[0] = -1e6
        spent, same = replayed(X, other, partial(fitted, epsilon=0.6), seed=seed)
        assert same
        assert spent <= mu_from_budget(0.6, DELTA) ** 2 * (1 + 1e-9)
        rounds.add(fitted(X, seed, epsilon=0.6).about["rounds"])
    assert max(rounds) >= 2


# ---- What one record can do to each step: the lemmas ---------------------------------------------------------------

ENTRIES = st.floats(allow_nan=True, allow_infinity=True, width=64)
ROWS = st.lists(ENTRIES, min_size=3, max_size=3)


def spent_by(run, row, other, rest=5):
    """Replay one step on tables that differ in one row."""
    X = np.vstack([np.arange(3.0 * rest).reshape(rest, 3), row])
    neighbour = np.vstack([X[:-1], other])
    return replay.spent_by(run, X, neighbour)


def about_two(length=3.0):
    return centre.Centre(np.full(3, 2.0), 1.0, length, length, None, True)


def counted(X, rng):
    return bisected_radius(
        lengths_of(open_table(X).rows(np.full(3, 2.0), keep=False, single=True)),
        3.0,
        0.25,
        4,
        1.0,
        seeded(rng),
        far=4.0,
    )


@given(row=ROWS, other=ROWS)
@settings(max_examples=60, deadline=None)
def test_lemma_1_all_counts_of_a_bisection_together_cost_mu(row, other):
    assert spent_by(counted, row, other) <= 1.0 + 1e-9


def test_lemma_1_is_sharp():
    assert spent_by(counted, [2.0, 2.0, 2.0], [1e9, 0.0, 0.0]) == pytest.approx(1.0)


@given(row=ROWS, other=ROWS)
@settings(max_examples=60, deadline=None)
def test_lemma_1_a_sum_of_squares_of_factors_costs_its_share(row, other):
    def squared(X, rng):
        source = open_table(X)
        course = everyday.EverydayCourse(source, 1, seeded(rng, 1.0, DELTA))
        course._sum_of_squares(
            np.minimum(lengths_of(open_table(source).rows(None, keep=False, single=True)) / 4.0, 1.0)
        )
        shares.append(dict(course.run.account.shares)["mean square"])

    shares = []
    assert spent_by(squared, row, other) <= shares[0] * MU**2 * (1 + 1e-9)


@given(row=ROWS, other=ROWS)
@settings(max_examples=60, deadline=None)
def test_lemma_2_a_step_of_the_centre_costs_mu(row, other):
    assert (
        spent_by(lambda X, rng: centre.mean_step(open_table(X), about_two(), 1.0, seeded(rng)), row, other)
        <= 1.0 + 1e-9
    )


def test_lemma_2_is_sharp():
    def step(X, run):
        return centre.mean_step(open_table(X), about_two(), 1.0, run)

    cost = spent_by(lambda X, rng: step(X, run=seeded(rng)), [1e9, 2.0, 2.0], [-1e9, 2.0, 2.0])
    assert cost == pytest.approx(1.0, rel=1e-6)


def revealed(X, rng, then, mus=(2.0, 1.0), second=None):
    """Wide looks at three columns, the second direction a function of what the first has shown unless it is given.

    After that direction there is a second look, unless there are two from the beginning.
    """
    lengths, run = lengths_of(open_table(X).rows(None, keep=False, single=True)), seeded(rng)
    factors, first = np.minimum(lengths / 4.0, 1.0), np.array([[1.0], [1.0], [0.0]])
    begun = {"first": first, "columns": 3, "passes": 4, "unit": then == "both at once"}
    looks = CentredGauss(Rows(X), factors, CONSTANT, mus, run, **begun)
    looks.extend(looks.image(0) if second is None else second)
    if then == "once more":
        looks.strengthen()
    elif then == "unit rows":
        looks.look_at_unit_rows()
    looks.extend(np.eye(3)[:, :1])
    return looks


SECOND_LOOKS = pytest.mark.parametrize("then", ["both at once", "unit rows", "once more"])


@SECOND_LOOKS
@given(row=ROWS, other=ROWS)
@settings(max_examples=60, deadline=None)
def test_lemma_3_wide_looks_cost_the_squares_of_their_mus(then, row, other):
    assert spent_by(partial(revealed, then=then), row, other) <= 5.0 * (1 + 1e-9)


@SECOND_LOOKS
def test_lemma_3_is_sharp_for_wide_looks_too(then):
    angle = math.acos(-(CONSTANT**2))
    pair = 9.0 * np.array([[1.0, 0.0, 0.0], [math.cos(angle), math.sin(angle), 0.0]])
    assert spent_by(partial(revealed, then=then), *pair) == pytest.approx(5.0, rel=1e-3)


@SECOND_LOOKS
def test_wide_looks_are_the_matrices_they_stand_for(then):
    X = np.random.default_rng(0).standard_normal((6000, 3)) + 0.3
    looks = revealed(X, 0, then, mus=(1e5, 1e4))
    lengths = np.linalg.norm(X, axis=1)
    for number, least in enumerate((4.0, 0.0)[: len(looks.noises)]):
        rows = X / np.maximum(lengths, least)[:, None]
        np.testing.assert_allclose(looks.image(number), np.cov(rows.T) * 5999 @ looks.directions, atol=0.05)
    np.testing.assert_allclose(looks.mean, (X / np.maximum(lengths, 4.0)[:, None]).mean(axis=0), atol=1e-4)
    assert looks.directions.shape == (3, 3)
    assert looks.passes == {"both at once": 3, "unit rows": 4, "once more": 3}[then]


@pytest.mark.parametrize("second", [0.5, pytest.param(2.0, marks=pytest.mark.slow)])
def test_a_second_release_of_the_same_moment_averages_the_noise(second):
    """In all directions, those that follow included, and of the mean, by as much as is told."""
    X, errors, means = np.zeros((5, 3)), [], []
    for seed in range(400):
        looks = revealed(X, seed, "once more", mus=(1.0, second), second=np.eye(3)[:, 2:])
        errors.append((looks.basis.T @ looks._moments[0].image)[1:, 1:])  # without the axis of the mean
        means.append(looks._moments[0].image[:3, 0])
    assert looks.noises[0] == pytest.approx((1 + CONSTANT**2) / math.hypot(1.0, second), rel=1e-5)
    off, on = np.array(errors)[:, [0, 0, 1], [1, 2, 2]].std(axis=0), np.diagonal(errors, axis1=1, axis2=2).std(axis=0)
    np.testing.assert_allclose(off, looks.noises[0], rtol=0.15)
    np.testing.assert_allclose(on, math.sqrt(2.0) * looks.noises[0], rtol=0.15)
    np.testing.assert_allclose(np.std(means, axis=0), looks.noises[0], rtol=0.15)
    noise = looks.noises[0] / CONSTANT / 5
    assert 0.81 * noise < looks.mean_noise < 1.000_001 * noise  # less where it is shrunk: sqrt(2 / 3)


@pytest.mark.parametrize("ratio", [0.1, 0.6, 1.0, 7.0, 1e3])
def test_the_noise_after_a_second_release_is_rounded_up(ratio):
    begun = {"first": np.eye(3), "columns": 3, "passes": 1}
    for tenth in range(30):
        mus, bits = (1.0 + 0.01 * tenth, ratio), seeded(0)
        looks = CentredGauss(Rows(np.zeros((5, 3))), np.ones(5), CONSTANT, mus, bits, **begun)
        sigmas = [looks.noises[0], looks._spare[0].sigma]
        looks.strengthen()
        assert Fraction(looks.noises[0]) ** -2 <= sum(Fraction(sigma) ** -2 for sigma in sigmas)


@SECOND_LOOKS
def test_there_is_one_second_look(then):
    looks = revealed(np.zeros((5, 3)), 0, then)
    for again in (looks.strengthen, looks.look_at_unit_rows):
        with pytest.raises((RuntimeError, ValueError)):
            again()


def test_a_later_look_at_unit_rows_takes_a_pass_that_is_charged():
    begun = {"first": np.eye(3)[:, :1], "columns": 3}
    made = partial(CentredGauss, Rows(np.ones((5, 3))), np.ones(5), CONSTANT, (2.0, 1.0), seeded(0))
    looks = made(**begun, passes=2)
    looks.look_at_unit_rows()
    assert not looks.extend(np.eye(3)[:, 1:])
    with pytest.raises(RuntimeError, match="takes a pass"):
        made(**begun, passes=1).look_at_unit_rows()


@pytest.mark.parametrize("name", ["two looks", "clipped look", "clipped look, wide", "unit rows later, wide"])
def test_what_decides_about_a_second_look_was_released(name, monkeypatch):
    """To the last bit the same on a neighbour, and unit rows are looked at later where that is what is tried."""
    _, options, shape = COURSES[name]
    X, told, later = table(**shape), [], []

    def noted(values, noise, d, shortened, tuning):
        told.append((*np.ravel(values), noise, d, shortened))
        return is_clear(values, noise, d, shortened, tuning)

    def noted_look(looks, sound=CentredGauss.look_at_unit_rows):
        later.append(looks)
        sound(looks)

    for module in (everyday, lazy_looks):
        monkeypatch.setattr(module, "is_clear", noted)
    monkeypatch.setattr(CentredGauss, "look_at_unit_rows", noted_look)
    other = X.copy()
    other[-1] = 1e3
    replayed(X, other, partial(fitted, **options))
    assert len(told) >= 2
    assert told[: len(told) // 2] == told[len(told) // 2 :]
    assert len(later) == (2 if "later" in name else 0)


@pytest.mark.parametrize("left", [0.0, 0.4])
def test_what_a_second_release_gains_shows_in_the_estimate(left, monkeypatch):
    _, options, shape = COURSES["clipped look, wide"]
    X, sound, told = table(**shape), CentredGauss.strengthen, captured(0.9, 0.9, 1.1, 0.01, 10)
    monkeypatch.setattr(lazy_looks, "captured", lambda *numbers: told)
    monkeypatch.setattr(CentredGauss, "strengthen", lambda looks: 0.0 * sound(looks) + left)
    assert fitted(X, **options).captured.value == pytest.approx(1.0 - left * (1.0 - told.value))


@pytest.mark.parametrize("k", [290, 299, 300])
def test_nearly_all_of_many_columns_can_be_asked_for(k):
    look = fitted(table(n=4000, d=300), k=k)
    assert look.basis.shape == look.components_std.shape[::-1] == (300, k)
    assert look.captured.value > 0.8


def test_the_last_step_of_a_wide_look_knows_the_trace_of_its_mixture(monkeypatch):
    asked, find = [], lazy_looks.leading_pairs
    monkeypatch.setattr(
        lazy_looks, "leading_pairs", lambda *given, **named: asked.append(named) or find(*given, **named)
    )
    look = fitted(table(d=300, n=6_000))
    assert look.course in ("one look", "two looks", "clipped look")
    assert asked[-1]["trace"] == 1.0  # the shares of looks are over their traces


@pytest.mark.parametrize("name", COURSES)
def test_passes_over_the_rows_are_counted(name):
    _, options, shape = COURSES[name]
    X, seen = table(**shape), []
    with watching_rows(seen.append):
        look = fitted(X, **options)
    # A pass over pairs sees half as many rows.
    pairs = ("pairs" in name) or look.course == "centre not found"
    assert (
        look.about["passes"] == math.ceil(sum(seen) / len(X))
        if not pairs
        else look.about["passes"] >= sum(seen) / len(X)
    )


def test_a_captured_share_has_the_error_of_what_noise_loses():
    told, noisy = captured(90.0, 90.0, 110.0, 0.0, 1000), captured(90.0, 90.0, 110.0, 20.0, 1000)
    assert told.value == noisy.value == pytest.approx(0.9)
    assert 0.02 < told.std < 0.1 < noisy.std < 0.3
    assert captured(100.0, 100.0, 100.0, 0.0, 1000).std == 0.0
    few = captured(90.0, 90.0, 110.0, 0.0, 3)  # a sum of three squares is far from its mean by chance
    assert few.value == told.value
    assert 2.0 * told.std < few.std < 0.1


# ---- What is told --------------------------------------------------------------------------------------------------


def test_counts_of_long_rows_bound_what_lies_beyond_a_clip():
    rng = np.random.default_rng(0)
    lengths = np.sort(np.abs(rng.standard_t(4, 50_000)))
    radius = bisected_radius(lengths, 500.0, 1.0, 5, 1.0, seeded(0), far=700.0, per_octave=4)
    bound, furthest = radius.most_beyond()
    longer = np.minimum(lengths[lengths > radius.radius], furthest)
    beyond = float((longer**2 - radius.radius**2).sum())
    assert furthest >= 2.0 * radius.radius
    assert beyond <= bound < 3.0 * beyond
    assert radius.counts[0] == (0.0, 50_000.0)
    assert replace(radius, counts=radius.counts[:1]).most_beyond() is None


def along_another_axis(share, n=20_000, d=10):
    """Normal rows, a few of which are long along the last axis; the leading directions are then others."""
    rng = np.random.default_rng([3, 3])
    X = rng.standard_normal((n, d)) * np.r_[4.0, 2.5, np.full(d - 2, 0.5)]
    few = rng.random(n) < share
    X[few, -1] += 60.0 * rng.choice([-1.0, 1.0], few.sum())
    return X


@pytest.mark.parametrize("share", [0.01, 0.005])
def test_few_long_rows_are_named_in_the_first_sentence_and_not_overlooked(share):
    X = along_another_axis(share)
    covariance = np.cov(X.T)
    for seed in range(3):
        release = ps.private_pca(X, 2, epsilon=1.0, delta=DELTA, rng=seed)
        basis, told = release.subspace.basis, release.extras
        truth = np.trace(basis.T @ covariance @ basis) / np.linalg.eigvalsh(covariance)[-2:].sum()
        assert "in rows clipped at length" in release.headline
        assert "of 20,000 rows)" in release.headline
        if "longest_counted" in told:
            rows = X - told["centre"]
            rows *= np.minimum(1.0, told["longest_counted"] / np.linalg.norm(rows, axis=1))[:, None]
            further = np.trace(basis.T @ np.cov(rows.T) @ basis) / np.linalg.eigvalsh(np.cov(rows.T))[-2:].sum()
            assert told["captured_variance_at_least"] <= further
        assert truth > 0.95 or told["captured_variance"] > truth + 0.2  # of the clipped rows, not of the table


def test_a_bound_holds_where_there_are_no_long_rows():
    X = np.random.default_rng(5).standard_normal((400_000, 6)) * [4.0, 2.0, 1.0, 0.5, 0.5, 0.5]
    release = ps.private_pca(X, 2, epsilon=1.0, delta=DELTA, rng=0)
    assert 0.5 < release.extras["captured_variance_at_least"] < 1.0
    assert "it would be at least" in Reading(release).whole_rows


@pytest.mark.parametrize(("n", "d", "k"), [(100, 3, 2), (5_000, 4, 2), (5_000, 1, 1)])
def test_nothing_is_found_in_a_table_of_one_value(n, d, k):
    for seed in range(25):
        release = ps.private_pca(np.full((n, d), 3.0), k, epsilon=1.0, delta=DELTA, rng=seed)
        assert release.extras["stands_out"] == 0
        assert "captured_variance" not in release.extras
        assert release.headline == "finds nothing that stands out of the noise"


def test_one_column_is_all_of_the_variance():
    X = np.random.default_rng(0).standard_normal((5_000, 1))
    release = ps.private_pca(X, 1, epsilon=1.0, delta=DELTA, rng=0)
    assert release.extras["captured_variance"] == 1.0
    assert release.extras["captured_variance_std"] == 0.0
    assert "all of the variance" in release.headline


def test_of_isotropic_rows_it_is_said_that_nothing_stands_out():
    X = np.random.default_rng(0).standard_normal((5_000, 12))
    release = ps.private_pca(X, 2, epsilon=1.0, delta=DELTA, rng=0)
    assert release.extras["stands_out"] == 0
    assert "captured_variance" not in release.extras
    assert "nothing that stands out" in release.headline


def test_variances_are_those_of_clipped_rows_within_their_errors():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((3_000, 8)) * [4.0, 2.5, 1.5, *[0.5] * 5] + 3.0
    away = []
    for seed in range(12):
        release = ps.private_pca(X, 2, epsilon=1.0, delta=DELTA, rng=seed)
        told, basis = release.extras, release.subspace.basis
        rows = X - told["centre"]
        rows *= np.minimum(1.0, told["clip"] / np.linalg.norm(rows, axis=1))[:, None]
        covariance = np.cov(rows.T, bias=True)
        variances = np.einsum("ij,ij->j", basis, covariance @ basis)
        away += [*((told["explained_variance"] - variances) / told["explained_variance_std"])]
        away += [*((told["mean"] - told["centre"] - rows.mean(axis=0)) / told["mean_std"])]
        share = variances.sum() / np.linalg.eigvalsh(covariance)[-2:].sum()
        assert abs(told["captured_variance"] - share) <= 3.0 * told["captured_variance_std"] + 0.001
    assert 0.6 < np.std(away) < 1.5
    assert np.mean(np.abs(away) < 2.0) > 0.85


# ---- Lengths -------------------------------------------------------------------------------------------------------


def test_a_length_is_that_of_its_own_row():
    X = table(n=5000)
    before = lengths_of(open_table(X).less(np.arange(6.0)).rows(None, keep=False, single=True))
    np.testing.assert_allclose(before, np.linalg.norm(X - np.arange(6.0), axis=1), rtol=1e-12)
    for row in adversaries(6, 1e100).values():
        changed = X.copy()
        changed[4321] = row
        after = lengths_of(open_table(changed).less(np.arange(6.0)).rows(None, keep=False, single=True))
        assert np.array_equal(np.delete(before, 4321), np.delete(after, 4321))
        assert 0.0 <= after[4321] <= 2.0**64


def test_lengths_from_very_short_to_too_long():
    lengths = lengths_of(
        open_table(np.diag([1e-100, 1e-30, 1.0, 1e10, 1e200, 1e300, np.nan])).rows(None, keep=False, single=True)
    )
    np.testing.assert_allclose(lengths[:4], [1e-100, 1e-30, 1.0, 1e10], rtol=1e-12)
    np.testing.assert_allclose(lengths[4:], [2.0**64, 2.0**64, 0.0])


def test_bisection_finds_the_radius_that_enough_rows_exceed():
    lengths = np.geomspace(1.0, 1024.0, 20_001)
    noise = seeded(0)
    for wanted in (100.0, 5000.0, 15_000.0):
        answer = bisected_radius(lengths, wanted, 1.0, 6, 1.0, noise, far=wanted)
        truth = lengths[-int(wanted)]
        assert abs(math.log2(answer.radius / truth)) <= 0.26
        assert answer.longer == pytest.approx((lengths > answer.radius).sum(), abs=600)
        assert answer.longer_std == pytest.approx(math.sqrt(6.0))
    assert bisected_radius(lengths, 1e6, 4.0, 3, 1.0, noise, far=1e6).lowest


def test_noise_hardly_leads_a_bisection_octaves_astray():
    """Rows of one length, and noise of two and 4.5 deviations from what takes the search far beyond it."""
    search = partial(bisected_radius, np.ones(1000), 20.0, 0.7, 5, math.sqrt(5.0) / 10.0, per_octave=4)
    for far, fewest, most in ((20.0, 3, 60), (45.0, 0, 0)):
        wrong = sum(search(seeded(seed), far=far).radius > 2.5 for seed in range(600))
        assert fewest <= wrong <= most


def test_a_higher_bar_for_far_steps_is_exceeded_by_no_more_rows_than_it_says():
    lengths, noise = np.geomspace(1.0, 1024.0, 20_001), seeded(0)
    for wanted in (100.0, 700.0, 2000.0, 9000.0):
        far, search = 1.5 * wanted, partial(bisected_radius, lengths, low=1.0, steps=6, mu=1e4, run=noise)
        shortest, longest = (search(bar, far=bar).radius for bar in (far, wanted))
        assert shortest <= search(wanted, far=far).radius <= longest


# ---- Looks ---------------------------------------------------------------------------------------------------------


def augmented(row, factor, a=CONSTANT):
    """The whole sum of one row, as the library computes it."""
    rows = Rows(np.array([row]))
    (total,) = AugmentedGram(rows, [np.array([factor])], a).products(None)
    return total


def test_a_replacement_moves_the_augmented_sum_by_no_more_than_is_charged():
    rng = np.random.default_rng(0)
    rows = [*rng.standard_normal((12, 3)), *adversaries(3, 5.0).values(), np.array([1e-5, 0, 0])]
    bound = math.sqrt(2.0) * (1.0 + CONSTANT**2)
    worst = 0.0
    for one in rows:
        for other in rows:
            for factor in (1.0, 0.5, 0.0):
                worst = max(worst, np.linalg.norm(augmented(one, 1.0) - augmented(other, factor)))
    assert worst <= bound * (1 + 1e-12)
    angle = math.acos(-(CONSTANT**2))
    sharp = augmented([1.0, 0.0], 1.0) - augmented([math.cos(angle), math.sin(angle)], 1.0)
    assert np.linalg.norm(sharp) == pytest.approx(bound, rel=1e-9)


def test_the_error_of_a_chunk_is_below_its_bound():
    rng = np.random.default_rng(1)
    X, factors, block = rng.standard_normal((300, 7)), rng.random(300), np.linalg.qr(rng.standard_normal((8, 3)))[0]
    rows = Rows(X)
    gram = AugmentedGram(rows, [factors])
    (whole,), (products,) = gram.products(None), gram.products(block)
    (piece,) = (piece for _, piece in rows.pieces())
    exact = [
        [*(Fraction(float(x)) * Fraction(float(f)) for x in row), Fraction(CONSTANT)]
        for row, f in zip(piece, factors, strict=True)
    ]
    truth = [[sum(row[i] * row[j] for row in exact) for j in range(8)] for i in range(8)]
    off = [[float(truth[i][j] - Fraction(float(whole[i, j]))) for j in range(8)] for i in range(8)]
    assert np.linalg.norm(off) <= gram.chunk_error(0)
    images = [[sum(truth[i][j] * Fraction(float(block[j, c])) for j in range(8)) for c in range(3)] for i in range(8)]
    off = [[float(images[i][c] - Fraction(float(products[i, c]))) for c in range(3)] for i in range(8)]
    assert np.linalg.norm(off) <= gram.chunk_error(3)


def test_looks_are_second_moments_about_the_mean():
    X = table(n=4000, offset=0.4)
    lengths = np.linalg.norm(X, axis=1)
    units, clipped = X / lengths[:, None], X / np.maximum(lengths, 4.0)[:, None]
    for factors, rows in ((None, units), (np.minimum(lengths / 4.0, 1.0), clipped)):
        first, both = released_looks(AugmentedGram(Rows(X), [factors]), [50.0, 80.0], seeded(0), CONSTANT)
        assert not np.allclose(first.moment, both.moment, atol=1e-3)
        check_look(first, rows, 50.0)
        check_look(both, rows, math.hypot(50.0, 80.0))


def check_look(look, rows, mu):
    assert look.noise == pytest.approx((1 + CONSTANT**2) / mu, rel=1e-6)
    np.testing.assert_allclose(look.mean, rows.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(look.moment, np.cov(rows.T) * 3999, atol=1.0)


# ---- Whole runs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("offset", [0.0, 30.0, 1e6])
def test_it_finds_variances_directions_and_the_mean(offset):
    X = table(n=20_000, offset=offset)
    look = fitted(X)
    moment = np.cov(X.T)
    assert look.course in ("two looks", "clipped look")
    assert np.trace(look.basis.T @ moment @ look.basis) > 0.995 * np.linalg.eigvalsh(moment)[-2:].sum()
    np.testing.assert_allclose(look.basis.T @ look.basis, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(look.mean.value, X.mean(axis=0), atol=0.1)
    np.testing.assert_allclose(look.variances.value, np.linalg.eigvalsh(moment)[:-3:-1], rtol=0.1)
    assert look.total.value == pytest.approx(np.trace(moment), rel=0.1)
    assert look.captured.value > 0.98
    assert look.stands_out == 2
    assert 0.99 <= math.fsum(share for _, share in look.shares) <= 1.0


def test_few_long_rows_count_as_they_do_in_pca():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60_000, 20)) * np.r_[3.0, 2.0, np.ones(18)] + 5.0
    X[:2400, -1] += 40.0 * rng.standard_normal(2400)
    moment = np.cov(X.T)
    look = fitted(X)
    assert np.trace(look.basis.T @ moment @ look.basis) > 0.98 * np.linalg.eigvalsh(moment)[-2:].sum()


def test_a_wrong_first_length_is_mended():
    """The first bisection may err; a round that ends at the short end of its search goes on."""
    X = table(n=5000, offset=0.0)
    first = centre.Centre(None, 1e6, 1e6, 1e6, None, False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(centre, "first_length", lambda *arguments: first)
        look = fitted(X)
    assert look.course == "two looks"
    assert look.about["typical_length"] < 10.0


def test_rows_that_cannot_be_used_count_as_rows_at_the_centre():
    X = table(n=2500)
    broken, at_centre = X.copy(), X.copy()
    public = np.full(6, 3.0)
    broken[5], at_centre[5] = np.nan, public
    assert np.array_equal(numbers(fitted(broken, around=public)), numbers(fitted(at_centre, around=public)))


def test_small_tables_claim_nothing_that_was_not_measured():
    look = fitted(table(n=60), epsilon=0.1)
    assert look.course == "pairs"
    assert math.isinf(look.mean.std)
    assert np.isnan(look.variances.value).all()
    assert np.isfinite(look.ratios.value).all()
    assert dict(look.shares) == {"unit look": 1.0}


def test_the_captured_variance_is_estimated_well():
    rng = np.random.default_rng(5)
    off = []
    for seed in range(6):
        X = rng.standard_normal((3000, 20)) * np.geomspace(4.0, 0.5, 20)
        moment = np.cov(X.T)
        look = fitted(X, seed, k=3)
        truth = np.trace(look.basis.T @ moment @ look.basis) / np.linalg.eigvalsh(moment)[-3:].sum()
        off.append(look.captured.value - truth)
        assert 0.0 < look.captured.std < 0.1
    assert np.abs(off).max() < 0.1


# ---- Sparse rows that carry their centre along ---------------------------------------------------------------------


def sparse_table(n=3000, d=40, density=0.2, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.standard_normal((n, d)) * np.linspace(3.0, 0.5, d) + 1.0
    return sparse.csr_array(np.where(rng.random((n, d)) < density, values, 0.0))


def as_fractions(piece):
    """The rows w (x - c) as the numbers they are."""
    scaled, weights, middle = piece._scaled.toarray(), piece._weights, piece._centre
    return [
        [Fraction(float(x)) - Fraction(float(w)) * Fraction(float(c)) for x, c in zip(row, middle, strict=True)]
        for row, w in zip(scaled, weights, strict=True)
    ]


@pytest.mark.parametrize("clip", [None, 1e-3, 2.0, 1e6])
def test_sparse_rows_about_a_centre_are_no_longer_than_one(clip):
    rng = np.random.default_rng(0)
    middle = rng.standard_normal(5) * 10.0
    close = middle * (1 + 1e-16 * np.arange(12)[:, None]) + np.r_[np.zeros(6), 10.0 ** -np.arange(6.0)][:, None]
    special = [*adversaries(5, 1e8).values(), *close, np.full(5, 1e-160), np.full(5, 1e140), -middle, 2 * middle]
    X = sparse.csr_array(np.vstack([np.nan_to_num(rng.standard_normal((20, 5))), *special]))
    (piece,) = (piece for _, piece in CentredSparseRows(X, middle, clip=clip).pieces())
    for row in as_fractions(piece):
        assert sum(entry * entry for entry in row) <= 1
    weights = piece._weights
    with np.errstate(all="ignore"):
        filled = np.where(np.isfinite(X.toarray()), X.toarray(), middle)
        sizes = weights * (np.sqrt((filled**2).sum(axis=1)) + np.linalg.norm(middle))
    assert np.nanmax(np.where(weights > 0, sizes, 0.0)) <= SPREAD


def test_products_with_sparse_rows_are_those_with_the_rows_they_stand_for():
    X, rng = sparse_table(n=300, d=9), np.random.default_rng(1)
    middle = np.asarray(X.mean(axis=0)).ravel() * 1.1
    rows = CentredSparseRows(X, middle)
    (piece,) = (piece for _, piece in rows.pieces())
    exact = np.array([[float(entry) for entry in row] for row in as_fractions(piece)])
    np.testing.assert_allclose(np.linalg.norm(exact, axis=1), 1.0, rtol=1e-9)
    block, factors = rng.standard_normal((10, 3)), rng.random(300)
    augmented = np.hstack([exact * factors[:, None], np.full((300, 1), CONSTANT)])
    gram = AugmentedGram(rows, [factors])
    ((whole,), (products,)) = gram.products(None), gram.products(block)
    np.testing.assert_allclose(whole, augmented.T @ augmented, atol=1e-10)
    np.testing.assert_allclose(products, augmented.T @ (augmented @ block), atol=1e-10)
    np.testing.assert_allclose(piece.sum(axis=0), exact.sum(axis=0), atol=1e-10)
    assert gram.chunk_error(0) < 1e-3
    np.testing.assert_allclose(
        lengths_of(open_table(X).rows(middle, keep=False, single=True)),
        np.linalg.norm(X.toarray() - middle, axis=1),
        rtol=1e-9,
    )


@pytest.mark.parametrize("d", [40, 300])
def test_a_sparse_table_gives_what_the_dense_one_does(d):
    X = sparse_table(n=6000, d=d)
    one, other = fitted(X, epsilon=3.0), fitted(X.toarray(), epsilon=3.0)
    assert one.course == other.course == "two looks"
    # The noise of the sparse one is larger by some ten-thousandths, which its rounding errors are charged for.
    np.testing.assert_allclose(one.mean.value, other.mean.value, atol=1e-3)
    # At 300 columns both directions are guesses; the iteration stops before they have settled among the noise.
    np.testing.assert_allclose(one.variances.value, other.variances.value, rtol=1e-2 if d == 40 else 5e-2)
    assert np.linalg.norm(one.basis @ one.basis.T - other.basis @ other.basis.T) < (1e-2 if d == 40 else 5e-2)


@pytest.mark.parametrize("d", [40, 300])
def test_no_replacement_of_a_sparse_row_costs_more_than_mu(d):
    rows = [1e4 * np.eye(d)[:1], np.full((1, d), np.nan), np.zeros((1, d)), np.full((1, d), 1e200)]
    rest = sparse_table(n=3500, d=d)
    tables = [sparse.csr_array(sparse.vstack([rest, sparse.csr_array(row)])) for row in rows]
    for other in tables[1:]:
        spent, same = replayed(tables[0], other)
        assert same
        assert spent <= MU**2 * (1 + 1e-9)


def test_a_sparse_row_changes_no_other():
    X, middle = sparse_table(n=100, d=6), np.full(6, 0.5)
    (before,) = (piece for _, piece in CentredSparseRows(X, middle).pieces())
    dense = X.toarray()
    for row in adversaries(6, 1e100).values():
        changed = dense.copy()
        changed[50] = row
        (after,) = (piece for _, piece in CentredSparseRows(sparse.csr_array(changed), middle).pieces())
        for one, other in ((before._scaled.toarray(), after._scaled.toarray()), (before._weights, after._weights)):
            assert np.array_equal(np.delete(one, 50, axis=0), np.delete(other, 50, axis=0))


# ---- Where the rows are --------------------------------------------------------------------------------------------


def test_a_memory_map_is_no_different_from_an_array(tmp_path):
    X = table(n=5000)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.array_equal(numbers(fitted(X)), numbers(fitted(mapped)))


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.02}], ids=["two looks", "pairs"])
def test_dask_gives_the_bits_of_partitions_here(options):
    array = pytest.importorskip("dask.array")
    X = table(n=5000)
    here = fitted(partition_rows(X, (2000, 2000, 1000)), **options)
    there = fitted(array.from_array(X, chunks=(2000, 6)), **options)
    assert np.array_equal(numbers(here), numbers(there), equal_nan=True)


def test_a_table_of_float32_gives_what_it_gives_in_float64():
    """But for a hundredth of noise and for rounding; sources, Dask and persons are tested as they are, in float64."""
    X = table(n=4000, d=300, offset=30.0, uneven=0.5, kind=np.float32)
    X[:, :2] *= [12.0, 9.0]
    narrow, wide = (fitted(rows, epsilon=4.0) for rows in (X, X.astype(np.float64)))
    assert narrow.course == wide.course == "two looks"
    np.testing.assert_allclose(narrow.mean.value, wide.mean.value, atol=3.0 * wide.mean.std)
    assert narrow.mean.std == pytest.approx(wide.mean.std, rel=0.03)
    assert np.linalg.svd(narrow.basis.T @ wide.basis)[1].min() > 0.99
    assert np.array_equal(narrow.filled, narrow.filled.astype(np.float32))  # the centre as the rows about it hold it
    assert not np.array_equal(wide.filled, wide.filled.astype(np.float32))


def test_units_are_the_same_wherever_the_rows_are(tmp_path):
    units = np.array([1e-3, 1.0, 10.0, 0.5, 1e6, 2.0])
    X = table(n=3000) * units
    np.save(tmp_path / "X.npy", X)
    tables = (X, sparse.csr_array(X), np.load(tmp_path / "X.npy", mmap_mode="r"), partition_rows(X, (2000, 1000)))
    for kind in tables:
        scaled = open_table(kind).in_units(units)
        if hasattr(scaled, "parts"):
            rows = np.vstack([part() for part in scaled.parts])
        else:
            rows = scaled[:].toarray() if scaled.is_sparse else scaled[:]
        assert np.array_equal(rows, X * (1.0 / units))
        assert fitted(scaled).mean.value == pytest.approx(X.mean(axis=0) / units, abs=0.4)


def test_the_table_is_never_copied():
    """A centre is subtracted piece by piece: no array of the size of the table is ever made."""
    X = table(n=400_000, d=20)
    tracemalloc.start()
    fitted(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.6 * X.nbytes


def test_rounds_have_a_public_cap():
    never_found = EverydayTuning(resolved=math.inf, most_locating=1.0, least_share=1e-6)
    look = fitted(table(n=100_000), epsilon=3.0, tuning=never_found)
    assert look.course == "centre not found"
    assert look.about["rounds"] <= centre.MOST_ROUNDS


def test_courses_are_documented():
    for course in ("pairs", "one look", "clipped look", "two looks"):
        assert course in everyday.__doc__


def _large():
    """Return a table that is searched by a public draw, and the rows of that draw."""
    X = np.random.default_rng(5).standard_normal((6_000, 6)) * [5.0, 3.0, 1.0, 1.0, 1.0, 1.0] + 4.0
    drawn = np.sort(open_streams(0).public.choice(6_000, 1_000, replace=False, shuffle=False))
    return X, drawn


def test_a_large_table_is_searched_by_a_public_draw_at_no_loss():
    X, drawn = _large()
    assert np.array_equal(open_table(X).some(1_000, open_streams(0).public)[:], X[drawn])
    look = fitted(X, tuning=BY_A_DRAW)
    some = (1 + 2 * look.about["rounds"]) * len(drawn) / len(X)
    assert look.about["passes"] == math.ceil(2 + some)  # the lengths of all rows, and the look
    assert look.course == "clipped look"
    assert np.abs(look.mean.value - X.mean(axis=0)).max() < 5.0 * look.mean.std
    assert np.abs(look.basis[:2, :2]).max(axis=0).min() > 0.98


@pytest.mark.parametrize("among", [True, False])
@pytest.mark.parametrize("row", [np.zeros(6), np.full(6, 1e300), np.full(6, np.nan), -40.0 * np.eye(6)[2]])
def test_no_replacement_costs_more_than_mu_where_a_draw_is_searched(among, row):
    X, drawn = _large()
    neighbour = X.copy()
    neighbour[drawn[7] if among else np.setdiff1d(np.arange(6_000), drawn)[7]] = row
    spent, same = replayed(X, neighbour, partial(fitted, tuning=BY_A_DRAW))
    assert same
    assert spent <= MU**2 * (1 + 1e-9)


def test_a_draw_that_depends_on_a_row_is_found_out():
    class ByTheLastRow(HeldRows):
        def some(self, rows, public):
            return as_source(self[int(self[-1:][0, 0] > 0) : 6_000 : 6])

    def run(rows, rng):
        source = ByTheLastRow(rows.shape, rows.dtype, lambda: rows)
        course = everyday.EverydayCourse(source, 2, seeded(rng, 1.0, DELTA))
        return course.looked(course.rough_centre(None, True))

    X, _ = _large()
    neighbour = X.copy()
    neighbour[-1] = -40.0
    X[-1] = 40.0
    spent, _ = replayed(X, neighbour, run)
    assert spent > 2.0 * MU**2


def test_nothing_is_drawn_where_all_rows_are_needed_or_somebody_has_several():
    rng = np.random.default_rng(0)
    for few in (rng.standard_normal((32_000, 4)), sparse.random(70_000, 4, density=0.5, format="csr", rng=rng)):
        source = open_table(few)
        rows = everyday._rows_of_draw(4, MU, EVERYDAY)
        assert source.some(rows, np.random.default_rng(0)) is source
        assert source.is_sparse or source.some(rows // 2, np.random.default_rng(0)).shape == (rows // 2, 4)


def test_directions_of_the_same_variance_are_no_reason_to_fail():
    """LAPACK's solver for a few of them gives up on some of these matrices, and what was paid for would be lost."""
    rng = np.random.default_rng(0)
    for noise in 0.1 * rng.random(30):
        matrix = np.full((20, 20), 0.0441 + noise)
        matrix[np.diag_indices(20)] = 0.0441 + noise * np.sqrt(2.0)
        values, vectors = leading(matrix, 10)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1][:11], rtol=1e-9)
        np.testing.assert_allclose(matrix @ vectors, vectors * values, atol=1e-12)
        fewer, vectors = leading(matrix, 10, beyond=0)
        np.testing.assert_allclose(fewer, values[:10], rtol=1e-9)
        np.testing.assert_allclose(matrix @ vectors, vectors * fewer, atol=1e-12)


def test_with_few_columns_looks_are_mixed_only_where_strong_directions_may_hide_weak_ones():
    rng = np.random.default_rng(0)

    def offered(*variances):
        rows = rng.standard_normal((4_000, len(variances))) * np.sqrt(variances)
        return _candidates(Look(rows.T @ rows, 1.0, np.zeros(len(variances)), 0.0), 2)

    assert offered(4.0, 3.0, 1.0) == (0.0,)
    assert offered(40.0, 3.0, 1.0) == offered(4.0, 3.0, *[0.5] * 22) == EVERYDAY.weights
