"""Threads share what the package keeps between calls: tables of probabilities, windows of files, cleaned rows.

Every test here lets threads meet where one of them writes what the others read, and compares with a single thread.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import privspan
from privspan.privacy import selection
from privspan.privacy.selection import release_probability
from privspan.rows import open_rows
from privspan.rows.limits import Limits
from privspan.rows.unit import Rows
from privspan.rows.windows import WindowedSource

THREADS = 8


@pytest.fixture(autouse=True)
def restless() -> Iterator[None]:
    """Let Python change threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(calls: list[Callable[[], Any]]) -> list[Any]:
    """Run calls in as many threads, begun at one moment, and return their results."""
    gate = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        gate.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


class _SlowTable(selection._OptimalTable):
    def _next(self, last: int) -> int:
        time.sleep(1e-6)  # other threads come in between
        return super()._next(last)


def test_a_table_of_release_probabilities_grows_right_in_many_threads() -> None:
    """One wrong entry would be wrong for the life of the process: the review saw a delta of .99999 for 1e-9."""
    epsilon, delta, margins = 0.1, 1e-3, range(40, 40 + THREADS)
    alone, table = selection._OptimalTable(epsilon, delta), _SlowTable(epsilon, delta)
    expected = [alone(margin) for margin in range(max(margins) + 1)]
    seen = together([lambda m=m: table(m) for m in margins])
    assert [table(margin) for margin in range(max(margins) + 1)] == expected
    assert seen == [expected[m] for m in margins]


def test_the_same_in_a_process_that_nobody_slows_down() -> None:
    epsilon, delta, margins = 0.01, 1e-9, range(2500, 2500 + 2 * THREADS)
    alone = selection._OptimalTable(epsilon, delta)
    selection._optimal_table.cache_clear()
    together([lambda m=m: release_probability(m, epsilon, delta) for m in margins])
    table = selection._optimal_table(epsilon, delta)
    assert [table(m) for m in range(max(margins))] == [alone(m) for m in range(max(margins))]


def test_exact_releases_agree_with_those_of_one_thread() -> None:
    parts = np.random.default_rng(0).integers(0, 5, (600, 2))
    X = np.column_stack([parts, parts.sum(axis=1)])
    budgets = [{"epsilon": 0.02, "delta": 1e-9, "rng": seed} for seed in range(THREADS)]
    alone = [privspan.exact_subspace(X, 2, **budget) for budget in budgets]
    selection._optimal_table.cache_clear()
    shared = together([lambda b=budget: privspan.exact_subspace(X, 2, **b) for budget in budgets])
    assert shared == alone


class NumberedRows(WindowedSource):
    """Rows that hold their own numbers; other threads come in whenever the window that is held is looked at."""

    def __init__(self, n: int, window: int) -> None:
        super().__init__()
        self.shape, self.dtype = (n, 2), np.dtype(np.float64)
        self.edges = np.append(np.arange(0, n, window), n).astype(np.intp)

    @property
    def _held(self) -> Any:  # type: ignore[override]
        time.sleep(1e-6)
        return self._slot

    @_held.setter
    def _held(self, value: Any) -> None:
        self._slot = value

    def _load(self, window: int) -> Any:
        start, stop = self.edges[window : window + 2]
        return np.column_stack([np.arange(start, stop), np.ones(stop - start)])


def test_threads_that_share_a_source_get_the_rows_they_asked_for() -> None:
    """A window of another thread would count the people in it twice."""
    n = 200
    source = NumberedRows(n, 10)
    whole = np.column_stack([np.arange(n), np.ones(n)])
    orders = [np.random.default_rng(seed).permutation(n) for seed in range(THREADS)]
    seen = together([lambda o=order: (source[:], source[o]) for order in orders])
    for (all_rows, some), order in zip(seen, orders, strict=True):
        np.testing.assert_array_equal(all_rows, whole)
        np.testing.assert_array_equal(some, whole[order])


def test_threads_that_share_a_parquet_file_read_what_one_thread_reads(tmp_path: Any) -> None:
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    X = np.random.default_rng(0).standard_normal((3000, 3))
    table = pa.table({f"c{j}": X[:, j] for j in range(3)})
    pq.write_table(table, tmp_path / "x.parquet", row_group_size=100)
    source = open_rows(tmp_path / "x.parquet")
    for part in together([lambda s=s: (s, source[s : s + 1500]) for s in range(0, 1500, 200)]):
        np.testing.assert_array_equal(part[1], X[part[0] : part[0] + 1500])


def test_rows_that_threads_share_are_kept_once() -> None:
    """A piece that two threads clean at one time must not be kept as two pieces."""
    X, limits = np.random.default_rng(0).standard_normal((1600, 4)), Limits(piece_entries=16, enough_piece_rows=16)
    expected = np.concatenate([piece for _, piece in Rows(X).pieces()])
    for _ in range(10):
        rows = Rows(X, limits=limits)
        for seen in together([lambda r=rows: [piece for _, piece in r.pieces()]] * THREADS):
            np.testing.assert_array_equal(np.concatenate(seen), expected)
        np.testing.assert_array_equal(np.concatenate([piece for _, piece in rows.pieces()]), expected)


@pytest.mark.parametrize("method", ["adaptive", "stable", "approximate", "analyze-gauss"])
def test_releases_from_one_source_agree_with_those_of_one_thread(method: str, tmp_path: Any) -> None:
    """All of it at once: planner's caches, streams, tables of the noise, windows of one file."""
    pytest.importorskip("pyarrow")
    signal = np.random.default_rng(1).standard_normal((900, 2)) @ np.eye(2, 6)
    path = tmp_path / "x.csv"
    np.savetxt(path, signal + 1e-4 * np.random.default_rng(2).standard_normal((900, 6)), delimiter=",", fmt="%.9f",
               header="a,b,c,d,e,f", comments="")  # fmt: skip
    source = open_rows(path)

    def learn(seed: int) -> privspan.Release:
        return privspan.private_subspace(source, 2, epsilon=3.0, delta=1e-6, method=method, rng=seed)

    alone = [learn(seed) for seed in range(4)]
    shared = together([lambda s=seed: learn(s) for seed in range(4)])
    assert [one.to_dict() for one in shared] == [one.to_dict() for one in alone]
    assert [one.subspace for one in shared] == [one.subspace for one in alone]


def test_the_error_state_and_the_word_about_a_budget_belong_to_one_thread() -> None:
    """The door of a call in one thread is not that of another: each is told, and each keeps its own NumPy."""
    X = np.full((50, 2), 1e-200)

    def call(state: str) -> tuple[str, str]:
        with np.errstate(all=state):  # type: ignore[arg-type]
            privspan.private_mean(X, epsilon=1.0, delta=1e-6, norm_bound=1.0, rng=0)
            return state, np.geterr()["under"]

    for state, after in together([lambda s=s: call(s) for s in ["raise", "ignore"] * 4]):
        assert after == state
