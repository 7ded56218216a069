"""What the release cost, and what that means for a person."""

from __future__ import annotations

from privspan._lib.in_words import at_most, number, share
from privspan._lib.markup import Html, element, figure, folded, join, listed, note, row
from privspan.privacy import PrivacyCost
from privspan.privacy.reading import budget_shares, plain_step
from privspan.report import pictures
from privspan.report.subject import Subject
from privspan.report.words import chance_of_harm, chance_to_guess, strength

_HARM = 0.01  # the chance of a harm, before
_MOST_STEPS = 6
_LARGE_DELTA = 0.1  # times the number of rows: about the chance that some row is published by a method that may do so


def cost(subject: Subject) -> Html:
    """Say what was spent and translate it."""
    spent = subject.release.cost
    letters = f"(ε = {number(spent.epsilon)}, δ = {number(spent.delta)})-differentially private"
    title = element("h2", "What it cost, and what that means")
    if not subject.release.private:
        words = f"Nothing is promised: a seed was given. Without it, everything on this page would be {letters}."
        return join(title, element("p", words), _parts(spent))
    promise = f"Everything on this page together is {letters}: {strength(spent.epsilon)}."
    guess = at_most(chance_to_guess(spent))
    meter = pictures.guess_meter(chance_to_guess(spent), f"at most {guess}")
    return join(
        title,
        element("p", f"{promise} For someone whose record is in the table:"),
        listed(meanings(spent, guess)),
        figure("How well could an attacker guess your record?", "", meter),
        element("p", _about_delta(subject)),
        _parts(spent),
    )


def meanings(spent: PrivacyCost, guess: str, what: str = "this page") -> list[str]:
    """Say what a budget means for a person in the table, given the best guess that it allows; `what` is released."""
    after = at_most(chance_of_harm(spent, _HARM))
    return [
        join(
            "Suppose somebody knows every other record, and that yours is one of two, each as likely. From "
            f"{what} they name the right one at most ",
            element("b", guess),
            " of the time. A coin gets 50 %.",
        ),
        join(
            f"Whatever could happen to you because of {what}: if its chance were 1 % with another record in the "
            "place of yours, it is at most ",
            element("b", after),
            " with yours.",
        ),
        f"This holds whatever else they know, now or later, and whatever they compute from {what}.",
    ]


def _about_delta(subject: Subject) -> str:
    delta = subject.release.cost.delta
    if delta == 0:
        return "δ is zero: the bounds above hold without exception."
    rare = f"one in {number(round(1 / delta))}"
    words = f"δ, {rare}, is the chance left for outcomes that ε does not cover; the figures above include it."
    rows = subject.release.parameters.get("n")
    here = ", and here it is not" if isinstance(rows, int) and delta * rows > _LARGE_DELTA else ""
    return f"{words} It should be well below one over the number of people{here}."


def _parts(spent: PrivacyCost) -> Html:
    """Show where the budget went: in one bar if its parts are of one kind, and in a table."""
    if not spent.parts:
        return join()
    shares = budget_shares(spent, _MOST_STEPS)
    pieces = []
    if len(shares) > 1:
        keys = (element("span", "■ ", class_=f"key part{i % 6}") for i in range(len(shares)))
        legend = [join(key, f"{name} {share(part)}") for key, (name, part) in zip(keys, shares, strict=True)]
        bar = pictures.stacked_bar(shares)
        pieces.append(figure("Where the budget went", "", bar, listed(legend, class_="legend")))
    mus = ["–" if part.mu is None else number(part.mu) for part in spent.parts]
    rows = [
        row(plain_step(part.name), number(part.epsilon), number(part.delta), mu)
        for part, mu in zip(spent.parts, mus, strict=True)
    ]
    table = element("div", element("table", row("step", *"εδμ", kind="th"), *rows), class_="scroll")
    steps = f"Its {number(len(rows))} steps" if len(rows) > 1 else "Its one step"
    composition = note("Where a step has a μ, the squares of the μ add up; the ε and δ of such steps do not.")
    return join(*pieces, folded(steps, table, composition))
