"""What every page works with: the folder, the ledger, the session, the releases; and how a page is made."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from privspan._lib.errors import PrivspanError
from privspan._lib.in_words import number
from privspan._lib.markup import Html
from privspan._lib.readable import readable
from privspan.app.answers import Answers
from privspan.app.commands import PROGRAM, relative_to
from privspan.app.facts import Facts
from privspan.app.folder import TABLES, Folder
from privspan.app.forms import MOST_BYTES, Form
from privspan.app.runs import Runs
from privspan.app.session import Session
from privspan.app.words import told
from privspan.ledger import Ledger

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


@dataclass
class Desk:
    """What the app was started with, and what it keeps."""

    folder: Folder
    output: Path
    ledger_path: Path
    session: Session = field(default_factory=Session)
    facts: Facts = field(default_factory=Facts)
    program: tuple[str, ...] = PROGRAM

    def __post_init__(self) -> None:
        self.runs = Runs(self.output, self.folder.root, self.program)

    @property
    def ledger(self) -> Ledger:
        """The ledger that every release is charged to."""
        return Ledger(self.ledger_path)

    @property
    def ledger_name(self) -> str:
        """How the ledger is named on pages and commands."""
        return relative_to(self.ledger_path, self.folder.root)

    def table_path(self, answers: Answers) -> Path:
        """Return the file that was chosen; it may have gone since."""
        assert answers.table is not None
        return self.folder.file(answers.table.file, TABLES)

    def dataset(self, answers: Answers) -> str:
        """Return the name of the table in the ledger: its path, as `privspan fit` has it."""
        return str(self.table_path(answers))


def desk_of(request: Request) -> Desk:
    """Return what the app keeps."""
    desk: Desk = request.app.state.desk
    return desk


# ---- Pages ---------------------------------------------------------------------------------------------------------


def _shown(value: object) -> object:
    """Make text from outside fit to be shown; that it is no markup either is seen to by autoescape."""
    return readable(value, keep="\n") if isinstance(value, str) and not hasattr(value, "__html__") else value


_TEMPLATES = Environment(
    loader=PackageLoader("privspan.app"),
    autoescape=True,
    undefined=StrictUndefined,
    finalize=_shown,
    trim_blocks=True,
    lstrip_blocks=True,
)
_TEMPLATES.filters["number"] = number


def page(request: Request, template: str, status: int = 200, **values: object) -> HTMLResponse:
    """Return a page; `values` are public or released ones."""
    desk = desk_of(request)
    session = desk.session
    common = {"answers": session.answers, "csrf": session.csrf, "mistakes": {}, "at": request.url.path}
    text = _TEMPLATES.get_template(template).render(common | values)
    return HTMLResponse(text, status_code=status)


def piece(template: str, **values: object) -> Html:
    """Return a part of a page."""
    return Html(_TEMPLATES.get_template(template).render(values))


def go(path: str) -> RedirectResponse:
    """Send the browser to another page, after a form too: then a reload does not send the form again."""
    return RedirectResponse(path, status_code=303)


def get(handler: Callable[[Request], Response]) -> Handler:
    """Return the endpoint that shows a page."""

    async def endpoint(request: Request) -> Response:
        return await run_in_threadpool(_answered, request, lambda: handler(request))

    return endpoint


def post(handler: Callable[[Request, Form], Response]) -> Handler:
    """Return the endpoint that takes a form: one of our own, no file, and not too long."""

    async def endpoint(request: Request) -> Response:
        if request.headers.get("content-type", "").partition(";")[0].strip() != "application/x-www-form-urlencoded":
            return refusal("This is not a form of this app.", 415)
        body = b""
        async for chunk in request.stream():
            body += chunk
            if len(body) > MOST_BYTES:
                return refusal("This form is too long.", 413)
        try:
            form = Form.of(body)
        except ValueError:
            return refusal("This is not a form of this app.", 400)
        if not desk_of(request).session.signed(form.raw("csrf")):
            return refusal(
                "This form did not come from a page of this app. Go back, reload the page, try again.", 403
            )
        return await run_in_threadpool(_answered, request, lambda: handler(request, form))

    return endpoint


def _answered(request: Request, answer: Callable[[], Response]) -> Response:
    """Return the page, or one that says what cannot be read: a table that has gone, a ledger that is damaged."""
    try:
        return answer()
    except (PrivspanError, OSError, MemoryError) as error:
        return page(request, "broken.html", 422, words=told(error))


def refusal(words: str, status: int, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    """Return a page that says why there is none, and nothing else: it is for whoever asks."""
    text = _TEMPLATES.get_template("refusal.html").render(words=words)
    return HTMLResponse(text, status_code=status, headers=headers)
