"""Private PCA: how one budget pays for components, variances and a mean.

Steps, each with its share: choose the dimension (only for ``k="auto"``), learn the subspace of the centred rows,
release the variances along it and in total, release the mean.  Which way the rows are centred and which method learns
the subspace follows from public numbers and the released k.
Proofs: docs/explanation/planning.md, docs/explanation/everyday-pca.md, docs/explanation/private-mean.md.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from privspan._lib import checks
from privspan._lib.entry import entry, outside
from privspan._lib.readable import Note
from privspan.approximate import BlockSettings
from privspan.blocks import plan as planner_blocks
from privspan.blocks.rank import choose_dimension
from privspan.planner import Plan, plan_within
from privspan.privacy import Budget, Part, PrivacyCost, Release, share_mu
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import RandomLike, open_streams
from privspan.private import ALGORITHMS, PRIVATE_METHODS, Method, PrivateMethod, UselessPlanWarning, methods_for
from privspan.rows import PartitionedTable
from privspan.rows.dealing import block_count
from privspan.rows.unit import as_rows_input, is_sparse
from privspan.subspace import Subspace
from privspan.sums.mean import PrivateMean, less_mean, mean_within, pair_differences
from privspan.sums.variance import variance_within

PCA_METHODS = tuple(method for method in PRIVATE_METHODS if method != "exact")

# Shares of mu² for methods that compose in mu, of epsilon and delta for the others.
_SHARES = {
    "pair differences": {"subspace": 0.82, "variances": 0.08, "mean": 0.1},
    "private mean": {"subspace": 0.74, "variances": 0.06, "mean": 0.2},
    "none": {"subspace": 0.94, "variances": 0.06},
}
_STEPS = ("pairing", "dimension", "subspace", "variances", "mean")  # in the order of the seeds' children
_DEFAULT_MOST_COMPONENTS = 10  # a vote among more would take more rows than most tables have
_LARGEST_MEAN_ERROR = 0.3  # of a component's standard deviation; a larger one could pass for a component


@entry
def private_pca(
    X: object,
    k: int | Literal["auto"],
    *,
    epsilon: float,
    delta: float,
    center: bool = True,
    method: PrivateMethod = "auto",
    gamma: float | None = None,
    norm_bound: float | None = None,
    max_components: int | None = None,
    rng: RandomLike = None,
) -> Release:
    """Learn the principal components of a table, their variances and the mean, under differential privacy.

    For any table of numbers with one row per person: no bound on the values is asked for, and the method is chosen
    by the planner.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row, at least two.  Sparse tables are never densified; only "adaptive" and "analyze-gauss"
        take them.
    k : int or "auto"
        Number of components.  "auto" chooses it privately, at a part of epsilon.
    epsilon, delta : float
        The guarantee for everything that is released, together.
    center : bool, default=True
        Whether to take the mean away.  Without a `norm_bound` this works on differences of pairs of rows, which needs
        no bound and no mean but halves the number of rows: about twice the error where privacy limits it.  With a
        `norm_bound` and enough rows a private mean is subtracted instead, when the planner predicts less error.
    method : {"auto", "adaptive", "stable", "approximate", "analyze-gauss"}, default="auto"
        How the subspace is learnt; "auto" follows :func:`privspan.plan`.
    gamma : float, optional
        Standard deviation of the tail's largest direction over that of the last component, if it is public
        knowledge; used by "approximate", and for predictions (of "auto", and how to centre), only.
    norm_bound : float, optional
        A public bound on the length of rows; longer rows are shortened to it where the mean is computed.
    max_components : int, optional
        Largest number of components considered with ``k="auto"``; by default 10, or less where the table has fewer
        columns.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.

    Returns
    -------
    Release
        The basis of ``subspace`` is ordered by falling private variance, and the subspace goes through the mean when
        centred; None after an abstention, which only "stable" and "approximate" know.  ``extras`` hold
        ``explained_variance`` (k,), ``explained_variance_ratio`` (k,), ``total_variance``, ``mean`` (d,) and, with
        ``k="auto"``, ``n_components``; ``parameters`` tell the ``centring``.

    Warns
    -----
    UselessPlanWarning
        If "auto" finds no method that is predicted to do better than an error of .5.
    WeakPrivacyWarning
        If the budget promises little for so many rows, as every private function warns.

    See Also
    --------
    privspan.PrivatePCA : the same as a scikit-learn estimator.
    privspan.private_subspace : the subspace alone, without centring and variances.

    Notes
    -----
    Of mu², the subspace gets 82 %, the mean 10 % and the variances 8 % (74, 20 and 6 with a private mean; 94 and 6
    without centring).  Methods that are not Gaussian throughout get the same shares of epsilon and delta.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy for replace-one neighbours and every data set; n, d and all parameters are
    public.  Assumed: each person is one row, and `rng` is None.  Proof: docs/explanation/planning.md.

    Examples
    --------
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(20_000, 30, 2, gamma_w=0.1, rng=0)
    >>> release = private_pca(X + 1.0, 2, epsilon=1.0, delta=1e-6, rng=0)
    >>> bool(release.subspace.distance(truth) < 0.05), release.extras["explained_variance"].shape
    (True, (2,))
    """
    settings = PCASettings(k, epsilon, delta, center, method, gamma, norm_bound, max_components)
    return settings.learn(X, rng)[0]


@dataclass(frozen=True)
class PCASettings:
    """The public choices of one private PCA, named as in `private_pca`, and the steps that follow from them."""

    k: int | Literal["auto"]
    epsilon: float
    delta: float
    center: bool = True
    method: str = "auto"
    gamma: float | None = None
    norm_bound: float | None = None
    max_components: int | None = None

    def __post_init__(self) -> None:
        """Refuse values that no table could make sense of."""
        checks.budget(self.epsilon, self.delta)
        checks.one_of(PCA_METHODS, method=self.method)
        if not isinstance(self.center, bool | np.bool_):
            raise TypeError("`center` must be True or False.")
        if self.norm_bound is not None:
            checks.moderate(norm_bound=self.norm_bound)
        if self.gamma is not None:
            checks.probability(gamma=self.gamma)

    @entry
    def learn(self, X: object, rng: RandomLike = None, names: Sequence[str] | None = None) -> tuple[Release, Plan]:
        """Do what `private_pca` promises; return the plan, which is public, beside the release.

        Names of the columns are those of a source that knows them, if none are given.
        """
        source, budget = self._checked(X), Budget(self.epsilon, self.delta)
        seeds = dict(zip(_STEPS, independent_seeds(rng, len(_STEPS)), strict=True))
        pairs = pair_differences(source, seeds["pairing"]) if self.center else source
        k, rest, voting = self._choose_dimension(pairs, budget, seeds["dimension"])
        course = self._course(source, pairs, k, rest)
        if self.method == "auto" and not course.plan.useful:  # before most is spent: a warning may be made an error
            warnings.warn(course.plan.reason, UselessPlanWarning, stacklevel=outside())
        found = self._run(source, pairs, k, course, seeds)
        cost = budget.cost(*voting, *found.parts(course.method))
        release = found.release(cost, names or getattr(source, "names", None))
        if self.k == "auto":
            release = replace(release, extras={**release.extras, "n_components": k})
        return release, course.plan

    # ---- Refusals, from public facts alone -------------------------------------------------------------------------

    @entry
    def check(self, X: object) -> None:
        """Refuse what `learn` would refuse, from types and shapes alone: no value is read and nothing is spent."""
        self._checked(X)

    def _checked(self, X: object) -> Any:
        """Return the table as the steps take it, or refuse what cannot be done with it."""
        sparse = takes_sparse(self.method)
        source = as_rows_input(X, min_rows=2, accept_sparse=sparse, accept_partitions=True)
        pairs = _shape_of_pairs(source) if self.center else source
        if self.k != "auto":
            self._check_number(self.k, min(pairs.shape))
        self._check_blocks(source, pairs, Budget(self.epsilon, self.delta))
        return source

    def _check_number(self, k: int, most: int) -> None:
        checks.integer_at_least(1, k=k)
        if k > most:
            what = "pairs of rows" if self.center else "rows"
            smaller = f"{most}, the smaller of the number of columns and of {what}"
            raise ValueError(f"`k` must be at most {smaller}; got {int(k)}.")
        if self.max_components is not None:
            raise ValueError('`max_components` must be given only with `k="auto"`.')

    def _check_blocks(self, source: Any, pairs: Any, budget: Budget) -> None:
        """Refuse what blocks would refuse, for every k that may be chosen: later, something would be spent."""
        # The planner takes blocks only where there are two of them, but does not know how partitions cut them.
        if self.method != "approximate" and not (self.method == "auto" and isinstance(source, PartitionedTable)):
            return
        considered, epsilon = self._vote(pairs, budget)
        rest = Budget(planner_blocks.remainder(budget.epsilon, epsilon), budget.delta)
        for k in considered[: min(pairs.shape)]:
            course = self._course(source, pairs, k, rest)
            if course.plan.method != "approximate":
                continue
            by_pairs = course.centring == "pair differences"
            try:
                settings = BlockSettings(gamma=self.gamma)
                settings.check_table(pairs if by_pairs else source, k, course.ledgers["subspace"].budget)
            except ValueError as refusal:
                if by_pairs:
                    refusal.add_note(Note("Centring makes one row of every two."))
                raise

    # ---- Decisions -------------------------------------------------------------------------------------------------

    def _choose_dimension(self, rows: Any, budget: Budget, seed: RandomLike) -> tuple[int, Budget, tuple[Part, ...]]:
        """Return k, the budget that is left, and what choosing k cost."""
        considered, epsilon = self._vote(rows, budget)
        if self.k != "auto":
            return considered[0], budget, ()
        k = choose_dimension(rows, considered[-1], epsilon=epsilon, bits=open_streams(seed).noise)
        rest = Budget(planner_blocks.remainder(budget.epsilon, epsilon), budget.delta)
        return k, rest, (Part("choice of the dimension", epsilon, 0.0),)

    def _vote(self, rows: Any, budget: Budget) -> tuple[range, float]:
        """Return the dimensions among which k is chosen, and the epsilon of choosing."""
        if self.k != "auto":
            return range(int(self.k), int(self.k) + 1), 0.0
        most = self.max_components
        if most is None:
            most = min(_DEFAULT_MOST_COMPONENTS, rows.shape[1] - 1, rows.shape[0] // 2 - 1)
        checks.integer_at_least(1, max_components=most)
        blocks = block_count(rows, planner_blocks.rank_block_size(most))
        return range(1, int(most) + 1), planner_blocks.rank_epsilon(blocks, most, budget.epsilon)

    def _course(self, source: Any, pairs: Any, k: int, rest: Budget) -> _Course:
        """Choose from public numbers how to go on once k is known, and share the budget out."""
        centring = self._centring(source, k, rest)
        weights = _SHARES[centring]
        mus = share_mu(rest.mu, *weights.values())
        n, d = (source if centring == "private mean" else pairs).shape
        methods = methods_for(source) if self.method == "auto" else (self.method,)
        chosen = plan_within(n, d, k, Budget.for_mu(mus[0], rest.delta), self.gamma, methods)
        if ALGORITHMS[chosen.method].within is not None:  # such steps compose in mu
            ledgers = [MuLedger(rest, mu, f"{step}: ") for step, mu in zip(weights, mus, strict=True)]
        else:
            ledgers = [MuLedger(budget) for budget in rest.split([*weights.values()])]
        return _Course(centring, chosen, dict(zip(weights, ledgers, strict=True)))

    def _centring(self, source: Any, k: int, budget: Budget) -> str:
        if not self.center:
            return "none"
        in_mu = self.method == "auto" or ALGORITHMS[self.method].within is not None
        by_mean = self.norm_bound is not None and in_mu and not is_sparse(source)
        n, d = source.shape
        better = by_mean and mean_is_better(n, d, k, budget, self.gamma)
        return "private mean" if better else "pair differences"

    # ---- Private steps ---------------------------------------------------------------------------------------------

    def _run(self, source: Any, pairs: Any, k: int, course: _Course, seeds: dict[str, RandomLike]) -> _Found:
        """Learn the mean, the subspace of the centred rows, and the variances along it."""
        mean, rows, ledgers = None, pairs, course.ledgers
        if self.center:
            mean = mean_within(ledgers["mean"], source, None, self.norm_bound, seeds["mean"])
            if course.centring == "private mean":
                rows = less_mean(source, mean.mean)  # (n, d); post-processing of each record by a released vector
        method, ledger = course.method, ledgers["subspace"]
        if method.within is not None:
            subspace = method.within(ledger, rows, k, seeds["subspace"])
        else:
            numbers: dict[str, Any] = {"epsilon": ledger.budget.epsilon, "delta": ledger.budget.delta}
            numbers |= {"gamma": self.gamma} if method.gamma else {}
            subspace = method.function(rows, k, **numbers, rng=seeds["subspace"])
        # After an abstention the variances are those along the first axes: nothing depends on having abstained.
        along = subspace.subspace or Subspace(np.eye(int(source.shape[1]), k))
        variances = variance_within(ledgers["variances"], rows, along, None, seeds["variances"])
        return _Found(subspace, variances, mean, course.centring)


@dataclass(frozen=True)
class _Course:
    """How to go on once k is known."""

    centring: str
    plan: Plan
    ledgers: dict[str, MuLedger]  # of each step

    @property
    def method(self) -> Method:
        return ALGORITHMS[self.plan.method]


@dataclass(frozen=True)
class _Found:
    """What the steps released, before it is put together."""

    subspace: Release
    variances: Release
    mean: PrivateMean | None
    centring: str

    def parts(self, method: Method) -> list[Part]:
        """List what was spent: every Gaussian step by its mu, or the whole of each step where they add up."""
        steps = {"subspace": self.subspace, "variances": self.variances, "mean": self.mean}
        costs = {step: made.cost for step, made in steps.items() if made is not None}
        if method.within is not None:
            return [part for cost in costs.values() for part in cost.parts]
        return [Part(step, cost.epsilon, cost.delta) for step, cost in costs.items()]

    def release(self, cost: PrivacyCost, names: Sequence[str] | None) -> Release:
        """Put the steps together: components by variance, each with its largest entry positive."""
        turned = self.variances.subspace
        assert turned is not None
        d, k = turned.basis.shape
        largest = np.abs(turned.basis).argmax(axis=0)
        basis = turned.basis * np.where(turned.basis[largest, np.arange(k)] < 0, -1.0, 1.0)  # (d, k)
        offset = None if self.mean is None else self.mean.mean
        extras: dict[str, Any] = {**self.variances.extras, "mean": np.zeros(d) if offset is None else offset}
        if self.centring == "pair differences":  # whose variances are twice those of the rows
            extras |= {name: extras[name] / 2.0 for name in ("explained_variance", "total_variance")}
        found = Subspace(basis, offset=offset, names=tuple(names) if names else None)
        parameters = {**self.subspace.parameters, "centring": self.centring}
        return Release(
            None if self.subspace.abstained else found,
            cost,
            _label(self.subspace.method),
            parameters,
            self.subspace.private,
            extras,
        )


def _label(subspace: str) -> str:
    """Return what a release says of how it was made, given how its subspace was."""
    return f"private PCA ({subspace})"


BY_PCA = tuple(
    replace(
        method,
        labels=tuple(map(_label, method.labels)),
        function=private_pca,
        call="private_pca",
        options={"method": method.name},
        repeats=(),
        command=f"--method {method.name}",
    )
    for method in ALGORITHMS.values()
    if method.name in PCA_METHODS
)
"""The methods as ways to learn the subspace of a private PCA."""


def takes_sparse(method: str) -> bool:
    """Tell whether a private PCA by this method, or by the one that "auto" chooses, takes sparse tables."""
    return method == "auto" or (method in PCA_METHODS and ALGORITHMS[method].sparse)


def mean_is_better(n: int, d: int, k: int, budget: Budget, gamma: float | None) -> bool:
    """Tell whether subtracting a private mean is predicted to do better than differences of pairs.

    Pairs leave n/2 rows.  The mean of rows no longer than R is off by 2R√d/(μn); for rows about as long as that, that
    is an error of 2√(dk)/(μn) in units of a component's standard deviation, and adds to the tail energy.  All of it
    lies in one direction, so a large one would pass for a component.
    """
    by_pairs = plan_within(max(n // 2, 1), d, k, budget, gamma)
    tail_share = by_pairs.gamma * math.sqrt(max(d - k, 1))
    mean_error = 2.0 * math.sqrt(d * k) / (budget.mu * math.sqrt(_SHARES["private mean"]["mean"]) * n)
    longer = math.hypot(tail_share, mean_error) / math.sqrt(max(d - k, 1))
    if mean_error > _LARGEST_MEAN_ERROR or longer >= 1.0:
        return False
    by_mean = plan_within(n, d, k, budget, longer)
    return by_mean.alternatives[0].error < by_pairs.error


def independent_seeds(rng: RandomLike, count: int) -> list[RandomLike]:
    """Give every private step its own randomness, so that no two steps share noise.

    None stays None: each step then draws from the operating system.  A Generator or RandomState is advanced by each
    step that uses it.  From a fixed seed one child per step is derived, always the same ones.
    """
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool) and rng >= 0:
        rng = np.random.SeedSequence(int(rng))
    if not isinstance(rng, np.random.SeedSequence):
        return [rng] * count
    key = rng.spawn_key  # not `spawn`, which would change the sequence of the caller
    return [np.random.SeedSequence(rng.entropy, spawn_key=(*key, index)) for index in range(count)]


def _shape_of_pairs(source: Any) -> Any:
    """Return a stand-in for the differences of pairs, of which only the numbers of rows mean anything."""
    if isinstance(source, PartitionedTable):
        return replace(source, lengths=tuple(length // 2 for length in source.lengths))
    return np.broadcast_to(0.0, (source.shape[0] // 2, source.shape[1]))
