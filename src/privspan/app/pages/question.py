"""Step 3: what is to be learnt, and what the report is to say of why."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from starlette.requests import Request
from starlette.responses import Response

from privspan._lib.typed import decimal_of
from privspan.app.answers import HowMany, Question
from privspan.app.desk import desk_of, go, page
from privspan.app.forms import Form
from privspan.app.pages.order import missing

MOST_COMPONENTS = 500  # on a form
_MOST_ROWS = 1_024  # of a person, as `private_pca` takes them at most


def show(request: Request) -> Response:
    """Show the question with what was answered, or the usual answers."""
    answers = desk_of(request).session.answers
    if (step := missing(answers, "/question")) is not None:
        return go(step)
    return _page(request, answers.question or _usual(answers.made_up))


def answer(request: Request, form: Form) -> Response:
    """Take the answers."""
    desk = desk_of(request)
    answers = desk.session.answers
    if (step := missing(answers, "/question")) is not None:
        return go(step)
    old = answers.question or _usual(answers.made_up)
    how_many = form.choice("how_many", get_args(HowMany), old.how_many)
    counted, shared, several = how_many == "count", how_many == "share", answers.person is not None
    asked = Question(
        how_many,
        form.whole("k", 1, MOST_COMPONENTS, old.k) if counted else old.k,
        _share(form, old.share) if shared else old.share,
        form.choice("scale", ("yes", "no"), "yes") == "yes",
        form.whole("max_rows", 1, _MOST_ROWS, old.max_rows) if several else old.max_rows,
        form.line("by"),
        _marked(form.line("purpose"), answers.made_up),
        form.line("reviewed_by"),
    )
    if form.mistakes:
        return _page(request, asked, form.mistakes)
    desk.session.change(replace(answers, question=asked))
    return go("/budget")


def _usual(made_up: bool) -> Question:
    """Return the answers to begin with."""
    return Question(purpose="To try the app, with a made-up table.") if made_up else Question()


def _marked(purpose: str, made_up: bool) -> str:
    """Return the purpose; in a report of the example it says that this is one."""
    if not made_up or "made-up table" in purpose:
        return purpose
    return f"{purpose} (A made-up table.)" if purpose else _usual(made_up).purpose


def _share(form: Form, old: str) -> str:
    """Return a share of the variance, which is typed in per cent."""
    typed = decimal_of(form.raw("share"))
    if typed is None or not 0 < float(typed / 100) < 1:
        form.wrong("share", "A number between 0 and 100, please: for example 80.")
        return old
    return str((typed / 100).normalize())


def _page(request: Request, asked: Question, mistakes: dict[str, str] | None = None) -> Response:
    percent = f"{(decimal_of(asked.share) or 0) * 100:f}".rstrip("0").rstrip(".")
    values = {"asked": asked, "percent": percent, "mistakes": mistakes or {}}
    return page(request, "question.html", 422 if mistakes else 200, most=MOST_COMPONENTS, **values)
