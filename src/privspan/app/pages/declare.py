"""Step 2: what every column is, declared by a person who knows; no cell is looked at."""

from __future__ import annotations

import csv
from dataclasses import dataclass, replace
from hashlib import sha256

from starlette.requests import Request
from starlette.responses import Response

from privspan._lib.errors import ParameterError, PrivspanError
from privspan._lib.readable import readable
from privspan.app.answers import Answers, ColumnAnswer, Use, answers_of, words_typed, words_written
from privspan.app.commands import schema_file
from privspan.app.desk import Desk, desk_of, go, page
from privspan.app.facts import declared_type, first_answer, remark, uses
from privspan.app.forms import Form
from privspan.app.pages.order import missing
from privspan.app.words import told
from privspan.rows import Schema, read_schema
from privspan.rows.files.declared import FileColumn

_MOST = 1_000  # columns on a page; a wider table takes a schema file
_IN_WORDS: dict[Use, str] = {
    "number": "number",
    "boolean": "yes or no (0 or 1)",
    "category": "category",
    "list": "list of numbers",
    "person": "person id",
    "skip": "leave out",
}


@dataclass(frozen=True)
class Line:
    """One line of the table on the page."""

    number: int
    name: str
    declared: str
    remark: str | None
    uses: tuple[tuple[Use, str], ...]
    answer: ColumnAnswer

    @property
    def words(self) -> str:
        """The words of a category, as they are typed."""
        return words_written(self.answer.words)


def show(request: Request) -> Response:
    """Show the columns with what was said of them, or what their names and types suggest."""
    desk = desk_of(request)
    if (step := missing(desk.session.answers, "/columns")) is not None:
        return go(step)
    return _page(request)


def answer(request: Request, form: Form) -> Response:
    """Take what was said of every column."""
    desk, answers = desk_of(request), desk_of(request).session.answers
    if (step := missing(answers, "/columns")) is not None:
        return go(step)
    columns = _columns(desk, answers)
    known = _known(answers, columns)
    if form.raw("of") != _fingerprint(answers, columns):
        form.wrong("columns", "This is another file, or it has changed since you saw it. Look at its columns.")
        return _page(request, mistakes=form.mistakes)
    said = tuple(_said(form, at, one, old) for at, (one, old) in enumerate(zip(columns, known, strict=True)))
    said = said if len(columns) <= _MOST else known
    if not any(one.use in ("number", "boolean", "category", "list") for one in said):
        form.wrong("columns", "All columns are left out. Use at least one.")
    if sum(one.use == "person" for one in said) > 1:
        form.wrong("columns", "Only one column can hold the person ids.")
    if not form.mistakes:
        try:  # names and types, and whose the rows are: what the file itself rules out
            desk.facts.outline(desk.table_path(answers), replace(answers, columns=said))
        except (PrivspanError, OSError, MemoryError) as error:
            form.wrong("columns", told(error))
    if form.mistakes:
        return _page(request, said, form.mistakes)
    desk.session.change(replace(answers, columns=said))
    return go("/question")


def take_schema(request: Request, form: Form) -> Response:
    """Take a schema file below the folder; its types are shown on the page, to be looked at."""
    desk, answers = desk_of(request), desk_of(request).session.answers
    if (step := missing(answers, "/columns")) is not None:
        return go(step)
    assert answers.table is not None
    try:
        schema = read_schema(desk.folder.file(form.raw("schema"), (".toml",)))
        form_of = {"separator": schema.separator, "decimal": schema.decimal, "encoding": schema.encoding}
        declared = replace(answers.table, **form_of, quoted_newlines=schema.quoted_newlines)  # type: ignore[arg-type]
        columns = desk.facts.columns(desk.table_path(answers), declared.form)
        said = answers_of(schema, [one.name for one in columns], _known(answers, columns))
        for column, one in zip(columns, said, strict=True):
            if one.use not in uses(column):
                raise ParameterError("The schema says something else of {name!r} than the file.", name=one.name)
    except (PrivspanError, OSError) as error:
        form.wrong("schema", told(error))
        return _page(request, mistakes=form.mistakes)
    desk.session.change(replace(answers, table=declared, columns=said))
    return go("/columns")


def give_schema(request: Request) -> Response:
    """Give the schema file of what has been said."""
    answers = desk_of(request).session.answers
    if answers.columns is None:
        return go("/columns")
    headers = {"Content-Disposition": 'attachment; filename="schema.toml"'}
    return Response(schema_file(answers), media_type="application/toml", headers=headers)


def _columns(desk: Desk, answers: Answers) -> tuple[FileColumn, ...]:
    return desk.facts.columns(desk.table_path(answers), Schema() if answers.table is None else answers.table.form)


def _known(answers: Answers, columns: tuple[FileColumn, ...]) -> tuple[ColumnAnswer, ...]:
    """Return what has been said of these columns, or what their names and types suggest."""
    said = answers.columns or ()
    return said if [one.name for one in said] == [one.name for one in columns] else first_answer(columns)


def _fingerprint(answers: Answers, columns: tuple[FileColumn, ...]) -> str:
    """Return what a form is good for: this file with these columns. Another tab may show others."""
    return sha256(repr((answers.table, [(one.name, one.column) for one in columns])).encode()).hexdigest()


def _said(form: Form, at: int, column: FileColumn, old: ColumnAnswer) -> ColumnAnswer:
    """Return what the form says of a column."""
    use = form.choice(f"use-{at}", uses(column), old.use)
    low, high = (form.finite(f"{end}-{at}") for end in ("low", "high"))
    typed = form.raw(f"words-{at}")
    try:  # signs that cannot be shown come back as marks; what nobody has touched stays as it was
        words = old.words if typed == readable(words_written(old.words)) else words_typed(typed)
    except csv.Error:
        words = ()
    if use == "number" and (low is None) != (high is None):
        form.wrong(f"low-{at}", f"Both ends of “{column.name}”, please, or none.")
    elif use == "number" and low is not None and high is not None and float(low) >= float(high):
        form.wrong(f"low-{at}", f"The lower end of “{column.name}” comes first, and must be smaller.")
    if use == "category" and (len(words) < 1 or len(set(words)) < len(words)):
        form.wrong(
            f"words-{at}", f"List the words that “{column.name}” may hold, each once, with commas between them."
        )
    numeric = use == "number"
    return replace(
        old,
        use=use,
        words=words,
        low=low if numeric else None,
        high=high if numeric else None,
    )


def _page(
    request: Request, said: tuple[ColumnAnswer, ...] | None = None, mistakes: dict[str, str] | None = None
) -> Response:
    desk, answers = desk_of(request), desk_of(request).session.answers
    columns, schemas = _columns(desk, answers), desk.folder.listed((".toml",))
    said = said or _known(answers, columns)
    lines = [
        Line(at, one.name, declared_type(one), remark(one), tuple((use, _IN_WORDS[use]) for use in uses(one)), given)
        for at, (one, given) in enumerate(zip(columns, said, strict=True))
    ]
    values = {"lines": lines if len(lines) <= _MOST else [], "count": len(lines), "mistakes": mistakes or {}}
    values |= {"of": _fingerprint(answers, columns), "typed": any(one.column is not None for one in columns)}
    used = sum(one.use not in ("person", "skip") for one in said)
    status = 422 if mistakes else 200
    return page(request, "columns.html", status, schemas=schemas, used=used, most=_MOST, **values)
