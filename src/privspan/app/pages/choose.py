"""Step 1: which file, below the folder that was given; it is read where it is, never uploaded."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from privspan._lib.errors import PrivspanError
from privspan.app.answers import TableAnswer
from privspan.app.desk import desk_of, go, page
from privspan.app.folder import TABLES
from privspan.app.forms import Form
from privspan.app.pages.start import is_example
from privspan.app.words import told

SEPARATORS = {"": "as usual for the file", ",": "comma ,", ";": "semicolon ;", "tab": "tab", "|": "bar |"}
DECIMALS = {"": "as usual for the file", ".": "point, as in 1.5", ",": "comma, as in 1,5"}
ENCODINGS = {"utf-8": "UTF-8", "latin-1": "Latin-1 (Western Europe)", "cp1252": "Windows-1252"}
_CHOICES = {"separators": SEPARATORS, "decimals": DECIMALS, "encodings": ENCODINGS}


def show(request: Request) -> Response:
    """Show the files below the folder, and a line to type one."""
    return _page(request, desk_of(request).session.answers.table or TableAnswer(""))


def answer(request: Request, form: Form) -> Response:
    """Take a file, if its column names can be read."""
    desk = desk_of(request)
    separator = form.choice("separator", SEPARATORS, "")
    given = TableAnswer(
        form.raw("typed") or form.raw("file"),
        {"": None, "tab": "\t"}.get(separator, separator),
        form.choice("decimal", DECIMALS, "") or ".",
        form.choice("encoding", ENCODINGS, "utf-8"),
        form.ticked("quoted_newlines"),
    )
    if separator == ";" and not form.raw("decimal"):  # of a wrong one nobody is told: its cells count as missing
        form.wrong("decimal", "Files with semicolons often have decimal commas. Say which sign this one has.")
    try:
        path = desk.folder.file(given.file, TABLES)
        given = TableAnswer(**{**vars(given), "file": desk.folder.relative(path), "made_up": is_example(desk, path)})
        desk.facts.columns(path, given.form)
    except (PrivspanError, OSError) as error:
        form.wrong("file", told(error))
    if form.mistakes:
        return _page(request, given, form.mistakes)
    desk.session.change(desk.session.answers.of_table(given))
    return go("/columns")


def _page(request: Request, given: TableAnswer, mistakes: dict[str, str] | None = None) -> Response:
    desk = desk_of(request)
    files = desk.folder.listed(TABLES)
    status = 422 if mistakes else 200
    folder = desk.folder.root.name
    known = given.decimal if given.separator == ";" or given.decimal != "." else ""
    known = "" if mistakes is not None and "decimal" in mistakes else known
    shown = {"given": given, "files": files, "folder": folder, "mistakes": mistakes or {}, "decimal": known}
    return page(request, "table.html", status, **shown, **_CHOICES)
