"""The everyday door: one algorithm for every tail, or the method that the caller names.

Proofs: docs/explanation/one-algorithm.md for the algorithm, docs/explanation/planning.md for the door.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from privspan._lib import checks
from privspan._lib.errors import Parameter, ParameterTypeError
from privspan.approximate import prepare_approximate
from privspan.boosted import prepare_boosted
from privspan.exact.exact import prepare_exact
from privspan.exact.plan import METHODS as EXACT_METHODS
from privspan.planner import METHODS, plan_within
from privspan.privacy import Release, UselessPlanWarning
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.joint import JointLedger
from privspan.privacy.persons import MOST_ROWS
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Learn
from privspan.rows.table import Missing, Table, check_missing
from privspan.stable.course import LABELS, course_within, prepare_auto, single_account
from privspan.stable.records import prepare_stable
from privspan.sums import adaptive
from privspan.sums.adaptive import prepare_adaptive
from privspan.sums.analyze_gauss import prepare_analyze_gauss
from privspan.sums.grid import MOMENTS, most_share

PrivateMethod = Literal["auto", "adaptive", "stable", "approximate", "analyze-gauss", "exact"]
PRIVATE_METHODS: tuple[PrivateMethod, ...] = get_args(PrivateMethod)
Account = Literal["auto", "joint", "mu"]


def _refused(*_: object, **__: object) -> Learn:
    raise ParameterTypeError("This method is not run by its name.")


@dataclass(frozen=True)
class Method:
    """What the package knows of a method, in one place, so that nobody has to take its name apart."""

    name: str  # what the parameter `method` of `private_subspace` takes, where it takes this one
    # For people: what it is called, what it does, when it is accurate, and the page that proves it private.
    title: str
    how: str
    accuracy: str
    page: str

    # Of a call, X, k, a budget and options: refuses from public facts alone, returns what does the rest with a run.
    prepare: Callable[..., Learn] = _refused
    # Whether it is mu-GDP with the mu of its account.  Such steps compose in mu; the others get shares of epsilon and
    # delta, which add up.
    in_mu: bool = False
    # Of n, mu and options: the share of mu² that an empty place can tell (docs/explanation/zero-out.md).
    empty: Callable[[int, float, Mapping[str, Any]], float] = lambda *_: 1.0
    sparse: bool = False  # whether it takes sparse tables,
    partitions: bool = False  # works where the partitions of a table are,
    gamma: bool = False  # and has a parameter `gamma`
    passes: float | None = None  # rows looked at per row, as measured, if it passes over them evenly in time

    labels: tuple[str, ...] = ()  # what `Release.method` may say; by default the name
    call: str | None = "private_subspace"  # what runs it again, in `privspan`
    options: Mapping[str, str] | None = None  # the arguments that choose it there; by default its name as `method`
    repeats: tuple[str, ...] = ()  # and those to be taken over from the parameters of a release

    def __post_init__(self) -> None:
        if not self.labels:
            object.__setattr__(self, "labels", (self.name,))

    def takes(self, source: Table) -> bool:
        """Tell whether the method works on a table of this kind as it is."""
        return self.sparse if source.is_sparse else self.partitions or source.local


_GROUPS = Method(
    "approximate",
    "stable groups",
    "The rows are divided into blocks at random. Every block has its own subspace, and stable leverage combines "
    "them.",
    "The subspaces of small blocks must already agree; otherwise it abstains.",
    "approximate-case",
    prepare=prepare_approximate,
    partitions=True,
    gamma=True,
    labels=("approximate (stable)", "approximate (stable), dimension chosen"),
    call="approximate_subspace",
    options={"aggregate": "stable"},
    repeats=("max_components",),
)


_EVERYDAY = (
    Method(
        "auto",
        "one algorithm for every tail",
        "A private question tells whether records lie so close to a subspace that stable leverage pays off. If so, "
        "and if its private test agrees, it finds the directions from at most 5,000 records, and rounds of little "
        "noise on all of them refine these; otherwise the adaptive algorithm does both. Records are scaled one by "
        "one.",
        "The more rows per dimension and the shorter the tails, the better. Directions of much less variance than "
        "the first take more rows.",
        "one-algorithm",
        prepare=prepare_auto,
        in_mu=True,
        sparse=True,
        partitions=True,
        gamma=True,
        labels=LABELS,
    ),
    Method(
        "adaptive",
        "adaptive noisy PCA",
        "A first noisy look at the sum of squares finds the rough directions; rounds of ever less noise refine them. "
        "Records are scaled one by one, so no bound on the values is needed.",
        "The more rows per dimension, the better. Directions of much less variance than the first take more rows, "
        "and records far off the subspace count less than in ordinary PCA.",
        "everyday-pca",
        prepare=prepare_adaptive,
        empty=adaptive.empty_share,
        in_mu=True,
        sparse=True,
        partitions=True,
        passes=8.0,
    ),
    Method(
        "stable",
        "stable leverage",
        "Records that a direction depends on alone are left out, a private test makes sure that they are few, and "
        "the noise is scaled to the little that one record can still do, whatever the number of columns.",
        "Records must lie very close to a subspace and be alike in how far off they are; otherwise it abstains.",
        "stable-leverage",
        prepare=prepare_stable,
    ),
    _GROUPS,
    Method(
        "analyze-gauss",
        "Analyze Gauss",
        "Gaussian noise is added to the sum of squares of unit-length records.",
        "The noise grows with the number of columns; it takes many rows to outweigh it.",
        "baselines",
        prepare=prepare_analyze_gauss,
        empty=lambda *_: most_share(0.0, MOMENTS),
        in_mu=True,
        sparse=True,
        partitions=True,
        passes=4.0,
    ),
    Method(
        "exact",
        "exact subspace",
        "The subspace that holds the most records is found in exact arithmetic. It is released as it is, without "
        "noise, if it leads by enough; a private decision says whether.",
        "Nearly all records must lie in the subspace with no error at all; otherwise it abstains.",
        "exact-case",
        prepare=prepare_exact,
        labels=tuple(f"exact/{one}" for one in EXACT_METHODS if one != "auto"),
        call="exact_subspace",
        options={},
        repeats=("affine", "decimals"),
    ),
)

ALGORITHMS = {method.name: method for method in _EVERYDAY}
"""The methods of `private_subspace`, by their names."""

BOOSTED = Method(
    "boosted",
    "boosted subspace",
    "Many runs on disjoint rows each learn a subspace; one that most of the others lie near is released.",
    "More than half of the runs must succeed; otherwise it abstains.",
    "boosted",
    prepare=prepare_boosted,
    gamma=True,
    labels=("boosted (stable)", "boosted (histogram)"),
    call="boosted_subspace",
    options={},
    repeats=("alpha", "beta"),
)

BESIDES = (
    replace(
        _GROUPS,
        title="cells of a histogram",
        how="The rows are divided into blocks at random. Every block votes for a cell of a random grid, and a cell "
        "with a clear majority is released.",
        accuracy="Records must lie extremely close to a subspace; otherwise it abstains.",
        labels=("approximate (histogram)", "approximate (histogram), dimension chosen"),
        options={"aggregate": "histogram"},
    ),
    BOOSTED,
)
"""Methods that `private_subspace` does not take."""


def private_subspace(
    X: object,
    k: int,
    *,
    epsilon: float,
    delta: float,
    person: object = None,
    max_rows: int = MOST_ROWS,
    missing: Missing = "fill",
    method: PrivateMethod = "auto",
    gamma: float | None = None,
    account: Account = "auto",
    rng: RandomLike = None,
    ledger: LedgerLike = None,
    **options: Any,
) -> Release:
    """Learn the k-dimensional subspace that the rows of X lie near, by the method that suits the data.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        One person per row.  Sparse tables are taken by "auto", "adaptive" and "analyze-gauss", and never densified
        but for the at most 5,000 rows that "auto" may look at.  Rows of Dask tables stay where they are with
        "adaptive", "analyze-gauss" and "approximate", and all but those 5,000 with "auto"; "stable" and "exact" bring
        them here, one partition at a time.
        Rows are not centred: see :class:`privspan.PrivatePCA`.
    k : int
        Dimension.
    **options
        Further keyword arguments of the method that is named; refused with "auto".
    epsilon, delta : float
        Privacy budget.
    person : (n,) array-like or str, optional
        Who each row belongs to, where people have several rows: one id per row, or the name of the column of `X` that
        holds the ids.  The guarantee is then for persons, and n is their number: docs/explanation/several-rows.md.
    max_rows : int, default=8
        With `person`: the most rows that are used of one person.
    missing : {"fill", "zero-row"}, default="fill"
        How a gap (a missing or non-finite cell) is treated: it counts as 0, or makes its whole record a row of zeros,
        as it always does with "exact".
    method : {"auto", "adaptive", "stable", "approximate", "analyze-gauss", "exact"}, default="auto"
        "auto" first measures, privately, how long the tails are.  It starts with stable leverage or with a noisy
        second moment, continues with localised rounds, and never abstains.  Where public numbers leave no choice it
        is "adaptive".  "exact" is run only when asked for.
    gamma : float, optional
        Standard deviation of the tail's largest direction over that of the k-th signal direction, if it is public
        knowledge; "auto" then need not measure it, and "approximate" uses it.  It never affects privacy, unless it
        was read off the data.
    account : {"auto", "joint", "mu"}, default="auto"
        With the method "auto": how a private test and the noise that follows are accounted.  "joint" accounts for
        them together, which lowers the error of records near a subspace by an eighth to a third where rows are few.
        "mu" accounts for each by its mu, which composes better with other releases.  "joint" is used only where it
        is predicted to help, and then the release has no mu; "auto" is "joint" unless a ledger composes in mu.
    rng : None, int, SeedSequence, Generator or RandomState
        None for secure noise.  A seed makes the run repeatable and not private.
    ledger : path, Ledger or Page, optional
        Where the budget is charged, before any data are read; see :class:`privspan.ledger.Ledger`.

    Returns
    -------
    Release
        That of the method; with "auto", ``parameters`` name the ``course`` that was taken and hold
        ``predicted_error`` and ``reason``.

    Warns
    -----
    UselessPlanWarning
        If "auto" finds no method with a predicted error below .5.
    WeakPrivacyWarning
        If the guarantee is weak for this number of rows; every private function warns of this.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy for replace-one neighbours and every data set; n, d and all parameters are
    public.  Assumed: each person is one row, `rng` is None, and what the method taken assumes.  With `person`, for
    replacing one person; their number is public, that of rows is not.
    Proof: docs/explanation/planning.md, docs/explanation/one-algorithm.md, docs/explanation/several-rows.md.

    Examples
    --------
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(5_000, 20, 2, gamma_w=0.1, rng=0)
    >>> release = private_subspace(X, 2, epsilon=1.0, delta=1e-6, rng=1)
    >>> release.method, bool(release.subspace.distance(truth) < 0.05)
    ('adaptive', True)
    """
    with Call("private_subspace", epsilon, delta, rng, ledger, X, person, k) as call:
        checks.one_of(PRIVATE_METHODS, method=method)
        table = call.persons(X, person, max_rows)
        return call.finish(learn_subspace(call, table, k, method, gamma, missing, account, options))


def learn_subspace(
    call: Call,
    table: object,
    k: int | Literal["auto"],
    method: str,
    gamma: float | None,
    missing: Missing,
    account: Account,
    options: Mapping[str, Any],
) -> Release:
    """Do what `private_subspace` promises, by one of its methods or by `BOOSTED`, behind a door that is open."""
    checks.one_of(get_args(Account), account=account)
    check_missing(missing)
    if missing != "fill":
        table = call.open(table).with_gaps(missing)
    if method == "auto":
        return _by_itself(call, table, k, gamma, account, options)
    if account != "auto":
        raise ParameterTypeError('{account} must be given only with the method "auto".')
    chosen = BOOSTED if method == BOOSTED.name else ALGORITHMS[method]
    if gamma is not None:
        checks.probability(gamma=gamma)
        options = {**options, "gamma": gamma} if chosen.gamma else options
    learn = chosen.prepare(call, table, k, call.budget, **options)
    return learn(call.begin(gaussian=chosen.in_mu, empty=chosen.empty(call.rows, call.budget.mu, options)))


def _by_itself(
    call: Call, X: object, k: Any, gamma: float | None, account: Account, options: Mapping[str, object]
) -> Release:
    """Run the one algorithm, with what was planned beside what it tells."""
    if options:
        template = '{name} must be given only with a method that takes it, not with "auto".'
        raise ParameterTypeError(template, name=Parameter(next(iter(options))))
    source = call.open(X)
    n, d = source.shape
    checks.dimension(k=k, d=d, n=n)
    joint = account == "joint" or (account == "auto" and not call.composes)
    choice = plan_within(n, d, k, call.budget, gamma, methods_for(source), joint=joint)
    if not choice.useful:
        call.warn(choice.reason, UselessPlanWarning)
    spent = single_account(source, k, call.budget, gamma, joint=joint)
    together = isinstance(spent, JointLedger)
    if not together and not spent.set_aside:  # then it is the adaptive algorithm
        spent.empty = ALGORITHMS["adaptive"].empty(n, spent.mu, {})
    run = call.begin(spent, gaussian=not together)
    release = course_within(run, source, k, gamma)
    told = {**release.parameters, "predicted_error": choice.error, "reason": choice.reason}
    return replace(release, parameters=told)


def methods_for(source: Table) -> tuple[str, ...]:
    """Return the planned methods that take a table of this kind."""
    return tuple(name for name in METHODS if ALGORITHMS[name].takes(source))
