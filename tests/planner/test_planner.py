"""The planner: data-free, instant, monotone where it must be, and right within a factor on runs."""

from __future__ import annotations

import math
import re
import statistics
import time
from dataclasses import FrozenInstanceError
from functools import partial
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspan.datasets import gaussian_subspace
from privspan.pca import private_pca
from privspan.planner import METHODS, MOST_STABLE_ROWS, USELESS, plan_within
from privspan.planner import plan as plan_pca_or_subspace
from privspan.planner.setting import mu_beside_test
from privspan.privacy import Budget, mu_from_budget
from privspan.stable.records import stable_subspace
from privspan.sums.adaptive import adaptive_subspace
from privspan.sums.analyze_gauss import analyze_gauss

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
of_pca = partial(plan_pca_or_subspace, delta=1e-6)
plan = partial(plan_pca_or_subspace, center=False)  # of private_subspace, unless said otherwise


def test_a_plan_tells_everything_and_cannot_be_changed():
    chosen = plan(10_000, 200, 3, **BUDGET, gamma=0.01)
    assert [other.method for other in chosen.alternatives] == list(METHODS)
    assert chosen.method == "adaptive"
    assert 0 < chosen.error <= chosen.error_90 <= 1
    assert chosen.abstention == 0.0
    assert "0.01 times the spread" in chosen.reason
    assert chosen.limited_by in ("privacy", "sampling")
    assert "adaptive" in str(chosen)
    assert "analyze-gauss" in str(chosen)
    with pytest.raises(FrozenInstanceError):
        chosen.error = 0.0


@settings(max_examples=60, deadline=None)
@given(
    n=st.integers(1, 10**6),
    d=st.integers(1, 10**5),
    k=st.integers(1, 40),
    epsilon=st.floats(0.05, 10),
    gamma=st.none() | st.floats(1e-6, 0.99),
)
def test_every_setting_has_a_plan(n, d, k, epsilon, gamma):
    k = min(k, d)
    chosen = plan(n, d, k, epsilon=epsilon, delta=1e-6, gamma=gamma)
    for one in (chosen, *chosen.alternatives):
        assert 0 <= one.error <= one.error_90 <= 1
        assert 0 <= one.abstention <= 1
        assert one.reason
    assert chosen.method != "stable" or n <= MOST_STABLE_ROWS
    assert chosen.useful == (chosen.error < USELESS)


def test_a_plan_takes_less_than_50_ms_of_processor_time():
    plan(1_000, 100, 3, **BUDGET)  # tables of the planner are made once
    for d in (321, 30_000):  # a useful plan, and a useless one with its advice
        spent = []
        for n in (1_501, 2_502, 3_503, 4_504, 5_505):
            start = time.process_time()
            plan(n, d, 4, epsilon=0.5, delta=1e-6, gamma=0.001)
            spent.append(time.process_time() - start)
        assert min(spent) < 0.05


@pytest.mark.parametrize("method", METHODS)
def test_more_rows_and_more_budget_never_hurt(method):
    index = METHODS.index(method)

    def error(n, epsilon):
        return plan(n, 100, 2, epsilon=epsilon, delta=1e-6, gamma=1e-4).alternatives[index].error

    by_rows = [error(n, 1.0) for n in (500, 1_000, 2_000, 4_000, 8_000, 16_000)]
    by_budget = [error(4_000, epsilon) for epsilon in (0.3, 1.0, 3.0)]
    for errors in (by_rows, by_budget):
        assert all(later <= earlier * 1.1 for earlier, later in pairwise(errors))
        assert errors[-1] < errors[0]


def test_without_gamma_the_data_are_asked_where_that_could_help():
    easy, crowded = plan(200_000, 20, 3, **BUDGET), plan(1_500, 5_000, 3, **BUDGET)
    assert easy.method == "adaptive"
    assert "however close to a subspace records lie" in easy.reason
    assert crowded.method == "auto"
    assert "A private test decides" in crowded.reason
    for chosen in (easy, crowded):
        assert chosen.assumed
        assert f"assume {chosen.gamma:.3g} times the spread" in chosen.reason


def test_with_gamma_the_plan_tells_whether_stable_leverage_looks_first():
    short = plan(4_000, 1_000, 3, **BUDGET, gamma=1e-3 / 1_000**0.5)
    assert short.method == "auto"
    assert "stable leverage comes first, then rounds of little noise" in short.reason
    assert short.error < 0.2 * short.alternatives[METHODS.index("adaptive")].error
    assert short.abstention == 0.0
    long = plan(4_000, 1_000, 3, **BUDGET, gamma=0.3 / 1_000**0.5)
    assert long.method == "adaptive"
    auto, adaptive, *_ = long.alternatives
    assert (auto.error, auto.error_90) == (adaptive.error, adaptive.error_90)
    assert plan(10**5, 10**9, 3, **BUDGET, gamma=1e-9).method == "adaptive"  # not even a few rows could be held


def test_too_few_rows_are_called_useless_with_the_number_that_would_do():
    chosen = plan(100, 1_000, 5, **BUDGET)
    assert not chosen.useful
    assert "rows" in chosen.reason
    needed = chosen.alternatives[METHODS.index("analyze-gauss")].needed_n(USELESS / 2)
    assert f"{needed:,}" in chosen.reason
    assert chosen.needed_n(USELESS / 2) <= needed


def test_too_few_rows_for_a_pca_are_told_with_the_number_that_its_course_needs():
    needed = int(re.search(r"About ([\d,]+) rows", of_pca(300, 20, 3, epsilon=0.3).reason)[1].replace(",", ""))
    assert of_pca(needed, 20, 3, epsilon=0.3).error <= 1.1 * USELESS / 2
    assert of_pca(needed * 2 // 3, 20, 3, epsilon=0.3).error > USELESS / 2


@pytest.mark.parametrize("scale", [False, True])
def test_too_small_an_epsilon_is_told_with_the_next_that_would_do(scale):
    few = of_pca(300, 20, 3, epsilon=0.1, scale=scale)
    assert not few.useful
    wanted = math.sqrt(0.2) if scale else USELESS / 2  # 80 % captured
    does = [epsilon for epsilon in (0.3, 1.0, 3.0, 10.0) if few.again(epsilon=epsilon).error <= wanted]
    assert f"rows, or epsilon {does[0]:g}, are predicted" in few.reason
    assert "or epsilon" not in of_pca(20, 1_000, 5, epsilon=0.1, scale=scale).reason


@pytest.mark.parametrize("method", [*METHODS, "any"])
def test_needed_n_is_the_bar_between_enough_and_too_few(method):
    full = plan(3_000, 100, 2, **BUDGET, gamma=1e-4)
    one = full if method == "any" else full.alternatives[METHODS.index(method)]
    target = 0.05
    need = one.needed_n(target)

    def reached(n):
        again = plan(n, 100, 2, **BUDGET, gamma=1e-4)
        methods = METHODS if method == "any" else (method,)
        return any(
            other.error <= target and other.abstention <= 0.2
            for other in again.alternatives
            if other.method in methods
        )

    assert reached(need)
    assert not reached(math.floor(0.98 * need))


def test_what_cannot_be_reached_is_said():
    full = plan(1_000, 100, 99, **BUDGET, gamma=0.99)
    assert full.alternatives[METHODS.index("stable")].needed_n(1e-9) is None


def test_fewer_methods_keep_the_choice_or_make_a_new_one():
    full = plan(2_000, 5_000, 3, **BUDGET, gamma=1e-5)
    for methods in (METHODS, (full.method,)):
        assert plan_within(2_000, 5_000, 3, Budget(**BUDGET), 1e-5, methods) == full
    fewer = plan_within(2_000, 5_000, 3, Budget(**BUDGET), 1e-5, ("adaptive", "analyze-gauss"))
    assert fewer.method == "adaptive"
    assert "takes this input" in fewer.reason
    assert [other.method for other in fewer.alternatives] == ["adaptive", "analyze-gauss"]


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 1.0, 30.0, 1e5])
@pytest.mark.parametrize("delta", [1e-300, 1e-12, 1e-6, 0.1, 0.9, 0.999999])
def test_the_mu_beside_the_test_is_that_of_a_search(epsilon, delta):
    found = mu_beside_test(mu_from_budget(epsilon, delta), epsilon, delta, 0.2)
    assert found == pytest.approx(mu_from_budget(epsilon, 0.8 * delta), rel=1e-12)


@pytest.mark.parametrize(
    "change",
    [{"n": 0}, {"k": 0}, {"k": 101}, {"epsilon": 0.0}, {"delta": 1.0}, {"gamma": 0.0}, {"gamma": 1.0}],
)
def test_wrong_numbers_are_named(change):
    numbers = {"n": 1_000, "d": 100, "k": 2} | BUDGET | change
    n, d, k = numbers.pop("n"), numbers.pop("d"), numbers.pop("k")
    with pytest.raises(ValueError, match=f"`{next(iter(change))}` must be"):
        plan(n, d, k, **numbers)


@pytest.mark.parametrize(
    ("algorithm", "n", "d", "k", "gamma_w", "epsilon"),
    [
        (adaptive_subspace, 6_000, 60, 2, 0.2, 1.0),
        (adaptive_subspace, 3_000, 150, 4, 0.5, 2.0),
        (analyze_gauss, 4_000, 80, 3, 0.4, 0.7),
        (stable_subspace, 1_100, 70, 2, 2e-3, 1.5),
    ],
)
def test_predictions_hold_within_a_factor_of_one_and_a_half(algorithm, n, d, k, gamma_w, epsilon):
    method = {adaptive_subspace: "adaptive", analyze_gauss: "analyze-gauss"}.get(algorithm, "stable")
    forecast = plan(n, d, k, epsilon=epsilon, delta=1e-6, gamma=gamma_w / math.sqrt(d - k))
    predicted = forecast.alternatives[METHODS.index(method)].error
    errors = []
    for seed in range(3):
        X, truth = gaussian_subspace(n, d, k, gamma_w=gamma_w, rng=seed)
        release = algorithm(X, k, epsilon=epsilon, delta=1e-6, rng=50 + seed)
        errors.append(release.subspace.distance(truth))
    assert predicted / 1.5 < statistics.median(errors) < 1.5 * predicted


@pytest.mark.parametrize(
    ("n", "d", "k", "told", "course"),
    [(4_000, 14, 3, False, "two looks"), (6_000, 78, 4, True, "near a subspace"), (1_000, 15, 3, True, "one look")],
)
def test_the_plan_of_a_private_pca_knows_its_clip_and_a_subspace_nearby(n, d, k, told, course):
    gamma, budget = 0.3 / math.sqrt(d - k), {"epsilon": 0.5 if course == "one look" else 1.0, "delta": 1e-6}
    expected = plan_pca_or_subspace(n, d, k, **budget, gamma=gamma if told else None)
    found = []
    for seed in range(5):
        X, truth = gaussian_subspace(n, d, k, gamma, rng=seed)
        release = private_pca(X + 2.0, k, **budget, rng=seed)
        assert release.parameters["course"] == course
        found.append(release.subspace.distance(truth))
    assert 1.0 / 1.5 < expected.error / statistics.median(found) < 1.5
    assert ("close to a few directions" in expected.reason) == (course == "near a subspace")
