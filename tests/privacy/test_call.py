"""What holds for every public private function, whoever calls it and however: the door `privspan.privacy.call`."""

from __future__ import annotations

import inspect
import re
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from fuzzing import OURS, Table, fingerprint
from public_functions import FUNCTIONS, SPENDING, is_behind_a_door
from runs import NoDraws, seeded

import privspan
from privspan import PrivatePCA, WeakPrivacyWarning, baselines
from privspan._lib.checks import EPSILONS, SMALLEST_DELTA
from privspan.blocks.rank import choose_dimension
from privspan.estimators._base import PrivateEstimator
from privspan.privacy.call import Call, weakness
from privspan.privacy.randomness import open_streams
from privspan.privacy.run import Run
from privspan.privacy.selection import permute_and_flip, release_probability, releases, stable_vote
from privspan.rows.door import open_table
from privspan.sums.pairs import pair_differences
from privspan.sums.variance import explained_variance

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
ROWS = np.random.default_rng(0).standard_normal((400, 6)) * [3.0, 2.0, 0.1, 0.1, 0.1, 0.1]
LINE, PLANE = (privspan.Subspace(np.eye(6)[:, :k]) for k in (1, 2))

# One plain call of everything that spends a budget: a table, a budget, a seed.
CALLS: dict[str, Any] = {
    "exact_subspace": lambda X, **b: privspan.exact_subspace(X, 2, decimals=2, **b),
    "approximate_subspace": lambda X, **b: privspan.approximate_subspace(X, 2, **b),
    "boosted_subspace": lambda X, **b: privspan.boosted_subspace(X, 2, alpha=0.5, beta=0.31, **b),
    "stable_subspace": lambda X, **b: privspan.stable_subspace(X, 2, **b),
    "adaptive_subspace": lambda X, **b: privspan.private_subspace(X, 2, method="adaptive", **b),
    "private_subspace": lambda X, **b: privspan.private_subspace(X, 2, **b),
    "private_mean": lambda X, **b: privspan.private_mean(X, **b),
    "private_pca": lambda X, **b: privspan.private_pca(X, 2, **b),
    "private_pca, any k": lambda X, **b: privspan.private_pca(X, "auto", **b),
    "private_regression": lambda X, **b: privspan.private_regression(
        X, X[:, 0], norm_bound=2.0, target_bound=2.0, **b
    ),
    "private_classifier": lambda X, **b: privspan.private_classifier(X, X[:, 0] > 0, classes=(0, 1), **b),
    "PrivateLogisticRegression": lambda X, rng, **b: privspan.PrivateLogisticRegression(
        (0, 1), random_state=rng, **b
    ).fit(X, X[:, 0] > 0),
    "explained_variance": lambda X, **b: explained_variance(X, LINE, **b),
    "private_scales": lambda X, **b: privspan.private_scales(X, bounds=(-9.0, 9.0), **b),
    "private_score_map": lambda X, **b: privspan.private_score_map(X, PLANE, **b),
    "PrivateStandardScaler": lambda X, rng, **b: privspan.PrivateStandardScaler(random_state=rng, **b).fit(X),
    "PrivatePCA": lambda X, rng, **b: PrivatePCA(2, random_state=rng, **b).fit(X),
    "PrivatePCA, any k": lambda X, rng, **b: PrivatePCA("auto", random_state=rng, **b).fit(X),
    "PrivateSubspace": lambda X, rng, **b: privspan.PrivateSubspace(2, random_state=rng, **b).fit(X),
    "PrivateSubspace, exact": lambda X, rng, **b: privspan.PrivateSubspace(
        2, method="exact", options={"decimals": 2}, random_state=rng, **b
    ).fit(X),
    "PrivateSubspace, approximate": lambda X, rng, **b: privspan.PrivateSubspace(
        2, method="approximate", random_state=rng, **b
    ).fit(X),
    "PrivateSubspace, boosted": lambda X, rng, **b: privspan.PrivateSubspace(
        2, method="boosted", options={"alpha": 0.5, "beta": 0.31}, random_state=rng, **b
    ).fit(X),
}
for name in baselines.__all__:
    CALLS[name] = lambda X, name=name, **b: getattr(baselines, name)(X, 2, **b)


def refusal_of(call: str, X: Any, **budget: float) -> str:
    """Return why the rows do not suffice for a call, or nothing; anything else that it raises is an accident."""
    try:
        CALLS[call](X, **budget, rng=0)
    except ValueError as refusal:
        return re.search(
            r"must (have at least|make|be larger)|Private scales of|Each of the .* rows", str(refusal)
        ).group()
    return ""


def hostile_rows() -> dict[str, Any]:
    """Tables that differ in one row from `ROWS`, one for each way in which arithmetic can complain of a row."""
    unlikely = {
        "denormal": 5e-324,
        "tiny": 1e-200,
        "huge": 1e200,
        "largest": 1.7e308,
        "nan": np.nan,
        "infinite": -np.inf,
        "zero": 0.0,
    }
    tables = {name: ROWS.copy() for name in unlikely}
    for name, value in unlikely.items():
        tables[name][17] = value
    tables["mixed"] = ROWS.copy()
    tables["mixed"][17] = [1e-320, 1e300, np.nan, 1.0, -1e-310, 0.0]
    return tables


# --- Nobody forgets the door -----------------------------------------------------------------------------


def test_whatever_spends_a_budget_is_behind_the_door() -> None:
    """Functions that spend are found by their parameters; estimators spend in the one `fit` that all share."""
    for name in SPENDING:
        value = FUNCTIONS[name]
        if isinstance(value, type):
            if value is privspan.PrivateLogisticRegression:  # a shell around the function
                value = privspan.private_classifier
                assert "private_classifier" in privspan.PrivateLogisticRegression.fit.__code__.co_names
            else:
                assert issubclass(value, PrivateEstimator)
                assert "fit" not in vars(value)
                value = PrivateEstimator.fit
        opened = {"Call", "open_table"} & {*value.__code__.co_names, *inspect.unwrap(value).__code__.co_names}
        assert opened or is_behind_a_door(value), name


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call", CALLS)
def test_a_call_begins_once_after_its_door_was_opened(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What one public function takes from another is behind the other's door, and is not charged again."""
    opened, begun, enter, begin = [], [], Call.__enter__, Call.begin
    monkeypatch.setattr(Call, "__enter__", lambda self: opened.append(self) or enter(self))
    monkeypatch.setattr(Call, "begin", lambda self, *a, **how: begun.append(self) or begin(self, *a, **how))
    assert refusal_of(call, ROWS, **BUDGET) or begun == opened
    assert len(opened) == 1


def test_every_such_function_is_called_here() -> None:
    inside = {"choose_dimension", "permute_and_flip", "private_pair_distance", "releases", "stable_vote"}
    assert {name.rsplit(".", 1)[-1] for name in SPENDING} - inside == {call.partition(",")[0] for call in CALLS}


# --- NumPy's error state ---------------------------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS)
def test_no_row_makes_numpy_raise_or_warn(call: str) -> None:
    """Whoever asks NumPy to raise, and Python to turn warnings into errors, learns nothing about a row by it."""
    told = set()
    for X in hostile_rows().values():
        with np.errstate(all="raise"), warnings.catch_warnings():
            warnings.simplefilter("error")
            for ours in OURS:
                warnings.simplefilter("ignore", ours)
            before, state = fingerprint(X), np.geterr()
            told.add(refusal_of(call, X, **BUDGET))
            assert np.geterr() == state
            assert fingerprint(X) == before
    assert len(told) == 1  # an answer for every table, or a refusal by shape


def test_nor_in_what_prepares_a_table() -> None:
    for X in hostile_rows().values():
        with np.errstate(all="raise"):
            pair_differences(X, open_streams(0).public)
            choose_dimension(open_table(X), 2, epsilon=1.0, run=seeded(0))


def test_nor_where_the_partitions_of_a_table_are() -> None:
    """The threads of a Dask scheduler have an error state of their own."""
    dask, array = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    with ThreadPoolExecutor(2, initializer=lambda: np.seterr(all="raise")) as pool, dask.config.set(pool=pool):
        for X in hostile_rows().values():
            table = array.from_array(X, chunks=(100, -1))
            privspan.private_mean(table, **BUDGET, rng=0)
            privspan.private_subspace(table, 2, method="adaptive", **BUDGET, rng=0)
            privspan.approximate_subspace(table, 2, **BUDGET, rng=0)


def test_a_table_of_denormal_numbers_is_no_reason_either() -> None:
    X = Table(60, 4, "f8", "C", "tiny", "array", 3).make()
    with np.errstate(all="raise"):
        privspan.private_mean(X, **BUDGET, rng=0)
        baselines.analyze_gauss(X, 2, **BUDGET, rng=0)


# --- Budgets that no algorithm could spend ---------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    ("budget", "named"),
    [
        ({"epsilon": 1e300}, "epsilon"),
        ({"epsilon": 1e12}, "epsilon"),
        ({"epsilon": 1e-300}, "epsilon"),
        ({"delta": 1e-300}, "delta"),
        ({"delta": 2.0**-101}, "delta"),
    ],
)
def test_a_budget_out_of_range_is_refused_before_a_bit_is_drawn(
    call: str, budget: dict[str, float], named: str
) -> None:
    with pytest.raises(ValueError, match=f"`{named}` must be"):
        CALLS[call](ROWS, **BUDGET | budget, rng=NoDraws())


@pytest.mark.parametrize("call", sorted(set(CALLS) - {"additive_wishart"}))  # whose table of a large n takes long
@pytest.mark.parametrize("budget", [(EPSILONS[1], 1e-6), (1.0, 1 - 1e-16), (1.0, 2.0**-99), (20.0, SMALLEST_DELTA)])
def test_budgets_at_the_ends_of_the_range_are_spent_without_an_accident(
    call: str, budget: tuple[float, float]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refusal_of(call, ROWS, epsilon=budget[0], delta=budget[1])


def test_selection_refuses_them_too() -> None:
    bits = seeded(0)
    for refuse in (
        lambda: releases(3, 1e12, 1e-6, bits),
        lambda: release_probability(3, 1e12, 1e-6),
        lambda: stable_vote([1, 1], 1e12, 1e-6, bits),
        lambda: permute_and_flip([1, 2], 1e12, bits),
        lambda: permute_and_flip([1, 2], -1.0, bits),
    ):
        with pytest.raises(ValueError, match="`epsilon` must be"):
            refuse()


def test_shares_of_a_budget_may_be_smaller_than_budgets() -> None:
    """The range is that of what a person asks for: a thousandth of the smallest epsilon is still a share."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        privspan.private_subspace(ROWS, 2, epsilon=EPSILONS[0], delta=SMALLEST_DELTA, rng=0)


BAD_LEVELS = [
    {"full_level": 0},
    {"full_level": 2.5},
    {"ramp": "wide"},
    {"movers": 2**70},
    {"signal": -1.0},
    {"spread": np.nan},
    {"ridge": 1e300},
    {"split": {"tail": 1e-300}},
    {"split": {"delta_test": 5e-324}},
    {"split": 3},
]


@pytest.mark.parametrize("options", BAD_LEVELS)
def test_levels_are_checked_before_anything_is_released(options: Any) -> None:
    numbers = {**BUDGET, "rng": NoDraws()}
    for call in (
        lambda: privspan.approximate_subspace(ROWS, 2, **numbers, options=options),
        lambda: privspan.approximate_subspace(ROWS, "auto", max_components=2, **numbers, options=options),
        lambda: privspan.boosted_subspace(ROWS, 2, alpha=0.5, beta=0.31, **numbers, options=options),
        lambda: privspan.stable_subspace(ROWS, 2, **numbers, **options),
    ):
        with pytest.raises((ValueError, TypeError), match=next(iter(options))):
            call()


# --- Budgets that promise little -------------------------------------------------------------------------

WEAK = [
    ({"epsilon": 100.0}, "10^43 times as likely"),
    ({"delta": 0.1}, "once in 10 runs"),
    ({"delta": 0.005}, "publishing one random row"),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("budget", "words"), WEAK)
def test_a_weak_budget_is_told_once_and_first(call: str, budget: Any, words: str) -> None:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        refusal_of(call, ROWS, **BUDGET | budget)
    told = [warning for warning in seen if warning.category is WeakPrivacyWarning]
    assert len(told) == 1
    assert told[0].filename == __file__
    assert words in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeakPrivacyWarning)
        with pytest.raises(WeakPrivacyWarning):
            CALLS[call](ROWS, **BUDGET | budget, rng=NoDraws())


def test_a_usual_budget_is_not_told_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", WeakPrivacyWarning)
        privspan.private_mean(ROWS, epsilon=10.0, delta=1 / 400, norm_bound=1.0, rng=0)


@pytest.mark.parametrize(
    ("n", "epsilon", "delta", "weak"),
    [(100, 1.0, 0.01, False), (101, 1.0, 0.01, True), (5, 1.0, 0.1, True), (5, 1.0, 0.01, False),
     (10**9, 1.0, 1e-8, True), (10, 10.0, 1e-6, False), (10, 10.1, None, True), (10, 1.0, None, False)],
)  # fmt: skip
def test_the_bars_are_where_the_page_says(n: int, epsilon: float, delta: float | None, weak: bool) -> None:
    assert (weakness(n, epsilon, delta) is not None) == weak


def test_a_call_begins_once() -> None:
    with Call("twice", 1.0, 1e-6) as call:
        call.begin()
        with pytest.raises(RuntimeError, match="begun once"):
            call.begin()


def test_whoever_makes_the_run_makes_none_that_calls_itself_private() -> None:
    class NoNoise(Run):
        def gaussian(self, values: Any, sigma: float, grid: float | None = None) -> Any:
            return values

    class Maker:
        seed = 0

        def run(self, account: Any, streams: Any) -> Run:
            return NoNoise(account, open_streams())

    with pytest.raises(TypeError, match="must make a run of the streams of its seed"):
        privspan.private_mean(ROWS, norm_bound=1.0, rng=Maker(), **BUDGET)
