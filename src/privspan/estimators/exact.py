"""``ExactSubspace``: the exact case as a scikit-learn estimator."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from privspan.estimators._base import SubspaceEstimator
from privspan.exact.exact import exact_subspace
from privspan.exact.plan import DEFAULT_MAX_WORK, ExactMethod, ExactRule
from privspan.privacy import Release
from privspan.privacy.randomness import RandomLike
from privspan.privacy.selection import ReleaseRule


class ExactSubspace(SubspaceEstimator):
    """The subspace that holds the records exactly, learnt privately.

    Use it when columns are derived from one another (totals, conversions, one-hot groups) or the data lie in a
    low-dimensional subspace with no error at all. The number of records it needs does not depend on the number of
    columns.

    Parameters
    ----------
    n_components : int
        Dimension of the subspace.
    epsilon, delta : float
        The guarantee.
    method : {"auto", "gap-max", "votes"}, default="auto"
    rule : {"majority", "gap"}, default="majority"
    release : {"optimal", "truncated-laplace"}, default="optimal"
    affine : bool, default=False
        Whether the subspace may miss the origin.
    decimals : int, optional
        Round values to that many decimals and treat them as exact.
    block_size : int, optional
        Records per block of the votes.
    max_work : int
        Refuse a search that looks at more points than this.
    random_state : None, int, SeedSequence, Generator or RandomState, default=None
        None draws from the operating system. Anything else makes the fit repeatable and **not private**.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Orthonormal rows that span the subspace.
    n_components_ : int
    n_features_in_ : int
    subspace_ : Subspace
        With its exact rational form and ``relations()``, after a success.
    release_ : Release
        What was released and what it cost.
    succeeded_ : bool
        False after an abstention.

    See Also
    --------
    privspan.exact_subspace : the function behind it, with all parameters explained.

    Guarantee
    ---------
    The fitted attributes are (epsilon, delta)-differentially private for replace-one neighbours, for all data, when
    `random_state` is None and each person is one row. ``transform`` of private rows is not private. Proof:
    ``docs/explanation/exact-case.md``.

    Examples
    --------
    >>> import numpy as np, warnings
    >>> from privspan import ExactSubspace, NotPrivateWarning
    >>> parts = np.random.default_rng(0).integers(0, 100, (80, 2))
    >>> table = np.column_stack([parts, parts.sum(axis=1)])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotPrivateWarning)
    ...     model = ExactSubspace(2, epsilon=1.0, delta=1e-6, random_state=0).fit(table)
    >>> model.succeeded_
    True
    >>> [relation.describe() for relation in model.subspace_.relations()]
    ['x2 = x0 + x1']
    """

    def __init__(
        self,
        n_components: int,
        *,
        epsilon: float,
        delta: float,
        method: ExactMethod = "auto",
        rule: ExactRule = "majority",
        release: ReleaseRule = "optimal",
        affine: bool = False,
        decimals: int | None = None,
        block_size: int | None = None,
        max_work: int = DEFAULT_MAX_WORK,
        random_state: RandomLike = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.method = method
        self.rule = rule
        self.release = release
        self.affine = affine
        self.decimals = decimals
        self.block_size = block_size
        self.max_work = max_work
        self.random_state = random_state

    def _release(self, X: NDArray[Any], names: list[str] | None) -> Release:
        return exact_subspace(
            X,
            self.n_components,
            epsilon=self.epsilon,
            delta=self.delta,
            method=self.method,
            rule=self.rule,
            release=self.release,
            affine=self.affine,
            decimals=self.decimals,
            block_size=self.block_size,
            max_work=self.max_work,
            names=names,
            rng=self.random_state,
        )
