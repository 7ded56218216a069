"""The exact case against its definition, over all neighbouring data sets of small domains, and under audit."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from exact_oracle import gap, majority, printed_algorithm, rref, score, scores
from hypothesis import given, settings
from hypothesis import strategies as st

from privspan import exact_subspace
from privspan.audit import exact_delta, sampled_audit
from privspan.exact.arithmetic import integer_rows, random_prime
from privspan.exact.enumeration import _Ranking, gap_winner
from privspan.exact.search import majority_winner
from privspan.exact.votes import vote_winner
from privspan.privacy.randomness import open_streams
from privspan.privacy.selection import release_probability

EPSILON, DELTA = 1.0, 0.05
LINES = [(1, 0), (0, 1), (1, 1), (0, 0)]  # k = 1 in the plane
PLANES = [(1, 0, 0), (0, 1, 0), (1, 1, 0), (1, 2, 0), (0, 0, 1)]  # k = 2 in space
CASES = [(LINES, 1, 7), (LINES, 1, 8), (PLANES, 2, 7)]


def code_majority(X, k):
    streams = open_streams(0)
    return majority_winner(integer_rows(np.array(X)), k, failure=1e-9, max_bits=256, bits=streams.charged)


def code_gap(X, k, primes=random_prime):
    return gap_winner(integer_rows(np.array(X)), k, open_streams(0).charged, primes)


def code_votes(X, k, block_size=1):
    return vote_winner(integer_rows(np.array(X)), k, block_size=block_size, streams=open_streams(0))


def as_rref(form):
    """The library's canonical form in the shape of the oracle's."""
    if form is None:
        return None
    pairs = zip(form.numerators, form.denominators, strict=True)
    return tuple(tuple(Fraction(entry, common) for entry in row) for row, common in pairs)


def law_of(rule, X, k, margin_of=lambda margin: margin):
    winner, margin = rule(X, k)
    chance = release_probability(margin_of(margin), EPSILON, DELTA)
    return {("released", winner): chance, "abstained": 1 - chance}


def worst_delta(rule, domain, k, n, margin_of=lambda margin: margin):
    """Largest delta over all neighbouring data sets, which are multisets: the rules do not look at the order."""
    laws = {X: law_of(rule, X, k, margin_of) for X in itertools.combinations_with_replacement(domain, n)}
    position = {record: i for i, record in enumerate(domain)}
    worst = Fraction(0)
    for X, law in laws.items():
        for leaving, joining in itertools.combinations(domain, 2):  # the other direction is covered from the other X
            if leaving in X:
                rest = list(X)
                rest.remove(leaving)
                other = tuple(sorted((*rest, joining), key=position.__getitem__))
                worst = max(worst, exact_delta(law, laws[other], EPSILON))
    return worst


@pytest.mark.parametrize(("domain", "k", "n"), CASES)
@pytest.mark.parametrize("rule", [code_majority, code_gap])
def test_all_neighbours_of_a_small_domain(rule, domain, k, n):
    worst = worst_delta(rule, domain, k, n)
    assert worst <= Fraction(DELTA)
    assert worst > Fraction(DELTA) - Fraction(1, 2**100)  # attained: no smaller delta would do


def test_votes_over_all_neighbours_in_order():
    """Blocks depend on row numbers, so all sequences are enumerated, not multisets."""
    laws = {X: law_of(code_votes, X, 1) for X in itertools.product(LINES[:3], repeat=6)}
    worst = Fraction(0)
    for X, law in laws.items():
        for i in range(6):
            neighbours = ((*X[:i], record, *X[i + 1 :]) for record in LINES[:3])
            worst = max(worst, *(exact_delta(law, laws[other], EPSILON) for other in neighbours))
    assert Fraction(DELTA) - Fraction(1, 2**100) < worst <= Fraction(DELTA)


@pytest.mark.parametrize(
    "fault",
    [lambda margin: 2 * margin, lambda margin: margin + 1, lambda margin: 3 * (margin > 0)],
    ids=["sensitivity two", "threshold too low", "yes or no"],
)
def test_planted_margin_faults_are_caught(fault):
    assert worst_delta(code_majority, LINES, 1, 8, fault) > Fraction(2 * DELTA)


def test_planted_fault_counts_instead_of_scores():
    """Counting records, without subtracting the densest proper subspace, lets two planes win at once."""

    def by_count(X, k):
        counts = {form: sum(len(rref([*form, row])) == k for row in X) for form in planes(X, k)}
        best = max(counts, key=counts.__getitem__, default=None)
        return best, max(0, counts.get(best, 0) - 4)

    def planes(X, k):
        return sorted({rref(choice) for choice in itertools.combinations(X, k)} & forms)

    forms = {rref(choice) for choice in itertools.combinations(PLANES, 2)}
    assert worst_delta(by_count, PLANES, 2, 7) > Fraction(2 * DELTA)


@pytest.mark.parametrize("prime", [2, *(pytest.param(prime, marks=pytest.mark.slow) for prime in (5, 13))])
def test_the_gap_rule_survives_unlucky_primes(prime):
    """Modulo a tiny prime most subspaces look alike; margins and winners must not change."""
    rng = np.random.default_rng(prime)
    draws = itertools.count()

    def tiny_prime(bits):
        return prime if next(draws) % 45 else random_prime(bits)  # often more in a row than the program waits for

    for k in (1, 2, 3):
        for _ in range(6):
            X = rng.integers(-4, 5, (9, k)) @ rng.integers(-4, 5, (k, 4))
            X[:3] = rng.integers(-4, 5, (3, 4))
            winner, margin = code_gap(X.tolist(), k, tiny_prime)
            expected, expected_margin = gap(X.tolist(), k)
            assert margin == expected_margin
            assert not margin or as_rref(winner) == expected


def test_a_table_that_vanishes_modulo_the_prime():
    """Every record divisible by the very prime that will be drawn: the rules draw another one."""
    prime = random_prime(open_streams(0).charged)
    X = [[prime * i, prime * i] for i in range(1, 61)]
    assert code_gap(X, 1)[1] == gap([[i, i] for i in range(1, 61)], 1)[1] == 30
    assert code_votes(X, 1)[1] == 30


def test_every_choice_agrees_with_the_primes():
    rng = np.random.default_rng(0)
    for k in (1, 2):
        X = rng.integers(-2, 3, (7, 3))
        slow = _Ranking(integer_rows(X), k, open_streams(0).charged).from_every_choice()
        assert slow[1] == code_gap(X.tolist(), k)[1]


records = st.lists(st.tuples(*[st.integers(-1, 1)] * 3), min_size=3, max_size=8)


@given(records, st.integers(1, 3))
@settings(max_examples=120, deadline=None)
def test_rules_agree_with_the_definitions(X, k):
    for code, oracle in ((code_majority, majority), (code_gap, gap)):
        winner, margin = code(X, k)
        expected, expected_margin = oracle(X, k)
        assert margin == expected_margin
        if margin:
            assert as_rref(winner) == expected


@given(records, st.integers(1, 2), st.data())
@settings(max_examples=100, deadline=None)
def test_margin_lemma_of_every_rule(X, k, data):
    """One replaced record: margins within one of each other, positive margins agree on the winner."""
    position = data.draw(st.integers(0, len(X) - 1))
    other = [*X[:position], data.draw(st.tuples(*[st.integers(-1, 1)] * 3)), *X[position + 1 :]]
    for rule in (code_majority, code_gap, code_votes):
        (winner, margin), (other_winner, other_margin) = rule(X, k), rule(other, k)
        assert abs(margin - other_margin) <= 1
        assert winner == other_winner or min(margin, other_margin) == 0


@given(records, st.data())
@settings(max_examples=60, deadline=None)
def test_score_lemma(X, data):
    """Lemma 1 on the oracle itself: the score of a fixed plane moves by at most one."""
    form = data.draw(st.sampled_from([rref([(1, 0, 0), (0, 1, 0)]), rref([(1, 1, 0), (0, 0, 1)])]))
    position = data.draw(st.integers(0, len(X) - 1))
    other = [*X[:position], data.draw(st.tuples(*[st.integers(-1, 1)] * 3)), *X[position + 1 :]]
    assert abs(score(X, form) - score(other, form)) <= 1


def errata_example():
    """100 points on a line, 100 on another, one person on a third; and that person moved to the first line."""
    first, second, third = (1, 0), (0, 1), (1, 1)
    X = [first] * 100 + [second] * 100 + [third]
    return X, [*X[:-1], first]


def test_the_audit_refutes_the_algorithm_as_printed():
    found, found_next_door = (scores(data, 1) for data in errata_example())
    assert sorted(found.values()) == [1, 100, 100]
    rng = np.random.default_rng(0)

    def run(candidates):
        return printed_algorithm(candidates, epsilon=1.0, delta=1e-6, ell=2, rng=rng)

    audit = sampled_audit(lambda: run(found), lambda: run(found_next_door), epsilon=1.0, delta=1e-6, runs=4000)
    assert audit.refuted
    assert audit.epsilon_lower > 3
    third = rref([(1, 1)])
    outcomes = [run(found) for _ in range(4000)]
    assert abs(outcomes.count(third) / 4000 - 0.25) < 0.035  # errata 1: a quarter of the runs
    assert third not in [run(found_next_door) for _ in range(1000)]


@pytest.mark.parametrize("rule", ["majority", "gap"])
def test_ours_passes_the_same_audit(rule):
    pair = [np.array(data) for data in errata_example()]

    seeds = itertools.count()

    def run(data):
        found = exact_subspace(data, 1, epsilon=1.0, delta=1e-6, rule=rule, rng=next(seeds))
        return found.subspace.exact if found.subspace else None

    audit = sampled_audit(lambda: run(pair[0]), lambda: run(pair[1]), epsilon=1.0, delta=1e-6, runs=200)
    assert not audit.refuted


@pytest.mark.slow
@pytest.mark.parametrize("rule", ["majority", "gap"])
def test_audit_at_inflated_delta_on_the_threshold(rule):
    """Margin 0 against margin 1, where delta is spent, and in the middle, where epsilon is.

    By sampling what `test_all_neighbours_of_a_small_domain` reckons exactly.
    """
    epsilon, delta = 1.0, 0.2
    seeds = itertools.count()

    def run(X):
        return exact_subspace(X, 1, epsilon=epsilon, delta=delta, rule=rule, rng=next(seeds)).abstained

    for n_inside in (8, 10):
        data = np.array([(1, 0)] * n_inside + [(0, 1)] * (14 - n_inside))
        other = data.copy()
        other[0] = (1, 1)

        audit = sampled_audit(
            lambda data=data: run(data),
            lambda other=other: run(other),
            epsilon=epsilon,
            delta=delta,
            runs=400,
        )
        assert not audit.refuted


def test_the_audit_catches_a_mechanism_without_noise():
    audit = sampled_audit(lambda: "a", lambda: "b", epsilon=1.0, delta=0.1, runs=200)
    assert audit.refuted
    assert audit.event in ({"a"}, {"b"})


def test_the_audit_rarely_refutes_randomised_response_at_its_true_epsilon():
    rng, epsilon = np.random.default_rng(1), 1.0
    truth = np.exp(epsilon) / (1 + np.exp(epsilon))
    refuted = 0
    for _ in range(50):
        audit = sampled_audit(
            lambda: rng.random() < truth, lambda: rng.random() > truth, epsilon=epsilon, delta=1e-6, runs=400
        )
        refuted += audit.refuted
        assert audit.epsilon_lower <= epsilon + 0.4
    assert refuted <= 1
    claimed_half = sampled_audit(
        lambda: rng.random() < truth, lambda: rng.random() > truth, epsilon=epsilon / 2, delta=1e-6, runs=4000
    )
    assert claimed_half.refuted
