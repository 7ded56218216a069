"""The boosted approximate subspace (the paper's DPASEB): from success in 7 runs of 10 to probability 1 − β.

Disjoint parts of the records each run the approximate algorithm with the whole budget; one record is in one part, so
all parts together cost what one costs. If enough parts are within α/3 of the truth, then a released subspace that has
0.6 of all parts within 2α/3 of it is within α: it shares a part with the good ones. (The printed algorithm asks the
parts for α and promises α; the triangle inequality gives it 3α.) The proof note is docs/explanation/boosted.md.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.approximate import Aggregate, BlockSettings, block_step
from privspan.blocks import plan as planner_blocks
from privspan.privacy import Budget, Part, Release
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Learn, Run
from privspan.rows import PartitionedTable, RowSource
from privspan.subspace import Subspace


def boosted_subspace(
    X: ArrayLike | RowSource | PartitionedTable,
    k: int,
    *,
    epsilon: float,
    delta: float,
    alpha: float,
    beta: float,
    person: object = None,
    gamma: float | None = None,
    aggregate: Aggregate = "stable",
    block_size: int | None = None,
    options: Mapping[str, object] | None = None,
    rng: RandomLike = None,
    ledger: LedgerLike = None,
    **settings: object,
) -> Release:
    """Learn privately a subspace within `alpha` of the true one, with probability at least 1 − `beta`.

    Parameters
    ----------
    X : (n, d) array of real numbers, memory map, dense RowSource, or Dask array or dataframe
        One person per row. The rows are divided among ``boosting_parts(beta)`` runs, 50 of them for
        beta = 0.05, so n must be that many times what one run needs.
    k : int
        Dimension of the subspace.
    epsilon, delta : float
        The guarantee.
    alpha : float
        Required distance (sine of the largest angle), below 1.
    beta : float
        Allowed probability of failure.
    person : (n,) array-like or str, optional
        Who each row belongs to, where people have several rows: one id per row, or the name of the column of `X` that
        holds the ids. One row of each person is then drawn; the guarantee is for persons, and n is their number:
        docs/explanation/several-rows.md.
    gamma, aggregate, block_size, options
        As in :func:`privspan.approximate_subspace`, for every part; expert settings may be keywords here too.
    rng : None, int, SeedSequence or Generator, optional
        None draws from the operating system. A seed is for tests: the release then says ``private=False``.
    ledger : path, Ledger or Page, optional
        Where the budget is charged, before any data are read; see :class:`privspan.ledger.Ledger`.

    Returns
    -------
    Release
        ``release.subspace`` is None if no part's subspace had enough others near it.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy for replace-one neighbours; n, d and all parameters are public. It holds for
    all data. The accuracy holds whenever every part is within alpha/3 of the true subspace with probability at least
    0.7. With `person`, for replacing one person. Proof: docs/explanation/boosted.md,
    docs/explanation/several-rows.md.
    """
    with Call("boosted_subspace", epsilon, delta, rng, ledger, X, person, k) as call:
        table = call.persons(X, person)
        learn = prepare_boosted(
            call,
            table,
            k,
            call.budget,
            alpha=alpha,
            beta=beta,
            gamma=gamma,
            aggregate=aggregate,
            block_size=block_size,
            options=options,
            **settings,
        )
        return call.finish(learn(call.begin()))


def prepare_boosted(
    call: Call,
    X: object,
    k: int,
    budget: Budget,
    *,
    alpha: float,
    beta: float,
    gamma: float | None = None,
    aggregate: Aggregate = "stable",
    block_size: int | None = None,
    options: Mapping[str, object] | None = None,
    **settings: object,
) -> Learn:
    """Refuse what `boosted_subspace` refuses, from public facts alone, and return what does the rest with a run."""
    table = call.open(X, accept_sparse=False).here()
    checks.probability(alpha=alpha, beta=beta)
    parts = planner_blocks.boosting_parts(beta)
    rows = len(table) // parts
    chosen = BlockSettings(aggregate, gamma, block_size, options, settings)
    try:
        chosen.check((rows, table.shape[1]), k, budget)
    except ParameterError as error:
        raise ParameterError(
            "Each of the {parts} parts has {rows} rows, and for a part: {error}", parts=parts, rows=rows, error=error
        ) from None

    def learn(run: Run) -> Release:
        records = table.dealt(run.streams.public)
        order = records.order(run.streams.public)
        candidates = []
        for i in range(parts):
            part = records.draw(order[i * rows : (i + 1) * rows])
            candidates.append(block_step(part, k, budget, chosen, run, None)[0])
        central = central_candidate(candidates, planner_blocks.needed_successes(parts), 2.0 * alpha / 3.0)
        public = {"k": k, "alpha": alpha, "beta": beta, "parts": parts, "rows_per_part": rows}
        # One record is in one part, so the parts compose in parallel: the cost is that of a single run.
        cost = budget.cost(Part(f"one of {parts} disjoint runs", budget.epsilon, budget.delta))
        subspace = None if central is None else candidates[central]
        return Release(subspace, cost, f"boosted ({aggregate})", public, run.private)

    return learn


def central_candidate(candidates: list[Subspace | None], needed: int, radius: float) -> int | None:
    """Return the candidate with the nearest `needed` candidates, itself included; None if beyond the radius.

    Abstentions are at distance 1 from everything, so they count as failures.
    """
    distances = np.ones((len(candidates), len(candidates)))
    for i, first in enumerate(candidates):
        for j, second in enumerate(candidates[: i + 1]):
            if first is not None and second is not None:
                distances[i, j] = distances[j, i] = first.distance(second)
    reach = np.sort(distances, axis=1)[:, needed - 1]  # (t,)
    best = int(np.argmin(reach))
    return best if reach[best] <= radius else None
