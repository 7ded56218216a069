"""Faults in the second claim: what a release tells of a place that is left empty."""

from __future__ import annotations

import math
import warnings

import numpy as np

from planted_faults.registry import fault
from privspan import baselines, private_pca
from privspan.audit.replay import Transcript
from privspan.privacy.mu_ledger import MuLedger
from privspan.sums import analyze_gauss

ROWS = np.vstack([np.full((1, 3), 1e3), np.random.default_rng(0).standard_normal((400, 3))])
EMPTIED = np.vstack([np.full((1, 3), np.nan), ROWS[1:]])


def tells_more(run, table=ROWS, neighbour=EMPTIED) -> bool:
    """Replay a run with a place left empty, and compare what that costs with the claim."""
    transcript = Transcript(0)
    spent = transcript.spent_by(run, table, neighbour)
    return math.sqrt(spent) > transcript.results[0].cost.empty_mu


@fault(
    "an empty place that is taken for half a replacement",
    lambda: tells_more(lambda X, rng: baselines.analyze_gauss(X, 1, epsilon=1.0, delta=1e-6, rng=rng)),
)
def half(patch):
    patch.setattr(analyze_gauss, "MOMENTS", 2.0)


def claims_differ() -> bool:
    """Tell whether tables of one shape have different claims."""
    rng, found = np.random.default_rng(0), set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for table in (rng.standard_normal((3_000, 5)), rng.standard_normal((3_000, 5)) + 1e6):
            found.add(private_pca(table, 2, epsilon=1.0, delta=1e-6, rng=0).cost.empty_mu)
    return len(found) > 1


@fault("a claim that follows the way that a run took", claims_differ)
def of_the_way(patch):
    spend = MuLedger.spend

    def told(account, name, share, gain=1.0):
        account.empty = 1.0
        mu = spend(account, name, share, gain)
        account.empty = float(account._told)
        return mu

    patch.setattr(MuLedger, "spend", told)
