"""``BoostedSubspace``: the boosted block method as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any

from privspan.approximate import Aggregate
from privspan.boosted import boosted_subspace
from privspan.estimators._base import SubspaceEstimator
from privspan.privacy import Release


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

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Orthonormal rows that span the subspace.
    n_components_ : int
    n_features_in_ : int
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
    `random_state` is None and each person is one row. ``transform`` of private rows is not private. Proof:
    ``docs/explanation/planning.md``.
    """

    n_components: int
    _: KW_ONLY
    alpha: float
    beta: float
    gamma: float | None = None
    aggregate: Aggregate = "stable"
    block_size: int | None = None
    options: Mapping[str, object] | None = None

    def _release(self, X: Any, names: list[str] | None) -> Release:
        return boosted_subspace(X, **self._options())
