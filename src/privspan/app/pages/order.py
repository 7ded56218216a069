"""The steps in their order, and which of them is next."""

from __future__ import annotations

from privspan.app.answers import Answers

STEPS = (
    ("/table", "Table"),
    ("/columns", "Columns"),
    ("/question", "Question"),
    ("/budget", "Budget"),
    ("/confirm", "Confirm"),
)


def missing(answers: Answers, step: str) -> str | None:
    """Return the first step before this one that has not been answered; None if all have."""
    given = (answers.table, answers.columns, answers.question, answers.price)
    for (path, _), answer in zip(STEPS, given, strict=False):
        if path == step:
            return None
        if answer is None:
            return path
    return None
