"""`stable_subspace` and `stable_group_step`: accuracy, defined answers on bad input, calibration of every step."""

from __future__ import annotations

import time
from dataclasses import replace
from fractions import Fraction
from typing import Any

import dask.array as da
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from runs import Told, answering, seeded
from scipy import sparse
from scipy.special import ndtri
from sources import limited
from stable_attacks import break_lapack, failing, hidden_rows

from privspan.privacy import Budget, coin, compose_mu, delta_from_mu
from privspan.privacy.coin import goes_on, random_rotation
from privspan.privacy.randomness import BitSource, open_streams
from privspan.rows.door import open_table
from privspan.stable import leverage, scales
from privspan.stable import records as stable
from privspan.stable import release as stable_release
from privspan.stable.certificate import LeveragePlan
from privspan.stable.groups import _GridBases, stable_group_step
from privspan.stable.leverage import GRID, exact_gram
from privspan.stable.plan import (
    SMALLEST_RIDGE,
    allowance_for,
    certified_plan,
    override,
    plan_group_split,
    plan_levels,
    plan_stable_split,
    record_shares,
)
from privspan.stable.records import _ScaledRows, stable_subspace
from privspan.stable.release import procrustes_bound
from privspan.stable.tuning import STABLE
from privspan.subspace import Subspace

Array = NDArray[np.float64]


def near_a_subspace(
    rng: np.random.Generator, n: int, d: int, k: int = 3, tail: float = 1e-3, condition: float = 1.0
) -> tuple[Array, Subspace]:
    """Normal records; `tail` is the length of a record outside the subspace."""
    axes = np.linalg.qr(rng.standard_normal((d, k)))[0]
    signal = rng.standard_normal((n, k)) * np.sqrt(np.geomspace(condition, 1, k))
    return signal @ axes.T + tail / np.sqrt(d) * rng.standard_normal((n, d)), Subspace(axes)


def run(X: Any, k: int = 3, seed: int = 0, **options: Any) -> Any:
    return stable_subspace(X, k, epsilon=1.0, delta=1e-6, rng=seed, **options)


def test_accuracy_from_raw_records() -> None:
    errors = []
    for seed in range(4):
        X, truth = near_a_subspace(np.random.default_rng(seed), 1000, 300)
        found = run(X, seed=seed, preset="tight")
        if not found.abstained:
            errors.append(found.subspace.distance(truth))
    assert len(errors) >= 2
    assert np.median(errors) < 0.02  # noise on the covariance matrix leaves nothing at this size


def test_longer_tails_get_an_answer_too() -> None:
    """The bar for the k-th eigenvalue used to ask for room of the tail's size at every step of the margin."""
    for seed in range(3):
        X, truth = near_a_subspace(np.random.default_rng(seed), 1000, 50, k=1, tail=0.03)
        found = run(X, k=1, seed=seed)
        assert not found.abstained
        assert found.subspace.distance(truth) < 0.15


def test_the_default_makes_room_for_records_whose_tails_differ() -> None:
    """One factor per record, as in a multivariate Student-t: the tight plan abstains, the default answers."""
    rng = np.random.default_rng(0)
    X, truth = near_a_subspace(rng, 1500, 100, tail=0.0)
    X += 1e-4 * rng.standard_normal(X.shape) / np.sqrt(rng.chisquare(4, (1500, 1)) / 4)
    found = run(X)
    assert found.subspace.distance(truth) < 0.03
    assert found.parameters["long_share"] > 0.02
    tight = run(X, preset="tight")
    assert tight.abstained
    assert "long_share" not in tight.parameters


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_one_record_moves_the_number_of_long_groups_by_one(seed: int) -> None:
    """With the histogram's answer held fixed, as composition does: same groups, one of them changed."""
    rng = np.random.default_rng(seed)
    X, _ = near_a_subspace(rng, 60, 8, k=2, tail=0.3)
    Y = X.copy()
    Y[rng.integers(60)] = rng.standard_normal(8) * 10.0 ** rng.integers(-3, 4)
    counts = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stable, "released_share", lambda long, *_args: counts.append(long) or 0.0)
        for table in (X, Y):
            stable.StableRecords(open_table(table), 2, seeded(seed)).release_long_share(0.1, 1.0)
    assert 0 < max(counts) <= 20
    assert abs(counts[0] - counts[1]) <= 1


def test_the_split_of_the_budget_can_be_overridden() -> None:
    X, _ = near_a_subspace(np.random.default_rng(0), 400, 20)
    shares = [{part.name: part.mu for part in run(X, split=split).cost.parts} for split in (None, {"noise": 5.0})]
    assert shares[1]["noise"] > 1.5 * shares[0]["noise"]
    assert shares[1]["test"] < shares[0]["test"]
    groups = stable_group_step(
        np.zeros((40, 6, 2)),
        np.ones(40, bool),
        budget=Budget(1.0, 1e-6),
        run=seeded(0),
        split={"tail": 9.0},
    )[2]
    assert max(groups, key=lambda part: part.mu or 0.0).name == "tail length"


@pytest.mark.parametrize(
    "kind", ["aligned", *(pytest.param(one, marks=pytest.mark.slow) for one in ("huge", "equal"))]
)
def test_outliers_are_weighed_down_or_lead_to_an_abstention(kind: str) -> None:
    rng = np.random.default_rng(7)
    X, truth = near_a_subspace(rng, 1500, 100)
    clean = run(X, seed=3, preset="tight")
    assert not clean.abstained
    count = 75
    if kind == "huge":
        X[:count] = 1e6 * rng.standard_normal((count, 100))
    elif kind == "equal":
        X[:count] = rng.standard_normal(100)
    else:
        X[:count] = X[:count] + 0.3 * rng.standard_normal(100)
    found = run(X, seed=3, preset="tight")
    assert found.abstained or found.subspace.distance(truth) < 3 * clean.subspace.distance(truth)


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((60, 5)),
        np.ones((60, 5)),
        np.full((60, 5), np.nan),
        np.where(np.arange(300).reshape(60, 5) % 7 == 0, np.inf, 1.0),
        np.full((60, 5), 1e308),
        np.full((60, 5), 5e-324),
        np.full((60, 5), -(2**63), dtype=np.int64),
        np.eye(5, dtype=bool).repeat(12, axis=0),
        np.random.default_rng(0).standard_normal((60, 5)).astype(np.float32),
        np.arange(10.0).reshape(2, 5),
    ],
)
def test_bad_input_gets_a_defined_answer(X: NDArray[Any]) -> None:
    found = run(X, k=2)
    assert found.abstained
    assert found.cost.epsilon == 1.0
    assert found.cost.delta == 1e-6


def test_random_directions_without_a_signal_lead_to_an_abstention() -> None:
    assert run(np.random.default_rng(0).standard_normal((600, 40))).abstained


def test_unchanged_records_keep_every_bit_and_all_stay_in_the_unit_ball() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 33)) * 10.0 ** rng.uniform(-300, 300, size=(40, 1))
    other = X.copy()
    other[3], other[4] = np.nan, 1e308
    slices = []
    for table in (X, other):
        rows = _ScaledRows(open_table(table))
        bins = rows.norm_bins()
        rows.scale_to(2.5)
        slices.append((bins, np.hstack(list(rows.column_slices()))))
    same = np.arange(40) > 4
    assert (slices[0][0][same] == slices[1][0][same]).all()
    assert (slices[0][1][same] == slices[1][1][same]).all()
    assert not slices[1][1][3].any()
    for row in np.vstack([slices[0][1], slices[1][1]]):
        assert sum(Fraction(float(value)) ** 2 for value in row) <= 1
        assert (row / GRID == np.rint(row / GRID)).all()


@pytest.mark.parametrize("exponent", [-1010, -930, -890, 890, 930, 1018])
def test_a_power_of_two_leaves_records_as_they_are(exponent):
    X = np.random.default_rng(0).standard_normal((3, 4))
    both = [np.hstack(list(_ScaledRows(open_table(table)).column_slices())) for table in (X, np.ldexp(X, exponent))]
    np.testing.assert_array_equal(*both)


def test_norm_bins_are_quarter_octaves() -> None:
    X = np.zeros((4, 2))
    X[:, 0] = [1.0001, 2**0.25 * 1.0001, 2.0001, 0.0]
    first, second, third, none = _ScaledRows(open_table(X)).norm_bins()
    assert (second - first, third - first, none) == (1, 4, -1)


class Recorder(BitSource):
    """Remembers the probabilities that it was asked for."""

    def __init__(self) -> None:
        super().__init__(np.random.Philox(0))
        self.asked: list[Fraction] = []

    def bernoulli(self, numerator: int, bits: int) -> bool:
        self.asked.append(Fraction(numerator, 2**bits))
        return True


def test_the_test_is_gaussian_private_between_margins_and_starts_at_delta() -> None:
    budget, bits = plan_stable_split(2000, 3, 1.0, 1e-6).budget(1.0, 1e-6), Recorder()
    assert not goes_on(0, budget.coin, bits)
    assert bits.asked == []
    for margin in range(1, budget.coin.margins()[1] + 10):
        assert goes_on(margin, budget.coin, bits)
    assert bits.asked[0] <= Fraction(budget.coin.delta)
    scores = ndtri(np.array([float(p) for p in bits.asked]))
    assert (np.diff(scores) <= budget.coin.mu * (1 - 1e-12)).all()
    assert float(bits.asked[budget.coin.margins()[0] - 1]) > 0.97


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("n", [50, 1000, 20000])
def test_the_shares_add_up_to_the_budget(n: int, epsilon: float) -> None:
    changed = plan_stable_split(n, 3, epsilon, 1e-6).overridden({"test": 3.0, "delta_test": 0.9})
    for split in (plan_stable_split(n, 3, epsilon, 1e-6), plan_group_split(n, 3, epsilon, 1e-6), changed):
        budget = split.budget(epsilon, 1e-6)
        mus = [part.mu for part in budget.parts() if part.mu is not None]
        spent = delta_from_mu(compose_mu(*mus), epsilon) + budget.coin.delta + budget.delta_rotation
        assert spent <= 1e-6 * (1 + 1e-9)
        Budget(epsilon, 1e-6).cost(*budget.parts())


def test_every_step_draws_noise_of_its_certified_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Scales without noise, or noise from what the data achieved, would change these numbers."""
    rotations: list[float] = []
    rotation_noise = coin.rounded_normal

    def rounded(size: Any, scale: float, bits: BitSource) -> Any:
        rotations.append(scale)
        return rotation_noise(size, scale, bits)

    monkeypatch.setattr(coin, "rounded_normal", rounded)
    fixed = {"full_level": 150, "ramp": 50, "movers": 50, "signal": 200.0, "spread": 2e-5, "ridge": 1e-3}
    sizes = []
    for tail in (1e-3, 1e-5):  # the same public plan on different data: the same noise
        rotations.clear()
        X, _ = near_a_subspace(np.random.default_rng(1), 1000, 60, tail=tail)
        told = answering(True, seed=3)
        run(X, seed=told, **fixed)
        sizes.append((*[sigma for _, sigma, _ in told.asked["gaussian"]], *rotations))
    budget = record_shares(1000, 3, Budget(1.0, 1e-6), {})
    plan = stable_release.LeveragePlan(**fixed, largest_margin=1)
    scale, length, long, strength, noise, *rotation = sizes[0]
    assert sizes[0] == sizes[1]
    assert scale == pytest.approx(np.sqrt(2) / budget.mu_scale)
    assert length == pytest.approx(np.sqrt(2) / budget.mu_tail)
    assert long == pytest.approx(1 / budget.mu_long)
    assert 1.1 / budget.mu_signal <= strength < 1.11 / budget.mu_signal
    assert len(rotation) == 2
    assert 1 <= noise * budget.mu_noise / procrustes_bound(plan.sensitivity()) < 1.001


# The top eigenvector is orthogonal to the public start of the power steps, and the next eigenvalue is half as large:
# forty steps do not reach it. Weights are 1 throughout, so the plan's gap is there.
HIDDEN = LeveragePlan(32, 2, movers=6, signal=66.0, spread=1.35, ridge=1.0, largest_margin=3)


def weighted(rows: Array, plan: LeveragePlan, k: int, **steps: int) -> tuple[Array, float]:
    gram = exact_gram([rows], len(rows))
    return stable_release._weighted_basis(gram, np.ones(len(rows)), lambda some: rows.T @ some, plan, k, **steps)


def test_nothing_fails_after_the_coin_where_power_steps_miss_the_top_space() -> None:
    rows = hidden_rows(1000, 0.5)
    gram = exact_gram([rows], len(rows))
    budget = plan_stable_split(1000, 1, 1.0, 1e-6).budget(1.0, 1e-6)
    found = stable_release.certified_release(
        gram, 1, lambda c: rows.T @ c, HIDDEN, 1, budget, seeded(answering(True))
    )
    assert found is not None
    basis, error = weighted(rows, HIDDEN, 1)
    assert 1 - abs(basis[0, 0]) < 1e-12
    assert error < 1e-8


@pytest.mark.parametrize("working", ["power", "dense", "balls"])
@pytest.mark.parametrize("kind", ["plain", "copies", "equal eigenvalues", "unequal eigenvalues"])
def test_the_weighted_basis_keeps_its_error_by_each_route(kind, working, monkeypatch) -> None:
    rng = np.random.default_rng(4)
    values = rng.normal(size=(60, 3)) * (np.array([1.0, 0.7, 0.4]) if kind == "unequal eigenvalues" else 1.0)
    if kind == "copies":
        values[30:] = values[0]
    if kind == "equal eigenvalues":
        values = np.tile(np.eye(3), (20, 1))
    rows = np.hstack([values, 1e-4 * rng.normal(size=(60, 4))])
    rows = np.rint(rows / np.linalg.norm(rows, axis=1).max() * 0.99 / GRID) * GRID
    spectrum, axes = np.linalg.eigh(rows.T @ rows)
    plan = LeveragePlan(30, 10, 2, float(spectrum[-3]), (float(spectrum[-4]) + 1e-3) / 20, 1e-4, 3)
    if working == "balls":
        break_lapack(monkeypatch)
    basis, error = weighted(rows, plan, 3, **({} if working == "power" else {"power_steps": 0}))
    assert np.abs(basis.T @ basis - np.eye(3)).max() < 1e-13
    assert np.linalg.norm(basis - axes[:, -3:] @ (axes[:, -3:].T @ basis)) <= error < 1e-8


def test_the_steps_one_by_one_are_the_whole() -> None:
    """A caller with a mu for each step gets what `stable_subspace` releases, and the size of its noise."""
    X, truth = near_a_subspace(np.random.default_rng(5), 1200, 30)
    shares, streams = record_shares(1200, 3, Budget(1.0, 1e-6), {}), seeded(2)
    records = stable.StableRecords(open_table(X), 3, streams)
    records.release_scale(shares.mu_scale, shares.norm_quantile)
    tail = records.release_tail(shares.mu_tail)
    room = allowance_for("auto", records.release_long_share(tail, shares.mu_long))
    strength = records.release_strength(shares.mu_signal)
    plan = certified_plan(1200, 30, strength, tail, shares.coin, room)
    passed = records.certified(plan, shares.coin)
    found = records.noisy_basis(passed, shares.mu_noise, shares.delta_rotation)
    assert (found.subspace.basis == run(X, seed=2).subspace.basis).all()
    off = found.basis - truth.basis @ (truth.basis.T @ found.basis)  # (30, 3), noise but for the tail
    assert 0.7 < np.linalg.norm(off) / (found.std * np.sqrt(27 * 3)) < 1.4
    assert 1 <= found.std * shares.mu_noise / procrustes_bound(plan.sensitivity()) < 1.001


def test_typical_data_are_to_reach_less_where_tails_were_asked_for_and_none_was_long() -> None:
    rooms = {share: allowance_for("auto", share) for share in (None, -0.1, 0.0, 0.01)}
    assert {share: room.usual for share, room in rooms.items()} == {None: 2.0, -0.1: 1.5, 0.0: 1.5, 0.01: 2.0}
    assert replace(rooms[0.0], usual=2.0) == rooms[None]
    one = coin.GaussianCoin(0.1, 1e-8)
    plans = [certified_plan(1200, 30, 350.0, 1e-3, one, rooms[share]) for share in (None, 0.0)]
    assert plans[1].sensitivity() < plans[0].sensitivity()
    assert plans[1].largest_margin == plans[0].largest_margin


def test_a_no_looks_the_same_whatever_the_reason_and_draws_no_noise_for_a_basis() -> None:
    X, _ = near_a_subspace(np.random.default_rng(5), 200, 30, k=1)
    plan = LeveragePlan(60, 20, 20, 70.0, 1e-3, 1e-2, 5)
    few = replace(plan, signal=199.0)  # no levels: fewer records than that have any
    loose = replace(plan, spread=0.011 / 40)  # margin 0: the tail's bar is below the ridge
    told = Told()
    records = stable.StableRecords(open_table(X), 1, seeded(told))
    assert [records.certified(one, coin.GaussianCoin(1e-3, 1e-9)) for one in (plan, few, loose)] == [None] * 3
    assert set(told.asked) <= {"test"}
    assert stable_release.leverage_levels(records.gram, 1, 1, few) is None
    levels = stable_release.leverage_levels(records.gram, 1, 1, plan)
    assert stable_release.certified_margin(records.gram, 1, 1, levels, plan) >= 1  # it was the coin


def groups_of(n: int, k: int) -> NDArray[np.intp]:
    return stable.public_groups(n, k, np.random.default_rng(0))


def test_tails_of_groups_need_the_rows_of_the_groups_alone(tmp_path) -> None:
    """From an array, a memory map, a sparse table and Dask, in pieces of any size, as from the Gram matrix."""
    X, _ = near_a_subspace(np.random.default_rng(3), 100, 9, k=2, tail=0.1)
    X[7], X[8, 0] = 0.0, np.nan
    groups = groups_of(100, 2)
    records = stable.StableRecords(open_table(X), 2, seeded(0))
    expected = scales.smallest_squares(records.gram[groups[:, :, None], groups[:, None, :]])
    np.save(tmp_path / "rows.npy", X)
    tables = [X, np.load(tmp_path / "rows.npy", mmap_mode="r"), sparse.csr_array(X), da.from_array(X, chunks=(30, 9))]
    for table in tables:
        for size in (2**26, 1, 2000):
            source = limited(open_table(table).here(), groups_bytes=size)
            assert (stable.unit_tail_squares(open_table(source), groups) == expected).all()


@pytest.mark.parametrize(("spread", "near"), [(0.1, 0.95), (0.5, 0.95), (1.0, 0.7)])
def test_the_released_tail_of_few_groups_is_near_the_truth(spread: float, near: float) -> None:
    """Noise of a tenth of all 250 groups in every bin, as with a small share of the budget and 1,000 records.

    Lengths that spread over octaves are at the limit of what a window of two can find in it: four draws of five.
    """
    rng, bits = np.random.default_rng(0), seeded(0)
    lengths = 1e-3 * np.exp2(spread * rng.standard_normal((300, 250)))
    found = np.array([scales.released_tail(some**2, np.sqrt(2) / 25, bits) for some in lengths])
    assert np.mean((found > 0.6e-3) & (found < 3e-3)) > near
    assert 1e-3 < np.median(found) < 1.8e-3


@pytest.mark.parametrize("length", [0.0, 1e-30, 1.0, np.nan])
def test_a_tail_at_the_ends_of_the_histogram_is_released_as_any_other(length: float) -> None:
    found = scales.released_tail(np.full(1000, length), 10.0, seeded(0))
    assert 2.0**-26 <= found <= 2 ** (1 / 6)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=25, deadline=None)
def test_one_record_moves_the_tail_of_its_own_group_alone(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X, _ = near_a_subspace(rng, 61, 8, k=2, tail=0.3)
    Y, groups, row = X.copy(), groups_of(61, 2), int(rng.integers(61))
    Y[row] = rng.choice([0.0, np.nan, 1.0, 1e300, 1e-300]) * rng.standard_normal(8)
    moved = stable.unit_tail_squares(open_table(X), groups) != stable.unit_tail_squares(open_table(Y), groups)
    assert (np.flatnonzero(moved) == np.flatnonzero((groups == row).any(axis=1))).all() or not moved.any()


@pytest.mark.parametrize("bad", [0, 17])
def test_a_group_on_which_lapack_fails_counts_nowhere_and_leaves_the_others_alone(bad, monkeypatch) -> None:
    """LAPACK fails a batch as a whole; an exception or an abstention would be one record's doing."""
    X, _ = near_a_subspace(np.random.default_rng(0), 90, 8, k=2, tail=0.3)
    records = stable.StableRecords(open_table(X), 2, seeded(0))
    honest, before = np.linalg.eigvalsh, records._squares()
    groups = open_streams(0).public.permutation(90).reshape(-1, 3)
    hated = records.gram[np.ix_(groups[bad], groups[bad])]

    def picky(blocks: Array) -> Array:
        if (blocks == hated).all(axis=(-2, -1)).any():
            raise np.linalg.LinAlgError
        return honest(blocks)

    monkeypatch.setattr(np.linalg, "eigvalsh", picky)
    after = records._squares()
    assert 0.0 < records.release_tail(1.0) < 2.0
    others = np.arange(30) != bad
    assert np.isnan(after[bad])
    assert (after[others] == before[others]).all()


def test_no_failure_of_lapack_becomes_an_abstention_or_an_exception(monkeypatch) -> None:
    """Every iterative routine fails, before the coin and after it: slower, and as accurate."""
    X, truth = near_a_subspace(np.random.default_rng(0), 60, 20, k=1)
    rows = np.rint(X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0) * 0.99 / GRID) * GRID
    gram, plan = exact_gram([rows], 60), LeveragePlan(18, 6, 6, 15.0, 3e-4, 1e-3, 3)
    budget = plan_stable_split(2000, 1, 1.0, 1e-6).budget(1.0, 1e-6)

    def released() -> Any:
        sure = seeded(Told(test=lambda margin, _: margin >= 1))
        return stable_release.certified_release(gram, 1, lambda c: rows.T @ c, plan, 1, budget, sure)

    sound = released()
    break_lapack(monkeypatch)
    assert released().distance(truth) < 2 * sound.distance(truth) < 0.5


@given(
    st.integers(100, 12000),
    st.sampled_from([5, 50, 5000]),
    st.floats(-14, -1),
    st.sampled_from([STABLE.tight, STABLE.robust]),
)
@settings(max_examples=60, deadline=None)
def test_plans_keep_the_ridge_above_its_floor_and_the_gap_wide(n: int, d: int, log_tail: float, room: Any) -> None:
    """Whatever the released numbers are; and a plan whose ridge is not floored is the plan as it was."""
    plan = override(plan_levels(n, d, 0.3 * n, 10.0**log_tail, (5, 8), room), {})
    if plan is None:
        return
    assert plan.ridge >= SMALLEST_RIDGE
    assert plan.sensitivity() < 0.5
    assert plan.computable(n)
    assert plan.tail <= plan.signal / 4
    assert override(plan, {"spread": (plan.signal / 3 + plan.ridge) / plan.empty_level}) is None
    assert override(plan, {"ridge": SMALLEST_RIDGE / 2}) is None


def test_a_plan_that_float64_cannot_resolve_is_refused_on_public_grounds() -> None:
    plan = LeveragePlan(150, 50, 50, 200.0, 2e-5, 1e-3, 3)
    assert plan.computable(1000)
    assert not LeveragePlan(150, 50, 50, 0.5, 2e-5, 1e-3, 3).computable(1000)  # a gap below one record
    assert not LeveragePlan(150, 50, 50, 200.0, 1.0, 1e-6, 3).computable(1000)  # a tail of 1e8 ridges


def test_exactly_low_rank_records_get_an_answer_without_ball_arithmetic(monkeypatch) -> None:
    """They took 20 seconds at this size, and minutes at twice it."""
    monkeypatch.setattr(leverage, "ball_leverage_blocks", failing)
    X, truth = near_a_subspace(np.random.default_rng(0), 1000, 50, k=2, tail=0.0)
    found = run(X, k=2)
    assert found.subspace.distance(truth) < 1e-5
    assert found.parameters["ridge"] < 1e-10


@pytest.mark.slow
def test_four_thousand_exactly_low_rank_records_take_less_than_a_minute() -> None:
    X, truth = near_a_subspace(np.random.default_rng(0), 4000, 50, k=2, tail=0.0)
    start = time.process_time()
    found = run(X, k=2)
    assert time.process_time() - start < 60
    assert found.subspace.distance(truth) < 1e-6


def test_the_rotation_is_orthogonal_and_uniform() -> None:
    bits = BitSource(np.random.Philox(3))
    drawn = np.array([random_rotation(3, 1e-9, bits)[0] for _ in range(1500)])
    assert np.abs(drawn @ drawn.transpose(0, 2, 1) - np.eye(3)).max() < 1e-14
    assert np.abs(drawn.mean(axis=0)).max() < 0.09  # standard deviation 0.015
    assert np.abs((drawn**2).mean(axis=0) - 1 / 3).max() < 0.045  # 0.0077
    assert abs(np.linalg.det(drawn).mean()) < 0.15  # 0.026
    assert random_rotation(3, 1e-9, bits)[1] < 1e-9


def test_a_seed_repeats_the_run_and_says_that_it_is_not_private() -> None:
    X, _ = near_a_subspace(np.random.default_rng(0), 400, 20)
    first, second = run(X, seed=5), run(X, seed=5)
    assert first.parameters == second.parameters
    assert not first.private
    assert set(first.parameters) >= {"n", "d", "k", "preset", "log2_norm_scale", "tail_length", "signal_strength"}


@pytest.mark.parametrize(
    "options",
    [
        {"ramp": 0},
        {"ridge": -1.0},
        {"signal": np.nan},
        {"preset": "loose"},
        {"movers": 2.5},
        {"split": {"noice": 1.0}},
        {"split": {"noise": 0.0}},
        {"split": {"delta_test": 1.0}},
    ],
)
def test_overrides_are_checked_before_data_is_touched(options: dict[str, Any]) -> None:
    with pytest.raises((ValueError, TypeError), match="must be"):
        run(np.zeros((10, 3)), k=1, **options)


def some_bases(rng: np.random.Generator, t: int, d: int, k: int, tail: float) -> tuple[Array, Subspace]:
    axes = np.linalg.qr(rng.standard_normal((d, k)))[0]
    bases = [np.linalg.qr(axes + tail / np.sqrt(d) * rng.standard_normal((d, k)))[0] for _ in range(t)]
    turns = [np.linalg.qr(rng.standard_normal((k, k)))[0] for _ in range(t)]
    return np.stack([basis @ turn for basis, turn in zip(bases, turns, strict=True)]), Subspace(axes)


def test_groups_agree_on_a_subspace_whatever_their_bases_and_silent_groups_hold() -> None:
    bases, truth = some_bases(np.random.default_rng(0), 400, 40, 2, 1e-3)
    votes = np.ones(400, dtype=bool)
    votes[:3] = False
    bases[0], bases[1], bases[2] = np.nan, 1e300, 0.0
    budget = Budget(1.0, 1e-6)
    found, parameters, parts = stable_group_step(bases, votes, budget=budget, run=seeded(1))
    assert found is not None
    assert found.distance(truth) < 0.02
    assert parameters["groups"] == 400
    assert budget.cost(*parts).delta == 1e-6


def test_groups_too_long_or_not_finite_have_no_vote_and_change_no_other_bit() -> None:
    bases, _ = some_bases(np.random.default_rng(0), 12, 30, 2, 1e-2)
    votes = np.ones(12, dtype=bool)
    grams = []
    for slot in (bases[0], 1.2 * bases[0], np.full((30, 2), np.nan), 1e300 * bases[0]):
        changed = bases.copy()
        changed[0] = slot
        grams.append(exact_gram(_GridBases(changed, votes).column_slices(), 24))
    assert all((gram[2:, 2:] == grams[0][2:, 2:]).all() for gram in grams)


def test_groups_without_agreement_lead_to_an_abstention() -> None:
    rng = np.random.default_rng(0)
    bases = np.stack([np.linalg.qr(rng.standard_normal((20, 2)))[0] for _ in range(200)])
    votes = np.ones(200, dtype=bool)
    found, _, _ = stable_group_step(bases, votes, budget=Budget(1.0, 1e-6), run=seeded(1))
    assert found is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("d", "n", "tail", "limit"),
    [
        (5000, 1000, 1e-3, 0.09),
        (5000, 2000, 1e-3, 0.0145),
        (5000, 4000, 1e-3, 0.0045),
        (20000, 4000, 1e-3, 0.009),
        (20000, 4000, 1e-4, 0.0009),
    ],
)
def test_the_accuracy_table(d: int, n: int, tail: float, limit: float) -> None:
    errors = []
    for seed in range(5):
        X, truth = near_a_subspace(np.random.default_rng(seed), n, d, tail=tail)
        found = run(X, seed=seed)
        errors.append(np.inf if found.abstained else found.subspace.distance(truth))
    assert np.median(errors) <= limit
