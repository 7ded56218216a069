"""Faults in the PCA of standardised columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np

from planted_faults.registry import fault
from privspan import private_pca, private_scales
from privspan.audit.replay import ReplayError, spent_by
from privspan.privacy import Budget
from privspan.privacy.mu_ledger import MuLedger
from privspan.rows.persons import PersonTable
from privspan.standard import ranges, signs
from privspan.sums import pairs
from privspan.sums.looks import AugmentedGram

BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "rng": 3}
CLEAR: dict[str, Any] = {"epsilon": 8.0, "delta": 1e-6, "rng": 3}


def zeros(row: tuple[float, float], n: int = 400) -> np.ndarray:
    table = np.zeros((n, 2))
    table[-1] = row
    return table


def overspends(run: Callable[[Any], Any], one: Any, other: Any, budget: dict[str, Any]) -> bool:
    """Replay a run on neighbours: does it spend more than it may, or go another way?"""
    try:
        spent = spent_by(run, one, other)
    except ReplayError:
        return True
    return spent > Budget(budget["epsilon"], budget["delta"]).mu ** 2 * (1 + 1e-9)


def ranks_refuted() -> bool:
    """Replay ranks where the last row is larger in both columns than all others, or in one of them."""
    turned = zeros((1.0, 1.0)), zeros((1.0, -1.0))
    cloud = np.random.default_rng(0).standard_normal((400, 2))
    across = np.vstack([cloud, [[-9.0, -9.0]]]), np.vstack([cloud, [[9.0, 9.0]]])
    for pair in (turned, across):
        if overspends(lambda table: private_pca(table, 1, scale="ranks", **BUDGET), *pair, BUDGET):
            return True
    several = [np.vstack([table, np.tile(table[-1], (7, 1))]) for table in turned]
    whose = np.append(np.arange(400), np.full(7, 399))
    return overspends(lambda table: private_pca(table, 1, scale="ranks", groups=whose, **BUDGET), *several, BUDGET)


def ranges_refuted() -> bool:
    """Replay means and units where the last row lies far on one side of all others, or on the other."""
    far = zeros((1e6, 1e6)), zeros((-1e6, -1e6))
    return overspends(lambda table: private_scales(table, **CLEAR), *far, CLEAR)


@fault("pairs of neighbours by value", ranks_refuted)
def pairs_by_value(patch):
    def sorted_pairs(source, public):
        order = np.lexsort(np.asarray(source[:]).T)
        return order[: len(order) // 2 * 2].reshape(-1, 2)[public.permutation(len(order) // 2)]

    patch.setattr(pairs, "_public_pairs", sorted_pairs)


@fault("the last record in every pair", ranks_refuted)
def in_every_pair(patch):
    drawn = pairs._public_pairs

    def again(source, public):
        found = drawn(source, public)
        found[:3, 1] = source.shape[0] - 1
        return found

    patch.setattr(pairs, "_public_pairs", again)


@fault("a person in two pairs", ranks_refuted)
def person_in_two_pairs(patch):
    made = PersonTable.slots

    sides = count()

    def shared(self, persons):
        second, longest = next(sides) % 2 == 1, int(np.abs(self.rows[:]).sum(axis=1).argmax()) // self.width
        return made(self, np.where((np.arange(len(persons)) < 40) & second, longest, persons))

    patch.setattr(PersonTable, "slots", shared)


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

    def generous(self, name, share):
        mu = spend(self, name, share)
        return mu if not name.startswith("range") else float(np.sqrt(2.0)) * mu

    patch.setattr(MuLedger, "spend", generous)


@fault("means without squares in what cells may move", ranges_refuted)
def cells_move_less(patch):
    bounds = ranges.cell_bounds
    patch.setattr(ranges, "cell_bounds", lambda n, columns: replace(bounds(n, columns), sensitivity=1.0))


@fault("histograms weighed by another record", ranges_refuted)
def stages_by_values(patch):
    counted = ranges.bin_counts

    def by_values(rows, **told):
        counts = counted(rows, **told)
        return counts * (2.0 if np.abs(rows).max() > 1e5 and rows[-1, 0] > 0.0 else 1.0)

    patch.setattr(ranges, "bin_counts", by_values)
