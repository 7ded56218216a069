"""The command that is run is the one that is shown, and the script does the same."""

import shlex
from decimal import Decimal
from pathlib import Path

import pytest
import typer
from test_answers import ANSWERS

from privspan.app.answers import Answers, ColumnAnswer, Price, Question, TableAnswer, answers_of
from privspan.app.commands import (
    Places,
    fit_command,
    map_command,
    schema_file,
    script,
    shown,
)
from privspan.cli.app import app
from privspan.rows import read_schema

PLACES = Places("-a b.csv", "out/release-1", "out/ledger.json")


def parsed(words: list[str]) -> dict[str, object]:
    """Return what the command line makes of the arguments."""
    command = typer.main.get_command(app)
    context = command.commands[words[0]].make_context(words[0], list(words[1:]))
    return context.params


def test_the_command_line_reads_what_was_answered() -> None:
    found = parsed(fit_command(ANSWERS, PLACES))
    assert Path(found["file"]) == Path("-a b.csv")
    assert (found["k"], found["epsilon"], found["delta"]) == (0.75, Decimal("0.10"), Decimal("0.000001"))
    assert (found["scale"], found["max_rows"]) == (False, 3)
    assert (found["by"], found["purpose"], found["reviewed_by"]) == ("me", "why", "she")
    assert (found["limit_epsilon"], found["limit_delta"]) == (Decimal(3), None)
    assert str(found["output"]) == "out/release-1/release.npz"
    assert str(found["report"]) == "out/release-1/report.html"
    assert found["seed"] is None


def test_what_looks_like_an_option_is_none() -> None:
    table, question = TableAnswer("-o"), Question(by="--seed=1", purpose="-x", reviewed_by="")
    answers = Answers(table, (ColumnAnswer("-k", "number"),), question, Price())
    found = parsed(fit_command(answers, Places("-o", "-out", "-l.json")))
    assert found["seed"] is None
    assert (found["by"], found["purpose"], str(Path(found["file"]))) == ("--seed=1", "-x", "-o")


def test_a_map_has_its_own_command() -> None:
    found = parsed(map_command(ANSWERS, PLACES, "out/release-1/release.npz"))
    assert str(found["subspace"]) == "out/release-1/release.npz"
    assert str(found["plot"]) == "out/release-1/map.svg"


def test_a_command_is_shown_as_it_is_typed() -> None:
    words = fit_command(ANSWERS, PLACES, into=".")
    assert shlex.split(shown(words)) == ["privspan", *words]
    assert words[-3:] == ["./release.npz", "--report", "./report.html"]


NAMES = ["age", "a,b", 'a "b"', "a=b", "a:b", "ä", " edge ", "new\nline"]


@pytest.mark.parametrize("name", NAMES)
def test_bounds_of_any_name_are_in_the_schema(name: str, tmp_path: Path) -> None:
    column = ColumnAnswer(name, "number", low="-1.5", high="1e-7")
    answers = Answers(TableAnswer("a.csv"), (column,), Question(), Price())
    (tmp_path / "schema.toml").write_text(schema_file(answers))
    found = read_schema(tmp_path / "schema.toml")
    assert found.columns[name].bounds == (-1.5, 1e-7)
    assert answers_of(found, [name], [ColumnAnswer(name, "skip", low="0", high="9")])[0].bounds == (-1.5, 1e-7)


def test_the_schema_file_is_read_as_it_was_declared(tmp_path: Path) -> None:
    (tmp_path / "schema.toml").write_text(schema_file(ANSWERS))
    found = read_schema(tmp_path / "schema.toml")
    assert found.levels == {"ward": ("a, b", 'c "d"', "e")}
    assert (found.person, found.separator) == ("who", ";")
    assert set(found.columns) == {one.name for one in ANSWERS.columns}


def test_the_script_is_a_program_with_the_same_numbers() -> None:
    text = script(ANSWERS, PLACES)
    compile(text, "script.py", "exec")
    for line in ("    0.75,", "max_rows=3", "limit_epsilon='3'", "Path('-a b.csv')"):
        assert line in text
    assert "scale" not in text


@pytest.mark.parametrize("path", ["-x/a.csv", "s3:/a.csv", "postgresql:a.csv"])
def test_a_file_is_no_option_and_no_url(path: str) -> None:
    answers = Answers(TableAnswer(path), (ColumnAnswer("x", "number"),), Question(), Price())
    assert fit_command(answers, Places(path, "out", "l.json"))[1] == f"./{path}"
