"""The everyday door: it takes the planned method, passes everything on, and shares budgets exactly."""

from __future__ import annotations

import warnings
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sources import limited

from privspan import private
from privspan.datasets import gaussian_subspace
from privspan.planner import plan
from privspan.privacy import Budget
from privspan.private import UselessPlanWarning, private_subspace
from privspan.sums.adaptive import adaptive_subspace

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.fixture(scope="module")
def table():
    return gaussian_subspace(3_000, 60, 2, gamma_w=0.1, rng=0)


def test_auto_runs_the_planned_method_with_the_same_noise(table):
    X, truth = table
    release = private_subspace(X, 2, **BUDGET, rng=7)
    assert plan(3_000, 60, 2, center=False, **BUDGET).method == "auto"
    assert release.method == "auto (adaptive)"
    assert release.subspace.distance(truth) < 0.1
    assert release.parameters["predicted_error"] == plan(3_000, 60, 2, center=False, **BUDGET).error
    assert (release.cost.epsilon, release.cost.delta) == (1.0, 1e-6)


def test_where_public_numbers_leave_no_choice_auto_is_adaptive_bit_for_bit(table):
    X, _ = table
    release = private_subspace(X, 2, **BUDGET, gamma=0.1 / 58**0.5, rng=7)
    alone = adaptive_subspace(X, 2, **BUDGET, rng=7)
    assert plan(3_000, 60, 2, center=False, **BUDGET, gamma=0.1 / 58**0.5).method == release.method == "adaptive"
    assert release.subspace == alone.subspace
    assert release.cost == alone.cost
    assert all(part.mu is not None for part in release.cost.parts)  # no delta is set aside


def test_the_choice_depends_on_public_numbers_only():
    tables = [np.zeros((1_500, 300)), np.full((1_500, 300), np.nan), np.eye(1_500, 300)]
    chosen = {private_subspace(X, 2, **BUDGET, rng=0).parameters["reason"] for X in tables}
    assert len(chosen) == 1


def test_auto_takes_stable_leverage_where_the_plan_says_so():
    X, truth = gaussian_subspace(1_000, 400, 3, gamma_w=1e-4, rng=0)
    release = private_subspace(X, 3, **BUDGET, gamma=1e-4 / 397**0.5, rng=3)
    assert release.method == "auto (stable look)"
    assert release.subspace.distance(truth) < 0.05


@pytest.mark.parametrize(
    ("method", "name"),
    [
        ("adaptive", "adaptive"),
        ("analyze-gauss", "analyze-gauss"),
        ("stable", "stable"),
        ("approximate", "approximate (stable)"),
        ("exact", None),
    ],
)
def test_every_method_can_be_asked_for(method, name):
    X = np.random.default_rng(0).integers(-9, 10, (200, 2)) @ np.array([[1, 0, 1], [0, 1, 1]])
    release = private_subspace(X, 2, **BUDGET, method=method, rng=0)
    assert name is None or release.method == name
    assert release.cost.epsilon == 1.0
    assert not release.private


def test_sparse_tables_are_not_densified_where_too_few_rows_would_fit(monkeypatch):
    X, _ = gaussian_subspace(1_000, 400, 3, gamma_w=1e-4, rng=0)
    monkeypatch.setattr(sparse.csr_array, "toarray", None)
    table = limited(sparse.csr_array(X), drawn_bytes=2**16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UselessPlanWarning)
        release = private_subspace(table, 3, **BUDGET, gamma=1e-4 / 397**0.5, rng=3)
    assert release.method == "adaptive"


def test_useless_plans_warn_and_run(table):
    X, _ = table
    with pytest.warns(UselessPlanWarning, match="rows, or epsilon 10, are predicted"):
        release = private_subspace(X[:40], 2, **BUDGET)
    assert release.private
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        private_subspace(X, 2, **BUDGET)


def test_options_reach_the_method_and_are_refused_without_one(table):
    X, _ = table
    assert private_subspace(X, 2, **BUDGET, method="adaptive", robust=False, rng=0).parameters["robust"] is False
    with pytest.raises(TypeError, match="robust"):
        private_subspace(X, 2, **BUDGET, robust=False)
    with pytest.raises(TypeError, match="robust"):
        private_subspace(X, 2, **BUDGET, method="stable", robust=False)


@pytest.mark.parametrize("change", [{"method": "magic"}, {"epsilon": 0.0}, {"gamma": 2.0}, {"k": 61}])
def test_wrong_parameters_are_named(table, change):
    numbers = {"k": 2} | BUDGET | change
    with pytest.raises(ValueError, match="must be"):
        private_subspace(table[0], numbers.pop("k"), **numbers)


def test_gaussian_methods_spend_exactly_the_mu_of_their_budget(table):
    X, _ = table
    for method in [name for name, method in private.ALGORITHMS.items() if method.in_mu]:
        cost = private_subspace(X, 2, **BUDGET, method=method, rng=0).cost
        square = sum(Fraction(part.mu) ** 2 for part in cost.parts if part.mu is not None)
        assert square <= Fraction(Budget(1.0, 1e-6).mu) ** 2
