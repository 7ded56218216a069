"""``ApproximateSubspace``: the block method as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from privspan.approximate import Aggregate, approximate_subspace
from privspan.estimators._base import SubspaceEstimator
from privspan.privacy import Release


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
    privspan.approximate_subspace : the function behind it, with all parameters explained.

    Guarantee
    ---------
    The fitted attributes are (epsilon, delta)-differentially private for replace-one neighbours, for all data, when
    `random_state` is None and each person is one row. ``transform`` of private rows is not private. Proof:
    ``docs/explanation/planning.md``.

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

    def _release(self, X: Any, names: list[str] | None) -> Release:
        return approximate_subspace(X, **self._options())
