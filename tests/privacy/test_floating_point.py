"""The low-bit attack on naive float noise, and what is left of it on our releases: nothing.

Mironov ("On significance of the least significant bits for differential privacy", CCS 2012): the floats that
0 + noise can reach differ from those that 2 + noise can reach, so the last bits of a released sum tell which it was.
Of a sum near zero, 2 + noise has no digits below 2^-52, because the noise that leads there is at least 1 in size.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
from charges import watched
from folding import (
    adversarial_table,
    errors_over_charges,
    folded_rows,
    lost_bits_over_charge,
    lost_cross_over_charge,
    lost_means_over_charge,
    lost_whole_over_charge,
    random_cross_over_charge,
    random_means_over_charge,
    single_errors_over_charges,
    single_moments_over_charge,
    single_rows,
    single_whole_over_charge,
    unit_change_over_charge,
    whole_change_over_charge,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import seeded
from scipy.stats import chi2_contingency

from privspan import private_mean
from privspan.privacy.noise import add_gaussian, rounding_charge
from privspan.privacy.randomness import open_streams
from privspan.rows import about
from privspan.rows.door import open_table
from privspan.rows.scaling import SHORT_SUM_ROWS, SINGLE_SUM_ROWS, combined, squared_lengths_of
from privspan.rows.unit import Rows
from privspan.sums import centre as search
from privspan.sums import variance as spectrum
from privspan.sums.grid import SumBounds, grid_total, noise_level, row_bounds, upper_triangle
from privspan.sums.lazy_gauss import UnitGram
from privspan.sums.localised import local_view, residual_slack

DRAWS = 4000


def finer_than_the_other_sum_allows(values):
    """The attack: which values have digits below 2^-52."""
    return np.array([Fraction(float(value)) * 2**52 % 1 != 0 for value in values])


def test_the_attack_works_on_naive_noise():
    rng = np.random.default_rng(0)
    from_zero, from_two = (total + 2.0 * rng.standard_normal(DRAWS) for total in (0.0, 2.0))
    assert finer_than_the_other_sum_allows(from_zero).mean() > 0.2
    assert not finer_than_the_other_sum_allows(from_two).any()  # so one such value proves that the sum was not 2


def test_the_attack_finds_nothing_in_our_noise():
    bits = open_streams(0).noise
    for total in (0.0, 2.0):
        assert not finer_than_the_other_sum_allows(add_gaussian(np.full(DRAWS, total), 2.0, bits)).any()


def test_the_attack_finds_nothing_in_a_released_mean():
    for last in (-1.0, 1.0):
        table = np.array([[1.0], [0.0], [0.0], [last]])
        released = [private_mean(table, epsilon=1.0, delta=0.1, norm_bound=1.0, rng=seed) for seed in range(150)]
        assert not finer_than_the_other_sum_allows([4 * float(each.mean[0]) for each in released]).any()


@pytest.mark.parametrize("modulus", [2, 16, 256])
def test_the_last_digits_follow_one_law_whatever_the_value(modulus):
    """On the grid every value can be reached from every other, and its last digits say nothing."""
    bits, grid = open_streams(1).noise, 2.0**-19
    counts = []
    for total in (0.0, 2.0 / 3.0):
        steps = (add_gaussian(np.full(20_000, total), 1.0, bits, grid=grid) / grid).astype(np.int64)
        counts.append(np.bincount(steps % modulus, minlength=modulus))
    assert chi2_contingency(np.array(counts)).pvalue > 1e-6


# ---- Low bits of the data --------------------------------------------------------------------------------------


def charged_slack(bounds, grid):
    """What `noise_level` charges beyond the mathematical sensitivity."""
    return 2.0 * bounds.chunk_error + rounding_charge(bounds.entries, grid)


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(2, 200), st.integers(1, 6))
def test_the_order_of_summation_moves_a_sum_by_less_than_is_charged(seed, n, d):
    """The same rows in another order have the same sum; what float64 makes of it differs in the last bits only."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.exp(20 * rng.standard_normal((n, 1)))
    gram = UnitGram(Rows(X))
    bounds = SumBounds(1.0, gram.chunk_error(d), upper_triangle(d), 1.02 * n)
    grid = noise_level(bounds, 1.0).grid
    totals = [
        grid_total(UnitGram(Rows(table)).products(None), (d, d), grid)
        for table in (X, X[rng.permutation(n)], X[::-1])
    ]
    triangle = np.triu_indices(d)
    for other in totals[1:]:
        assert np.linalg.norm((totals[0] - other)[triangle]) <= charged_slack(bounds, grid)


@settings(max_examples=20)
@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 3))
def test_a_sum_is_within_the_charged_error_of_the_exact_one(seed, n, d):
    """Against rational arithmetic on the very rows that the sum is made of."""
    rows = Rows(np.random.default_rng(seed).standard_normal((n, d)))
    gram = UnitGram(rows)
    grid = noise_level(SumBounds(1.0, gram.chunk_error(d), upper_triangle(d), 1.02 * n), 1.0).grid
    total = grid_total(gram.products(None), (d, d), grid)
    unit = [[Fraction(float(entry)) for entry in row] for row in next(rows.pieces())[1]]
    exact = [[sum(row[i] * row[j] for row in unit) for j in range(d)] for i in range(d)]
    off = sum((Fraction(float(total[i, j])) - exact[i][j]) ** 2 for i in range(d) for j in range(d))
    assert off <= (Fraction(gram.chunk_error(d)) + d * Fraction(grid) / 2) ** 2


def test_low_bits_of_a_record_move_a_release_by_less_than_a_grid_step_or_two():
    """With one seed, and a record changed in its last bit, the released means differ by grid steps, not by bits."""
    table = np.random.default_rng(0).standard_normal((50, 2))
    other = table.copy()
    other[0] = np.nextafter(other[0], np.inf)
    first, second = (private_mean(X, epsilon=1.0, delta=1e-6, norm_bound=3.0, rng=5) for X in (table, other))
    assert np.abs(first.mean - second.mean).max() <= 2 * 2.0**-20 * first.noise
    assert first.noise == second.noise


@pytest.mark.parametrize("left_out", [0, 1, 2, 3, 7])
def test_the_octave_of_a_length_is_exact_whatever_the_rows_before_it_are(left_out):
    """A rounded logarithm puts the float below a power of two an octave too high, in some places of an array."""
    first, last = spectrum._OCTAVES
    powers = 2.0 ** np.arange(first + 1, last + 1)
    lengths = np.concatenate([np.full(left_out, 2.0**first), powers, np.nextafter(powers, 0.0)])
    expected = np.zeros(last - first + 1)
    for octave in range(first, last):
        expected[octave - first] += 1  # the float below the next power
        expected[octave + 1 - first] += 1  # that power itself
    np.testing.assert_array_equal(spectrum._octave_counts(lengths), expected)
    alone = sum(spectrum._octave_counts(lengths[i : i + 1]) for i in range(len(lengths)))
    np.testing.assert_array_equal(alone, expected)


@pytest.mark.parametrize("seed", range(4))
def test_factors_that_are_multiplied_into_thin_products_cost_no_more_than_is_charged(seed):
    """Against rational arithmetic on the rows that are stood for, of lengths from 1e-120 to 1e120."""
    assert 0.0 < errors_over_charges(seed) <= 1.0


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from([None, 1e-3, 1.0, 1e90]))
def test_rows_times_their_factors_are_no_longer_than_one(seed, d, clip):
    """Exactly, for rows that need no care and for those that do."""
    rng = np.random.default_rng(seed)
    X = adversarial_table(rng, 12, d)
    X[:6] = np.array([0.0, np.nan, np.inf, 1e300, 5e-324, 1e-200])[:, None]
    for vector in folded_rows(Rows(X, clip=clip)):
        assert sum(entry * entry for entry in vector) <= 1


def test_lengths_come_from_their_own_row_alone():
    """Whatever stands before it in the table, a row has the same length and the same factor, to the last bit."""
    rng = np.random.default_rng(0)
    X = adversarial_table(rng, 60, 7)
    before = Rows(X).lengths()
    for number, row in enumerate((np.nan, np.inf, 0.0, 1e300, 1e-300, 2.0)):
        other = X.copy()
        other[number] = row
        np.testing.assert_array_equal(np.delete(Rows(other).lengths(), number), np.delete(before, number))
    np.testing.assert_allclose(before, [math.hypot(*row) for row in X.tolist()], rtol=1e-12)


# ---- Rows in float32 -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
def test_a_replacement_moves_products_in_float32_by_no_more_than_is_charged(seed):
    """Against rational arithmetic on the two rows; with several pieces to a chunk."""
    assert 1e-6 < single_errors_over_charges(seed) <= 1.0


@pytest.mark.parametrize("seed", range(6))
def test_a_replacement_moves_unit_rows_of_float32_by_no_more_than_is_charged(seed):
    assert 1e-6 < unit_change_over_charge(seed) <= 1.0
    assert 1e-4 < single_moments_over_charge(seed) <= 1.0


@pytest.mark.parametrize("seed", range(6))
def test_a_replacement_moves_residual_sums_in_float32_by_no_more_than_is_charged(seed):
    assert 1e-5 < random_cross_over_charge(seed) <= 1.0
    assert 0.001 < lost_cross_over_charge() <= 1.0


@pytest.mark.parametrize("seed", range(6))
def test_a_replacement_moves_whole_second_moments_in_float32_by_no_more_than_is_charged(seed):
    """Of unit rows, which are added up in runs of that type, and of rows in units of a clip, which are not."""
    assert 1e-6 < whole_change_over_charge(seed) <= 1.0
    assert 0.001 < lost_whole_over_charge() <= 1.0
    assert 0.0 < single_whole_over_charge(seed) <= 1.0


@given(st.integers(0, 2**32), st.floats(-9.0, 0.0), st.integers(1, 4))
def test_residuals_of_rows_of_float32_are_no_longer_than_they_are_taken_for(seed, tail, k):
    """Also those that are lost in the rounding of float32: what is taken for their length has it on top."""
    rng, d = np.random.default_rng(seed), 30
    basis = np.linalg.qr(rng.standard_normal((d, k)))[0]
    X = rng.standard_normal((20, k)) @ basis.T + 10.0**tail * rng.standard_normal((20, d))
    rows = single_rows(X.astype(np.float32), np.zeros(d))
    view = local_view(rows, basis)
    for vector, coordinates, off in zip(folded_rows(rows), view.coordinates, view.off, strict=True):
        rest = np.array([float(entry) for entry in vector]) - basis @ coordinates
        assert np.linalg.norm(rest) <= off * (1.0 + 1e-9) + 1e-15
    assert residual_slack(basis, single=True) > 2**20 * residual_slack(basis)


def test_a_row_that_decides_whether_half_of_its_piece_is_lost_is_charged():
    """It takes up to a tenth of the charge: sums of a piece are off by that much, not in proofs alone."""
    assert 0.001 < lost_bits_over_charge() <= 1.0


@pytest.mark.parametrize("seed", range(4))
def test_a_replacement_moves_sums_in_float32_by_no_more_than_is_charged(seed):
    assert 1e-6 < random_means_over_charge(seed) <= 1.0
    assert 0.001 < lost_means_over_charge() <= 1.0


class Spied(np.ndarray):
    """An array that tells how many terms the sums of its products have."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if ufunc is np.matmul:
            self.terms += [inputs[0].shape[-1]] * (len(inputs[0]) if inputs[0].ndim == 3 else 1)
        plain = [np.asarray(one) for one in inputs]
        return getattr(ufunc, method)(*plain, **options)

    def __array_finalize__(self, other):
        self.terms = getattr(other, "terms", [])


@pytest.mark.parametrize("run", [SHORT_SUM_ROWS, SINGLE_SUM_ROWS])
@pytest.mark.parametrize("d", [1, 20, 257, 2048])
def test_float32_adds_up_no_more_rows_than_are_charged(d, run):
    """Also in the last piece of a chunk and of the table, and whatever is among the rows."""
    X, terms = np.ones((4096 + 200, d), dtype=np.float32), []
    X[7] = np.nan

    def spied(rows, factors):
        piece = rows.view(Spied)
        piece.terms = terms
        return combined(piece, factors.astype(np.float32)[:, None], run=run).ravel()

    assert len(list(single_rows(X, np.zeros(d)).map_folded(spied))) == 2  # chunks
    assert sum(terms) == len(X)
    assert max(terms) == run


@pytest.mark.parametrize("runs", [2, 3])
def test_sums_of_float32_are_added_in_float64(runs):
    X = np.zeros((runs * SINGLE_SUM_ROWS, 1), dtype=np.float32)
    X[0], X[SINGLE_SUM_ROWS::SINGLE_SUM_ROWS] = 2.0**24, 1.0  # the first of each run; float32 would drop all but one
    out = np.empty((1, 3))
    for found in (combined(X, np.ones_like(X)), combined(X, np.ones_like(X), out=out[:, 1:2])):
        assert found.dtype == np.float64
        assert found[0, 0] == 2.0**24 + runs - 1
    assert out[0, 1] == 2.0**24 + runs - 1


def test_the_step_of_a_search_in_float32_is_charged_for_it():
    X = np.random.default_rng(0).standard_normal((600, 300))
    with watched() as seen:
        for table in (X, X.astype(np.float32)):
            now = search.Centre(None, 1.0, 20.0, 20.0, None, located=False)
            search.mean_step(open_table(table), now, 1.0, seeded(0))
    double, single = (one.bounds.chunk_error for one in seen.charged)
    assert double == row_bounds(*X.shape).chunk_error
    assert single >= double + SINGLE_SUM_ROWS**2 * 2.0**-24


@settings(max_examples=40)
@given(st.integers(0, 2**32), st.integers(1, 40), st.sampled_from([None, 1e-3, 1.0, 1e30]))
def test_rows_in_float32_times_their_factors_are_no_longer_than_one(seed, d, clip):
    """Exactly, also those that are scaled with care and rounded to float32 afterwards."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((14, d)) * 10.0 ** rng.integers(-30, 30, (14, 1))).astype(np.float32)
    X[:7] = np.array([0.0, np.nan, np.inf, 3e38, 1e-45, -3e38, 4.4e-23])[:, None]  # the last's square: 1.4 roundings
    for centre in (np.zeros(d), rng.standard_normal(d)):
        for vector in folded_rows(single_rows(X, centre, clip)):
            assert sum(entry * entry for entry in vector) <= 1


def test_what_float32_cannot_hold_of_a_centre_is_not_lost():
    """Rows much closer to a centre than that is to zero are off by roundings of themselves, not of the centre."""
    centre = np.full(300, 1e4 + 1e-4)
    X = (centre + np.random.default_rng(0).standard_normal((50, 300))).astype(np.float32)
    exact = np.linalg.norm(X.astype(np.float64) - centre, axis=1)
    np.testing.assert_allclose(single_rows(X, centre).lengths(), exact, rtol=1e-7)


def test_inner_products_in_float32_come_from_their_own_row_alone():
    """To the last bit, for the BLAS that is installed: what a replacement is charged for relies on it."""
    rng = np.random.default_rng(0)
    for rows, d, b in ((256, 1000, 13), (512, 300, 47), (37, 2048, 8), (16, 257, 1), (4096, 21, 4), (333, 5, 1)):
        piece, block = (rng.standard_normal(shape, dtype=np.float32) for shape in ((rows, d), (d, b)))
        before, squares = piece @ block, squared_lengths_of(piece)
        for number in (0, rows // 2, rows - 1):
            for value in (1e9, np.nan, np.inf):
                other = piece.copy()
                other[number] = value
                with np.errstate(all="ignore"):
                    after, lengths = other @ block, squared_lengths_of(other)
                np.testing.assert_array_equal(np.delete(after, number, 0), np.delete(before, number, 0))
                np.testing.assert_array_equal(np.delete(lengths, number), np.delete(squares, number))


def test_a_library_that_multiplies_float32_in_fewer_bits_is_not_asked_to(monkeypatch):
    """As with bfloat16 or TF32 in its place: what is charged would be too little."""
    X, centre = np.ones((5, 300), dtype=np.float32), np.zeros(300)
    assert open_table(X).rows(centre, single=True).single
    for lost in (16, 13, 8, 1):  # bits of a float32 that go

        def coarse(left, right, lost=lost):
            cut = [(side.view(np.uint32) & np.uint32(2**32 - 2**lost)).view(np.float32) for side in (left, right)]
            return cut[0] @ cut[1]

        for name, product in (("_single_product", coarse), ("combined", lambda rows, own, run: coarse(rows.T, own))):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(about, name, product)
                about._single_is_single.cache_clear()
                assert not open_table(X).rows(centre, single=True).single
    about._single_is_single.cache_clear()
