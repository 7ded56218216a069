"""Expert settings: one way for all functions, by keyword or in `options`, checked before a value is read."""

import numpy as np
import pytest
from runs import NoDraws

import privspan
from privspan.planner import METHODS, MOST_STABLE_ROWS, forecasts, plans
from privspan.privacy import Budget
from privspan.sums.adaptive import adaptive_subspace

BUDGET = {"epsilon": 2.0, "delta": 1e-3, "rng": 0}
BOOSTED = {"alpha": 0.5, "beta": 0.31}
ROWS = np.random.default_rng(0).integers(0, 9, (400, 2)) @ np.array([[1, 0, 1], [0, 1, 1]])
CALLS = {
    "stable": (privspan.stable_subspace, {}, {"ramp": 7, "split": {"noise": 0.7}}),
    "approximate": (privspan.approximate_subspace, {}, {"movers": 5, "split": {"tail": 0.3}}),
    "histogram": (privspan.approximate_subspace, {"aggregate": "histogram", "gamma": 1e-6}, {"references": 5}),
    "boosted": (privspan.boosted_subspace, BOOSTED, {"spread": 1e-3}),
    "exact": (privspan.exact_subspace, {}, {"max_work": 10**6, "max_bits": 128}),
    "adaptive": (adaptive_subspace, {}, {"first_share": 0.3, "most_rounds": 2}),
}


def told(release):
    basis = None if release.subspace is None else release.subspace.basis.tobytes()
    return basis, release.parameters, [(part.name, part.mu) for part in release.cost.parts]


@pytest.mark.parametrize("name", CALLS)
def test_a_setting_does_the_same_as_a_keyword_and_in_options(name):
    function, given, settings = CALLS[name]
    by_keyword = told(function(ROWS, 2, **BUDGET, **given, **settings))
    assert by_keyword == told(function(ROWS, 2, **BUDGET, **given, options=settings))
    nothing = dict.fromkeys(settings)
    assert told(function(ROWS, 2, **BUDGET, **given)) == told(function(ROWS, 2, **BUDGET, **given, options=nothing))


@pytest.mark.parametrize("name", CALLS)
def test_settings_are_refused_with_their_names_before_a_value_is_read(name):
    function, given, settings = CALLS[name]
    one = next(iter(settings))
    for kind, word, further in (
        (TypeError, "roundness", {"roundness": 1}),
        (ValueError, "options", {"options": {"roundness": 1}}),
        (ValueError, "options", {"options": {"roundness": None}}),
        (TypeError, "options", {"options": 3}),
        (TypeError, "once", {one: settings[one], "options": settings}),
        ((TypeError, ValueError), one, {one: -1}),
        ((TypeError, ValueError), one, {"options": {one: -1}}),
    ):
        with pytest.raises(kind, match=word):
            function(ROWS, 2, **{**BUDGET, "rng": NoDraws()}, **given, **further)


def test_a_method_that_cannot_be_chosen_is_forecast_only_when_asked_for(monkeypatch):
    plans._best_plan.cache_clear()
    forecasts.forecast.cache_clear()
    asked, genuine = [], forecasts._stable
    monkeypatch.setattr(forecasts, "_stable", lambda setting: asked.append(setting.n) or genuine(setting))
    numbers = {"epsilon": 1.0, "delta": 1e-6, "center": False}
    many = privspan.plan(MOST_STABLE_ROWS + 1, 5_000, 3, **numbers, gamma=1e-5)
    roomy = privspan.plan(5_000, 20, 2, **numbers)
    assert asked == []
    assert [one.method for plan in (many, roomy) for one in plan.alternatives] == [*METHODS, *METHODS]
    assert asked == [many.n, roomy.n]
    assert privspan.plan(2_000, 5_000, 3, **numbers, gamma=1e-5).method == "auto"


def test_what_a_step_leaves_of_a_budget():
    budget = Budget(1.0, 1e-6)
    rest = budget.less(0.3)
    assert rest.delta == budget.delta
    assert 0.7 - 1e-15 < rest.epsilon < 0.7
    assert budget.less(0.0) == budget
