"""Every private sum by itself: what it is charged, what it adds, and that a pair of tables uses all of it up."""

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from charges import composed, is_noise_of, watched
from runs import seeded
from scipy import sparse

from privspan.audit.replay import spent_by
from privspan.privacy import Budget
from privspan.rows.door import open_table
from privspan.rows.persons import PersonTable
from privspan.rows.source import as_source
from privspan.rows.unit import CHUNK_ROWS, PersonValues, Rows
from privspan.standard.ranges import RANGES, _histograms
from privspan.sums.analyze_gauss import analyze_gauss
from privspan.sums.gaps import gap_share, released_gaps
from privspan.sums.grid import SumBounds, gaussian_symmetric, noise_level, row_bounds
from privspan.sums.lazy_gauss import LazyGauss, UnitGram
from privspan.sums.lengths import bisected_radius
from privspan.sums.lifts import person_lift, released_weight
from privspan.sums.localised import cross_bounds, geometric_mean, inner_bounds
from privspan.sums.mean import private_mean
from privspan.sums.variance import second_moments, typical_size

OCTAVES = (-4, 4)


def persons(rows, width):
    """A table whose persons have these rows, one after the other."""
    rows = np.asarray(rows, dtype=np.float64)
    return PersonTable(as_source(rows), width, np.arange(len(rows)), rows, len(rows))


# ---- Noise and bounds ----------------------------------------------------------------------------------------------


def test_the_noise_of_a_sum_covers_mathematics_rounding_and_the_grid():
    bounds = SumBounds(3.0, 0.25, 9, 100.0)
    for mu in (0.1, 1.0, 7.0):
        level = noise_level(bounds, mu)
        needed = Fraction(3.0) + 2 * Fraction(0.25) + 3 * Fraction(level.grid)
        assert Fraction(level.sigma) * Fraction(mu) >= needed
        assert level.sigma == pytest.approx(float(needed) / mu, rel=1e-15)
    coarse = noise_level(SumBounds(1.0, 0.0, 2, 1.0), 1.0, grid=0.5)
    assert coarse.sigma == 2.0  # of two entries, whose root is rounded up


def test_symmetric_noise_is_root_two_times_larger_on_the_diagonal():
    level = noise_level(SumBounds(1.0, 0.0, 6, 1.0), 1.0)
    with watched() as seen:
        noisy = gaussian_symmetric(np.eye(3), level, seeded())
    off, on = seen.sigmas
    assert off == level.sigma
    assert Fraction(on) ** 2 >= 2 * Fraction(off) ** 2
    assert on == pytest.approx(math.sqrt(2.0) * off, rel=1e-12)
    assert [one.values.shape for one in seen.added] == [(3,), (3,)]
    assert np.array_equal(noisy, noisy.T)


def test_what_a_record_does_to_means_and_localised_sums():
    assert row_bounds(10, 3).sensitivity == 2.0
    assert cross_bounds(10, 5, 2, 0.25).sensitivity == 0.5
    assert cross_bounds(10, 5, 2, 0.25).entries == 10
    assert inner_bounds(10, 3).sensitivity == 2.0
    assert inner_bounds(10, 3).entries == 6


def test_analyze_gauss_has_noise_of_one_over_mu():
    budget = {"epsilon": 1.0, "delta": 1e-6}
    with watched() as seen:
        analyze_gauss(np.eye(4), 2, **budget, rng=0)
    mu = Budget(**budget).mu
    assert is_noise_of(seen.sigmas[0], 1.0, mu)


def test_a_lazy_matrix_is_looked_at_no_more_often_than_is_charged():
    lazy = LazyGauss(UnitGram(Rows(np.eye(9))), 1.0, seeded(), most_columns=9, most_passes=2)
    told = [lazy.extend(np.eye(9)[:, column : column + 1]) for column in range(3)]
    assert told == [True, True, False]
    assert lazy.basis.shape[1] == 2
    assert lazy.room == 0


def test_a_mean_takes_a_fifth_for_the_length_and_the_rest_for_the_sum():
    budget = {"epsilon": 1.0, "delta": 1e-6}
    with watched() as seen:
        private_mean(np.random.default_rng(0).standard_normal((200, 2)), **budget, rng=0)
    octave, typical, mean = seen.mus
    mu = Budget(**budget).mu
    assert composed(octave, typical) == pytest.approx(math.sqrt(0.2) * mu, rel=1e-12)
    assert composed(octave, typical, mean) == pytest.approx(mu, rel=1e-12)
    assert composed(octave, typical, mean) <= mu


# ---- Typical lengths -----------------------------------------------------------------------------------------------


def test_a_typical_size_shares_its_mu_between_two_steps():
    with watched() as seen:
        typical_size(np.geomspace(0.1, 10.0, 50), OCTAVES, 2.0, seeded())
    assert len(seen.added) == len(seen.mus) == 2
    assert composed(*seen.mus) == pytest.approx(2.0, rel=1e-12)
    assert composed(*seen.mus) <= 2.0


def test_counts_of_octaves_move_by_root_two():
    with watched() as seen:
        typical_size(np.geomspace(0.1, 10.0, 50), OCTAVES, math.sqrt(2.0), seeded())
    octaves, _ = seen.charged
    assert Fraction(octaves.bounds.sensitivity) ** 2 >= 2
    assert octaves.bounds.entries == 9
    assert is_noise_of(seen.sigmas[0], math.sqrt(2.0), octaves.mu)
    one, other = np.full(50, 0.1), np.append(np.full(49, 0.1), 10.0)
    assert spent_by(lambda sizes, rng: typical_size(sizes, OCTAVES, 1.0, seeded(rng)), one, other) <= 1.0


def test_a_logarithm_moves_by_the_width_of_its_range():
    low, high, mu = 0.25, 4.0, 0.5
    with watched() as seen:
        geometric_mean(np.ones(50), low, high, mu, seeded())
    assert is_noise_of(seen.sigmas[0], math.log(high / low), mu)
    one, other = np.append(np.ones(49), 1e-9), np.append(np.ones(49), 1e9)
    spent = spent_by(lambda sizes, rng: geometric_mean(sizes, low, high, mu, seeded(rng)), one, other)
    assert spent == pytest.approx(mu**2, rel=1e-5)
    assert spent <= mu**2


def test_all_of_a_typical_size_is_used_up_by_the_longest_jump():
    """One length crosses octaves and all of the range of the mean: both halves are spent."""
    others = np.repeat([0.7, 1.5, 3.0], [20, 30, 20])  # about octave 0, so that the mean is one of 1/4 to 8
    one, other = np.append(others, 0.3), np.append(others, 7.9)
    spent = spent_by(lambda sizes, rng: typical_size(sizes, OCTAVES, 4.0, seeded(rng)), one, other)
    assert spent == pytest.approx(16.0 * (1 + (math.log(7.9 / 0.3) / math.log(32.0)) ** 2) / 2, rel=1e-5)


def test_bisection_shares_its_mu_between_the_counts():
    with watched() as seen:
        bisected_radius(np.ones(40), 10.0, 0.5, 4, 2.0, seeded(), far=20.0)
    assert len(seen.added) == 4
    assert composed(*seen.mus) == pytest.approx(2.0, rel=1e-12)
    assert composed(*seen.mus) <= 2.0
    assert all(is_noise_of(sigma, 1.0, mu) for sigma, mu in zip(seen.sigmas, seen.mus, strict=True))


# ---- Second moments ------------------------------------------------------------------------------------------------


def test_second_moments_move_by_root_two_jointly():
    """Noise of 1/mu off the diagonal, root two times that on it and on what lies off the subspace."""
    mu = 0.5
    with watched() as seen:
        *_, told = second_moments(Rows(np.eye(4), clip=1.0), np.eye(4, 2), mu, seeded())
    off, on, outside = seen.sigmas
    assert is_noise_of(off, 1.0, mu)
    assert Fraction(off) * Fraction(mu) >= 1
    for sigma in (on, outside):
        assert Fraction(sigma) ** 2 >= 2 * Fraction(off) ** 2
        assert is_noise_of(sigma, math.sqrt(2.0), mu)
    assert told == outside
    (one,) = seen.charged
    assert one.bounds.sensitivity == 1.0
    assert one.bounds.entries == 4


@pytest.mark.parametrize("to", [1, 2])
def test_second_moments_use_their_mu_up(to):
    """A unit row that turns by a right angle, within the subspace or out of it."""
    one, other = np.eye(4)[[2, 0]], np.eye(4)[[2, to]]
    spent = spent_by(lambda X, rng: second_moments(Rows(X, clip=1.0), np.eye(4, 2), 2.0, seeded(rng)), one, other)
    assert spent == pytest.approx(4.0, rel=1e-5)
    assert spent <= 4.0


# ---- Rounding of averages over persons -----------------------------------------------------------------------------


def off_by(seen, exact):
    """By how much the sum of the only chunk is off, in Euclidean norm, squared."""
    (chunk,) = seen.chunks
    pairs = zip(np.ravel(chunk).tolist(), np.ravel(np.array(exact, dtype=object)).tolist(), strict=True)
    return sum((Fraction(got) - wanted) ** 2 for got, wanted in pairs)


def is_charged(seen, exact):
    """The error is there, and no more than is charged."""
    error = off_by(seen, exact)
    assert error > 0, "the test has no rounding to see"
    return error <= seen.charged_error() ** 2


@pytest.mark.parametrize("width", [3, 7])
def test_rounding_of_averaged_gaps_is_charged(width):
    rows = np.zeros((200 * width, 2))
    rows[:: 2 * width] = np.nan  # one slot of every other person
    run = seeded(0, 100.0, 1e-3)
    with watched() as seen:
        assert released_gaps(open_table(persons(rows, width)), np.ones(2, dtype=bool), run) is not None
    assert is_charged(seen, [Fraction(100, width)] * 2)
    assert run.account.shares == (("gaps", gap_share(200, 2, run.account.mu)),)


def test_rounding_of_averaged_votes_is_charged():
    """Differences whose first slots alone have a size: a third of a vote each."""
    rows = np.zeros((100 * 3, 1))
    rows[::3] = 1.0
    with watched() as seen:
        _histograms(persons(rows, 3), np.arange(1), np.array([0.0]), np.array([1.0]), 1.0, seeded(), RANGES)
    (chunk,) = seen.chunks
    exact = [Fraction(round(3 * count), 3) for count in np.ravel(chunk).tolist()]
    assert sum(exact) == 100
    assert is_charged(seen, exact)


def test_rounding_of_averaged_counts_is_charged_in_a_bisection():
    sizes = PersonValues(np.tile([2.0, 0.1, 0.1], 100), 3)
    with watched() as seen:
        bisected_radius(sizes, 10.0, 0.5, 1, 2.0, seeded(), far=20.0)
    assert is_charged(seen, [Fraction(100, 3)])


def test_rounding_of_averaged_counts_is_charged_in_a_typical_size():
    sizes = PersonValues(np.tile([2.0, 0.01, 0.01], 100), 3)
    with watched() as seen:
        typical_size(sizes, OCTAVES, 2.0, seeded())
    counts, _ = seen.chunks
    octaves, _ = seen.charged
    error = max(abs(Fraction(count) - Fraction(100, 3)) for count in counts.tolist() if count)
    assert 0 < error <= Fraction(octaves.bounds.chunk_error)


def test_rounding_of_averaged_logarithms_is_charged():
    sizes = PersonValues(np.tile([0.3, 0.7, 1.9], 1000), 3)
    with watched() as seen:
        geometric_mean(sizes, 0.25, 4.0, 1.0, seeded())
    with mpmath.workprec(200):
        exact = mpmath.fsum(mpmath.log(mpmath.mpf(size) / mpmath.mpf(0.25)) for size in (0.3, 0.7, 1.9)) * 1000 / 3
        error = abs(mpmath.mpf(float(seen.chunks[0][0])) - exact)
        assert 0 < error <= mpmath.mpf(seen.charged[0].bounds.chunk_error)


def test_rounding_of_the_weight_of_persons_is_charged():
    rows = np.tile(np.eye(3), (200, 1)) + np.random.default_rng(0).standard_normal((600, 3)) / 10.0
    lift = person_lift(open_table(persons(rows, 3)).rows(), 0.0)
    with watched() as seen:
        released_weight(lift, 200, 1.0, seeded())
    exact = sum(max(Fraction(factor) ** 2 - 1, Fraction(0)) for factor in lift.factors.slots.tolist()) / 3
    assert is_charged(seen, [exact])
    (one,) = seen.charged
    assert one.bounds.sensitivity == pytest.approx(math.sqrt(3.0) - 1.0)


@pytest.mark.parametrize("width", [2, 3, 8])
def test_a_lift_provides_for_the_rounding_of_its_norm(width):
    """Of equal rows along an axis the norm is known: lifted, it stays below that of a row by all that is charged."""
    opened = open_table(persons(np.eye(1, 4).repeat(width, 0), width)).rows()
    ((_, units),) = opened.pieces()
    lifted = Fraction(float(person_lift(opened, 0.0).factors.slots[0])) ** 2 * Fraction(float(units[0, 0])) ** 2
    charged = Fraction(1.1) * (4 + width * width + 8) * Fraction(2) ** -53  # relative: gamma of every inner product
    assert charged <= 1 - lifted <= charged + Fraction(2) ** -48


@pytest.mark.parametrize("width", [2, 3, 8])
def test_a_lift_of_sparse_rows_about_a_centre_provides_for_more(width):
    """They are made of parts up to 256 times as long, and their inner products are off by that squared."""
    table, centre = sparse.csr_array(3.0 * np.eye(1, 4).repeat(width, 0)), np.array([0.5, 0.0, -0.25, 1.0])
    opened = PersonTable(as_source(table), width, np.arange(width), table, width).rows(centre)
    ((_, piece),) = opened.pieces()
    row = [
        Fraction(x) - Fraction(float(piece._weights[0])) * Fraction(c)
        for x, c in zip(piece._scaled.toarray()[0].tolist(), centre.tolist(), strict=True)
    ]
    lifted = Fraction(float(person_lift(opened, 0.0).factors.slots[0])) ** 2 * sum(entry**2 for entry in row)
    assert 1 - lifted >= 256**2 * (4 + width * width + 8) * Fraction(2) ** -53


def test_rounding_of_sums_of_rows_is_charged_for_a_whole_chunk():
    """Never less than gamma for as many terms as a chunk has, of length 1 each."""
    gamma = CHUNK_ROWS * 2.0**-53
    for bounds in (row_bounds(10, 3), inner_bounds(10, 3), cross_bounds(10, 3, 2, 1.0)):
        assert bounds.chunk_error >= CHUNK_ROWS * gamma
    for run in (
        lambda: geometric_mean(np.ones(5), 0.25, 4.0, 1.0, seeded()),
        lambda: second_moments(Rows(np.eye(4)), np.eye(4, 2), 1.0, seeded()),
    ):
        with watched() as seen:
            run()
        assert seen.charged_error() >= CHUNK_ROWS * gamma
