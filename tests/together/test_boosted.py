"""The boosted subspace: exact number of parts, the choice among candidates, and the promise measured."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privspan import boosted
from privspan.approximate import approximate_subspace
from privspan.blocks import plan as planner_blocks
from privspan.blocks.plan import boosting_parts, needed_successes, plan_histogram
from privspan.boosted import boosted_subspace, central_candidate
from privspan.datasets import gaussian_subspace
from privspan.subspace import Subspace

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


@pytest.mark.parametrize("beta", [0.4, 0.1, 0.05, 0.01, 1e-4])
def test_parts_are_the_smallest_that_meet_the_binomial_tail(beta):
    parts = boosting_parts(beta)
    tails = [stats.binom.cdf(needed_successes(t) - 1, t, 0.7) for t in range(1, parts + 1)]
    assert tails[-1] <= beta
    assert min(tails[:-1], default=1.0) > beta


def test_impossible_beta_is_refused():
    with pytest.raises(ValueError, match="`beta`"):
        boosting_parts(1e-300)


def line(angle: float) -> Subspace:
    return Subspace(np.array([[np.cos(angle)], [np.sin(angle)]]))


def test_choice_needs_a_majority_nearby():
    candidates = [line(0.0), line(0.01), line(0.02), line(1.0), None]
    assert central_candidate(candidates, 3, 0.05) == 1
    assert central_candidate(candidates, 4, 0.05) is None
    assert central_candidate([None] * 5, 3, 0.9) is None


@given(
    angles=st.lists(st.floats(-0.1, 0.1), min_size=3, max_size=9),
    bad=st.lists(st.floats(0, 3.2), min_size=0, max_size=6),
)
@settings(max_examples=100, deadline=None)
def test_enough_good_candidates_give_an_answer_within_alpha(angles, bad):
    """The triangle argument, for adversarial bad candidates: three good in five, within α/3 each, give α."""
    alpha = 3 * np.sin(0.1) + 1e-12
    t = len(angles) + len(bad)
    candidates = [line(a) for a in angles] + [line(a) for a in bad]
    if len(angles) < needed_successes(t):
        return
    chosen = central_candidate(candidates, needed_successes(t), 2 * alpha / 3)
    assert chosen is not None
    assert candidates[chosen].distance(line(0.0)) <= alpha


def test_one_record_reaches_one_part(monkeypatch):
    """Record the rows that every part gets."""
    seen = []
    genuine = boosted.block_step

    def spy(table, *rest):
        seen.append(table[:][:, 0])
        return genuine(table, *rest)

    monkeypatch.setattr(boosted, "block_step", spy)
    X = np.random.default_rng(0).standard_normal((2000, 5))
    X[:, 0] = np.arange(2000)
    boosted_subspace(X, 2, alpha=0.3, beta=0.1, rng=0, **BUDGET)
    rows = np.concatenate(seen)
    assert len(seen) == boosting_parts(0.1)
    assert len(np.unique(rows)) == len(rows)


def test_cost_is_that_of_one_run_and_release_is_public():
    X = np.zeros((2000, 5))
    release = boosted_subspace(X, 2, alpha=0.3, beta=0.1, rng=0, **BUDGET)
    assert release.abstained
    assert (release.cost.epsilon, release.cost.delta) == (1.0, 1e-6)
    assert release.parameters["parts"] == 25
    assert release.private is False


def test_too_few_rows_name_the_part():
    with pytest.raises(ValueError, match="Each of the 25 parts has 4 rows"):
        boosted_subspace(np.zeros((100, 5)), 2, alpha=0.3, beta=0.1, **BUDGET)


def inner_setting():
    """A small problem where one run is within alpha/3 about seven times in ten."""
    rows, d, k = 700, 6, 1
    tiny = 1e-12
    plan = plan_histogram(rows, d, k, gamma=tiny, **BUDGET)
    gamma = 0.02 * tiny / plan.error(d, k, plan.side)
    return rows, d, k, gamma


def inner_errors(runs: int) -> np.ndarray:
    rows, d, k, gamma = inner_setting()
    errors = np.ones(runs)
    for seed in range(runs):
        X, truth = gaussian_subspace(rows, d, k, gamma, rng=10_000 + seed)
        release = approximate_subspace(X, k, gamma=gamma, aggregate="histogram", rng=seed, **BUDGET)
        if release.subspace is not None:
            errors[seed] = release.subspace.distance(truth)
    return errors


def boosted_failures(runs: int, alpha: float, beta: float) -> int:
    rows, d, k, gamma = inner_setting()
    failures = 0
    for seed in range(runs):
        X, truth = gaussian_subspace(rows * boosting_parts(beta), d, k, gamma, rng=seed)
        release = boosted_subspace(
            X, k, alpha=alpha, beta=beta, gamma=gamma, aggregate="histogram", rng=seed, **BUDGET
        )
        failures += release.subspace is None or release.subspace.distance(truth) > alpha
    return failures


def test_promise_on_a_few_runs():
    alpha = 3 * float(np.quantile(inner_errors(100), 0.72))
    assert boosted_failures(5, alpha, 0.1) <= 1


@pytest.mark.slow
def test_promise_over_200_runs():
    """Inner success about 0.7 by construction; at most 5 % of 200 boosted runs may fail (14 allows for chance)."""
    errors = inner_errors(1000)
    alpha = 3 * float(np.quantile(errors, 0.71))
    assert 0.66 <= np.mean(errors <= alpha / 3) <= 0.76
    assert boosted_failures(200, alpha, 0.05) <= 14


def test_parts_of_the_table_in_the_docs():
    assert [planner_blocks.boosting_parts(b) for b in (0.1, 0.05, 0.01, 0.001)] == [25, 50, 110, 205]
