"""Single steps of stable leverage: the noise of each, what is charged beside it, and the room that bars leave."""

import math
from fractions import Fraction

import numpy as np
import pytest
from charges import is_noise_of, watched
from runs import Told, seeded
from scipy.special import chdtr

from privspan.audit.replay import spent_by
from privspan.privacy.coin import random_rotation
from privspan.privacy.randomness import BitSource
from privspan.rows.door import open_table
from privspan.stable import certificate, release
from privspan.stable.certificate import TAIL_TOLERANCE, LeveragePlan, sine_bound
from privspan.stable.groups import _GridBases, _too_long
from privspan.stable.leverage import GRID, exact_gram
from privspan.stable.near import most_are_near
from privspan.stable.records import StableRecords, _ScaledRows
from privspan.stable.release import Certified, noisy_basis, procrustes_bound
from privspan.stable.scales import noisy_histogram, released_share

PLAN = LeveragePlan(full_level=40, ramp=10, movers=6, signal=50.0, spread=0.5, ridge=0.5, largest_margin=8)


# ---- Counts --------------------------------------------------------------------------------------------------------


def near_or_not(table, rng=0, mu=0.5):
    return most_are_near(open_table(table), 1, len(table) // 6, 0.01, mu, seeded(rng))


def test_the_count_of_near_groups_has_noise_of_one_over_mu():
    with watched() as seen:
        near_or_not(np.ones((60, 5)))
    (one,) = seen.added
    assert is_noise_of(one.sigma, 1.0, 0.5)
    assert one.values == [10.0]


def test_a_row_that_takes_its_group_away_from_all_planes_uses_the_mu_up():
    near = np.ones((6, 8))
    near[0] = np.eye(8)[0]
    far = near.copy()
    far[1] = np.eye(8)[1]  # a third direction
    spent = spent_by(near_or_not, near, far)
    assert spent == pytest.approx(0.25, rel=1e-5)
    assert spent <= 0.25


def test_a_histogram_has_noise_of_root_two_over_mu_and_a_share_of_one_over_mu():
    with watched() as seen:
        noisy_histogram(np.array([0, 1, 1]), 4, 0.5, seeded())
        released_share(3, 10, 0.5, seeded())
    histogram, share = seen.added
    assert is_noise_of(histogram.sigma, math.sqrt(2.0), 0.5)
    assert is_noise_of(share.sigma, 1.0, 0.5)
    assert histogram.values.tolist() == [1.0, 2.0, 0.0, 0.0]


def test_the_strength_has_noise_for_one_record_and_both_errors():
    records = StableRecords(open_table(np.random.default_rng(0).standard_normal((30, 6))), 2, seeded(0))
    with watched() as seen:
        records.release_strength(0.5)
    (one,) = seen.added
    assert (1 + 2 * 0.05) / 0.5 <= one.sigma <= (1 + 2 * 0.05) / 0.5 * 1.0001


# ---- The noise of the basis ----------------------------------------------------------------------------------------


class Known(LeveragePlan):
    """A plan whose neighbours move the space by a known sine."""

    def sensitivity(self):
        return 0.25


@pytest.mark.parametrize(("width", "sine"), [(1, 0.25), (4, 0.5)])
def test_a_basis_is_charged_for_its_sensitivity_and_its_error(width, sine):
    """Items of several columns move the space further: by the root of their number."""
    passed = Certified(np.eye(4), np.ones(4), width, 2, Known(**vars(PLAN)))
    pulled = np.eye(5, 4)
    told = Told()
    noisy_basis(passed, lambda some: pulled @ some, 2.0, 1e-8, seeded(told))
    ((basis, shift, error, mu, delta),) = told.asked["basis"]
    expected, known_error = release._weighted_basis(passed.gram, passed.weights, lambda some: pulled @ some, PLAN, 2)
    np.testing.assert_array_equal(basis, expected)
    assert (shift, error, mu, delta) == (procrustes_bound(sine), known_error, 2.0, 1e-8)
    assert error > 0.0


@pytest.mark.parametrize("delta", [1e-8, 1e-31])  # with the second, hardly ever, a rotation is off by a third
def test_errors_of_the_basis_and_of_its_rotation_are_charged_on_both_sides(delta):
    rotation = random_rotation(2, delta / 2, BitSource())[1]  # half of it on either side
    told = Told()
    seeded(told).basis(np.eye(5, 2), 0.25, 0.125, 2.0, delta)
    ((_, sigma, _),) = told.asked["gaussian"]
    assert is_noise_of(sigma, 0.25 + 2 * (0.125 + rotation), 2.0)
    assert (rotation > 0.1) == (delta == 1e-31)


def test_the_grid_of_a_basis_is_charged():
    told = Told()
    seeded(told)._turned(np.zeros((400, 400)), 0.5, 2.0)
    ((_, sigma, grid),) = told.asked["gaussian"]
    assert 2.0 * sigma - 0.5 == pytest.approx(400.0 * grid, rel=1e-3)  # the root of the number of entries


@pytest.mark.parametrize("angle", [0.01, 0.5, 1.5])
def test_bases_are_as_far_apart_as_a_chord_is_long(angle):
    assert procrustes_bound(math.sin(angle)) == pytest.approx(2.0 * math.sin(angle / 2.0), rel=1e-12)


@pytest.mark.parametrize("k", [2, 3, 8])
@pytest.mark.parametrize("failure", [1e-6, 1e-12])
def test_the_error_of_a_rotation_holds_but_for_the_failure_that_is_charged(k, failure):
    """It says how near to the origin no point may be; the chance that one is follows from their exact law."""
    error = random_rotation(k, failure, BitSource())[1]
    nearest = 8 * k**1.5 * 2.0**-55 / (error - 100 * k**2.5 * 2.0**-53)
    assert sum(float(chdtr(size, nearest**2)) for size in range(2, k + 1)) <= failure
    assert k * nearest**2 / 2 == pytest.approx(failure, rel=1e-6)


# ---- The bars of the certificate -----------------------------------------------------------------------------------


def test_what_a_replaced_item_and_the_computation_add_to_the_tail_stays_below_the_next_bar():
    """With j = b - g + 1: a factor j / (j - 1), and an eigenvalue that is off by t on both data sets."""
    bars, t = PLAN.tail_bars() + PLAN.ridge, TAIL_TOLERANCE * PLAN.ridge
    for margin in range(1, PLAN.largest_margin + 1):
        j = PLAN.empty_level - margin + 1
        assert (bars[margin] + t) * j / (j - 1) + t <= bars[margin - 1]
    assert bars[1] - PLAN.ridge + t <= PLAN.tail
    assert bars[0] - PLAN.ridge == pytest.approx(PLAN.tail, rel=1e-12)
    assert bars[-1] == pytest.approx(PLAN.spread * (PLAN.empty_level - PLAN.largest_margin), rel=1e-2)


@pytest.mark.parametrize("signal", [5.0, 50.0, 500.0])
def test_what_a_replaced_item_and_the_computation_take_off_the_signal_stays_above_the_next_bar(signal):
    plan = LeveragePlan(40, 10, 6, signal, 0.5, 0.5, 8)
    bars = plan.signal_bars()
    assert bars[0] == signal
    for margin in range(1, 9):
        level, bar = plan.full_level + margin, Fraction(float(bars[margin]))
        ridge = Fraction(plan.ridge)
        left = max(bar - 1, (bar + ridge) * Fraction(level - 1, level) - ridge)
        computed = left - Fraction(1, 10**6)
        assert computed >= Fraction(float(bars[margin - 1])) - Fraction(1, 10**9)
        assert computed <= Fraction(float(bars[margin - 1])) + Fraction(1, 10**7)


@pytest.mark.parametrize("on_ramp", [0, 1, 4, 6])
def test_each_margin_leaves_room_for_one_mover_less(on_ramp):
    levels = np.where(np.arange(30) < on_ramp, PLAN.full_level - 1, 100)
    found = certificate.largest_margin(levels, PLAN, lambda _: certificate._Spectrum(math.inf, -math.inf))
    assert found == PLAN.movers - on_ramp


@pytest.mark.parametrize("margin", [1, 3, 5])
def test_both_eigenvalues_have_to_clear_the_bars_of_their_margin(margin):
    for found in (
        certificate._Spectrum(PLAN.signal_bars()[margin], -math.inf),
        certificate._Spectrum(math.inf, PLAN.tail_bars()[margin]),
    ):
        assert certificate.largest_margin(np.full(30, 100), PLAN, lambda _, found=found: found) == margin


def test_the_distance_of_neighbouring_spaces_is_the_sum_of_the_page():
    """Items out and in, tilted, and the weights of others on the ramp; see the section on how far spaces move."""
    full, ramp, movers, signal, spread, ridge = 60, 15, 6, 40.0, 0.02, 0.1
    b = full - ramp
    gap = signal - (spread * b - ridge)
    reach = min(1.0, math.sqrt((signal + ridge) / (b - movers)))
    tilt = reach * math.sqrt(spread) * (movers - 1) / gap
    items = math.sqrt(spread) * (math.sqrt(b / full) + math.sqrt(b / (full - 1))) + 2 * tilt
    others = (movers - 1) / ramp * (math.sqrt(spread) + tilt)
    found = float(sine_bound(full, ramp, movers, signal, spread, ridge))
    assert found == pytest.approx(reach / gap * (items + others), rel=1e-12)
    assert math.isinf(sine_bound(full, ramp, b, signal, spread, ridge))
    assert math.isinf(sine_bound(full, ramp, movers, spread * b - ridge, spread, ridge))


# ---- Items no longer than one --------------------------------------------------------------------------------------


@pytest.mark.parametrize("d", [1, 4, 16])
def test_records_whose_length_is_known_exactly_stay_within_the_unit_ball(d):
    """Rounding to the grid may make a record longer, which is provided for beforehand."""
    rows = _ScaledRows(open_table(np.vstack([np.eye(1, d), np.ones((1, d)), 2.0**40 * np.ones((1, d))])))
    for row in np.hstack(list(rows.column_slices())):
        square = sum(Fraction(float(value)) ** 2 for value in row)
        assert 1 - 4 * d * Fraction(GRID) <= square <= 1


@pytest.mark.parametrize(("length", "voted"), [(1.0, True), (1.2, False), (1.45, False)])
def test_a_basis_longer_than_one_has_no_vote(length, voted):
    bases = np.repeat(np.eye(5, 2)[None], 3, axis=0)
    bases[1] *= length
    gram = exact_gram(_GridBases(bases, np.ones(3, dtype=bool)).column_slices(), 6)
    assert _too_long(gram, 2).tolist() == [False, not voted, False]
