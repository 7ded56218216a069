"""`PrivateSubspace`: the subspace that records lie in or near, by any method, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

from privspan._lib import checks
from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan.estimators._base import SubspaceEstimator
from privspan.privacy import Release
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.persons import MOST_ROWS
from privspan.privacy.randomness import RandomLike
from privspan.private import ALGORITHMS, BOOSTED, PRIVATE_METHODS, Account, PrivateMethod, learn_subspace
from privspan.rows.table import Missing


@dataclass(eq=False, repr=False)
class PrivateSubspace(SubspaceEstimator):
    """The subspace through the origin that the records lie in or near, learnt privately.

    Records are not centred, and variances are not measured: see :class:`privspan.PrivatePCA`.

    Parameters
    ----------
    n_components : int or "auto"
        Dimension of the subspace. "auto", with the method "approximate", lets blocks of records vote for it and
        spends a part of epsilon on it.
    epsilon, delta : float
        The guarantee.
    max_rows : int, default=8
        The most rows that are used of one person, where ``fit`` gets `person`.
    missing : {"fill", "zero-row"}, default="fill"
        As for :func:`privspan.private_subspace`.
    method : str, default="auto"
        "auto", "adaptive", "stable" and "analyze-gauss" as for :func:`privspan.private_subspace`. "exact" is for
        columns that are derived from one another (totals, conversions, one-hot groups), with no error at all; it does
        not need more records where there are more columns. "approximate" is for many columns and records very close
        to a subspace. "boosted" is the same, run on many disjoint parts of the records.
    gamma : float, optional
        As for :func:`privspan.private_subspace`.
    account : {"auto", "joint", "mu"}, default="auto"
        As for :func:`privspan.private_subspace`.
    options : mapping, optional
        Further arguments of the method: those of :func:`privspan.exact_subspace`, as in
        ``{"affine": True, "decimals": 2}``, :func:`privspan.approximate_subspace`, :func:`privspan.stable_subspace`,
        and :func:`privspan.boosted_subspace`, which needs ``{"alpha": 0.1, "beta": 0.05}``.
    random_state : None, int, SeedSequence, Generator or RandomState, default=None
        None draws from the operating system. Anything else makes the fit repeatable and **not private**.
    ledger : path, Ledger or Page, default=None
        Where every fit is charged, before it reads any data; clones charge the same file. See
        :class:`privspan.ledger.Ledger`.

    Attributes
    ----------
    components_ : (n_components, n_features) array
        Orthonormal rows that span the subspace.
    n_components_, n_features_in_ : int
    subspace_ : Subspace
        By "exact" with its rational form and ``relations()``, after a success.
    release_ : Release
        What was released and what it cost.
    succeeded_ : bool
        False after an abstention.

    See Also
    --------
    privspan.private_subspace : the function behind it, with all parameters explained.

    Guarantee
    ---------
    The fitted attributes are (epsilon, delta)-differentially private for replace-one neighbours, for all data, when
    `random_state` is None and each person is one row; with `person`, for replacing one person. ``transform`` of
    private rows is not private. Proof: ``docs/explanation/planning.md``, ``docs/explanation/exact-case.md``,
    ``docs/explanation/several-rows.md``.

    Examples
    --------
    >>> import numpy as np, warnings
    >>> from privspan import NotPrivateWarning, PrivateSubspace
    >>> parts = np.random.default_rng(0).integers(0, 100, (80, 2))
    >>> table = np.column_stack([parts, parts.sum(axis=1)])
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", NotPrivateWarning)
    ...     model = PrivateSubspace(2, epsilon=1.0, delta=1e-6, method="exact", random_state=0).fit(table)
    >>> [relation.describe() for relation in model.subspace_.relations()]
    ['x2 = x0 + x1']
    """

    n_components: int | Literal["auto"]
    _: KW_ONLY
    max_rows: int = MOST_ROWS
    missing: Missing = "fill"
    method: PrivateMethod | Literal["boosted"] = "auto"
    gamma: float | None = None
    account: Account = "auto"
    options: Mapping[str, object] | None = None
    random_state: RandomLike = None
    ledger: LedgerLike = None

    def _takes_sparse(self) -> bool:
        return self.method in ALGORITHMS and ALGORITHMS[self.method].sparse

    def _rows_of_a_person(self) -> int:
        return self.max_rows

    def _release(self, call: Call, X: Any, names: list[str] | None, declared: Any) -> Release:
        checks.one_of((*PRIVATE_METHODS, BOOSTED.name), method=self.method)
        if not isinstance(self.options, Mapping | None):
            raise ParameterTypeError("{options} must be a mapping of names to values, or None.")
        options = dict(self.options or {})
        if self.method == BOOSTED.name and not {"alpha", "beta"} <= options.keys():
            raise ParameterError('{options} must give "alpha" and "beta" with {method:"boosted"}.')
        if self.method == "exact":
            options = {"names": names, **options}
        return learn_subspace(
            call, X, self.n_components, self.method, self.gamma, self.missing, self.account, options
        )
