"""The forecast as a picture: what is expected at this ε, at smaller and at larger ones, from public numbers alone."""

from __future__ import annotations

from privspan._lib.in_words import angle, at_most, number, share
from privspan._lib.markup import Html, element, figure, join, listed, note
from privspan.app.answers import Price, Question
from privspan.app.facts import Size
from privspan.app.judging import forecast, useless_because
from privspan.planner import Plan
from privspan.privacy import PrivacyCost
from privspan.report import pictures
from privspan.report.promise import meanings
from privspan.report.words import chance_to_guess, strength

_AROUND = (0.1, 0.3, 1.0, 3.0, 10.0)  # times the ε that was asked for: the lines of the picture
_ASSUMED = 2  # components, where their number is found out privately


def picture(size: Size, question: Question, price: Price) -> Html:
    """Return the picture: what is expected at this ε, and at others."""
    k = question.k if question.how_many == "count" else min(_ASSUMED, size.d)
    epsilon, delta = price.floats
    asked = {times: forecast(size, k, question.scale, epsilon * times, delta) for times in _AROUND}
    plans = {times: one for times, one in asked.items() if one is not None}  # others are beyond what can be spent
    here = plans.get(1.0)
    if here is None:
        words = f"No forecast: {k} components of {size.d:,} columns and {size.n:,} {size.unit} are not possible."
        return element("p", words, class_="banner")
    rows = [(f"{'▸ ' * (times == 1.0)}ε = {number(epsilon * times)}", *_length(one)) for times, one in plans.items()]
    faint = [at for at, times in enumerate(plans) if times != 1.0]
    title = "How far off the directions are"
    words = "Typical angle to the true directions, for ideal data; a full bar is 0°, an empty one 90°."
    if here.captured is not None:
        title = "How much of the variance is captured"
        words = (
            "The best components would capture 100 %. As on real tables of this size; yours may be easier or harder."
        )
    assumed = "" if question.how_many == "count" else f" Drawn for {k}, as their number is not known yet."
    told = f"{k} component{'s' * (k != 1)} from {size.n:,} {size.unit} and {size.d:,} columns.{assumed}"
    useless = useless_because(here)
    banner = [] if useless is None else [element("p", useless, class_="banner")]
    return join(*banner, figure(title, words, pictures.bars(rows, title, faint=faint, full=1.0), note(told)))


def _length(one: Plan) -> tuple[float, str]:
    """Return the length of a bar, from 0 to 1, and what is written at its end."""
    if one.captured is not None:
        return one.captured, share(round(one.captured, 2))
    return 1.0 - one.error, f"{angle(one.error)} off"


def meaning(price: Price) -> Html:
    """Say what the budget means for a person in the table: the words of the report."""
    cost = PrivacyCost(*price.floats)
    guess = at_most(chance_to_guess(cost))
    meter = pictures.guess_meter(chance_to_guess(cost), f"at most {guess}")
    promise = f"ε = {number(cost.epsilon)} is {strength(cost.epsilon)}. For somebody whose record is in the table:"
    rare = f"δ, one in {number(round(1 / cost.delta))}, is the chance left for outcomes that ε does not cover."
    return join(
        element("p", promise),
        listed(meanings(cost, guess, "the report")),
        figure("How well could an attacker guess a record?", "", meter),
        note(f"{rare} It should be well below one over the number of people."),
    )
