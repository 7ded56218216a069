"""The prior systems: what they recover, what they refuse, and the sensitivity lemma behind each of them."""

import inspect
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from charges import is_noise_of, watched
from hypothesis import given
from hypothesis import strategies as st
from runs import Told
from scipy import sparse, special, stats

from privspan import baselines
from privspan.baselines import _common, _loss
from privspan.baselines.additive_wishart import wishart_delta, wishart_scale
from privspan.baselines.analyze_gauss_gap import projector_movement
from privspan.baselines.friendly_core import core_plan, friend_counts, friends_needed, public_block_size
from privspan.baselines.mod_sulq import published_noise
from privspan.baselines.noisy_range_finder import clipped_sketches, contraction, sketch_sensitivity
from privspan.baselines.smooth_sensitivity import (
    local_sensitivity,
    shifted_moment,
    smooth_bound,
    smooth_log_delta,
    smooth_noise,
)
from privspan.blocks.bases import BlockBases
from privspan.datasets import gaussian_subspace
from privspan.privacy import Budget, Release, delta_from_mu

NAMES = tuple(name for name in baselines.__all__ if name != "analyze_gauss")
SUMS = ("k_dp_pca", "noisy_power", "noisy_range_finder")
DENSE = tuple(name for name in NAMES if name not in SUMS)
PROPER = ("analyze_gauss_gap", "smooth_sensitivity")
ABSTAINING = ("analyze_gauss_gap", "friendly_core")
PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "baselines.md"

seeds = st.integers(0, 2**32 - 1)


def run(name: str, X: object, k: int = 2, epsilon: float = 20.0, delta: float = 1e-6, rng: object = 5) -> Release:
    return getattr(baselines, name)(X, k, epsilon=epsilon, delta=delta, rng=rng)


@pytest.fixture(scope="module")
def clear():
    return gaussian_subspace(6_000, 8, 2, gamma_w=0.05, rng=0)


@pytest.mark.parametrize("name", NAMES)
def test_a_clear_subspace_is_recovered_at_generous_epsilon(name, clear):
    X, truth = clear
    release = run(name, X)
    assert release.subspace.distance(truth) < 0.1
    assert release.method == f"baseline/{name}"
    assert (release.cost.epsilon, release.cost.delta) == (20.0, 1e-6)
    assert release.cost.neighbours == "replace-one"
    assert release.parameters["n"] == 6_000


@pytest.mark.parametrize("name", NAMES)
def test_a_seed_repeats_the_run_and_says_so(name, clear):
    X, _ = clear
    first, again, other = (run(name, X, rng=seed) for seed in (5, 5, 6))
    np.testing.assert_array_equal(first.subspace.basis, again.subspace.basis)
    assert first.subspace.distance(other.subspace) > 0
    assert not first.private
    assert run(name, X[:600], rng=None).private


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, 1e308, 0.0])
def test_any_values_give_a_release(name, bad):
    X = np.random.default_rng(1).standard_normal((40, 4))
    X[3] = bad
    assert isinstance(run(name, X), Release)
    assert isinstance(run(name, np.full((12, 4), bad)), Release)


@pytest.mark.parametrize("name", ABSTAINING)
def test_no_subspace_is_released_where_there_is_none(name):
    X = np.random.default_rng(2).standard_normal((3_000, 12))
    release = run(name, X, epsilon=1.0)
    assert release.abstained
    assert release.cost.epsilon == 1.0


@pytest.mark.parametrize("name", DENSE)
def test_tables_beyond_the_documented_width_are_refused(name):
    with pytest.raises(ValueError, match="at most 2048 columns"):
        run(name, np.zeros((4, 2049)))


@pytest.mark.parametrize("name", SUMS)
def test_sums_refuse_by_the_size_of_the_block_only(name):
    assert not run(name, np.eye(4, 3_000)).abstained
    with pytest.raises(ValueError, match=r"at most 134217728; got"):
        run(name, sparse.csr_array((2, 2**27)), k=2)


@pytest.mark.parametrize("name", NAMES)
def test_parameters_are_checked_before_the_data(name):
    with pytest.raises(ValueError, match="`epsilon`"):
        run(name, np.zeros((5, 3)), epsilon=-1.0)
    with pytest.raises(ValueError, match="`k`"):
        run(name, np.zeros((5, 3)), k=4)


@pytest.mark.parametrize("name", NAMES)
def test_the_whole_space_is_allowed_where_no_gap_is_needed(name):
    X = np.random.default_rng(0).standard_normal((60, 3))
    if name in PROPER:
        with pytest.raises(ValueError, match="below the number of columns"):
            run(name, X, k=3)
    else:
        release = run(name, X, k=3)
        assert release.abstained or release.subspace.dimension == 3


@pytest.mark.parametrize("name", [name for name in NAMES if name != "friendly_core"])
def test_sparse_rows_are_taken_without_densifying(name):
    X = sparse.random_array((300, 6), density=0.5, rng=np.random.default_rng(0), format="csr")
    from_sparse, from_dense = run(name, X), run(name, X.toarray())
    # A draw of the exponential mechanism may differ in the sign of an eigenvector, not in its law.
    if not from_dense.abstained and "step_epsilon" not in from_dense.parameters:
        assert from_sparse.subspace.distance(from_dense.subspace) < 1e-6
    assert from_sparse.abstained == from_dense.abstained
    assert set(from_sparse.parameters) == set(from_dense.parameters)


@pytest.mark.parametrize("name", NAMES)
def test_the_docstring_tells_of_every_parameter_in_order(name):
    """Those that all baselines have in common are not written in the file, but added to what `help` shows."""
    doc = getattr(baselines, name).__doc__
    section = doc.partition("Parameters\n----------\n")[2].partition("\n\nReturns\n-------\n")[0]
    told = [line.partition(" : ")[0] for line in section.splitlines() if not line.startswith(" ")]
    assert ", ".join(told).split(", ") == list(inspect.signature(getattr(baselines, name)).parameters)
    assert f">>> release = {name}(X, 2, " in doc


@pytest.mark.parametrize("name", NAMES)
def test_docstring_and_proof_note_name_each_other(name):
    doc = getattr(baselines, name).__doc__
    guarantee = doc.split("Guarantee\n")[1]
    assert "replace-one" in guarantee
    assert "docs/explanation/baselines.md" in guarantee
    assert f"privspan.baselines.{name}`" in PAGE.read_text("utf-8")


# The lemmas. Each test hunts for a violation, and shows that a smaller constant would be violated.


def unit_pair(seed: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.random.default_rng(seed).standard_normal((2, d))
    return x / np.linalg.norm(x), y / np.linalg.norm(y)


@given(seeds, st.integers(1, 6), st.floats(0, 1), st.floats(0, 1))
def test_second_moments_of_neighbours(seed, d, a, b):
    x, y = unit_pair(seed, d)
    E = a * np.outer(x, x) - b * np.outer(y, y)
    assert np.linalg.norm(E, 2) <= 1 + 1e-12
    assert np.linalg.norm(E[np.triu_indices(d)]) <= math.sqrt(2) + 1e-12
    eigenvalues = np.linalg.eigvalsh(E)
    assert np.abs(eigenvalues).sum() <= 2 + 1e-12
    V = np.linalg.qr(np.random.default_rng(seed).standard_normal((d, min(2, d))))[0]
    assert np.linalg.norm(E @ contraction(V)) <= math.sqrt(2) + 1e-12
    assert np.linalg.norm(contraction(V), 2) <= 1


@given(seeds, st.integers(2, 6))
def test_all_eigenvalues_together_move_by_at_most_two(seed, d):
    rng = np.random.default_rng(seed)
    rest = rng.standard_normal((rng.integers(0, 9), d))
    x, y = unit_pair(seed, d)
    before, after = (np.linalg.eigvalsh(rest.T @ rest + np.outer(z, z)) for z in (x, y))
    assert np.abs(before - after).sum() <= 2 + 1e-9


def test_the_constants_of_the_second_moment_are_reached():
    E = np.diag([1.0, -1.0])
    assert np.linalg.norm(E[np.triu_indices(2)]) == pytest.approx(math.sqrt(2))
    assert np.abs(np.linalg.eigvalsh(E)).sum() == pytest.approx(2.0)
    V = contraction(np.eye(2))
    assert np.linalg.norm(E @ V) == pytest.approx(math.sqrt(2))


@pytest.mark.parametrize(
    ("name", "sensitivity"),
    [("mod_sulq", math.sqrt(2)), ("noisy_range_finder", math.sqrt(2))],  # d columns
)
def test_the_noise_of_a_single_release_is_that_of_its_sensitivity(name, sensitivity, clear):
    noise = run(name, clear[0], epsilon=1.0).parameters["noise"]
    mu = Budget(1.0, 1e-6).mu
    assert sensitivity / mu <= noise <= 1.001 * sensitivity / mu


def test_a_narrow_sketch_has_less_noise(clear):
    release = baselines.noisy_range_finder(clear[0], 2, epsilon=1.0, delta=1e-6, sketch=2, rng=0)
    exact = 2 * math.sqrt(2 / 8) * math.sqrt(1 - 2 / 8) / Budget(1.0, 1e-6).mu
    assert exact <= release.parameters["noise"] <= 1.001 * exact


@pytest.mark.parametrize(("rounds", "last"), [(1, 1.0), (2, 5 / 6), (9, 5 / 6)])
def test_the_rounds_of_the_power_method_share_one_budget(rounds, last, clear):
    release = baselines.noisy_power(clear[0], 2, epsilon=1.0, delta=1e-6, rounds=rounds, rng=0)
    mu = Budget(1.0, 1e-6).mu
    shares = [part.mu for part in release.cost.parts]
    assert len(shares) == rounds
    assert 0.999 * mu < math.hypot(*shares) <= mu
    exact = math.sqrt(2 / last) / mu
    assert exact <= release.parameters["noise"] <= 1.001 * exact


@pytest.mark.parametrize(("name", "option"), [("noisy_power", "directions"), ("noisy_range_finder", "sketch")])
def test_a_block_has_from_k_to_d_columns(name, option):
    for columns in (1, 9):
        with pytest.raises(ValueError, match=f"`{option}` must be"):
            getattr(baselines, name)(np.eye(8), 2, epsilon=1.0, delta=1e-6, **{option: columns})


def test_published_noise_of_mod_sulq_grows_with_d_and_ours_does_not():
    budget = Budget(1.0, 1e-6)
    assert published_noise(100, budget) > 90 * math.sqrt(2) / budget.mu
    assert published_noise(2, budget) > math.sqrt(2) / budget.mu


def sketch_change(x: np.ndarray, y: np.ndarray, V: np.ndarray, radius: float) -> float:
    a, b = clipped_sketches(np.stack([x, y]) @ V, radius)
    assert max(np.linalg.norm(a), np.linalg.norm(b)) <= radius * (1 + 1e-12)
    return float(np.linalg.norm(np.outer(x, a) - np.outer(y, b)))


@given(seeds, st.integers(2, 6), st.floats(0.02, 1.0), st.floats(0, 2), st.floats(0, 1))
def test_clipped_sketches_bound_the_change(seed, d, radius, apart, length):
    rng = np.random.default_rng(seed)
    x, z = unit_pair(seed, d)
    y = x + apart * z
    y /= np.linalg.norm(y)
    V = contraction(rng.standard_normal((d, rng.integers(1, d + 1))))
    bound = sketch_sensitivity(radius) + 1e-12
    assert sketch_change(x, y, V, radius) <= bound
    assert sketch_change(x, -y, V, radius) <= bound
    assert sketch_change(x, length * y, V, radius) <= bound  # shorter rows, down to zero


@pytest.mark.parametrize("radius", [0.01, 0.3, 1 / math.sqrt(3), 0.7, 1.0])
def test_the_change_of_clipped_sketches_is_reached(radius):
    # Two axes that the sketch sees and one that it does not; the rows differ in what is seen.
    half = 0.5 * math.acos(max(-1.0, 0.5 * (1 - 1 / radius**2)))
    seen = radius * np.array([[math.cos(half), math.sin(half)], [math.cos(half), -math.sin(half)]])
    x, y = np.column_stack([seen, np.full(2, math.sqrt(1 - radius**2))])
    change = sketch_change(x, y, np.eye(3)[:, :2], radius)
    assert change == pytest.approx(sketch_sensitivity(radius), rel=1e-9)
    if radius < 0.5:
        assert change > 1.2 * math.sqrt(2) * radius  # the root of two of lemma 1 is not enough


def projector(matrix: np.ndarray, k: int) -> np.ndarray:
    V = np.linalg.eigh(matrix)[1][:, ::-1][:, :k]
    return V @ V.T


@given(seeds, st.integers(2, 6), st.floats(1, 30))
def test_projectors_of_neighbours(seed, d, size):
    rng = np.random.default_rng(seed)
    k = int(rng.integers(1, d))
    x, y = unit_pair(seed, d)
    rest = size * np.outer(*[rng.standard_normal(d)] * 2) if k == 1 else np.diag(size * rng.random(d))
    A, B = rest + np.outer(x, x), rest + np.outer(y, y)
    values = np.linalg.eigvalsh(A)[::-1]
    gap = values[k - 1] - values[k]
    moved = np.linalg.norm(projector(A, k) - projector(B, k))
    if gap > 2.0:
        assert moved <= projector_movement(gap) + 1e-9
    # The gap itself moves by at most two.
    other = np.linalg.eigvalsh(B)[::-1]
    assert abs(gap - (other[k - 1] - other[k])) <= 2 + 1e-9


def test_the_published_noise_of_the_gap_version_is_too_small_for_replacement():
    gap = 20.0
    x, y = np.array([1.0, 1.0]) / math.sqrt(2), np.array([1.0, -1.0]) / math.sqrt(2)
    rest = np.diag([gap, 0.0])
    A, B = rest + np.outer(x, x), rest + np.outer(y, y)
    values = np.linalg.eigvalsh(A)
    moved = np.linalg.norm(projector(A, 1) - projector(B, 1))
    true_gap = values[1] - values[0]
    assert 1.0 / (true_gap - 2.0) < moved <= projector_movement(true_gap) < 1.1 * moved


@pytest.mark.parametrize(("mu", "epsilon"), [(0.2, 1.0), (1.0, 0.01), (3.0, 2.0), (0.05, 0.5)])
def test_delta_from_the_moments_of_a_normal_loss(mu, epsilon):
    found = math.exp(_loss.log_loss_delta(lambda s: (0.5 * mu * mu * s * (s + 1), np.abs(s)), epsilon))
    assert (1 - 1e-9) * delta_from_mu(mu, epsilon) <= found <= (1 + 1e-6) * delta_from_mu(mu, epsilon)


@given(st.floats(0.05, 3), st.floats(0.01, 5), st.floats(0.05, 2))
def test_a_coarse_step_only_adds_to_delta(mu, epsilon, step):
    """Whatever the step and the line: the copies of delta that the trapezoidal rule adds are not negative."""
    c = epsilon / mu**2 + 0.5
    s = c + 1j * step * np.arange(-20_000, 20_001)
    total = (np.exp(0.5 * mu * mu * s * (s + 1) - s * epsilon) / (s * (s + 1))).real.sum() * step / math.tau
    assert total >= (1 - 1e-9) * delta_from_mu(mu, epsilon) - 1e-15


def kernel(angle: float, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the map C and the noise of lemma 5, for a = sqrt(t) (cos, sin) and b = sqrt(t) (sin, cos)."""
    sine = math.sin(2 * angle)
    turn = -math.atanh(sine) + math.asinh(sine * t / ((t + 2) * math.sqrt(1 - sine**2))) if sine < 1 else 0.0
    boost = np.array([[math.cosh(turn / 2), math.sinh(turn / 2)], [math.sinh(turn / 2), math.cosh(turn / 2)]])
    ends = np.array([[math.cos(angle), math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    C = ends @ boost  # columns: the images of the orthogonal pair, over sqrt(t)
    a = math.sqrt(t) * ends[:, 0]
    return C, np.eye(2) + np.outer(a, a) - C @ np.diag([1 + t, 1.0]) @ C.T


@given(st.floats(0, 0.785), st.floats(1e-4, 20))
def test_every_pair_of_covariances_is_made_from_the_orthogonal_one(angle, t):
    C, noise = kernel(angle, t)
    b = math.sqrt(t) * np.array([math.sin(angle), math.cos(angle)])
    scale = max(1.0, np.abs(C).max() ** 2) * (1 + t)
    np.testing.assert_allclose(C @ np.diag([1.0, 1 + t]) @ C.T + noise, np.eye(2) + np.outer(b, b), atol=1e-9 * scale)
    assert np.linalg.eigvalsh(noise)[0] >= -1e-9 * scale


@given(seeds, st.floats(3, 50), st.floats(0, 1))
def test_delta_of_covariances(seed, ridge, length):
    """No pair of rows beside any others tells tables apart better than two orthogonal rows and nothing else."""
    draws, epsilon = 20, 0.7
    rng = np.random.default_rng(seed)
    x, y = unit_pair(seed, 3)
    rest = rng.standard_normal((rng.integers(0, 5), 3))
    base = rest.T @ rest + ridge * np.eye(3)
    worst = _loss.log_loss_delta(_loss.covariance_moment(ridge, draws), epsilon)
    first, second = base + np.outer(x, x), base + length * np.outer(y, y)
    for ratios in (np.linalg.eigvals(np.linalg.solve(A, B)).real for A, B in ((first, second), (second, first))):

        def moment(s: np.ndarray, ratios: np.ndarray = ratios) -> tuple[np.ndarray, np.ndarray]:
            mixed = (1 + s)[:, None] * (ratios - 1)
            exists = 1 + mixed.real.min(axis=1) > 1e-3
            safe = np.where(exists[:, None], mixed, 0.0)
            value = 0.5 * draws * ((1 + s)[:, None] * np.log(ratios) - np.log(1 + safe)).sum(axis=1)
            return np.where(exists, value, np.inf), np.abs(value)

        assert _loss.log_loss_delta(moment, epsilon) <= worst + 1e-6


def covariance_delta(ridge: float, draws: int, epsilon: float) -> float:
    """Exact delta of the worst pair, orthogonal unit rows and nothing else, by a double sum."""
    t = 1.0 / ridge
    u = np.linspace(stats.chi2.ppf(1e-12, draws), stats.chi2.isf(1e-12, draws), 1500)
    weights = stats.chi2.pdf(u, draws) * (u[1] - u[0])
    loss = 0.5 * t * u[:, None] - 0.5 * t / (1 + t) * u[None, :]
    return float(weights @ np.maximum(0.0, -np.expm1(epsilon - loss)) @ weights)


@pytest.mark.parametrize(("draws", "epsilon", "delta"), [(10, 1.0, 1e-5), (200, 0.5, 1e-4), (1000, 4.0, 1e-6)])
def test_ridges_are_private_exactly_and_a_smaller_one_is_not(draws, epsilon, delta):
    ridge = _loss.covariance_ridge(draws, Budget(epsilon, delta))
    assert covariance_delta(ridge, draws, epsilon) == pytest.approx(delta, rel=1e-4)
    assert covariance_delta(0.99 * ridge, draws, epsilon) > 1.02 * delta
    published = 4 * (math.sqrt(2 * draws * math.log(4 / delta)) + math.log(4 / delta)) / epsilon
    assert 4 * ridge < published


@pytest.mark.parametrize("cosine", [0.0, 0.5])
def test_delta_of_wishart_noise_against_simulation(cosine):
    d, excess, scale, epsilon = 3, 60, 0.1, 1.0
    rng = np.random.default_rng(0)
    T = np.tril(rng.standard_normal((100_000, d, d)), -1)
    T[:, range(d), range(d)] = np.sqrt(rng.chisquare(d + excess - np.arange(d), (100_000, d)))
    W = scale * T @ T.transpose(0, 2, 1)
    x, y = np.array([1.0, 0, 0]), np.array([cosine, math.sqrt(1 - cosine**2), 0])
    shifted = W + np.outer(x, x) - np.outer(y, y)
    inside = np.linalg.eigvalsh(shifted)[:, 0] > 0
    loss = np.full(len(W), np.inf)
    logs = [np.linalg.slogdet(matrices[inside])[1] for matrices in (W, shifted)]
    loss[inside] = 0.5 * (excess - 1) * (logs[0] - logs[1])
    terms = np.maximum(0.0, -np.expm1(epsilon - loss))
    error = 5 * terms.std() / math.sqrt(len(W))
    exact = wishart_delta(scale, excess, epsilon)
    if cosine == 0.0:
        assert abs(terms.mean() - exact) < error
    else:
        assert terms.mean() + error < exact


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_delta_of_wishart_noise_when_a_row_appears(sign):
    excess, scale, epsilon = 60, 0.05, 0.2
    k = scale * np.random.default_rng(1).chisquare(excess + 1, 400_000)
    with np.errstate(invalid="ignore", divide="ignore"):
        loss = 0.5 * (excess - 1) * np.log(k / np.maximum(k + sign, 0.0)) + sign * 0.5 / scale
    terms = np.maximum(0.0, -np.expm1(epsilon - loss))
    assert terms.mean() <= wishart_delta(scale, excess, epsilon) + 5 * terms.std() / math.sqrt(len(k))


def test_the_published_additive_wishart_breaks_at_large_epsilon_and_ours_does_not():
    epsilon, delta, d = 8.0, 1e-6, 10
    excess = math.floor(28 * math.log(4 / delta) / epsilon**2)
    assert wishart_delta(1.0, excess, epsilon) > 1e-3
    scale = wishart_scale(60, Budget(epsilon, delta))
    assert 0.99 * delta < wishart_delta(scale, 60, epsilon) <= delta
    assert wishart_delta(0.5 * scale, 60, epsilon) > 100 * delta
    assert run("additive_wishart", np.eye(20, d), epsilon=epsilon).parameters["scale"] > 0


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 1e-12), (0.05, 1e-10), (1.0, 1e-6)])
def test_wishart_noise_is_never_below_gaussian_noise(epsilon, delta):
    budget = Budget(epsilon, delta)
    parameters = run("additive_wishart", np.eye(5, 3), epsilon=epsilon, delta=delta).parameters
    excess = parameters["degrees"] - 3
    assert excess <= 2**18
    assert 1.0 <= parameters["scale"] * math.sqrt(excess) * budget.mu < 1.1


def test_the_chi_square_tails_of_the_calibration_are_accurate_up_to_the_limit():
    degrees = 2**18
    edge = degrees - 7 * math.sqrt(2 * degrees)
    with mpmath.workdps(40):
        shape, end = mpmath.mpf(degrees) / 2, mpmath.mpf(edge) / 2
        log_factor = mpmath.loggamma(shape)
        points = [end - 400 * i for i in range(10, -1, -1)]
        exact = mpmath.quad(lambda t: mpmath.exp((shape - 1) * mpmath.log(t) - t - log_factor), points)
    assert float(stats.chi2.cdf(edge, degrees) / exact) == pytest.approx(1.0, rel=1e-9)
    with pytest.raises(ValueError, match="`degrees` must be at most d"):
        baselines.additive_wishart(np.eye(3), 1, epsilon=1.0, delta=1e-6, degrees=2**20)


@given(st.floats(0, 500), st.floats(0, 1), st.floats(1e-3, 0.3), st.floats(1.0, 1.2))
def test_the_smooth_bound_is_smooth_and_above_the_local_one(gap, change, rate, stretch):
    most = 2.0
    bound, neighbour = (smooth_bound(g, stretch, most, rate) for g in (gap, gap - 2 * change * stretch))
    assert bound * (1 - 1e-12) <= neighbour <= math.exp(rate * change) * bound * (1 + 1e-12)
    steps = np.linspace(0, gap / (2 * stretch), 4001)
    local = np.exp(-rate * steps) * local_sensitivity(gap - 2 * stretch * steps, stretch, most)
    assert bound >= local.max() * (1 - 1e-12)


@given(seeds, st.floats(2.5, 60), st.floats(-0.1, 0.1))
def test_a_record_turns_the_basis_or_moves_the_gap(seed, size, tilt):
    rng = np.random.default_rng(seed)
    d, k = 5, 2
    x, y = unit_pair(seed, d)
    if seed % 2:  # the worst: in the plane of the k-th and the next eigenvector
        x, y = np.eye(d)[1], np.eye(d)[2]
        angle = seed / 2**32 * math.pi
        x, y = math.cos(angle) * x + math.sin(angle) * y, -math.sin(angle + tilt) * x + math.cos(angle + tilt) * y
    rest = np.diag(size * np.array([2.0, 1.5, 0.3, 0.1, 0.0]) * rng.random())
    bases, gaps = [], []
    for z in (x, y):
        w, V = np.linalg.eigh(rest + np.outer(z, z))
        bases.append(V[:, ::-1][:, :k])
        gaps.append(w[::-1][k - 1] - w[::-1][k])
    U, _, Wt = np.linalg.svd(bases[1].T @ bases[0])
    turned = np.linalg.norm(bases[0] - bases[1] @ U @ Wt)
    assert turned <= local_sensitivity(np.array(gaps), 1.0, math.sqrt(2 * k)).min() + 1e-9
    moved = abs(gaps[0] - gaps[1]) / 2
    if max(gaps) > 2:
        assert turned <= math.sqrt(max(0.0, 1 - moved**2)) / (max(gaps) - 2) + 1e-6


@given(seeds, st.floats(0, 8), st.sampled_from([(2, 1), (3, 1), (3, 2), (4, 2)]), st.floats(0.01, 1))
def test_turning_and_gap_share_one_budget_where_the_gap_is_small(seed, size, shape, rate):
    """Also below the gaps for which lemma 10 says anything, and with all of the eigenvalues but the gap unknown."""
    d, k = shape
    x, y = unit_pair(seed, d)
    if seed % 2:  # the k-th and the next eigenvector change places
        x, y = np.eye(d)[k], np.eye(d)[k - 1]
    rest = np.diag([size] * k + [0.0] * (d - k)) + 1e-6 * np.diag(np.arange(d))
    most = math.sqrt(2 * min(k, d - k))
    bases, bounds = [], []
    for z in (x, y):
        w, V = np.linalg.eigh(rest + np.outer(z, z))
        bases.append(V[:, d - k :])
        bounds.append(smooth_bound(w[d - k] - w[d - k - 1], 1.0, most, rate))
    cosines = np.linalg.svd(bases[0].T @ bases[1], compute_uv=False)
    turned = math.sqrt(max(0.0, 2 * (1 - cosines).sum())) / min(bounds)
    assert turned**2 + (math.log(bounds[0] / bounds[1]) / rate) ** 2 <= 1 + 1e-5


def test_a_record_that_turns_the_basis_reaches_the_bound():
    angle, rest = math.pi / 4, np.diag([1000.0, 0.0])
    x, y = (np.array([math.cos(angle), sign * math.sin(angle)]) for sign in (1, -1))
    (w, V), (_, V2) = (np.linalg.eigh(rest + np.outer(z, z)) for z in (x, y))
    turned = math.sqrt(2 - 2 * abs(V[:, 1] @ V2[:, 1]))
    assert 0.99 < turned / local_sensitivity(np.array([w[1] - w[0]]), 1.0, 1.4)[0] <= 1.0


@given(st.floats(-1, 1), st.floats(0, 1), st.sampled_from([2, 6, 40, 1000]), st.floats(0.1, 3), st.floats(0.05, 1))
def test_delta_of_normal_laws_with_different_noise(tilt, distance, entries, epsilon, change):
    shift, rate = 0.3, change * epsilon / math.sqrt(entries)
    ratio = math.exp(2 * tilt * rate)
    moment = shifted_moment(ratio, (distance * shift) ** 2 * min(1.0, ratio), entries)
    assert _loss.log_loss_delta(moment, epsilon) <= smooth_log_delta(shift, rate, entries, epsilon) + 1e-6


def scale_delta(rate: float, entries: int, epsilon: float) -> float:
    """Exact delta of two noise levels, the second smaller by exp(rate), around one centre: a chi-square."""
    variance = math.exp(-2 * rate)
    least = (2 * epsilon + 2 * rate * entries) / (1 / variance - 1)  # squared length from which the loss exceeds
    return float(stats.chi2.sf(least, entries) - math.exp(epsilon) * stats.chi2.sf(least / variance, entries))


@pytest.mark.parametrize(("entries", "epsilon", "rate"), [(400, 1.0, 0.03), (2000, 0.1, 4.4e-4), (5000, 0.5, 0.003)])
def test_a_wider_second_law_does_not_hide_what_a_narrower_one_tells(entries, epsilon, rate):
    """All orders and factors of lemma 6 count, not the last that was looked at."""
    exact = math.log(scale_delta(rate, entries, epsilon))
    assert exact <= smooth_log_delta(0.0, rate, entries, epsilon) < exact + 1e-3
    assert exact < smooth_log_delta(0.3 * math.sqrt(epsilon), rate, entries, epsilon)


@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (0.5, 0.01)])
def test_a_record_that_moves_the_gap_alone_stays_in_budget(epsilon, delta):
    noise = smooth_noise(2000, Budget(epsilon, delta), 0.0, typical_gap=500.0, most=3.0)
    assert scale_delta(noise.rate, 2000, epsilon) <= delta


@pytest.mark.parametrize("entries", [1, 2, 3, 10, 500])
def test_the_ratio_of_bessel_functions_is_between_its_bounds(entries):
    x = np.logspace(-3, 3, 400)
    x = x[special.ive(entries / 2, x) > 1e-290]  # for small x and many entries they vanish in float64
    ratio = special.ive(entries / 2, x) / special.ive(entries / 2 - 1, x)
    low, high = (x / (h + np.sqrt(x * x + h * h)) for h in (entries / 2, (entries - 1) / 2))
    assert len(x) > 50
    assert (low <= ratio * (1 + 1e-9)).all()
    assert (ratio <= high * (1 + 1e-9)).all()


def test_smooth_noise_is_private_exactly_in_one_dimension_and_a_little_less_is_not():
    budget = Budget(1.0, 1e-4)
    noise = smooth_noise(1, budget, 0.0, typical_gap=100.0, most=1.0)

    def delta(multiplier: float, tilt: float) -> float:
        ratio, turn = math.exp(noise.rate * tilt), math.sqrt(1 - tilt * tilt)
        grid = np.linspace(-12 * multiplier, 12 * multiplier, 200_001)
        p = stats.norm.pdf(grid, 0.0, multiplier)
        q = stats.norm.pdf(grid, turn * min(1.0, ratio), multiplier * ratio)
        return float(np.maximum(0.0, p - math.exp(budget.epsilon) * q).sum() * (grid[1] - grid[0]))

    tilts = np.linspace(-1, 1, 41)
    assert max(delta(noise.multiplier, tilt) for tilt in tilts) <= budget.delta
    assert max(delta(0.96 * noise.multiplier, tilt) for tilt in tilts) > budget.delta


@pytest.mark.parametrize(("entries", "gap"), [(40, 15_000.0), (40, 1_500.0), (300, 1_700.0)])
def test_smooth_noise_is_little_more_than_for_a_known_sensitivity(entries, gap):
    budget = Budget(1.0, 1e-6)
    noise = smooth_noise(entries, budget, 0.0, typical_gap=gap, most=2.0)
    assert 1.0 <= noise.multiplier * budget.mu < 1.1


def lines(angles: np.ndarray) -> BlockBases:
    """One-dimensional bases in the plane."""
    return BlockBases(np.stack([np.cos(angles), np.sin(angles)], axis=1)[:, :, None], np.ones(len(angles), bool))


def core(angles: np.ndarray, radius: float) -> tuple[np.ndarray, float, np.ndarray]:
    """Return weights, their sum and the average projector, as the definition has them."""
    t = len(angles)
    needed = friends_needed(t)
    weights = np.maximum(friend_counts(lines(angles), radius) - needed, 0) / (t - needed)
    axes = np.stack([np.cos(angles), np.sin(angles)])
    return weights, weights.sum(), (axes * weights) @ axes.T / max(weights.sum(), 1e-300)


@given(seeds, st.integers(3, 60), st.floats(0.05, 0.7), st.floats(0.1, 1.5), st.booleans())
def test_cores_of_neighbours(seed, t, radius, spread, chain):
    rng = np.random.default_rng(seed)
    step = math.asin(radius / math.sqrt(2)) * (1 - 1e-9)
    angles = step * (rng.integers(-1, 2, t) if chain else rng.normal(scale=spread, size=t))
    other = angles.copy()
    other[0] = step * rng.integers(-3, 4) if chain else rng.normal(scale=2 * step)
    (weights, weight, average), (weights2, weight2, average2) = (core(a, radius) for a in (angles, other))
    passing = np.concatenate([angles[weights > 0], other[weights2 > 0]])
    if len(passing):
        assert math.sqrt(2) * np.abs(np.sin(passing[:, None] - passing[None, :])).max() <= 2 * radius + 1e-9
    plan = core_plan(t, Budget(1.0, 1e-6))
    assert abs(weight - weight2) <= plan.largest_change + 1e-9
    if max(weight, weight2) > plan.largest_change:
        moved = np.linalg.norm(average - average2)
        assert moved <= 2 * radius * plan.movement(max(weight, weight2)) + 1e-9


def test_a_core_that_agrees_moves_by_its_bound():
    t, radius = 2_001, 0.1
    step = math.asin(radius / math.sqrt(2)) * (1 - 1e-9)
    pair = [np.append(np.zeros(t - 1), side * step) for side in (1, -1)]
    (_, weight, average), (_, _, average2) = (core(angles, radius) for angles in pair)
    moved = np.linalg.norm(average - average2) / (2 * radius)
    assert 0.97 < moved / core_plan(t, Budget(1.0, 1e-6)).movement(weight) <= 1.0


def test_a_core_that_agrees_in_part_moves_by_more_than_its_diameter_over_its_weight():
    radius = 0.01
    step = math.asin(radius / math.sqrt(2))
    pair = (step * np.array([first, -1e-4, 1.0 - 1e-9, 1.0 - 2e-4]) for first in (0.0, 2.0 - 3e-4))
    (_, weight, average), (_, _, average2) = (core(angles, radius) for angles in pair)
    assert weight == 3.0
    moved = np.linalg.norm(average - average2) * weight / (2 * radius)
    assert 1.12 < moved <= core_plan(4, Budget(1.0, 1e-6)).movement(weight) * weight


def test_the_weight_of_a_core_changes_by_almost_three():
    t = 2_001
    together, apart = np.zeros(t), np.append(np.zeros(t - 1), 1.0)
    changed = core(together, 0.1)[1] - core(apart, 0.1)[1]
    assert 2.99 < changed <= core_plan(t, Budget(1.0, 1e-6)).largest_change == 3.0


def test_half_the_friends_are_not_enough_across_neighbours():
    # Two friends each, and the two tables' first blocks have none in common.
    radius = 0.2
    step = math.asin(radius / math.sqrt(2)) * 0.99
    angles = np.array([-2 * step, -step, step])
    other = np.array([2 * step, -step, step])
    counts = [friend_counts(lines(a), radius)[0] for a in (angles, other)]
    assert counts == [2, 2]
    assert friends_needed(3) == 2  # so that the weight is 0
    assert math.sqrt(2) * abs(math.sin(4 * step)) > 2 * radius


def test_what_lemma_11_adds_up_is_at_most_one():
    """The parts of S that are friends of the one, the other or neither record: no shares make it more than 1."""
    rng = np.random.default_rng(0)
    size, shares = rng.uniform(0, 2, 200_000), rng.dirichlet([0.7] * 4, 200_000)
    more, fewer, neither = (
        np.maximum(shares[:, 0], shares[:, 1]),
        np.minimum(shares[:, 0], shares[:, 1]),
        shares[:, 2],
    )
    heavy, light = (np.maximum(0, 1 - size * (strangers + neither)) for strangers in (fewer, more))
    own = light + (heavy - light) * (0.5 + 0.5 * (fewer + neither))
    assert (own + 0.5 * size * (more * (1 - more) + fewer * (1 - fewer))).max() <= 1.0 + 1e-12


def test_a_block_without_a_vote_is_nobodys_friend():
    bases = lines(np.zeros(4))
    silent = BlockBases(bases.bases, np.array([True, True, True, False]))
    assert friend_counts(silent, 1.0).tolist() == [3, 3, 3, 0]


@pytest.mark.parametrize("blocks", [2, 3, 500, 16_384])
def test_the_plan_of_the_core(blocks):
    budget = Budget(2.0, 1e-5)
    plan = core_plan(blocks, budget)
    mus = [part.mu for part in plan.parts if part.mu is not None]
    (overestimated,) = (part.delta for part in plan.parts if part.mu is None)
    assert stats.norm.sf(plan.count_offset / plan.count_sigma) <= overestimated
    assert plan.full * plan.largest_change / plan.count_sigma <= mus[0]
    assert mus[1] == plan.mu_average
    assert delta_from_mu(math.hypot(*mus), budget.epsilon) + overestimated <= budget.delta


def test_few_blocks_are_enough_for_a_core():
    rng = np.random.default_rng(0)
    X = np.column_stack([np.ones(300), 0.01 * rng.standard_normal((300, 3))])
    release = baselines.friendly_core(X, 1, epsilon=1.0, delta=1e-6, block_size=1, rng=0)
    assert release.extras["core_weight_lower_bound"] > 100
    assert not release.abstained


def test_the_released_weight_alone_decides_about_a_core():
    def run(X, weight):
        told = Told(gaussian=lambda values, *_: values if values.shape else np.array(weight))
        release = baselines.friendly_core(X, 1, epsilon=1.0, delta=1e-6, block_size=1, rng=told)
        return release, [sigma for values, sigma, _ in told.asked["gaussian"] if values.shape]

    alike, scattered = np.ones((300, 2)), np.random.default_rng(0).standard_normal((300, 2))
    levels = []
    for weight in (2e4, 4e4):
        (found, sigmas), (_, others) = run(alike, weight), run(scattered, weight)
        assert not found.abstained
        assert sigmas == others  # the noise is for what was released, whatever the blocks say
        levels.append(min(sigmas))
    assert levels[1] < levels[0]
    abstained, sigmas = run(alike, 0.0)  # though all agree
    assert abstained.abstained
    assert sigmas == []


def test_blocks_are_chosen_from_public_numbers():
    budget = Budget(1.0, 1e-6)
    sizes = [public_block_size(n, 100, 3, budget) for n in (1_000, 10_000, 100_000, 10**6)]
    assert sizes == [6, 12, 17, 62]  # the last for the limit of 16384 blocks
    assert public_block_size(5, 10, 3, budget) == 3


def test_the_gap_is_released_from_below(clear):
    X, _ = clear
    with _common.open_table(X, 2, epsilon=1.0, delta=1e-6, rng=0) as table:
        values, _ = _common.spectrum(_common.second_moment(table).matrix)
    gap = values[1] - values[2]
    released = [run("analyze_gauss_gap", X, rng=seed).extras["gap_lower_bound"] for seed in range(40)]
    assert max(released) < gap
    assert min(released) > 0.9 * gap


def test_the_gap_and_the_projector_have_noise_of_their_shares(clear):
    """A replacement moves the gap by 2, and the projector by what the released gap allows."""
    with watched() as seen:
        release = run("analyze_gauss_gap", clear[0])
    gap, projector = (part.mu for part in release.cost.parts[:2])
    assert is_noise_of(seen.sigmas[0], 2.0, gap)
    moved = projector_movement(release.extras["gap_lower_bound"]) / math.sqrt(2.0)
    assert is_noise_of(seen.sigmas[1], moved, projector)
