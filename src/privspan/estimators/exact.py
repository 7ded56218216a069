"""``ExactSubspace``: the exact case as a scikit-learn estimator."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from privspan.estimators._base import SubspaceEstimator
from privspan.exact.exact import exact_subspace
from privspan.exact.plan import DEFAULT_MAX_WORK, ExactMethod, ExactRule
from privspan.privacy import Release
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

    n_components: int
    _: KW_ONLY
    method: ExactMethod = "auto"
    rule: ExactRule = "majority"
    release: ReleaseRule = "optimal"
    affine: bool = False
    decimals: int | None = None
    block_size: int | None = None
    max_work: int = DEFAULT_MAX_WORK

    def _release(self, X: Any, names: list[str] | None) -> Release:
        return exact_subspace(X, names=names, **self._options())
