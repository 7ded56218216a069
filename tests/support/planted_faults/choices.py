"""Faults in the exact case, and in choices and abstentions."""

from __future__ import annotations

import contextlib
import itertools
import math
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any
from unittest import mock

import numpy as np
from exact_oracle import printed_algorithm, scores
from runs import seeded

import privspan.audit.domains as domains
from planted_faults.registry import DELTA, EPSILON, MANY, SMALL_DELTA, algorithm_refuted, fault, refuted, task_refuted
from privspan import exact_subspace
from privspan.audit import Task, run_task
from privspan.audit.tables import last_replaced
from privspan.blocks import rank
from privspan.exact import exact
from privspan.exact import search as exact_search
from privspan.exact.arithmetic import rational_form
from privspan.privacy import call as calls
from privspan.privacy import selection
from privspan.privacy.run import Run
from privspan.rows.door import open_table
from privspan.sums import adaptive


def domain_refuted(name: str, case: str) -> bool:
    return run_task(Task("exact", name, case)).refuted


def errata_pair() -> Any:
    """Thirty records on each of two lines, and one person on a third line or on the first."""
    table = np.array([(1, 0)] * 30 + [(0, 1)] * 31)
    return last_replaced(table, (1, 1), (1, 0))


def exact_run(table, rng):
    return exact_subspace(table, 1, epsilon=EPSILON, delta=SMALL_DELTA, rng=rng)


@cache
def scores_of(table: tuple[tuple[int, ...], ...]) -> dict[Any, int]:
    return scores(table, 1)


@fault("the paper's Algorithm 1 as printed", lambda: refuted(exact_run, errata_pair(), runs=400, delta=SMALL_DELTA))
def printed(patch):
    def winner(rows, k, plan, failure, max_bits, streams):
        table = rows.integers(np.arange(len(rows)))
        rng = np.random.default_rng(streams.noise.below(2**64))
        found = scores_of(tuple(tuple(int(entry) for entry in row) for row in table))
        chosen = printed_algorithm(found, epsilon=EPSILON, delta=SMALL_DELTA, ell=2, rng=rng)
        if chosen is None:
            return None, 0
        return rational_form([[int(entry * 2) for entry in row] for row in chosen]), 10**6

    patch.setattr(exact, "_winner", winner)


def vote_refuted() -> bool:
    def law(ballots):
        return domains._release_or_abstain(*selection.vote_margin(ballots))

    return domains._sequences(("a", "b", None), 5, law).delta > domains.DELTA


@fault("sensitivity one instead of two", vote_refuted)
def unhalved(patch):
    patch.setattr(selection, "gap_margin", lambda top, second: max(0, top - second))


@fault("threshold too low", lambda: domain_refuted("exact_subspace (majority)", "eight records on three lines"))
def low_threshold(patch):
    margin = exact_search.majority_margin
    patch.setattr(exact_search, "majority_margin", lambda score, voters: margin(score + 1, voters))


@fault("release table in float64", lambda: task_refuted("release_probability"))
def float_table(patch):
    table = selection._OptimalTable.__call__

    def rounded(self, entry):
        return int(float(table(self, entry)))

    patch.setattr(selection._OptimalTable, "__call__", rounded)


@fault("noise cut off too early", lambda: task_refuted("TruncatedLaplace"))
def short_laplace(patch):
    class Short(selection.TruncatedLaplace):
        def __init__(self, epsilon, delta, sensitivity=1):
            super().__init__(epsilon, delta, sensitivity)
            self.bound -= 1
            self.weights = self.weights[:-1]
            self.total = self.weights[0] + 2 * sum(self.weights[1:])

    patch.setattr(domains, "TruncatedLaplace", Short)


def grown_by_threads() -> bool:
    """Whether a table that eight threads grow at one time breaks, in one of ten tries, what makes it private."""
    return any(_grown_at_one_time() for _ in range(10))


def _grown_at_one_time() -> bool:
    following = selection._OptimalTable._next

    def slowly(table, last):
        time.sleep(1e-5)  # other threads come in between
        return following(table, last)

    table = selection._OptimalTable(0.1, 1e-3)
    with mock.patch.object(selection._OptimalTable, "_next", slowly), ThreadPoolExecutor(8) as pool:
        list(pool.map(table, range(40, 56)))
    entries = [table(margin) for margin in range(56)]
    return any(high > following(table, low) for low, high in itertools.pairwise(entries))


@fault("a release table that threads grow in place", grown_by_threads)
def grown_in_place(patch):
    def grow(self, margin):
        if not isinstance(self._entries, list):
            self._entries = list(self._entries)
        while len(self._entries) <= margin:
            last = self._entries[-1]
            if last == selection._ONE:
                return last
            self._entries.append(self._next(last))
        return self._entries[margin]

    patch.setattr(selection._OptimalTable, "__call__", grow)


def rank_pair() -> Any:
    flat, full = np.tile([[1.0, 0.0, 0.0]], (3, 1)), np.eye(3)[[0, 0, 1]]
    return last_replaced(np.vstack([flat, full, flat]), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))


def chosen_dimension(table, rng):
    return rank.choose_dimension(open_table(table), 2, epsilon=EPSILON, run=seeded(rng), block_size=3)


@fault("selection at four times its epsilon", lambda: refuted(chosen_dimension, rank_pair(), runs=MANY, delta=1e-9))
def eager_selection(patch):
    select = Run.select
    patch.setattr(Run, "select", lambda self, counts, epsilon: select(self, counts, 4 * epsilon))


def all_inside_pair() -> Any:
    return last_replaced(np.tile([[1.0, 2.0]], (30, 1)), (math.nan, 2.0), (1.0, 2.0))


@fault("abstention that depends on values", lambda: algorithm_refuted(exact_subspace, all_inside_pair(), 1))
def touchy(patch):
    rows = exact.integer_rows

    def give_up(table, **options):
        return rows(table if np.isfinite(table).all() else np.zeros_like(table), **options)

    patch.setattr(exact, "integer_rows", give_up)


def ended_early(table, rng):
    """Whether a call ends with an error for a caller who has asked NumPy to raise."""
    with np.errstate(all="raise"):
        try:
            adaptive.adaptive_subspace(table, 1, epsilon=EPSILON, delta=DELTA, rng=rng)
        except FloatingPointError:
            return {"ended early": 1.0}
    return {"ended early": 0.0}


# Scaling rounds the last bits of so small a number, which NumPy tells of wherever it runs; of a product, not all do.
UNDERFLOW = last_replaced(np.ones((9, 2)), (1.0, 1e-310), (1.0, 1.0))


@fault("errors that the caller's NumPy raises", lambda: refuted(ended_early, UNDERFLOW))
def open_door(patch):
    patch.setattr(calls, "quiet_numpy", contextlib.nullcontext)
