"""The door of every public private function: what has to hold for all of them stands here, once.

`entry` decorates whatever takes a table or a budget from outside.  Inside,

* NumPy raises and warns of nothing: with ``np.seterr(all="raise")`` an underflow in one person's row would otherwise
  end the call, and the end of a call is seen by everybody;
* the budget has been found to lie in the range in which every formula of the package stays within float64, so that
  nothing fails after it has been spent;
* the caller has been told, once, of a budget that promises little (`WeakPrivacyWarning`);
* the budget has been charged, if a ledger was given, before the first look at a value (`privspan._lib.charge`);
* a warning never costs what was paid for (`warn`): from the first look on, warnings wait until there is a result.
  Where warnings are errors the result is that error's `release`, and an estimator is fitted.

All of this follows from public facts: parameters, the number of rows, and what the ledger holds.
tests/_lib/test_entry.py finds what spends a budget by its parameters, so that a function without the door fails
there.
"""

from __future__ import annotations

import inspect
import math
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np

from privspan._lib import checks
from privspan._lib.charge import Charge

_Parameters = ParamSpec("_Parameters")
_Result = TypeVar("_Result")

EPSILONS = (1e-9, 1e4)
"""Budgets outside are refused: below nothing can be learnt, above there is nothing left to promise."""

SMALLEST_DELTA = 2.0**-100
"""A smaller delta is refused: a release that rests on it would never come."""

_LARGE_EPSILON = 10.0  # exp(10): a result may be 22,000 times as likely with a person's row as with another one
_LARGE_DELTA = 0.01

_PACKAGE = str(Path(__file__).parents[1])


class WeakPrivacyWarning(UserWarning):
    """The budget promises little: epsilon above 10, or delta above 1/100 or above one over the number of rows."""


_Budget = tuple[float, float | None]


@dataclass
class _Call:
    """What has to be done once for the outermost call, whatever it calls itself."""

    untold: _Budget | None  # until the caller has been told of it
    charge: Charge | None
    looks: bool = False  # it may have seen values, and counts as paid for
    waiting: list[tuple[str, type[Warning]]] = field(default_factory=list)  # warnings

    def tell(self, result: object) -> None:
        """Give the warnings that have waited; one that is turned into an error carries the result."""
        for message, category in self.waiting:
            try:
                warnings.warn(message, category, stacklevel=outside())
            except Warning as error:
                error.release = getattr(result, "release_", result)  # type: ignore[attr-defined]
                raise


# The outermost call; None outside.  Every thread has its own.
_under_way: ContextVar[_Call | None] = ContextVar("privspan_call", default=None)


def entry(function: Callable[_Parameters, _Result]) -> Callable[_Parameters, _Result]:
    """Make a function a door: its `epsilon` and `delta` (or those of its object) are checked before anything is read.

    They are charged to its `ledger`, if there is one.  A call from inside another one neither checks nor charges
    again: shares of a budget may be smaller than budgets, and are paid for.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def door(*args: _Parameters.args, **kwargs: _Parameters.kwargs) -> _Result:
        if _under_way.get() is not None:
            return function(*args, **kwargs)
        with quiet_numpy():
            given = _parameters_of(signature, args, kwargs)
            budget = _budget_of(given)
            charge = _charge_of(function.__name__, given, budget)
            call = _Call(budget, charge)
            token = _under_way.set(call)
            try:
                with charge or nullcontext():
                    result = function(*args, **kwargs)
                    if charge is not None:
                        charge.finished(result)
            except BaseException:
                with suppress(Warning):  # none must hide what has happened
                    call.tell(None)
                raise
            finally:
                _under_way.reset(token)
            call.tell(result)
            return result

    return door


def quiet_numpy() -> Any:
    """Return a context in which NumPy neither raises nor warns, whatever a row holds."""
    return np.errstate(all="ignore")


def _parameters_of(
    signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return the parameters of a call by name, and those of its object if any; nothing for an impossible call."""
    try:
        given: Mapping[str, Any] = signature.bind(*args, **kwargs).arguments
    except TypeError:  # which the call itself will raise
        return {}
    return {"of": type(given["self"]).__name__, **given, **vars(given["self"])} if "self" in given else given


def _budget_of(given: Mapping[str, Any]) -> _Budget | None:
    """Return the budget among the parameters of a call, checked; None if there is none."""
    if "epsilon" not in given:
        return None
    epsilon, delta = given["epsilon"], given.get("delta")
    spendable(epsilon, delta)
    return float(epsilon), None if delta is None else float(delta)


def _charge_of(name: str, given: Mapping[str, Any], budget: _Budget | None) -> Charge | None:
    """Return the charge of a call that names a ledger, or refuse what that does not allow."""
    ledger = given.get("ledger")
    if ledger is None or budget is None:
        return None
    k = given.get("k", given.get("n_components"))
    of = "" if not isinstance(k, int | float | str) else f", k = {k}"
    seeded = given.get("rng", given.get("random_state")) is not None
    what = f"{given.get('of', name)}{of}{', seeded and so not private' if seeded else ''}"
    return Charge(ledger, budget[0], budget[1] or 0.0, what, _person_of(given))


def _person_of(given: Mapping[str, Any]) -> str | None:
    """Return the name of the ids, if a call promises for persons; None if it does for rows."""
    groups, opened_with = given.get("groups"), getattr(given.get("X"), "person", None)
    if groups is None:
        return opened_with if isinstance(opened_with, str) else None  # of a frame it is a column of that name
    name = groups if isinstance(groups, str) else getattr(groups, "name", None)
    return name if isinstance(name, str) and name else "person"


def about_to_look() -> None:
    """Charge the call that is under way, if it has not been yet: its checks are done, and now it will see values."""
    call = _under_way.get()
    if call is None:
        return
    if call.charge is not None:
        call.charge.begin()
    call.looks = True


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn whoever called this package: now or, if the call under way has looked, as soon as it has its result."""
    call = _under_way.get()
    if call is not None and call.looks:
        call.waiting.append((message, category))
    else:
        warnings.warn(message, category, stacklevel=outside())


def spendable(epsilon: Any, delta: Any = None) -> None:
    """Refuse an epsilon, or an (epsilon, delta), that no algorithm could spend."""
    checks.positive(epsilon=epsilon)
    low, high = EPSILONS
    if not low <= epsilon <= high:
        raise ValueError(f"`epsilon` must be between {low:g} and {high:g}; got {float(epsilon):.12g}.")
    if delta is not None:
        checks.probability(delta=delta)
        if delta < SMALLEST_DELTA:
            what = "at least 2**-100, or nothing would ever be released"
            raise ValueError(f"`delta` must be {what}; got {float(delta):.12g}.")


def rows_known(n: int) -> None:
    """Tell the caller, if the call that is under way has not yet, of a budget that promises little for n rows."""
    call = _under_way.get()
    if call is None or call.untold is None:
        return
    # Forgotten first: whatever follows works with shares of the budget, or with parts of the rows.
    budget, call.untold = call.untold, None
    if told := weakness(n, *budget):
        warn(told, WeakPrivacyWarning)


def weakness(n: int, epsilon: float, delta: float | None = None) -> str | None:
    """Say in plain words what is weak about a budget for n rows; None if nothing is."""
    reasons = []
    if epsilon > _LARGE_EPSILON:
        times = f"{math.exp(epsilon):,.0f}" if epsilon < 16 else f"10^{epsilon / math.log(10.0):.0f}"
        reasons.append(
            f"epsilon = {epsilon:g} lets a result be {times} times as likely with a person's row as with another in "
            "its place, which can give the row away"
        )
    if delta is not None and delta > min(_LARGE_DELTA, 1.0 / n):
        row = f": it allows to publish one of the {n:,} rows, drawn at random" if delta > 1.0 / n else ""
        reasons.append(f"delta = {delta:g} lets the promise fail altogether once in {1.0 / delta:,.3g} runs{row}")
    if not reasons:
        return None
    usual = f"Usual are an epsilon of at most {_LARGE_EPSILON:g} and a delta well below one over the number of rows"
    return f"This budget promises little: {'; '.join(reasons)}. {usual}."


def outside() -> int:
    """Return the level of the first frame outside this package, to which a warning is attributed."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        level, frame = level + 1, frame.f_back
    return level
