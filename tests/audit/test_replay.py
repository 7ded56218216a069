"""Replays: what they count, what they refuse, the exact laws, and that planted faults use up more than the claim."""

import itertools
import math
import sys
from dataclasses import replace

import numpy as np
import pytest
from runs import seeded
from scipy import stats

from privspan import baselines
from privspan.audit import ReplayError, Transcript, registered, replay, run_task, tasks
from privspan.audit.laws import covariance_cells, direction_cells, epsilon_at, flipped_law, laplace_cells, product
from privspan.audit.page import bites
from privspan.audit.replay import is_gaussian, replayed_epsilon, spent_by
from privspan.privacy import Budget, coin, delta_from_mu
from privspan.privacy.coin import GaussianCoin
from privspan.privacy.randomness import Child, open_streams
from privspan.stable import records as stable_records
from privspan.stable import scales as stable_scales
from privspan.sums import grid, mean

REPLAYS = registered("replayed")
SLOW = ("approximate_subspace (histogram, side chosen)", "private_subspace (look)")
QUICK = [pytest.param(name, marks=pytest.mark.slow) if name.startswith(SLOW) else name for name in REPLAYS]


def replayed(name):
    (task,) = (task for task in tasks("replayed") if task.name == name)
    return run_task(task, 8, 0)


# ---- What is counted -------------------------------------------------------------------------------------------


def released(values, rng, sigma=2.0):
    return seeded(rng).gaussian(np.asarray(values, dtype=np.float64), sigma)


def test_gaussian_steps_add_up_in_squares():
    def run(table, rng):
        released(table, rng)
        return released(3.0 * np.asarray(table), rng, sigma=6.0)

    assert spent_by(run, [0.0, 4.0], [1.0, 4.0]) == pytest.approx(0.25 + 0.25)


def test_the_second_run_is_handed_what_the_first_released():
    transcript = Transcript()
    transcript.spent_by(released, [0.0], [5.0])
    first, second = transcript.results
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize(
    "run",
    [
        lambda table, rng: released(table, rng, sigma=1.0 + table[0]),
        lambda table, rng: [released(table, rng) for _ in range(1 + int(table[0]))],
        lambda table, rng: [released(table, rng) for _ in range(2 - int(table[0]))],
        lambda table, rng: released(np.zeros(1 + int(table[0])), rng),
    ],
)
def test_what_an_unreleased_value_decides_is_refused(run):
    with pytest.raises(ReplayError, match="unreleased"):
        spent_by(run, [0.0], [1.0])


def test_a_replay_patches_nothing():
    before = {name: vars(module).copy() for name, module in sys.modules.items() if name.startswith("privspan")}
    seen = []

    def run(table, rng):
        seen.append({name: vars(sys.modules[name]) == values for name, values in before.items()})
        return mean.private_mean(table, epsilon=1.0, delta=1e-6, norm_bound=1.0, rng=rng)

    spent_by(run, np.ones((20, 2)), -np.ones((20, 2)))
    assert len(seen) == 2
    assert all(all(same.values()) for same in seen)


def test_parts_of_a_run_stay_in_its_transcript():
    def run(table, rng):
        whole = seeded(rng)
        parts = (whole, whole.on(Child.MEAN), whole.nested("part", 0.5), whole.within(whole.account))
        return [part.gaussian(np.asarray(table), 2.0) for part in parts]

    assert spent_by(run, [0.0], [1.0]) == pytest.approx(4 * 0.25)


def test_a_selection_is_followed_into_everything_that_it_may_select():
    def run(scores, rng):
        chosen = seeded(rng).select(scores, 2.0)
        return released([float(chosen * scores[0])], rng)

    paths = Transcript().paths(run, [4, 1], [3, 2])
    assert not is_gaussian(paths)
    assert sum(path.chance for path in paths) == pytest.approx(1.0)
    assert sorted(path.spent for path in paths) == [0.0, pytest.approx(0.25)]
    assert replayed_epsilon(paths, 1e-12) > 2.0  # that of the selection and some more


# ---- Exact laws ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scores", [[4, 3], [0, 2, 2], [5, 1, 4, 4]])
def test_permute_and_flip_by_all_orders(scores):
    taken = np.exp(-0.7 * (max(scores) - np.array(scores)) / 2)
    chances = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        left = 1.0 / math.factorial(len(scores))
        for candidate in order:
            chances[candidate] += left * taken[candidate]
            left *= 1.0 - taken[candidate]
    np.testing.assert_allclose(flipped_law(scores, 0.7), chances, atol=1e-12)


def test_cells_have_the_epsilon_of_what_they_stand_for():
    laplace = laplace_cells(0.0, 3.0, 2.0)
    assert epsilon_at(1e-12, (laplace, 0.0)) == pytest.approx(1.5, rel=1e-6)
    assert epsilon_at(1e-12, (product([laplace, laplace]), 0.0)) == pytest.approx(3.0, rel=1e-6)
    first, second = direction_cells(np.diag([1.0, 0.0]), np.diag([0.0, 1.0]), 0.8)
    assert np.log(first / second).max() == pytest.approx(0.8, rel=1e-3)  # at the axis; the normalisers agree
    (chi_square,) = covariance_cells(np.array([[1.0]]), np.array([[2.0]]), 9)
    edge = 4.0 * (4.5 * math.log(2.0) - 0.5)  # where log p/q = 1/2
    law = stats.chi2(9)
    exact = law.cdf(edge) - math.exp(0.5) * law.cdf(edge / 2.0)
    assert 0.999 * 0.5 <= epsilon_at(exact, (chi_square, 0.0)) <= 0.5 * (1 + 1e-9)


def test_a_gaussian_step_beside_cells_is_the_hockey_stick_of_both():
    for mu, epsilon in ((0.5, 1.0), (2.0, 3.0)):
        assert epsilon_at(delta_from_mu(mu, epsilon), (product([]), mu)) == pytest.approx(epsilon, rel=1e-8)
    coin = np.array([0.75, 0.25]), np.array([0.25, 0.75])
    rng = np.random.default_rng(0)
    loss = np.where(rng.random(400_000) < 0.75, 1.0, -1.0) * math.log(3.0) + rng.normal(0.5, 1.0, 400_000)
    delta = np.maximum(0.0, -np.expm1(1.0 - loss)).mean()
    assert epsilon_at(delta, (coin, 1.0)) == pytest.approx(1.0, abs=0.01)


# ---- Every mechanism ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", QUICK)
def test_a_replay_uses_up_nine_tenths_of_its_claim_or_says_why_not(name):
    result = replayed(name)
    assert not result.refuted
    assert 0.0 < result.certified <= 1.0 + 1e-6
    assert bites(result.to_dict()) or REPLAYS[name].reason


@pytest.mark.filterwarnings("ignore")  # of seeds
@pytest.mark.parametrize("cases", [registered(), REPLAYS])
def test_audits_named_after_a_course_take_it(cases):
    taken = {}
    other = "tails too long" if cases is REPLAYS else "fall-back"
    for name in ("look", other):
        case = cases[f"private_subspace ({name})"]
        table, _ = next(iter(case.pairs.values()))
        taken[name] = {case.run(table, seed).method for seed in range(4)}
    assert all(method.startswith("auto (stable look") for method in taken["look"])
    assert "auto (adaptive)" in taken[other]


def test_what_follows_a_coin_counts_as_often_as_it_says_yes():
    """Also where the coin tells nothing by itself: the basis after *yes* may."""

    def run(table, rng):
        run = seeded(rng)
        assert run.test(3, GaussianCoin(0.5, 0.01))
        return run.basis(np.array([[1.0], [table[0]]]), 0.5, 0.0, 1.0, 1e-9)[0]

    transcript = Transcript(answer=True)
    (path,) = transcript.paths(run, [0.0], [0.5])
    (still,) = transcript.paths(run, [0.5], [0.5])
    assert path.coin.cost == 0.0
    assert 0.0 < path.coin.chance == path.coin.other < 0.5
    assert not is_gaussian([path])
    assert path.spent == pytest.approx(1.0, rel=1e-3)
    assert 0.0 < replayed_epsilon([path], 1e-3) < 0.9 * epsilon_at(1e-3, (product([]), 1.0))
    assert still.spent == 0.0
    assert is_gaussian([still])


# ---- Planted faults: more than the whole claim -------------------------------------------------------------------


def half_the_noise(patch):
    rounded_up = grid.up
    patch.setattr(grid, "up", lambda value: 0.5 * rounded_up(value))


def louder_vote(patch):
    select = replay.Replay.select
    patch.setattr(replay.Replay, "select", lambda self, scores, epsilon: select(self, scores, 4 * epsilon))


def steeper_coin(patch):
    throw = coin.goes_on
    patch.setattr(coin, "goes_on", lambda margin, coin, bits: throw(margin, replace(coin, mu=1.2 * coin.mu), bits))


def coin_at_margin_zero(patch):
    throw = coin.goes_on
    patch.setattr(coin, "goes_on", lambda margin, coin, bits: throw(5 * (margin // 4), coin, bits))


def counts_with_little_noise(patch):
    count = stable_scales.noisy_histogram
    for module in (stable_scales, stable_records):
        patch.setattr(module, "noisy_histogram", lambda bins, size, mu, run: count(bins, size, 1.1 * mu, run))


def small_ridge(patch):
    for name in ("johnson_lindenstrauss", "inverse_wishart"):
        module = sys.modules[f"privspan.baselines.{name}"]
        ridge = module.covariance_ridge
        patch.setattr(module, "covariance_ridge", lambda draws, budget, ridge=ridge: 0.99 * ridge(draws, budget))


def rotation_and_gap_for_half(patch):
    module = sys.modules["privspan.baselines.smooth_sensitivity"]
    bound = module.smooth_bound
    patch.setattr(module, "smooth_bound", lambda gap, *rest: bound(2.0 * gap, *rest))


def core_that_moves_by_half(patch):
    plan = sys.modules["privspan.baselines.friendly_core"].CorePlan
    movement = plan.movement
    patch.setattr(plan, "movement", lambda self, weight: 0.5 * movement(self, weight))


def heavier_weight(patch):
    for name in ("exponential_pca", "eigen_sampling"):
        module = sys.modules[f"privspan.baselines.{name}"]
        draw = module.deflated_vectors
        patch.setattr(
            module, "deflated_vectors", lambda A, k, weight, *rest, draw=draw: draw(A, k, 1.2 * weight, *rest)
        )


def eigenvalues_too_close(patch):
    module = sys.modules["privspan.baselines.eigen_sampling"]
    patch.setattr(module, "eigenvalue_change", lambda k: 0.25)


def looser_release(patch):
    decide = replay.Replay.decide

    def loose(self, margin, epsilon, delta, rule="optimal"):
        return decide(self, margin, 1.5 * epsilon, delta, rule)

    patch.setattr(replay.Replay, "decide", loose)


GAUSSIAN = (
    "analyze_gauss",
    "mod_sulq",
    "noisy_power",
    "k_dp_pca",
    "k_dp_pca (single pass)",
    "noisy_range_finder",
    "noisy_range_finder (few columns)",
    "adaptive_subspace (localised)",
    "explained_variance",
    "private_mean (bound chosen)",
    "private_pca",
    "private_regression",
    "private_score_map",
    "PrivateStandardScaler",
)


@pytest.mark.parametrize(
    ("plant", "name"),
    [
        *((half_the_noise, name) for name in GAUSSIAN),
        (louder_vote, "choose_dimension"),
        (steeper_coin, "stable_subspace (budget on the test)"),
        (coin_at_margin_zero, "approximate_subspace (budget on the test)"),
        (counts_with_little_noise, "stable_subspace (budget on the scales)"),
        (counts_with_little_noise, "approximate_subspace (budget on the tail)"),
        (counts_with_little_noise, "boosted_subspace (budget on the tail)"),
        (small_ridge, "johnson_lindenstrauss"),
        (small_ridge, "inverse_wishart"),
        (rotation_and_gap_for_half, "smooth_sensitivity"),
        (core_that_moves_by_half, "friendly_core"),
        (heavier_weight, "exponential_pca"),
        (heavier_weight, "eigen_sampling"),
        (eigenvalues_too_close, "eigen_sampling"),
        (looser_release, "exact_subspace (majority)"),
    ],
)
def test_a_planted_fault_uses_up_more_than_the_claim(plant, name, monkeypatch):
    plant(monkeypatch)
    result = replayed(name)
    assert result.refuted
    assert result.certified > 1.0


def test_rows_in_the_public_directions_cost_no_more_than_mu():
    d, columns = 200, 32
    seen = np.linalg.qr(open_streams(0).public.standard_normal((d, columns)))[0]
    table, neighbour = seen[:, :1].T, seen[:, 1:2].T  # rows that lie in the public directions

    def run(rows, rng):
        return baselines.noisy_range_finder(rows, 1, epsilon=2.0, delta=1e-6, rng=rng)

    assert spent_by(run, table, neighbour) <= Budget(2.0, 1e-6).mu ** 2
