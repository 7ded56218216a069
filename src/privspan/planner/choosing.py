"""Which method ``method="auto"`` comes down to, and why, in words.

It is the course that asks the data, or the adaptive algorithm where public numbers leave nothing to ask; among named
methods it is the one that promises most.  Why: docs/explanation/planning.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from privspan.planner.forecasts import METHODS, Forecast, forecast, may_be_near, rows_of
from privspan.planner.setting import USELESS, Setting
from privspan.privacy import Budget, mu_from_budget
from privspan.standard.course import Standard, StandardTuning, data_per_column, unit_share
from privspan.standard.forecast import expected_captured, needed_rows
from privspan.sums.everyday import expected_share

_USUAL = (0.1, 0.3, 1.0, 3.0, 10.0)  # epsilons that are shown in advice
_ENOUGH = 0.8  # share of the variance that is shown in advice

_COURSES = {
    "pairs": "Too few rows to estimate a centre: the covariance is measured once, from differences of pairs.",
    "public centre": "The covariance about the public centre is measured once, with all rows scaled to length 1.",
    "one look": "We estimate a centre, then the covariance once, with all rows scaled to length 1.",
    "two looks": "We estimate a centre, then the covariance with long rows clipped and, unless that is clear enough, "
    "with all rows scaled to length 1.",
    "near": "We estimate a centre and ask whether most rows lie close to a few directions, as was said. These are "
    "then measured with noise in proportion to how close the rows lie.",
}


def choose(setting: Setting, methods: tuple[str, ...]) -> tuple[str, str, tuple[str, ...]]:
    """Return the method to take among those that are asked for or take the input, why, and those to list beside it.

    Where it may be, it is the course that looks and chooses, or the adaptive algorithm where that is all there is to
    choose.
    """
    chosen, listed = "auto" if setting.may_look else "adaptive", METHODS
    reason = _reason(setting)
    if chosen not in methods:
        listed = tuple(method for method in METHODS if method in methods)
        chosen = min(listed, key=lambda method: _preference(forecast(method, setting)))
        which = "The only method" if len(methods) == 1 else "The best of the methods"
        reason = f"{which} that was asked for or takes this input."
    return chosen, _with_advice(reason, chosen, setting), listed


def everyday_reason(setting: Setting) -> str:
    """Say how the everyday course of a private PCA is expected to go."""
    course, share = expected_share(setting.n, setting.d, setting.mu, setting.about)
    course = "near" if not setting.assumed and may_be_near(setting, course) else course
    reason = f"{_COURSES[course]} About {share:.0%} of the budget is left for the covariance."
    return _with_advice(reason, "everyday", setting)


_STANDARD = {
    "ranks": "Columns are standardised by ranks: pairs of rows are compared column by column (rank correlations).",
    "deviations": "Columns are standardised by private means and standard deviations, extreme cells cut off.",
}


def standardised_reason(n: int, d: int, k: int, budget: Budget, course: Standard) -> str:
    """Say how a PCA of standardised columns is expected to go, and whether units are measured for `transform`."""
    mu = budget.mu
    share, captured = unit_share(n, d, mu, course), expected_captured(n, d, k, mu)
    units = (
        f"{share:.0%} of the budget measures means and scales, for `transform`."
        if share
        else "Means and scales are not measured: too few rows. `transform` will need public `bounds=`."
    )
    reason = f"{_STANDARD[course]} {units}"
    if course == "deviations" and data_per_column(n, d, mu) < StandardTuning().ranges_from:
        reason += ' There are too few rows for ranges of most columns, so nothing is estimated; "ranks" needs fewer.'
    if captured >= USELESS:
        return reason
    need = needed_rows(_ENOUGH, d, k, mu)
    epsilon = _or_epsilon(
        budget.epsilon, lambda more: expected_captured(n, d, k, mu_from_budget(more, budget.delta)) >= _ENOUGH
    )
    much = "" if need is None else f" About {need:,} rows{epsilon} are predicted to capture {_ENOUGH:.0%}."
    few = f"With {n:,} rows and this budget only {captured:.0%} of the variance is predicted to be captured"
    return f"{reason} {few}.{much}"


def _or_epsilon(now: float, does: Callable[[float], bool]) -> str:
    """Name the smallest of the usual budgets above this one that would do as well; nothing if none does."""
    found = next((epsilon for epsilon in _USUAL if epsilon > now and does(epsilon)), None)
    return "" if found is None else f", or epsilon {found:g},"


def _preference(one: Forecast) -> float:
    """Return the error; a method that may abstain must promise a tenth less than one that never does."""
    return one.error if one.abstention == 0.0 else 1.1 * one.error


def _reason(setting: Setting) -> str:
    tail = f"{setting.gamma:.3g} times the spread along it"
    if not setting.assumed:
        said = f"As given, the spread of records off the subspace is {tail}, in every direction"
        if not setting.may_look:
            return f"{said}: too much for stable leverage to help."
        then = ", then rounds of little noise on all rows" if setting.look.rounds else ""
        return f"{said}, so stable leverage comes first{then}, and the adaptive algorithm if that fails."
    supposed = f"Their distance from it is not known beforehand; predictions assume {tail}, in every direction."
    if not setting.may_look:
        return f"Stable leverage would not help, however close to a subspace records lie. {supposed}"
    asked = "A private test decides whether records lie close enough to a subspace to start with stable leverage."
    return f"{asked} {supposed}"


def _with_advice(reason: str, chosen: str, setting: Setting) -> str:
    error = forecast(chosen, setting).error
    return reason if error < USELESS else f"{reason} {_advice(error, setting)}"


def _advice(error: float, setting: Setting) -> str:
    # Of subspaces, what is quick to find; the adaptive method needs no more.
    method = "everyday" if setting.center else "analyze-gauss"
    need = rows_of(method, setting, USELESS / 2)
    part = setting.mu / mu_from_budget(setting.epsilon, setting.delta)

    def does(epsilon: float) -> bool:
        more = replace(setting, epsilon=epsilon, mu=part * mu_from_budget(epsilon, setting.delta))
        return forecast(method, more).error <= USELESS / 2

    much = "No number of rows is" if need is None else f"About {need:,} rows{_or_epsilon(setting.epsilon, does)} are"
    now = f"With {setting.n:,} rows and this budget the result is predicted to be useless"
    return f"{now} (error {error:.2f}). {much} predicted to bring the error down to {USELESS / 2}."
