"""Second moments of clipped rows that are summed up before the clip is known: what they are, and what they cost."""

import math
from copy import copy
from functools import partial

import folding
import numpy as np
import pytest
from everyday_replay import BY_A_DRAW, DELTA, fitted, numbers, replayed
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import seeded
from sources import limited

from privspan._lib.watch import watching_rows
from privspan.audit.replay import spent_by
from privspan.privacy import mu_from_budget
from privspan.rows.limits import Limits
from privspan.rows.scaling import clip_scale, row_scales
from privspan.rows.unit import Rows
from privspan.sums import early_gram
from privspan.sums.early_gram import ClippedGram, EarlyGram, fits_early
from privspan.sums.lengths import LONGEST
from privspan.sums.looks import CONSTANT, AugmentedGram, released_looks

LENGTH, RADIUS = 2.0, 3.0  # rows up to 8 are within reach


def rows_of_all_kinds(n=40, d=3, seed=0):
    """Rows shorter than the radius, between it and the reach, beyond it, huge, tiny, zero and broken."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    X[1::5] *= 4.0 / np.linalg.norm(X[1::5], axis=1)[:, None]
    X[2::9] *= 100.0
    X[3], X[4], X[5], X[6], X[7] = 1e100, 1e-200, 0.0, np.nan, [np.inf, *np.ones(d - 1)]
    X[8], X[9] = [8.0, *np.zeros(d - 1)], [RADIUS, *np.zeros(d - 1)]  # on both borders
    return X


def clipped(X, radius=RADIUS, length=LENGTH, rows=None):
    return ClippedGram(EarlyGram(Rows(X) if rows is None else rows, length), radius, CONSTANT)


class ReadAgain(Rows):
    """Rows that count those that are read a second time, by request."""

    def stored(self, numbers):
        self.counts = [*getattr(self, "counts", []), len(numbers)]
        return super().stored(numbers)


@pytest.mark.parametrize("radius", [1.5, RADIUS, 20.0])
def test_lemma_3_the_error_of_a_chunk_is_below_its_bound(radius):
    assert folding.early_error_over_charge(rows_of_all_kinds(), LENGTH, radius) < 1.0


def test_rows_of_float32_that_are_read_again_are_those_of_before():
    """To the last bit: what is taken out again must be what was put in."""
    assert folding.read_again_off() == 0.0


@pytest.mark.parametrize("radius", [1.5, RADIUS, 20.0])
def test_they_are_the_second_moments_of_rows_clipped_at_once(radius):
    X = rows_of_all_kinds(300)
    (early,) = clipped(X, radius).products()
    (plain,) = AugmentedGram(Rows(X, clip=radius), [None]).products(None)
    np.testing.assert_allclose(early, plain, atol=1e-11)


@pytest.mark.parametrize(("radius", "longest"), [(RADIUS, 8.0 / 3.0), (20.0, 1.0), (0.5, 16.0)])
def test_rounding_is_charged_by_the_formula_of_lemma_3(radius, longest):
    rows, u = 2**16, 2.0**-53
    exact = (1.0 + CONSTANT**2) * rows * (rows + 16) * u * (2.0 * longest**2 + 1.0)
    assert exact <= clipped(rows_of_all_kinds(), radius).chunk_error() <= 1.02 * exact


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e6])
def test_rows_within_reach_are_those_up_to_four_typical_lengths(unit):
    X = unit * np.array([[1.0, 0.0], [7.99, 0.0], [8.01, 0.0], [0.0, 1e3], [0.0, 1e-130 / unit**0.5]])
    X = np.vstack([X, unit * np.array([[7.9, np.nan], [8.1, np.inf], [np.nan, np.nan]])])
    assert clipped(X, RADIUS * unit, LENGTH * unit)._early.beyond.tolist() == [2, 3, 4, 6, 7]


def test_rows_with_gaps_are_summed_up_in_the_first_pass():
    """A table in which everybody has a gap is not read twice."""
    X = np.random.default_rng(0).standard_normal((5_000, 4))
    X[np.arange(5_000), np.arange(5_000) % 4] = np.nan
    rows = ReadAgain(X)
    (early,) = clipped(X, rows=rows).products()
    plain = sum(AugmentedGram(Rows(X, clip=RADIUS), [None]).products(None))
    np.testing.assert_allclose(early, plain, atol=1e-10)
    assert sum(rows.counts) < 500


def test_rows_that_are_read_again_are_read_a_few_at_a_time():
    rows = ReadAgain(50.0 * np.random.default_rng(0).standard_normal((3_000, 200)))
    list(clipped(None, rows=rows).products())
    assert sum(rows.counts) == 3_000
    assert max(rows.counts) <= 512


def test_a_row_that_is_read_again_is_clipped_as_it_would_be_alone(monkeypatch):
    """Even if the last bit of a squared length by BLAS were that of the place in memory."""
    sound = np.vecdot
    monkeypatch.setattr(np, "vecdot", lambda a, b: sound(a, b) * (1.0 + 2.0**-52 * (np.arange(len(a)) % 2)))
    rows = 10.0 * np.random.default_rng(0).standard_normal((20, 5))
    alone = np.vstack([early_gram._clipped(row[None, :], RADIUS) for row in rows])
    assert np.array_equal(early_gram._clipped(rows, RADIUS), alone)


def test_chunks_are_those_of_the_row_numbers():
    X = np.random.default_rng(0).standard_normal((20_000, 3)) * 1.2
    X[[0, 8191, 8192, 16_384, 19_999]] *= 50.0
    sums = list(clipped(X, rows=Rows(X, limits=Limits(early_rows=8192))).products())
    assert len(sums) == 3
    for at, found in enumerate(sums):
        part = Rows(X[8192 * at : 8192 * (at + 1)], clip=RADIUS)
        np.testing.assert_allclose(found, sum(AugmentedGram(part, [None]).products(None)), atol=1e-10)


def test_a_short_row_has_the_factor_of_the_clip_to_the_last_bit():
    squares = np.array([1e-30, 4.0, RADIUS**2])
    for d in (1, 20, 256):
        assert (row_scales(squares, d, RADIUS)[0] == clip_scale(RADIUS, d)).all()


ENTRIES = st.floats(allow_nan=True, allow_infinity=True, width=64)
ROWS = st.lists(ENTRIES | st.floats(-9.0, 9.0), min_size=3, max_size=3)


def spent(row, other, mus=(0.8, 0.6)):
    X = np.vstack([rows_of_all_kinds(12), row])

    def looked(table, rng):
        list(released_looks(clipped(table), mus, seeded(rng), CONSTANT, None))

    return spent_by(looked, X, np.vstack([X[:-1], other]))


@settings(max_examples=60, deadline=None)
@given(ROWS, ROWS)
def test_lemma_3_a_replacement_costs_the_squares_of_the_mus(row, other):
    assert spent(row, other) <= 1.0 + 1e-9


@pytest.mark.parametrize("length", [RADIUS, 7.9, 1e5])
def test_lemma_3_is_sharp(length):
    angle = math.acos(-(CONSTANT**2))
    worst = spent([length, 0.0, 0.0], [length * math.cos(angle), length * math.sin(angle), 0.0])
    assert 0.999 < worst <= 1.0 + 1e-9


def test_rows_that_nobody_measures_are_beyond_reach():
    """Lengths are not told apart beyond a cap, and a clip may be further out: such rows are scaled one by one."""
    X = np.vstack([np.ones((5, 2)), [[2.0**66, 0.0]]])
    gram = clipped(X, 2.0**65, 2.0**63)
    assert gram._early.reach == LONGEST
    assert gram._early.beyond.tolist() == [5]
    (total,) = gram.products()
    assert total[0, 0] == pytest.approx(1.0)


def test_how_many_rows_are_read_again_shows_nowhere():
    X = np.random.default_rng(0).standard_normal((5_000, 3))
    seen = []
    for long_rows in (0, 3_000):
        table = X.copy()
        table[:long_rows] *= 10.0
        gram, rows = clipped(table), []
        with watching_rows(rows.append):
            list(gram.products())
        seen.append(rows)
    assert seen[0] == seen[1]
    assert sum(seen[0]) == len(X)


def test_public_numbers_decide_whether_sums_are_held():
    assert fits_early(10**6, 20)
    assert fits_early(10**7, 256)
    assert not fits_early(10**8, 256)


@pytest.fixture
def drawn():
    """Return a table whose centre is searched for in a public draw, so that the look begins with the lengths."""
    return np.random.default_rng(5).standard_normal((6_000, 6)) * [5.0, 3.0, 1.0, 1.0, 1.0, 1.0] + 4.0


by_a_draw = partial(fitted, tuning=BY_A_DRAW)


def test_a_look_that_began_early_is_the_look(drawn):
    early, plain = by_a_draw(drawn), by_a_draw(limited(drawn, early_entries=0))
    assert early.course == plain.course == "clipped look"
    assert not np.array_equal(numbers(early), numbers(plain))  # it did begin early
    np.testing.assert_allclose(numbers(early), numbers(plain), rtol=3e-5, atol=1e-6)  # rounding is charged


def test_a_file_gives_the_same_bits(drawn, tmp_path):
    np.save(tmp_path / "X.npy", drawn)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert np.array_equal(numbers(by_a_draw(mapped)), numbers(by_a_draw(drawn)))


@pytest.mark.parametrize("length", [9.0, 15.0, 22.0, 40.0, 1e6])
def test_no_replacement_costs_more_than_mu(drawn, length):
    """Rows from within the clip to beyond reach."""
    neighbour = drawn.copy()
    drawn[-1], neighbour[-1] = 4.0 + length * np.eye(6)[2:4]
    spent, same = replayed(drawn, neighbour, by_a_draw)
    assert same
    assert 0.1 * mu_from_budget(1.0, DELTA) ** 2 < spent <= mu_from_budget(1.0, DELTA) ** 2 * (1 + 1e-9)


def test_nothing_is_changed_in_place():
    X = rows_of_all_kinds(100)
    before = X.copy()
    early = EarlyGram(Rows(X), LENGTH)
    sums = copy(early.sums[0])
    (first,), (second,) = (list(ClippedGram(early, RADIUS, CONSTANT).products()) for _ in range(2))
    assert np.array_equal(first, second)
    assert np.array_equal(early.sums[0], sums)
    assert np.array_equal(X, before, equal_nan=True)
