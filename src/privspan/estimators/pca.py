"""``PrivatePCA``: principal components under differential privacy, for everyday tables.

Steps, each with its share of one budget: choose the dimension (only for ``n_components="auto"``), learn the subspace
of the centred rows, release the variances along it and in total, release the mean.
Proofs: ``docs/explanation/planning.md``, ``docs/explanation/everyday-pca.md``, ``docs/explanation/private-mean.md``.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from privspan._lib import checks
from privspan._lib.entry import entry
from privspan._lib.readable import Note
from privspan.approximate import BlockSettings
from privspan.blocks import plan as planner_blocks
from privspan.blocks.rank import choose_dimension
from privspan.estimators._base import SubspaceEstimator, independent_seeds
from privspan.estimators._pca_steps import PCASteps
from privspan.planner import Plan, plan_within
from privspan.privacy import Budget, Part, Release, share_mu
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import RandomLike, open_streams
from privspan.private import (
    GAUSSIAN_METHODS,
    PRIVATE_METHODS,
    PrivateMethod,
    UselessPlanWarning,
    methods_for,
)
from privspan.rows import PartitionedTable
from privspan.rows.dealing import block_count
from privspan.rows.unit import as_rows_input, is_sparse
from privspan.sums.mean import pair_differences

_DEFAULT_MOST_COMPONENTS = 10

# Shares of mu² for methods that are Gaussian throughout, of epsilon and delta for the others.
_SHARES = {
    "pair differences": {"subspace": 0.82, "variances": 0.08, "mean": 0.1},
    "private mean": {"subspace": 0.74, "variances": 0.06, "mean": 0.2},
    "none": {"subspace": 0.94, "variances": 0.06},
}
_LARGEST_MEAN_ERROR = 0.3  # of a component's standard deviation
_STEPS = ("pairing", "dimension", "subspace", "variances", "mean")


class PrivatePCA(SubspaceEstimator):
    """Principal component analysis under differential privacy.

    For any table of numbers with one row per person: no bound on the values is asked for, and the method is chosen
    by the planner. What ``fit`` stores is private. ``transform`` is not: it shows a row per person.

    Parameters
    ----------
    n_components : int or "auto"
        Number of components. "auto" chooses it privately, at a part of epsilon.
    epsilon, delta : float
        The guarantee for everything that ``fit`` stores, together.
    center : bool, default=True
        Whether to take the mean away. Without a `norm_bound` this works on differences of pairs of rows, which needs
        no bound and no mean but halves the number of rows: about twice the error where privacy limits it. With a
        `norm_bound` and enough rows a private mean is subtracted instead, when the planner predicts less error.
    method : {"auto", "adaptive", "stable", "approximate", "analyze-gauss"}, default="auto"
        How the subspace is learnt; "auto" follows :func:`privspan.plan`.
    gamma : float, optional
        Standard deviation of the tail's largest direction over that of the last component, if it is public
        knowledge; used by "approximate", and for predictions (of ``plan_``, "auto", and how to centre), only.
    norm_bound : float, optional
        A public bound on the length of rows; longer rows are shortened to it where the mean is computed.
    max_components : int, optional
        Largest number of components considered with ``n_components="auto"``; by default 10, or less where the
        table has fewer columns.
    random_state : None, int, SeedSequence, Generator or RandomState, default=None
        None draws from the operating system. Anything else makes the fit repeatable and **not private**; two fits
        with one seed draw the same noise, and their difference reveals a record.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Orthonormal rows, by falling private variance.
    explained_variance_ : (n_components,) array
        Private variances along the components.
    explained_variance_ratio_ : (n_components,) array
        The same over the total, which is private too.
    total_variance_ : float
    mean_ : (n_features,) array
        Private mean; zeros when ``center=False``.
    n_components_, n_features_in_ : int
    subspace_ : Subspace
        Affine, through `mean_`, when centred.
    plan_ : Plan
        What was predicted, from public numbers.
    release_ : Release
        What was released; its ``cost`` is that of all fitted attributes together.
    succeeded_ : bool
        False after an abstention, which only "stable" and "approximate" know.

    See Also
    --------
    privspan.private_subspace : the subspace alone, without centring and variances.
    privspan.plan : what to expect before looking at data.

    Notes
    -----
    Of mu², the subspace gets 82 %, the mean 10 % and the variances 8 % (74, 20 and 6 with a private mean; 94 and 6
    without centring). Methods that are not Gaussian throughout get the same shares of epsilon and delta.
    Every ``fit`` spends the budget again: cross-validation with f folds costs f + 1 budgets.

    Guarantee
    ---------
    The fitted attributes together are (epsilon, delta)-differentially private for replace-one neighbours, for all
    data, when `random_state` is None and each person is one row; the number of rows and columns and all parameters
    are public. ``transform`` of private rows is not private. Proof: ``docs/explanation/planning.md``.

    Examples
    --------
    >>> import warnings
    >>> from privspan import NotPrivateWarning
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(20_000, 30, 2, gamma_w=0.1, rng=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotPrivateWarning)
    ...     model = PrivatePCA(2, epsilon=1.0, delta=1e-6, random_state=0).fit(X + 1.0)
    >>> bool(model.subspace_.distance(truth) < 0.05), model.release_.cost.epsilon
    (True, 1.0)
    """

    def __init__(
        self,
        n_components: int | Literal["auto"],
        *,
        epsilon: float,
        delta: float,
        center: bool = True,
        method: PrivateMethod = "auto",
        gamma: float | None = None,
        norm_bound: float | None = None,
        max_components: int | None = None,
        random_state: RandomLike = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.center = center
        self.method = method
        self.gamma = gamma
        self.norm_bound = norm_bound
        self.max_components = max_components
        self.random_state = random_state

    def _takes_sparse(self) -> bool:
        return self.method in ("auto", *GAUSSIAN_METHODS)

    def _release(self, X: Any, names: list[str] | None) -> Release:
        budget = self._checked(X)
        seeds = dict(zip(_STEPS, independent_seeds(self.random_state, len(_STEPS)), strict=True))
        pairs = pair_differences(X, seeds["pairing"]) if self.center else X
        k, rest, voting = self._choose_dimension(pairs, budget, seeds["dimension"])
        course = self._course(X, pairs, k, rest)
        self.plan_ = course.plan
        if self.method == "auto" and not course.plan.useful:  # before most is spent: a warning may be made an error
            warnings.warn(course.plan.reason, UselessPlanWarning, stacklevel=3)
        steps = PCASteps(course.ledgers, seeds, course.plan.method, self.gamma, self.norm_bound)
        found = steps.run(X, pairs, k, course.centring)
        parts = (*voting, *found.parts(gaussian=course.plan.method in GAUSSIAN_METHODS))
        return found.release(budget, parts, names, self.n_components == "auto")

    @entry
    def check_table(self, X: Any) -> None:
        """Refuse what ``fit`` would refuse, from types and shapes alone: no value is read and nothing is spent.

        Parameters
        ----------
        X : as for ``fit``
        """
        self._checked(as_rows_input(X, min_rows=2, accept_sparse=self._takes_sparse(), accept_partitions=True))

    def _checked(self, X: Any) -> Budget:
        """Refuse, from public facts alone, what cannot be done."""
        budget = Budget(self.epsilon, self.delta)
        checks.one_of([method for method in PRIVATE_METHODS if method != "exact"], method=self.method)
        if not isinstance(self.center, bool | np.bool_):
            raise TypeError("`center` must be True or False.")
        if self.norm_bound is not None:
            checks.moderate(norm_bound=self.norm_bound)
        if self.gamma is not None:
            checks.probability(gamma=self.gamma)
        pairs = _shape_of_pairs(X) if self.center else X
        self._check_number(pairs.shape)
        self._check_blocks(X, pairs, budget)
        return budget

    def _check_number(self, shape: tuple[int, int]) -> None:
        """Refuse a number of components that the shape rules out."""
        if self.n_components == "auto":
            return
        checks.integer_at_least(1, n_components=self.n_components)
        if self.n_components > min(shape):
            what = "pairs of rows" if self.center else "rows"
            most = f"{min(shape)}, the smaller of the number of columns and of {what}"
            raise ValueError(f"`n_components` must be at most {most}; got {int(self.n_components)}.")
        if self.max_components is not None:
            raise ValueError('`max_components` must be given only with `n_components="auto"`.')

    def _check_blocks(self, X: Any, pairs: Any, budget: Budget) -> None:
        """Refuse what blocks would refuse, for every k that may be chosen: later, something would be spent."""
        # The planner takes blocks only where there are two of them, but does not know how partitions cut them.
        if self.method != "approximate" and not (self.method == "auto" and isinstance(X, PartitionedTable)):
            return
        considered, epsilon = self._vote(pairs, budget)
        rest = budget.less(epsilon)
        for k in considered[: min(pairs.shape)]:
            course = self._course(X, pairs, k, rest)
            if course.plan.method != "approximate":
                continue
            by_pairs = course.centring == "pair differences"
            try:
                settings = BlockSettings(gamma=self.gamma)
                settings.check_table(pairs if by_pairs else X, k, course.ledgers["subspace"].budget)
            except ValueError as refusal:
                if by_pairs:
                    refusal.add_note(Note("Centring makes one row of every two."))
                raise

    def _choose_dimension(self, rows: Any, budget: Budget, seed: RandomLike) -> tuple[int, Budget, tuple[Part, ...]]:
        """Return k, the budget that is left, and what choosing k cost."""
        considered, epsilon = self._vote(rows, budget)
        if self.n_components != "auto":
            return considered[0], budget, ()
        k = choose_dimension(rows, considered[-1], epsilon=epsilon, bits=open_streams(seed).noise)
        return k, budget.less(epsilon), (Part("choice of the dimension", epsilon, 0.0),)

    def _vote(self, rows: Any, budget: Budget) -> tuple[range, float]:
        """Return the dimensions among which k is chosen, and the epsilon of choosing."""
        if self.n_components != "auto":
            return range(int(self.n_components), int(self.n_components) + 1), 0.0
        most = self.max_components
        if most is None:
            most = min(_DEFAULT_MOST_COMPONENTS, rows.shape[1] - 1, rows.shape[0] // 2 - 1)
        checks.integer_at_least(1, max_components=most)
        blocks = block_count(rows, planner_blocks.rank_block_size(most))
        return range(1, int(most) + 1), planner_blocks.rank_epsilon(blocks, most, budget.epsilon)

    def _course(self, X: Any, pairs: Any, k: int, rest: Budget) -> _Course:
        """Choose how to go on once k is known, from public numbers."""
        centring = self._centring(X.shape, k, rest, is_sparse(X))
        weights = _SHARES[centring]
        mus = share_mu(rest.mu, *weights.values())
        n = X.shape[0] if centring == "private mean" else pairs.shape[0]
        methods = methods_for(X) if self.method == "auto" else (self.method,)
        chosen = plan_within(n, X.shape[1], k, Budget.for_mu(mus[0], rest.delta), self.gamma, methods)
        if chosen.method in GAUSSIAN_METHODS:
            ledgers = [MuLedger(rest, mu, f"{step}: ") for step, mu in zip(weights, mus, strict=True)]
        else:
            ledgers = [MuLedger(budget) for budget in rest.split([*weights.values()])]
        return _Course(centring, chosen, dict(zip(weights, ledgers, strict=True)))

    def _centring(self, shape: tuple[int, int], k: int, budget: Budget, is_sparse: bool) -> str:
        """Choose how to centre, from public numbers."""
        if not self.center:
            return "none"
        by_mean = self.norm_bound is not None and not is_sparse and self.method in ("auto", *GAUSSIAN_METHODS)
        return "private mean" if by_mean and mean_is_better(*shape, k, budget, self.gamma) else "pair differences"

    def _set_further_attributes(self) -> None:
        extras: Any = self.release_.extras
        self.explained_variance_ = extras["explained_variance"]
        self.total_variance_ = extras["total_variance"]
        self.explained_variance_ratio_ = extras["explained_variance_ratio"]
        self.mean_ = extras["mean"]

    def _centre(self) -> Any:
        return self.mean_


def mean_is_better(n: int, d: int, k: int, budget: Budget, gamma: float | None) -> bool:
    """Tell whether subtracting a private mean is predicted to do better than differences of pairs.

    Pairs leave n/2 rows. The mean of rows no longer than R is off by 2R√d/(μn); for rows about as long as that, that
    is an error of 2√(dk)/(μn) in units of a component's standard deviation, and adds to the tail energy. All of it
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


def _shape_of_pairs(X: Any) -> Any:
    """Return a stand-in for the differences of pairs, of which only the numbers of rows mean anything."""
    if isinstance(X, PartitionedTable):
        return replace(X, lengths=tuple(length // 2 for length in X.lengths))
    return np.broadcast_to(0.0, (X.shape[0] // 2, X.shape[1]))


@dataclass(frozen=True)
class _Course:
    """How a fit goes on once k is known."""

    centring: str
    plan: Plan
    ledgers: dict[str, MuLedger]  # of each step
