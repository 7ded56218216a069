"""Budgets: shares and rests never exceed the whole, as real numbers."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privspan.privacy import Budget, Part, mu_from_budget, share_mu
from privspan.privacy.mu_ledger import left_of

weights = st.lists(st.floats(min_value=1e-3, max_value=1e3), min_size=1, max_size=6)
budgets = st.builds(Budget, st.floats(min_value=1e-6, max_value=1e6), st.floats(min_value=1e-12, max_value=0.9))


@given(budgets, weights)
def test_split_never_exceeds(budget, shares):
    pieces = budget.split(shares)
    assert sum(Fraction(piece.epsilon) for piece in pieces) <= Fraction(budget.epsilon)
    assert sum(Fraction(piece.delta) for piece in pieces) <= Fraction(budget.delta)
    assert math.fsum(piece.epsilon for piece in pieces) == pytest.approx(budget.epsilon, rel=1e-14)


@given(budgets, st.floats(min_value=0, max_value=1, exclude_max=True))
def test_reserve_never_exceeds(budget, fraction):
    rest, reserved = budget.reserve_delta(fraction)
    assert Fraction(rest.delta) + Fraction(reserved) <= Fraction(budget.delta)
    assert rest.delta + reserved == pytest.approx(budget.delta, rel=1e-14)
    assert rest.epsilon == budget.epsilon


def test_reserving_nothing():
    assert Budget(1.0, 1e-6).reserve_delta(0) == (Budget(1.0, 1e-6), 0.0)


def test_budget_normalises_numbers():
    budget = Budget(np.int64(1), np.float32(0.25))
    assert (type(budget.epsilon), type(budget.delta)) == (float, float)
    assert budget == Budget(1.0, 0.25)
    assert budget.mu == mu_from_budget(1.0, 0.25)


def test_parts_that_exceed_the_budget_are_refused():
    budget = Budget(1.0, 1e-6)
    first, second = budget.split([1, 2])
    mu_parts = [Part(f"sum {i}", 0, 0, mu=mu) for i, mu in enumerate(share_mu(second.mu, 1, 2, 3))]
    cost = budget.cost(Part("vote", first.epsilon, first.delta), *mu_parts)
    assert (cost.epsilon, cost.delta, len(cost.parts)) == (1.0, 1e-6, 4)
    assert budget.cost(*(Part("", 0, 0, mu=mu) for mu in share_mu(budget.mu, 1, 1, 1))).epsilon == 1.0
    for parts in (
        [Part("vote", 1.001, 0)],
        [Part("vote", 0.5, 1.1e-6)],
        [Part("a", 0.6, 0), Part("b", 0.6, 0)],
        [Part("sum", 0, 0, mu=1.01 * budget.mu)],
        [Part("vote", first.epsilon, first.delta), Part("sum", 0, 0, mu=1.01 * second.mu)],
        [Part("a", 0, 0, mu=budget.mu), Part("b", 0, 0, mu=0.2 * budget.mu)],
    ):
        with pytest.raises(ValueError, match="cost more than the budget"):
            budget.cost(*parts)


@given(st.floats(1e-9, 1e4), st.floats(0.0, 1.0))
def test_what_is_left_and_what_was_taken_never_exceed_the_whole(total, share):
    part = share * total
    left = left_of(total, part)
    assert Fraction(left) + Fraction(part) <= Fraction(total)
    assert left == pytest.approx(total - part, abs=1e-15 * total)
