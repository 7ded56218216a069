"""Step 5: one sentence that says what will be spent, and the button that spends it, once."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from privspan._lib.errors import PrivspanError
from privspan.app.answers import Answers
from privspan.app.commands import Places, fit_command, schema_file, script, shown
from privspan.app.desk import Desk, desk_of, go, page
from privspan.app.facts import Size
from privspan.app.forms import Form
from privspan.app.judging import refuse, weak_points
from privspan.app.pages.budget import account, in_words
from privspan.app.pages.order import missing
from privspan.app.runs import made_now
from privspan.app.words import told


def show(request: Request) -> Response:
    """Show what will be spent, on what, and the command that does it."""
    desk = desk_of(request)
    if (step := missing(desk.session.answers, "/confirm")) is not None:
        return go(step)
    return _page(request, {})


def answer(request: Request, form: Form) -> Response:
    """Start the release, if this very page has not started one before and shows what is answered now."""
    desk = desk_of(request)
    with desk.session.lock:  # a double click is two requests at once
        if (step := missing(desk.session.answers, "/confirm")) is not None:
            return go(step)
        ticket = form.raw("ticket")
        if (name := desk.session.spent_on("/confirm", ticket)) is not None:
            return go(f"/releases/{name}")
        try:
            size = _refuse(desk, desk.session.answers)
            old = ticket != desk.session.ticket
            if old or form.raw("size") != str(size):
                changed = f"{'The answers have' if old else 'The file has'} changed since this page was shown."
                form.wrong("confirm", f"{changed} Look again at what will be done.")
                return _page(request, form.mistakes)
            name = _start(desk, desk.session.answers)
        except (PrivspanError, OSError, MemoryError) as error:
            form.wrong("confirm", told(error))
            return _page(request, form.mistakes)
        desk.session.spend("/confirm", ticket, name)
    return go(f"/releases/{name}")


def _start(desk: Desk, answers: Answers) -> str:
    """Make the folder of the release and start its program."""
    question = answers.question
    assert answers.table is not None
    assert question is not None
    folder = desk.runs.new_folder()
    places = Places(answers.table.file, desk.folder.relative(folder), desk.ledger_name)
    command = fit_command(answers, places)
    typed = shown(fit_command(answers, places, into="."))  # to be typed again: what is there is not replaced
    files = {
        "schema.toml": schema_file(answers),
        "script.py": script(answers, places),
        "command.txt": typed + "\n",
    }
    scaled = "of standardised columns" if question.scale else "of columns as they are"
    made = made_now("fit", command, answers, f"Private PCA {scaled}, {question.in_words}")
    return desk.runs.start(folder, made, answers, files).name


def _refuse(desk: Desk, answers: Answers) -> Size:
    """Refuse what is ruled out by now: another release may have been charged meanwhile."""
    outline = desk.facts.outline(desk.table_path(answers), answers)
    refuse(answers, outline, desk.ledger, desk.dataset(answers))
    return outline.size


def _page(request: Request, mistakes: dict[str, str]) -> Response:
    desk = desk_of(request)
    answers = desk.session.answers
    assert answers.table is not None
    assert answers.question is not None
    outline = desk.facts.outline(desk.table_path(answers), answers)
    try:
        _refuse(desk, answers)
        refused = None
    except (PrivspanError, OSError) as error:
        refused = told(error)
    places = Places(answers.table.file, f"{desk.folder.relative(desk.output)}/release-N", desk.ledger_name)
    columns = answers.columns or ()
    used = [one.name for one in columns if one.use not in ("skip", "person")]
    skipped = [one.name for one in columns if one.use == "skip"]
    values: dict[str, object] = {"size": outline.size, "used": used, "skipped": skipped, "refused": refused}
    values |= {"weak": weak_points(answers, outline.size), "command": shown(fit_command(answers, places))}
    values |= {"ticket": desk.session.ticket, "mistakes": mistakes, "busy": desk.runs.at_work()}
    values |= {"spent": in_words(account(desk, answers)), "ledger": desk.ledger_name}
    return page(request, "confirm.html", 422 if mistakes else 200, **values)
