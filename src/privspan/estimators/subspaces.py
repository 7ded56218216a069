"""The exact, the approximate and the boosted algorithm as scikit-learn estimators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from privspan.approximate import Aggregate, prepare_approximate
from privspan.boosted import prepare_boosted
from privspan.estimators._base import SubspaceEstimator
from privspan.exact.exact import prepare_exact
from privspan.exact.plan import DEFAULT_MAX_WORK, ExactMethod, ExactRule
from privspan.privacy import Release
from privspan.privacy.call import Call
from privspan.privacy.selection import ReleaseRule


@dataclass(eq=False, repr=False)
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
    method, rule, release, affine, decimals, block_size, max_work
        As for :func:`privspan.exact_subspace`.
    random_state : None, int, SeedSequence, Generator or RandomState, default=None
        None draws from the operating system. Anything else makes the fit repeatable and **not private**.
    ledger : path, Ledger or Page, default=None
        Where every fit is charged before its first look at the data; clones charge the same file. See
        :class:`privspan.ledger.Ledger`.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Orthonormal rows that span the subspace.
    n_components_, n_features_in_ : int
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
    `random_state` is None and each person is one row; with `person`, for replacing one person. ``transform`` of
    private rows is not private. Proof: ``docs/explanation/exact-case.md``, ``docs/explanation/several-rows.md``.

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

    n_components: int
    _: KW_ONLY
    method: ExactMethod = "auto"
    rule: ExactRule = "majority"
    release: ReleaseRule = "optimal"
    affine: bool = False
    decimals: int | None = None
    block_size: int | None = None
    max_work: int = DEFAULT_MAX_WORK

    def _release(self, call: Call, X: Any, names: list[str] | None, declared: Any) -> Release:
        return prepare_exact(call, X, budget=call.budget, names=names, **self._choices())(call.begin())


@dataclass(eq=False, repr=False)
class ApproximateSubspace(SubspaceEstimator):
    """The subspace that the records lie near, learnt privately from blocks of records.

    Use it when there are many columns, the records are very close to a subspace, and their variances along it may
    differ widely. For other data :class:`privspan.PrivatePCA` is more accurate.

    Parameters
    ----------
    n_components : int or "auto"
        Dimension of the subspace. "auto" lets the blocks vote for it, at a part of epsilon.
    epsilon, delta : float
        The guarantee.
    gamma, aggregate, max_components, block_size, shuffle, options
        As for :func:`privspan.approximate_subspace`.
    random_state : None, int, SeedSequence, Generator or RandomState, default=None
        None draws from the operating system. Anything else makes the fit repeatable and **not private**.
    ledger : path, Ledger or Page, default=None
        Where every fit is charged before its first look at the data; clones charge the same file. See
        :class:`privspan.ledger.Ledger`.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Orthonormal rows that span the subspace.
    n_components_, n_features_in_ : int
    subspace_ : Subspace
    release_ : Release
        What was released and what it cost.
    succeeded_ : bool
        False after an abstention.

    See Also
    --------
    privspan.approximate_subspace : the function behind it, with all parameters explained.

    Guarantee
    ---------
    The fitted attributes are (epsilon, delta)-differentially private for replace-one neighbours, for all data, when
    `random_state` is None and each person is one row; with `person`, for replacing one person. ``transform`` of
    private rows is not private. Proof: ``docs/explanation/planning.md``, ``docs/explanation/several-rows.md``.

    Examples
    --------
    >>> import warnings
    >>> from privspan import NotPrivateWarning
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(4000, 500, 2, gamma_w=1e-3, rng=0)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotPrivateWarning)
    ...     model = ApproximateSubspace(2, epsilon=1.0, delta=1e-6, random_state=0).fit(X)
    >>> bool(model.subspace_.distance(truth) < 0.05)
    True
    """

    n_components: int | Literal["auto"]
    _: KW_ONLY
    gamma: float | None = None
    aggregate: Aggregate = "stable"
    max_components: int | None = None
    block_size: int | None = None
    shuffle: bool = True
    options: Mapping[str, object] | None = None

    def _release(self, call: Call, X: Any, names: list[str] | None, declared: Any) -> Release:
        return prepare_approximate(call, X, budget=call.budget, **self._choices())(call.begin())


@dataclass(eq=False, repr=False)
class BoostedSubspace(SubspaceEstimator):
    """A subspace within `alpha` of the true one with probability 1 − `beta`, learnt privately.

    Many disjoint parts of the records learn a subspace each, and one that most of them agree with is kept. It needs
    as many times the records of one run as there are parts: 50 for beta = 0.05.

    Parameters
    ----------
    n_components : int
        Dimension of the subspace.
    epsilon, delta : float
        The guarantee.
    alpha : float
        Wanted distance (sine of the largest angle), below 1.
    beta : float
        Wanted probability of failure.
    gamma, aggregate, block_size, options
        As for :class:`privspan.ApproximateSubspace`, for every part.
    random_state : None, int, SeedSequence, Generator or RandomState, default=None
        None draws from the operating system. Anything else makes the fit repeatable and **not private**.
    ledger : path, Ledger or Page, default=None
        Where every fit is charged before its first look at the data; clones charge the same file. See
        :class:`privspan.ledger.Ledger`.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Orthonormal rows that span the subspace.
    n_components_, n_features_in_ : int
    subspace_ : Subspace
    release_ : Release
        What was released and what it cost.
    succeeded_ : bool
        False after an abstention.

    See Also
    --------
    privspan.boosted_subspace : the function behind it.

    Guarantee
    ---------
    The fitted attributes are (epsilon, delta)-differentially private for replace-one neighbours, for all data, when
    `random_state` is None and each person is one row; with `person`, for replacing one person. ``transform`` of
    private rows is not private. Proof: ``docs/explanation/planning.md``, ``docs/explanation/several-rows.md``.
    """

    n_components: int
    _: KW_ONLY
    alpha: float
    beta: float
    gamma: float | None = None
    aggregate: Aggregate = "stable"
    block_size: int | None = None
    options: Mapping[str, object] | None = None

    def _release(self, call: Call, X: Any, names: list[str] | None, declared: Any) -> Release:
        return prepare_boosted(call, X, budget=call.budget, **self._choices())(call.begin())
