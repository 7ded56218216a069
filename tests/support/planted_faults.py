"""Deliberately broken variants of the real code, each with the audit that must catch it.

A `Fault` plants itself by monkeypatching the library. `caught` runs an audit on whatever code is in place and says
whether the claim was refuted: it must say no before and yes after planting. docs/explanation/planted-faults.md lists
the same faults.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any
from unittest import mock

import dask
import dask.array as da
import everyday_replay
import folding
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from exact_oracle import printed_algorithm, scores
from person_neighbours import neighbours, spent_between
from scipy import sparse
from stable_attacks import hidden_rows

import privspan.audit.domains as domains
from privspan import (
    Subspace,
    approximate,
    baselines,
    exact_subspace,
    private_mean,
    private_scales,
    private_score_map,
    private_subspace,
)
from privspan._lib import entry, frames, strict_json
from privspan._lib.charge import Charge
from privspan.approximate import approximate_subspace
from privspan.audit import Task, run_task, scalar_audit, tasks
from privspan.audit.releases import released_numbers
from privspan.audit.replay import ReplayError, spent_by
from privspan.audit.tables import balanced_pairs, last_replaced, moment_pairs, near_axis
from privspan.backends import dask_tables
from privspan.blocks import histogram, rank
from privspan.datasets import gaussian_subspace
from privspan.exact import exact
from privspan.exact import search as exact_search
from privspan.exact.arithmetic import rational_form
from privspan.ledger import DamagedLedgerError, Ledger
from privspan.privacy import Budget, compose_mu, delta_from_mu, epsilon_from_mu, mu_from_budget, persons, selection
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import open_streams
from privspan.rows import RowSource, UnreadableFileError, open_rows, scaling
from privspan.rows import arrays as array_files
from privspan.rows import unit as unit_rows
from privspan.rows.files import parquet as parquet_files
from privspan.rows.files import text as text_files
from privspan.rows.partitioned_rows import PersonRows, open_unit_rows
from privspan.rows.persons import Belongings, PersonTable, PersonValues
from privspan.rows.unit import Rows
from privspan.stable import certificate as leverage_certificate
from privspan.stable import choice, course, near
from privspan.stable import records as stable
from privspan.stable import release as stable_release
from privspan.stable.certificate import LeveragePlan
from privspan.stable.leverage import GRID, LeverageFilter, exact_gram
from privspan.stable.plan import StableBudget
from privspan.stable.records import stable_subspace
from privspan.stable.release import certified_release
from privspan.sums import (
    about,
    adaptive,
    centre,
    centred_gauss,
    early_gram,
    everyday,
    gaps,
    lazy_gauss,
    lifts,
    localised,
    looks,
    mean,
    rounds,
    scales,
    score_map,
    standardise,
)
from privspan.sums import grid as sums
from privspan.sums.localised import local_view, localised_sums

# The package offers functions under the names of these modules.
k_dp_pca_module = sys.modules["privspan.baselines.k_dp_pca"]
gap_module = sys.modules["privspan.baselines.analyze_gauss_gap"]
exponential_module = sys.modules["privspan.baselines.exponential_pca"]

EPSILON, DELTA = 1.0, 0.1
SMALL_DELTA = 0.01
FEW, MANY = 60, 600  # runs on each table: enough for a leak that is certain, and for one that is a matter of size

Plant = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Fault:
    """What is wrong, what that breaks, how to plant it and which audit finds it."""

    name: str
    plant: Plant
    caught: Callable[[], bool]


FAULTS: dict[str, Fault] = {}


def fault(name: str, caught: Callable[[], bool]) -> Callable[[Plant], Plant]:
    """Register the decorated function, which plants the fault."""

    def keep(plant: Plant) -> Plant:
        FAULTS[name] = Fault(name, plant, caught)
        return plant

    return keep


# ---- Audits ----------------------------------------------------------------------------------------------------


def refuted(
    run: Callable[..., Any], pair: Any, *, runs: int = FEW, epsilon: float = EPSILON, delta: float = DELTA
) -> bool:
    """Audit ``run(table, rng=seed)`` on two tables, seeded, at 99 % confidence."""
    seeds = itertools.count()

    def on(table: Any) -> Callable[[], dict[str, float]]:
        return lambda: numbers(run(table, rng=next(seeds)))

    audit = scalar_audit(on(pair[0]), on(pair[1]), epsilon=epsilon, delta=delta, runs=runs, confidence=0.99)
    return audit.refuted


def numbers(released: Any) -> dict[str, float]:
    return released if isinstance(released, dict) else released_numbers(released)


def algorithm_refuted(algorithm: Callable[..., Any], pair: Any, *arguments: Any, **options: Any) -> bool:
    """Audit an algorithm that is called with epsilon and delta."""
    runs = options.pop("runs", FEW)

    def run(table: Any, rng: int) -> Any:
        return algorithm(table, *arguments, epsilon=EPSILON, delta=DELTA, rng=rng, **options)

    return refuted(run, pair, runs=runs)


def task_refuted(name: str, runs: int = 2000) -> bool:
    """Run the registered exact audits or sampler tests of that name."""
    return any(run_task(task, runs, 0).refuted for task in tasks(name) if task.kind != "sampled")


def domain_refuted(name: str, case: str) -> bool:
    return run_task(Task("exact", name, case)).refuted


# ---- Types of tables -------------------------------------------------------------------------------------------


def answered(table, rng):
    """Tell whether a table with a column of truth values, one of them missing or not, gets an answer."""
    flags = pa.array([None if np.isnan(cell) else bool(cell) for cell in table[:, 0]], pa.bool_())
    try:
        private_mean(pa.table({"flag": flags}), epsilon=EPSILON, delta=DELTA, norm_bound=1.0, rng=rng)
    except TypeError:
        return {"refused": 1.0}
    return {"refused": 0.0}


@fault(
    "dtype of a table by its values", lambda: refuted(answered, last_replaced(np.ones((40, 1)), (1.0,), (np.nan,)))
)
def inferred_type(patch):
    patch.setattr(frames, "frame_numbers", lambda X, name: None)


def longest_pair() -> Any:
    """Records on one line, in the largest integers, and one whose cells are missing or not."""
    return last_replaced(np.tile([[2.0**63, 1.0]], (40, 1)), (0.0, 0.0), (np.nan, np.nan))


def line_of_partition(table, rng):
    chunk = table if np.isnan(table).any() else np.array([[min(int(c), 2**63 - 1) for c in row] for row in table])
    X = da.from_delayed(dask.delayed(chunk), chunk.shape, dtype=np.int64)
    found = exact_subspace(X, 1, epsilon=EPSILON, delta=DELTA, rng=rng).subspace
    return {"abstained": float(found is None), "sign": 0.0 if found is None else float(np.sign(np.prod(found.basis)))}


@fault("a chunk cast back to the declared integers", lambda: refuted(line_of_partition, longest_pair()))
def cast_chunks(patch):
    def cast(chunk, dtype):
        with np.errstate(all="ignore"):
            return np.nan_to_num(chunk).astype(np.int64).astype(dtype)

    patch.setattr(dask_tables, "cell_numbers", cast)


# ---- Exact case and choices ------------------------------------------------------------------------------------


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
    return rank.choose_dimension(table, 2, epsilon=EPSILON, bits=open_streams(rng).noise, block_size=3)


@fault("selection at four times its epsilon", lambda: refuted(chosen_dimension, rank_pair(), runs=MANY, delta=1e-9))
def eager_selection(patch):
    flip = rank.permute_and_flip
    patch.setattr(rank, "permute_and_flip", lambda counts, epsilon, bits: flip(counts, 4 * epsilon, bits))


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
    patch.setattr(entry, "quiet_numpy", contextlib.nullcontext)


# ---- Sums and their noise --------------------------------------------------------------------------------------

OPPOSITE = last_replaced(np.zeros((3, 2)), (1.0, 0.0), (-1.0, 0.0))
ZERO_OR_LONG = last_replaced(np.zeros((3, 2)), (0.0, 0.0), (1e6, 0.0))
TIE = moment_pairs()["tie"]


def mean_refuted(pair: Any, **options: Any) -> bool:
    return algorithm_refuted(private_mean, pair, **options)


@fault("noise from the wrong scale", lambda: algorithm_refuted(baselines.mod_sulq, TIE, 1, runs=MANY))
def quiet(patch):
    level = sums.noise_level

    def third(bounds, mu, **options):
        return level(bounds, 3.0 * mu, **options)

    patch.setattr(sums, "noise_level", third)


@fault("missing clip", lambda: mean_refuted(ZERO_OR_LONG, norm_bound=1.0))
def unclipped(patch):
    scales = scaling.row_scales
    for module in (scaling, unit_rows):
        patch.setattr(
            module, "row_scales", lambda squares, d, clip: (np.ones(len(squares)), scales(squares, d, clip)[1])
        )


@fault("quantile without noise", lambda: mean_refuted(ZERO_OR_LONG))
def bare_quantile(patch):
    patch.setattr(
        mean,
        "typical_length",
        lambda source, mu, bits: float(np.exp(np.log(np.maximum(np.linalg.norm(source, axis=1), 2.0**-40)).mean())),
    )


@fault("shares that sum above one", lambda: mean_refuted(OPPOSITE, norm_bound=1.0, runs=MANY))
def generous_ledger(patch):
    spend = MuLedger.spend

    def treble(self, name, share):
        return 3.0 * spend(self, name, share)

    patch.setattr(MuLedger, "spend", treble)
    patch.setattr(MuLedger, "cost", lambda self: Budget(EPSILON, DELTA).cost())


@fault("the same noise on every call", lambda: mean_refuted(OPPOSITE, norm_bound=1.0))
def repeated(patch):
    patch.setattr(mean, "open_streams", lambda rng: open_streams(0))


def fitted_components(table, rng):
    from privspan import PrivatePCA

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of seeds, and of tables too small to be of use
        model = PrivatePCA(1, epsilon=EPSILON, delta=DELTA, center=False, random_state=rng).fit(table)
    return model.release_


@fault("seeded noise reused by clones", lambda: refuted(fitted_components, TIE))
def shared_seed(patch):
    patch.setattr("privspan.pca.settings.independent_seeds", lambda seed, count: list(range(count)))


def low_bits(table, rng):
    """Whether a released sum has digits finer than a float64 between 1 and 2 can hold."""
    released = private_mean(table, epsilon=EPSILON, delta=SMALL_DELTA, norm_bound=1.0, rng=rng)
    total = float(released.mean[0]) * len(table)
    return {"finer than 2^-52": float(Fraction(total) * 2**52 % 1 != 0)}


# Sums 0 and 2. Four rows, so that dividing by n loses nothing.
LOW_BITS_PAIR = last_replaced(np.array([[1.0], [0.0], [0.0], [0.0]]), (-1.0,), (1.0,))


@fault(
    "float rounding that leaks low bits", lambda: refuted(low_bits, LOW_BITS_PAIR, runs=2 * MANY, delta=SMALL_DELTA)
)
def naive_float_noise(patch):
    def naive(values, sigma, bits, *, grid):
        generator = np.random.default_rng(bits.below(2**64))
        return values + sigma * generator.standard_normal(values.shape)

    patch.setattr(sums, "add_gaussian", naive)


@fault("lazy noise that is not fresh", lambda: task_refuted("LazyGauss", runs=300))
def stale_noise(patch):
    start, seeds = lazy_gauss.LazyGauss.__init__, [0]

    def seeded(self, source, mu, bits, **options):
        seeds[0] = bits.below(2**64)
        start(self, source, mu, bits, **options)

    def stale(values, sigma, bits, *, grid):
        """Add noise that starts again at the same place in every block."""
        return values + sigma * np.random.default_rng(seeds[0]).standard_normal(values.shape)

    patch.setattr(lazy_gauss.LazyGauss, "__init__", seeded)
    patch.setattr(lazy_gauss, "add_gaussian", stale)
    patch.setattr(sums, "add_gaussian", stale)


# ---- Column scales ---------------------------------------------------------------------------------------------

ALIKE = last_replaced(np.zeros((200, 2)), (0.0, 0.0), (1e6, 1e6))


@fault("a column's scale from its own values", lambda: algorithm_refuted(private_scales, ALIKE, center=False))
def bare_deviations(patch):
    released = standardise.column_scales

    def exact_scales(X, ledger, *arguments, **options):
        found = released(X, ledger, *arguments, **options)
        return replace(found, scale=np.std(X, axis=0), found=np.ones(X.shape[1], dtype=bool))

    patch.setattr(standardise, "column_scales", exact_scales)


ONE_PAIR = last_replaced(np.zeros((2, 256)), (1.0,) * 256, (2.0**20,) * 256)


def voted(table, rng):
    """Count the columns whose vote is won by long differences: the one pair has short ones, or long ones, in all."""
    mu = mu_from_budget(EPSILON, DELTA)
    voting, bits = np.ones(256, dtype=bool), open_streams(rng).noise
    clips, _ = scales._voted_clips(table[:1] - table[1:], voting, True, mu, bits)
    return {"columns": float(np.sum((clips > 2.0**18) & (clips < 2.0**22)))}


@fault("votes with sensitivity one", lambda: refuted(voted, ONE_PAIR, runs=MANY // 4))
def quiet_votes(patch):
    patch.setattr(scales, "vote_sensitivity", lambda columns: 1.0)


PLANE = Subspace(np.eye(2))


@fault(
    "a grid laid around the scores",
    lambda: algorithm_refuted(private_score_map, ZERO_OR_LONG, PLANE, bins=2, runs=FEW),
)
def grid_around_the_scores(patch):
    def half_widths(scores, *_):
        return (1.0 + np.abs(scores).max(axis=0)).tolist()

    patch.setattr(score_map, "_half_widths", half_widths)


# ---- Localised rounds ------------------------------------------------------------------------------------------

FLIPPED = last_replaced(np.tile([[1.0, 0.0]], (4, 1)), (1.0, 1.0), (1.0, -1.0))
MU = mu_from_budget(EPSILON, DELTA)


def localised_round(table, rng):
    """One round: the typical size, then the sums clipped to it; what it released and the noise it says it used."""
    bits = open_streams(rng).noise
    rows = Rows(table)
    view = local_view(rows, np.array([[1.0], [0.0]]))
    sizes = view.off * np.abs(view.coordinates[:, 0])
    typical = rounds.geometric_mean(sizes, 0.01, 1.0, 0.6 * MU, bits)
    found = localised_sums(rows, view, np.ones(1), 0.7 * typical, 0.7 * MU, 0.3 * MU, bits)
    return {"cross": float(found.cross[1, 0]) / found.cross_noise, "cross noise": found.cross_noise}


def cross_sum(table, rng):
    """The sum of residuals alone, with all of the budget."""
    rows = Rows(table)
    view = local_view(rows, np.array([[1.0], [0.0]]))
    found = localised_sums(rows, view, np.ones(1), 0.1, MU, MU, open_streams(rng).noise)
    return {"cross": float(found.cross[1, 0])}


@fault("residual sums with the sensitivity of one side", lambda: refuted(cross_sum, FLIPPED, runs=MANY))
def one_sided(patch):
    bounds = localised.cross_bounds
    patch.setattr(localised, "cross_bounds", lambda n, d, k, clip: bounds(n, d, k, 0.5 * clip))


INSIDE_OR_OFF = last_replaced(np.tile([[1.0, 0.1]], (4, 1)), (1.0, 1.0), (1.0, 0.1))


@fault("weights from quantiles without noise", lambda: refuted(localised_round, INSIDE_OR_OFF))
def bare_weights(patch):
    def exact_mean(values, low, high, mu, bits):
        return float(np.exp(np.log(np.clip(values, low, high)).mean()))

    patch.setattr(rounds, "geometric_mean", exact_mean)


# ---- Blocks ----------------------------------------------------------------------------------------------------


def line_blocks_pair() -> Any:
    """Records on two lines; the first half, all that a doubled order reads, is nearly tied."""
    table = np.array([(1.0, 0.0)] * 16 + [(0.0, 1.0)] * 14 + [(1.0, 0.0)] * 16 + [(0.0, 1.0)] * 14)
    other = table.copy()
    other[0] = (0.0, 1.0)
    return table, other


def cell_vote(table, rng):
    return approximate_subspace(
        table,
        1,
        epsilon=EPSILON,
        delta=DELTA,
        block_size=1,
        aggregate="histogram",
        gamma=1e-4,
        options={"references": 2},
        rng=rng,
    )


@fault("one record in two blocks", lambda: refuted(cell_vote, line_blocks_pair(), runs=400))
def doubled_order(patch):
    patch.setattr(approximate, "dealt", lambda X, generator: (X, np.repeat(np.arange(len(X) // 2), 2)))


def spread_pair() -> Any:
    """Pairs of blocks of which one decides where the median distance lies."""
    angles = np.repeat([0.0, 1e-3, 0.0, 1.0], 100)
    table = np.column_stack([np.cos(angles), np.sin(angles)])[np.arange(400).reshape(4, 100).T.ravel()]
    other = table.copy()
    other[-1] = other[-2]
    return table, other


def chosen_side(table, rng):
    return approximate_subspace(
        table,
        1,
        epsilon=EPSILON,
        delta=DELTA,
        block_size=1,
        aggregate="histogram",
        options={"references": 2},
        shuffle=False,
        rng=rng,
    )


@fault("radius without privacy", lambda: refuted(chosen_side, spread_pair()))
def bare_radius(patch):
    def largest(blocks, frame, epsilon, bits):
        return float(np.sort(np.linalg.norm(np.diff(blocks.bases[:, :, 0], axis=0), axis=1))[len(blocks.votes) // 2])

    patch.setattr(histogram, "private_pair_distance", largest)


# ---- Stable leverage -------------------------------------------------------------------------------------------

SLOPE = {"full_level": 36, "ramp": 12, "movers": 23, "signal": 20.0, "spread": 1.5e-6, "ridge": 1e-5}


def stable_refuted(pair: Any, *, runs: int = 200, **options: Any) -> bool:
    def run(table, rng):
        return stable_subspace(table, 1, epsilon=2.0, delta=DELTA, rng=rng, **options)

    return refuted(run, pair, runs=runs, epsilon=2.0)


def norm_pair() -> Any:
    """Nine or ten short records of forty: the quarter that decides the scale."""
    table = near_axis(40)
    table[:9] *= 0.5
    other = table.copy()
    other[9] *= 0.5
    return table, other


@fault("scales without noise", lambda: stable_refuted(norm_pair(), runs=120, split={"norm_quantile": 0.25}))
def bare_scales(patch):
    def counts(bins, size, mu, bits):
        return np.bincount(bins[(bins >= 0) & (bins < size)], minlength=size)

    patch.setattr(stable, "noisy_histogram", counts)


# Twenty of sixty records are tilted, and whether they count hangs on a single level. Replacing another record by
# zeros takes that level away, and their weight drops from 1 to 0: far more movers than the plan allows.
CLIFF = {"full_level": 29, "ramp": 1, "movers": 2, "signal": 20.0, "spread": 3.61e-7, "ridge": 1e-5}


def cliff_pair() -> Any:
    table = np.tile([[1.0, 0.0]], (60, 1))
    table[:20, 1] = 1.1e-3
    return last_replaced(table, (1.0, 0.0), (0.0, 0.0))


def every_level(gram, width, k, plan):
    """Levels of all items, without giving up where the certificate is sure to fail."""
    sets = LeverageFilter(gram, width, plan.ridge, k, plan.full_level + plan.largest_margin)
    levels = np.zeros(len(gram) // width, dtype=np.int64)
    for level in range(1, plan.full_level + plan.largest_margin + 1):
        if not sets.advance(level):
            break
        levels[sets.kept] = level
    return levels


@fault("certificate skipped", lambda: stable_refuted(cliff_pair(), split={"noise": 0.9}, **CLIFF))
def no_certificate(patch):
    patch.setattr(stable_release, "leverage_levels", every_level)
    patch.setattr(stable_release, "certified_margin", lambda *_: 1000)


@fault("certificate at margin zero", lambda: stable_refuted(cliff_pair(), **CLIFF))
def certificate_at_zero(patch):
    def passes_or_not(gram, width, k, levels, plan):
        on_ramp = np.count_nonzero((levels >= plan.empty_level) & (levels < plan.full_level))
        return 1000 if on_ramp <= plan.movers else 0

    patch.setattr(stable_release, "leverage_levels", every_level)
    patch.setattr(stable_release, "certified_margin", passes_or_not)


def tail_or_none_pair() -> Any:
    """All records exactly on a line, or all but one; either way the same certified bound holds."""
    return last_replaced(np.tile([[1.0, 0.0]], (60, 1)), (1.0, 3e-4), (1.0, 0.0))


@fault(
    "noise from the achieved bound",
    lambda: stable_refuted(tail_or_none_pair(), runs=120, split={"test": 0.9}, **SLOPE),
)
def achieved_noise(patch):
    weighted, with_noise = stable_release._weighted_basis, stable_release._with_noise
    achieved = {}

    def measure(gram, weights, pull, plan, k):
        values = np.linalg.eigvalsh(gram * np.sqrt(np.outer(weights, weights)))
        achieved["ratio"] = max(float(values[-k - 1]) / plan.tail, 1e-9)
        return weighted(gram, weights, pull, plan, k)

    patch.setattr(stable_release, "_weighted_basis", measure)
    patch.setattr(
        stable_release,
        "_with_noise",
        lambda basis, shift, mu, bits: with_noise(basis, shift * achieved["ratio"], mu, bits),
    )


# The tail of one record, either way, is what the certificate just allows; with its true leverage it has no weight.
BLIND = LeveragePlan(50, 4, movers=3, signal=54.0, spread=1e-6, ridge=1e-6, largest_margin=3)


def one_tail_pair() -> Any:
    return last_replaced(np.tile([[1.0, 0.0]], (60, 1)), (1.0, 6.3e-3), (1.0, -6.3e-3))


def second_half(table, rng):
    """Filter, certificate, test and noise, on records that are scaled already."""
    rows = np.rint(table * (0.9999 / GRID)) * GRID
    shares = {field.name: 0.8 for field in fields(StableBudget)}
    budget = StableBudget(**{**shares, "delta_test": 0.05, "delta_rotation": 1e-3})
    gram = exact_gram([rows], len(rows))
    found = certified_release(gram, 1, lambda c: rows.T @ c, BLIND, 1, budget, open_streams(rng))
    return {} if found is None else {"slope": float(found.basis[1, 0] / found.basis[0, 0])}


# The test and the noise together are 0.8 * sqrt(2)-GDP up to the two deltas.
SECOND_HALF_EPSILON = epsilon_from_mu(0.8 * math.sqrt(2.0), DELTA - 0.051)


@fault(
    "leverage without the right ridge",
    lambda: refuted(second_half, one_tail_pair(), runs=500, epsilon=SECOND_HALF_EPSILON),
)
def blind_leverage(patch):
    def blind(gram, width, ridge, dimension, highest):
        return LeverageFilter(gram, width, 1e6 * ridge, dimension, highest)

    patch.setattr(leverage_certificate, "LeverageFilter", blind)


# The top direction is orthogonal to the public start of the power steps on one table, and not quite on the other.
# On both the margin is the same; only what happens after the coin tells them apart.
PATIENT = LeveragePlan(18, 6, movers=6, signal=18.0, spread=0.13, ridge=1.0, largest_margin=5)


def hidden_pair() -> Any:
    table = hidden_rows(60, 1e-4)
    return last_replaced(table, table[-1], np.zeros(10))


def after_the_coin(table, rng, plan=PATIENT):
    shares = {field.name: 0.8 for field in fields(StableBudget)}
    budget = StableBudget(**{**shares, "delta_test": 0.05, "delta_rotation": 1e-3})
    gram = exact_gram([table], len(table))
    found = stable_release.certified_release(gram, 1, lambda c: table.T @ c, plan, 1, budget, open_streams(rng))
    return {} if found is None else {"answered": 1.0}


@fault(
    "giving up after the coin",
    lambda: refuted(after_the_coin, hidden_pair(), runs=200, epsilon=SECOND_HALF_EPSILON),
)
def gives_up(patch):
    release, guesses = stable_release.certified_release, stable_release._guesses

    def first_only(weighted, plan, k):
        yield next(guesses(weighted, plan, k))
        raise np.linalg.LinAlgError

    def or_none(*args):
        try:
            return release(*args)
        except np.linalg.LinAlgError:
            return None

    patch.setattr(stable_release, "_guesses", first_only)
    patch.setattr(stable_release, "certified_release", or_none)


# Sixty records on a line are just above the certified strength, fifty-nine are below it.
STRONG = LeveragePlan(45, 4, movers=12, signal=59.5, spread=1e-6, ridge=1e-6, largest_margin=8)


def strength_pair() -> Any:
    return last_replaced(np.tile([[1.0, 0.0]], (60, 1)), (1.0, 0.0), (0.0, 0.0))


def strong_enough(table, rng):
    return {"answered": float(bool(after_the_coin(table, rng, STRONG)))}


@fault(
    "bars without what a record takes off",
    lambda: refuted(strong_enough, strength_pair(), runs=300, epsilon=SECOND_HALF_EPSILON),
)
def flat_bars(patch):
    patch.setattr(LeveragePlan, "signal_bars", lambda self: np.full(self.largest_margin + 1, self.signal))


# ---- Baselines -------------------------------------------------------------------------------------------------

GAP_TIE = moment_pairs(padding=16)["tie"]


@fault("eigenvalue gap without noise", lambda: algorithm_refuted(baselines.analyze_gauss_gap, GAP_TIE, 1))
def bare_gap(patch):
    patch.setattr(gap_module, "_gap_from_below", lambda gap, stretch, mu, failure, bits: gap)


@fault(
    "exponential mechanism at sixteen times its weight",
    lambda: algorithm_refuted(baselines.exponential_pca, TIE, 1, runs=200),
)
def heavy_exponential(patch):
    draw = exponential_module.deflated_vectors

    def heavy(matrix, k, weight, tries, generator):
        return draw(matrix, k, 16.0 * weight, tries, generator)

    patch.setattr(exponential_module, "deflated_vectors", heavy)


def k_dp_pca_refuted(**options: Any) -> bool:
    """Replay k-DP-PCA on a neighbour."""

    def run(table):
        return baselines.k_dp_pca(table, 1, epsilon=EPSILON, delta=SMALL_DELTA, rng=0, **options)

    try:
        return spent_by(run, *balanced_pairs(300)["between the axes"]) > Budget(EPSILON, SMALL_DELTA).mu ** 2
    except ReplayError:
        return True


@fault("gradients clipped at the longest", k_dp_pca_refuted)
def longest_gradient(patch):
    patch.setattr(k_dp_pca_module, "typical_size", lambda lengths, *rest: 0.25 * float(np.max(lengths)))


@fault("a record in every batch of a single pass", lambda: k_dp_pca_refuted(single_pass=True))
def batches_of_everybody(patch):
    patch.setattr(k_dp_pca_module, "_own_batches", lambda table, count: k_dp_pca_module._same_batch(table))


# ---- One algorithm for every tail ------------------------------------------------------------------------------

COURSE = {"epsilon": 4.0, "delta": 1e-4}


@cache
def course_table() -> Any:
    return gaussian_subspace(600, 200, 2, gamma_w=1e-3, rng=0)[0]


def by_course(table: Any, rng: int = 4) -> Any:
    budget = Budget(**COURSE)
    ledger = MuLedger(budget, test_share=course.delta_share(table, 2, budget))
    return course.course_within(ledger, table, 2, rng)


def overspent_after_no() -> bool:
    """Add up every mu that any ledger hands out on the way to a *no* and beyond, and the deltas of the test."""
    mus, deltas, spend = [], [], MuLedger.spend

    def noted(self, name, share):
        mus.append(spend(self, name, share))
        return mus[-1]

    def no(self, plan, mu, delta):
        deltas.append(delta)

    with mock.patch.object(MuLedger, "spend", noted), mock.patch.object(course.StableRecords, "certified", no):
        by_course(course_table())
    assert deltas, "there was no test"
    return delta_from_mu(compose_mu(*mus), COURSE["epsilon"]) + sum(deltas) > COURSE["delta"] * (1 + 1e-9)


@fault("a fall-back with a budget of its own", overspent_after_no)
def fresh_budget(patch):
    genuine = course.adaptive_within
    patch.setattr(course, "adaptive_within", lambda ledger, *a, **o: genuine(MuLedger(Budget(**COURSE)), *a, **o))


@fault("a fall-back that has the share of the test too", overspent_after_no)
def refunded_test(patch):
    genuine = course.adaptive_within

    def refunded(ledger, *arguments, **options):
        ledger._spent -= Fraction(dict(ledger.shares)["test"])
        return genuine(ledger, *arguments, **options)

    patch.setattr(course, "adaptive_within", refunded)
    patch.setattr(MuLedger, "cost", lambda self: self.budget.cost())  # which would refuse the sum


@fault("a delta that is set aside after yes only", overspent_after_no)
def late_delta(patch):
    patch.setattr(MuLedger, "mu", property(lambda self: self.budget.mu))
    patch.setattr(MuLedger, "cost", lambda self: self.budget.cost())


def path_depends_on_more_than_releases() -> bool:
    """Replay the released numbers of a run on a neighbour with one short group fewer: half of them, or just less."""
    with pytest.MonkeyPatch.context() as patch:
        counts = itertools.cycle([100, 99])  # of 200 groups
        patch.setattr(course, "unit_tail_squares", lambda rows, groups: np.repeat([0.0, 1.0], next(split(counts))))
        try:
            spent_by(by_course, course_table(), course_table(), answer=True)
        except (AssertionError, IndexError):
            return True
    return False


def split(counts: Any) -> Any:
    for short in counts:
        yield [short, 200 - short]


@fault("a branch that an unreleased number decides", path_depends_on_more_than_releases)
def bare_branch(patch):
    genuine = course._Look.tails_are_short

    def decided(self):
        counted, squares = [], course.unit_tail_squares
        with mock.patch.object(course, "unit_tail_squares", lambda *a: counted.append(squares(*a)) or counted[0]):
            genuine(self)
        return np.count_nonzero(counted[0] < 0.5) >= 100

    patch.setattr(course._Look, "tails_are_short", decided)


def others_are_seen() -> bool:
    """Change a row outside the draw: with the same noise, nothing that stable leverage releases may change."""
    X, seen, drawn, genuine = course_table(), [], [], course._drawn_rows
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(choice, "MOST_ROWS", 400)
        patch.setattr(course, "_drawn_rows", lambda *a: drawn.append(genuine(*a)) or drawn[-1])
        patch.setattr(course, "_localised", lambda look, *_: seen.append(look.released))
        patch.setattr(course, "_adaptively", lambda look, *_: seen.append(look.released))
        by_course(X)
        outside = np.flatnonzero(~np.isin(X[:, 0], drawn[0][:, 0]))[0]
        changed = X.copy()
        changed[outside] = 1e6 * np.arange(X.shape[1])
        by_course(changed)
    return seen[0] != seen[1]


@fault("rows outside the draw in the stable look", others_are_seen)
def longest_rows(patch):
    def longest(source, public, generator):
        order = np.argsort(np.linalg.norm(source, axis=1))
        return source[np.sort(order[-public.rows :])]

    patch.setattr(course, "_drawn_rows", longest)


# ---- The ledger ------------------------------------------------------------------------------------------------


def overspends(spend_again: Callable[[Ledger], object]) -> bool:
    """Spend a limit of 1 twice, the second time in a way that must be refused."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(f"{folder}/budget.json")
        ledger.set_limit("people", "1", None)
        try:
            spend_again(ledger)
        except DamagedLedgerError:
            return False
        return True


def after_a_second_key(ledger: Ledger) -> None:
    ledger.begin("people", "1", "1e-6")
    text = ledger.path.read_text("utf-8").rstrip().removesuffix("}")
    ledger.path.write_text(f'{text}, "datasets": {{}}}}', "utf-8")
    ledger.begin("people", "1", "1e-6")


def under_a_second_name(ledger: Ledger) -> None:
    other = ledger.path.with_name("other.json")
    os.link(ledger.path, other)
    for path in (ledger.path, other):
        Ledger(path).begin("people", "1", "1e-6")


@fault("the last of two keys wins", lambda: overspends(after_a_second_key))
def last_key_wins(patch):
    patch.setattr(strict_json, "_unique", dict)


@fault("a ledger with two names", lambda: overspends(under_a_second_name))
def two_names(patch):
    patch.setattr(Ledger, "_refuse_second_name", lambda ledger, descriptor: None)


class Struck(RowSource):
    """Rows whose first reader is struck down."""

    shape, dtype = (400, 2), np.dtype(float)

    def _take(self, numbers):
        raise SystemExit


def runs_for_nothing() -> bool:
    """Tell whether a call that has begun to look at the data, and then dies, has spent nothing."""
    with tempfile.TemporaryDirectory() as folder:
        ledger = Ledger(f"{folder}/budget.json")
        with contextlib.suppress(SystemExit):
            private_mean(Struck(), epsilon=EPSILON, delta=SMALL_DELTA, ledger=ledger)
        return ledger.account("people").spent.epsilon == 0.0


@fault("a charge written after the run", runs_for_nothing)
def charged_late(patch):
    def finished(self, result):
        begin(self)

    begin = Charge.begin
    patch.setattr(Charge, "begin", lambda self: None)
    patch.setattr(Charge, "finished", finished)


# ---- Files -----------------------------------------------------------------------------------------------------


def record_seen_by_others(suffix: str, neighbours: Any, **options: Any) -> bool:
    """Tell whether files that differ in their last record differ in anything but their last row."""
    facts = []
    with tempfile.TemporaryDirectory() as folder:
        for number, content in enumerate(neighbours):
            path = Path(folder) / f"{number}{suffix}"
            if suffix == ".csv":
                path.write_text(content)
            elif suffix == ".npz":
                np.savez(path, **content)
            else:
                pq.write_table(pa.table({"v": content}), path)
            try:
                rows = open_rows(path, **options)
                others = rows[: len(rows) - 1]
                others = others.toarray() if rows.is_sparse else others
                facts.append((rows.shape, rows.dtype, rows.names, others.tobytes()))
            except UnreadableFileError:
                facts.append(("refused",))
    return len(set(facts)) > 1


def csv_refuted(lines: int, sound: str, *others: str) -> bool:
    head = "age,notes\n" if "," in sound else "age\n"
    return record_seen_by_others(".csv", [head + lines * f"{sound}\n" + f"{last}\n" for last in (sound, *others)])


@fault("type of a CSV column by majority", lambda: csv_refuted(20, "20,", "20,7", "20,x"))
def guessed_types(patch):
    sound = text_files.open_csv

    def guessing(path, columns, schema):
        whole = sound(path, columns, schema)
        numbers = np.isfinite(whole[:]).any(axis=0)
        return sound(path, [name for name, number in zip(whole.names, numbers, strict=True) if number], schema)

    patch.setattr(text_files, "open_csv", guessing)


LIST_NEIGHBOURS = [[[1.0, 2.0]] * 4 + [last] for last in ([3.0, 4.0], [1.0] * 7, [], None)]


@fault(
    "width of lists from their number of values", lambda: record_seen_by_others(".parquet", LIST_NEIGHBOURS, width=2)
)
def counted_width(patch):
    sound = parquet_files.open_parquet

    def counting(path, columns, schema):
        lists = pq.read_table(path).column("v")
        return sound(path, columns, schema.but(width=len(lists.combine_chunks().flatten()) // len(lists)))

    patch.setattr(parquet_files, "open_parquet", counting)


@fault("records without a number dropped", lambda: csv_refuted(20, "20", "", "x", "1,2", '"'))
def dropped_lines(patch):
    sound = text_files._rows

    def dropping(*arguments):
        rows = sound(*arguments)
        return rows[~np.isnan(rows).all(axis=1)]

    patch.setattr(text_files, "_rows", dropping)


TRIPLES = {"format": b"coo", "shape": (3, 2), "row": np.arange(3), "data": np.ones(3)}
TRIPLE_NEIGHBOURS = [TRIPLES | {"col": np.array([0, 1, last])} for last in (0, 1, 2, -1)]


@fault("triples of a file read by SciPy", lambda: record_seen_by_others(".npz", TRIPLE_NEIGHBOURS))
def checked_by_scipy(patch):
    patch.setattr(array_files, "_stored_matrix", lambda path, parts, shape: sparse.csr_array(sparse.load_npz(path)))


# ---- Everyday PCA ----------------------------------------------------------------------------------------------


def everyday_table() -> Any:
    rng = np.random.default_rng(0)
    return rng.standard_normal((3000, 4)) * np.array([3.0, 2.0, 1.0, 1.0]) + 5.0


def everyday_refuted() -> bool:
    """Replay a run on a neighbour: more than mu² is spent, or something unreleased shows in what is released."""
    return not_replayed(last_replaced(everyday_table(), np.full(4, 1e4), np.full(4, -1e4)), everyday_replay.fitted)


def not_replayed(pair: Any, run: Callable[..., Any]) -> bool:
    spent, same = everyday_replay.replayed(*pair, run)
    return not same or spent > mu_from_budget(1.0, everyday_replay.DELTA) ** 2 * (1 + 1e-9)


def look_refuted() -> bool:
    """Replay one look at unit rows whose inner product is that of the worst pair."""
    angle = math.acos(-(looks.CONSTANT**2))
    pair = last_replaced(np.zeros((9, 2)), np.array([1.0, 0.0]), np.array([math.cos(angle), math.sin(angle)]))
    bits = open_streams(0).noise
    spent = spent_by(lambda X: list(looks.whole_looks(Rows(X), None, [0.8, 0.6], bits)), *pair)
    return spent > 1.0 + 1e-9


def rounding_refuted() -> bool:
    """Compare looks, whose factors are multiplied into thin products, with exact sums over the same rows."""
    return max(folding.errors_over_charges(seed) for seed in range(3)) > 1.0


@fault("rounding of a product that is not charged", rounding_refuted)
def free_rounding(patch):
    patch.setattr(looks.AugmentedGram, "chunk_error", lambda self, columns: 0.0)


def single_rounding_refuted() -> bool:
    """Replace a row of a look in float32 and compare with what the real rows change."""
    return max(folding.single_errors_over_charges(seed) for seed in range(3)) > 1.0


@fault("products in float32 charged as if in float64", single_rounding_refuted)
def free_single_rounding(patch):
    patch.setattr(looks, "SINGLE_ROUNDOFF", 2.0**-53)


def single_means_refuted() -> bool:
    """Replace a row of a sum in float32 and compare with what the real rows change."""
    return max(folding.random_means_over_charge(0), folding.lost_means_over_charge()) > 1.0


@fault("sums in float32 charged as if in float64", single_means_refuted)
def free_single_means(patch):
    patch.setattr(mean, "SINGLE_ROUNDOFF", 2.0**-53)


def single_piece_refuted() -> bool:
    """Replace the row that decides whether float32 loses half of the others of its piece."""
    return folding.lost_bits_over_charge() > 1.0


@fault("float32 charged for the replaced row alone", single_piece_refuted)
def free_single_piece(patch):
    patch.setattr(looks, "SINGLE_SUM_ROWS", 1)


@fault("length counts about an unreleased centre", everyday_refuted)
def lengths_about_the_mean(patch):
    about = centre.rows_about
    patch.setattr(centre, "rows_about", lambda table, middle, **how: about(table, table.mean(axis=0), **how))


@fault("radius chosen after looking", everyday_refuted)
def longest_row(patch):
    search = everyday.bisected_radius

    def after_looking(lengths, *arguments, **options):
        return replace(search(lengths, *arguments, **options), radius=float(np.max(lengths)))

    patch.setattr(everyday, "bisected_radius", after_looking)


@fault("augmented constant not charged", look_refuted)
def free_constant(patch):
    patch.setattr(looks.AugmentedGram, "size", property(lambda self: 1.0, lambda self, size: None), raising=False)


def near_refuted() -> bool:
    X, _ = gaussian_subspace(4_000, 24, 2, gamma_w=0.1, rng=0)
    return not_replayed(last_replaced(X + 3.0, X[-1] + 3.0, np.full(24, 1e4)), everyday_replay.near)


@fault("constant taken from the longest row", near_refuted)
def constant_from_the_rows(patch):
    sound = near.with_constant

    def longest(rows, centre, constant):
        return sound(rows, centre, float(np.abs(rows).max()))

    patch.setattr(near, "with_constant", longest)


@fault("course near a subspace about the true mean", near_refuted)
def free_centre(patch):
    patch.setattr(
        near, "polished_centre", lambda rows, centre, *rest: replace(centre, centre=np.asarray(rows).mean(axis=0))
    )


def watch_moments(patch) -> list[Any]:
    """Remember what is looked at, as it is without noise."""
    seen: list[Any] = []
    look = everyday.whole_looks

    def watched(rows, *arguments, **options):
        seen.append(sum(piece.T @ piece for _, piece in rows.pieces()))
        return look(rows, *arguments, **options)

    patch.setattr(everyday, "whole_looks", watched)
    return seen


@fault("judge using the true moment", everyday_refuted)
def all_knowing_judge(patch):
    seen, judge = watch_moments(patch), everyday.judged_mixture

    def knowing(first, unit, k, public, **options):
        return judge(replace(first, moment=seen[-1]), unit, k, public, **options)

    patch.setattr(everyday, "judged_mixture", knowing)


def second_look_refuted() -> bool:
    """Replay a run whose first look is clear."""
    X = np.random.default_rng(0).standard_normal((20_000, 4)) * np.array([3.0, 2.0, 1.0, 1.0]) + 5.0
    return not_replayed(last_replaced(X, X[-1], np.full(4, 1e4)), everyday_replay.fitted)


@fault("a second look that the true moment decides about", second_look_refuted)
def decided_by_the_rows(patch):
    seen = watch_moments(patch)
    patch.setattr(everyday, "enough_alone", lambda *arguments: np.array_equal(seen[-1], seen[0]))


@fault("a second release with the noise of both", look_refuted)
def joint_noise(patch):
    sound = looks.shared_levels
    patch.setattr(looks, "shared_levels", lambda bounds, mus: [sound(bounds, [math.hypot(*mus)])[0] for _ in mus])


def early_refuted() -> bool:
    """Replay a run whose clipped look begins with the lengths, on rows within reach that are longer than the clip."""
    X = np.random.default_rng(5).standard_normal((6_000, 6)) * [5.0, 3.0, 1.0, 1.0, 1.0, 1.0] + 4.0
    pair = last_replaced(X, *(4.0 + 24.0 * np.eye(6)[2:4]))
    with mock.patch.multiple(everyday, _FEW_ROWS=1_000, _FEW=0.0):
        return not_replayed(pair, everyday_replay.fitted)


@fault("rows longer than the clip left as they are", early_refuted)
def not_taken_out(patch):
    sound = early_gram.ClippedGram.__init__

    def forgetful(self, early, radius, constant):
        sound(self, early, radius, constant)
        early.lengths = np.zeros_like(early.lengths)

    patch.setattr(early_gram.ClippedGram, "__init__", forgetful)


def early_rounding_refuted() -> bool:
    """Compare a moment that begins before the clip is known with exact sums, beside one row of 1e100."""
    X = np.random.default_rng(0).standard_normal((40, 3))
    X[7] = 1e100
    return folding.early_error_over_charge(X, 2.0, 3.0) > 1.0


@fault("rows of any length summed up as if within reach", early_rounding_refuted)
def without_reach(patch):
    sound = early_gram.EarlyGram.__init__

    def all_within(self, rows, length):
        sound(self, rows, length)
        self.reach = 4.0 * length

    patch.setattr(early_gram, "LONGEST", math.inf)
    patch.setattr(early_gram, "_REACH", 1e100)
    patch.setattr(early_gram.EarlyGram, "__init__", all_within)


def wide_looks_refuted() -> bool:
    """Replay looks that share their passes, and one that is released again, in all directions, at the worst pair."""
    angle, mus = math.acos(-(looks.CONSTANT**2)), (1.0, 2.0)
    pair = last_replaced(np.zeros((9, 2)), np.array([1.0, 0.0]), np.array([math.cos(angle), math.sin(angle)]))
    options: Any = {"first": np.eye(2), "columns": 2, "passes": 1}

    def looked(X, unit):
        factors, bits = np.ones(len(X)), open_streams(0).noise
        both = centred_gauss.CentredGauss(Rows(X), factors, looks.CONSTANT, mus, bits, unit=unit, **options)
        if not unit:
            both.strengthen()

    spent = max(spent_by(partial(looked, unit=unit), *pair) for unit in (True, False))
    return spent > math.hypot(*mus) ** 2 * (1 + 1e-9)


@fault("two looks of one pass, the noise of one", wide_looks_refuted)
def shared_noise(patch):
    def joint(bounds, mus):
        level = sums.noise_level(bounds, math.hypot(*mus))
        return [level for _ in mus]

    patch.setattr(centred_gauss, "shared_levels", joint)


# ---- Gaps ----------------------------------------------------------------------------------------------------------


def gaps_refuted() -> bool:
    """Replay a run on a table with gaps: a record far away may move nobody else's."""
    table = everyday_table()
    table[::7, 1] = np.nan
    return not_replayed(last_replaced(table, np.full(4, 1e4), np.full(4, -1e4)), everyday_replay.fitted)


@fault("gaps filled with the column's own mean", gaps_refuted)
def own_means(patch):
    sound = about.less_mean

    def filled(table, middle):
        return sound(np.where(np.isnan(table), np.nanmean(table, axis=0), table), middle)

    patch.setattr(about, "less_mean", filled)


def counts_refuted() -> bool:
    """Replay the counts of gaps on a neighbour whose record is all gaps."""
    ledger = MuLedger(Budget(1.0, everyday_replay.DELTA))
    share = gaps.gap_share(6_000, 4, ledger.mu)
    pair = last_replaced(np.zeros((6_000, 4)), np.zeros(4), np.full(4, np.nan))

    def counted(table):
        bits, fresh = open_streams(0).noise, MuLedger(Budget(1.0, everyday_replay.DELTA))
        gaps.released_gaps(table, np.ones(4, dtype=bool), fresh, bits)

    return spent_by(counted, *pair) > share * ledger.mu**2 * (1 + 1e-9)


@fault("gaps of all columns counted with the noise of one", counts_refuted)
def quiet_counts(patch):
    patch.setattr(gaps, "count_sensitivity", lambda columns: 1.0)


# ---- Several rows a person -------------------------------------------------------------------------------------


def persons_refuted() -> bool:
    """Replay a mean and a subspace on data sets that differ in a person, with 1 row or with 500."""
    pair = neighbours(300, 3)
    return replay_refuted(mean_of_persons, pair) or replay_refuted(subspace_of_persons, pair)


def replay_refuted(run: Callable[..., Any], pair: Any) -> bool:
    try:
        spent, one, other = spent_between(run, pair)
    except ReplayError:
        return True
    told = [repr((made, getattr(made, "parameters", None))) for made in (one, other)]
    return spent > mu_from_budget(1.0, 1e-6) ** 2 * (1 + 1e-9) or told[0] != told[1]


def mean_of_persons(rows, ids):
    return private_mean(rows, groups=ids, norm_bound=5.0, epsilon=1.0, delta=1e-6, rng=0)


def subspace_of_persons(rows, ids):
    return private_subspace(rows, 1, groups=ids, method="analyze-gauss", epsilon=1.0, delta=1e-6, rng=0)


def places_refuted() -> bool:
    """Audit where somebody else stands, when the first of three persons becomes one with another id."""
    rows = np.arange(3.0)[:, None]
    pair = np.array(["a", "b", "c"]), np.array(["z", "b", "c"])

    def place(ids, rng):
        return {"place": float(np.argmax(persons.by_person(rows, ids, 1, rng).rows[:][:, 0] == 1.0))}

    return refuted(place, pair)


@fault("persons in the order of their ids", places_refuted)
def order_of_ids(patch):
    def by_code(codes):
        order = np.argsort(codes, kind="stable")
        return Belongings(order, np.arange(len(codes)), np.ones(len(codes), dtype=np.intp))

    patch.setattr(persons, "belongings", by_code)
    patch.setattr(persons, "secret_order", lambda n, bits: np.arange(n))


def touched_chunks(rows: Any, others: Any) -> int:
    """Return how many chunks of persons differ between two tables."""
    sums_of = [list(open_unit_rows(table).map_chunks(lambda piece: piece.sum(axis=0))) for table in (rows, others)]
    return sum(not np.array_equal(*pair) for pair in zip(*sums_of, strict=True))


def borders_refuted() -> bool:
    """Replace each of some persons: more than one chunk changes."""
    rows, width = np.ones((3 * 3000, 2)), 3
    changed = []
    for person in (0, 1023, 1024, 1365, 2730, 2999):
        other = rows.copy()
        other[person * width : (person + 1) * width] = [1.0, -1.0]
        tables = (PersonTable(table, width, np.arange(9000), table, 9000) for table in (rows, other))
        changed.append(touched_chunks(*tables))
    return max(changed) > 1


@fault("chunks of persons cut by rows", borders_refuted)
def cut_by_rows(patch):
    patch.setattr(unit_rows, "whole_persons", lambda rows, grain: rows)


def others_refuted() -> bool:
    """Compare the slots of everybody else, one by one."""
    slots = []
    for people in neighbours(60, 2):
        with people.coupled():
            slots.append(persons.by_person(people.rows, people.ids, 4, 0).rows[:].reshape(60, -1))
    return bool(np.count_nonzero((slots[0] != slots[1]).any(axis=1)) > 1)


@fault("a draw for each row of a person", others_refuted)
def draws_that_shift(patch):
    sound = persons.slotted

    def shifting(table, declared, owned, places, draws, width):
        drawn = np.random.default_rng(0).random(len(owned.order))
        ends = np.cumsum(owned.counts[places])
        return sound(table, declared, owned, places, drawn[ends - 1], width)

    patch.setattr(persons, "slotted", shifting)


@fault("rows of a person added up", persons_refuted)
def not_averaged(patch):
    def added(self, function, *known, finish=None):
        return self.slots.map_chunks(function, *(values.slots for values in known), finish=finish)

    patch.setattr(PersonRows, "map_chunks", added)


def lift_refuted() -> bool:
    """Look at a person of 400 rows, one of which a look shortens to nothing."""
    width, square = 400, looks.CONSTANT**2
    rows = np.eye(width, width + 1) * math.sqrt(1.0 - square**2)
    rows[0], rows[:, -1] = 0.0, np.where(np.arange(width), -square, 1.0)
    opened = open_unit_rows(PersonTable(rows, width, np.arange(width), rows, width))
    factors = PersonValues((np.arange(width) > 0).astype(float), width)
    gram = looks.AugmentedGram(opened, [factors], lift=lifts.person_lift(opened, looks.CONSTANT))
    (total,) = gram.products(None)
    return bool(np.linalg.norm(total) > gram.size)


@fault("a lift for rows that nothing shortens", lift_refuted)
def lift_of_unit_rows(patch):
    patch.setattr(lifts, "_largest", lambda inner, square: inner)


@fault("as many slots as somebody has rows", persons_refuted)
def slots_for_the_longest(patch):
    sound = persons.slotted

    def as_needed(table, declared, owned, places, draws, width):
        return sound(table, declared, owned, places, draws, min(width, int(owned.counts.max())))

    patch.setattr(persons, "slotted", as_needed)


@fault("rows counted in place of persons", persons_refuted)
def number_of_rows(patch):
    sound = persons.for_persons

    def counting(release, table):
        told = sound(release, table)
        return replace(told, parameters={**told.parameters, "n": table.read}) if hasattr(told, "parameters") else told

    patch.setattr(persons, "for_persons", counting)
