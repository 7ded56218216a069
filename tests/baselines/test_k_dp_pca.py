"""k-DP-PCA: the two sensitivities of a mean gradient, float64 included, its budget and its batches."""

import itertools
import math
import sys
from fractions import Fraction

import dask.array as da
import numpy as np
import pytest
from charges import watched
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from privspan import baselines
from privspan.baselines import _common
from privspan.datasets import gaussian_subspace
from privspan.privacy import Budget, compose_mu
from privspan.rows.unit import Rows

module = sys.modules["privspan.baselines.k_dp_pca"]  # the package offers a function under its name
BUDGET = {"epsilon": 1.0, "delta": 1e-6}

seeds = st.integers(0, 2**32 - 1)
radii = st.one_of(st.floats(2.0**-20, 0.499), st.just(module.NO_CLIP))


def somewhere(seed: int, d: int, j: int) -> "module.Gradients":
    """Random directions found before, off which a random direction and a random centre need not be."""
    rng = np.random.default_rng(seed)
    basis = np.linalg.qr(rng.standard_normal((d, j)))[0]
    direction, centre = rng.standard_normal((2, d))
    length = rng.random()
    return module.Gradients(
        basis, direction / np.linalg.norm(direction), length * centre / max(np.linalg.norm(centre), 1e-9)
    )


def clipped_sum(table: np.ndarray, at: "module.Gradients", radius: float) -> np.ndarray:
    """The sum of clipped gradients as the algorithm computes it before the noise; one chunk."""
    rows = Rows(table)
    products = rows.map_rows(lambda piece: piece @ at.frame)
    lengths = at.lengths(rows.squared_lengths(), products)
    (total,) = module.clipped_sums(rows, at, products, lengths, radius)
    return total


@given(seeds, st.integers(2, 6), st.integers(0, 1), radii)
def test_a_replacement_moves_the_sum_by_no_more_than_its_bound(seed, d, j, radius):
    at, rng = somewhere(seed, d, j), np.random.default_rng(seed + 1)
    rest = rng.standard_normal((4, d))
    first, second = (np.vstack([rest, rng.standard_normal(d)]) for _ in range(2))
    bounds = at.bounds(5, radius)
    moved = np.linalg.norm(clipped_sum(first, at, radius) - clipped_sum(second, at, radius))
    assert moved <= bounds.sensitivity + 2.0 * bounds.chunk_error
    assert np.linalg.norm(clipped_sum(first[-1:], at, radius)) <= min(radius, 2.0) + bounds.chunk_error


@given(seeds, st.floats(0.0, 1.0))
def test_off_the_directions_found_a_gradient_about_its_eigenvalue_is_no_longer_than_one(seed, eigenvalue):
    at = somewhere(seed, 5, 2)
    direction = at.direction - at.basis @ (at.basis.T @ at.direction)
    direction /= np.linalg.norm(direction)
    at = module.Gradients(at.basis, direction, eigenvalue * direction)
    row = np.random.default_rng(seed + 1).standard_normal((1, 5))
    rows = Rows(row)
    lengths = at.lengths(rows.squared_lengths(), rows.map_rows(lambda piece: piece @ at.frame))
    assert lengths[0] <= max(eigenvalue, 1.0 - eigenvalue) + 1e-6


def test_both_bounds_are_reached():
    nothing, axis = np.zeros((2, 0)), np.array([1.0, 0.0])
    about_zero = module.Gradients(nothing, axis, np.zeros(2))
    x, y = np.array([[1.0, 1.0]]), np.array([[1.0, -1.0]])
    moved = clipped_sum(x, about_zero, module.NO_CLIP) - clipped_sum(y, about_zero, module.NO_CLIP)
    assert np.linalg.norm(moved) == pytest.approx(1.0)
    # About half the direction all gradients of unit rows lie on a sphere, and some are opposite.
    about_half = module.Gradients(nothing, axis, 0.5 * axis)
    moved = clipped_sum(x, about_half, 0.3) - clipped_sum(y, about_half, 0.3)
    assert np.linalg.norm(moved) == pytest.approx(0.6)


def exact_gradient(row: np.ndarray, at: "module.Gradients", products: np.ndarray) -> list[Fraction]:
    """s (x - U z) - c in rational numbers, for the s and z as computed."""
    s, z = Fraction(float(products[0])), [Fraction(float(value)) for value in products[1:-1]]
    return [
        s * (Fraction(float(x)) - sum((Fraction(float(u)) * w for u, w in zip(us, z, strict=True)), Fraction(0)))
        - Fraction(float(c))
        for x, us, c in zip(row, at.basis, at.centre, strict=True)
    ]


@given(seeds, st.integers(0, 3), radii)
def test_lengths_and_sums_are_right_in_rational_numbers(seed, j, radius):
    at, n = somewhere(seed, 5, j), 6
    rows = Rows(np.random.default_rng(seed + 1).standard_normal((n, 5)))
    piece = next(rows.pieces())[1]
    products = rows.map_rows(lambda part: part @ at.frame)
    lengths = at.lengths(rows.squared_lengths(), products)
    total = [Fraction(0)] * 5
    for row, known, length in zip(piece, products, lengths, strict=True):
        gradient = exact_gradient(row, at, known)
        square = sum(value * value for value in gradient)
        assert square <= Fraction(float(length)) ** 2 * (1 + Fraction(1, 2**48))
        weight = Fraction(float(np.minimum(1.0, radius / (length * module._INWARDS))))
        assert weight * weight * square <= Fraction(radius) ** 2
        total = [one + weight * value for one, value in zip(total, gradient, strict=True)]
    (computed,) = module.clipped_sums(rows, at, products, lengths, radius)
    error = sum((Fraction(float(a)) - b) ** 2 for a, b in zip(computed, total, strict=True))
    assert error <= Fraction(at.bounds(n, radius).chunk_error) ** 2


@given(seeds, st.floats(2.0**-21, 2.0**-18), st.integers(0, 2))
def test_lengths_that_cancel_are_still_bounds(seed, size, j):
    """Records that nearly agree with the centre: the terms of a squared length are 1 and its digits are rounding."""
    at, rng = somewhere(seed, 6, j), np.random.default_rng(seed + 1)
    direction = at.direction - at.basis @ (at.basis.T @ at.direction)
    direction /= np.linalg.norm(direction)
    at = module.Gradients(at.basis, direction, direction)
    rows = Rows(direction + size * rng.standard_normal((8, 6)))
    piece = next(rows.pieces())[1]
    products = rows.map_rows(lambda part: part @ at.frame)
    lengths = at.lengths(rows.squared_lengths(), products)
    for row, known, length in zip(piece, products, lengths, strict=True):
        square = sum(value * value for value in exact_gradient(row, at, known))
        assert square <= Fraction(float(length)) ** 2


def test_the_noise_is_that_of_the_released_spread(monkeypatch):
    """Each step has its share; a fifth of the spread is hidden by a fifth of the noise."""
    X, _ = gaussian_subspace(500, 4, 1, gamma_w=0.1, rng=0)
    for spread, sensitivity in ((0.3, 0.6), (0.06, 0.12), (0.7, 1.0), (1e-9, 2.0**-19)):
        monkeypatch.setattr(module, "typical_size", lambda *_, spread=spread: spread)
        with watched() as seen:
            baselines.k_dp_pca(X, 1, rng=0, steps=3, **BUDGET)
        mu = math.sqrt(0.9 / 3) * Budget(**BUDGET).mu
        assert len(seen.charged) == len(seen.added) == 3
        for charged, sigma in zip(seen.charged, seen.sigmas, strict=True):
            assert charged.mu == pytest.approx(mu)
            assert charged.bounds.sensitivity == pytest.approx(sensitivity)
            assert sensitivity / mu <= sigma * (1 + 1e-12) <= 1.02 * sensitivity / mu


@pytest.mark.parametrize(("k", "single_pass", "steps"), [(1, False, 16), (3, False, 8), (3, True, 4)])
def test_what_is_spent_and_told(k, single_pass, steps):
    X, _ = gaussian_subspace(400, 6, k, gamma_w=0.1, rng=0)
    release = baselines.k_dp_pca(X, k, single_pass=single_pass, rng=0, **BUDGET)
    mus = [part.mu for part in release.cost.parts]
    assert len(mus) == (1 if single_pass else k)
    assert 0.999 * Budget(**BUDGET).mu < compose_mu(*mus) <= Budget(**BUDGET).mu * (1 + 1e-12)
    assert (release.parameters["steps"], release.parameters["single_pass"]) == (steps, single_pass)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array, lambda X: da.from_array(X, chunks=(30, 3))])
def test_a_record_is_in_one_batch_of_a_single_pass(kind):
    X = np.eye(100, 3) + np.arange(1, 101)[:, None]
    with _common.open_table(kind(X), 1, rng=3, **BUDGET) as table:
        pieces = [next(rows.pieces())[1] for rows in module._own_batches(table, 7)]
        dense = np.vstack([piece.toarray() if sparse.issparse(piece) else piece for piece in pieces])
        whole = next(Rows(X).pieces())[1]
        assert {len(piece) for piece in map(np.asarray, np.array_split(dense, 7))} <= {14, 15}
        np.testing.assert_allclose(np.sort(dense, axis=0), np.sort(whole, axis=0), rtol=1e-12)


def test_the_batches_are_dealt_without_a_look_at_the_rows():
    angles = np.linspace(0.1, 1.4, 60)
    dealt = []
    for known in (angles, angles[::-1]):
        with _common.open_table(np.column_stack([np.cos(known), np.sin(known)]), 1, rng=3, **BUDGET) as table:
            pieces = [next(rows.pieces())[1] for rows in module._own_batches(table, 4)]
            dealt.append([np.searchsorted(angles, np.arctan2(piece[:, 1], piece[:, 0]) - 1e-6) for piece in pieces])
    for some, reversed_ones in zip(*dealt, strict=True):
        np.testing.assert_array_equal(some, 59 - reversed_ones)


@pytest.mark.parametrize("single_pass", [False, True])
def test_partitions_give_what_an_array_gives(single_pass):
    X, truth = gaussian_subspace(4_000, 6, 2, gamma_w=0.05, rng=0)
    options = {"epsilon": 10.0, "delta": 1e-6, "single_pass": single_pass, "rng": 1}
    for table in (X, sparse.csr_array(X), da.from_array(X, chunks=(900, 6))):
        assert baselines.k_dp_pca(table, 2, **options).subspace.distance(truth) < 0.1


def test_little_spread_takes_little_noise():
    """With a shorter tail the records of a line agree more, and the error falls; with a fixed clip it would not."""
    errors, fixed = [], []
    for tail in (0.1, 0.01, 0.001):
        X, truth = gaussian_subspace(4_000, 30, 1, gamma_w=tail, rng=0)
        errors.append(baselines.k_dp_pca(X, 1, rng=1, **BUDGET).subspace.distance(truth))
        fixed.append(baselines.noisy_power(X, 1, rng=1, **BUDGET).subspace.distance(truth))
    assert all(after < 0.3 * before for before, after in itertools.pairwise(errors))
    assert fixed[2] > 0.5 * fixed[0]
    assert errors[2] < 0.05 * fixed[2]


def test_numbers_of_steps_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="`steps`"):
        baselines.k_dp_pca(np.eye(5), 1, steps=0, **BUDGET)
    with pytest.raises(ValueError, match="number of rows, 5, in a single pass; got 3"):
        baselines.k_dp_pca(np.eye(5), 2, steps=3, single_pass=True, **BUDGET)
