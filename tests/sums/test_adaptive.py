"""The adaptive algorithm: sensitivity lemmas, budget along transcripts with planted faults, odd inputs, accuracy."""

import math
from fractions import Fraction
from functools import partial

import folding
import numpy as np
import pytest
from charges import watched
from folding import folded_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import Told, seeded
from scipy import sparse

from privspan.audit.replay import spent_by
from privspan.datasets import gaussian_subspace
from privspan.privacy import Budget, compose_mu, mu_from_budget
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.run import open_run
from privspan.rows.door import open_table
from privspan.rows.unit import Rows
from privspan.subspace import Subspace
from privspan.sums import adaptive, localised
from privspan.sums import plan as planner
from privspan.sums.adaptive import adaptive_subspace
from privspan.sums.analyze_gauss import analyze_gauss
from privspan.sums.estimate import Estimate, joined, turned
from privspan.sums.grid import noise_level
from privspan.sums.localised import (
    INNER_CAP,
    geometric_mean,
    local_view,
    record_weights,
    residual_slack,
)
from privspan.sums.preconditioned import PreconditionedGram, shrunk_lengths
from privspan.sums.variance import explained_variance, second_moments

MU = mu_from_budget(1.0, 1e-6)


# ---- Sensitivity lemmas, through the code's own maps of one record --------------------------------------------


@st.composite
def pairs_and_frames(draw):
    """Two records, a frame V (d, k), a whitening, and clips; the second record is often a hostile twin."""
    d = draw(st.integers(2, 6))
    k = draw(st.integers(1, d - 1))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    basis = np.linalg.qr(rng.standard_normal((d, k)))[0]
    x, y = rng.standard_normal((2, d))
    if draw(st.booleans()):
        x = basis @ (basis.T @ x) + draw(st.sampled_from([1e-9, 1e-3, 1.0])) * (x - basis @ (basis.T @ x))
    twin = draw(st.sampled_from(["other", "residual flipped", "coordinates flipped", "zero", "nan", "inside"]))
    inside = basis @ (basis.T @ x)
    y = {
        "other": y,
        "residual flipped": 2 * inside - x,
        "coordinates flipped": x - 2 * inside,
        "zero": np.zeros(d),
        "nan": np.full(d, np.nan),
        "inside": inside,
    }[twin]
    whitening = np.exp(rng.standard_normal(k))
    return np.array([x]), np.array([y]), basis, whitening, draw(st.floats(1e-4, 2.0)), draw(st.floats(0.1, 10.0))


def localised_terms(x, basis, whitening, clip, steepness):
    """Return w r uᵀ and w u uᵀ of one record, from the coordinates and weights that the algorithm computes."""
    rows = Rows(x)
    view = local_view(rows, basis)
    whitened = view.coordinates * whitening
    weight = record_weights(view.off, whitened, clip, INNER_CAP, steepness)[0]
    unit = next(rows.pieces())[1][0]
    residual = unit - basis @ view.coordinates[0]
    return weight * np.outer(residual, whitened[0]), weight * np.outer(whitened[0], whitened[0])


@settings(max_examples=300)
@given(pairs_and_frames())
def test_localised_sums_move_by_at_most_two_c_and_root_two_m(case):
    x, y, basis, whitening, clip, steepness = case
    cross, inner = localised_terms(x, basis, whitening, clip, steepness)
    other_cross, other_inner = localised_terms(y, basis, whitening, clip, steepness)
    assert np.linalg.norm(cross) <= clip * (1 + 1e-12)
    assert np.linalg.norm(cross - other_cross) <= 2 * clip * (1 + 1e-12)
    assert np.linalg.norm(inner - other_inner) <= math.sqrt(2) * INNER_CAP * (1 + 1e-12)


def test_the_localised_bound_is_attained_by_a_flipped_residual():
    basis = np.eye(4)[:, :2]
    x, y = np.array([[1.0, 1.0, 1.0, 0.0]]), np.array([[1.0, 1.0, -1.0, 0.0]])
    cross, _ = localised_terms(x, basis, np.ones(2), 0.1, math.inf)
    other, _ = localised_terms(y, basis, np.ones(2), 0.1, math.inf)
    assert np.linalg.norm(cross - other) == pytest.approx(0.2, rel=1e-6)


@pytest.mark.parametrize("single", [False, True])
def test_both_sums_of_a_chunk_are_off_by_less_than_is_charged(single):
    """Against rational arithmetic on the rows, and on the coordinates and weights as they are computed."""
    rng, k, clip = np.random.default_rng(0), 2, 0.3
    X = (rng.standard_normal((40, 5)) * 10.0 ** rng.integers(-9, 9, (40, 1))).astype(np.float32)
    rows = Rows(X, centre=np.zeros(5), single=True) if single else Rows(X)
    view, whitening = local_view(rows, np.linalg.qr(rng.standard_normal((5, k)))[0]), np.array([0.7, 2.3])
    weigh = partial(record_weights, clip=clip, cap=INNER_CAP)
    ((cross, inner),) = localised._both_sums(rows, view, whitening, weigh, single=False)
    whitened, z = folding.exactly(view.coordinates * whitening), folding.exactly(view.coordinates)
    weights = [Fraction(float(w)) for w in weigh(view.off, view.coordinates * whitening)]
    residuals = np.array(folded_rows(rows)) - z @ folding.exactly(view.basis).T
    exact = [
        np.array([w * u for w, u in zip(weights, side, strict=True)]).T @ whitened for side in (residuals, whitened)
    ]
    bounds = localised.cross_bounds(40, 5, k, clip), localised.inner_bounds(40, k)
    for found, wanted, bound in zip((cross, inner), exact, bounds, strict=True):
        assert 0.0 < folding.distance(found, wanted) <= bound.chunk_error / 40  # which is for a whole chunk


@pytest.mark.parametrize(("tail", "least", "most"), [(0.1, 2.0**-12, 2.0**-8), (0.012, 0.0, 2.0**-16)])
def test_residuals_are_added_up_in_float32_where_that_costs_next_to_nothing(tail, least, most):
    """At most .4 % of the noise; rows that lie closer are looked at in that type, and added up in float64."""
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(9_000, 2)) @ np.eye(2, 20) + tail * rng.normal(size=(9_000, 20))).astype(np.float32)
    with watched() as seen:
        adaptive_subspace(X, 2, epsilon=4.0, delta=1e-6, rng=0)
    of_sums = [one.bounds for one in seen.charged if one.bounds.entries == 40]
    assert of_sums
    for bounds in of_sums:
        assert least < 2.0 * bounds.chunk_error / bounds.sensitivity <= most


def test_each_sum_of_a_round_has_the_grid_and_the_noise_of_its_own_bounds():
    X, (basis, _) = np.random.default_rng(0).standard_normal((60, 4)), np.linalg.qr(np.eye(4)[:, :2] + 0.1)
    rows, told, clip, mus = Rows(X), Told(), 1e-3, (0.3, 0.7)
    localised.localised_sums(rows, local_view(rows, basis), np.ones(2), clip, *mus, seeded(told))
    bounds = localised.cross_bounds(60, 4, 2, clip), localised.inner_bounds(60, 2)
    cross, inner = (noise_level(one, mu) for one, mu in zip(bounds, mus, strict=True))
    assert cross.grid < inner.grid
    for (values, sigma, grid), level in zip(told.asked["gaussian"], (cross, inner, inner), strict=True):
        assert level.sigma <= sigma <= level.sigma * np.nextafter(np.sqrt(2), 2)
        assert grid == level.grid
        assert np.array_equal(values, np.rint(values / grid) * grid)


@settings(max_examples=300)
@given(pairs_and_frames())
def test_residual_bounds_are_upper_bounds(case):
    x, _, basis, *_ = case
    view = local_view(Rows(x), basis)
    unit = folded_rows(Rows(x))[0]  # factor times row, exactly
    exact = [
        a - sum(Fraction(float(b)) * Fraction(float(z)) for b, z in zip(line, view.coordinates[0], strict=True))
        for a, line in zip(unit, basis, strict=True)
    ]
    assert sum(value**2 for value in exact) <= Fraction(float(view.off[0])) ** 2 * Fraction(1 + 2**-40)
    assert residual_slack(basis) < 1e-12


@settings(max_examples=200)
@given(pairs_and_frames(), st.floats(0.01, 1.0))
def test_preconditioned_sums_move_by_at_most_root_two_c_squared(case, clip):
    x, y, basis, whitening, *_ = case
    factors = np.minimum(whitening, 1.0)
    grams = []
    for record in (x, y):
        rows = Rows(record)
        view = local_view(rows, basis)
        source = PreconditionedGram(rows, view, factors, clip)
        grams.append(next(source.products(None)))
        unit = next(rows.pieces())[1][0]
        shrunk = unit + basis @ ((factors - 1.0) * view.coordinates[0])
        assert np.linalg.norm(shrunk) <= shrunk_lengths(view, factors)[0] * (1 + 1e-15)
    assert np.trace(grams[0]) <= clip**2 * (1 + 1e-12)
    assert np.linalg.norm(grams[0] - grams[1]) <= math.sqrt(2) * clip**2 * (1 + 1e-9)


@settings(max_examples=100)
@given(pairs_and_frames())
def test_second_moments_and_typical_lengths_spend_at_most_mu(case):
    x, y, basis, _, clip, _ = case
    spent = spent_by(lambda X, rng: second_moments(Rows(X, clip=clip), basis, 1.0, seeded(rng)), x, y)
    assert spent <= 1.0
    spent = spent_by(
        lambda X, rng: geometric_mean(np.abs(np.nan_to_num(X[0])), 0.01, 2.0, 1.0, seeded(rng)),
        x,
        x * np.r_[1e9, np.ones(x.shape[1] - 1)],
    )
    assert spent <= 1.0


def test_matrix_products_are_row_local():
    rng = np.random.default_rng(0)
    for n, d, k in ((700, 37, 3), (4096, 130, 10), (64, 1000, 17)):
        X, V = rng.standard_normal((n, d)), rng.standard_normal((d, k))
        other = X.copy()
        other[n // 2] = 1e6
        same = np.arange(n) != n // 2
        assert np.array_equal((X @ V)[same], (other @ V)[same])


# ---- One budget ------------------------------------------------------------------------------------------------


def test_ledger_hands_out_no_more_than_the_budget():
    ledger = MuLedger(Budget(1.0, 1e-6))
    mus = [ledger.spend("a", 0.1), ledger.spend("b", 0.2), ledger.spend("c", 0.7)]
    assert compose_mu(*mus) <= MU * (1 + 1e-15)


def test_ledger_refuses_shares_above_one():
    ledger = MuLedger(Budget(1.0, 1e-6))
    ledger.spend("a", 0.6)
    with pytest.raises(RuntimeError, match="budget"):
        ledger.spend("b", 0.4 + 2.0**-50)
    assert ledger.spend("c", ledger.left) < MU
    assert ledger.left == 0.0
    with pytest.raises(RuntimeError):
        ledger.spend("d", 1e-18)
    with pytest.raises(RuntimeError):
        ledger.spend("d", math.nan)


@given(st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=30))
def test_ledger_is_exact_for_every_sequence(shares):
    ledger = MuLedger(Budget(1.0, 1e-6))
    mus = []
    for share in shares:
        if Fraction(share) <= Fraction(ledger.left):
            mus.append(ledger.spend("step", share))
    assert sum(Fraction(mu) ** 2 for mu in mus) <= Fraction(MU) ** 2


def test_shares_of_a_release_sum_to_at_most_one():
    for seed, condition in ((0, 1.0), (1, 100.0)):
        X, _ = gaussian_subspace(3_000, 30, 3, gamma_w=0.1, condition=condition, rng=seed)
        release = adaptive_subspace(X, 3, epsilon=1.0, delta=1e-6, rng=seed)
        shares = release.parameters["shares"]
        assert sum(Fraction(share) for _, share in shares) <= 1
        assert sum(share for _, share in shares) > 0.999
        assert compose_mu(*(part.mu for part in release.cost.parts)) <= MU * (1 + 1e-15)


def test_a_run_that_plans_above_one_is_stopped():
    X, _ = gaussian_subspace(3_000, 30, 2, gamma_w=0.1, rng=0)
    with pytest.raises(RuntimeError, match="budget"):
        adaptive.adaptive_within(seeded(0), open_table(X), 2, expert={"first_share": 1.5})


# ---- The whole algorithm along transcripts ---------------------------------------------------------------------


def flipped(X, truth, row):
    """Return X with the residual of one row turned round: the worst that can happen to C."""
    other = X.copy()
    other[row] = 2 * truth.project(X[row : row + 1])[0] - X[row]
    return other


def replaced(X, row, record):
    other = X.copy()
    other[row] = record
    return other


CASES = {
    "localised": ({"gamma_w": 0.1}, "localised"),
    "weak directions": ({"gamma_w": 0.05, "condition": 300.0}, "localised"),
    "plain finish": ({"gamma_w": 6.0}, "Analyze Gauss"),
}


@pytest.mark.parametrize("case", CASES)
def test_replacing_one_record_costs_at_most_the_budget(case):
    shape, course = CASES[case]
    X, truth = gaussian_subspace(3_000, 30, 3, rng=5, **shape)

    def run(rows, rng):
        assert adaptive_subspace(rows, 3, epsilon=1.0, delta=1e-6, rng=rng).parameters["course"] == course

    across = truth.complement().basis[:, 0]
    records = [np.zeros(30), np.full(30, np.nan), across, -1e200 * across, truth.basis[:, -1]]
    others = [flipped(X, truth, 7), *(replaced(X, 7, record) for record in records)]
    spent = [spent_by(run, X, other, seed=11) for other in others]
    assert max(spent) <= MU**2
    assert max(spent) > 0.2 * MU**2  # the microscope is sharp enough to see a factor 2.3 in the noise


def test_weak_directions_are_looked_for_in_that_case():
    X, _ = gaussian_subspace(3_000, 30, 3, rng=5, **CASES["weak directions"][0])
    release = adaptive_subspace(X, 3, epsilon=1.0, delta=1e-6, rng=11)
    assert "preconditioned look" in dict(release.parameters["shares"])


def test_flipped_residuals_cost_no_more_than_mu():
    X, truth = gaussian_subspace(3_000, 30, 3, gamma_w=0.1, rng=5)

    def run(rows, rng):
        return adaptive_subspace(rows, 3, epsilon=1.0, delta=1e-6, rng=rng)

    assert max(spent_by(run, X, flipped(X, truth, row), seed=11) for row in range(4)) <= MU**2


def test_a_ledger_that_does_not_add_up_is_caught():
    class Generous(MuLedger):
        left = 1.0

        def spend(self, name, share):
            return MU * math.sqrt(3.0 * share)

    X, truth = gaussian_subspace(500, 10, 1, gamma_w=0.1, rng=5)

    def run(rows, rng):
        source = Rows(rows)
        view = local_view(source, truth.basis)
        run = open_run(Generous(Budget(1.0, 1e-6)), rng)
        mu = run.account.spend("residuals", 0.9)
        localised.localised_sums(source, view, np.ones(1), 0.05, mu, mu, run)

    assert spent_by(run, X, flipped(X, truth, 0)) > MU**2


# ---- Odd inputs -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("robust", [True, False])
@pytest.mark.parametrize(
    "X",
    [
        np.zeros((40, 6)),
        np.ones((40, 6)),
        np.full((40, 6), np.nan),
        np.full((40, 6), -np.inf),
        np.eye(6)[np.arange(40) % 6],
        np.eye(6)[np.zeros(5000, dtype=int)],
        np.outer(np.arange(1.0, 5001.0), np.ones(6)),
        np.full((3, 6), 1e308),
        np.full((40, 6), 5e-324),
    ],
)
def test_every_value_gives_a_release(X, robust):
    for k in (1, 3, 6):
        if k <= len(X):
            release = adaptive_subspace(X, k, epsilon=1.0, delta=1e-6, robust=robust)
            assert release.private
            assert release.subspace.dimension == k
            assert release.cost.epsilon == 1.0


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 20.0])
def test_extreme_budgets(epsilon):
    X, _ = gaussian_subspace(200, 300, 2, gamma_w=0.3, rng=0)
    assert adaptive_subspace(X, 2, epsilon=epsilon, delta=1e-9, rng=0).subspace.dimension == 2


def test_bad_rows_do_no_harm():
    X, truth = gaussian_subspace(6_000, 30, 2, gamma_w=0.1, rng=0)
    X[:60] = np.nan
    X[60:120] *= 1e200
    assert adaptive_subspace(X, 2, epsilon=1.0, delta=1e-6, rng=0).subspace.distance(truth) < 0.02


def test_the_whole_space_needs_no_data():
    release = adaptive_subspace(np.full((4, 3), np.nan), 3, epsilon=1.0, delta=1e-6)
    assert release.subspace.distance(Subspace(np.eye(3))) == 0.0


def test_memory_maps_float32_and_sparse_matrices(tmp_path):
    X, _ = gaussian_subspace(5_000, 40, 2, gamma_w=0.1, rng=0)
    X = X.astype(np.float32)
    stored = np.memmap(tmp_path / "rows.dat", dtype=np.float32, mode="w+", shape=X.shape)
    stored[:] = X
    reference = adaptive_subspace(X, 2, epsilon=1.0, delta=1e-6, rng=3).subspace
    for same in (stored, sparse.csr_matrix(X), sparse.coo_array(X)):  # sparse ones are multiplied in float64
        assert adaptive_subspace(same, 2, epsilon=1.0, delta=1e-6, rng=3).subspace.distance(reference) < 1e-4


def test_refusals_look_at_public_facts():
    X = np.ones((5, 4))
    with pytest.raises(ValueError, match="`k`"):
        adaptive_subspace(X[:2], 3, epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="`epsilon`"):
        adaptive_subspace(X, 1, epsilon=0.0, delta=1e-6)
    with pytest.raises(TypeError, match="`robust`"):
        adaptive_subspace(X, 1, epsilon=1.0, delta=1e-6, robust=1)
    with pytest.raises(ValueError, match="`first_share`"):
        adaptive_subspace(X, 1, epsilon=1.0, delta=1e-6, first_share=1.0)
    with pytest.raises(ValueError, match="columns"):
        explained_variance(X, Subspace(np.eye(3)[:, :1]), epsilon=1.0, delta=1e-6)


# ---- Accuracy ---------------------------------------------------------------------------------------------------


def median_errors(n, d, k, seeds, **shape):
    ours, plain = [], []
    for seed in range(seeds):
        X, truth = gaussian_subspace(n, d, k, rng=seed, **shape)
        ours.append(adaptive_subspace(X, k, epsilon=1.0, delta=1e-6, rng=seed).subspace.distance(truth))
        plain.append(analyze_gauss(X, k, epsilon=1.0, delta=1e-6, rng=100 + seed).subspace.distance(truth))
    return float(np.median(ours)), float(np.median(plain))


@pytest.mark.parametrize(
    ("shape", "gain"),
    [
        ({"gamma_w": 1.0}, 0.95),
        ({"gamma_w": 0.3}, 1.8),
        ({"gamma_w": 0.1}, 4.5),
        ({"gamma_w": 0.01}, 40.0),
        ({"gamma_w": 0.1, "condition": 100.0}, 15.0),
    ],
)
def test_gain_over_analyze_gauss(shape, gain):
    ours, plain = median_errors(10_000, 50, 3, 5, **shape)
    assert plain / ours > gain


def overlap(subspace, truth):
    """Mean squared cosine of the angles between two subspaces."""
    return float(np.linalg.norm(truth.T @ subspace.basis) ** 2 / truth.shape[1])


# (d, k), what is known of the matrix when it is strengthened and in the end, and the data.
BRANCHES = [
    pytest.param(256, 12, ("whole", "whole"), {}, id="whole matrix by d"),
    pytest.param(257, 12, ("part", "part"), {}, id="never complete"),
    pytest.param(270, 37, ("part", "part"), {}, id="nearly complete in the end"),
    pytest.param(
        270, 38, ("part", "turned"), {"n": 20_000, "spread": 1.6, "epsilon": 4.0}, id="completed after strengthening"
    ),
    pytest.param(270, 40, ("turned", "turned"), {"n": 20_000, "spread": 1.6, "epsilon": 4.0}, id="completed before"),
    pytest.param(270, 261, ("turned", "turned"), {}, id="complete in two blocks"),
    pytest.param(270, 264, ("whole", "whole"), {}, id="whole matrix by k"),
]


def known_of(lazy):
    """Tell what is known: a part, all in standard coordinates, or all in others."""
    if not lazy.complete:
        return "part"
    return "whole" if np.array_equal(lazy.basis, np.eye(len(lazy.basis))) else "turned"


@pytest.mark.parametrize(("d", "k", "known", "data"), BRANCHES)
def test_every_branch_is_as_good_as_the_dense_matrix(d, k, known, data, monkeypatch):
    """Same budget, same law of the noise: strengthened, at once, and dense Analyze Gauss find the same subspace."""
    seen = []

    class Watched(adaptive.LazyGauss):
        def strengthen(self, mu):
            seen.extend([known_of(self), self])
            super().strengthen(mu)

    monkeypatch.setattr(adaptive, "LazyGauss", Watched)
    n, epsilon = data.get("n", 6_000), data.get("epsilon", 12.0)
    X = np.random.default_rng(0).standard_normal((n, d))
    X[:, :k] *= data.get("spread", 2.5)
    budget, truth = {"epsilon": epsilon, "delta": 1e-6, "rng": 1}, np.eye(d, k)
    strengthened = adaptive_subspace(X, k, **budget)
    assert strengthened.parameters["course"] == "Analyze Gauss"
    assert (seen[0], known_of(seen[1])) == known
    dense = overlap(analyze_gauss(X, k, **budget).subspace, truth)
    assert dense > 0.9
    assert overlap(strengthened.subspace, truth) == pytest.approx(dense, abs=0.01)
    at_once = adaptive_subspace(X, k, **budget, robust=False)
    assert overlap(at_once.subspace, truth) == pytest.approx(dense, abs=0.01)


# ---- Noise: the covariance of what is released is what is said ---------------------------------------------------


def worst_moment(draws):
    """Return how far second moments of (draws, entries) are from the identity, in standard deviations at most."""
    draws = np.array(draws)
    return float(np.abs(draws.T @ draws / len(draws) - np.eye(draws.shape[1])).max() / math.sqrt(2.0 / len(draws)))


def symmetric_entries(matrix):
    """Return the entries of a symmetric matrix, those on the diagonal divided by sqrt(2)."""
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-9 * np.abs(matrix).max())
    rows, columns = np.triu_indices(len(matrix))
    return matrix[rows, columns] / np.where(rows == columns, math.sqrt(2.0), 1.0)


WORST = 6.5  # standard deviations: below 1e-6 for one moment of 200 draws, and there are fewer than 200; seeded


def test_the_noise_of_a_localised_round_is_what_it_says():
    rows, basis = Rows(np.zeros((3, 4))), np.linalg.qr(np.random.default_rng(0).standard_normal((4, 2)))[0]
    draws = []
    for seed in range(400):
        found = localised.localised_sums(rows, local_view(rows, basis), np.ones(2), 0.5, 1.0, 0.7, seeded(seed))
        draws.append(
            np.append(found.cross.ravel() / found.cross_noise, symmetric_entries(found.inner) / found.inner_noise)
        )
    assert worst_moment(draws) < WORST
    assert (found.cross_noise, found.inner_noise) == (
        pytest.approx(2.0 * 0.5, rel=1e-3),
        pytest.approx(INNER_CAP / 0.7, rel=1e-3),
    )


def test_the_noise_of_second_moments_is_what_it_says():
    rows, basis, draws = Rows(np.zeros((3, 4))), np.eye(4, 2), []
    for seed in range(400):
        inside, outside, _ = second_moments(rows, basis, 2.0, seeded(seed))
        draws.append(2.0 * np.append(symmetric_entries(inside), outside / math.sqrt(2.0)))
    assert worst_moment(draws) < WORST


def test_the_noise_of_several_preconditioned_looks_together_is_what_it_says():
    """Two looks with bases, clips and budgets of their own, averaged: a symmetric matrix off the known directions."""
    n, d = 10**7, 5  # so many rows that the correction for known directions, noise times noise over n, is negligible
    rng, draws = np.random.default_rng(0), []
    basis = np.linalg.qr(rng.standard_normal((d, 2)))[0]
    rest = np.linalg.qr(np.hstack([basis, rng.standard_normal((d, d - 2))]))[0][:, 2:]
    for seed in range(200):
        bits = seeded(seed)
        looks = []
        for known, mu in ((1, 0.5), (2, 1.0)):
            view = local_view(Rows(np.zeros((2, d))), basis[:, :known])
            source = PreconditionedGram(Rows(np.zeros((2, d))), view, np.full(known, 0.5), 0.3 * known)
            lazy = adaptive.LazyGauss(source, mu, bits, most_columns=d, most_passes=20)
            image = lazy.product(basis[:, :known])
            mixed = image - basis[:, :known] @ (basis[:, :known].T @ image)
            looks.append(adaptive.ShrunkLook(lazy, basis[:, :known], mixed, mixed.T / n, 0.4 * known))
        start = rng.standard_normal((d, d))
        values, directions, noise = adaptive.leading_directions(looks, basis, d - 2, start, 1, rng)
        turned = rest.T @ directions
        assert math.isnan(values[-1])  # there is no other direction
        draws.append(symmetric_entries((turned * values[:-1]) @ turned.T) / noise)
    assert worst_moment(draws) < WORST
    # Noise c²/mu over the mean weight, joined by precision: .09/.5/.4 and .36/1/.8.
    assert noise == pytest.approx(0.45 / math.sqrt(2.0), rel=1e-3)


def test_joined_estimates_are_as_precise_as_they_say():
    """Errors of two independent measurements of one basis, in coordinates that are turned afterwards."""
    d, k, rng = 40, 2, np.random.default_rng(0)
    basis, first = np.eye(d, k), np.array([[9.0, 3.0], [3.0, 4.0]]) * 1e4
    second, moment = np.array([[2.0, -1.0], [-1.0, 6.0]]) * 1e4, np.array([[1.0, 0.7], [0.7, 2.0]])
    whitened = []
    for _ in range(60):
        off = np.vstack(
            [np.zeros((k, k)), rng.standard_normal((d - k, k)) @ np.linalg.cholesky(np.linalg.inv(first)).T]
        )
        noise = np.vstack(
            [np.zeros((k, k)), rng.standard_normal((d - k, k)) @ np.linalg.cholesky(np.linalg.inv(second)).T]
        )
        # The truth is the basis plus `off`; the round measures `off` with its own noise.
        found = turned(joined(Estimate(basis, first, np.ones(k)), off + noise, second, 0.0), moment)
        truth = basis + off
        error = truth @ np.linalg.inv(found.basis.T @ truth) - found.basis  # (d, k), off the found basis
        whitened.append(error[k:] @ np.linalg.cholesky(found.precision))
    assert worst_moment(np.vstack(whitened)) < WORST


def test_predictions_are_near():
    for gamma_w in (1.0, 0.1):
        ours, _ = median_errors(10_000, 50, 3, 5, gamma_w=gamma_w)
        assert 1 / 1.5 < planner.predicted_error(10_000, 50, 3, MU, gamma_w) / ours < 1.5


def test_the_self_report_is_near():
    X, truth = gaussian_subspace(3_000, 200, 3, gamma_w=0.1, rng=0)
    release = adaptive_subspace(X, 3, epsilon=1.0, delta=1e-6, rng=0)
    assert release.parameters["stands_out"] == 3
    assert 0.5 < release.parameters["expected_error"] / release.subspace.distance(truth) < 2.0


@pytest.mark.parametrize("robust", [True, False])
@pytest.mark.parametrize(("equal", "spread"), [(20, 1.0), (10, 5.0)], ids=["no subspace", "ten alike"])
def test_directions_that_nothing_sets_apart_are_not_found(robust, equal, spread):
    """Well above the noise, and yet arbitrary: three of many directions with the same variance."""
    X = np.random.default_rng(0).standard_normal((20_000, 20))
    X[:, :equal] *= spread
    release = adaptive_subspace(X, 3, epsilon=1.0, delta=1e-6, rng=1, robust=robust)
    assert release.parameters["stands_out"] < 3
    assert release.parameters["expected_error"] > 0.5


@pytest.mark.parametrize(
    ("shape", "tail", "epsilon"), [((20_000, 50), 0.02, 1.0), ((20_000, 50), 0.1, 3.0), ((10_000, 120), 0.3, 3.0)]
)
def test_tails_that_no_noise_hides_are_guesses_all_the_same(shape, tail, epsilon):
    """Two directions and an even tail: which others come next is arbitrary, though noise is far below them."""
    rng, (n, d) = np.random.default_rng(0), shape
    axes = np.linalg.qr(rng.standard_normal((d, 2)))[0]
    X = rng.standard_normal((n, 2)) @ axes.T + tail / math.sqrt(d) * rng.standard_normal((n, d))
    release = adaptive_subspace(X, 4, epsilon=epsilon, delta=1e-6, rng=1)
    assert release.parameters["stands_out"] == 2
    assert release.parameters["expected_error"] == 1.0
    # The two are in it, about as near as is told of them.
    basis = release.subspace.basis
    off = float(np.linalg.norm(axes - basis @ (basis.T @ axes), 2))
    assert 0.2 * off < release.parameters.get("expected_error_of_found", off) < 10.0 * max(off, tail / math.sqrt(n))


def test_weak_directions_below_a_short_residual_are_told_from_errors_of_the_others():
    """What the first look has wrong is no direction of its own, however short all residuals are."""
    rng = np.random.default_rng(0)
    axes = np.linalg.qr(rng.standard_normal((100, 3)))[0]
    X = rng.standard_normal((20_000, 3)) * [1.0, 1.0, 0.02] @ axes.T + 1e-4 * rng.standard_normal((20_000, 100))
    release = adaptive_subspace(X, 3, epsilon=1.0, delta=1e-6, rng=1)
    assert release.parameters["stands_out"] == 3
    assert release.subspace.distance(Subspace.from_spanning(axes)) < 0.02


@pytest.mark.parametrize("k", [2, 6])
def test_the_self_report_of_analyze_gauss_counts_the_tail(k):
    """A flat tail below the components: the error grows as the gap shrinks, and the report with it."""
    reported, measured = [], []
    for seed in range(5):
        X = np.random.default_rng(seed).standard_normal((20_000, 60))
        X[:, :k] *= 1.6
        unit = X / np.linalg.norm(X, axis=1, keepdims=True)
        best = Subspace.from_spanning(np.linalg.eigh(unit.T @ unit)[1][:, -k:])
        release = adaptive_subspace(X, k, epsilon=1.0, delta=1e-6, rng=seed, robust=False)
        reported.append(release.parameters["expected_error"])
        measured.append(release.subspace.distance(best))
    assert release.parameters["stands_out"] == k
    assert 0.8 < np.median(reported) / np.median(measured) < 2.0


def test_outliers_hurt_less_than_they_hurt_analyze_gauss():
    rng = np.random.default_rng(0)
    X, truth = gaussian_subspace(8_000, 50, 3, gamma_w=0.1, rng=0)
    X[:400] = 30 * rng.standard_normal((400, 1)) * rng.standard_normal(50) + rng.standard_normal((400, 50))
    ours = adaptive_subspace(X, 3, epsilon=1.0, delta=1e-6, rng=0).subspace.distance(truth)
    assert ours < 0.3 * analyze_gauss(X, 3, epsilon=1.0, delta=1e-6, rng=0).subspace.distance(truth)


def test_explained_variances_are_near():
    X, truth = gaussian_subspace(10_000, 100, 3, gamma_w=0.5, condition=10.0, rng=0)
    release = explained_variance(100.0 * X, truth, epsilon=1.0, delta=1e-6, norm_bound=1_000.0, rng=1)
    np.testing.assert_allclose(release.extras["explained_variance"] / 1e4, [10.0, 10**0.5, 1.0], rtol=0.2)
    assert release.extras["total_variance"] / 1e4 == pytest.approx(float((X**2).sum(1).mean()), rel=0.1)
    assert release.subspace.distance(truth) < 1e-9
    chosen = explained_variance(100.0 * X, truth, epsilon=1.0, delta=1e-6, rng=1)
    assert chosen.extras["explained_variance_ratio"][0] == pytest.approx(10 / 14.4, abs=0.1)


def test_explained_variances_of_anything():
    line = Subspace(np.eye(3)[:, :1])
    for X in (np.zeros((5, 3)), np.full((5, 3), np.nan), np.full((5, 3), 1e300)):
        release = explained_variance(X, line, epsilon=1.0, delta=1e-6)
        assert release.extras["total_variance"] >= 0.0
