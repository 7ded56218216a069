"""Searches between mu and (epsilon, delta) are few: internals speak mu, and what is only shown waits for a reader."""

from __future__ import annotations

import copy
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import privspan as ps
from privspan.privacy import delta_from_mu, epsilon_from_mu, gdp, mu_from_budget, share_mu, zcdp
from privspan.privacy.mu_ledger import MuLedger

MOST = 4  # one of them for what a test of stable leverage would leave of delta
BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SEARCHES = ("tighten", "least_passing")


@pytest.fixture(scope="module")
def table():
    scales = np.r_[5.0, 4.0, 3.0, np.full(9, 0.3)]
    return np.random.default_rng(0).standard_normal((2_000, 12)) * scales


@pytest.fixture
def searches(monkeypatch):
    """A list that grows by one with every search; nothing is remembered from earlier tests."""
    for name, module in list(sys.modules.items()):
        if name.startswith("privspan"):
            for kept in [value for value in vars(module).values() if hasattr(value, "cache_clear")]:
                kept.cache_clear()
    made: list[str] = []
    for module in (gdp, zcdp):
        for name in (name for name in SEARCHES if hasattr(module, name)):
            search = getattr(module, name)
            monkeypatch.setattr(module, name, lambda *args, search=search: (made.append(""), search(*args))[1])
    return made


PCA = [{}, {"center": False}, {"robust": True}, {"method": "analyze-gauss"}]


@pytest.mark.parametrize("options", PCA)
def test_a_fit_makes_two_searches(table, searches, options):
    model = ps.PrivatePCA(3, **BUDGET, **options).fit(table)
    assert len(searches) <= MOST
    assert model.release_.cost.parts[0].epsilon > 0.0  # searched for now
    assert len(searches) <= MOST + 1


@pytest.mark.parametrize("method", ["auto", "adaptive", "analyze-gauss"])
def test_a_subspace_takes_two_searches(table, searches, method):
    ps.private_subspace(table, 3, **BUDGET, method=method, rng=0)
    assert len(searches) <= MOST


def test_a_mean_and_a_regression_take_two_searches(table, searches):
    ps.private_mean(table, **BUDGET, rng=0)
    assert len(searches) <= MOST
    searches.clear()
    ps.private_regression(table, table[:, 0], **BUDGET, norm_bound=20.0, target_bound=20.0, rng=0)
    assert len(searches) <= MOST


@pytest.mark.parametrize("options", PCA)
def test_the_squares_of_all_parts_of_a_fit_stay_below_that_of_the_whole(table, options):
    parts = ps.PrivatePCA(3, **BUDGET, **options).fit(table).release_.cost.parts
    total = sum(Fraction(part.mu) ** 2 for part in parts if part.mu is not None)
    budget = ps.Budget(**BUDGET)
    aside = sum(part.delta for part in parts if part.mu is None)  # for a test, if one may be made
    whole = Fraction((ps.Budget(budget.epsilon, budget.delta - aside) if aside else budget).mu) ** 2
    assert (1 - 1e-12) * whole < total <= whole * (1 + (1e-12 if aside else 0))


# ---- Values that wait ------------------------------------------------------------------------------------------


def test_a_lazy_part_is_the_same_value_as_an_eager_one(searches):
    lazy = ps.Part.gaussian("sum", 0.3, 1e-6)
    copies = [copy.copy(lazy), copy.deepcopy(lazy), pickle.loads(pickle.dumps(lazy))]
    assert not searches
    eager = ps.Part("sum", epsilon_from_mu(0.3, 1e-6), 1e-6, 0.3)
    for part in (lazy, *copies):
        assert part == eager
        assert (repr(part), hash(part), vars(part)) == (repr(eager), hash(eager), vars(eager))
    assert replace(lazy, name="other").epsilon == eager.epsilon
    cost = ps.PrivacyCost(1.0, 1e-6, parts=(ps.Part.gaussian("sum", 0.3, 1e-6),))
    assert ps.PrivacyCost.from_dict(cost.to_dict()) == cost


def test_a_lazy_part_is_frozen_and_checked():
    part = ps.Part.gaussian("sum", 0.3, 1e-6)
    with pytest.raises(AttributeError):
        part.epsilon = 0.1
    with pytest.raises(AttributeError, match="no attribute 'epsilo'"):
        part.epsilo  # noqa: B018
    with pytest.raises(ValueError, match="`mu` must be"):
        ps.Part.gaussian("sum", 0.0, 1e-6)
    with pytest.raises(AttributeError):  # as while a pickle is read
        ps.Part.__new__(ps.Part).epsilon  # noqa: B018


def test_many_threads_read_one_epsilon():
    for i in range(20):
        part, budget = ps.Part.gaussian("sum", 0.3 + i / 97, 1e-6), ps.Budget(1.0 + i / 97, 1e-6)
        with ThreadPoolExecutor(8) as pool:
            read = list(pool.map(lambda _, part=part, budget=budget: (part.epsilon, budget.mu), range(16)))
        assert set(read) == {(epsilon_from_mu(part.mu, 1e-6), mu_from_budget(budget.epsilon, 1e-6))}


@given(mu=st.floats(1e-9, 50.0), delta=st.floats(1e-12, 0.3))
def test_a_budget_for_a_mu_is_implied_by_it_and_keeps_it(mu, delta):
    budget = ps.Budget.for_mu(mu, delta)
    assert budget.mu == mu
    assert budget.delta <= delta
    assert delta_from_mu(mu, budget.epsilon) <= budget.delta
    assert ps.Budget(budget.epsilon, budget.delta).mu == pytest.approx(mu, rel=1e-4)


def test_a_ledger_shares_out_a_part_of_a_budget():
    budget = ps.Budget(**BUDGET)
    first, second = share_mu(budget.mu, 1.0, 3.0)
    ledgers = MuLedger(budget, first, "one: "), MuLedger(budget, second, "two: ")
    for ledger in ledgers:
        ledger.spend("sum", 0.25)
        ledger.spend("rest", ledger.left)
    parts = [part for ledger in ledgers for part in ledger.cost().parts]
    assert [part.name for part in parts] == ["one: sum", "one: rest", "two: sum", "two: rest"]
    assert ledgers[0].shares == (("sum", 0.25), ("rest", 0.75))
    assert sum(Fraction(part.mu) ** 2 for part in parts) <= Fraction(budget.mu) ** 2
    assert budget.cost(*parts).epsilon == 1.0
