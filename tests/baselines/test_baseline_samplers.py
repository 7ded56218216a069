"""The float64 samplers of the baselines against their exact laws, and an audit that catches a wrong one."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln, ive

from privspan.audit import sampled_audit
from privspan.baselines import _common, eigen_sampling, exponential_pca
from privspan.baselines._bingham import (
    Bingham,
    acceptance_floor,
    cap_on_tries,
    deflated_vectors,
    envelope_variances,
    step_epsilon,
)
from privspan.privacy import Budget, delta_from_rho
from privspan.privacy.randomness import open_streams

FALSE_ALARM = 1e-6


def directions(matrix: np.ndarray, weight: float, count: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    law = Bingham(matrix, weight)
    return np.array([law.draw(100_000, generator) for _ in range(count)])


def chi_square(sample: np.ndarray, edges: np.ndarray, density: np.ndarray, grid: np.ndarray) -> float:
    """Return the p-value of a sample against a density that is given, up to a factor, on a fine grid."""
    cumulative = np.concatenate([[0.0], np.cumsum(0.5 * (density[1:] + density[:-1]) * np.diff(grid))])
    expected = np.diff(np.interp(edges, grid, cumulative / cumulative[-1])) * len(sample)
    observed = np.histogram(sample, edges)[0]
    return float(stats.chisquare(observed, expected).pvalue)


def plane_p_value(weight: float, claimed: float) -> float:
    A = np.array([[3.0, 1.0], [1.0, 1.0]])
    u = directions(A, weight, 8_000, seed=0)
    angles = np.arctan2(u[:, 1], u[:, 0]) % math.pi  # a line has no sign
    grid = np.linspace(0, math.pi, 20_001)
    lines = np.stack([np.cos(grid), np.sin(grid)])
    density = np.exp(claimed * np.einsum("it,ij,jt->t", lines, A, lines))
    return chi_square(angles, np.linspace(0, math.pi, 25), density, grid)


def test_the_exponential_mechanism_in_the_plane():
    assert plane_p_value(0.8, claimed=0.8) > FALSE_ALARM


def test_a_wrong_weight_would_be_noticed():
    assert plane_p_value(0.8, claimed=0.7) < FALSE_ALARM


@pytest.mark.parametrize("weight", [0.3, 2.0])
def test_the_exponential_mechanism_in_space(weight):
    a, b, c = 3.0, 1.5, 0.0
    z = directions(np.diag([a, b, c]), weight, 8_000, seed=1)[:, 0]
    grid = np.linspace(-1, 1, 20_001)
    rest = 0.5 * weight * (1 - grid**2)
    density = np.exp(weight * a * grid**2 + rest * (b + c) + rest * (b - c)) * ive(0, rest * (b - c))
    density /= density.max()
    edges = np.quantile(z, np.linspace(0, 1, 21))
    edges[[0, -1]] = -1.0, 1.0
    edges = np.round(edges, 3)  # fixed enough: the bins do not follow single draws
    assert chi_square(z, edges, density, grid) > FALSE_ALARM


def acceptance(deficits: np.ndarray, tries: int, seed: int) -> float:
    """Return the measured share of proposals that are kept."""
    m = len(deficits)
    normals = np.random.default_rng(seed).standard_normal((tries, m))
    w = (normals**2).sum(axis=1) / (m * (normals**2 * envelope_variances(deficits)).sum(axis=1))
    return float(np.exp(-0.5 * m * (w - 1 - np.log(w))).mean())


@pytest.mark.parametrize("m", [2, 3, 10, 100, 600])
@pytest.mark.parametrize("size", [0.0, 1.0, 100.0, 1e6])
def test_enough_proposals_are_kept_whatever_the_matrix(m, size):
    for shape in (np.arange(m) > 0, np.arange(m) / m, np.arange(m) > m // 2):
        assert acceptance(size * shape, 1_000, seed=m) > 10 * acceptance_floor(m)


@pytest.mark.parametrize("m", [2, 5, 40])
def test_the_formula_for_the_acceptance(m):
    # One direction far ahead of all others: the quadratic form is a chi-square with one degree of freedom.
    deficits = np.full(m, 1e9)
    deficits[0] = 0.0
    log_factor = gammaln(m / 2) + 0.5 * m * math.log(2 * math.e / m)
    exact = math.exp(log_factor) * stats.chi2.pdf(1.0, 1)
    assert acceptance(deficits, 200_000, seed=3) == pytest.approx(exact, rel=0.03)


def test_the_envelope_sums_to_one():
    for deficits in (np.zeros(5), np.array([0.0, 1e12]), np.linspace(0, 3, 50)):
        assert envelope_variances(deficits).sum() == pytest.approx(1.0, rel=1e-9)


def test_a_draw_gives_up_at_the_cap():
    assert Bingham(np.eye(3), 1.0).draw(0, np.random.default_rng(0)) is None
    assert deflated_vectors(np.eye(3), 2, 1.0, 0, np.random.default_rng(0)) is None


def test_the_cap_keeps_the_chance_of_failure():
    tries = cap_on_tries(50, 3, 1.0, 1e-8)
    failure = (1 - acceptance_floor(50)) ** tries
    assert 3 * (1 + math.e) * failure <= 1e-8


def test_vectors_drawn_one_by_one_are_orthonormal():
    V = deflated_vectors(np.diag([9.0, 5.0, 1.0, 0.0]), 4, 1.0, 10_000, np.random.default_rng(0))
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=1e-12)


def test_many_steps_compose_in_zcdp_and_few_add_up():
    budget = Budget(1.0, 1e-6)
    assert step_epsilon(budget, 2) == 0.5
    step = step_epsilon(budget, 50)
    assert step > 1.5 / 50
    assert delta_from_rho(50 * step**2 / 8, 1.0) <= 1e-6
    both = step_epsilon(budget, 50, laplace_steps=1)
    assert delta_from_rho(50 * both**2 / 8 + both**2 / 2, 1.0) <= 1e-6


@pytest.mark.parametrize(("weight", "refuted"), [(1.0, False), (4.0, True)])
def test_an_audit_of_the_exponential_mechanism_catches_a_wrong_weight(weight, refuted):
    epsilon = 2.0  # so the weight should be 1
    generator = np.random.default_rng(0)
    laws = [Bingham(np.diag(diagonal), weight) for diagonal in ([1.0, 0.0], [0.0, 1.0])]

    def sector(law: Bingham) -> int:
        x, y = law.draw(10_000, generator)
        return int(8 * (math.atan2(y, x) % math.pi) / math.pi)

    audit = sampled_audit(
        lambda: sector(laws[0]),
        lambda: sector(laws[1]),
        epsilon=epsilon,
        delta=1e-6,
        runs=6_000,
        confidence=1 - 1e-6,
    )
    assert audit.refuted == refuted


def test_the_half_in_the_weight_of_the_exponential_mechanism_is_needed():
    # Much weight on one axis: the normalising constants differ as well, and the loss approaches twice the weight.
    weight, base = 0.5, 400.0
    angles = np.linspace(0, math.pi, 200_001)
    first, second = (
        weight * ((base + a) * np.cos(angles) ** 2 + b * np.sin(angles) ** 2) for a, b in ((1.0, 0.0), (0.0, 1.0))
    )
    densities = [
        exponent - math.log(np.exp(exponent - exponent.max()).sum()) - exponent.max() for exponent in (first, second)
    ]
    loss = np.abs(densities[0] - densities[1]).max()
    assert 0.98 * 2 * weight < loss <= 2 * weight


def test_the_noise_of_eigenvalues_is_laplace():
    runs = [eigen_sampling(np.eye(3), 1, epsilon=4.0, delta=1e-6, rng=seed) for seed in range(250)]
    seen = np.array([release.extras["eigenvalues"][0] for release in runs])
    assert stats.kstest(seen, stats.laplace(loc=1.0, scale=2.0 / 2.0).cdf).pvalue > FALSE_ALARM
    assert np.abs(seen - 1.0).mean() > 0.75  # half the scale would give 0.5


def test_bartlett_factors_give_wishart_matrices():
    generator = np.random.default_rng(0)
    T = np.array([_common.bartlett_factor(3, 7, generator) for _ in range(4_000)])
    W = T @ T.transpose(0, 2, 1)
    for direction in ([1.0, 0, 0], [0, 0, 1.0], [0.6, 0, 0.8]):
        v = np.array(direction)
        assert stats.kstest(np.einsum("i,tij,j->t", v, W, v), stats.chi2(7).cdf).pvalue > FALSE_ALARM
        inverse = np.linalg.inv(W)
        assert stats.kstest(1 / np.einsum("i,tij,j->t", v, inverse, v), stats.chi2(5).cdf).pvalue > FALSE_ALARM


def test_haar_rotations_are_uniform():
    generator = np.random.default_rng(0)
    R = np.array([_common.haar_rotation(4, generator) for _ in range(4_000)])
    np.testing.assert_allclose(R @ R.transpose(0, 2, 1), np.broadcast_to(np.eye(4), R.shape), atol=1e-12)
    for entry in (R[:, 0, 0], R[:, 3, 1]):
        assert stats.kstest(entry**2, stats.beta(0.5, 1.5).cdf).pvalue > FALSE_ALARM
        assert stats.binomtest(int((entry > 0).sum()), len(entry)).pvalue > FALSE_ALARM
    assert 0.4 < (np.linalg.det(R) > 0).mean() < 0.6


def test_a_float_generator_takes_fresh_bits():
    streams = open_streams(3)
    first, second = _common.float_generator(streams.noise), _common.float_generator(streams.noise)
    assert first.random() != second.random()
    assert exponential_pca(np.eye(3), 1, epsilon=1.0, delta=1e-6).private
