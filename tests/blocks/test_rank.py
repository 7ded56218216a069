"""Choosing the dimension: the vote, the exact law of permute-and-flip, and its privacy by enumeration."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import seeded
from scipy import stats

from privspan.approximate import approximate_subspace
from privspan.blocks import plan as planner_blocks
from privspan.blocks.bases import block_spectra
from privspan.blocks.rank import choose_dimension, rank_ballots
from privspan.datasets import gaussian_subspace
from privspan.privacy import selection
from privspan.privacy.randomness import open_streams
from privspan.privacy.selection import permute_and_flip
from privspan.rows.door import open_table


def law(scores, epsilon):
    """Output distribution of permute-and-flip, by summing over all visiting orders."""
    accept = [math.exp(-epsilon / 2 * (max(scores) - score)) for score in scores]
    chances = [0.0] * len(scores)
    orders = list(itertools.permutations(range(len(scores))))
    for order in orders:
        alive = 1.0 / len(orders)
        for candidate in order:
            chances[candidate] += alive * accept[candidate]
            alive *= 1.0 - accept[candidate]
    return chances


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 2.5])
def test_private_by_enumeration_of_all_neighbouring_counts(epsilon):
    """Every pair of ballot counts that one moved ballot connects, five ballots over three candidates."""
    counts = [c for c in itertools.product(range(6), repeat=3) if sum(c) <= 5]  # the rest are "no vote"
    worst = 0.0
    for before in counts:
        for change in itertools.product((-1, 0, 1), repeat=3):
            after = tuple(np.add(before, change))
            if min(after) < 0 or sum(after) > 5 or sum(map(abs, change)) > 2 or abs(sum(change)) > 1:
                continue
            ratios = np.divide(law(before, epsilon), law(after, epsilon))
            worst = max(worst, float(np.log(ratios).max()))
    assert worst <= epsilon + 1e-12
    assert worst > 0.5 * epsilon  # the enumeration does meet pairs that use the budget


def test_sampler_has_the_law():
    scores, epsilon, draws = [4, 7, 6, 7], 0.7, 20_000
    bits = open_streams(3).noise
    counts = np.bincount([permute_and_flip(scores, epsilon, bits) for _ in range(draws)], minlength=4)
    assert stats.chisquare(counts, draws * np.array(law(scores, epsilon))).pvalue > 1e-6


@pytest.mark.parametrize("x", [Fraction(0), Fraction(1, 3), Fraction(1), Fraction(5, 2), Fraction(0.1)])
def test_coins_have_the_exact_bias(x):
    bits = open_streams(1).noise
    heads = sum(selection._coin_exp(x, bits) for _ in range(20_000))
    assert stats.binomtest(heads, 20_000, math.exp(-x)).pvalue > 1e-6


def test_chisquare_would_notice_epsilon_off_by_two():
    scores, draws = [4, 7, 6, 7], 20_000
    bits = open_streams(3).noise
    counts = np.bincount([permute_and_flip(scores, 1.4, bits) for _ in range(draws)], minlength=4)
    assert stats.chisquare(counts, draws * np.array(law(scores, 0.7))).pvalue < 1e-6


def test_ballots_name_the_largest_drop():
    squares = np.array([[1, 0.9, 0.8, 1e-6, 1e-7], [1, 1e-5, 1e-6, 1e-7, 1e-8], [1, 0.5, 0, 0, 0], [0, 0, 0, 0, 0]])
    votes = np.array([True, True, True, False])
    assert list(rank_ballots(squares, votes)) == [3, 1, 2, 0]


@given(seed=st.integers(0, 2**32 - 1), row=st.integers(0, 79), kind=st.sampled_from(["nan", "huge", "zero", "other"]))
@settings(max_examples=40, deadline=None)
def test_one_record_moves_one_ballot(seed, row, kind):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 12)) * np.geomspace(1, 1e-4, 12)
    other = X.copy()
    other[row] = {"nan": np.nan, "huge": 1e200, "zero": 0.0, "other": rng.standard_normal(12)}[kind]
    ballots = [rank_ballots(*block_spectra(open_table(data), 5, 8)) for data in (X, other)]
    assert set(np.flatnonzero(ballots[0] != ballots[1])) <= {row // 8}
    counts = [np.bincount(b, minlength=6)[1:] for b in ballots]
    assert np.abs(counts[0] - counts[1]).max() <= 1


@pytest.mark.parametrize(("n", "d", "k"), [(4000, 60, 3), (4000, 200, 7), (1500, 30, 1)])
def test_right_in_95_of_100_runs_on_a_clear_gap(n, d, k):
    right = 0
    blocks = n // planner_blocks.rank_block_size(8)
    epsilon = planner_blocks.rank_epsilon(blocks, 8, 1.0)
    for seed in range(10):
        X, _ = gaussian_subspace(n, d, k, gamma_w=0.05, condition=10.0, rng=seed)
        ballots = rank_ballots(*block_spectra(open_table(X), 9, planner_blocks.rank_block_size(8)))
        counts = [int((ballots == j).sum()) for j in range(1, 9)]
        right += sum(1 + permute_and_flip(counts, epsilon, open_streams(s).noise) == k for s in range(10))
    assert right >= 95


def test_budget_share_is_bounded_and_falls_with_the_number_of_blocks():
    shares = [planner_blocks.rank_epsilon(blocks, 10, 1.0) for blocks in (0, 10, 50, 200, 10**6)]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] == 0.5
    assert shares[-1] == 0.05


def test_auto_is_charged_and_reported():
    X, truth = gaussian_subspace(4000, 50, 2, gamma_w=1e-4, rng=0)
    release = approximate_subspace(X, "auto", max_components=6, epsilon=1.0, delta=1e-6, rng=1)
    assert release.extras["n_components"] == 2
    assert release.parameters["max_components"] == 6
    assert release.cost.parts[0].name == "choice of the dimension"
    assert release.cost.parts[0].epsilon > 0.0
    assert release.cost.epsilon <= 1.0
    assert release.subspace is not None
    assert release.subspace.distance(truth) < 0.05


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.0, 7.0])
def test_bad_data_gives_some_dimension(value):
    X = np.full((200, 10), value)
    assert choose_dimension(open_table(X), 4, epsilon=1.0, run=seeded(0)) in {1, 2, 3, 4}


def test_public_facts_are_refused_by_name():
    X = np.zeros((100, 5))
    with pytest.raises(ValueError, match="max_components"):
        choose_dimension(open_table(X), 5, epsilon=1.0, run=seeded(0))
    with pytest.raises(ValueError, match="at least 10 rows"):
        choose_dimension(open_table(X[:9]), 4, epsilon=1.0, run=seeded(0))
    with pytest.raises(ValueError, match="max_components"):
        approximate_subspace(X, "auto", epsilon=1.0, delta=1e-6)
    with pytest.raises(ValueError, match="max_components"):
        approximate_subspace(X, 2, max_components=4, epsilon=1.0, delta=1e-6)
