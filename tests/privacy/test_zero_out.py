"""The second claim of a release: what it costs where a record's place is left empty."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import privspan as ps
from privspan import baselines
from privspan.audit.replay import Transcript
from privspan.datasets import gaussian_subspace
from privspan.privacy import Budget, PrivacyCost, epsilon_from_mu, mu_from_budget
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.persons import by_person
from privspan.rows.door import open_table
from privspan.standard import cells, ranges
from privspan.sums import localised, regression, score_map
from privspan.sums.early_gram import ClippedGram, EarlyGram
from privspan.sums.grid import (
    MOMENTS,
    ROOT_HALF,
    SUMS,
    SumBounds,
    look_empty,
    look_gain,
    most_share,
    noise_level,
    row_bounds,
)
from privspan.sums.lazy_gauss import UnitGram
from privspan.sums.lifts import person_lift
from privspan.sums.looks import CONSTANT, AugmentedGram
from privspan.sums.variance import explained_variance

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def size(moment: np.ndarray) -> float:
    """Return the norm of a symmetric matrix in units of the noise: sqrt(2) times as much of it is on the diagonal."""
    return float(np.linalg.norm(moment)) * math.sqrt(0.5)


def moved(gram, empty) -> float:
    return size(sum(gram.products(None)) - sum(empty.products(None)))


def largest(function, dimension: int, tries: int = 12) -> float:
    """Look for the largest value that a function takes, from many starts."""
    rng = np.random.default_rng(dimension)
    found = (
        minimize(lambda z: -function(z), rng.standard_normal(dimension) * 3, method="BFGS") for _ in range(tries)
    )
    return max(-one.fun for one in found)


def in_ball(z: np.ndarray) -> np.ndarray:
    return z / max(1.0, float(np.linalg.norm(z)))


# ---- Lemmas: no record moves a sum by more than its place is said to, and some do by as much ---------------------


@pytest.mark.parametrize(
    ("function", "dimension", "bounds"),
    [
        (lambda z: np.linalg.norm(in_ball(z)), 3, row_bounds(10, 3)),
        (
            lambda z: (
                math.hypot(size(np.outer(in_ball(z[:3]), in_ball(z[:3]))), abs(math.sin(z[3])) * math.sqrt(0.5))
                if np.linalg.norm(z[:3]) >= 1
                else 0.0
            ),
            4,
            regression.moment_bounds(10, 3),
        ),
        (lambda z: localised.INNER_CAP * size(np.outer(in_ball(z), in_ball(z))), 3, localised.inner_bounds(10, 3)),
        (
            lambda z: np.linalg.norm(np.outer(in_ball(z[:3]), in_ball(z[3:]))),
            6,
            localised.cross_bounds(10, 3, 3, 1.0),
        ),
    ],
    ids=["sum", "regression", "inner matrix", "residuals"],
)
def test_a_search_finds_no_record_whose_absence_moves_a_sum_further(function, dimension, bounds: SumBounds) -> None:
    found = largest(function, dimension)
    assert 0.999 * bounds.empty <= found <= bounds.empty * (1 + 1e-9)
    assert 1.0 < bounds.gain < bounds.sensitivity / bounds.empty


def test_the_weight_of_targets_is_that_of_the_lemma() -> None:
    assert pytest.approx(0.5) == regression._TARGET_WEIGHT**2


rows_of = st.lists(st.floats(-1e3, 1e3), min_size=3, max_size=3)


@settings(max_examples=60, deadline=None)
@given(st.lists(rows_of, min_size=3, max_size=6), st.sampled_from([0.0, CONSTANT]), st.integers(0, 2))
def test_second_moments(table, constant: float, place: int) -> None:
    X = np.array(table)
    empty = X.copy()
    empty[place] = np.nan
    one, other = (open_table(rows).rows() for rows in (X, empty))
    gram = AugmentedGram(one, constant=constant)
    assert moved(gram, AugmentedGram(other, constant=constant)) <= gram.empty * (1 + 1e-12)
    assert gram.empty == look_empty(constant)
    if constant == 0.0:
        assert moved(UnitGram(one), UnitGram(other)) <= UnitGram.empty


def test_second_moments_reach_their_bound() -> None:
    X = np.ones((3, 2))
    empty = np.array([[1.0, 1.0], [np.nan, np.nan], [1.0, 1.0]])
    one, other = (open_table(rows).rows() for rows in (X, empty))
    a = CONSTANT
    assert moved(UnitGram(one), UnitGram(other)) >= 0.999999 * ROOT_HALF
    met = moved(AugmentedGram(one), AugmentedGram(other))
    assert met == pytest.approx(math.sqrt((1 + 2 * a * a) / 2))  # the page says how little is left to the bound
    assert 0.99 * look_empty(a) <= met <= look_empty(a)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 16), st.integers(0, 2**32 - 1), st.floats(0.0, 1.0), st.sampled_from([0.0, CONSTANT]))
def test_persons_with_lifted_rows(width: int, seed: int, alike: float, constant: float) -> None:
    rng = np.random.default_rng(seed)
    people, X = np.repeat(np.arange(3), width), rng.standard_normal((3 * width, 4))
    X[:width] = alike * X[0] + (1.0 - alike) * X[:width]
    empty = X.copy()
    empty[:width] = np.nan
    tables = [by_person(rows, people, width, 0) for rows in (X, empty)]
    rows = [open_table(table).rows() for table in tables]
    grams = [AugmentedGram(one, constant=constant, lift=person_lift(one, constant)) for one in rows]
    assert moved(*grams) <= grams[0].empty * (1 + 1e-12)
    assert grams[0].empty == look_empty(constant, math.sqrt(width))
    assert 1.0 < look_gain(constant, width) <= grams[0].size / grams[0].empty


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.3, 5.0), st.integers(0, 11))
def test_clipped_rows(seed: int, radius: float, place: int) -> None:
    X = np.random.default_rng(seed).standard_normal((12, 3)) * 2.0
    X[place] *= 100.0
    empty = X.copy()
    empty[place] = np.nan
    one, other = (ClippedGram(EarlyGram(open_table(rows).rows(), 2.0), radius, CONSTANT) for rows in (X, empty))
    assert moved(one, other) <= one.empty * (1 + 1e-9)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 4), st.integers(0, 2**32 - 1))
def test_histograms(columns: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    row = rng.choice([1.0, -1e9, np.nan, 3e-9], columns)
    made = {
        "columns": np.arange(columns),
        "low": np.full(columns, np.nan),
        "high": np.full(columns, np.nan),
        "bins": 200,
    }
    moved = ranges.bin_counts(row[None], **made) - ranges.bin_counts(np.full((1, columns), np.nan), **made)
    assert (moved**2).sum() == np.isfinite(row).sum()  # an empty place is in no bin
    counts = score_map.count_bounds(10, 5)
    assert counts.empty == 1.0
    assert counts.gain <= MOMENTS * (1 + 1e-9)


def test_cells_and_their_squares_have_no_gain_worth_the_name() -> None:
    """An empty cell is the centre, from where the ends are sqrt(3.76) off, and 2 from each other."""
    assert math.hypot(1.0, float(cells.SQUARES)) == pytest.approx(math.sqrt(3.76), rel=1e-3)
    assert cells.cell_bounds(10, 3).empty is None


# ---- Noise, and what rounding adds to it -------------------------------------------------------------------------


@settings(max_examples=200, deadline=None)
@given(
    st.floats(0.1, 10.0),
    st.floats(0.3, 1.0),
    st.floats(0.0, 0.5),
    st.integers(1, 10**9),
    st.floats(1e-3, 10.0),
)
def test_noise_keeps_the_gain_whatever_rounding_adds(sensitivity, part, error, entries, mu) -> None:
    bounds = SumBounds(sensitivity, error, entries, 1e6, part * sensitivity)
    level = noise_level(bounds, mu)
    rounding = 2 * Fraction(error) + (math.isqrt(entries - 1) + 1) * Fraction(level.grid)
    assert Fraction(level.sigma) * Fraction(mu) >= Fraction(sensitivity) + rounding
    told = (Fraction(bounds.empty) + rounding) / Fraction(level.sigma)
    assert told * Fraction(bounds.gain) <= Fraction(mu)


def test_ordinary_noise_is_what_it_was() -> None:
    for bounds in (row_bounds(10_000, 20), regression.moment_bounds(10_000, 5)):
        plain = SumBounds(bounds.sensitivity, bounds.chunk_error, bounds.entries, bounds.largest)
        assert noise_level(bounds, 0.2) == noise_level(plain, 0.2)


# ---- The account, and the cost -----------------------------------------------------------------------------------


def test_an_account_tells_no_more_of_an_empty_place_than_it_promised() -> None:
    account = MuLedger(Budget(1.0, 1e-6), empty=most_share(0.1, MOMENTS))
    account.spend("count", 0.1)
    account.spend("look", 0.4, MOMENTS)
    with pytest.raises(RuntimeError, match="exceed the zero-out cost"):
        account.spend("another count", 0.3)
    account.spend("look", account.left, MOMENTS)
    cost = account.cost()
    assert cost.empty_mu == pytest.approx(cost.mu * math.sqrt(0.1 + 0.9 / MOMENTS**2))
    assert MuLedger(Budget(1.0, 1e-6)).cost().empty_mu == MuLedger(Budget(1.0, 1e-6)).mu


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.floats(1e-6, 0.3), st.booleans()), max_size=12), st.floats(0.0, 1.0))
def test_whatever_way_is_taken_the_promise_holds(steps, plain: float) -> None:
    """Only what would break it is refused: a run in which steps without a gain stay within their share never is."""
    account, counted = MuLedger(Budget(1.0, 1e-6), empty=most_share(plain, MOMENTS)), 0.0
    for share, has_gain in steps:
        if share > account.left or (not has_gain and counted + share > plain):
            continue
        account.spend("step", share, MOMENTS if has_gain else 1.0)
        counted += 0.0 if has_gain else share
    told = sum((Fraction(share) / Fraction(g) ** 2 for share, g in _spent(account)), Fraction(0))
    assert told * Fraction(account.mu) ** 2 <= Fraction(account.cost().empty_mu) ** 2


def _spent(account: MuLedger) -> list[tuple[float, float]]:
    return [(share, 1.0) for _, share in account.shares] if account.empty == 1.0 else [(float(account._told), 1.0)]


def test_sums_of_costs_keep_both_claims() -> None:
    mu = mu_from_budget(1.0, 1e-6)
    fit = PrivacyCost(1.0, 1e-6, mu=mu, empty_mu=0.75 * mu)
    ten = sum([fit] * 9, start=fit)
    assert ten.zero_out().mu == pytest.approx(0.75 * ten.mu)
    assert ten.zero_out().epsilon == pytest.approx(epsilon_from_mu(0.75 * mu * math.sqrt(10), 1e-6))
    assert (fit + PrivacyCost(0.5, 0.0)).zero_out().epsilon == pytest.approx(fit.zero_out().epsilon + 0.5)
    assert fit.parallel(PrivacyCost(1.0, 1e-6, mu=mu)).empty_mu == mu
    with pytest.raises(ValueError, match="same neighbours"):
        fit + fit.zero_out()
    assert fit.zero_out().zero_out() == fit.zero_out()
    assert PrivacyCost.from_dict(fit.to_dict()) == fit
    assert PrivacyCost(1.0, 1e-6).zero_out().epsilon == 1.0


def test_events_of_zero_out_are_right_in_both_accountants() -> None:
    accounting = pytest.importorskip("dp_accounting")
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    special = accounting.NeighboringRelation.REPLACE_SPECIAL
    cost = PrivacyCost(1.0, 1e-6, mu=mu_from_budget(1.0, 1e-6), empty_mu=0.75 * mu_from_budget(1.0, 1e-6)).zero_out()
    for accountant, made, slack in (
        ("pld", PLDAccountant(special), 2e-3),
        ("rdp", RdpAccountant(None, special), 0.12),
    ):
        told = made.compose(cost.to_dp_event(accountant)).get_epsilon(1e-6)
        assert cost.epsilon * (1 - 1e-4) <= told <= cost.epsilon * (1 + slack)
    assert cost.to_pld().get_epsilon_for_delta(1e-6) == pytest.approx(cost.epsilon, rel=2e-3)


def test_rounds_are_counted_however_they_are_asked_for() -> None:
    X = TABLE[:500]
    claims = {
        rounds: {
            ps.private_subspace(X, 2, method="adaptive", rng=0, **BUDGET, **given).cost.empty_mu
            for given in ({"most_rounds": rounds}, {"options": {"most_rounds": rounds}})
        }
        for rounds in (1, 5)
    }
    assert [len(found) for found in claims.values()] == [1, 1]
    assert claims[1] != claims[5]


@pytest.mark.filterwarnings("ignore")
def test_a_joint_account_has_all_of_what_follows_its_coin() -> None:
    """With stable leverage to the end, what came before the coin and what follows it are more than one share."""
    X, _ = gaussian_subspace(1_000, 300, 3, gamma_w=1e-5, rng=0)
    release = ps.private_subspace(X, 3, account="joint", rng=0, **BUDGET)
    assert release.method == "auto (stable look)"
    assert release.cost.mu is None
    assert release.cost.zero_out().epsilon == 1.0


# ---- Replays: the real functions, with one place left empty ------------------------------------------------------

RNG = np.random.default_rng(5)
TABLE = RNG.standard_normal((4_000, 5)) * [3, 2, 1, 1, 1]
WIDE = RNG.standard_normal((3_000, 280)) * np.r_[4.0, 3.0, np.ones(278)]
SMALL = RNG.standard_normal((300, 4))
IDS = np.repeat(np.arange(1_000), 4)


def emptied(X: np.ndarray, rows=slice(0, 1)) -> np.ndarray:
    changed = X.copy()
    changed[rows] = np.nan
    return changed


def longest(X: np.ndarray) -> np.ndarray:
    """Return a table whose first row is as long as a row can be of use to somebody, and points along no other."""
    changed = X.copy()
    changed[0] = 0.0
    changed[0, -1] = 1e4
    return changed


REPLAYED = {
    "mean": lambda X, rng: ps.private_mean(X, norm_bound=1.0, rng=rng, **BUDGET),
    "mean, length measured": lambda X, rng: ps.private_mean(X, rng=rng, **BUDGET),
    "two looks": lambda X, rng: ps.private_pca(X, 2, rng=rng, **BUDGET),
    "zero rows": lambda X, rng: ps.private_pca(X, 2, missing="zero-row", rng=rng, **BUDGET),
    "adaptive": lambda X, rng: ps.private_subspace(X, 2, method="adaptive", rng=rng, **BUDGET),
    "Analyze Gauss": lambda X, rng: baselines.analyze_gauss(X, 2, rng=rng, **BUDGET),
    "PCA without a centre": lambda X, rng: ps.private_pca(X, 2, center=False, rng=rng, **BUDGET),
    "PCA by a method": lambda X, rng: ps.private_pca(X, 2, method="analyze-gauss", rng=rng, **BUDGET),
    "ranks": lambda X, rng: ps.private_pca(X, 2, scale="ranks", rng=rng, **BUDGET),
    "deviations": lambda X, rng: ps.private_pca(X, 2, scale="deviations", rng=rng, **BUDGET),
    "scales": lambda X, rng: ps.private_scales(X, rng=rng, **BUDGET),
    "variances": lambda X, rng: explained_variance(X, ps.Subspace(np.eye(5, 2)), rng=rng, **BUDGET),
    "regression": lambda X, rng: ps.private_regression(
        X[:, 1:], X[:, 0], norm_bound=1.0, target_bound=1.0, rng=rng, **BUDGET
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", REPLAYED)
@pytest.mark.parametrize("seed", [0, 1])
def test_a_run_tells_no_more_of_an_empty_place_than_it_claims(name: str, seed: int) -> None:
    X = longest(TABLE)
    if name == "regression":
        X[0, 0] = 1e4
    _assert_covered(REPLAYED[name], X, emptied(X), seed, least=0.5 if name in ("ranks", "scales") else 0.7)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("table", "k"),
    [(WIDE, 12), (SMALL, 2), (SMALL[:40], 1), (TABLE.astype(np.float32), 2)],
    ids=["wide", "pairs", "few rows", "float32"],
)
def test_other_courses_too(table: np.ndarray, k: int) -> None:
    X = longest(table)
    _assert_covered(lambda X, rng: ps.private_pca(X, k, rng=rng, **BUDGET), X, emptied(X), 0, least=0.5)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scale", [False, "ranks", "deviations"])
def test_persons_too(scale) -> None:
    X = longest(TABLE)
    X[:4] = X[0]
    run = lambda X, rng: ps.private_pca(X, 2, scale=scale, person=IDS, max_rows=4, rng=rng, **BUDGET)  # noqa: E731
    _assert_covered(run, X, emptied(X, slice(0, 4)), 0, least=0.5)


def _assert_covered(run, X: np.ndarray, empty: np.ndarray, seed: int, least: float = 0.7) -> None:
    transcript = Transcript(seed)
    spent = transcript.spent_by(run, X, empty)
    cost = transcript.results[0].cost
    assert cost == transcript.results[1].cost
    assert math.sqrt(spent) <= cost.empty_mu
    assert math.sqrt(spent) >= least * cost.empty_mu  # the claim is no idle one


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("d", [5, 280])
def test_the_claim_does_not_depend_on_the_way(d: int) -> None:
    """It is one of public numbers: tables of one shape have one claim, whatever course they take."""
    rng, found = np.random.default_rng(0), set()
    for make in (
        lambda n: rng.standard_normal((n, d)),
        lambda n: rng.standard_cauchy((n, d)),
        lambda n: np.ones((n, d)),
    ):
        cost = ps.private_pca(make(3_000), 12 if d > 100 else 2, rng=0, **BUDGET).cost
        found.add(cost.empty_mu)
    assert len(found) == 1


def test_a_default_fit() -> None:
    told = ps.private_pca(TABLE, 2, rng=0, **BUDGET).cost.zero_out()
    assert told.neighbours == "zero-out"
    assert 0.70 < told.epsilon < 0.75
    mean = ps.private_mean(TABLE, norm_bound=5.0, rng=0, **BUDGET).cost.zero_out()
    assert mean.epsilon < 0.49
    by_person = ps.private_mean(TABLE, norm_bound=5.0, person=IDS, rng=0, **BUDGET).cost.zero_out()
    assert by_person.neighbours == "zero-out-person"
    assert SUMS < 2.0
    assert look_gain(CONSTANT) < math.sqrt(2.0)
