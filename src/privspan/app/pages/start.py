"""The first page: begin, try it with a made-up table, or go back to a release."""

from __future__ import annotations

import contextlib
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

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
    made = None if table.exists() and schema.exists() else clinic(rng=_SEED)
    if made is not None:
        with contextlib.suppress(FileExistsError), schema.open("x", encoding="utf-8") as file:
            file.write(made.schema)
        if not table.exists():
            made.to_csv(table)
    return table, schema
