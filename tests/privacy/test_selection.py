"""The release probability, the stable vote and the truncated Laplace table, checked exactly."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspan.audit import exact_delta
from privspan.privacy.randomness import open_streams
from privspan.privacy.selection import (
    TruncatedLaplace,
    exp_bounds,
    gap_margin,
    majority_margin,
    release_probability,
    releases,
    stable_vote,
    vote_margin,
)

SETTINGS = [(1.0, 1e-6), (0.1, 1e-3), (3.0, 1e-9), (1e-2, 0.05), (20.0, 1e-12), (0.5, 0.1)]
RULES = ["optimal", "truncated-laplace"]


def law(margin, epsilon, delta, rule, candidate="winner"):
    chance = release_probability(margin, epsilon, delta, rule)
    return {candidate: chance, "abstained": 1 - chance}


def worst_delta(table, epsilon):
    """Largest delta over consecutive margins of a table of release probabilities."""
    laws = [{"winner": chance, "abstained": 1 - chance} for chance in table]
    return max(exact_delta(a, b, epsilon) for a, b in itertools.pairwise(laws))


def test_exp_bounds_enclose_the_exponential():
    for exponent in (Fraction(1), Fraction(-1), Fraction(1, 3), Fraction(50), Fraction(-50), Fraction(0.1)):
        lower, upper = exp_bounds(exponent)
        assert lower < upper
        assert upper - lower < lower / 10**70
        assert math.isclose(float(lower), math.exp(exponent), rel_tol=1e-14)


def test_values_of_the_design_page():
    # Desfontaines et al., Theorem 1, at epsilon = 1, delta = 1e-6.
    assert [round(float(release_probability(g, 1.0, 1e-6)), 3) for g in (14, 16, 20)] == [0.7, 0.959, 0.999]


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
@pytest.mark.parametrize("rule", RULES)
def test_consecutive_margins_satisfy_the_definition_exactly(epsilon, delta, rule):
    last = min(3000, 4 + int(3 * math.log(4 / delta) / epsilon))
    margins = range(last) if rule == "optimal" else range(0, last, max(1, last // 60))
    table = [release_probability(g, epsilon, delta, rule) for first in margins for g in (first, first + 1)]
    pairs = [(table[i], table[i + 1]) for i in range(0, len(table), 2)]
    assert table[0] == 0
    assert all(low <= high for low, high in pairs)
    assert all(worst_delta(pair, epsilon) <= Fraction(delta) for pair in pairs)


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS[:3])
def test_the_optimal_probability_is_tight_and_reaches_one(epsilon, delta):
    table = [release_probability(g, epsilon, delta) for g in range(2 + int(3 * math.log(4 / delta) / epsilon))]
    assert worst_delta(table, epsilon) > Fraction(delta) - Fraction(1, 2**100)
    assert table[-1] == 1


@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
def test_optimal_is_never_below_truncated_laplace(epsilon, delta):
    step = max(1, int(1 / epsilon) // 3)
    for g in range(0, 40 * step, step):
        grid = Fraction(1, 2**100)
        assert release_probability(g, epsilon, delta) + grid >= release_probability(g, epsilon, delta, RULES[1])


def test_planted_faults_break_the_definition():
    epsilon, delta = 1.0, 1e-4
    table = [release_probability(g, epsilon, delta) for g in range(40)]
    assert worst_delta(table[::2], epsilon) > 2 * delta  # a margin of sensitivity two, not halved
    doubled = [release_probability(g, 2 * epsilon, delta) for g in range(40)]
    assert worst_delta(doubled, epsilon) > 2 * delta  # epsilon off by two
    shifted = [Fraction(0), *table[3:]]  # a threshold that is too low
    assert worst_delta(shifted, epsilon) > 2 * delta
    assert worst_delta([Fraction(0), Fraction(1)], epsilon) == 1  # no noise at all
    as_floats = [Fraction(float(chance)) for chance in table]
    assert worst_delta(as_floats, epsilon) > Fraction(delta)  # a float64 table breaks delta a little


@pytest.mark.parametrize("sensitivity", [1, 2, 3])
@pytest.mark.parametrize(("epsilon", "delta"), SETTINGS)
def test_truncated_laplace_is_exactly_private(epsilon, delta, sensitivity):
    noise = TruncatedLaplace(epsilon, delta, sensitivity)
    support = range(-noise.bound, noise.bound + 1)
    law_at = {z: Fraction(noise.weights[abs(z)], noise.total) for z in support}
    assert sum(law_at.values()) == 1
    if noise.bound < 400:
        for shift in range(1, sensitivity + 1):
            moved = {z + shift: chance for z, chance in law_at.items()}
            assert exact_delta(law_at, moved, epsilon) <= Fraction(delta)


def test_truncated_laplace_bound_agrees_with_the_closed_form():
    # Design page 02: A = max(D, ceil((D / eps) ln((e^eps - 1 + 2 delta) / (delta (e^(eps/D) + 1))))).
    for (epsilon, delta), sensitivity in itertools.product(SETTINGS, (1, 2, 3)):
        ratio = (math.expm1(epsilon) + 2 * delta) / (delta * (math.exp(epsilon / sensitivity) + 1))
        closed = max(sensitivity, math.ceil(sensitivity / epsilon * math.log(ratio)))
        assert abs(TruncatedLaplace(epsilon, delta, sensitivity).bound - closed) <= 1


def test_the_papers_bound_on_the_support_is_false_for_large_epsilon():
    """Errata 4: for the paper's continuous noise, A <= ln(1/delta)/epsilon holds up to epsilon = ln 3 only."""
    for epsilon in (0.5, 1.0, 1.09, 1.11, 3.0):
        bound = math.log(1 + math.expm1(epsilon) / 2e-6) / epsilon
        assert (bound <= math.log(1e6) / epsilon) == (epsilon < math.log(3))
    with pytest.raises(ValueError, match="`epsilon` must be large enough"):
        TruncatedLaplace(1e-9, 1e-6)


def test_truncated_laplace_samples_follow_the_table():
    noise, bits = TruncatedLaplace(1.0, 0.01), open_streams(3).noise
    runs = 20_000
    counts = Counter(noise.sample(bits) for _ in range(runs))
    expected = {z: runs * noise.weights[abs(z)] / noise.total for z in range(-noise.bound, noise.bound + 1)}
    chi2 = sum((counts[z] - mean) ** 2 / mean for z, mean in expected.items())
    assert set(counts) <= set(expected)
    assert chi2 < len(expected) + 8 * math.sqrt(2 * len(expected))


@pytest.mark.parametrize("rule", RULES)
def test_releases_follows_the_probability(rule):
    bits, runs = open_streams(5).noise, 4000
    for margin in (0, 2, 5, 30):
        chance = float(release_probability(margin, 1.0, 0.05, rule))
        hits = sum(releases(margin, 1.0, 0.05, bits, rule) for _ in range(runs))
        assert abs(hits - runs * chance) <= 5.5 * math.sqrt(runs * chance * (1 - chance)) + 1e-9


@given(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=12), st.data())
@settings(max_examples=300, deadline=None)
def test_vote_margin_lemma(ballots, data):
    """One changed ballot moves the margin by at most one, and positive margins mean the same winner."""
    position = data.draw(st.integers(0, len(ballots) - 1))
    changed = [*ballots]
    changed[position] = data.draw(st.sampled_from([None, "a", "b", "c"]))
    winner, margin = vote_margin(ballots)
    other_winner, other_margin = vote_margin(changed)
    assert abs(margin - other_margin) <= 1
    assert winner == other_winner or min(margin, other_margin) == 0
    votes = Counter(ballot for ballot in ballots if ballot is not None)
    if votes:
        assert margin >= majority_margin(max(votes.values()), len(ballots))


def vote_law(ballots, epsilon, delta, margin_of):
    winner, margin = margin_of(ballots)
    return law(margin, epsilon, delta, "optimal", candidate=("key", winner))


def worst_vote(margin_of, epsilon=1.0, delta=0.02, keys=("a", "b", None), blocks=6):
    """Largest delta over all neighbouring ballots of a small election."""
    laws = {b: vote_law(b, epsilon, delta, margin_of) for b in itertools.product(keys, repeat=blocks)}
    return max(exact_delta(laws[ballots], laws[(*ballots[:-1], key)], epsilon) for ballots in laws for key in keys)


def test_vote_over_all_neighbouring_elections():
    assert Fraction(0.02) - Fraction(1, 2**100) < worst_vote(vote_margin) <= Fraction(0.02)


def test_planted_vote_faults_are_caught():
    def unhalved(ballots):
        votes = [*Counter(b for b in ballots if b is not None).most_common(2), (None, 0), (None, 0)]
        return votes[0][0], max(0, votes[0][1] - votes[1][1] - 1)

    def counts_voters_only(ballots):
        voting = [b for b in ballots if b is not None]
        winner, top = (Counter(voting).most_common(1) or [(None, 0)])[0]
        return winner, max(0, 2 * top - len(voting))

    for fault in (unhalved, counts_voters_only):
        assert worst_vote(fault) > Fraction(0.03)


def test_stable_vote_releases_a_clear_winner_only():
    bits = open_streams(0).noise
    assert stable_vote(["x"] * 100, 1.0, 1e-6, bits) == "x"
    assert stable_vote(["x", "y"] * 50, 1.0, 1e-6, bits) is None
    assert stable_vote([None] * 100, 1.0, 1e-6, bits) is None
    assert stable_vote(["x"] * 45 + [None] * 500, 1.0, 1e-6, bits) == "x"


def test_margins_of_the_two_rules():
    assert [gap_margin(top, 0) for top in range(6)] == [0, 0, 1, 1, 2, 2]
    assert gap_margin(3, 3) == 0
    assert [majority_margin(score, 5) for score in (2, 3, 4, 5)] == [0, 0, 1, 2]
    assert [majority_margin(score, 6) for score in (3, 4, 6)] == [0, 1, 3]


@pytest.mark.parametrize("bad", [{"epsilon": 0}, {"delta": 1.0}, {"margin": -1}, {"release": "none"}])
def test_bad_parameters_are_named(bad):
    arguments = {"margin": 3, "epsilon": 1.0, "delta": 1e-6} | bad
    with pytest.raises((ValueError, TypeError), match=f"`{next(iter(bad))}` must be"):
        release_probability(**arguments)
