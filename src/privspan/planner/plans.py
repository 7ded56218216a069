"""A plan as a value that speaks for itself, and the functions that make one.

`plan` is for everybody; `plan_pca` and `plan_within` are for the algorithms, which know their budget and, partly, how
it is spent.  A plan can be asked again, with other numbers, and makes the forecasts of other methods when it is asked
for them.  Why it costs nothing: docs/explanation/planning.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from privspan._lib import card as cards
from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan._lib.in_words import angle, number
from privspan._lib.markup import Html
from privspan._lib.rounding import quiet_numpy
from privspan.planner.choosing import choose, everyday_reason, standardised_reason
from privspan.planner.forecasts import METHODS, forecast, rows_of
from privspan.planner.setting import CROWDED, USELESS, Setting, mu_beside_test
from privspan.planner.tuning import PLANNER
from privspan.privacy import Budget, mu_from_budget
from privspan.standard.course import Standard, chosen_course
from privspan.standard.forecast import expected_captured, needed_rows
from privspan.sums import plan as planner_adaptive


@dataclass(frozen=True, repr=False)
class Plan:
    """The accuracy that a method, or ``method="auto"``, is expected to reach with that many rows.

    Attributes
    ----------
    method : str
        One of ``METHODS``, "adaptive" where "auto" would be just that; or "everyday" for that of a private PCA, and
        "ranks" or "deviations" where columns are standardised.
    error : float
        Predicted median of the sine of the largest angle to the true subspace, at most 1.
    error_90 : float
        The same for the 90th percentile.
    abstention : float
        Predicted probability that the method abstains.
    reason : str
        Why this method, in one sentence or two.
    limited_by : {"privacy", "sampling", "abstention"}
        The larger part of the error; "abstention" if no answer is expected.
    n, d, k : int
    epsilon, delta : float
    gamma : float
        The assumed standard deviation of a tail direction over that of a signal direction.
    assumed : bool
        Whether `gamma` is the planner's default, because none was given.
    alternatives : tuple of Plan
        One per method, this one included; empty for the alternatives themselves.
    center, scale : bool
        Whether the table is centred, and whether columns are standardised.
    captured : float or None
        With `scale`: the predicted share of the best components' variance that is captured, from real tables; `error`
        is then the square root of what is missing.  None otherwise.

    Guarantee
    ---------
    A plan is a function of public numbers and costs no privacy.  How the predictions are made:
    docs/explanation/planning.md.
    """

    method: str
    error: float
    error_90: float
    abstention: float
    reason: str
    limited_by: str
    n: int
    d: int
    k: int
    epsilon: float
    delta: float
    gamma: float
    assumed: bool
    alternatives: tuple[Plan, ...] = field(default_factory=tuple)
    center: bool = False
    scale: bool = False
    captured: float | None = None

    if not TYPE_CHECKING:  # to a type checker `alternatives` is a field like the others

        def __getattr__(self, name: str) -> tuple[Plan, ...]:
            """Make the forecasts of a choice that did not need them, when they are first asked for."""
            if name != "alternatives" or "_forecasts" not in vars(self):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            methods, setting = vars(self)["_forecasts"]
            plans = tuple(_plan_of(method, setting, f"Forecast of {method}.") for method in methods)
            return vars(self).setdefault(name, plans)

    @property
    def label(self) -> str:
        """The name among alternatives; for a private PCA, "auto" is the method of ``robust=True``."""
        return "robust" if self.center and self.method == "auto" else self.method

    @property
    def useful(self) -> bool:
        """Whether the predicted error is below ``USELESS``; with `scale`, whether as much is captured."""
        return self.error < USELESS if self.captured is None else self.captured >= USELESS

    def again(self, **changed: Any) -> Plan | None:
        """Return the plan with another number of rows, epsilon, …; None where these are not possible."""
        names = ("n", "d", "k", "epsilon", "delta", "center", "scale")
        gamma = None if self.center and self.assumed else self.gamma
        try:
            return plan(**({name: getattr(self, name) for name in names} | {"gamma": gamma} | changed))
        except ParameterError:
            return None

    def of(self, method: str) -> Plan:
        """Return the plan for that method: one of the alternatives, or this one."""
        return next((one for one in self.alternatives if one.method == method), self)

    def needed_n(self, error: float) -> int | None:
        """Return about the smallest number of rows for which the predicted error is at most `error`.

        For the same d, k, budget and gamma: with this method for an alternative, with the best one otherwise. Found
        by bisection, to half a per cent; None if 10**12 rows are not enough.
        """
        checks.probability(error=error)
        methods = [other.method for other in self.alternatives] or [self.method]
        mu = mu_from_budget(self.epsilon, self.delta)
        if self.scale:
            return needed_rows(1.0 - error**2, self.d, self.k, mu)
        setting = setting_of(self.n, self.d, self.k, self.epsilon, self.delta, mu, self.gamma)
        setting = replace(setting, center=self.center, joint=not self.center)
        everyday = replace(setting, assumed=self.assumed)  # which asks whether somebody said how near rows lie
        each = (rows_of(method, everyday if method == "everyday" else setting, error) for method in methods)
        return min((need for need in each if need is not None), default=None)

    def __repr__(self) -> str:
        public = f"n={self.n}, d={self.d}, k={self.k}, epsilon={self.epsilon:g}, delta={self.delta:g}"
        return f"<Plan {public}: {self.label}, {_in_words(self)}>"

    def _repr_html_(self) -> str:
        """Show it as a card in a notebook."""
        data = "for ideal data, " if self.captured is None else ""
        return cards.card("Plan", *self._pieces(), about=f"{data}from public numbers alone")

    def _pieces(self) -> list[Html]:
        public = [("rows", f"{self.n:,}"), ("columns", f"{self.d:,}"), ("dimensions", f"{self.k:,}")]
        public.append(("privacy", f"ε = {number(self.epsilon)}, δ = {number(self.delta)}"))
        typical = f"The directions are expected to be {angle(self.error)} off (error {self.error:.2g})"
        said = f"{typical}, and in nine runs of ten at most {angle(self.error_90)}. {self.reason}"
        if self.captured is not None:
            said = f"The components are expected to capture {self.captured:.0%} of the best variance. {self.reason}"
        heads = ("method", "error", "in 9 of 10 below", "abstains")
        rows = [
            (one.label, f"{one.error:.2g}", f"{one.error_90:.2g}", f"{one.abstention:.0%}")
            for one in self.alternatives
        ]
        alarm = [] if self.useful else [cards.alarm("Expected to be useless.")]
        return [*alarm, cards.sentence(said), cards.facts(public), *([cards.table(heads, rows)] if rows else [])]

    def __str__(self) -> str:
        rows = [f"  {other.label:<14}{_in_words(other)}" for other in self.alternatives]
        head = f"{self.method}: {_in_words(self)}. {self.reason}"
        return "\n".join([head, *rows])


def plan(
    n: int,
    d: int,
    k: int,
    *,
    epsilon: float,
    delta: float,
    center: bool = True,
    scale: bool = False,
    gamma: float | None = None,
) -> Plan:
    """Predict the error of each method for n rows of d columns, and recommend one.

    Parameters
    ----------
    n, d, k : int
        Rows, columns, dimension.
    epsilon, delta : float
        Privacy budget.
    center : bool, default=True
        Whether to plan for :func:`privspan.private_pca`, which centres the table; False for
        :func:`privspan.private_subspace`.
    scale : bool, default=False
        Whether columns are standardised; only with ``center=True``.  What is predicted is then the share of the best
        components' variance that is captured, ``plan.captured``, from a curve fitted to real tables.
    gamma : float, optional
        Standard deviation of the tail's largest direction over that of the k-th signal direction, below 1, as public
        knowledge; the tail is taken to be flat.  Without it a nominal tail is assumed; see `Plan.assumed`.

    Returns
    -------
    Plan
        With one alternative per method.

    See Also
    --------
    privspan.private_subspace : the algorithm that follows the plan.

    Guarantee
    ---------
    Sees no data and costs no privacy, provided that `gamma` was not read off the data.  How the predictions are
    made: docs/explanation/planning.md.

    Examples
    --------
    >>> plan(10_000, 200, 3, epsilon=1.0, delta=1e-6, gamma=0.01, center=False).method
    'adaptive'
    >>> plan(1_000, 5_000, 3, epsilon=1.0, delta=1e-6, gamma=1e-5, center=False).method
    'auto'
    """
    if not center and scale:
        raise ParameterError("{scale} must be planned together with {center:True}.")
    checks.spendable(epsilon, delta)
    budget = Budget(epsilon, delta)
    with quiet_numpy():
        if not center:
            return plan_within(n, d, k, budget, gamma)
        return plan_standardised(n, d, k, budget) if scale else plan_pca(n, d, k, budget, gamma)


def plan_standardised(n: int, d: int, k: int, budget: Budget, course: Standard | None = None) -> Plan:
    """Plan a PCA of standardised columns, by a course that public numbers choose unless it is given."""
    checks.integer_at_least(2, n=n)
    checks.dimension(k=k, d=d)
    n, d, k = int(n), int(d), int(k)
    course = chosen_course(n, d, budget.mu, False) if course is None else course
    captured = expected_captured(n, d, k, budget.mu)
    error = math.sqrt(1.0 - captured)
    reason = standardised_reason(n, d, k, budget, course)
    return Plan(
        method=course, reason=reason, limited_by="privacy", error=error, error_90=min(1.0, PLANNER.worse * error),
        abstention=0.0, captured=captured, n=n, d=d, k=k, epsilon=budget.epsilon, delta=budget.delta,
        gamma=PLANNER.tail, assumed=True, center=True, scale=True,
    )  # fmt: skip


def plan_pca(n: int, d: int, k: int, budget: Budget, gamma: float | None, about: bool = False) -> Plan:
    """Plan the everyday course of a private PCA, with named methods on differences of pairs as alternatives.

    `about` tells whether there is a public centre to fall back on.
    """
    checks.integer_at_least(2, n=n)
    checks.dimension(k=k, d=d)
    if gamma is not None:
        checks.probability(gamma=gamma)
    return _everyday_plan(int(n), int(d), int(k), budget.epsilon, budget.delta, budget.mu, gamma, about)


@lru_cache(maxsize=256)  # of public numbers only
def _everyday_plan(
    n: int, d: int, k: int, epsilon: float, delta: float, mu: float, gamma: float | None, about: bool
) -> Plan:
    setting = setting_of(n, d, k, epsilon, delta, mu, gamma)
    setting = replace(setting, center=True, about=about)
    return _chosen("everyday", setting, everyday_reason(setting), ("everyday", *METHODS))


def plan_within(
    n: int,
    d: int,
    k: int,
    budget: Budget,
    gamma: float | None,
    methods: tuple[str, ...] = METHODS,
    *,
    joint: bool = True,
) -> Plan:
    """Plan for a budget, which knows its mu, among methods that are asked for or take the input; else like `plan`.

    `joint` is for a call that is not composed in mu with others.
    """
    checks.integer_at_least(1, n=n)
    checks.dimension(k=k, d=d)
    if gamma is not None:
        checks.probability(gamma=gamma)
        gamma = float(gamma)
    return _best_plan(int(n), int(d), int(k), budget.epsilon, budget.delta, budget.mu, gamma, methods, joint)


@lru_cache(maxsize=256)  # of public numbers only
def _best_plan(
    n: int,
    d: int,
    k: int,
    epsilon: float,
    delta: float,
    mu: float,
    gamma: float | None,
    methods: tuple[str, ...],
    joint: bool,
) -> Plan:
    setting = replace(setting_of(n, d, k, epsilon, delta, mu, gamma), joint=joint)
    method, reason, listed = choose(setting, methods)
    return _chosen(method, setting, reason, listed)


def setting_of(n: int, d: int, k: int, epsilon: float, delta: float, mu: float, gamma: float | None) -> Setting:
    """Return the setting of a budget and its mu, with a nominal tail where none is given."""
    nominal = PLANNER.tail if planner_adaptive.crowding(n, d, k, mu) < CROWDED else PLANNER.crowded_tail
    supposed = nominal / math.sqrt(max(d - k, 1)) if gamma is None else gamma
    beside = mu_beside_test(mu, epsilon, delta, PLANNER.test)
    return Setting(n, d, k, epsilon, delta, supposed, gamma is None, mu, beside)


def _chosen(method: str, setting: Setting, reason: str, listed: tuple[str, ...]) -> Plan:
    """Return the plan of the method that is taken, whose alternatives are those on a list."""
    final = _plan_of(method, setting, reason)
    # The other forecasts cost more than the choice, and few callers read them.
    del vars(final)["alternatives"]
    vars(final)["_forecasts"] = listed, setting
    return final


def _plan_of(method: str, setting: Setting, reason: str) -> Plan:
    names = ("n", "d", "k", "epsilon", "delta", "gamma", "assumed", "center")
    public = {name: getattr(setting, name) for name in names}
    return Plan(method=method, reason=reason, **vars(forecast(method, setting)), **public)


def _in_words(one: Plan) -> str:
    if one.captured is not None:
        return f"captures about {one.captured:.0%} of the best components' variance"
    abstains = f", abstains {one.abstention:.0%}" if one.abstention > 0 else ""
    return f"error {one.error:.2g} (90 %: {one.error_90:.2g}){abstains}, limited by {one.limited_by}"
