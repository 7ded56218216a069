"""What may come next: a map of the scores of people, a release of its own, at its own cost."""

from __future__ import annotations

from dataclasses import replace

from starlette.requests import Request
from starlette.responses import Response

from privspan._lib import checks
from privspan._lib.errors import PrivspanError
from privspan.app.answers import Answers, Price
from privspan.app.commands import Places, map_command, schema_file, shown
from privspan.app.desk import Desk, desk_of, go, page, refusal
from privspan.app.forms import Form
from privspan.app.pages.budget import account, in_words
from privspan.app.pages.one_release import subject_of, why_no_map
from privspan.app.runs import Run, made_now
from privspan.app.words import told
from privspan.privacy import mu_from_budget
from privspan.privacy.call import weakness

_NONE = "There is no release of that name whose scores could be mapped."


def show(request: Request) -> Response:
    """Ask for the budget of a map, and say what it spends."""
    run = _mapped(request)
    if run is None:
        return refusal(_NONE, 404)
    price = run.answers.price or Price()
    return _page(request, run, Price(price.epsilon, price.delta), {})


def answer(request: Request, form: Form) -> Response:
    """Start the map, once for every page that was shown."""
    desk, run = desk_of(request), _mapped(request)
    if run is None:
        return refusal(_NONE, 404)
    old = run.answers.price or Price()
    price = Price(form.amount("epsilon", old.epsilon), form.amount("delta", old.delta, below_one=True))
    with desk.session.lock:
        ticket = form.raw("ticket")
        if (name := desk.session.spent_on(request.url.path, ticket)) is not None:
            return go(f"/releases/{name}")
        if ticket != desk.session.ticket:
            form.wrong("confirm", "Something has changed since this page was shown. Look again at what will be done.")
        answers = replace(run.answers, price=price)
        if not form.mistakes:
            try:
                _refuse(desk, answers, price)
                if not form.ticked("weak") and (weak := _weak(run, price)) is not None:
                    form.wrong("weak", f"{weak} To spend it all the same, press the button again.")
                else:
                    name = _start(desk, run, answers)
            except (PrivspanError, OSError) as error:
                form.wrong("confirm", told(error))
        if form.mistakes:
            return _page(request, run, price, form.mistakes, form)
        assert name is not None
        desk.session.spend(request.url.path, ticket, name)
    return go(f"/releases/{name}")


def _refuse(desk: Desk, answers: Answers, price: Price) -> None:
    """Refuse a budget that cannot be spent, or that the ledger refuses."""
    checks.spendable(*price.floats)
    mu = mu_from_budget(*price.floats)
    desk.ledger.check(desk.dataset(answers), price.epsilon, price.delta, mu=mu, person=answers.person)


def _start(desk: Desk, run: Run, answers: Answers) -> str:
    """Make the folder of the map and start its program."""
    assert answers.table is not None
    folder = desk.runs.new_folder()
    places = Places(answers.table.file, desk.folder.relative(folder), desk.ledger_name)
    release = desk.folder.relative(run.result)
    command = map_command(answers, places, release)
    typed = shown(map_command(answers, places, release, into="."))
    files = {"schema.toml": schema_file(answers), "command.txt": typed + "\n"}
    made = made_now("map", command, answers, f"Map of the scores of {run.name}", of=run.name)
    return desk.runs.start(folder, made, answers, files).name


def _weak(run: Run, price: Price) -> str | None:
    """Say what is weak about a budget for as many people as the release was learnt from."""
    subject = subject_of(run)
    return None if subject is None or subject.n is None else weakness(subject.n, *price.floats)


def _mapped(request: Request) -> Run | None:
    """Return the release whose scores are to be mapped."""
    run = desk_of(request).runs.find(str(request.path_params["name"]))
    return run if run is not None and why_no_map(run) is None else None


def _page(request: Request, run: Run, price: Price, mistakes: dict[str, str], form: Form | None = None) -> Response:
    desk = desk_of(request)
    shown_price = {"epsilon": str(price.epsilon), "delta": str(price.delta)}
    if form is not None:
        shown_price |= {name: form.raw(name) for name in shown_price}
    values: dict[str, object] = {"run": run, "shown": shown_price, "mistakes": mistakes}
    values |= {"made_up": run.made.made_up, "ticket": desk.session.ticket, "ledger": desk.ledger_name}
    values["spent"] = in_words(account(desk, run.answers))
    return page(request, "score_map.html", 422 if mistakes else 200, **values)
