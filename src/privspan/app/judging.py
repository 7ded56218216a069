"""What can be said of a release beforehand, from public facts: why it would be refused, and what is weak about it.

The program that makes the release checks all of this again before it charges anything.
"""

from __future__ import annotations

import warnings

from privspan._lib import checks
from privspan.app.answers import Answers
from privspan.app.facts import Outline, Size
from privspan.ledger import Ledger, OverspendError
from privspan.pca import PCASettings, check_pca
from privspan.planner import Plan, plan
from privspan.privacy.call import Call, weakness

_GOOD_ENOUGH = 0.25  # the error for which a useless forecast says how many people would do; shown only


def refuse(answers: Answers, outline: Outline, ledger: Ledger, dataset: str) -> None:
    """Raise a refusal of what was asked for, if shapes, parameters or the ledger rule it out; no cell is read."""
    question, price = answers.asked
    epsilon, delta = price.floats
    checks.spendable(epsilon, delta)
    bounds = answers.bounds or None
    settings = PCASettings(question.components, scale=question.scale, bounds=bounds)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of a weak budget: the page tells it by itself
        with Call("private_pca", epsilon, delta) as call:
            in_mu = check_pca(settings, call, outline.source())
    now = "for rows" if answers.person is None else f"for persons by {answers.person!r}"
    earlier = next((entry.in_words() for entry in ledger.account(dataset).entries), now)
    if earlier != now:
        template = (
            "What has been spent on this table is {earlier}, and this would be {now}: these do not add up. "
            "Say the same of the person id as before, or start the app with another `--ledger`."
        )
        raise OverspendError(template, earlier=earlier, now=now)
    mu, aside = in_mu or (None, 0.0)
    ledger.check(
        dataset,
        price.epsilon,
        price.delta,
        mu=mu,
        aside=aside,
        person=answers.person,
        limit_epsilon=price.limit_epsilon,
        limit_delta=price.limit_delta,
    )


def weak_points(answers: Answers, size: Size) -> list[str]:
    """Say what is weak about the budget, or useless about the result."""
    question, price = answers.asked
    weak = weakness(size.n, *price.floats)
    expected = None
    if question.how_many == "count":
        expected = forecast(size, question.k, question.scale, *price.floats)
    useless = None if expected is None else useless_because(expected)
    return [words for words in (weak, useless) if words is not None]


def forecast(size: Size, k: int, scale: bool, epsilon: float, delta: float) -> Plan | None:
    """Return what is expected, from public numbers alone; None where these numbers are not possible."""
    try:
        return plan(size.n, size.d, k, epsilon=epsilon, delta=delta, scale=scale)
    except ValueError:
        return None


def useless_because(expected: Plan) -> str | None:
    """Say why a result is expected to be useless, and how many people would do; None if it is not."""
    if expected.useful:
        return None
    need = expected.needed_n(_GOOD_ENOUGH)
    would = "No number of people would do" if need is None else f"About {need:,} people would be needed"
    return f"Expected to be useless: mostly noise. {would}, or a larger ε, or fewer columns."
