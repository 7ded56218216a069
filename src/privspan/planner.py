"""Which method, what error, how many rows: answers from public numbers alone.

`plan` predicts the error of every method for n rows of d columns, says what ``method="auto"`` would do and why, and
how many rows a wanted error would take.  It never sees data, so asking costs nothing.  Predictions are for
normal records with equal signal variances and a flat tail; unequal variances, heavy tails and outliers make them
optimistic.  Derivations and how far they were checked: docs/explanation/planning.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import product
from typing import TYPE_CHECKING, Any

from scipy.special import ndtri

from privspan._lib import card as cards
from privspan._lib import checks
from privspan._lib.entry import entry
from privspan._lib.in_words import angle, number
from privspan._lib.markup import Html
from privspan.blocks.plan import stable_block_size
from privspan.privacy import Budget, delta_from_mu, mu_from_budget
from privspan.stable import choice
from privspan.stable import plan as stable_plan
from privspan.sums import plan as planner_adaptive
from privspan.sums.everyday import expected_share
from privspan.sums.scales import scale_share

METHODS: tuple[str, ...] = ("auto", "adaptive", "stable", "approximate", "analyze-gauss")
"""The methods that are planned: the everyday course, and those that can be named, as ties are broken."""

USELESS = 0.5
"""A predicted error from here on is called useless: half of a direction, or more, would be noise."""

MOST_STABLE_ROWS = 12_000
"""Beyond, the (n, n) Gram matrix of the stable method is not formed on anybody's behalf."""

CROWDED = USELESS
"""The bar on kappa = (√d + √k) k / (μ n), the error of one noisy sum, beyond which only a short tail would help."""

NOMINAL_TAIL = 0.3
NOMINAL_CROWDED_TAIL = 0.01
"""Tail energy γ√(d − k) supposed when `gamma` is not given: far off, or very near where nothing else helps."""

_BY_PAIRS = 0.82  # of mu² has the subspace of a private PCA by a named method
_MOST_ABSTENTION = 0.2
_MOST_ROWS = 10**12
_RARE_ABSTENTION = 0.03
_NO_ANSWER = (1.0, 1.0, 1.0)
_MOST_NEWTON_STEPS = 20
_TEST_SHARE = 0.2  # of delta, between the two shares that the stable methods choose from
_TEST_WEIGHTS = (0.1, 0.2, 0.35, 0.5)  # of mu²
_SIGNAL_WEIGHTS = (0.04, 0.1)
_NORM_QUANTILES = (0.3, 0.45)
_BIN_EDGE = 2.0 ** (1 / 6)  # a released tail is the upper edge of a bin of a third of an octave: half a bin more
_BLOCK_TILT = 0.8  # the tilt that is released for blocks, over 1 / (√m - √k): measured for k from 1 to 8


@dataclass(frozen=True, repr=False)
class Plan:
    """What a method is expected to do with so many rows, or what ``method="auto"`` would do.

    Attributes
    ----------
    method : str
        One of ``METHODS``, "adaptive" where "auto" would be just that; or "everyday" for that of a private PCA.
    error : float
        Predicted median of the sine of the largest angle to the true subspace, at most 1.
    error_90 : float
        The same for the 90th percentile.
    abstention : float
        Predicted probability that the method abstains.
    reason : str
        Why this method, in one sentence or two.
    limited_by : {"privacy", "sampling", "abstention"}
        The larger part of the error, or that no answer is expected at all.
    n, d, k : int
    epsilon, delta : float
    gamma : float
        Standard deviation of a tail direction over that of a signal direction that was supposed.
    assumed : bool
        Whether `gamma` is the planner's own, because none was given.
    alternatives : tuple of Plan
        One per method, this one included; empty for the alternatives themselves.
    center, scale : bool
        Whether the mean is taken away, and whether the scales of columns are measured, at a part of the budget.

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

    if not TYPE_CHECKING:  # to a type checker `alternatives` is a field like the others

        def __getattr__(self, name: str) -> tuple[Plan, ...]:
            """Make the forecasts of a choice that did not need them, when they are first asked for."""
            if name != "alternatives" or "_forecasts" not in vars(self):
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            methods, setting = vars(self)["_forecasts"]
            return vars(self).setdefault(name, tuple(_forecast(method, setting) for method in methods))

    @property
    def label(self) -> str:
        """What the method is called beside others; of a private PCA, "auto" is what ``robust=True`` takes."""
        return "robust" if self.center and self.method == "auto" else self.method

    @property
    def useful(self) -> bool:
        """Whether the predicted error is below ``USELESS``."""
        return self.error < USELESS

    def again(self, **changed: Any) -> Plan | None:
        """Return the plan with another number of rows, epsilon, …; None where column scales cannot be afforded."""
        names = ("n", "d", "k", "epsilon", "delta", "gamma", "center", "scale")
        try:
            return plan(**({name: getattr(self, name) for name in names} | changed))
        except ValueError:
            return None

    def of(self, method: str) -> Plan:
        """Return what is expected of that method: one of the alternatives, or this one."""
        return next((one for one in self.alternatives if one.method == method), self)

    def needed_n(self, error: float) -> int | None:
        """Return about the smallest number of rows for which the predicted error is at most `error`.

        For the same d, k, budget and gamma: with this method for an alternative, with the best one otherwise.
        Found by bisection, to half a per cent; None if 10**12 rows would not do.
        """
        checks.probability(error=error)
        methods = [other.method for other in self.alternatives] or [self.method]
        mu = mu_from_budget(self.epsilon, self.delta)
        setting = _setting(self.n, self.d, self.k, self.epsilon, self.delta, mu, self.gamma)
        setting = replace(setting, center=self.center, scale=self.scale)
        needs = [need for method in methods if (need := _rows_of(method, setting, error)) is not None]
        return min(needs, default=None)

    def __repr__(self) -> str:
        public = f"n={self.n}, d={self.d}, k={self.k}, epsilon={self.epsilon:g}, delta={self.delta:g}"
        return f"<Plan {public}: {self.label}, {_in_words(self)}>"

    def _repr_html_(self) -> str:
        """Show it as a card in a notebook."""
        return cards.card("Plan", *self._pieces(), about="for ideal data, from public numbers alone")

    def _pieces(self) -> list[Html]:
        public = [("rows", f"{self.n:,}"), ("columns", f"{self.d:,}"), ("dimensions", f"{self.k:,}")]
        public.append(("privacy", f"ε = {number(self.epsilon)}, δ = {number(self.delta)}"))
        typical = f"The directions are expected to be {angle(self.error)} off (error {self.error:.2g})"
        said = f"{typical}, and in nine runs of ten at most {angle(self.error_90)}. {self.reason}"
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


@entry
def plan(
    n: int,
    d: int,
    k: int,
    *,
    epsilon: float,
    delta: float,
    gamma: float | None = None,
    center: bool = False,
    scale: bool = False,
) -> Plan:
    """Predict what each method would do with n rows of d columns, and say which one to take.

    Parameters
    ----------
    n, d, k : int
        Rows, columns, dimension.
    epsilon, delta : float
        Privacy budget.
    gamma : float, optional
        Standard deviation of the tail's largest direction over that of the k-th signal direction, below 1, as public
        knowledge; the tail is taken to be flat.  Without it a nominal tail is supposed, which the plan tells.
    center : bool, default=False
        Whether to plan for :func:`privspan.private_pca`, which takes the mean away, instead of
        :func:`privspan.private_subspace`.
    scale : bool, default=False
        Whether the scales of the columns are measured too; only with ``center=True``.  Refused where the budget does
        not allow it.

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
    >>> plan(10_000, 200, 3, epsilon=1.0, delta=1e-6, gamma=0.01).method
    'adaptive'
    >>> plan(1_000, 5_000, 3, epsilon=1.0, delta=1e-6, gamma=1e-5).method
    'auto'
    """
    if not center and scale:
        raise ValueError("`scale` must be planned together with `center=True`.")
    budget = Budget(epsilon, delta)
    if not center:
        return plan_within(n, d, k, budget, gamma)
    return plan_pca(n, d, k, budget, gamma, scale_share(int(n), int(d), budget.mu) if scale else None)


def plan_pca(
    n: int, d: int, k: int, budget: Budget, gamma: float | None, scales: float | None = None, about: bool = False
) -> Plan:
    """Plan the everyday course of a private PCA, with named methods on differences of pairs as alternatives.

    `scales` is the share of mu² that is spent on the scales of columns, None if they are not measured; `about` tells
    whether there is a public centre to fall back on.
    """
    checks.integer_at_least(2, n=n)
    checks.dimension(k=k, d=d)
    if gamma is not None:
        checks.probability(gamma=gamma)
    setting = _setting(int(n), int(d), int(k), budget.epsilon, budget.delta, budget.mu, gamma)
    setting = replace(setting, center=True, scale=scales is not None, scales=scales, about=about)
    chosen = _forecast("everyday", setting)
    course, share = expected_share(setting.n, setting.d, setting.mu, about)
    reason = f"{_COURSES[course]} About {share * (1.0 - setting.spent):.0%} of the budget is left for that."
    if not chosen.useful:
        reason = f"{reason} {_advice(chosen, setting)}"
    final = replace(chosen, reason=reason)
    del vars(final)["alternatives"]
    vars(final)["_forecasts"] = ("everyday", *METHODS), setting
    return final


def plan_within(
    n: int, d: int, k: int, budget: Budget, gamma: float | None, methods: tuple[str, ...] = METHODS
) -> Plan:
    """Plan for a budget, which knows its mu, among methods that are asked for or take the input; else like `plan`."""
    checks.integer_at_least(1, n=n)
    checks.dimension(k=k, d=d)
    if gamma is not None:
        checks.probability(gamma=gamma)
        gamma = float(gamma)
    return _best_plan(int(n), int(d), int(k), budget.epsilon, budget.delta, budget.mu, gamma, methods)


@lru_cache(maxsize=256)  # of public numbers only
def _best_plan(
    n: int, d: int, k: int, epsilon: float, delta: float, mu: float, gamma: float | None, methods: tuple[str, ...]
) -> Plan:
    setting = _setting(n, d, k, epsilon, delta, mu, gamma)
    chosen, listed = _choose(setting), METHODS
    reason = _reason(chosen, setting)
    if chosen.method not in methods:
        listed = tuple(method for method in METHODS if method in methods)
        chosen = min((_forecast(method, setting) for method in listed), key=_preference)
        which = "The only method" if len(methods) == 1 else "The best of the methods"
        reason = f"{which} that was asked for or takes this input."
    if not chosen.useful:
        reason = f"{reason} {_advice(chosen, setting)}"
    final = replace(chosen, reason=reason)
    # The other forecasts cost more than the choice, and few callers read them.
    del vars(final)["alternatives"]
    vars(final)["_forecasts"] = listed, setting
    return final


def _choose(setting: _Setting) -> Plan:
    """Take the course that looks and chooses, or the adaptive algorithm where that is all there is to choose."""
    return _forecast("auto" if setting.may_look else "adaptive", setting)


def _preference(one: Plan) -> float:
    """Return the error; a method that may abstain must promise a tenth less than one that never does."""
    return one.error if one.abstention == 0.0 else 1.1 * one.error


def _reason(chosen: Plan, setting: _Setting) -> str:
    tail = f"{chosen.gamma:.3g} times the spread that they have along it"
    if not chosen.assumed:
        said = f"Off the subspace, records were said to have {tail}, in every direction"
        if not setting.may_look:
            return f"{said}: too much for stable leverage to pay off."
        then = ", then rounds of little noise on all rows" if setting.look.rounds else ""
        return f"{said}, so stable leverage looks first{then}, with the adaptive algorithm to fall back on."
    supposed = f"How far off it they lie is not known beforehand; the errors suppose {tail}, in every direction."
    if not setting.may_look:
        return f"Stable leverage could not pay off, however close to a subspace records lie. {supposed}"
    asked = "A private question tells whether records lie so close to a subspace that stable leverage looks first."
    return f"{asked} {supposed}"


def _advice(useless: Plan, setting: _Setting) -> str:
    need = _rows_of("analyze-gauss", setting, USELESS / 2)  # quick to find, and the adaptive method needs no more
    much = "No number of rows is" if need is None else f"About {need:,} rows are"
    now = f"With {useless.n:,} rows and this budget the result is predicted to be useless"
    return f"{now} (error {useless.error:.2f}). {much} predicted to bring the error down to {USELESS / 2}."


def _in_words(one: Plan) -> str:
    abstains = f", abstains {one.abstention:.0%}" if one.abstention > 0 else ""
    return f"error {one.error:.2g} (90 %: {one.error_90:.2g}){abstains}, limited by {one.limited_by}"


_COURSES = {
    "pairs": "Too few rows to find the middle of the records in private: one noisy look at differences of pairs.",
    "public centre": "One noisy look at the records about the public centre, all made equally long.",
    "one look": "The middle of the records is searched for; then one noisy look, all made equally long.",
    "two looks": "The middle of the records is searched for; then noisy looks at records of which only the longest "
    "are shortened and, unless that is clear enough, at records made equally long.",
}


# ---- One forecast per method ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Setting:
    """The public numbers that a forecast goes by."""

    n: int
    d: int
    k: int
    epsilon: float
    delta: float
    gamma: float
    assumed: bool
    mu: float
    mu_beside_test: float  # of what the test of the stable methods leaves of delta
    center: bool = False
    scale: bool = False
    about: bool = False  # whether there is a public centre
    scales: float | None = None  # the share of mu² that these take, if it is known

    @property
    def spent(self) -> float:
        """The share of mu² that the scales of columns take; all of it where they cannot be afforded."""
        if not self.scale or self.scales is not None:
            return self.scales or 0.0
        try:
            return scale_share(self.n, self.d, self.mu)
        except ValueError:
            return 1.0

    def on_pairs(self) -> _Setting:
        """Return the setting of a named method in a private PCA: half of the rows, a share of the budget."""
        share = math.sqrt(_BY_PAIRS * max(1.0 - self.spent, 1e-9))
        mu, beside_test = self.mu * share, self.mu_beside_test * share
        return replace(self, n=self.n // 2, mu=mu, mu_beside_test=beside_test, center=False, scale=False)

    @property
    def tail(self) -> float:
        """The tail energy over a signal direction's, sqrt(E ||e||²)."""
        return self.gamma * math.sqrt(self.d - self.k)

    @property
    def public(self) -> choice.Public:
        """The same numbers for the choice that the course makes; what is set aside for its test is public too."""
        aside = choice.TEST_SHARE * self.delta
        whole = _mu_of(self.epsilon, self.delta)  # `self.mu` may be a share of it
        mu = _mu_beside_test(whole, self.epsilon, self.delta, choice.TEST_SHARE) * (self.mu / whole)
        return choice.public_numbers(self.n, self.d, self.k, mu, aside, copied=False)

    @property
    def may_look(self) -> bool:
        """Whether the course could begin with stable leverage."""
        return self.n >= self.k and choice.may_pay(self.public, None if self.assumed else self.gamma)

    @property
    def look(self) -> choice.Look:
        """What a course that begins with stable leverage is expected to do."""
        found = choice.forecast(self.public, self.tail)
        assert found is not None
        return found

    @property
    def size(self) -> float:
        """The typical largest singular value of a (d - k, k) normal matrix."""
        return math.sqrt(self.d - self.k) + math.sqrt(self.k)

    @property
    def sampling(self) -> float:
        """The error that PCA without noise would make: (√(d − k) + √k) γ / √n, for signal variance 1."""
        if self.d == self.k:
            return 0.0
        return self.gamma * math.sqrt(1.0 + self.gamma**2) * self.size / math.sqrt(self.n)


def _setting(n: int, d: int, k: int, epsilon: float, delta: float, mu: float, gamma: float | None) -> _Setting:
    nominal = NOMINAL_TAIL if planner_adaptive.crowding(n, d, k, mu) < CROWDED else NOMINAL_CROWDED_TAIL
    supposed = nominal / math.sqrt(max(d - k, 1)) if gamma is None else gamma
    beside = _mu_beside_test(mu, epsilon, delta, _TEST_SHARE)
    return _Setting(n, d, k, epsilon, delta, supposed, gamma is None, mu, beside)


_mu_of = lru_cache(maxsize=256)(mu_from_budget)  # of public numbers only


@lru_cache(maxsize=256)
def _mu_beside_test(mu: float, epsilon: float, delta: float, share: float) -> float:
    """Return the mu that goes with epsilon and the rest of delta, given that of the whole, to about the last digit.

    A forecast promises nothing, so Newton's method may do what a search with a known direction does elsewhere.
    """
    target = float(ndtri((1.0 - share) * delta))
    for _ in range(_MOST_NEWTON_STEPS):
        # The slope of delta in mu is the normal density at eps/mu - mu/2; its quantile is all but linear in mu.
        quantile, near = float(ndtri(delta_from_mu(mu, epsilon))), epsilon / mu - mu / 2.0
        mu, last = mu + (target - quantile) * math.exp(0.5 * (near * near - quantile * quantile)), mu
        if abs(mu - last) <= 1e-15 * mu:
            break
    return mu


def _rows_of(method: str, setting: _Setting, error: float) -> int | None:
    """Return about the smallest number of rows for which a method is predicted to reach an error."""

    def reaches(n: int) -> bool:
        forecast = _forecast(method, replace(setting, n=n))
        return forecast.error <= error and forecast.abstention <= _MOST_ABSTENTION

    most = MOST_STABLE_ROWS if method == "stable" else _MOST_ROWS
    low, high = setting.k, max(2 * setting.k, 16)
    while not reaches(high):
        if high >= most:
            return None
        low, high = high, min(2 * high, most)
    while high - low > max(1, low // 200):
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


@lru_cache(maxsize=1024)  # of public numbers only
def _forecast(method: str, setting: _Setting) -> Plan:
    """Predict one method, from the error by privacy, its 90th percentile over that, and how often it abstains."""
    if setting.center and method != "everyday":
        inner = _forecast(method, setting.on_pairs())
        return replace(inner, n=setting.n, center=True, scale=setting.scale)
    private, spread, abstention = {
        "everyday": _everyday,
        "auto": _auto,
        "adaptive": _adaptive,
        "stable": _stable,
        "approximate": _approximate,
        "analyze-gauss": _analyze_gauss,
    }[method](setting)
    error = min(1.0, math.hypot(private, setting.sampling))
    limit = "abstention" if abstention >= 1.0 else "privacy" if private >= setting.sampling else "sampling"
    public = (setting.n, setting.d, setting.k, setting.epsilon, setting.delta, setting.gamma, setting.assumed)
    told = Plan(method, error, min(1.0, error * spread), abstention, f"Forecast of {method}.", limit, *public)
    return replace(told, center=setting.center, scale=setting.scale)


def _analyze_gauss(setting: _Setting) -> tuple[float, float, float]:
    n, d, k = setting.n, setting.d, setting.k
    if k == d:
        return 0.0, 1.0, 0.0
    if n < k:
        return _NO_ANSWER
    weakest, off_square = planner_adaptive.signal_strength(k, setting.tail)
    # Eigenvectors feel the gap above the tail, not the eigenvalue itself.
    gap = max(weakest - off_square / (d - k), 1e-12)
    error = setting.size / (setting.mu * n * gap)
    return error, 1.0 + 1.3 / setting.size, 0.0


def _everyday(setting: _Setting) -> tuple[float, float, float]:
    """Forecast the looks of a private PCA, by what its other steps are expected to leave."""
    course, share = expected_share(setting.n, setting.d, setting.mu, setting.about)
    rows = setting.n // 2 if course == "pairs" else setting.n
    share *= max(1.0 - setting.spent, 1e-9)
    return _analyze_gauss(replace(setting, n=rows, mu=setting.mu * math.sqrt(share)))


def _adaptive(setting: _Setting) -> tuple[float, float, float]:
    n, d, k = setting.n, setting.d, setting.k
    if k == d or n < k:
        return _analyze_gauss(setting)
    mu = planner_adaptive.lively(setting.mu, k, d)
    total = planner_adaptive.predicted_error(n, d, k, mu, setting.tail)
    by_rounds = math.sqrt(max(total**2 - setting.sampling**2, 0.0))
    return min(by_rounds, _analyze_gauss(setting)[0]), 1.0 + 1.6 / setting.size, 0.0


def _auto(setting: _Setting) -> tuple[float, float, float]:
    """Follow the course: a look where it is predicted to pay off, else the adaptive algorithm with what is left."""
    if not setting.may_look:
        return _adaptive(setting)
    public = setting.public
    if choice.pays(public, setting.tail):
        return setting.look.error, 1.2 if setting.look.rounds else 1.35, 0.0
    return _adaptive(replace(setting, mu=public.mu * math.sqrt(1.0 - choice.probe_share(public))))


def _stable(setting: _Setting) -> tuple[float, float, float]:
    """Walk through the steps of stable leverage with expected values in the place of released ones."""
    n, d, k = setting.n, setting.d, setting.k
    if n < k or k == d:
        return _NO_ANSWER
    mu = setting.mu_beside_test
    before = sum(stable_plan.scale_weights(n, k, mu))
    best, length, room = math.inf, 1.0, stable_plan.allowance_for("auto")
    for quantile, signal in product(_NORM_QUANTILES, _SIGNAL_WEIGHTS):
        scale, share = stable_plan.normal_scales(k, quantile, setting.tail)
        released = min(1.0, _BIN_EDGE * setting.tail / scale)
        strength = stable_plan.usual_strength(n, share, mu, signal)
        levels = partial(stable_plan.plan_levels, n, d, strength, released, allowance=room)
        error = _by_noise(setting, before + signal, levels)
        if error < best:
            best, length = error, released
    # Measured: no abstentions up to a tail of .02 of a record's length, half of the runs at .027.
    return _NO_ANSWER if math.isinf(best) else (best, 1.35, _clipped((length - 0.018) / 0.018))


def _approximate(setting: _Setting) -> tuple[float, float, float]:
    """Do the same for the group version, whose items are the top-k spaces of blocks."""
    n, d, k = setting.n, setting.d, setting.k
    m = stable_block_size(n, k)
    groups = n // m
    if groups < 2 or k == d:
        return _NO_ANSWER
    tilt = min(1.0, setting.tail * _BLOCK_TILT / (math.sqrt(m) - math.sqrt(k)))
    mu = setting.mu_beside_test
    strength, room = stable_plan.GROUP_STRENGTH * groups, stable_plan.GROUPS
    levels = partial(stable_plan.plan_levels, groups, d, strength, tilt, allowance=room, width=k)
    error = _by_noise(setting, stable_plan.group_tail_weight(groups, mu), levels, k)
    # Measured: a third of the runs at 30 groups per unit of 1/mu, none at 40; and as above for long tails.
    few = (40.0 - mu * groups) / 30.0
    return _NO_ANSWER if math.isinf(error) else (error, 1.6, _clipped(max(few, (tilt - 0.01) / 0.015)))


def _by_noise(setting: _Setting, before: float, levels: stable_plan.Levels, width: int = 1) -> float:
    """Return the error of the best split of what earlier steps leave of mu²; inf if no split has a plan."""
    mu, test = setting.mu_beside_test, _TEST_SHARE * setting.delta
    *_, noise, sensitivity = stable_plan.least_noise(1.0 - before, mu, test, levels, _TEST_WEIGHTS)
    return sensitivity * math.sqrt(width) * setting.size / (mu * math.sqrt(noise))


def _clipped(abstention: float) -> float:
    return min(1.0, max(_RARE_ABSTENTION, abstention))
