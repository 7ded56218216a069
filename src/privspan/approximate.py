"""The approximate subspace (the paper's DPASE): blocks of records propose subspaces, a private step aggregates them.

Records are dealt into t blocks of m by a public order; every block proposes its top-k subspace. Two aggregates turn
the proposals into one private answer: the stable group step, which goes beyond the paper and is the default, and
the paper's own vote of cells. The proof note is docs/explanation/approximate-case.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import InitVar, asdict, dataclass, replace
from functools import partial
from typing import Any, Literal

from numpy.typing import ArrayLike

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.blocks import plan as planner_blocks
from privspan.blocks.bases import block_bases
from privspan.blocks.histogram import histogram_step
from privspan.blocks.plan import HistogramPlan
from privspan.blocks.rank import check_choice, choose_dimension
from privspan.privacy import Budget, Part, Release
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.persons import MOST_ROWS
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Learn, Run
from privspan.rows import PartitionedTable, RowSource
from privspan.rows.dealing import Order
from privspan.rows.table import Table
from privspan.stable.groups import stable_group_step
from privspan.stable.plan import STABLE_OPTIONS, group_shares
from privspan.subspace import Subspace

Aggregate = Literal["stable", "histogram"]
AGGREGATES: tuple[Aggregate, ...] = ("stable", "histogram")
OPTIONS: dict[str, checks.Checks] = {
    "stable": STABLE_OPTIONS,
    "histogram": {"references": partial(checks.integer_at_least, 1)},
}
"""Expert settings of each aggregate."""

# What an aggregate released: a subspace or None, public or released numbers, and what it spent.
_Outcome = tuple[Subspace | None, dict[str, object], tuple[Part, ...]]


def approximate_subspace(
    X: ArrayLike | RowSource | PartitionedTable,
    k: int | Literal["auto"],
    *,
    epsilon: float,
    delta: float,
    max_components: int | None = None,
    person: object = None,
    max_rows: int = MOST_ROWS,
    gamma: float | None = None,
    aggregate: Aggregate = "stable",
    block_size: int | None = None,
    shuffle: bool = True,
    options: Mapping[str, object] | None = None,
    rng: RandomLike = None,
    ledger: LedgerLike = None,
    **settings: object,
) -> Release:
    """Learn privately the k-dimensional subspace that the records lie near.

    Use it when there are few records and many columns and the records are very close to a subspace: the number of
    records needed does not depend on the number of columns.

    Parameters
    ----------
    X : (n, d) array of real numbers, memory map, dense RowSource, or Dask array or dataframe
        One person per row; read in chunks. A value that is not finite counts
        as 0. Rows are not centred. Of a Dask table, blocks are formed inside partitions, and the rows at the end
        of each partition that fill no block are left out.
    k : int or "auto"
        Dimension of the subspace. "auto" lets the blocks vote for it and spends a part of epsilon on it.
    epsilon, delta : float
        The guarantee.
    max_components : int, optional
        Largest dimension considered; required with ``k="auto"`` and refused otherwise.
    person : (n,) array-like or str, optional
        Who each row belongs to, where people have several rows: one id per row, or the name of the column of `X` that
        holds the ids.  The guarantee is then for persons, and n is their number: docs/explanation/several-rows.md.
    max_rows : int, default=8
        With `person`: the most rows that are used of one person.
    gamma : float, optional
        Upper bound on the standard deviation of the (k+1)-th direction over that of the k-th. It makes the
        histogram aggregate choose its cells without spending budget on it; chosen privately if omitted.
        It affects accuracy only, never privacy. The stable aggregate always measures its own scale.
    aggregate : {"stable", "histogram"}, default="stable"
        "stable" is the group version of stable leverage. "histogram" is the paper's vote of cells, whose error grows
        with d for the same tail energy.
    block_size : int, optional
        Records per block, at least k; the planner chooses by default.
    shuffle : bool, default=True
        Deal the rows into blocks by a random order (within windows or partitions where there are any). False takes
        consecutive rows, which suits files whose rows are in random order already. See
        docs/explanation/partitioning.md.
    options : mapping, optional
        Expert settings by name, each also taken as a keyword argument: public, never chosen by looking at the data.
        For "stable" those of :func:`privspan.stable_subspace`, where ``split`` knows the steps ``tail``, ``test`` and
        ``noise``; for "histogram" ``references`` (int), the number of reference points, above k.
    rng : None, int, SeedSequence or Generator, optional
        None draws from the operating system. A seed is for tests: the release then says ``private=False``.
    ledger : path, Ledger or Page, optional
        Where the budget is charged, before any data are read; see :class:`privspan.ledger.Ledger`.

    Returns
    -------
    Release
        ``release.subspace`` is None after an abstention. With ``k="auto"``, ``release.extras["n_components"]`` is the
        dimension chosen.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy for replace-one neighbours; n, d and all parameters are public. It holds for
    all data; no assumption is made but that each person contributes one row. An abstention costs the same.
    With `person`, for replacing one person. Proof: docs/explanation/approximate-case.md, and
    docs/explanation/choosing-k.md for ``k="auto"``, docs/explanation/several-rows.md for persons.

    Examples
    --------
    >>> from privspan.approximate import approximate_subspace
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(4000, 500, 2, gamma_w=1e-3, rng=0)
    >>> release = approximate_subspace(X, 2, epsilon=1.0, delta=1e-6, rng=0)
    >>> bool(release.subspace.distance(truth) < 0.05)
    True
    """
    with Call("approximate_subspace", epsilon, delta, rng, ledger, X, person, k) as call:
        table = call.persons(X, person, max_rows)
        learn = prepare_approximate(
            call,
            table,
            k,
            call.budget,
            aggregate=aggregate,
            gamma=gamma,
            block_size=block_size,
            max_components=max_components,
            shuffle=shuffle,
            options=options,
            **settings,
        )
        return call.finish(learn(call.begin()))


def prepare_approximate(
    call: Call,
    X: object,
    k: int | Literal["auto"],
    budget: Budget,
    *,
    aggregate: Aggregate = "stable",
    gamma: float | None = None,
    block_size: int | None = None,
    max_components: int | None = None,
    shuffle: bool = True,
    options: Mapping[str, object] | None = None,
    **settings: object,
) -> Learn:
    """Refuse what `approximate_subspace` refuses, from public facts alone; return what does the rest with a run."""
    table = call.open(X, accept_sparse=False)
    chosen = BlockSettings(aggregate, gamma, block_size, options, settings)
    if k == "auto":
        return _prepare_choice(table, max_components, budget, chosen, shuffle)
    if max_components is not None:
        raise ParameterError('{max_components} must be given only with {k:"auto"}.')
    chosen.check_table(table, k, budget)

    def learn(run: Run) -> Release:
        rows, order = table.deal(run.streams.public) if shuffle else (table, None)
        subspace, parameters, parts = block_step(rows, k, budget, chosen, run, order)
        return Release(subspace, budget.cost(*parts), f"approximate ({aggregate})", parameters, run.private)

    return learn


@dataclass(frozen=True)
class BlockSettings:
    """Public choices of one run: which aggregate, and the numbers that replace the planner's."""

    aggregate: Aggregate = "stable"
    gamma: float | None = None
    block_size: int | None = None
    options: Any = None  # a mapping or None; once checked, a mapping
    keywords: InitVar[Mapping[str, object] | None] = None  # further options

    def __post_init__(self, keywords: Mapping[str, object] | None) -> None:
        """Refuse values that no data could make sense of."""
        checks.one_of(AGGREGATES, aggregate=self.aggregate)
        if self.gamma is not None:
            checks.probability(gamma=self.gamma)
        if self.block_size is not None:
            checks.integer_at_least(1, block_size=self.block_size)
        object.__setattr__(self, "options", checks.options(OPTIONS[self.aggregate], self.options, keywords))

    def check(self, shape: tuple[int, int], k: int, budget: Budget) -> None:
        """Refuse, from public facts alone, a run that could not answer."""
        n, d = shape
        checks.dimension(k=k, d=d)
        m = self.stable_block_size(n, k)
        if self.block_size is not None and self.block_size < k:
            raise ParameterError("{block_size} must be at least k, {k}; got {got!r}.", k=k, got=self.block_size)
        if self.aggregate == "histogram":
            self.histogram_plan(shape, k, budget)
        elif n < 2 * m:
            raise ParameterError("{X} must have at least {least} rows for two blocks; got {n}.", least=2 * m, n=n)
        else:
            group_shares(n // m, k, budget, self.options.get("split"))

    def check_table(self, table: Table, k: int, budget: Budget) -> None:
        """Refuse, from public facts alone, a run on a table that could not answer."""
        checks.dimension(k=k, d=table.shape[1])
        settings, shape = self.within_partitions(table, k, budget)
        m = settings.stable_block_size(len(table), k)
        if not table.local and table.blocks(m) < 2:
            raise ParameterError(
                "{X} must have partitions that hold two blocks of {m} rows in all: merge its partitions, or give a "
                "smaller {block_size}.",
                m=m,
            )
        settings.check(shape, k, budget)

    def within_partitions(self, table: Table, k: int, budget: Budget) -> tuple[BlockSettings, tuple[int, int]]:
        """Fix the size of the blocks from the whole table, and leave out the rows that fill none in their partition.

        Also returns the shape of what is left, which is that of the table itself if it has no partitions.
        """
        n, d = table.shape
        if table.local:
            return self, (n, d)
        histogram = self.aggregate == "histogram"
        m = self.histogram_plan((n, d), k, budget).block_size if histogram else self.stable_block_size(n, k)
        return replace(self, block_size=m), (m * table.blocks(m), d)

    def stable_block_size(self, n: int, k: int) -> int:
        """Records per block of the stable aggregate."""
        return planner_blocks.stable_block_size(n, k) if self.block_size is None else self.block_size

    def histogram_plan(self, shape: tuple[int, int], k: int, budget: Budget) -> HistogramPlan:
        """Plan the histogram aggregate."""
        numbers: Any = {"gamma": self.gamma, "block_size": self.block_size, **self.options}
        return planner_blocks.plan_histogram(*shape, k, epsilon=budget.epsilon, delta=budget.delta, **numbers)


def block_step(table: Table, k: int, budget: Budget, settings: BlockSettings, run: Run, order: Order) -> _Outcome:
    """Propose a subspace per block and aggregate the proposals.

    Guarantee
    ---------
    (budget.epsilon, budget.delta)-differentially private for replace-one neighbours.
    Proof: docs/explanation/approximate-case.md.
    """
    if settings.aggregate == "stable":
        m = settings.stable_block_size(len(table), k)
        blocks = block_bases(table, k, m, order=order)
        subspace, numbers, parts = stable_group_step(
            blocks.bases, blocks.votes, budget=budget, run=run, **settings.options
        )
        return subspace, {"k": k, "block_size": m, **numbers}, parts
    settings, shape = settings.within_partitions(table, k, budget)
    plan = settings.histogram_plan(shape, k, budget)
    blocks = block_bases(table, k, plan.block_size, order=order)
    basis, side, parts = histogram_step(blocks, plan, delta=budget.delta, run=run)
    numbers = {**asdict(plan), "side": side, "error_bound": plan.error(table.shape[1], k, side)}
    return None if basis is None else Subspace(basis), {"k": k, **numbers}, parts


def _prepare_choice(
    table: Table, max_components: int | None, budget: Budget, settings: BlockSettings, shuffle: bool
) -> Learn:
    """Let the blocks vote for k with a part of epsilon, then run with the rest."""
    if max_components is None:
        raise ParameterError('{max_components} must be given with {k:"auto"}.')
    checks.integer_at_least(1, max_components=max_components)
    blocks = table.blocks(planner_blocks.rank_block_size(max_components))
    rank_epsilon = planner_blocks.rank_epsilon(blocks, max_components, budget.epsilon)
    rest = budget.less(rank_epsilon)
    # Refused for the largest k, before a value is read: a refusal after the vote would come with its cost.
    settings.check_table(table, max_components, rest)
    if not table.local:  # there a smaller k may leave fewer blocks, and the vote may choose it
        for smaller in range(1, max_components):
            settings.check_table(table, smaller, rest)
    check_choice(table, max_components)

    def learn(run: Run) -> Release:
        rows, order = table.deal(run.streams.public) if shuffle else (table, None)
        k = choose_dimension(rows, max_components, epsilon=rank_epsilon, run=run, order=order)
        subspace, parameters, parts = block_step(rows, k, rest, settings, run, order)
        cost = budget.cost(Part("choice of the dimension", rank_epsilon, 0.0), *parts)
        method = f"approximate ({settings.aggregate}), dimension chosen"
        told = {**parameters, "max_components": max_components}
        return Release(subspace, cost, method, told, run.private, {"n_components": k})

    return learn
