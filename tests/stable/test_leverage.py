"""The kernel against rational arithmetic, and the lemmas of docs/explanation/stable-leverage.md under attack."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
import stable_oracle as oracle
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from stable_attacks import break_lapack, failing, hidden_rows

from privspan.stable import certificate as leverage_certificate
from privspan.stable import inverse, leverage
from privspan.stable.balls import ball_top_space
from privspan.stable.certificate import LeveragePlan, certified_margin, kth_eigenvalue, leverage_levels
from privspan.stable.leverage import (
    GRID,
    LeverageFilter,
    exact_gram,
    level_error,
    level_thresholds,
    split_gram,
    top_factor,
)
from privspan.stable.plan import SMALLEST_RIDGE

Array = NDArray[np.float64]
RIDGES = (1e-8, 1e-5, 1e-3, 1e-1)


def on_grid(rows: Array) -> Array:
    norms = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    return np.rint(rows / norms * (1 - 1e-6) / GRID) * GRID


def some_rows(rng: np.random.Generator, n: int, d: int, k: int, tail: float) -> Array:
    rows = rng.normal(size=(n, d)) * np.where(np.arange(d) < k, 1.0, tail)
    return on_grid(rows / np.linalg.norm(rows, axis=1, keepdims=True) * rng.choice([1.0, 1.0, 0.4], size=(n, 1)))


def some_bases(rng: np.random.Generator, t: int, d: int, k: int, tail: float) -> Array:
    """Items of width k as (t * k, d) rows."""
    bases = [np.linalg.qr(np.eye(d)[:, :k] + tail * rng.normal(size=(d, k)))[0].T for _ in range(t)]
    return np.rint(np.vstack(bases) * (1 - 1e-6) / GRID) * GRID


def replaced(rng: np.random.Generator, rows: Array, width: int) -> Array:
    """Swap the first item for one of the kinds that hurt: far off, copied, aligned, tiny or zero."""
    d, other = rows.shape[1], rows.copy()
    kind = rng.integers(5)
    item = rng.normal(size=(width, d)) * 10.0 ** rng.uniform(-3, 0, size=d)
    if kind == 1:
        item = rows[width : 2 * width]
    if kind == 2:
        item = rows[width : 2 * width] + 10.0 ** rng.uniform(-3, -1) * rng.normal(size=(width, d))
    item = np.linalg.qr(item.T + 1e-9 * rng.normal(size=(d, width)))[0].T if kind < 3 else item * 1e-3
    other[:width] = np.rint(item * (0.0 if kind == 4 else 1 - 1e-6) / GRID) * GRID
    return other


def every_level(rows: Array, width: int, ridge: float, k: int, highest: int) -> NDArray[np.int64]:
    gram = exact_gram([rows], len(rows))
    sets = LeverageFilter(gram, width, ridge, k, highest)
    levels = np.zeros(len(rows) // width, dtype=np.int64)
    for level in range(1, highest + 1):
        if not sets.advance(level):
            break
        levels[sets.kept] = level
    return levels


def test_the_gram_matrix_has_no_rounding_error() -> None:
    rows = some_rows(np.random.default_rng(0), 7, 90, 2, 0.3)
    steps = [[int(value) for value in row] for row in rows / GRID]
    exact = [[Fraction(sum(a * b for a, b in zip(x, y, strict=True)), 2**52) for y in steps] for x in steps]
    order = np.random.default_rng(1).permutation(90)
    gram = exact_gram([rows], 7)
    assert [[Fraction(float(value)) for value in row] for row in gram] == exact
    assert (exact_gram([rows[:, order[:13]], rows[:, order[13:]]], 7) == gram).all()


def test_the_split_adds_up_to_rounding_of_the_small_part() -> None:
    gram = exact_gram([some_rows(np.random.default_rng(2), 9, 30, 2, 1e-3)], 9)
    factor, tail = split_gram(gram, top_factor(gram, 2))
    outer = oracle.product(oracle.rational(factor), oracle.transpose(oracle.rational(factor)))
    for i in range(9):
        for j in range(9):
            error = abs(Fraction(float(gram[i, j])) - outer[i][j] - Fraction(float(tail[i, j])))
            allowed = Fraction(3.3 * 2.0**-53) * abs(Fraction(float(tail[i, j])))
            assert error <= allowed


@pytest.mark.parametrize("size", [1, 255, 256, 700])
def test_mirroring_copies_what_is_below_the_diagonal(size: int) -> None:
    matrix = np.random.default_rng(size).normal(size=(size, size))
    expected = np.tril(matrix) + np.tril(matrix, -1).T
    inverse.mirror(matrix)
    assert (matrix == expected).all()


@pytest.mark.parametrize("scale", [1.0, 0.5, 0.9])
def test_eigenvalues_do_not_depend_on_how_long_the_deflated_columns_are(scale: float) -> None:
    """With short columns much of the top is left in T, and what is projected out counts."""
    gram = exact_gram([some_rows(np.random.default_rng(7), 60, 8, 2, 1e-2)], 60)
    values, vectors = np.linalg.eigh(gram)
    plan = LeveragePlan(20, 5, 3, 5.0, 0.004, 0.01, 3)
    found = leverage_certificate._compressed(gram, scale * vectors[:, -2:] * np.sqrt(values[-2:]), plan)
    assert found is not None
    assert abs(found.signal - values[-2]) <= 1e-6
    assert abs(found.tail - values[-3]) <= leverage_certificate.TAIL_TOLERANCE * plan.ridge


def bases_of(gram: Array, width: int, ridge: float, rank: int) -> dict[type, leverage._Base]:
    """The bases of all items, by the way in which their tails are inverted."""
    found = leverage._certified_bases(gram, np.arange(len(gram) // width), width, ridge, rank)
    return {type(base.tail): base for base in found}


@pytest.mark.parametrize("way", [inverse.CholeskyInverse, inverse.SeriesInverse])
@pytest.mark.parametrize("width", [1, 2])
@pytest.mark.parametrize("ridge", RIDGES)
def test_leverages_and_their_error_bound_against_rationals(width: int, ridge: float, way: type) -> None:
    rng = np.random.default_rng(width)
    tail = 1e-3 if way is inverse.CholeskyInverse else 0.02 * np.sqrt(ridge)
    rows = some_rows(rng, 8, 5, 2, tail) if width == 1 else some_bases(rng, 6, 5, 2, tail)
    items = [oracle.rational(rows[i : i + width]) for i in range(0, len(rows), width)]
    base = bases_of(exact_gram([rows], len(rows)), width, ridge, 2)[way]
    for deleted in ([], [0], [1, 4]):
        keep = ~np.isin(np.arange(len(items)), deleted)
        values, bound = leverage._leverages(base, keep)
        exact = oracle.leverage_matrices(items, set(np.flatnonzero(keep).tolist()), ridge)
        for i, matrix in exact.items():
            upper, lower = Fraction(float(values[i]) + bound), Fraction(float(values[i]) - bound)
            assert oracle.at_most(matrix, upper)
            assert not oracle.at_most(matrix, lower)
        assert bound < 1e-7


@pytest.mark.parametrize("width", [1, 2])
def test_computed_sets_lie_between_the_exact_sets_of_both_thresholds(width: int) -> None:
    rng = np.random.default_rng(5 + width)
    rows = some_rows(rng, 9, 4, 1, 0.05) if width == 1 else some_bases(rng, 7, 5, 2, 0.1)
    items = [oracle.rational(rows[i : i + width]) for i in range(0, len(rows), width)]
    ridge, highest = 1e-3, 6
    gram = exact_gram([rows], len(rows))
    sets = LeverageFilter(gram, width, ridge, 1, highest)
    for level in range(1, highest + 1):
        alive = sets.advance(level)
        kept = set(np.flatnonzero(sets.kept).tolist()) if alive else set()
        threshold, error = Fraction(float(level_thresholds(highest)[level])), Fraction(level_error(highest))
        assert oracle.largest_good_set(items, ridge, threshold - error) <= kept
        assert kept <= oracle.largest_good_set(items, ridge, threshold + error)
    plain = oracle.levels(items, ridge, highest)
    assert np.abs(every_level(rows, width, ridge, 1, highest) - plain).max() <= 1


@given(st.integers(2, 3000))
def test_thresholds_are_spaced_for_any_error_below_the_bound(highest: int) -> None:
    thresholds, error = level_thresholds(highest)[1:], level_error(highest)
    kept = 1 / (thresholds + error)  # an item kept at the level has true leverage at most 1 / this
    assert (kept >= np.arange(1, highest + 1) * (1 - 1e-12)).all()
    assert (1 / (kept[1:] - 1) <= thresholds[:-1] - error).all()
    assert kept[-1] <= highest * 1.002 + 1


@settings(max_examples=60)
@given(st.integers(0, 10**9), st.sampled_from([1, 2]), st.sampled_from(RIDGES))
def test_replacing_an_item_moves_no_other_level_by_more_than_one(seed: int, width: int, ridge: float) -> None:
    rng = np.random.default_rng(seed)
    k, tail = width, float(rng.choice([1e-4, 1e-2, 0.1]))
    rows = some_rows(rng, 30, k + 3, k, tail) if width == 1 else some_bases(rng, 20, k + 3, k, tail)
    before = every_level(rows, width, ridge, k, 25)
    after = every_level(replaced(rng, rows, width), width, ridge, k, 25)
    assert np.abs(before - after)[1:].max() <= 1


def bold_plan(gram: Array, width: int, k: int, ridge: float, levels: NDArray[np.int64], slack: int) -> LeveragePlan:
    """A plan that the data pass with margins around `slack`, so that neighbours straddle it."""
    full = max(int(np.quantile(levels, 0.3)) - slack, 5)
    ramp = max(1, full // 2 - slack // 2)
    plan = LeveragePlan(full, ramp, 2, 1.0, 1.0, ridge, max(1, min(slack + 3, full - ramp - 2)))
    low, high = plan.empty_level - min(slack, plan.largest_margin), full + slack
    count = int(np.count_nonzero((levels >= low) & (levels < high)))
    rows_high, rows_low = (np.flatnonzero(np.repeat(levels >= bar, width)) for bar in (high, low))
    strong = float(([0.0] * k + np.linalg.eigvalsh(gram[np.ix_(rows_high, rows_high)]).tolist())[-k])
    weak = float(([0.0] * (k + 1) + np.linalg.eigvalsh(gram[np.ix_(rows_low, rows_low)]).tolist())[-k - 1])
    return replace(
        plan,
        movers=count + slack,
        signal=max(strong - 1.01 * slack - 0.01, 0.1),
        spread=(weak + ridge) / max(low, 1) * 1.01 + 1e-12,
    )


def attack(seed: int, width: int, *, low_rank: bool = False) -> tuple[int, int, LeveragePlan, Array, Array] | None:
    """Two neighbours, a plan that is about to fail on them, and both margins."""
    rng = np.random.default_rng(seed)
    k, ridge = (int(rng.integers(1, 3)) if width == 1 else width), float(10 ** rng.uniform(-4, -1))
    tail = float(rng.choice([1e-3, 1e-2, 5e-2]))
    if low_rank:  # where the ridge is at its floor
        ridge, tail = SMALLEST_RIDGE, float(rng.choice([0.0, 1e-9, 1e-7]))
    count = int(rng.integers(30, 60))
    rows = some_rows(rng, count, k + 3, k, tail) if width == 1 else some_bases(rng, count, k + 3, k, tail)
    gram = exact_gram([rows], len(rows))
    levels = every_level(rows, width, ridge, k, 60)
    if np.quantile(levels, 0.3) < 8:
        return None
    plan = bold_plan(gram, width, k, ridge, levels, int(rng.integers(1, 4)))
    other = replaced(rng, rows, width)
    return margin(rows, width, k, plan), margin(other, width, k, plan), plan, rows, other


def margin(rows: Array, width: int, k: int, plan: LeveragePlan) -> int:
    gram = exact_gram([rows], len(rows))
    levels = leverage_levels(gram, width, k, plan)
    return 0 if levels is None else certified_margin(gram, width, k, levels, plan)


def weighted_basis(rows: Array, width: int, k: int, plan: LeveragePlan) -> Array:
    levels = every_level(rows, width, plan.ridge, k, plan.full_level + plan.largest_margin)
    weights = np.repeat(plan.weights(levels), width)
    return np.linalg.eigh((rows * weights[:, None]).T @ rows)[1][:, -k:]


def sine(first: Array, second: Array) -> float:
    return float(np.linalg.norm(second - first @ (first.T @ second)))


@pytest.mark.parametrize(
    ("width", "low_rank"),
    [(1, True), (2, False), *(pytest.param(*other, marks=pytest.mark.slow) for other in ((1, False), (2, True)))],
)
def test_margins_of_neighbours_differ_by_at_most_one_and_bound_the_distance(width: int, low_rank: bool) -> None:
    certified = straddling = 0
    worst = 0.0
    for seed in range(150 if width == 1 else 80):
        found = attack(seed, width, low_rank=low_rank)
        if found is None:
            continue
        here, there, plan, rows, other = found
        assert abs(here - there) <= 1
        straddling += here != there
        bound = plan.sensitivity() * np.sqrt(width)
        if min(here, there) >= 1 and bound < 1:
            k = width if width > 1 else _dimension(seed)
            bases = weighted_basis(rows, width, k, plan), weighted_basis(other, width, k, plan)
            worst = max(worst, sine(*bases) / bound)
            certified += 1
    assert certified >= 20
    assert straddling >= 5  # otherwise the first assertion has not been tested
    assert worst <= 1


def _dimension(seed: int) -> int:
    return int(np.random.default_rng(seed).integers(1, 3))


def passes_at_zero(rows: Array, width: int, k: int, plan: LeveragePlan) -> bool:
    """Conditions (a), (b), (c) at margin 0, which the distance bound needs on both sides."""
    levels = every_level(rows, width, plan.ridge, k, plan.full_level + plan.largest_margin)
    ramp = (levels >= plan.empty_level) & (levels < plan.full_level)

    def values(level: int) -> Array:
        chosen = rows[np.repeat(levels >= level, width)]
        return np.linalg.eigvalsh(chosen.T @ chosen)[::-1]

    return (
        np.count_nonzero(ramp) <= plan.movers
        and values(plan.full_level)[k - 1] >= plan.signal * (1 - 1e-9)
        and values(plan.empty_level)[k] <= plan.tail * (1 + 1e-9)
    )


def test_margin_one_keeps_the_conditions_on_neighbours_and_margin_zero_would_not() -> None:
    broken_at_one = broken_at_zero = 0
    for seed in range(100):
        found = attack(seed, 1)
        if found is None:
            continue
        here, _, plan, rows, other = found
        k = _dimension(seed)
        if here >= 1:
            broken_at_one += not passes_at_zero(other, 1, k, plan)
        levels = every_level(rows, 1, plan.ridge, k, plan.full_level)
        strong = rows[levels >= plan.full_level]
        bare = replace(plan, signal=float(np.linalg.eigvalsh(strong.T @ strong)[-k]) - 1e-9)  # met, but only just
        if here >= 1 and passes_at_zero(rows, 1, k, bare):  # what a certificate that asks at g = 0 would accept
            broken_at_zero += not passes_at_zero(other, 1, k, bare)
    assert broken_at_one == 0
    assert broken_at_zero >= 5


def test_skipping_the_certificate_would_break_the_distance_bound() -> None:
    rng = np.random.default_rng(0)
    rows = some_rows(rng, 60, 4, 1, 0.05)
    other = rows.copy()
    other[0] = np.rint(np.array([0.5, 0.8, 0.0, 0.0]) / GRID) * GRID
    honest = LeveragePlan(12, 6, 20, 20.0, 0.1, 0.4, 3)
    boastful = replace(honest, signal=20000.0, movers=2)  # noise for a signal that is not there
    assert margin(rows, 1, 1, boastful) == 0
    moved = sine(weighted_basis(rows, 1, 1, boastful), weighted_basis(other, 1, 1, boastful))
    assert moved > boastful.sensitivity()


def test_leverage_without_the_right_ridge_would_break_the_distance_bound() -> None:
    """A ridge far above the one that the bound assumes hides tails: an outlier keeps its full weight."""
    rng = np.random.default_rng(1)
    signal, tails = rng.choice([-0.9, 0.9], size=(200, 1)), 1e-4 * rng.normal(size=(200, 3))
    rows = on_grid(np.hstack([signal, tails]))
    other = rows.copy()
    other[0] = np.rint(np.array([0.7, 0.7, 0.0, 0.0]) / GRID) * GRID
    plan = LeveragePlan(100, 50, 5, 100.0, 1.1e-4 / 45, 1e-4, 2)
    assert min(margin(rows, 1, 1, plan), margin(other, 1, 1, plan)) >= 1
    assert sine(weighted_basis(rows, 1, 1, plan), weighted_basis(other, 1, 1, plan)) <= plan.sensitivity()
    blind = replace(plan, ridge=100.0)
    moved = sine(weighted_basis(rows, 1, 1, blind), weighted_basis(other, 1, 1, blind))
    assert moved > plan.sensitivity()


def test_the_kth_eigenvalue_keeps_its_tolerance_with_and_without_a_gap() -> None:
    for tail in (1e-3, 1.0):
        gram = exact_gram([some_rows(np.random.default_rng(3), 80, 12, 3, tail)], 80)
        assert abs(kth_eigenvalue(gram, 3) - np.linalg.eigvalsh(gram)[-3]) < leverage_certificate.EIGENVALUE_TOLERANCE


def test_the_two_eigenvalues_of_the_certificate_by_both_routes() -> None:
    for n in (60, 700):  # dense, and Ritz value with Cholesky check
        gram = exact_gram([some_rows(np.random.default_rng(n), n, 900, 2, 1e-3)], n)
        exact = np.linalg.eigvalsh(gram)
        plan = gap_plan(exact[-3], exact[-2])
        found = leverage_certificate._spectrum(gram, 2, plan)
        assert -2e-7 <= exact[-2] - found.signal <= 1e-6
        assert abs(exact[-3] - found.tail) <= leverage_certificate.TAIL_TOLERANCE * plan.ridge


def gap_plan(tail: float, signal: float, ridge: float = 1e-4) -> LeveragePlan:
    """A plan whose certificate asks for that gap."""
    return LeveragePlan(30, 10, 2, signal - 1e-3, (tail + 1e-3 + ridge) / 20, ridge, 3)


def awkward_grams() -> dict[str, Array]:
    """Gram matrices with multiplicities, copies, exact low rank, and rows that are zero or of length one."""
    rng = np.random.default_rng(8)
    plane = rng.normal(size=(40, 2)) @ np.linalg.qr(rng.normal(size=(6, 2)))[0].T
    mixed = np.vstack([on_grid(10 * plane[:20]), np.zeros((5, 6)), np.tile(on_grid(plane[:1]), (15, 1))])
    rows = {
        "low rank": on_grid(plane),
        "copies": on_grid(np.repeat(plane[:8], 5, axis=0)),
        "zero and long rows": mixed,
        "equal eigenvalues": on_grid(np.tile(np.eye(6), (7, 1))),
        "hidden": hidden_rows(60, 0.5),
        "no signal": on_grid(rng.normal(size=(40, 30))),
    }
    return {name: exact_gram([values], len(values)) for name, values in rows.items()}


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("ridge", [2.0**-36, 1e-3])
@pytest.mark.parametrize("name", list(awkward_grams()))
def test_computed_eigenvalues_are_sound_always_and_tight_where_the_gap_is(name, ridge, broken, monkeypatch):
    """With and without LAPACK's help: λ_k from below, λ_{k+1} from above, both close if the plan's gap is there."""
    gram = awkward_grams()[name]
    tolerance = leverage_certificate.TAIL_TOLERANCE * ridge
    exact = np.maximum(np.linalg.eigvalsh(gram), 0.0)
    if broken:
        break_lapack(monkeypatch)
    tight = 0
    for k in (1, 2, 3):
        truth, following = exact[-k], exact[-k - 1]
        for low, high in ((following, truth), (0.5, 2.0), (0.0, len(gram) / 5)):
            plan = LeveragePlan(30, 10, 2, high, (low + tolerance + ridge) / 20, ridge, 3)
            found = leverage_certificate._spectrum(gram, k, plan)
            assert found.signal <= truth + 2e-7
            assert found.tail >= following - tolerance - 1e-13
            if truth >= high and following <= plan.tail and plan.computable(len(gram)):
                assert found.signal >= truth - 1e-6
                assert found.tail <= following + tolerance + 1e-13
                tight += 1
    no_gap = {"equal eigenvalues", "no signal"} | ({"hidden"} if ridge < 1e-6 else set())  # that float64 resolves
    assert (tight > 0) == (name not in no_gap)
    for k in (1, 2, 3):
        assert abs(kth_eigenvalue(gram, k) - exact[-k]) < leverage_certificate.EIGENVALUE_TOLERANCE


@given(st.integers(0, 10**9))
@settings(max_examples=60, deadline=None)
def test_eigenvalues_of_a_compression_are_off_by_the_square_of_the_coupling(seed: int) -> None:
    """The inequalities behind the bars, for subspaces far from and near to invariant ones."""
    rng = np.random.default_rng(seed)
    size, k = int(rng.integers(3, 9)), int(rng.integers(1, 3))
    values = np.where(np.arange(size) < k, rng.uniform(2, 4, size), rng.uniform(0, 1.5, size))
    turn = np.linalg.qr(np.eye(size) + 10 ** rng.uniform(-6, 0) * rng.normal(size=(size, size)))[0]
    matrix = (turn * values) @ turn.T
    signal, tail = np.linalg.eigvalsh(matrix[:k, :k])[0], np.linalg.eigvalsh(matrix[k:, k:])[-1]
    coupling, exact = np.linalg.norm(matrix[:k, k:]), np.linalg.eigvalsh(matrix)
    assert signal <= exact[-k] + 1e-12 <= max(signal, tail) + coupling + 2e-12
    assert min(signal, tail) - coupling <= exact[-k - 1] + 1e-12 <= tail + 2e-12
    if signal > tail:
        slip = coupling**2 / (signal - tail)
        assert exact[-k] <= signal + slip + 1e-12
        assert exact[-k - 1] >= tail - slip - 1e-12


@given(st.integers(0, 10**9))
@settings(max_examples=25, deadline=None)
def test_ball_arithmetic_finds_the_top_space_or_says_that_there_is_no_gap(seed: int) -> None:
    rng = np.random.default_rng(seed)
    size, k = int(rng.integers(3, 14)), int(rng.integers(1, 3))
    axes = np.linalg.qr(rng.normal(size=(size, size)))[0]
    values = np.where(np.arange(size) < k, rng.choice([2.0, 3.0, 9.0], size), rng.choice([0.0, 0.5, 0.9], size))
    matrix = (axes * values) @ axes.T
    matrix = (matrix + matrix.T) / 2
    found = ball_top_space(matrix, k, 0.95, 1.95)
    assert found is not None
    assert np.abs(found.T @ found - np.eye(k)).max() < 1e-15
    assert sine(axes[:, :k], found) < 1e-13
    assert ball_top_space(matrix, k + 1, 0.95, 1.95) is None
    assert ball_top_space(matrix + 1.45 * np.eye(size), k, 0.95, 1.95) is None  # values between


@given(st.integers(0, 10**9), st.integers(2, 5))
@settings(max_examples=30, deadline=None)
def test_norms_by_squaring_are_the_largest_eigenvalues(seed: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    halves = rng.normal(size=(6, width, width)) * 10.0 ** rng.uniform(-6, 0, size=(6, width, 1))
    blocks = halves @ halves.transpose(0, 2, 1)
    blocks[0], blocks[1] = 0.0, 0.3 * np.eye(width)
    assert np.allclose(leverage.block_norms(blocks), np.linalg.eigvalsh(blocks)[:, -1], rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("n", [80, 900])
def test_exactly_low_rank_records_need_no_ball_arithmetic_at_the_smallest_ridge(n, monkeypatch):
    """The floor under the ridge is high enough for float64, with copies and with rows of zeros."""
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, 2)) @ np.linalg.qr(rng.normal(size=(20, 2)))[0].T
    rows[: n // 10], rows[n // 10 : n // 5] = rows[-1], 0.0
    rows = on_grid(rows)
    monkeypatch.setattr(leverage, "ball_leverage_blocks", failing)
    highest = n // 4
    sets = LeverageFilter(exact_gram([rows], n), 1, SMALLEST_RIDGE, 2, highest)
    assert all(sets.advance(level) for level in (1, highest // 2, highest))
    kept = rows[sets.kept]
    scores = np.einsum("ij,ij->i", kept @ np.linalg.inv(kept.T @ kept + SMALLEST_RIDGE * np.eye(20)), kept)
    assert scores.max() < 1.01 / highest


@pytest.mark.parametrize("width", [1, 2])
def test_levels_and_margins_are_the_same_when_lapack_fails_throughout(width, monkeypatch):
    rng = np.random.default_rng(width)
    rows = some_rows(rng, 30, 4, 1, 1e-2) if width == 1 else some_bases(rng, 15, 5, 2, 1e-2)
    gram = exact_gram([rows], len(rows))
    plan = bold_plan(gram, width, width, 1e-2, every_level(rows, width, 1e-2, width, 60), 2)
    before = margin(rows, width, width, plan)
    assert before >= 1
    break_lapack(monkeypatch)
    assert margin(rows, width, width, plan) == before


@pytest.mark.parametrize("width", [1, 2])
def test_ball_arithmetic_takes_over_when_no_float_bound_is_small_enough(width, monkeypatch):
    """The slow path keeps the same items as the fast one, at every level."""
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((14 * width, 6)) * rng.choice([0.05, 0.2], (14 * width, 1))
    rows = np.rint(rows / np.maximum(1, np.linalg.norm(rows)) / leverage.GRID) * leverage.GRID
    gram = leverage.exact_gram([rows], len(rows))

    def kept_at_every_level():
        sets = leverage.LeverageFilter(gram, width, 1e-3, 2, 6)
        return [(sets.advance(level), sets.kept.tolist()) for level in range(1, 7)]

    fast = kept_at_every_level()
    assert any(not all(kept) for _, kept in fast)
    asked = []
    monkeypatch.setattr(leverage, "_certified_bases", lambda *_: asked.append(1) or [])
    assert kept_at_every_level() == fast
    assert asked
