"""Faults in everyday PCA, with and without gaps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import everyday_replay
import folding
import numpy as np
from runs import seeded

from planted_faults.registry import fault
from privspan._lib.rounding import relative_error
from privspan.audit.replay import spent_by
from privspan.audit.tables import last_replaced
from privspan.datasets import gaussian_subspace
from privspan.privacy import mu_from_budget
from privspan.rows.door import open_table
from privspan.rows.scaling import SINGLE_SUM_ROWS
from privspan.rows.shifting import less
from privspan.rows.source import RowSource, as_source
from privspan.rows.unit import Rows
from privspan.stable import near
from privspan.sums import centred_gauss, early_gram, everyday, gaps, lazy_gauss, looks, variance
from privspan.sums import grid as sums

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


def whole_looks(X, mus, run) -> Any:
    return looks.released_looks(looks.AugmentedGram(Rows(X)), mus, run, looks.CONSTANT)


def look_refuted() -> bool:
    """Replay one look at unit rows whose inner product is that of the worst pair."""
    angle = math.acos(-(looks.CONSTANT**2))
    pair = last_replaced(np.zeros((9, 2)), np.array([1.0, 0.0]), np.array([math.cos(angle), math.sin(angle)]))
    spent = spent_by(lambda X, rng: list(whole_looks(X, [0.8, 0.6], seeded(rng))), *pair)
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


def charged_as_double(patch, module):
    """Charge products and sums of float32 in a module as if they were of float64."""
    patch.setattr(module, "SINGLE_ROUNDOFF", 2.0**-53)
    patch.setattr(module, "single_sum_error", lambda: SINGLE_SUM_ROWS * relative_error(SINGLE_SUM_ROWS + 8))


@fault("products in float32 charged as if in float64", single_rounding_refuted)
def free_single_rounding(patch):
    charged_as_double(patch, looks)


def single_units_refuted() -> bool:
    """Do the same with unit rows as they are, and with variances along a subspace."""
    worst = max(folding.unit_change_over_charge(seed) for seed in range(3))
    return max(worst, folding.single_moments_over_charge(0)) > 1.0


@fault("unit rows in float32 charged as if in float64", single_units_refuted)
def free_single_units(patch):
    charged_as_double(patch, lazy_gauss)


@fault("variances in float32 charged as if in float64", single_units_refuted)
def free_single_variances(patch):
    patch.setattr(variance, "SINGLE_ROUNDOFF", 2.0**-53)


def single_means_refuted() -> bool:
    """Replace a row of a sum in float32 and compare with what the real rows change."""
    return max(folding.random_means_over_charge(0), folding.lost_means_over_charge()) > 1.0


@fault("sums in float32 charged as if in float64", single_means_refuted)
def free_single_means(patch):
    patch.setattr(sums, "single_sum_error", lambda: 0.0)


def single_piece_refuted() -> bool:
    """Replace the row that decides whether float32 loses half of the others of its piece."""
    return folding.lost_bits_over_charge() > 1.0


@fault("float32 charged for the replaced row alone", single_piece_refuted)
def free_single_piece(patch):
    patch.setattr(looks, "single_sum_error", lambda: 2.0**-20)


def single_whole_refuted() -> bool:
    """Replace the row that decides whether float32 loses half of the others of its run of a whole second moment."""
    return max(folding.lost_whole_over_charge(), folding.single_whole_over_charge(0)) > 1.0


@fault("whole second moments in float32 charged for the replaced row alone", single_whole_refuted)
def free_single_whole(patch):
    patch.setattr(lazy_gauss, "single_sum_error", lambda: 2.0**-20)


@fault("clipped second moments added up in float32", single_whole_refuted)
def single_clipped_whole(patch):
    plain = looks._gram
    patch.setattr(looks, "_gram", lambda piece, *known: np.float64(np.float32(plain(piece, *known))))


@fault("rows of float32 that are read again in float64", lambda: folding.read_again_off() > 0.0)
def read_again_in_double(patch):
    patch.setattr(Rows, "stored", lambda rows, numbers: less(rows._source[numbers], rows._centre))


@fault("length counts about an unreleased centre", everyday_refuted)
def lengths_about_the_mean(patch):
    about = RowSource.rows
    patch.setattr(RowSource, "rows", lambda table, middle=None, **how: about(table, table[:].mean(axis=0), **how))


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
    sound = RowSource.with_constant

    def longest(rows, centre, constant):
        return sound(rows, centre, float(np.abs(rows[:]).max()))

    patch.setattr(RowSource, "with_constant", longest)


@fault("course near a subspace about the true mean", near_refuted)
def free_centre(patch):
    patch.setattr(
        near, "polished_centre", lambda rows, centre, *rest: replace(centre, centre=np.asarray(rows).mean(axis=0))
    )


def watch_moments(patch) -> list[Any]:
    """Remember what is looked at, as it is without noise."""
    seen: list[Any] = []
    gram = everyday.AugmentedGram

    def watched(rows, *arguments, **options):
        seen.append(sum(piece.T @ piece for _, piece in rows.pieces()))
        return gram(rows, *arguments, **options)

    patch.setattr(everyday, "AugmentedGram", watched)
    return seen


@fault("judge using the true moment", everyday_refuted)
def all_knowing_judge(patch):
    seen, judge = watch_moments(patch), everyday.judged_mixture

    def knowing(first, *rest):
        return judge(replace(first, moment=seen[-1]), *rest)

    patch.setattr(everyday, "judged_mixture", knowing)


def second_look_refuted() -> bool:
    """Replay a run whose first look is clear."""
    X = np.random.default_rng(0).standard_normal((20_000, 4)) * np.array([3.0, 2.0, 1.0, 1.0]) + 5.0
    return not_replayed(last_replaced(X, X[-1], np.full(4, 1e4)), everyday_replay.fitted)


@fault("a second look that the true moment decides about", second_look_refuted)
def decided_by_the_rows(patch):
    seen = watch_moments(patch)
    patch.setattr(everyday, "is_clear", lambda *arguments: np.array_equal(seen[-1], seen[0]))


@fault("a second release with the noise of both", look_refuted)
def joint_noise(patch):
    sound = looks.shared_levels
    patch.setattr(looks, "shared_levels", lambda bounds, mus: [sound(bounds, [math.hypot(*mus)])[0] for _ in mus])


def early_refuted() -> bool:
    """Replay a run whose clipped look begins with the lengths, on rows within reach that are longer than the clip."""
    X = np.random.default_rng(5).standard_normal((6_000, 6)) * [5.0, 3.0, 1.0, 1.0, 1.0, 1.0] + 4.0
    pair = last_replaced(X, *(4.0 + 18.0 * np.eye(6)[2:4]))
    return not_replayed(pair, partial(everyday_replay.fitted, tuning=everyday_replay.BY_A_DRAW))


@fault("rows longer than the clip left as they are", early_refuted)
def not_taken_out(patch):
    sound = early_gram.ClippedGram.__init__

    def forgetful(self, early, radius, constant):
        sound(self, early, radius, constant)
        early.lengths = np.zeros_like(early.lengths)

    patch.setattr(early_gram.ClippedGram, "__init__", forgetful)


def early_rounding_refuted() -> bool:
    """Compare a moment that begins before the clip is known with exact sums, beside one very long row."""
    X = np.random.default_rng(0).standard_normal((40, 3))
    X[7] = 1e20
    return folding.early_error_over_charge(X, 2.0, 3.0) > 1.0


@fault("rows of any length summed up as if within reach", early_rounding_refuted)
def without_reach(patch):
    sound = early_gram.EarlyGram.__init__

    def all_within(self, rows, length, *_):
        sound(self, rows, length, 1e100)
        self.reach = 4.0 * length

    patch.setattr(early_gram, "LONGEST", math.inf)
    patch.setattr(early_gram.EarlyGram, "__init__", all_within)


def wide_looks_refuted() -> bool:
    """Replay looks that share their passes, and one that is released again, in all directions, at the worst pair."""
    angle, mus = math.acos(-(looks.CONSTANT**2)), (1.0, 2.0)
    pair = last_replaced(np.zeros((9, 2)), np.array([1.0, 0.0]), np.array([math.cos(angle), math.sin(angle)]))
    options: Any = {"first": np.eye(2), "columns": 2, "passes": 1}

    def looked(X, rng, unit):
        factors, run = np.ones(len(X)), seeded(rng)
        both = centred_gauss.CentredGauss(Rows(X), factors, looks.CONSTANT, mus, run, unit=unit, **options)
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
    sound = RowSource.rows

    def filled(table, *centre, **options):
        cells = table[:]
        return sound(as_source(np.where(np.isnan(cells), np.nanmean(cells, axis=0), cells)), *centre, **options)

    patch.setattr(RowSource, "rows", filled)


def counts_refuted() -> bool:
    """Replay the counts of gaps on a neighbour whose record is all gaps."""
    mu = mu_from_budget(1.0, everyday_replay.DELTA)
    share = gaps.gap_share(6_000, 4, mu)
    pair = last_replaced(np.zeros((6_000, 4)), np.zeros(4), np.full(4, np.nan))

    def counted(table, rng):
        gaps.released_gaps(open_table(table), np.ones(4, dtype=bool), seeded(rng, 1.0, everyday_replay.DELTA))

    return spent_by(counted, *pair) > share * mu**2 * (1 + 1e-9)


@fault("gaps of all columns counted with the noise of one", counts_refuted)
def quiet_counts(patch):
    patch.setattr(gaps, "count_sensitivity", lambda columns: 1.0)
