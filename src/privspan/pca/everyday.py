"""The everyday course of a private PCA: count gaps, choose k, find a centre and look, in that order.

One budget pays for all of it.  Its delta may have a part set aside for a test of stable leverage, and a vote for k
takes a part of epsilon.  All other steps are Gaussian and take shares of mu² from one account: what is left when the
looks come is theirs.  What is done follows from public numbers and released ones.
Proofs: docs/explanation/everyday-tables.md, docs/explanation/planning.md.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from privspan.blocks.rank import choose_dimension
from privspan.pca.outcome import finished, released, warn_if_useless
from privspan.pca.settings import PCASettings, PCATable
from privspan.planner import Plan, plan_pca
from privspan.privacy import Budget, Part, Release
from privspan.privacy.call import Call
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import Child
from privspan.stable.near import NearCourse, can_be_near, test_share
from privspan.sums.everyday import EverydayCourse, empty_share, searches
from privspan.sums.gaps import released_gaps
from privspan.sums.pairs import pair_differences

Array = NDArray[np.float64]


def learn_everyday(settings: PCASettings, call: Call, table: PCATable) -> tuple[Release, Plan]:
    """Learn mean, components and variances; return the plan, which is public, beside the release."""
    (n, d), k = table.source.shape, table.considered[0]

    # Before anything is spent: the account, where to start, and what to expect.
    account, may_be_near = _account(call.budget, table)
    start, search = _start(table, account.mu)
    plan = plan_pca(n, d, k, account.budget, settings.gamma, start is not None)
    if settings.k != "auto":
        warn_if_useless(call, plan)  # which may be made an error

    # Count gaps, and choose k by a vote, if it is not given.
    run = call.begin(account, gaussian=True, vote=table.vote)
    gaps = released_gaps(table.source, table.gapped, run.on(Child.GAPS))
    rows, chosen = table.source, []
    if table.units is not None:
        rows, start = rows.in_units(table.units), None if start is None else start / table.units
    if settings.k == "auto":
        pairs = pair_differences(rows, run.on(Child.PAIRING).streams.public)
        k = choose_dimension(pairs, table.considered[-1], epsilon=table.vote, run=run.on(Child.DIMENSION))
        chosen = [Part("choice of the dimension", table.vote, 0.0)]
        plan = plan_pca(n, d, k, account.budget, settings.gamma, start is not None)
        warn_if_useless(call, plan)

    # Find the centre and look, with all that is left in the account; near a subspace, look there.
    course = EverydayCourse(rows, k, run.on(Child.SUBSPACE))
    centre, result = course.rough_centre(start, search), None
    if may_be_near and centre is not None and centre.among is not None and centre.located:  # which was searched for
        result = NearCourse(rows, k, course.run, run.on(Child.NEAR))(centre)
    if result is None:
        result = course.looked(centre)

    # Put together what has been released, and what it has cost.
    result = result if gaps is None else result.of_present_cells(gaps)
    aside = (table.vote, account.set_aside)
    cost = call.budget.cost(*chosen, *account.parts, aside=aside, empty=account.empty)
    release = released(result, table, cost, run, units=table.units)
    return finished(settings, call, release, table, gaps, k), plan


def promise_everyday(settings: PCASettings, call: Call, table: PCATable) -> tuple[float, float]:
    """Return mu and the delta that is set aside: what the course costs as a Gaussian release."""
    return _account(call.budget, table)[0].promise(table.vote)


def _account(budget: Budget, table: PCATable) -> tuple[MuLedger, bool]:
    """Return the account of all steps but a vote, and whether it may be asked if most rows lie near a subspace.

    What stable leverage needs is set aside then.  That, and what an empty place can tell
    (docs/explanation/zero-out.md), is decided by public numbers, for all numbers of components that may be chosen.
    """
    rest = budget.less(table.vote)
    near = can_be_near(table.source, table.considered[0], rest.mu)
    if not near:
        empty = empty_share(table.source, rest.mu, int(table.gapped.sum()))
        return MuLedger(rest, empty=empty), False
    share = test_share(table.source, table.considered[-1], rest)
    return MuLedger(rest, test_share=share, empty=1.0), True  # its steps are counted without a gain


def _start(table: PCATable, mu: float) -> tuple[Array | None, bool]:
    """Return a public centre, if it is of use, and whether to search from there.

    A centre that is given for every column is taken at the user's word.  The middle of bounds is often so far from
    the mean that differences of pairs do better; but a search may start there, where the data suffice.
    """
    public, given = table.public, np.isfinite(table.public.around)
    if given.all():
        return public.start, False
    enough = searches(table.source.shape[0], table.source.shape[1], mu)
    known = given | (public.bounded & public.said)
    return (public.start if enough and known.any() else None), enough
