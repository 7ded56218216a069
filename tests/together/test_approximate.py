"""The approximate subspace: the histogram aggregate in detail, both aggregates end to end, and planted faults."""

from __future__ import annotations

import itertools
import math
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import Told, seeded

from privspan.approximate import approximate_subspace
from privspan.blocks import histogram
from privspan.blocks import plan as planner_blocks
from privspan.blocks.bases import BlockBases, block_bases
from privspan.blocks.histogram import CellHash, ReferenceFrame
from privspan.blocks.plan import plan_histogram
from privspan.datasets import TAILS, gaussian_subspace
from privspan.privacy import Budget
from privspan.privacy.randomness import open_streams
from privspan.privacy.selection import release_probability
from privspan.rows.door import open_table

AGGREGATES = ["stable", "histogram"]
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def gamma_for(alpha: float, n: int, d: int, k: int) -> float:
    """Tail for which the error bound of the histogram aggregate is `alpha`."""
    tiny = 1e-12
    plan = plan_histogram(n, d, k, gamma=tiny, **BUDGET)
    return alpha * tiny / plan.error(d, k, plan.side)


# --- the data generator -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tail", TAILS)
def test_generator_has_the_subspace_and_the_tail_energy(tail):
    X, truth = gaussian_subspace(20_000, 30, 3, gamma_w=0.2, condition=9.0, tail=tail, rng=0)
    inside = truth.coordinates(X)
    outside = X - truth.project(X)
    assert np.var(inside, axis=0) == pytest.approx([9.0, 3.0, 1.0], rel=0.1)
    assert (outside**2).sum(axis=1).mean() == pytest.approx(0.04 * 27 / 30, rel=0.15)
    assert np.abs(outside @ truth.basis).max() < 1e-12


def test_generator_wants_one_size_of_the_tail():
    with pytest.raises(ValueError, match="exactly one"):
        gaussian_subspace(10, 5, 2, 0.1, gamma_w=0.1)


# --- hash and cells -----------------------------------------------------------------------------------------------


@given(
    seed=st.integers(0, 2**32 - 1),
    length=st.sampled_from([1, 7, 4095, 4096, 4097, 9000]),
    size=st.sampled_from([1, 5, 2**20, 2**21 - 1, 2**38]),
)
@settings(max_examples=40, deadline=None)
def test_hash_is_exact(seed, length, size):
    """Against Python integers."""
    cell = np.random.default_rng(seed).integers(-size, size + 1, length)
    digest = CellHash(length, open_streams(seed).charged)
    keys = histogram._uniform_below_prime((2, length), open_streams(seed).charged)
    expected = tuple(sum(int(a) * int(c) for a, c in zip(row, cell, strict=True)) % histogram._PRIME for row in keys)
    assert digest(cell.astype(float)[None]) == [expected]


def test_hash_tells_cells_apart():
    cells = [np.array(c, dtype=float) for c in itertools.product(range(-2, 3), repeat=3)]
    digest = CellHash(3, open_streams(0).charged)
    assert len(set(digest(np.stack(cells)))) == len(cells)


def test_hash_secrets_are_fresh_without_a_seed():
    cell = np.ones((1, 5))
    assert CellHash(5, open_streams().charged)(cell) != CellHash(5, open_streams().charged)(cell)


def test_cells_stay_below_their_bound_at_the_finest_side():
    frame = ReferenceFrame.draw(40, 8, np.random.default_rng(0))
    basis = np.linalg.qr(frame.points)[0][:, :3]
    assert np.abs(frame.cell(basis, frame.finest_side)).max() < 2**38 + 2


def test_centre_is_within_half_a_side():
    frame = ReferenceFrame.draw(20, 4, np.random.default_rng(1))
    basis = np.linalg.qr(np.random.default_rng(2).standard_normal((20, 2)))[0]
    apart = frame.centre(frame.cell(basis, 0.3), 0.3) - frame.project(basis)
    assert np.abs(apart).max() <= 0.15 * (1 + 1e-12)


@given(seed=st.integers(0, 2**32 - 1), row=st.integers(0, 59), kind=st.sampled_from(["nan", "huge", "zero", "other"]))
@settings(max_examples=40, deadline=None)
def test_one_record_moves_one_ballot_and_one_pair(seed, row, kind):
    rng = np.random.default_rng(seed)
    X, _ = gaussian_subspace(60, 15, 2, 1e-3, rng=seed)
    other = X.copy()
    other[row] = {"nan": np.nan, "huge": 1e200, "zero": 0.0, "other": rng.standard_normal(15)}[kind]
    frame = ReferenceFrame.draw(15, 8, rng)
    before, after = (block_bases(open_table(data), 2, 6) for data in (X, other))
    digest = CellHash(15 * 8, open_streams(seed).charged)
    ballots = [digest(frame.cell(blocks.bases, 0.01)) for blocks in (before, after)]
    for j in range(10):
        if j != row // 6:
            assert before.votes[j] == after.votes[j]
            assert ballots[0][j] == ballots[1][j]
    changed = histogram._pair_distances(before, frame) != histogram._pair_distances(after, frame)
    assert set(np.flatnonzero(changed)) <= {row // 12}


# --- the private side ---------------------------------------------------------------------------------------------


def scale_scores(distances):
    """Scores that the private median hands to permute-and-flip."""
    told = Told(select=lambda *_: 0)
    histogram._private_median(np.array(distances), 64.0, 1.0, seeded(told))
    ((scores, _),) = told.asked["select"]
    return np.array(scores)


def test_scores_of_the_side_have_sensitivity_one():
    rng = np.random.default_rng(0)
    for _ in range(200):
        distances = np.exp(rng.normal(0, rng.choice([0.01, 1.0, 5.0]), rng.integers(1, 12)))
        other = distances.copy()
        other[0] = rng.choice([0.0, np.inf, np.exp(rng.normal(0, 5))])
        moved = np.abs(scale_scores(distances) - scale_scores(other))
        assert moved.max() <= 1


def test_scores_of_the_side_point_at_the_median_even_when_all_distances_agree():
    scores = scale_scores([1.3] * 40)
    assert np.count_nonzero(scores == 0) == 1
    assert scores.max() == 0
    assert np.sort(scores)[-2] == -20


def test_a_side_taken_from_the_data_is_caught():
    """Planted fault: the plain median. One record changes the released side for certain; the real one hides it."""
    X, _ = gaussian_subspace(600, 15, 2, 1e-3, rng=0)
    frame = ReferenceFrame.draw(15, 8, np.random.default_rng(0))
    nearest = int(np.argmin(histogram._pair_distances(block_bases(open_table(X), 2, 6), frame)))
    other = X.copy()
    other[12 * nearest] = np.linspace(-1, 9, 15)
    medians = [
        float(np.median(histogram._pair_distances(block_bases(open_table(data), 2, 6), frame))) for data in (X, other)
    ]
    assert medians[0] != medians[1]
    told = Told()
    for data in (X, other):
        histogram.private_pair_distance(block_bases(open_table(data), 2, 6), frame, 1.0, seeded(told))
    (scores, _), (changed, _) = told.asked["select"]
    assert max(abs(a - b) for a, b in zip(scores, changed, strict=True)) <= 1


# --- the vote -----------------------------------------------------------------------------------------------------


def tied_blocks(for_first: int, for_second: int) -> BlockBases:
    """Bases of two lines in the plane, with that many blocks each."""
    lines = [np.array([[1.0], [0.0]])] * for_first + [np.array([[0.0], [1.0]])] * for_second
    return BlockBases(np.stack(lines), np.ones(len(lines), dtype=bool))


def answer_rate(blocks: BlockBases, runs: int, **forced) -> float:
    plan = plan_histogram(len(blocks.votes) * 10, 2, 1, gamma=1e-4, block_size=10, **BUDGET)
    rngs = (Told(seed, **forced) for seed in range(runs))
    answers = [histogram.histogram_step(blocks, plan, delta=1e-6, run=seeded(rng))[0] for rng in rngs]
    return float(np.mean([basis is not None and abs(basis[0, 0]) > 0.9 for basis in answers]))


def test_vote_follows_the_release_probability():
    lead = 28
    rate = answer_rate(tied_blocks(50 + lead, 50), 200)
    expected = float(release_probability(lead // 2, 1.0, 1e-6))
    assert rate == pytest.approx(expected, abs=0.17)


def test_a_vote_without_threshold_is_caught():
    """Planted fault: always answer. One block then decides between two lines; the real vote is silent on both."""
    pair = tied_blocks(51, 50), tied_blocks(50, 51)
    assert [answer_rate(blocks, 20) for blocks in pair] == [0.0, 0.0]
    assert [answer_rate(blocks, 20, decide=lambda *_: True) for blocks in pair] == [1.0, 0.0]


def test_different_cells_behind_one_hash_give_no_answer(monkeypatch):
    monkeypatch.setattr(CellHash, "__call__", lambda self, cells: [(0, 0)] * len(cells))
    assert answer_rate(tied_blocks(60, 60), 5) == 0.0
    assert answer_rate(tied_blocks(120, 0), 5) > 0.5


# --- the plan -----------------------------------------------------------------------------------------------------


def test_cell_constant_makes_blocks_meet():
    """Simulate the walls near the centre (docs: a Poisson process of rate 2/c) for the lead that is asked for."""
    rng = np.random.default_rng(0)
    for contested in (0.5, 0.2, 0.05):
        t, trials, reached = int(32 / contested), 300, 0
        for _ in range(trials):
            walls = rng.uniform(0, 5, rng.poisson(2 / planner_blocks.cell_constant(contested) * 5))
            cut = rng.standard_normal((t, len(walls))) > walls
            patterns = np.unique(cut, axis=0, return_counts=True)[1] if len(walls) else np.array([t])
            top = np.sort(np.append(patterns, 0))[::-1]
            reached += top[0] - top[1] >= 32
        assert reached / trials >= 0.8 - 0.02


def test_paper_side_fails_in_high_dimension():
    """Erratum 5: with side 20 r √q, blocks do not meet once d is large; with the corrected side they do."""
    d, k, q, m, t = 1000, 3, 6, 20, 60
    X, truth = gaussian_subspace(m * t, d, k, 1e-6, rng=0)
    blocks = block_bases(open_table(X), k, m)
    meetings = {}
    for name in ("paper", "corrected"):
        shares = []
        for seed in range(10):
            frame = ReferenceFrame.draw(d, q, np.random.default_rng(seed))
            exact = frame.project(truth.basis)
            apart = [np.linalg.norm(frame.project(basis) - exact, axis=0).max() for basis in blocks.bases]
            spread = planner_blocks.block_spread(d, k, m, q, 1e-6)
            side = 20 * max(apart) * math.sqrt(q) if name == "paper" else 6.6 * math.sqrt(q * d) * spread
            cells = [frame.cell(basis, side).tobytes() for basis in blocks.bases]
            shares.append(max(map(cells.count, cells)) / t)
        meetings[name] = np.mean(np.array(shares) > 0.5)
    assert meetings["paper"] <= 0.5
    assert meetings["corrected"] >= 0.8


def test_plan_is_monotone_and_public():
    sides = [plan_histogram(n, 100, 3, gamma=1e-6, **BUDGET).side for n in (4000, 8000, 16000)]
    assert sides == sorted(sides, reverse=True)
    unknown = plan_histogram(8000, 100, 3, **BUDGET)
    assert unknown.side is None
    assert 0 < unknown.scale_epsilon + unknown.vote_epsilon <= 1.0


def test_collision_charge_covers_all_pairs():
    from fractions import Fraction

    for t in (1, 100, 10**5):
        pairs = Fraction(t * (t + 1), 2)
        assert Fraction(planner_blocks.collision_delta(t)) >= pairs / (2**61 - 1) ** 2


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(("d", "k"), [(10, 1), (50, 3), pytest.param(200, 3, marks=pytest.mark.slow)])
def test_histogram_succeeds_as_promised(d, k, known):
    success_at_stated_error(8000, d, k, known=known, runs=12, least=0.7)


@pytest.mark.slow
@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("alpha", [0.15, 0.03])
@pytest.mark.parametrize(
    ("n", "d", "k"), [(8000, 10, 1), (8000, 50, 3), (8000, 300, 3), (20000, 1000, 3), (20000, 200, 8)]
)
def test_histogram_success_probability_over_the_grid(n, d, k, alpha, known):
    success_at_stated_error(n, d, k, known=known, runs=40, least=0.7, alpha=alpha)


def success_at_stated_error(n, d, k, *, known, runs, least, alpha=0.1):
    gamma = gamma_for(alpha, n, d, k)
    good = 0
    for seed in range(runs):
        X, truth = gaussian_subspace(n, d, k, gamma, rng=1000 * d + seed)
        release = approximate_subspace(
            X, k, gamma=gamma if known else None, aggregate="histogram", shuffle=False, rng=seed, **BUDGET
        )
        if not release.abstained:
            good += release.subspace.distance(truth) <= release.parameters["error_bound"]
            assert release.parameters["error_bound"] <= 5 * alpha
    assert good / runs >= least


# --- both aggregates end to end -----------------------------------------------------------------------------------


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_answers_on_clean_data(aggregate):
    X, truth = gaussian_subspace(4000, 60, 2, 1e-6, rng=1)
    release = approximate_subspace(X, 2, aggregate=aggregate, gamma=1e-6, rng=2, **BUDGET)
    assert release.subspace is not None
    assert release.subspace.distance(truth) < 0.02
    assert release.cost.epsilon <= 1.0
    assert release.cost.delta <= 1e-6
    assert release.private is False
    assert release.parameters["k"] == 2


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_secure_run_is_private(aggregate):
    X, truth = gaussian_subspace(3000, 20, 1, 1e-6, rng=1)
    release = approximate_subspace(X, 1, aggregate=aggregate, gamma=1e-6, **BUDGET)
    assert release.private
    assert release.abstained or release.subspace.distance(truth) < 0.02


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize(
    "bad",
    {
        "nan": lambda X: np.full_like(X, np.nan),
        "inf": lambda X: np.full_like(X, -np.inf),
        "zero": np.zeros_like,
        "constant": lambda X: np.full_like(X, 3.7),
        "isotropic": lambda X: np.random.default_rng(0).standard_normal(X.shape),
    }.items(),
    ids=lambda item: item[0],
)
def test_data_without_a_subspace_abstains(bad, aggregate):
    X = bad[1](np.zeros((4000, 12)))
    release = approximate_subspace(X, 3, aggregate=aggregate, rng=0, **BUDGET)
    assert release.abstained
    assert release.cost.epsilon == 1.0


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_a_few_bad_rows_do_not_matter(aggregate):
    X, truth = gaussian_subspace(4000, 30, 2, 1e-6, rng=3)
    X[[5, 700]] = np.nan
    X[[17, 3000]] = np.inf
    X[44] = 1e300
    release = approximate_subspace(X, 2, aggregate=aggregate, gamma=1e-6, rng=1, **BUDGET)
    assert release.subspace is not None
    assert release.subspace.distance(truth) < 0.05


@pytest.mark.parametrize("aggregate", AGGREGATES)
@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_dtypes(aggregate, dtype):
    X, truth = gaussian_subspace(4000, 20, 1, 1e-5, rng=2)
    X = (X * 1e7).astype(dtype)
    release = approximate_subspace(X, 1, aggregate=aggregate, gamma=1e-5, rng=0, **BUDGET)
    assert not release.abstained
    assert release.subspace.distance(truth) < 0.02


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_too_few_rows_are_refused_with_the_number_needed(aggregate):
    with pytest.raises(ValueError, match=r"at least \d+ rows"):
        approximate_subspace(np.zeros((9, 30)), 3, aggregate=aggregate, **BUDGET)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"aggregate": "mean"}, "aggregate"),
        ({"gamma": 2.0}, "gamma"),
        ({"gamma": 0.3, "aggregate": "histogram"}, "gamma"),
        ({"block_size": 1}, "block_size"),
        ({"epsilon": -1.0}, "epsilon"),
        ({"k": 40}, "k"),
    ],
)
def test_public_mistakes_are_named(changes, message):
    arguments = {"k": 3, **BUDGET, **changes}
    with pytest.raises(ValueError, match=f"`{message}`"):
        approximate_subspace(np.zeros((6000, 30)), **arguments)


def test_seeded_runs_repeat():
    X, _ = gaussian_subspace(2000, 30, 1, 1e-5, rng=3)
    first, second = (approximate_subspace(X, 1, rng=5, **BUDGET) for _ in range(2))
    assert first.subspace == second.subspace


def test_histogram_cost_lists_its_parts():
    X, _ = gaussian_subspace(8000, 20, 1, 1e-6, rng=1)
    cost = approximate_subspace(X, 1, aggregate="histogram", rng=0, **BUDGET).cost
    assert [part.name for part in cost.parts] == ["cell side", "cell vote", "hash collisions"]
    assert math.fsum(part.epsilon for part in cost.parts) <= 1.0
    assert Budget(1.0, 1e-6).cost(*cost.parts) == cost


def test_collisions_are_taken_off_the_delta_of_the_vote():
    told = Told()
    X, _ = gaussian_subspace(8000, 20, 1, 1e-6, rng=1)
    cost = approximate_subspace(X, 1, aggregate="histogram", rng=told, **BUDGET).cost
    side, vote, collisions = cost.parts
    assert [asked[1:3] for asked in told.asked["decide"]] == [(vote.epsilon, vote.delta)]
    assert collisions.delta > 0.0
    assert Fraction(vote.delta) + Fraction(collisions.delta) <= Fraction(1e-6)
    assert Fraction(side.epsilon) + Fraction(vote.epsilon) <= 1


def test_a_pair_of_which_one_does_not_vote_is_infinitely_far_apart():
    frame = ReferenceFrame.draw(5, 8, np.random.default_rng(0))
    bases = np.repeat(np.eye(5, 2)[None], 6, axis=0)
    distances = histogram._pair_distances(BlockBases(bases, np.array([1, 1, 0, 1, 1, 0], dtype=bool)), frame)
    assert distances.tolist() == [0.0, math.inf, math.inf]


@pytest.mark.parametrize("aggregate", AGGREGATES)
def test_memory(aggregate):
    """At most three times the input plus a few block bases, and no (d, d) or (t, d, q) array."""
    n, d, k = 3000, 5000, 1
    X, _ = gaussian_subspace(n, d, k, 1e-7, rng=0)
    tracemalloc.start()
    release = approximate_subspace(X, k, aggregate=aggregate, gamma=1e-7, rng=0, **BUDGET)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    bases = 8 * d * k * n // release.parameters["block_size"]
    assert peak < 1 * X.nbytes + 3 * bases
    assert peak < 8 * d * d
