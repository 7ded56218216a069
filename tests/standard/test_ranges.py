"""Ranges, means and units of columns: what a record can do to them, what is spent, and what is found."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from charges import watched
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from runs import seeded

from privspan import private_scales
from privspan.rows.columns import public_columns
from privspan.rows.door import open_table
from privspan.rows.persons import PersonTable
from privspan.rows.source import as_source
from privspan.rows.unit import CHUNK_ROWS
from privspan.standard import ranges
from privspan.standard.cells import (
    SQUARES,
    CellMoments,
    Winsor,
    cell_bounds,
    cell_moments,
    cell_sums,
    measured_ranges,
    reaches,
    winsor,
)
from privspan.standard.ranges import (
    RANGES,
    Density,
    Ranges,
    RangeTuning,
    bin_counts,
    find_ranges,
    histogram_sensitivity,
)

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
HOSTILE = [0.0, -0.0, 5e-324, 16.0**12, -(16.0**12), 16.0**-8, 1.0, 1e308, -1e308, np.nan, np.inf, -np.inf]
CELLS = st.sampled_from(HOSTILE) | st.floats(allow_nan=True, allow_infinity=True) | st.floats(-100, 100)
UNIT = st.floats(-1.0, 1.0) | st.sampled_from([-1.0, 0.0, 1.0, 2.0**-30])
LOW = np.array([np.nan, -3.0, 0.0, 1e300, -1e-300])
HIGH = np.array([np.nan, 3.0, 1e-12, 1.5e300, 1e-300])


def counts_of(rows):
    return bin_counts(rows, columns=np.arange(5), low=LOW, high=HIGH, bins=41)


def found_in(X, *, epsilon=1.0, seed=0, tuning=RANGES, **known):
    X = np.asarray(X)
    public = public_columns(X, X.shape[1], **known)
    run = seeded(seed, epsilon)
    return find_ranges(open_table(X), public, run, 0.5, tuning), public, run.account


# ---- Lemma 2: histograms -------------------------------------------------------------------------------------------


@settings(max_examples=300, deadline=None)
@given(hnp.arrays(np.float64, (2, 5), elements=CELLS))
def test_a_record_is_in_one_bin_of_a_column_and_moves_histograms_by_the_bound(rows):
    one, other = (counts_of(row[None]) for row in rows)
    for row, counted in zip(rows, (one, other), strict=True):
        assert set(np.unique(counted)) <= {0.0, 1.0}
        assert (counted.sum(axis=1) <= np.isfinite(row)).all()
    assert ((one - other) ** 2).sum() <= 2 * 5
    assert Fraction(histogram_sensitivity(5)) ** 2 >= 2 * 5


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float64, (6, 5), elements=CELLS))
def test_a_cell_counts_alike_whatever_stands_beside_it(rows):
    np.testing.assert_array_equal(counts_of(rows), sum(counts_of(row[None]) for row in rows))


def test_the_bound_of_histograms_is_attained():
    one, other = (counts_of(np.full((1, 5), cell)) for cell in (-1e13, 1e13))
    assert ((one - other) ** 2).sum() == 2 * 4  # all but the column whose bins both lie below
    first = {"columns": np.array([0]), "low": LOW[:1], "high": HIGH[:1], "bins": 41}
    one, other = (bin_counts(np.array([[x]]), **first) for x in (1, 99))
    assert ((one - other) ** 2).sum() == 2


@settings(max_examples=60, deadline=None)
@given(hnp.arrays(np.float64, (2, 8, 5), elements=CELLS))
def test_persons_move_histograms_as_rows_do(slots):
    """Counts are averaged over the slots of a person."""
    one, other = (
        sum(open_table(PersonTable(as_source(rows), 8, np.arange(8), rows, 8)).sums(counts_of, exact=True))
        for rows in slots
    )
    assert ((one - other) ** 2).sum() <= 10 * (1 + 1e-12)


# ---- Lemma 3: cells and their squares ------------------------------------------------------------------------------


def distance(v, w, weight):
    v, w = Fraction(v), Fraction(w)
    return (v - w) ** 2 + (weight * (v * v - w * w)) ** 2


@settings(max_examples=300, deadline=None)
@given(UNIT, UNIT)
def test_a_cell_and_its_square_have_diameter_two(v, w):
    for weight in (SQUARES, Fraction(float(SQUARES))):
        assert distance(v, w, weight) <= 4


@settings(max_examples=200, deadline=None)
@given(
    hnp.arrays(np.float64, (2, 4), elements=CELLS),
    hnp.arrays(np.float64, 4, elements=st.floats(-1e12, 1e12)),
    hnp.arrays(np.float64, 4, elements=st.floats(1e-12, 1e12)),
)
def test_cells_are_cut_off_and_a_record_moves_their_sums_by_the_bound(rows, centre, reach):
    made = winsor(ranges.Ranges(centre, reach, np.zeros(4, bool)), reach)
    cells = made(rows)
    assert np.isfinite(cells).all()
    assert np.abs(cells).max() <= 1.0
    assert not cells[~np.isfinite(rows)].any()  # a gap is at the centre
    one, other = (cell_sums(row[None], winsor=made, columns=np.arange(4)) for row in rows)
    bounds = cell_bounds(2, 4)
    assert Fraction(bounds.sensitivity) ** 2 >= 4 * 4
    assert np.linalg.norm(one - other) <= bounds.sensitivity + 2 * bounds.chunk_error


def test_the_charge_of_cells_covers_float64():
    X = np.random.default_rng(0).uniform(-1.0, 1.0, (CHUNK_ROWS, 3))
    made = Winsor(np.zeros(3), np.ones(3), np.ones(3))
    sums, weight = cell_sums(X, winsor=made, columns=np.arange(3)), Fraction(float(SQUARES))
    exact = [[sum(map(Fraction, column)), weight * sum(Fraction(x) ** 2 for x in column)] for column in X.T.tolist()]
    off = sum((Fraction(float(sums[i, j])) - exact[j][i]) ** 2 for i in range(2) for j in range(3))
    assert off <= Fraction(cell_bounds(CHUNK_ROWS, 3).chunk_error) ** 2


# ---- Densities: what all histograms of a column tell together ------------------------------------------------------


def test_finer_bins_replace_coarser_ones_and_the_rest_is_kept():
    coarse = Density(np.arange(5.0), np.array([1.0, 10.0, 2.0, 4.0]))
    np.testing.assert_array_equal(coarse.beyond(1.0, 2.5), [1.0, 5.0])  # half of the third bin
    fine = coarse.refined(np.array([1.0, 1.75, 2.5]), np.array([3.0, 7.0]))
    np.testing.assert_array_equal(fine.edges, [0.0, 1.0, 1.75, 2.5, 3.0, 4.0])
    np.testing.assert_array_equal(fine.mass, [1.0, 3.0, 7.0, 1.0, 4.0])
    wider = coarse.refined(np.array([-2.0, 6.0]), np.array([9.0]))  # than all that was seen before
    np.testing.assert_array_equal([*wider.edges, *wider.mass], [-2.0, 6.0, 9.0])


def test_the_spread_is_that_of_cells_cut_off_at_four_of_it():
    for tail, factor in ((0.0, 1.0), (0.03, 1.5), (0.2, 25.0)):
        edges = np.arange(-20.0, 200.0)
        normal = np.exp(-((edges[:-1] + 0.5) ** 2) / 18.0)
        mass = normal / normal.sum() * (1.0 - tail)
        mass[-1] += tail
        centre, spread = Density(edges, mass).bulk(RANGES)
        shift, again = Density(edges, mass).cut_off(centre, RANGES.far * spread)
        assert again == pytest.approx(spread, rel=1e-2)
        assert abs(shift) < 1e-2 * spread
        assert 3.0 * factor / 1.5 < spread <= 3.2 * factor  # a rare tail counts little, one in five cells much


@pytest.mark.parametrize("epsilon", [1.0, 3.0])
def test_ranges_of_a_long_tail_are_about_the_same_from_fit_to_fit(epsilon):
    """With many cells of one value far off, and with ever longer tails: histograms see them in some fits only."""
    rng = np.random.default_rng(0)
    bulk = np.exp(3.7 + 0.5 * rng.standard_normal(16_000))
    X = np.column_stack(
        [np.where(rng.random(16_000) < 0.014, 646.0, bulk), np.exp(2.0 * rng.standard_normal(16_000))]
    )
    found = [found_in(X, epsilon=epsilon, seed=seed)[0] for seed in range(20)]
    spread, centre = (np.array([getattr(made, name) for made in found]) for name in ("spread", "centre"))
    assert (np.log(spread).std(axis=0) < 0.12).all()
    assert (centre.std(axis=0) < 0.1 * spread.mean(axis=0)).all()


# ---- What is spent -------------------------------------------------------------------------------------------------


def test_all_shares_are_spent_whatever_is_found():
    tables = {
        "normal": np.random.default_rng(0).standard_normal((4_000, 2)),
        "constant": np.full((4_000, 2), 7.0),
        "gaps": np.full((4_000, 2), np.nan),
        "huge": np.full((4_000, 2), 1e300),
    }
    spent = {name: found_in(X)[2].shares for name, X in tables.items()}
    assert len(set(spent.values())) == 1
    shares = [share for _, share in spent["normal"]]
    assert len(shares) == len(RangeTuning().stages)
    assert sum(map(Fraction, shares)) <= Fraction(1, 2)
    assert sum(shares) == pytest.approx(0.5, rel=1e-9)


def test_what_is_known_in_public_is_neither_sought_nor_paid_for():
    X = np.random.default_rng(0).standard_normal((300, 2))
    found, _, ledger = found_in(X, units=[2.0, 3.0], around=[0.0, 1.0], bounds=(-1e6, 1e6))
    np.testing.assert_array_equal(found.spread, [2.0, 3.0])
    np.testing.assert_array_equal(found.centre, [0.0, 1.0])
    assert ledger.shares == ()
    found, _, ledger = found_in(X > 0.0)
    np.testing.assert_array_equal([found.centre, found.spread], np.full((2, 2), 0.5))
    assert ledger.shares == ()
    partly = found_in(X, units={0: 1e-3}, around={0: 0.0}, bounds={0: (-1e6, 1e6)})[0]
    assert not partly.spike.any()  # what was not sought has not closed on a value


def test_histograms_are_of_a_public_draw_where_rows_are_plenty():
    X = np.random.default_rng(0).standard_normal((40_000, 1))
    other = X.copy()
    other[17] = 1e12
    few = RangeTuning(draw=10.0, fewest=1_000)
    one, two, all_rows = (
        ranges._drawn(open_table(rows), seeded(0).account.mu, seeded(0).streams.public, few)[:]
        for rows in (X, other, X[:1_999])
    )
    assert len(one) == len(two) == len(np.unique(one)) == 1_000  # no row twice
    assert (one != two).sum() <= 1
    assert len(all_rows) == 1_999
    with watched() as seen:
        found_in(X, tuning=few)
    counted = [added.values.sum() for added in seen.added]
    assert counted
    assert max(counted) <= 1_000  # histograms are of the drawn rows alone


# ---- What is found -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit", [1e-9, 1e-3, 1.0, 1e9])
@pytest.mark.parametrize("offset", [0.0, 5.0, -1e3])
def test_the_bulk_is_found_in_any_unit(unit, offset):
    X = (np.random.default_rng(0).standard_normal((5_000, 2)) + offset) * unit
    found = found_in(X)[0]
    assert found.measured.all()
    assert (np.abs(found.centre - X.mean(axis=0)) < X.std(axis=0)).all()
    assert (np.abs(np.log2(found.spread / X.std(axis=0))) < 1.0).all()
    assert not found.spike.any()


def test_a_column_that_fills_no_bin_is_spread_evenly_over_its_stretch():
    """It was found in the first histogram, or is bounded; had it a narrow range, a bin of that would stand out."""
    X = np.random.default_rng(0).uniform(1.0, 16.0, (1_200, 2))
    for known in ({}, {"bounds": (1.0, 16.0)}):
        found = found_in(X, epsilon=0.5, **known)[0]
        np.testing.assert_allclose(found.centre, 8.5, atol=3.0)
        np.testing.assert_allclose(found.spread, X.std(axis=0), rtol=0.3)


def test_noise_is_not_taken_for_a_column():
    found = [found_in(np.full((50, 3), np.nan), seed=seed)[0].measured.any() for seed in range(200)]
    assert sum(found) <= 2


def test_numbers_beyond_the_first_bins_have_no_range_rather_than_a_wrong_one():
    X = np.random.default_rng(0).standard_normal((5_000, 2)) * [1e18, 1.0] + [1e19, 0.0]
    np.testing.assert_array_equal(found_in(X)[0].measured, [False, True])
    known = found_in(X, bounds={0: (0.0, 2e19)})[0]
    assert known.measured.all()
    assert known.centre[0] == pytest.approx(1e19, rel=0.1)


def test_whole_numbers_are_not_told_apart_further_than_they_are():
    """Bins of whole numbers are no finer than a part of what lies between two of them."""
    for table in (np.full((6_000, 1), 4), np.random.default_rng(0).integers(0, 3, (6_000, 1))):
        whole, real = (found_in(X)[0].spread[0] for X in (table, table.astype(float)))
        assert whole > 1.0 / RANGES.bins / np.sqrt(12.0)
        assert real <= whole
    assert found_in(np.full((6_000, 1), 4.0))[0].spread[0] < 1e-3


def test_a_column_of_one_value_in_most_cells_closes_on_it_and_is_named():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.standard_normal(20_000), np.where(rng.random(20_000) < 0.98, 0.0, rng.random(20_000))])
    released = private_scales(X, **BUDGET, rng=0)
    np.testing.assert_array_equal(released.mostly_one_value, [False, True])
    assert released.low[1] <= 0.0 <= released.high[1]


def test_cells_are_cut_off_at_public_bounds():
    X = np.random.default_rng(0).exponential(1.0, (8_000, 1))
    found, public, _ = found_in(X, bounds=(0.0, 2.0))
    reach = reaches(found, public, 4.0)
    assert reach[0] == max(2.0 - found.centre[0], found.centre[0])
    loose, public, _ = found_in(X, bounds=(-1e6, 1e6))
    assert reaches(loose, public, 4.0)[0] == pytest.approx(4.0 * loose.spread[0])


def test_booleans_have_the_standard_deviation_of_their_share():
    X = np.random.default_rng(0).random((6_000, 3)) < [0.5, 0.2, 0.05]
    released = private_scales(X, **BUDGET, rng=0)
    np.testing.assert_array_equal([released.low, released.high], [[0.0] * 3, [1.0] * 3])
    np.testing.assert_allclose(released.mean, X.mean(axis=0), atol=0.02)
    assert (np.abs(released.scale - X.std(axis=0)) < 4 * released.scale_std).all()


def test_told_errors_of_means_and_units_are_the_errors():
    X = np.random.default_rng(0).standard_normal((6_000, 5)) * [1, 10, 1e-3, 5, 1] + [0, 3, 1, -100, 1e4]
    found = find_ranges(open_table(X), public_columns(X, 5), seeded(0, **BUDGET), 0.5)
    reach = reaches(found, public_columns(X, 5), 4.0)
    cells = np.clip(X, found.centre - reach, found.centre + reach)
    zs = []
    for seed in range(60):
        made = cell_moments(open_table(X), found, reach, 0.5, seeded(seed))
        zs.append([(made.mean - cells.mean(0)) / made.mean_std, (made.scale - cells.std(0)) / made.scale_std])
    np.testing.assert_allclose(np.sqrt(np.mean(np.square(zs), axis=(0, 2))), 1.0, atol=0.2)


def test_gaps_that_were_counted_are_made_up_for():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40_000, 2)) * 3.0 + 10.0
    X[rng.random(X.shape) < [0.0, 0.3]] = np.nan
    released = private_scales(X, **BUDGET, rng=0)
    assert released.gaps[1] == pytest.approx(12_000, rel=0.05)
    np.testing.assert_allclose(released.mean, 10.0, atol=0.1)
    np.testing.assert_allclose(released.scale, 3.0, rtol=0.05)


@pytest.mark.parametrize("cell", [np.nan, 0.0, 1e308, -1e308, np.inf, 5e-324, 7.0])
@pytest.mark.parametrize("n", [2, 3, 400])
def test_every_number_is_finite_or_said_to_be_unknown(n, cell):
    for X in (np.full((n, 2), cell), np.vstack([np.full((n - 1, 2), cell), [[1e300, -1.0]]])):
        released = private_scales(X, epsilon=5.0, delta=1e-6, rng=0)
        for name in ("mean", "scale", "mean_std", "scale_std", "low", "high"):
            np.testing.assert_array_equal(np.isfinite(getattr(released, name)), released.measured)
        assert (released.scale[released.measured] > 0.0).all()


def test_a_value_that_travels_makes_cells_of_any_type():
    made = Winsor(np.array([1.0]), np.array([0.5]), np.array([1.0]))
    for dtype in (np.float32, np.int8, np.bool_):
        np.testing.assert_array_equal(made(np.array([[0], [1]]).astype(dtype)), [[-0.5], [0.0]])


@pytest.mark.parametrize("spread", [0.0, 0.1, 0.3])
def test_errors_of_scales_cover_where_the_square_is_unclear(spread):
    """A range far wider than the column: its variance is about the size of its noise, and a root is not linear."""
    X = np.random.default_rng(0).standard_normal((1_000, 1)) * spread
    found = Ranges(np.zeros(1), np.ones(1), np.zeros(1, dtype=bool))
    away = []
    for seed in range(60):
        made = cell_moments(open_table(X), found, np.full(1, 4.0), 0.3, seeded(seed))
        away.append((made.scale[0] - X.std()) / made.scale_std[0])
    assert np.mean(np.abs(away) <= 2.0) >= 0.9


def test_a_look_is_in_standard_deviations_that_are_clear():
    moments = CellMoments(
        *np.array([[0.0, 0, 0], [9.0, 9, 9], [1.0, 2, 3], [0.1, 0.5, 0.1], [4.0, 4, 4], [0.5, 1.5, 0.5]])
    )
    boolean = np.array([False, False, True])
    public = replace(public_columns(np.zeros((2, 3)), 3), boolean=boolean)
    before = Ranges(np.zeros(3), np.ones(3), np.zeros(3, dtype=bool))
    made = measured_ranges(before, moments, public, 0.25)
    assert made.centre.tolist() == [1.0, 0.0, 3.0]  # the second is unclear
    assert made.spread.tolist() == [4.0, 1.0, 1.0]  # and that of the third known in public
