"""Steps come in their order."""

from pathlib import Path

from app_pages import Visitor
from test_answers import ANSWERS

from privspan.app.answers import Answers
from privspan.app.pages.order import STEPS, missing


def test_steps_that_are_not_answered_come_first(visitor: Visitor, tmp_path: Path) -> None:
    for path in ("/columns", "/question", "/budget", "/confirm"):
        assert visitor.get(path).url.path == "/table"
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 50)
    visitor.to_columns("a.csv")
    assert visitor.get("/confirm").url.path == "/columns"
    assert visitor.post("/confirm", {}).url.path == "/columns"


def test_the_first_step_that_is_missing_is_next() -> None:
    assert [missing(Answers(), path) for path, _ in STEPS] == [None, "/table", "/table", "/table", "/table"]
    assert [missing(ANSWERS, path) for path, _ in STEPS] == [None] * 5
