"""One algorithm for every tail: what each path spends, what decides about it, and what it looks at."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from runs import answering, seeded
from scipy import sparse
from sources import limited

from privspan.audit.replay import Transcript
from privspan.datasets import gaussian_subspace
from privspan.privacy import Budget
from privspan.privacy.mu_ledger import MuLedger
from privspan.private import private_subspace
from privspan.rows.door import open_table
from privspan.stable import choice, course
from privspan.stable.course import LABELS, course_within, delta_share
from privspan.stable.records import public_groups, unit_tail_squares
from privspan.stable.tuning import STABLE

BUDGET = {"epsilon": 4.0, "delta": 1e-4}
N, D, K = 600, 200, 2


def table(tail=1e-3, n=N, d=D, k=K, seed=0):
    return gaussian_subspace(n, d, k, gamma_w=tail, rng=seed)


def run(X, seed=4, gamma=None, k=K, **changes):
    budget = BUDGET | changes
    share = delta_share(open_table(X), k, Budget(**budget), gamma=gamma)
    return course_within(seeded(seed, **budget, test_share=share), open_table(X), k, gamma)


# ---- Which way it goes --------------------------------------------------------------------------------------------


def test_short_tails_are_looked_at_by_stable_leverage_and_refined_by_rounds():
    X, truth = table()
    release = run(X)
    assert release.method == LABELS[2]
    assert release.subspace.distance(truth) < 1e-3
    assert release.parameters["share_of_short_tails"] > 0.5
    assert release.parameters["rows_looked_at"] == N
    names = [name for name, _ in release.parameters["shares"]]
    assert names[:5] == ["probe of the tails", "norm scale", "tail length", "long tails", "signal strength"]


def test_long_tails_are_left_to_the_adaptive_algorithm():
    X, truth = table(0.3)
    release = run(X)
    assert release.method == LABELS[0]
    assert "too long" in release.parameters["course"]
    assert release.subspace.distance(truth) < 0.1


def test_rounds_are_left_out_where_they_would_not_help():
    X, truth = table(n=1_000, d=2_000)
    release = run(X, epsilon=1.0, delta=1e-6)
    assert release.method == LABELS[1]
    assert release.subspace.distance(truth) < 0.1


def test_a_no_is_answered_by_the_adaptive_algorithm_with_all_that_is_left():
    X, truth = table()
    release = run(X, answering(False, seed=4))
    assert release.method == LABELS[0]
    assert "not certain" in release.parameters["course"]
    assert release.subspace.distance(truth) < 0.1
    assert sum(share for _, share in release.parameters["shares"]) == pytest.approx(1.0, abs=1e-6)


def test_heavy_loads_of_scales_and_tests_still_leave_the_fall_back_a_share():
    X, _ = table(n=500, d=400)
    for seed in range(3):
        assert run(X, answering(False, seed), epsilon=1.0, delta=1e-6).subspace is not None


@pytest.mark.parametrize("rows", [np.zeros((N, D)), np.full((N, D), np.nan), np.eye(N, D), np.ones((N, D)) * 1e300])
def test_every_table_gets_an_answer(rows):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(rows).subspace.dimension == K


def test_a_public_gamma_saves_the_question():
    X, _ = table()
    release = run(X, gamma=1e-3 / math.sqrt(D))
    assert release.method == LABELS[2]
    assert release.parameters["shares"][0][0] == "norm scale"


def test_parameters_are_public_or_released_and_readable():
    X, _ = table()
    for release in (run(X), run(table(0.3)[0])):
        assert isinstance(release.parameters["course"], str)
        assert set(release.parameters) <= {
            "n", "d", "k", "course", "rows_looked_at", "short_tail", "share_of_short_tails", "log2_norm_scale",
            "tail_length", "long_share", "signal_strength", "stands_out", "expected_error", "shares", "robust",
        }  # fmt: skip


# ---- What it costs ------------------------------------------------------------------------------------------------


def test_delta_is_set_aside_on_every_path_and_the_parts_fit_the_budget():
    whole = Budget(**BUDGET)
    releases = [run(table()[0]), run(table(0.3)[0]), run(table()[0], gamma=1e-3 / math.sqrt(D))]
    releases.append(run(table()[0], answering(False, seed=4)))
    for release in releases:
        assert (release.cost.epsilon, release.cost.delta) == (whole.epsilon, whole.delta)
        (aside,) = [part for part in release.cost.parts if part.mu is None]
        assert aside.delta == pytest.approx(STABLE.test * whole.delta)
        square = sum(Fraction(part.mu) ** 2 for part in release.cost.parts if part.mu is not None)
        rest = Budget(whole.epsilon, float(Fraction(whole.delta) - Fraction(aside.delta)))
        assert square <= Fraction(rest.mu) ** 2
        assert math.sqrt(square) == pytest.approx(rest.mu, rel=1e-6)  # and nothing is left over


def test_a_ledger_that_sets_nothing_aside_takes_no_look():
    X, _ = table()
    assert course_within(seeded(4, **BUDGET), open_table(X), K).method == "adaptive"


@given(st.floats(1e-3, 20.0), st.floats(1e-12, 0.1), st.floats(0.01, 0.5))
@settings(max_examples=50, deadline=None)
def test_what_is_set_aside_and_the_rest_never_exceed_delta(epsilon, delta, share):
    ledger = MuLedger(Budget(epsilon, delta), test_share=share)
    assert ledger.mu < Budget(epsilon, delta).mu
    ledger.spend("all", 1.0)
    assert sum(Fraction(part.delta) for part in ledger.cost().parts) <= Fraction(delta)
    test, rotation = course._deltas(ledger.set_aside)
    assert 0 < Fraction(rotation) < Fraction(test)
    assert Fraction(test) + Fraction(rotation) <= Fraction(ledger.set_aside)


def test_an_overspent_ledger_is_refused():
    ledger = MuLedger(Budget(**BUDGET), test_share=0.05)
    ledger.spend("test", 0.4)
    with pytest.raises(RuntimeError, match="budget"):
        ledger.spend("fall-back with all of it", 1.0)


# ---- One record along one path ------------------------------------------------------------------------------------


def neighbours(X, number=5):
    """Yield tables that differ from X in one row."""
    rng = np.random.default_rng(1)
    scale = float(np.median(np.linalg.norm(X, axis=1)))
    d = X.shape[1]
    for row in (np.zeros(d), X[number] + scale * rng.standard_normal(d), 1e9 * X[7], np.full(d, np.nan)):
        changed = X.copy()
        changed[number] = row
        yield changed


@pytest.mark.parametrize(
    ("tail", "answer", "label", "shape", "epsilon"),
    [
        (1e-3, True, LABELS[2], (N, D), 4.0),
        (1e-3, False, LABELS[0], (N, D), 4.0),
        (0.3, True, LABELS[0], (N, D), 4.0),
        (1e-3, True, LABELS[1], (700, 1_000), 1.5),
    ],
)
def test_a_record_costs_no_more_than_mu_on_any_path(tail, answer, label, shape, epsilon):
    X, _ = table(tail, *shape)
    budget = Budget(epsilon, BUDGET["delta"])
    mu = MuLedger(budget, test_share=delta_share(open_table(X), K, budget)).mu
    methods = []
    for changed in neighbours(X):
        transcript = Transcript(4, answer=answer)
        spent = transcript.spent_by(lambda rows, rng: run(rows, rng, epsilon=epsilon), X, changed)
        methods += [release.method for release in transcript.results]
        assert 0 < spent <= mu**2 * (1 + 1e-6)
    assert set(methods) == {label}


def test_rows_outside_the_draw_reach_neither_probe_nor_look(monkeypatch):
    X, _ = table()
    drawn = []
    genuine = course._drawn_rows
    monkeypatch.setattr(course, "_drawn_rows", lambda *args: drawn.append(genuine(*args)) or drawn[-1])
    run(limited(X, drawn_rows=400))
    outside = int(np.flatnonzero(~(X[:, None, 0] == drawn[0][:][None, :, 0]).any(axis=1))[0])
    changed = X.copy()
    changed[outside] = 1e6
    seen = []
    for rows in (X, changed):
        with monkeypatch.context() as patch:
            # The same noise of the look: released scales, test and basis must be the same to the last bit.
            patch.setattr(course, "_localised", lambda look, found, *_: seen.append((look.released, found)))
            run(limited(rows, drawn_rows=400))
    assert seen[0][0] == seen[1][0]
    np.testing.assert_array_equal(seen[0][1].basis, seen[1][1].basis)


@given(seed=st.integers(0, 2**20), number=st.integers(0, 39), scale=st.floats(-6, 6))
@settings(max_examples=40, deadline=None)
def test_the_probe_counts_groups_and_a_record_moves_one(seed, number, scale):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6)) * 10.0 ** rng.uniform(-3, 3, (40, 1))
    changed = X.copy()
    changed[number] = 10.0**scale * rng.standard_normal(6)
    groups = public_groups(40, 2, np.random.default_rng(seed))
    before, after = unit_tail_squares(open_table(X), groups), unit_tail_squares(open_table(changed), groups)
    assert np.count_nonzero(before != after) <= 1


# ---- The choice ---------------------------------------------------------------------------------------------------


def test_the_longest_tail_is_where_the_look_stops_paying_off():
    public = choice.public_numbers(4_000, 1_000, 3, 0.2361, 5e-8, copied=False)
    longest = choice.course_for(public).longest
    assert choice.pays(public, longest)
    assert not choice.pays(public, 1.3 * longest)
    assert not choice.may_pay(choice.public_numbers(4_000, 3, 3, 0.2361, 5e-8, copied=False), None)


def test_rows_that_must_be_copied_are_no_more_than_fit():
    assert choice.public_numbers(4_000, 10**6, 3, 0.2, 1e-7, copied=False).rows == 4_000
    assert choice.public_numbers(4_000, 10**6, 3, 0.2, 1e-7, copied=True).rows == 134
    assert choice.public_numbers(10**6, 100, 3, 0.2, 1e-7, copied=False).rows == 5_000


@pytest.mark.parametrize("kind", ["sparse", "dask", "memory map"])
def test_other_tables_take_the_same_course(kind, tmp_path):
    X, truth = table()
    if kind == "sparse":
        rows = sparse.csr_array(X)
    elif kind == "dask":
        rows = da.from_array(X, chunks=(250, D))
    else:
        np.save(tmp_path / "rows.npy", X)
        rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    release = private_subspace(rows, K, **BUDGET, rng=4)
    assert release.method == LABELS[2]
    assert release.subspace.distance(truth) < 1e-3
    assert release.parameters["share_of_short_tails"] > 0.5


def test_more_rows_than_are_drawn_are_all_used_by_the_rounds():
    X, truth = table(n=800, d=600)
    release = run(limited(X, drawn_rows=400))
    assert release.parameters["rows_looked_at"] == 400
    assert release.method == LABELS[2]
    assert release.subspace.distance(truth) < 5e-4
