"""Real tables in the benchmark: rivals pay for the centre they are given, and a tie is called a tie."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from benchmarks.cells import NOT_AVAILABLE, OK, AbstainedError, Cell, NotAvailableError, Outcome
from benchmarks.centred import (
    LEVELS,
    SHORT_ROWS,
    composed_delta,
    is_gaussian,
    prepared,
    rest_of,
    rival_on,
    short_rows,
)
from benchmarks.contest import Contest, Score, contests, far_corner, lost_tables, real_text
from benchmarks.methods import METHODS
from benchmarks.runner import outcome_of
from benchmarks.suites import SUITES, real
from benchmarks.summary import groups
from benchmarks.tables import COMPONENTS, Case, table
from privspan.audit import Transcript
from privspan.privacy import Budget
from privspan.privacy.gdp import delta_from_mu

BUDGET = Budget(1.0, 1e-6)


def spread_table(n: int, d: int = 4) -> np.ndarray:
    """Rows about a centre far from zero, with one long axis."""
    rng = np.random.default_rng(5)
    return rng.standard_normal((n, d)) * np.r_[3.0, np.ones(d - 1)] + 50.0


# ---- What a rival is given, and what it pays --------------------------------------------------------------------


@pytest.mark.parametrize("mu", [0.05, 0.3])
@pytest.mark.parametrize(("rival_epsilon", "rival_delta"), [(0.4, 1e-7), (0.9, 1e-3)])
def test_the_composed_delta_is_that_of_the_two_laws(mu, rival_epsilon, rival_delta):
    x = np.linspace(-12.0, 12.0, 400_001)
    first, second = norm.pdf(x, mu), norm.pdf(x)
    likely = 1.0 / (1.0 + math.exp(-rival_epsilon))
    exact = sum(
        np.maximum(p * first - math.exp(1.0) * q * second, 0.0).sum() * (x[1] - x[0])
        for p, q in ((likely, 1.0 - likely), (1.0 - likely, likely))
    )
    # With probability `rival_delta` the rival tells the truth; the bound counts the rest in full.
    assert composed_delta(mu, rival_epsilon, rival_delta, 1.0) == pytest.approx(rival_delta + exact, rel=1e-4)


@pytest.mark.parametrize("epsilon", real.EPSILONS)
def test_every_level_has_its_part_of_delta_and_no_more(epsilon):
    budget = Budget(epsilon, 1e-6)
    for level in LEVELS:
        rest, mu = rest_of(budget, level, gaussian=False), budget.mu * math.sqrt(level)
        spent = delta_from_mu(mu, epsilon) if rest is None else composed_delta(mu, rest.epsilon, rest.delta, epsilon)
        assert spent <= budget.delta / len(LEVELS)
        assert spent >= 0.99 * budget.delta / len(LEVELS) or rest is None
    assert rest_of(budget, 0.5, gaussian=False) != rest_of(budget, 0.4, gaussian=False) is not None


def test_what_is_spent_is_rounded_up_to_a_level_and_nothing_is_for_nothing():
    assert rest_of(BUDGET, 0.0, gaussian=False) == BUDGET
    assert rest_of(BUDGET, 0.07, gaussian=False) == rest_of(BUDGET, 0.1, gaussian=False)
    assert rest_of(BUDGET, 0.36, gaussian=True).mu == pytest.approx(0.8 * BUDGET.mu)


def test_gaussian_rivals_are_told_by_their_costs():
    assert all(map(is_gaussian, ("analyze_gauss", "mod_sulq", "noisy_power", "noisy_range_finder")))
    assert not is_gaussian("exponential_pca")
    assert not is_gaussian("analyze_gauss_gap")  # a part of delta is set aside


@pytest.mark.parametrize("n", [100, 800, 4_000])  # by pairs, about a centre, with a clip
@pytest.mark.parametrize("name", ["analyze_gauss", "mod_sulq"])
def test_search_and_gaussian_rival_stay_in_budget_on_neighbours(n, name):
    X = spread_table(n)
    other = X.copy()
    X[n // 2], other[n // 2] = 50.0 + 3e5 * np.eye(4)[:2]  # long and at right angles: worst for second moments
    assert is_gaussian(name)  # asks a small table, once
    spent = Transcript(3).spent_by(lambda rows, rng: rival_on(name, rows, 1, BUDGET, rng), X, other)
    assert 0.8 * BUDGET.mu**2 <= spent <= BUDGET.mu**2 * (1.0 + 1e-9)


def test_rows_lie_about_the_centre_and_short_ones_stay_short():
    X = spread_table(20_000)
    given = prepared(X, BUDGET, 0, short=True)
    lengths = np.linalg.norm(given.rows, axis=1)
    assert given.short
    assert 0.0 < given.spent < 0.25
    assert np.linalg.norm(given.rows.mean(axis=0)) < 0.05 * lengths.mean()
    assert 0.5 < (lengths <= 1.0).mean() < 1.0
    assert not prepared(X, BUDGET, 0, short=False).short
    by_pairs = prepared(X[:100], BUDGET, 0, short=True)
    assert (by_pairs.short, by_pairs.spent, by_pairs.rows.shape) == (False, 0.0, (50, 4))


@pytest.mark.parametrize("name", SHORT_ROWS)
def test_a_rival_sees_short_rows_as_short(name):
    X = np.zeros((4_000, 3))
    X[:1_800, 0], X[1_800:, 1] = 1.0, 0.3  # the second axis has more rows, the first more variance

    def found() -> float:
        release = METHODS[name].call(X, 1, epsilon=20.0, delta=1e-6, rng=0)
        return abs(float(release.subspace.basis[0, 0]))

    with short_rows():
        assert found() > 0.9
    assert found() < 0.5


def test_rivals_whose_rows_may_be_short_are_rivals():
    assert set(SHORT_ROWS) < set(real.RIVALS)
    assert "additive_wishart" not in SHORT_ROWS  # proved for length 0 or 1


# ---- Tables and cells -------------------------------------------------------------------------------------------


def test_captured_variance_is_one_for_the_best_basis():
    case = Case("made up", spread_table(500), 2)
    vectors = np.linalg.eigh(case.covariance)[1]
    assert case.share(vectors[:, -2:]) == pytest.approx(1.0)
    assert case.share(vectors[:, :2]) < case.at_random < 1.0
    assert case.tail == pytest.approx(math.sqrt(case.variances[2:].sum() / case.variances[1]))


def test_there_are_many_tables_and_those_at_hand_have_the_sizes_that_are_told():
    assert len(real.TABLES) == len(set(real.TABLES)) >= 24
    assert set(real.CHOSEN_ON) < set(real.TABLES)
    for name in ("breast cancer", "breast cancer raw"):
        case = table(name)
        assert (case.values.shape, case.k) == ((569, 30), COMPONENTS["breast cancer"])
    assert table("breast cancer").values.std(axis=0) == pytest.approx(np.ones(30))


def test_a_missing_package_is_told_by_the_cell(monkeypatch):
    def missing(name):
        raise NotAvailableError("type pip install it")

    monkeypatch.setattr("benchmarks.tables.table", missing)
    cell = next(iter(real.REAL.cells(True)))
    assert outcome_of(cell, real.measure) == Outcome(NOT_AVAILABLE, note="type pip install it")


def quick_cell(method: str) -> Cell:
    return next(cell for cell in real.REAL.cells(True) if cell.method == method)


def test_ours_a_rival_and_the_envelope_are_measured(monkeypatch):
    case = Case("made up", spread_table(3_000), 1)
    monkeypatch.setattr("benchmarks.tables.table", lambda name: case)
    captured = {}
    for method in (real.OURS, "mod_sulq", real.ENVELOPE):
        values, seconds = real.measure(quick_cell(method))
        assert set(values) == set(real.REAL.values)
        assert seconds > 0.0
        captured[method] = values["captured"]
    assert all(0.8 < value <= 1.0 for value in captured.values())
    assert captured[real.ENVELOPE] > 0.99


def test_repetitions_go_on_until_they_are_precise(monkeypatch):
    case = Case("made up", spread_table(50), 1)
    count = {"precise": 0, "noisy": 0}

    def run(seed, kind, noise):
        count[kind] += 1
        return np.array([0.5 + noise * (-1) ** seed, 0.1])

    best, _ = real._repeated(lambda seed: run(seed, "precise", 0.001), case, real.REPETITIONS)
    assert best.mean() == pytest.approx(0.5)
    real._repeated(lambda seed: run(seed, "noisy", 0.3), case, real.REPETITIONS)
    assert count == {"precise": real.REPETITIONS, "noisy": real.MOST_REPETITIONS}
    assert len(real._repeated(lambda seed: run(seed, "noisy", 0.3), case, real.REPETITIONS, patience=0.0)[0]) == 1


def test_a_silent_method_abstains_and_an_odd_abstention_is_a_random_subspace():
    case = Case("made up", spread_table(50), 1)
    with pytest.raises(AbstainedError):
        real._repeated(lambda seed: None, case, real.REPETITIONS)
    best, _ = real._repeated(lambda seed: None if seed % 2 else np.ones(1), case, 4)
    assert sorted(best) == [case.at_random, case.at_random, 1.0, 1.0]


# ---- What the page says -----------------------------------------------------------------------------------------


def contest(ours: tuple[float, float], rival: tuple[float, float]) -> Contest:
    scores = Score(real.OURS, *ours), Score("analyze_gauss", *rival)
    return Contest("table", "1.0", "2", 500, 10, 1.0, 0.0, scores[0], scores[1:], None)


@pytest.mark.parametrize(
    ("ours", "rival", "verdict"),
    [
        ((0.90, 0.003), (0.89, 0.003), 1),
        ((0.90, 0.004), (0.89, 0.004), 0),
        ((0.89, 0.003), (0.90, 0.003), -1),
        ((0.9990, 0.0), (0.9999, 0.0), 0),  # precise, and no difference to anybody
    ],
)
def test_a_difference_counts_from_two_standard_errors_on(ours, rival, verdict):
    one = contest(ours, rival)
    assert one.verdict(one.rival) == verdict


def rows_of(means: dict[str, dict[str, float]], tail: float = 1.0) -> list[dict[str, str]]:
    """Lines of the store for tables, methods and what they captured, with a standard error of .01."""
    fixed = {"k": "2", "epsilon": "1.0", "repetitions": "20", "seed": "0", "status": OK, "n": "500", "d": "10"}
    measured = {"tail": str(tail), "standard_error": "0.01", "runs": "20", "near": "0", "note": ""}
    return [
        {
            "method": method,
            "table": name,
            **fixed,
            **measured,
            "captured": str(value),
            "seconds": "1",
            "memory_mb": "",
        }
        for name, values in means.items()
        for method, value in values.items()
    ]


def test_the_page_tells_wins_ties_and_losses():
    means = {
        "Wage": {real.OURS: 0.95, "analyze_gauss": 0.80, "mod_sulq": 0.7, real.ENVELOPE: 0.97},
        "HMDA": {real.OURS: 0.80, "analyze_gauss": 0.79, "mod_sulq": 0.9},
        "digits": {real.OURS: 0.80, "analyze_gauss": 0.81},
    }
    some = groups(SUITES["real"], rows_of(means))
    text = real_text(some)
    assert "**more in 1, as much in 1 and less in 1**" in text
    assert "Analyze Gauss 1–2–0;" in text
    assert "MOD-SuLQ 1–0–1 (no answer in 1)" in text
    assert "| Wage* | 500 × 10 | 2 | 0.950 **+** 0.800; 0.970 |" in text
    assert "0.800 = 0.810; –" in text
    (lost,) = lost_tables(some)
    assert "1 of 3 settings: HMDA at ε = 1 (0.800, MOD-SuLQ 0.900)" in lost


def test_the_corner_is_read_off_the_map():
    base = {"data": "flat", "n": "500", "d": "1000", "k": "3", "epsilon": "1.0", "seed": "0", "status": OK}
    errors = {("stable", "0.001"): 0.1, ("adaptive", "0.001"): 0.2, ("stable", "0.1"): 0.9, ("adaptive", "0.1"): 0.3}
    rows = [
        {"method": method, **base, "gamma_w": tail, "error": str(error), "seconds": "1", "memory_mb": "", "note": ""}
        for (method, tail), error in errors.items()
    ]
    mapped = groups(SUITES["map"], rows)
    means = {"Wage": {real.OURS: 0.95, "analyze_gauss": 0.80}}
    (far,) = far_corner(groups(SUITES["real"], rows_of(means)), mapped)
    assert "0.001 or less" in far
    assert "None of the real tables lies in that corner: the shortest tail is 1, of Wage." in far
    (inside,) = far_corner(groups(SUITES["real"], rows_of(means, tail=1e-4)), mapped)
    assert "None of the real tables but Wage lies in that corner." in inside


def test_nothing_is_said_where_nothing_was_compared():
    some = groups(SUITES["real"], rows_of({"Wage": {real.OURS: 0.9}}))
    assert list(contests(some)) == lost_tables(some) == far_corner(some, []) == []
    assert real_text(some).startswith("Nothing")
