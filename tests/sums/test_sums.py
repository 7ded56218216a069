"""Exact chunk sums and the noise level that pays for float64."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from runs import seeded

from privspan._lib.rounding import relative_error
from privspan.sums.grid import (
    GridSum,
    NoiseLevel,
    SumBounds,
    gaussian_sum,
    gaussian_symmetric,
    grid_total,
    noise_level,
    upper_triangle,
)


@given(st.integers(1, 2**40))
def test_relative_error_is_not_below_gamma(m):
    u = Fraction(1, 2**53)
    assert Fraction(relative_error(m)) >= m * u / (1 - m * u)


@given(
    st.floats(1e-6, 1e3),
    st.floats(0.0, 1e-3),
    st.integers(1, 10**9),
    st.floats(1.0, 1e15),
    st.floats(1e-4, 50.0),
)
def test_noise_level_pays_for_everything_and_keeps_the_adding_exact(sensitivity, error, entries, largest, mu):
    bounds = SumBounds(sensitivity, error, entries, largest)
    level = noise_level(bounds, mu)
    spent = (Fraction(level.sigma) * Fraction(mu)) - Fraction(sensitivity) - 2 * Fraction(error)
    assert spent >= 0
    assert spent**2 >= entries * Fraction(level.grid) ** 2
    assert largest / level.grid <= 2**52
    assert math.frexp(level.grid)[0] == 0.5


@given(arrays(np.float64, (7, 3), elements=st.floats(-1e3, 1e3)), st.integers(-30, 3))
def test_grid_sums_are_exact(chunks, exponent):
    grid = 2.0**exponent
    expected = [
        sum(round(Fraction(float(v)) / Fraction(grid)) for v in column) * Fraction(grid) for column in chunks.T
    ]
    assert [Fraction(float(v)) for v in grid_total(list(chunks), (3,), grid)] == expected


def test_a_change_in_one_chunk_moves_the_total_by_that_chunk_only():
    # In float64, adding 1e16 first would swallow the others; on the grid nothing is lost.
    chunks = [np.array([0.3]), np.array([2.0**30]), np.array([-(2.0**30)])]
    total = GridSum((1,), 2.0**-20)
    for chunk in chunks:
        total.add(chunk)
    assert abs(total.total()[0] - 0.3) <= 2.0**-21


def test_symmetric_noise_has_the_stated_standard_deviations():
    m, draws = 3, 1000
    bits = seeded(1)
    level = NoiseLevel(sigma=2.0, grid=2.0**-20)
    samples = np.array([gaussian_symmetric(np.zeros((m, m)), level, bits) for _ in range(draws)])
    assert np.array_equal(samples, samples.transpose(0, 2, 1))
    off, on = samples[:, *np.triu_indices(m, 1)], samples[:, range(m), range(m)]
    # The sample variance of 3000 normals is off by more than 18 % with probability below 1e-9.
    assert abs(off.var() / 4.0 - 1.0) < 0.18
    assert abs(on.var() / 8.0 - 1.0) < 0.18
    flat = np.hstack([off, on])
    assert np.abs(np.corrcoef(flat.T) - np.eye(6)).max() < 0.23


def test_only_the_upper_triangle_is_read():
    level = NoiseLevel(sigma=1.0, grid=2.0**-20)
    lower = np.array([[1.0, 2.0], [999.0, 3.0]])
    upper = np.array([[1.0, 2.0], [2.0, 3.0]])
    first = gaussian_symmetric(lower, level, seeded(3))
    assert np.array_equal(first, gaussian_symmetric(upper, level, seeded(3)))


def test_gaussian_sum_centres_on_the_sum():
    chunks = [np.full((2, 3), 0.25)] * 8
    bounds = SumBounds(1.0, 1e-9, 6, 10.0)
    values = [gaussian_sum(chunks, (2, 3), bounds, 50.0, seeded(seed))[0] for seed in range(40)]
    sigma = noise_level(bounds, 50.0).sigma
    assert abs(np.mean(values) - 2.0) < 6 * sigma / math.sqrt(240)


def test_too_many_operations_are_refused():
    with pytest.raises(ValueError, match="2\\*\\*52"):
        relative_error(2**52)


def test_upper_triangle_counts():
    assert [upper_triangle(m) for m in (1, 2, 5)] == [1, 3, 15]
