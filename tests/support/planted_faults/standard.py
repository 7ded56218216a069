"""Faults in the PCA of standardised columns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from planted_faults.registry import fault, task_refuted
from privspan import private_pca, private_scales
from privspan.audit.replay import ReplayError, Transcript, spent_by
from privspan.privacy import Budget
from privspan.privacy.mu_ledger import MuLedger
from privspan.rows import source as source_rows
from privspan.rows.persons import PersonTable
from privspan.standard import cells, course, ranges, signs
from privspan.sums.looks import AugmentedGram

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
CLEAR: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6}


def zeros(row: tuple[float, float], n: int = 400) -> np.ndarray:
    table = np.zeros((n, 2))
    table[-1] = row
    return table


def overspends(run: Callable[..., Any], one: Any, other: Any, budget: dict[str, Any]) -> bool:
    """Replay a run on neighbours: does it spend more than it may, or go another way?"""
    try:
        spent = spent_by(run, one, other, seed=3)
    except ReplayError:
        return True
    return spent > Budget(budget["epsilon"], budget["delta"]).mu ** 2 * (1 + 1e-9)


def ranks_refuted() -> bool:
    """Replay ranks where the last row is larger in both columns than all others, or in one of them."""
    turned = zeros((1.0, 1.0)), zeros((1.0, -1.0))
    cloud = np.random.default_rng(0).standard_normal((400, 2))
    across = np.vstack([cloud, [[-9.0, -9.0]]]), np.vstack([cloud, [[9.0, 9.0]]])
    for pair in (turned, across):
        if overspends(lambda table, rng: private_pca(table, 1, scale="ranks", **BUDGET, rng=rng), *pair, BUDGET):
            return True
    several = [np.vstack([table, np.tile(table[-1], (7, 1))]) for table in turned]
    whose = np.append(np.arange(400), np.full(7, 399))
    return overspends(
        lambda table, rng: private_pca(table, 1, scale="ranks", person=whose, **BUDGET, rng=rng), *several, BUDGET
    )


def ranges_refuted() -> bool:
    """Replay means and units where the last row lies far on one side of all others, or on the other."""
    far = zeros((1e6, 1e6)), zeros((-1e6, -1e6))
    return overspends(lambda table, rng: private_scales(table, **CLEAR, rng=rng), *far, CLEAR)


@fault("pairs of neighbours by value", ranks_refuted)
def pairs_by_value(patch):
    def sorted_pairs(source, public):
        order = np.lexsort(np.asarray(source[:]).T)
        return order[: len(order) // 2 * 2].reshape(-1, 2)[public.permutation(len(order) // 2)]

    patch.setattr(source_rows, "public_pairs", sorted_pairs)


@fault("the last record in every pair", ranks_refuted)
def in_every_pair(patch):
    drawn = source_rows.public_pairs

    def again(source, public):
        found = drawn(source, public)
        found[:3, 1] = source.shape[0] - 1
        return found

    patch.setattr(source_rows, "public_pairs", again)


@fault("a person in two pairs", ranks_refuted)
def person_in_two_pairs(patch):
    made = PersonTable.numbers_of

    sides = count()

    def shared(self, persons):
        second, longest = next(sides) % 2 == 1, int(np.abs(self.slots[:]).sum(axis=1).argmax()) // self.width
        return made(self, np.where((np.arange(len(persons)) < 40) & second, longest, persons))

    patch.setattr(PersonTable, "numbers_of", shared)


@fault("signs scaled by the wrong count", ranks_refuted)
def half_of_the_signs(patch):
    sums = AugmentedGram.products

    def doubled(self, block, finish=None):
        return sums(self, block, lambda total: finish(2.0 * total))  # as if half of the nonzeros had been counted

    patch.setattr(AugmentedGram, "products", doubled)


@fault("averages of pairings with the noise of their number", ranks_refuted)
def noise_over_pairings(patch):
    bounds = signs.sign_bounds
    patch.setattr(
        signs, "sign_bounds", lambda gram, n, m: replace(bounds(gram, n, m), sensitivity=gram.size / np.sqrt(m))
    )


@fault("histograms of columns with sensitivity one", ranges_refuted)
def quiet_histograms(patch):
    patch.setattr(ranges, "histogram_sensitivity", lambda columns: 1.0)


@fault("stages of ranges that are not charged", ranges_refuted)
def free_stages(patch):
    spend = MuLedger.spend

    def generous(self, name, share, gain=1.0):
        mu = spend(self, name, share, gain)
        return mu if not name.startswith("range") else float(np.sqrt(2.0)) * mu

    patch.setattr(MuLedger, "spend", generous)


@fault("means without squares in what cells may move", ranges_refuted)
def cells_move_less(patch):
    bounds = cells.cell_bounds
    patch.setattr(cells, "cell_bounds", lambda n, columns: replace(bounds(n, columns), sensitivity=1.0))


@fault("histograms weighed by another record", ranges_refuted)
def stages_by_values(patch):
    counted = ranges.bin_counts

    def by_values(rows, **told):
        counts = counted(rows, **told)
        return counts * (2.0 if np.abs(rows).max() > 1e5 and rows[-1, 0] > 0.0 else 1.0)

    patch.setattr(ranges, "bin_counts", by_values)


def counts_refuted() -> bool:
    """Replay a search on a neighbour in which a record has gaps."""
    one, other = np.random.default_rng(0).standard_normal((2, 400, 2))
    other[:] = one
    other[-1] = np.nan
    transcript = Transcript(3)
    transcript.spent_by(lambda table, rng: private_scales(table, **CLEAR, rng=rng), one, other)
    return not np.array_equal(*(found.mean for found in transcript.results), equal_nan=True)


@fault("ranges that end by unreleased counts", counts_refuted)
def by_true_counts(patch):
    noisy = ranges._histograms

    def true(table, columns, low, high, mu, run, tuning):
        counts, sigma = noisy(table, columns, low, high, mu, run, tuning)
        return ranges.bin_counts(table[:], columns=columns, low=low, high=high, bins=counts.shape[1]), sigma

    patch.setattr(ranges, "_histograms", true)


def stages_refuted() -> bool:
    """Compare what is told to be spent on tables in which the search ends at once, or never."""
    even, gaps = np.tile(np.linspace(0.0, 1.0, 5_000)[:, None], 2), np.full((5_000, 2), np.nan)
    one, other = (private_pca(table, 1, scale=True, **BUDGET, rng=3).cost for table in (even, gaps))
    return [part.name for part in one.parts] != [part.name for part in other.parts]


@fault("stages of a search that are not spent where it has ended", stages_refuted)
def spent_while_needed(patch):
    spend = MuLedger.spend

    def thrifty(self, name, share, gain=1.0):
        over = name.startswith("range") and not len(sys._getframe(1).f_locals["active"])
        return 0.0 if over else spend(self, name, share, gain)

    patch.setattr(MuLedger, "spend", thrifty)


@fault("cells that are not cut off", ranges_refuted)
def long_cells(patch):
    winsor = cells.winsor
    patch.setattr(cells, "winsor", lambda *of: replace(winsor(*of), most=np.full(len(of[1]), 1e3)))


@fault("the look in units that were not released", lambda: task_refuted("private_pca (deviations)"))
def bare_units(patch):
    def exact(cells):
        return cells / (1e-300 + cells.std(axis=0))

    class Standardised(cells.Winsor):
        def __call__(self, rows):
            return exact(super().__call__(rows))

    winsor = course.winsor
    patch.setattr(course, "winsor", lambda *of: Standardised(*vars(winsor(*of)).values()))
