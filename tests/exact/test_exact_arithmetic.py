"""Integer rows and exact linear algebra against plain rational arithmetic."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from exact_oracle import rref
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from privspan.exact.arithmetic import (
    PRIMES_TO_CHOOSE_FROM,
    ExactSpan,
    IntegerRows,
    _fixed_primes,
    exact_rank,
    hashed_rows,
    integer_rows,
    inverses_mod,
    leading_independent,
    matmul_mod,
    random_prime,
    rank_loss_probability,
    rational_form,
    span_of_rank,
    uniform_residues,
)
from privspan.exact.hyperplane import _brute_force, densest_hyperplane
from privspan.privacy.randomness import open_streams

PRIME = 2_147_483_629
finite = st.floats(allow_nan=False, allow_infinity=False, width=64)


@given(hnp.arrays(np.float64, (3, 4), elements=finite))
@settings(max_examples=200, deadline=None)
def test_rows_keep_their_line_exactly(X):
    rows = integer_rows(X, max_bits=2200)  # wide enough for any pair of finite floats
    for integers, values in zip(rows.integers(range(3)), X.tolist(), strict=True):
        exact = [Fraction(value) for value in values]
        scale = next((Fraction(a) / b for a, b in zip(integers, exact, strict=True) if b), Fraction(1))
        assert scale > 0
        assert [scale * value for value in exact] == integers
        assert not any(integers) or any(entry % 2 for entry in integers)  # scaled as far down as it goes


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64", "bool", ">i4", "<i2"])
def test_whole_numbers_are_taken_as_they_are(dtype):
    kind = np.dtype(dtype)
    if kind.kind == "b":
        X = np.array([[True, False], [False, False]])
    else:
        limits = np.iinfo(kind)
        X = np.array([[limits.min, limits.max], [0, 1]], dtype=kind)
    assert integer_rows(X).integers([0, 1]) == [[int(entry) for entry in row] for row in X.tolist()]


def test_int64_does_not_travel_through_floats():
    X = np.array([[2**62 + 1, 2**62]])
    assert integer_rows(X).integers([0]) == [[2**62 + 1, 2**62]]
    assert exact_rank(integer_rows(np.array([[2**62 + 1, 2**62], [1, 1]])).integers([0, 1])) == 2


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_that_is_not_finite_is_zero_and_changes_no_other(bad):
    X = np.array([[1.5, 2.0], [3.0, bad], [0.1, 7.0]])
    clean = X.copy()
    clean[1] = 0
    assert integer_rows(X).integers(range(3)) == integer_rows(clean).integers(range(3))


def test_too_many_bits_make_a_zero_row():
    X = np.array([[1e300, 1e-300], [1.0, 2.0**-200], [1.0, 2.0**-255], [1.0, 2.0**-256]])
    rows = integer_rows(X, max_bits=256).integers(range(4))
    assert rows == [[0, 0], [2**200, 1], [2**255, 1], [0, 0]]


def test_denormals_and_signed_zero():
    tiny = np.nextafter(0, 1)
    assert integer_rows(np.array([[tiny, -3 * tiny, -0.0]])).integers([0]) == [[1, -3, 0]]


def test_decimals_round_entry_by_entry():
    X = np.array([[0.1, 0.2, 0.1 + 0.2], [1e308, 1.0, 1.0]])
    rows = integer_rows(X, decimals=2).integers([0, 1])
    assert rows[0] == [5, 10, 15]  # 10, 20, 30 scaled to have an odd entry
    assert rows[1] == [0, 0, 0]  # too long once scaled
    assert integer_rows(X[:1].astype(np.float32), decimals=2).integers([0]) == [[5, 10, 15]]


def test_homogeneous_column_is_one_in_the_units_of_the_data():
    assert integer_rows(np.array([[3, 4]]), homogeneous=True).integers([0]) == [[3, 4, 1]]
    assert integer_rows(np.array([[0.5, 2.0]]), homogeneous=True).integers([0]) == [[1, 4, 2]]
    assert integer_rows(np.array([[0.25, 0.5]]), decimals=2, homogeneous=True).integers([0]) == [[25, 50, 100]]
    assert integer_rows(np.array([[np.nan, 1.0]]), homogeneous=True).integers([0]) == [[0, 0, 0]]


def test_many_rows_pass_in_chunks():
    X = np.arange(5000 * 2).reshape(5000, 2)
    assert integer_rows(X).integers([4095, 4096, 4999]) == X[[4095, 4096, 4999]].tolist()
    assert integer_rows(X.astype(float) / 4).integers([4096]) == [[8192, 8193]]


@given(hnp.arrays(np.float64, (4, 3), elements=st.floats(-1e6, 1e6)))
@settings(max_examples=80, deadline=None)
def test_residues_and_hashes_agree_with_python_integers(X):
    rows = integer_rows(X, max_bits=2200)
    wanted = [[entry % PRIME for entry in row] for row in rows.integers(range(4))]
    assert rows.residues(PRIME).tolist() == wanted


@pytest.mark.parametrize("prime", [7, 2**31 - 1])
def test_residues_are_uniform(prime):
    """What is charged to delta for a hash counts on every residue alike."""
    drawn = uniform_residues(40_000, prime, open_streams(3).charged)
    assert 0 <= drawn.min() <= drawn.max() < prime
    counts = np.histogram(drawn, 7, range=(0, prime))[0]
    assert stats.chisquare(counts).pvalue > 1e-6


def test_hashes_are_a_random_product():
    table = integer_rows(np.random.default_rng(0).normal(size=(5000, 3)))
    hashed = hashed_rows(table, 2, PRIME, open_streams(1).charged)
    projection = uniform_residues(6, PRIME, open_streams(1).charged).reshape(3, 2)
    np.testing.assert_array_equal(hashed, matmul_mod(table.residues(PRIME), projection, PRIME))


def test_modular_products_are_exact():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, PRIME, (5, 300)), rng.integers(0, PRIME, (300, 4))
    a[0], b[:, 0] = PRIME - 1, PRIME - 1
    wanted = [
        [sum(x * y for x, y in zip(row, column, strict=True)) % PRIME for column in b.T.tolist()]
        for row in a.tolist()
    ]
    assert matmul_mod(a, b, PRIME).tolist() == wanted


def test_modular_inverses():
    values = np.random.default_rng(0).integers(0, PRIME, (37, 11))
    values[3, 4] = 0
    product = values * inverses_mod(values, PRIME) % PRIME
    assert (product[values != 0] == 1).all()
    assert inverses_mod(values, PRIME)[3, 4] == 1


def test_random_primes_are_prime_and_spread():
    bits = open_streams(0).charged
    primes = [random_prime(bits) for _ in range(50)]
    assert all(2**30 < p < 2**31 and all(p % q for q in range(2, 1000)) for p in primes)
    assert len(set(primes)) == 50


def test_rank_loss_bound_holds_in_a_worst_case():
    """A minor with as many bad primes as it can have: the bound is about the number of its bits."""
    bound = rank_loss_probability(1, 2, 300)
    assert bound >= Fraction(10, PRIMES_TO_CHOOSE_FROM)  # a 300-bit entry can have 10 prime factors of 30 bits
    assert bound < Fraction(12, PRIMES_TO_CHOOSE_FROM)
    assert rank_loss_probability(3, 4, 256) < Fraction(1, 10**6)


matrices = st.integers(1, 4).flatmap(
    lambda d: st.lists(st.lists(st.integers(-4, 4), min_size=d, max_size=d), min_size=1, max_size=5)
)


@given(matrices, st.lists(st.integers(-4, 4), min_size=4, max_size=4))
@settings(max_examples=200, deadline=None)
def test_rational_form_and_membership_agree_with_the_oracle(rows, other):
    if not any(map(any, rows)):
        return
    form = rational_form(rows)
    wanted = rref(rows)
    assert form.rank == len(wanted)
    got = [[Fraction(e, c) for e in row] for row, c in zip(form.numerators, form.denominators, strict=True)]
    assert tuple(map(tuple, got)) == wanted
    probe = other[: len(rows[0])]
    inside = ExactSpan(form).contains(integer_rows(np.array([probe, *rows])))
    assert inside.tolist() == [len(rref([*rows, probe])) == len(wanted)] + [True] * len(rows)


@given(matrices, st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_span_of_rank_is_exact_for_any_prime(rows, rank):
    """Also for a prime so small that it is almost always unlucky."""
    table = integer_rows(np.array(rows))
    everyone = np.arange(len(rows))
    wanted = rref(rows)
    for prime in (2, 3, PRIME):
        mixing = np.random.default_rng(1).integers(0, prime, (table.columns, rank + 1))
        hashed = matmul_mod(table.residues(prime), mixing, prime)
        span = span_of_rank(table, everyone, rank, hashed, prime)
        if len(wanted) != rank:
            assert span is None
        else:
            assert span.form == rational_form(rows)
            assert span_of_rank(table, everyone, rank, hashed, prime, guess=span).form == span.form


@pytest.mark.parametrize("size", [10, 10**9, 2**62])
def test_membership_is_exact_when_integers_are_long(size):
    """One unit off in the last place of a long integer is outside."""
    rng = np.random.default_rng(0)
    basis = rng.integers(-size, size, (3, 6), dtype=np.int64).astype(object)
    combinations = rng.integers(-3, 4, (5, 3)).astype(object) @ basis  # Python integers, longer than 64 bits
    form = rational_form(basis.tolist())
    shift = 70  # rows enter as sums of powers of two, so build them by magnitude and shift
    exact = IntegerRows(
        np.array([[abs(v) >> (shift if abs(v) >> 63 else 0) for v in row] for row in combinations], dtype=np.uint64),
        np.array([[v < 0 for v in row] for row in combinations]),
        np.zeros(combinations.shape, np.uint16),
    )
    fits = np.array([all(abs(v) < 2**63 for v in row) for row in combinations])
    assert ExactSpan(form).contains(exact)[fits].all()
    off = exact.magnitude.copy()
    off[:, -1] += np.uint64(1)
    moved = ExactSpan(form).contains(IntegerRows(off, exact.negative, exact.shift))
    assert not moved[fits].any()


def test_a_row_that_is_inside_modulo_some_primes_only_is_outside():
    """Off by a multiple of all primes but the last that membership asks."""
    line, off = rational_form([[1, 0]]), 1
    for prime in _fixed_primes(2):
        off *= prime
        rows = integer_rows(np.array([[1, off], [1, 0]], dtype=np.uint64), max_bits=256)
        assert ExactSpan(line).contains(rows).tolist() == [False, True]


def test_leading_independent_takes_the_first_ones():
    residues = np.array([[0, 0, 0], [1, 2, 3], [2, 4, 6], [0, 1, 0], [1, 3, 3], [0, 0, 1]])
    assert leading_independent(residues, PRIME, 3) == [1, 3, 5]
    assert leading_independent(residues, PRIME, 2) == [1, 3]


@given(st.integers(1, 4), st.data())
@settings(max_examples=150, deadline=None)
def test_densest_hyperplane_is_exact(k, data):
    points = data.draw(st.lists(st.lists(st.integers(-2, 2), min_size=k, max_size=k), min_size=k, max_size=9))
    if exact_rank(points) == k:
        assert densest_hyperplane(points, open_streams(0).charged) == _brute_force(points)


@pytest.mark.parametrize("prime", [2, 3, 5, 7, 11, 101])
def test_densest_hyperplane_survives_unlucky_primes(prime):
    """Tiny primes make false hyperplanes all the time; the answer must not change."""
    rng = np.random.default_rng(prime)
    for k, n, times in ((2, 12, 3), (3, 14, 30), (4, 9, 30), (3, 10, 30), (4, 8, 100)):
        tiny = itertools.repeat(prime, times)

        def primes(bits, tiny=tiny):
            return next(tiny, None) or random_prime(bits)

        points = rng.integers(-20, 21, (n, k)).tolist()
        if exact_rank(points) == k:
            assert densest_hyperplane(points, open_streams(prime).charged, primes) == _brute_force(points)


@pytest.mark.parametrize("k", [2, 3, 4])
def test_points_that_lose_rank_modulo_the_prime(k):
    """The first prime drawn divides all coordinates but one; the search must notice and draw another."""
    for seed in range(3):
        prime = random_prime(open_streams(seed).charged)
        points = [[1, *([0] * (k - 2)), prime * i] for i in range(12)]
        points += [[1, *(prime if j == i else 0 for j in range(k - 1))] for i in range(k - 1)]
        assert exact_rank(points) == k
        assert densest_hyperplane(points, open_streams(seed).charged) == _brute_force(points)


def test_densest_hyperplane_of_structured_points():
    bits = open_streams(0).charged
    grid = [[1, x, y] for x in range(5) for y in range(5)]
    assert densest_hyperplane(grid, bits) == 5
    assert densest_hyperplane([*grid, [0, 0, 0]], bits) == 6  # zero lies in every subspace
    assert densest_hyperplane([[1, 0, 0]] * 7 + [[0, 1, 0]] * 3 + [[0, 0, 1]], bits) == 10
    assert densest_hyperplane([[5], [0], [-1], [0]], bits) == 2
