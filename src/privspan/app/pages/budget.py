"""Step 4: what it may cost, with what that means and what is expected of it, from public numbers alone."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from privspan._lib import checks
from privspan._lib.errors import PrivspanError
from privspan._lib.markup import Html, element, join
from privspan.app import forecast
from privspan.app.answers import Answers, Price, Question
from privspan.app.desk import Desk, desk_of, go, page, piece
from privspan.app.facts import Outline
from privspan.app.forms import Form
from privspan.app.judging import refuse
from privspan.app.pages.order import missing
from privspan.app.pages.question import MOST_COMPONENTS
from privspan.app.words import told
from privspan.ledger import Account
from privspan.ledger.words import sentences

_NUMBERS = ("epsilon", "delta", "k", "limit_epsilon", "limit_delta")
_FEW = 100_000  # rows, up to which one in a million is well below one over their number


def show(request: Request) -> Response:
    """Show the budget with the forecast; numbers in the address are tried out, and not kept."""
    desk = desk_of(request)
    answers = desk.session.answers
    if (step := missing(answers, "/budget")) is not None:
        return go(step)
    outline = desk.facts.outline(desk.table_path(answers), answers)
    return _page(request, outline, *_tried(request, answers, outline))


def picture(request: Request) -> Response:
    """Return the forecast alone, for the numbers in the address: what the moving picture asks for."""
    desk = desk_of(request)
    answers = desk.session.answers
    if missing(answers, "/budget") is not None:
        return HTMLResponse("", status_code=404)
    outline = desk.facts.outline(desk.table_path(answers), answers)
    return HTMLResponse(piece("forecast.html", **_forecast(outline, *_tried(request, answers, outline))))


def answer(request: Request, form: Form) -> Response:
    """Take the budget, unless shapes, parameters or the ledger rule it out."""
    desk = desk_of(request)
    answers = desk.session.answers
    if (step := missing(answers, "/budget")) is not None:
        return go(step)
    if form.ticked("show"):  # numbers are tried out, where no script moves the picture; and nothing else is
        tried = {name: form.raw(name) for name in _NUMBERS if name in form.values}
        return go(f"/budget?{urlencode(tried)}")
    question, price = _read(form, answers)
    asked = replace(answers, question=question, price=price)
    outline = desk.facts.outline(desk.table_path(answers), answers)
    try:
        if not form.mistakes:
            refuse(asked, outline, desk.ledger, desk.dataset(asked))
    except PrivspanError as error:
        form.wrong("budget", told(error))
    if form.mistakes:
        return _page(request, outline, question, price, form.mistakes, form)
    desk.session.change(asked)
    return go("/confirm")


def account(desk: Desk, answers: Answers) -> Account:
    """Return what the ledger holds of the table."""
    return desk.ledger.account(desk.dataset(answers))


def in_words(found: Account) -> list[str]:
    """Say what has been spent, and what is left."""
    said = sentences(found) if found.entries else ["Nothing has been spent on this table yet."]
    if found.limit_epsilon is None and found.limit_delta is None:
        return said if found.entries else [*said, "No limit is set for it."]
    left = [f"{sign} {amount:.3g}" for sign, amount in zip("εδ", found.left, strict=True) if amount is not None]
    return [*said, f"One more release like this can cost at most {' and '.join(left)}."]


def _usual(outline: Outline) -> Price:
    """Return the budget to begin with: δ well below one over the number of people."""
    return Price() if outline.size.n <= _FEW else Price(delta=Decimal("1e-8"))


def _tried(request: Request, answers: Answers, outline: Outline) -> tuple[Question, Price, dict[str, str]]:
    """Return the answers, with the numbers of the address in their places."""
    price = answers.price or _usual(outline)
    if not request.query_params:
        assert answers.question is not None
        return answers.question, price, {}
    form = Form(dict(request.query_params))
    question, tried = _read(form, replace(answers, price=price))
    return question, tried, form.mistakes


def _read(form: Form, answers: Answers) -> tuple[Question, Price]:
    """Read ε, δ, limits and the number of components."""
    question, old = answers.question, answers.price or Price()
    assert question is not None
    if question.how_many == "count" and "k" in form.values:
        question = replace(question, k=form.whole("k", 1, MOST_COMPONENTS, question.k))
    epsilon, delta = form.amount("epsilon", old.epsilon), form.amount("delta", old.delta, below_one=True)
    limits = form.amount_or_none("limit_epsilon"), form.amount_or_none("limit_delta", below_one=True)
    return question, Price(epsilon, delta, *limits)


def _forecast(outline: Outline, question: Question, price: Price, mistakes: dict[str, str]) -> dict[str, Html]:
    """Return the picture and the meaning, or what is wrong; a budget that nothing could spend has neither."""
    try:
        if not mistakes:
            checks.spendable(*price.floats)
            return {"picture": forecast.picture(outline.size, question, price), "meaning": forecast.meaning(price)}
        words = "No forecast: one of the numbers above cannot be taken."
    except PrivspanError as error:
        words = told(error)
    return {"picture": element("p", words, class_="banner"), "meaning": join()}


def _page(
    request: Request,
    outline: Outline,
    question: Question,
    price: Price,
    mistakes: dict[str, str],
    form: Form | None = None,
) -> Response:
    desk = desk_of(request)
    found = account(desk, desk.session.answers)
    shown = {name: _written(getattr(price, name)) for name in ("epsilon", "delta", "limit_epsilon", "limit_delta")}
    shown["k"] = str(question.k)
    if form is not None:  # what cannot be taken stays as it was typed
        shown |= {name: form.raw(name) for name in shown if name in form.values}
    values: dict[str, object] = {"size": outline.size, "question": question, "shown": shown, "mistakes": mistakes}
    numbers = {name: words for name, words in mistakes.items() if name != "budget"}  # that is no wrong number
    values |= {**_forecast(outline, question, price, numbers), "spent": in_words(found), "most": MOST_COMPONENTS}
    values |= {"limited": found.limit_epsilon is not None or found.limit_delta is not None}
    values["ledger"] = desk.ledger_name
    return page(request, "budget.html", 422 if mistakes else 200, **values)


def _written(amount: Decimal | None) -> str:
    return "" if amount is None else str(amount)
