"""The first page: begin, try it with a made-up table, or go back to a release."""

from __future__ import annotations

from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

from privspan._lib.whole_file import whole_file
from privspan.app.answers import Answers, TableAnswer, answers_of
from privspan.app.desk import Desk, desk_of, go, page
from privspan.app.facts import first_answer
from privspan.app.forms import Form
from privspan.datasets import clinic
from privspan.rows import Schema, read_schema

_SEED = 1  # of the made-up clinic: the same table every time


def show(request: Request) -> Response:
    """Show what there is to do."""
    desk = desk_of(request)
    runs = desk.runs.all()
    return page(request, "start.html", runs=runs[::-1], folder=desk.folder.root.name, ledger=desk.ledger_name)


def example(request: Request, form: Form) -> Response:
    """Write the made-up clinic, and go on to its columns, as its schema declares them."""
    desk = desk_of(request)
    with desk.session.lock:
        table, schema = _written(desk.output / "example")
    name = desk.folder.relative(table)
    columns = first_answer(desk.facts.columns(table, Schema()))
    declared = answers_of(read_schema(schema), [one.name for one in columns], columns)
    desk.session.change(Answers(TableAnswer(name, made_up=True), declared))
    return go("/columns")


def is_example(desk: Desk, path: Path) -> bool:
    """Tell whether a file is the made-up clinic."""
    return path == desk.output / "example" / "clinic.csv"


def _written(folder: Path) -> tuple[Path, Path]:
    """Write the clinic and its schema, unless they are there."""
    folder.mkdir(parents=True, exist_ok=True)
    table, schema = folder / "clinic.csv", folder / "clinic.toml"
    if not (table.exists() and schema.exists()):
        made, part = clinic(rng=_SEED), folder / "clinic.part"
        made.to_csv(part)  # on a full disk, or when the app ends meanwhile, there is no half of a table to be taken
        part.replace(table)
        with whole_file(schema) as file:
            file.write(made.schema.encode())
    return table, schema
