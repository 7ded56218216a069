"""A rival on a table whose rows lie about a centre: what it is given, and with which budget.

The rivals know no centre and no radius to shorten rows to, so each is given ours, by the very steps of `private_pca`:
where public numbers say that a search pays, a private centre (`found_centre`, `polished_centre`); else, or where no
centre is found, differences of pairs of rows.  With much data, rivals of `SHORT_ROWS` also have a private radius
(`balancing_clip`), divide rows by it and shorten those that are longer than 1; all others scale rows to length 1.
The mean and the scale of the table, which `private_pca` also releases, are not asked of a rival: by pairs it has the
whole budget.

Composition.  The search is a filter of Gaussian steps and spends a share s of mu², where mu is that of the budget.

* A Gaussian rival has what is left, mu sqrt(1 - s): lemma 2 of docs/explanation/everyday-pca.md.
* Of any other it is only known that it is (e, d)-private: at worst it tells the truth with probability d and else is
  randomised response (Kairouz, Oh, Viswanath 2015).  After a Gaussian search of mu' the two have

      delta = d + p D(epsilon - e) + (1 - p) D(epsilon + e),   p = 1 / (1 + exp(-e)),

  where D is the delta of mu'-GDP.  As s is not known beforehand it is rounded up to one of `LEVELS`, and e is such
  that every level has delta / len(LEVELS).  Look at the runs that end at one level, and stop the others: that search
  is mu sqrt(level)-Gaussian, so these runs keep (epsilon, delta / len(LEVELS)); summed over levels, (epsilon, delta).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partialmethod
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.methods import METHODS
from privspan.audit import Transcript
from privspan.privacy import Budget
from privspan.privacy.gdp import delta_from_mu
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import RandomLike, open_streams
from privspan.privacy.run import open_run
from privspan.rows.door import open_table
from privspan.rows.source import RowSource
from privspan.subspace import Subspace
from privspan.sums.centre import Centre, found_centre, polished_centre
from privspan.sums.everyday import balancing_clip, expected_share, searches
from privspan.sums.pairs import pair_differences

Array = NDArray[np.float64]

LEVELS = (0.03, 0.06, 0.1, 0.15, 0.25, 0.4, 0.8)
"""Shares of mu² that a search is taken to have spent, for rivals that are not Gaussian; it never spends more."""

SHORT_ROWS = (
    *("analyze_gauss", "mod_sulq", "noisy_power", "k_dp_pca", "noisy_range_finder"),
    *("johnson_lindenstrauss", "inverse_wishart"),
)
"""Rivals that do better with rows shortened than with unit rows on the development tables of everyday-tables.md.

Their proofs need no more than |x| <= 1: lemmas 1, 5 and 8 of docs/explanation/baselines.md.
That of additive Wishart needs length 0 or 1.
"""

_OTHER_NOISE = 1_000_000  # added to a seed for the noise of a rival


@dataclass(frozen=True)
class Prepared:
    """Rows for a rival, whether short ones stay short, and the share of mu² that they have cost."""

    rows: Any  # (n, d)
    short: bool
    spent: float


def prepared(X: Array, budget: Budget, seed: RandomLike, *, short: bool) -> Prepared:
    """Centre the rows, or take differences of pairs; divide centred rows by a private radius if they may be short."""
    n, d = X.shape
    run = open_run(MuLedger(budget), seed)
    centre: Centre | None = None
    if searches(n, d, run.account.mu):
        centre = found_centre(open_table(X), run)
        if centre.located:
            centre = polished_centre(open_table(X), centre, run)
    if centre is None or not centre.located:
        return Prepared(
            np.asarray(pair_differences(X, open_streams(run.streams.public).public)), False, 1.0 - run.account.left
        )
    rows, short = X - centre.vector(d), short and expected_share(n, d, run.account.mu)[0] == "two looks"
    if short:
        rows = rows / balancing_clip(centre, n, d, run).radius
    return Prepared(rows, short, 1.0 - run.account.left)


def rest_of(budget: Budget, spent: float, gaussian: bool) -> Budget | None:
    """Return what a rival may spend after a search that took this share of mu²; None if that is nothing."""
    if spent == 0.0:
        return budget
    if gaussian:
        return Budget.for_mu(budget.mu * math.sqrt(1.0 - spent), budget.delta)
    return _rest_at(budget, min(level for level in LEVELS if level >= spent))


@cache
def _rest_at(budget: Budget, level: float) -> Budget | None:
    mu, delta = budget.mu * math.sqrt(level), budget.delta / len(LEVELS)
    good, bad = 0.0, budget.epsilon
    for _ in range(50):
        middle = (good + bad) / 2.0
        fits = composed_delta(mu, middle, delta / 2.0, budget.epsilon) <= delta
        good, bad = (middle, bad) if fits else (good, middle)
    return Budget(good, delta / 2.0) if good > 0.0 else None


def composed_delta(mu: float, rival_epsilon: float, rival_delta: float, epsilon: float) -> float:
    """Return the delta at epsilon of a mu-Gaussian mechanism and an (epsilon, delta)-private one."""
    likely = 1.0 / (1.0 + math.exp(-rival_epsilon))
    near, far = delta_from_mu(mu, epsilon - rival_epsilon), delta_from_mu(mu, epsilon + rival_epsilon)
    return rival_delta + likely * near + (1.0 - likely) * far


@cache
def is_gaussian(name: str) -> bool:
    """Tell whether every step of a rival is Gaussian, by what a small run says of its cost."""
    try:
        release = METHODS[name].call(np.eye(60, 3), 1, epsilon=1.0, delta=1e-6, rng=0)
    except ValueError:  # too small for it: then it is taken for what everything is
        return False
    return all(part.mu is not None for part in release.cost.parts)


@contextmanager
def short_rows() -> Iterator[None]:
    """Let rivals take rows of length at most 1 as they are, and shorten longer ones only."""
    with patch.object(RowSource, "rows", partialmethod(RowSource.rows, clip=1.0)):
        yield


def rival_on(name: str, X: Array, k: int, budget: Budget, seed: int | Transcript) -> Subspace | None:
    """Run a rival on a table about its centre; None if it abstained, or if nothing was left for it."""
    given = prepared(X, budget, seed, short=name in SHORT_ROWS)
    rest = rest_of(budget, given.spent, is_gaussian(name))
    if rest is None:
        return None
    other = _OTHER_NOISE + seed if isinstance(seed, int) else seed.seeded(_OTHER_NOISE + seed.seed)
    with short_rows() if given.short else nullcontext():
        release = METHODS[name].call(given.rows, k, epsilon=rest.epsilon, delta=rest.delta, rng=other)
    return release.subspace
