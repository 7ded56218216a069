"""The float64 samplers of the baselines against their exact laws, and an audit that catches a wrong one."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from runs import Told, seeded
from scipy import stats
from scipy.special import gammaln, ive, logsumexp

from privspan.audit import sampled_audit
from privspan.baselines import _common, eigen_sampling, exponential_pca
from privspan.baselines._bingham import (
    Bingham,
    acceptance_floor,
    cap_on_tries,
    deflated_vectors,
    drawn_direction,
    envelope_variances,
)
from privspan.baselines._common import add_laplace
from privspan.baselines._renyi import ORDERS, draw_epsilon, draws_divergence, laplace_divergence, log_delta
from privspan.baselines.eigen_sampling import eigenvalue_change
from privspan.privacy import Budget, rho_from_budget
from privspan.privacy.randomness import float_generator, open_streams

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
    assert deflated_vectors(np.eye(3), 2, 1.0, 0, seeded()) is None


def test_the_cap_keeps_the_chance_of_failure():
    tries = cap_on_tries(50, 3, 1.0, 1e-8)
    failure = (1 - acceptance_floor(50)) ** tries
    assert 3 * (1 + math.e) * failure <= 1e-8


def test_vectors_drawn_one_by_one_are_orthonormal():
    V = deflated_vectors(np.diag([9.0, 5.0, 1.0, 0.0]), 4, 1.0, 10_000, seeded())
    np.testing.assert_allclose(V.T @ V, np.eye(4), atol=1e-12)


# What all draws cost together.


def test_neither_plain_nor_concentrated_composition_allows_as_much():
    for epsilon in (0.1, 1.0, 3.0):
        budget = Budget(epsilon, 1e-6)
        for draws in (2, 3, 10):
            step = draw_epsilon(draws, budget)
            assert step >= 2 * epsilon / (draws + 1) > 1.3 * epsilon / draws
            assert step > 1.2 * math.sqrt(8 * rho_from_budget(epsilon, 1e-6) / draws)


def test_the_page_tells_what_draws_are_allowed():
    allowed = [draw_epsilon(draws, Budget(epsilon, 1e-6)) for epsilon in (0.1, 1.0, 3.0) for draws in (3, 10)]
    page = (Path(__file__).parents[2] / "docs" / "explanation" / "baselines.md").read_text("utf-8")
    assert "| lemma 7 | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.2f} | {:.3f} |".format(*allowed) in page


def test_eigenvalues_take_their_part_of_the_budget():
    budget = Budget(1.0, 1e-6)
    assert draw_epsilon(3, budget, 3, 0.5) < draw_epsilon(3, budget, 3, 0.1) < draw_epsilon(3, budget)
    assert draw_epsilon(1, Budget(3.0, 1e-6), 1, 0.3) == pytest.approx(2.7)


@pytest.mark.parametrize(("mechanism", "share"), [(exponential_pca, 0.0), (eigen_sampling, 0.1)])
def test_every_draw_has_the_weight_and_the_tries_that_are_paid_for(mechanism, share):
    for k in (1, 2, 3):
        told = Told()
        mechanism(np.eye(9, 4), k, epsilon=1.0, delta=1e-4, rng=told)
        draws = [numbers for law, _, *numbers in told.asked["draw"] if law is drawn_direction]
        eigenvalues = (k, share * 1.0) if share else ()
        step = draw_epsilon(k, Budget(1.0, 0.99e-4), *eigenvalues)
        assert len(draws) == k
        assert [weight for weight, _ in draws] == pytest.approx([0.5 * step] * k)
        assert {tries for _, tries in draws} == {cap_on_tries(4, k, 1.0, 1e-6)}


@pytest.mark.parametrize("k", [1, 2, 5])
def test_draws_and_the_eigenvalues_before_them_fit_together(k):
    """The moment of each Laplace variable that moves is integrated here."""
    epsilon, budget, grid = 1.0, Budget(2.0, 1e-2), np.linspace(-45, 45, 90_001)
    shift = epsilon / min(2, k)
    log_p, log_q = -np.abs(grid), -np.abs(grid - shift)

    def divergence(order: float) -> float:
        exponent = order * log_p + (1 - order) * log_q
        return math.log(0.5 * float(np.exp(exponent).sum()) * (grid[1] - grid[0])) / (order - 1)

    near = (ORDERS > 1.2) & (ORDERS < 60)  # finite where the best order is
    before = np.array(
        [min(2, k) * divergence(order) if close else np.inf for order, close in zip(ORDERS, near, strict=True)]
    )
    allowed = 0.5 * draw_epsilon(k, budget, k, epsilon)
    assert log_delta(draws_divergence(allowed, k) + before, 2.0) == pytest.approx(math.log(1e-2), abs=1e-3)


def two_draws_in_space(matrix: np.ndarray, weight: float) -> np.ndarray:
    """The log chances of two vectors, drawn one after the other, in the cells of a grid: (points, lines)."""
    heights, sizes = np.polynomial.legendre.leggauss(40)
    turns = (np.arange(60) + 0.5) * (2 * math.pi / 60)
    z, turn = (values.ravel() for values in np.meshgrid(heights, turns, indexing="ij"))
    first = np.stack([np.sqrt(1 - z * z) * np.cos(turn), np.sqrt(1 - z * z) * np.sin(turn), z], axis=1)
    across = np.stack([-np.sin(turn), np.cos(turn), np.zeros_like(z)], axis=1)
    lines = (np.arange(40) + 0.5) * (math.pi / 40)
    other = np.cross(first, across)
    second = np.cos(lines)[:, None] * across[:, None] + np.sin(lines)[:, None] * other[:, None]  # (points, lines, 3)
    scores = weight * np.einsum("pi,ij,pj->p", first, matrix, first) + np.repeat(np.log(sizes), 60)
    later = weight * np.einsum("pli,ij,plj->pl", second, matrix, second, optimize=True)
    return (scores - logsumexp(scores))[:, None] + later - logsumexp(later, axis=1, keepdims=True)


@pytest.mark.parametrize("weight", [0.3, 1.0])
def test_two_draws_in_space_diverge_no_further_and_need_more_than_the_bound_of_one(weight):
    """The vectors themselves, by quadrature: not the laws that the lemma compares them with."""
    indices, largest = [300, 400, 460, 500], 0.0
    for heavy in (0.0, 1.0, 5.0):  # where the new row goes; the old one comes from the second axis
        rest = np.diag([0.0, 1.0, heavy / weight])
        log_p, log_q = (two_draws_in_space(rest + np.outer(row, row), weight) for row in np.eye(3)[1:])
        found = np.array([logsumexp(a * log_p + (1 - a) * log_q) / (a - 1) for a in ORDERS[indices]])
        assert (found <= draws_divergence(weight, 2)[indices]).all()
        largest = max(largest, float((found / draws_divergence(weight, 1)[indices]).max()))
    assert largest > 1


def test_one_draw_in_the_plane_reaches_half_of_the_bound_at_small_orders():
    weight, index, angles = 0.05, 300, (np.arange(2_000) + 0.5) * (math.pi / 2_000)
    log_p, log_q = (weight * law**2 - logsumexp(weight * law**2) for law in (np.cos(angles), np.sin(angles)))
    order = ORDERS[index]
    found = logsumexp(order * log_p + (1 - order) * log_q) / (order - 1)
    assert order == pytest.approx(2.0, abs=0.01)
    assert found == pytest.approx(0.5 * draws_divergence(weight, 1)[index], rel=0.02)


ROWS_LEFT = {
    "both": ("beside", "old", "new"),
    "old": ("beside", "old"),
    "new": ("beside", "new"),
    "none": ("beside",),
}
AFTER = {("both", "old"): "new", ("both", "new"): "old", ("old", "old"): "none", ("new", "new"): "none"}


def tilts(weight: float) -> dict[str, float]:
    """What the neighbour multiplies the density of each kind of direction by, before it is normalised."""
    return {"beside": 1.0, "old": math.exp(-weight), "new": math.exp(weight)}


def worst_laws(weight: float, draws: int, order: float) -> tuple[float, list[dict[str, dict[str, float]]]]:
    """Search for the worst laws that axes with many rows can give to draws: divergence, law by draw and state."""
    tilt, moments, plans, chances = tilts(weight), dict.fromkeys(ROWS_LEFT, 1.0), [], np.linspace(0, 1, 2_001)
    for _ in range(draws):
        found, plan = {}, {}
        for state, hits in ROWS_LEFT.items():
            pairs = [(i, j) for i in range(len(hits)) for j in range(i)]
            laws = np.vstack([np.ones((1, len(hits))) / len(hits)] + [np.zeros((2_001, len(hits))) for _ in pairs])
            for number, (i, j) in enumerate(pairs):
                part = laws[1 + 2_001 * number :][:2_001]
                part[:, i], part[:, j] = chances, 1 - chances
            factors = np.array([tilt[hit] for hit in hits])
            later = np.array([moments[AFTER.get((state, hit), state)] for hit in hits])
            values = (laws @ factors) ** (order - 1) * (laws @ (factors ** (1 - order) * later))
            found[state], plan[state] = values.max(), dict(zip(hits, laws[values.argmax()], strict=True))
        moments = found
        plans.insert(0, plan)
    return math.log(moments["both"]) / (order - 1), plans


def paths(weight: float, plans: list[dict[str, dict[str, float]]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the chance of every course of the draws, on the table and on its neighbour."""
    tilt, courses = tilts(weight), [("both", 1.0, 1.0)]
    for plan in plans:
        courses = [
            (AFTER.get((state, hit), state), p * law[hit], q * law[hit] * tilt[hit] / norm)
            for state, p, q in courses
            for law in [plan[state]]
            for norm in [sum(law[hit] * tilt[hit] for hit in law)]
            for hit in law
            if law[hit] > 0
        ]
    return np.array([p for _, p, _ in courses]), np.array([q for _, _, q in courses])


@pytest.mark.parametrize(("weight", "draws", "index"), [(0.3, 1, 420), (0.2, 2, 500), (0.5, 3, 380), (0.1, 6, 560)])
def test_the_divergence_of_draws_is_that_of_the_worst_laws(weight, draws, index):
    order = float(ORDERS[index])
    bound = draws_divergence(weight, draws)[index]
    found, plans = worst_laws(weight, draws, order)
    assert 0.9999 * bound < found <= bound
    p, q = paths(weight, plans)
    assert p.sum() == pytest.approx(1.0)
    assert q.sum() == pytest.approx(1.0)
    assert math.log(float(p @ (p / q) ** (order - 1))) / (order - 1) == pytest.approx(found)


@pytest.mark.parametrize(("epsilon", "draws"), [(0.3, 2), (1.0, 3), (1.0, 6), (3.0, 4)])
def test_draws_are_private_exactly_and_slightly_heavier_ones_are_not(epsilon, draws):
    def delta(weight: float) -> float:
        laws = [paths(weight, worst_laws(weight, draws, order)[1]) for order in np.logspace(0.5, 2, 8) / weight**0.5]
        sides = [pair for p, q in laws for pair in ((p, q), (q, p))]
        return max(float(np.maximum(0.0, p - math.exp(epsilon) * q).sum()) for p, q in sides)

    weight = 0.5 * draw_epsilon(draws, Budget(epsilon, 1e-6))
    assert delta(weight) <= 1e-6
    assert delta(1.1 * weight) > 1e-6  # the published epsilon / draws is at most 0.8 of it, one draw's epsilon 1.8


@given(st.integers(0, 2**32 - 1), st.integers(1, 5), st.floats(0.05, 2.0))
def test_no_other_laws_of_draws_diverge_further(seed, draws, weight):
    """Directions anywhere, not only on the rows, and laws that depend on what was drawn before."""
    rng = np.random.default_rng(seed)
    index = int(rng.integers(300, 500))
    order = float(ORDERS[index])

    def moment(left: int, old: float, new: float) -> float:
        if left == 0:
            return 1.0
        outcomes = 2 if left < 3 else int(rng.integers(1, 3))
        law = rng.dirichlet(np.full(outcomes, 0.5))
        hits = [(old * rng.beta(0.5, 0.5), new * rng.beta(0.5, 0.5)) for _ in law]
        tilt = np.exp(weight * np.array([y - x for x, y in hits]))
        later = np.array([moment(left - 1, old - x, new - y) for x, y in hits])
        return float((law @ tilt) ** (order - 1) * (law @ (tilt ** (1 - order) * later)))

    found = math.log(moment(draws, 1.0, 1.0)) / (order - 1)
    assert found <= draws_divergence(weight, draws)[index] * (1 + 1e-9) + 1e-9


@given(st.integers(0, 2**32 - 1), st.integers(2, 6))
def test_orthonormal_vectors_share_one_change(seed, d):
    """Lemma 7: what rows lose to each vector they have no longer, and the changes of all scores sum to at most 1."""
    rng = np.random.default_rng(seed)
    x, y = (z / np.linalg.norm(z) for z in rng.standard_normal((2, d)))
    V = np.linalg.qr(rng.standard_normal((d, d)))[0][:, : rng.integers(1, d)]
    assert abs(((y @ V) ** 2 - (x @ V) ** 2).sum()) <= 1 + 1e-12
    rest = np.linalg.qr(V, mode="complete")[0][:, V.shape[1] :]
    scores = np.linalg.eigvalsh(rest.T @ (np.outer(y, y) - np.outer(x, x)) @ rest)
    assert scores[-1] <= 1 - ((y @ V) ** 2).sum() + 1e-12
    assert scores[0] >= -1 + ((x @ V) ** 2).sum() - 1e-12


def test_the_loss_of_two_draws_in_space_comes_close_to_three_halves_of_their_epsilon():
    # The heavy axis is that of the new row, and neither vector falls on it; the first falls on the old row.
    weight, base = 0.5, 300.0

    def log_norm(diagonal: np.ndarray) -> float:
        """Of the density on the sphere (Bessel function over the heavy axis), or on the circle."""
        heavy, *others = diagonal
        grid = np.linspace(-1, 1, 200_001) if len(others) == 2 else np.cos(np.linspace(0, math.pi, 200_001))
        spread = 0.5 * weight * (1 - grid**2)
        exponent = weight * heavy * (grid**2 - 1) + spread * sum(others) * 2 / len(others)
        around = ive(0, spread * abs(others[0] - others[-1])) * np.exp(spread * abs(others[0] - others[-1]))
        return math.log(float((np.exp(exponent) * (around if len(others) == 2 else 1.0)).mean())) + weight * heavy

    table, neighbour = np.array([base, 1.0, 0.0]), np.array([base + 1.0, 0.0, 0.0])  # heavy axis, old row's, third
    first = -weight * (neighbour[1] - table[1]) + log_norm(neighbour) - log_norm(table)
    second = -weight * (neighbour[2] - table[2]) + log_norm(neighbour[[0, 2]]) - log_norm(table[[0, 2]])
    assert 0.97 * 3 * weight < first + second <= 3 * weight


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
    assert stats.kstest(seen, stats.laplace(loc=1.0, scale=1.0 / 0.4).cdf).pvalue > FALSE_ALARM
    assert np.abs(seen - 1.0).mean() > 1.9  # half the scale would give 1.25


@pytest.mark.parametrize(("k", "scale"), [(1, 10.0), (2, 20.0), (3, 20.0)])
def test_several_eigenvalues_have_noise_for_two_that_move(k, scale):
    told = Told()
    eigen_sampling(np.eye(9, 4), k, epsilon=1.0, delta=1e-4, rng=told)
    assert [numbers for law, _, *numbers in told.asked["draw"] if law is add_laplace] == [[pytest.approx(scale)]]


def test_the_divergence_of_laplace_noise():
    shift, order = 0.7, float(ORDERS[450])
    grid = np.linspace(-60, 60, 1_200_001)
    p, q = stats.laplace.pdf(grid), stats.laplace.pdf(grid, shift)
    moment = float(p @ (p / q) ** (order - 1)) * (grid[1] - grid[0])
    assert laplace_divergence(shift)[450] == pytest.approx(math.log(moment) / (order - 1), rel=1e-6)


@given(st.integers(0, 2**32 - 1), st.integers(2, 6), st.integers(1, 4))
def test_the_leading_eigenvalues_move_by_at_most_one_up_and_one_down(seed, d, k):
    rng = np.random.default_rng(seed)
    rest = rng.standard_normal((rng.integers(0, 9), d))
    x, y = (z / np.linalg.norm(z) for z in rng.standard_normal((2, d)))
    before, after = (np.linalg.eigvalsh(rest.T @ rest + np.outer(z, z))[::-1][:k] for z in (x, y))
    moved = after - before
    assert max(moved[moved > 0].sum(), -moved[moved < 0].sum()) <= 1 + 1e-9
    assert np.abs(moved).sum() <= eigenvalue_change(k) + 1e-9


def test_the_change_of_leading_eigenvalues_is_reached():
    before, after = np.array([5.0, 3.0, 0.0]), np.array([6.0, 2.0, 0.0])  # a row of the second axis goes to the first
    assert np.abs(after - before)[:1].sum() == eigenvalue_change(1)
    assert np.abs(after - before)[:2].sum() == eigenvalue_change(2) == eigenvalue_change(3)


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
    first, second = float_generator(streams.noise), float_generator(streams.noise)
    assert first.random() != second.random()
    assert exponential_pca(np.eye(3), 1, epsilon=1.0, delta=1e-6).private
