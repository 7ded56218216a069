"""``ApproximateSubspace``: the block method as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from numpy.typing import NDArray

from privspan.approximate import Aggregate, approximate_subspace
from privspan.estimators._base import SubspaceEstimator
from privspan.privacy import Release
from privspan.privacy.randomness import RandomLike


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
    gamma : float, optional
        Upper bound on the standard deviation of the tail over that of the signal, used by ``aggregate="histogram"``.
    aggregate : {"stable", "histogram"}, default="stable"
        Stable leverage of groups, or the paper's vote of cells.
    max_components : int, optional
        Largest dimension considered; required with ``n_components="auto"`` and refused otherwise.
    block_size : int, optional
        Records per block.
    shuffle : bool, default=True
        Whether the rows are dealt into blocks by a random order.
    options : mapping, optional
        Expert settings of the aggregate, by name.
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
    privspan.approximate_subspace : the function behind it.

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

    def __init__(
        self,
        n_components: int | Literal["auto"],
        *,
        epsilon: float,
        delta: float,
        gamma: float | None = None,
        aggregate: Aggregate = "stable",
        max_components: int | None = None,
        block_size: int | None = None,
        shuffle: bool = True,
        options: Mapping[str, object] | None = None,
        random_state: RandomLike = None,
    ) -> None:
        self.n_components = n_components
        self.epsilon = epsilon
        self.delta = delta
        self.gamma = gamma
        self.aggregate = aggregate
        self.max_components = max_components
        self.block_size = block_size
        self.shuffle = shuffle
        self.options = options
        self.random_state = random_state

    def _release(self, X: NDArray[Any], names: list[str] | None) -> Release:
        return approximate_subspace(
            X,
            self.n_components,
            epsilon=self.epsilon,
            delta=self.delta,
            gamma=self.gamma,
            aggregate=self.aggregate,
            max_components=self.max_components,
            block_size=self.block_size,
            shuffle=self.shuffle,
            options=self.options,
            rng=self.random_state,
        )
