"""The exact subspace (the paper's DPESE, repaired): find the subspace that holds the records, exactly, or abstain.

The paper's algorithm as printed takes the argmax of noisy gaps over candidates built from the data, which is not
private (``docs/explanation/errata.md``). Here the best subspace is released with a probability that depends on one
integer margin of sensitivity one, and nothing else is ever released.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privspan._lib import checks
from privspan._lib.errors import Parameter, ParameterError
from privspan._lib.watch import rows_seen
from privspan.exact.arithmetic import IntegerRows, integer_rows
from privspan.exact.enumeration import gap_winner
from privspan.exact.plan import DEFAULT_MAX_BITS, DEFAULT_MAX_WORK, ExactMethod, ExactPlan, ExactRule, plan_exact
from privspan.exact.search import majority_winner
from privspan.exact.votes import vote_winner
from privspan.privacy import Budget, Part, Release
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.randomness import RandomLike, Streams
from privspan.privacy.run import Learn, Run
from privspan.privacy.selection import RELEASE_RULES, ReleaseRule
from privspan.rows import PartitionedTable, RowSource
from privspan.rows.columns import column_names
from privspan.subspace import Subspace
from privspan.subspace.relations import ExactForm

_OPTIONS: checks.Checks = {
    "max_work": partial(checks.integer_at_least, 1),
    "max_bits": lambda max_bits: _whole("max_bits", max_bits, 64, 4096),
}
_DEFAULTS = {"max_work": DEFAULT_MAX_WORK, "max_bits": DEFAULT_MAX_BITS}


def exact_subspace(
    X: ArrayLike | RowSource | PartitionedTable,
    k: int,
    *,
    epsilon: float,
    delta: float,
    affine: bool = False,
    decimals: int | None = None,
    names: Sequence[str] | None = None,
    person: object = None,
    method: ExactMethod = "auto",
    rule: ExactRule = "majority",
    release: ReleaseRule = "optimal",
    block_size: int | None = None,
    options: Mapping[str, object] | None = None,
    rng: RandomLike = None,
    ledger: LedgerLike = None,
    **settings: object,
) -> Release:
    """Find the k-dimensional subspace that holds most records exactly, privately, or abstain.

    The number of records that it needs does not depend on the number of columns: at epsilon = 1, delta = 1e-6
    sixty records in general position are enough for k = 3 in any dimension.

    Parameters
    ----------
    X : (n, d) array of real numbers, memory map, dense RowSource, or Dask array or dataframe
        One person per row. Integers and booleans are taken as they are; a floating-point number is the binary
        fraction that it stores, so ``0.1 + 0.2`` is not ``0.3`` unless `decimals` is given. A row with a value
        that is not finite counts as zero.
    k : int
        Dimension of the subspace.
    epsilon, delta : float
        The guarantee.
    affine : bool, default=False
        Look for an affine subspace of dimension k: one that need not contain the origin. The subspace returned
        then has an `offset`, and its relations have constants.
    decimals : int, optional
        Round every value to that many decimals, record by record, and treat the result as exact, so that
        0.10 + 0.20 = 0.30 holds.
    names : sequence of str, optional
        Column names, public, for the wording of relations. A data frame or a file lends its own.
    person : (n,) array-like or str, optional
        Who each row belongs to, where people have several rows: one id per row, or the name of the column of `X` that
        holds the ids. One row of each person is then drawn; the guarantee is for persons, and n is their number:
        docs/explanation/several-rows.md.
    method : {"auto", "gap-max", "votes"}, default="auto"
        ``"gap-max"`` needs the fewest records and work that grows like ``n ** (k - 1)``; ``"votes"`` is polynomial
        and needs about 42 blocks of at least k records. ``"auto"`` takes gap-max when it fits `max_work`; the
        choice depends on n, k, delta and the other parameters alone.
    rule : {"majority", "gap"}, default="majority"
        How gap-max turns scores into a margin. ``"gap"`` compares with the second-best subspace, which tolerates
        up to about a third of the records elsewhere instead of a quarter, for n times the work. Votes always
        compare with the second-best span.
    release : {"optimal", "truncated-laplace"}, default="optimal"
        See :func:`privspan.privacy.selection.release_probability`.
    block_size : int, optional
        Records per block of the votes, at least k; the planner chooses by default.
    options : mapping, optional
        Expert settings by name, each also taken as a keyword argument: public, never chosen by looking at the data.
        ``max_work`` (int, 10**8 by default): refuse gap-max before any data is touched when it would look at more
        points than this. ``max_bits`` (int, 256 by default, at most 4096): a row whose values, scaled to integers,
        need more bits counts as zero.
    rng : None, int, SeedSequence or Generator, optional
        None draws from the operating system. A seed is for tests: the release then says ``private=False``.
    ledger : path, Ledger or Page, optional
        Where the budget is charged, before any data are read; see :class:`privspan.ledger.Ledger`.

    Returns
    -------
    Release
        ``release.subspace`` is exact: ``release.subspace.exact`` is its rational reduced row echelon form and
        ``release.subspace.relations()`` the integer relations that hold on it. It is None after an abstention.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy for replace-one neighbours; n, d and all parameters are public. It holds
    for all data. No assumption on the data is made but that each person contributes one row. An abstention costs
    the same. With `person`, for replacing one person. Proof: ``docs/explanation/exact-case.md``,
    ``docs/explanation/several-rows.md``.

    Examples
    --------
    >>> import numpy as np
    >>> from privspan import exact_subspace
    >>> rng = np.random.default_rng(0)
    >>> parts = rng.integers(0, 100, (60, 2))
    >>> table = np.column_stack([parts, parts.sum(axis=1)])
    >>> found = exact_subspace(table, 2, epsilon=1.0, delta=1e-6, rng=0)
    >>> [relation.describe(["a", "b", "total"]) for relation in found.subspace.relations()]
    ['total = a + b']
    """
    with Call("exact_subspace", epsilon, delta, rng, ledger, X, person, k) as call:
        learn = prepare_exact(
            call,
            call.persons(X, person),
            k,
            call.budget,
            affine=affine,
            method=method,
            rule=rule,
            release=release,
            decimals=decimals,
            block_size=block_size,
            names=names,
            options=options,
            **settings,
        )
        return call.finish(learn(call.begin()))


def prepare_exact(
    call: Call,
    X: object,
    k: int,
    budget: Budget,
    *,
    affine: bool = False,
    method: ExactMethod = "auto",
    rule: ExactRule = "majority",
    release: ReleaseRule = "optimal",
    decimals: int | None = None,
    block_size: int | None = None,
    names: Sequence[str] | None = None,
    options: Mapping[str, object] | None = None,
    **settings: object,
) -> Learn:
    """Refuse what `exact_subspace` refuses, from public facts alone, and return what does the rest with a run."""
    checks.one_of(get_args(ExactMethod), method=method)
    checks.one_of(get_args(ExactRule), rule=rule)
    checks.one_of(RELEASE_RULES, release=release)
    decimals = None if decimals is None else _whole("decimals", decimals, 0, 300)
    block_size = None if block_size is None else _whole("block_size", block_size, 1)
    expert = _DEFAULTS | checks.options(_OPTIONS, options, settings)
    source = call.open(X, accept_sparse=False).here()
    checks.dimension(k=k, d=source.shape[1], n=source.shape[0])
    if names is None:
        names = column_names(X) if source.names is None else source.names
    elif len(names) != source.shape[1] or not all(isinstance(name, str) for name in names):
        template = "{names} must hold {d} strings, one per column; got {got} entries."
        raise ParameterError(template, d=source.shape[1], got=len(names))
    # Python's integers from here on: those of NumPy have 64 bits.
    k, max_bits, max_work = int(k), int(expert["max_bits"]), int(expert["max_work"])
    rank = k + bool(affine)  # dimension of the linear problem: an affine one gets a constant column
    plan = plan_exact(
        len(source), rank, epsilon=budget.epsilon, delta=budget.delta, method=method, rule=rule, release=release,
        max_work=max_work, block_size=block_size,
    )  # fmt: skip

    def learn(run: Run) -> Release:
        table = np.asarray(source)  # a file is read as a whole
        rows_seen(len(table))
        rows = integer_rows(table, decimals=decimals, homogeneous=bool(affine), max_bits=max_bits)
        decision, search = budget.reserve_delta(plan.search_share)
        winner, margin = _winner(rows, rank, plan, search / 2, max_bits, run.streams)
        released = run.decide(margin, decision.epsilon, decision.delta, release)
        parts = [Part("release or abstain", decision.epsilon, decision.delta)]
        if search:
            parts.append(Part("search may miss the winner", 0.0, search))
        return Release(
            subspace=Subspace.from_exact(winner, names) if released and winner is not None else None,
            cost=budget.cost(*parts),
            method=f"exact/{plan.method}",
            parameters=_public_parameters(table, k, plan, release, affine, decimals),
            private=run.private,
        )

    return learn


def _whole(name: str, value: int, least: int, most: float = math.inf) -> int:
    """Return a parameter, checked, as an integer of Python's: those of NumPy have 64 bits."""
    checks.integer_at_least(least, **{name: value})
    if value > most:
        raise ParameterError(
            "{name} must be at most {most}; got {value!r}.", name=Parameter(name), most=most, value=value
        )
    return int(value)


def _winner(
    rows: IntegerRows, k: int, plan: ExactPlan, failure: float, max_bits: int, streams: Streams
) -> tuple[ExactForm | None, int]:
    """The candidate and its margin; neither leaves this module unless the release is decided."""
    if plan.method == "votes":
        return vote_winner(rows, k, block_size=plan.block_size, streams=streams)
    if plan.rule == "gap":
        return gap_winner(rows, k, streams.charged)
    return majority_winner(rows, k, failure=failure, max_bits=max_bits, bits=streams.charged)


def _public_parameters(
    table: NDArray[np.generic], k: int, plan: ExactPlan, release: str, affine: bool, decimals: int | None
) -> dict[str, object]:
    n, d = table.shape
    public = {"n": n, "d": d, "k": k, "release": release, "affine": bool(affine), "decimals": decimals}
    if plan.method == "votes":
        return public | {"block_size": plan.block_size, "blocks": plan.blocks}
    return public | {"rule": plan.rule}
