"""The choice of a table: how it is written, and files that are none."""

from pathlib import Path

import pytest
from app_pages import Visitor


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone.csv", None, "There is no such file below the folder."),
        ("table.xlsx", "x", "Choose a file that ends in"),
        ("empty.csv", "", "'empty.csv' holds no rows."),
        ("semi.csv", "a;b\n1;2\n", "name the sign between cells"),
        ("comma.csv", "age;height, cm;sex\n1;2;3\n", "name the sign between cells"),
        ("twice.csv", "a,a\n1,2\n", "has two columns named 'a'"),
        ("numbers.csv", "1,2\n3,4\n", "must begin with a line of column names"),
        ("cut.parquet", "PAR1", "is not a .parquet file"),
    ],
)
def test_a_wrong_file_is_told_of(name, content, words, visitor: Visitor, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    visitor.to_columns(name)
    assert (visitor.status, visitor.path) == (422, "/table")
    assert words in visitor.wrong[0]


def test_a_file_is_picked_or_typed(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.csv").write_text("x;y\n1,5;2\n")
    visitor.get("/table")
    assert "deep/a.csv" in visitor.text
    visitor.send("/table", file="deep/a.csv", separator=";", decimal=",", encoding="latin-1", quoted_newlines="yes")
    assert visitor.path == "/columns"
    form = visitor.desk.session.answers.schema
    assert (form.separator, form.decimal, form.encoding, form.quoted_newlines) == (";", ",", "latin-1", True)
    visitor.get("/table")
    kept = visitor.form("/table")
    assert (kept["file"], kept["separator"], kept["decimal"]) == ("deep/a.csv", ";", ",")
    visitor.send("/table", separator="tab", decimal=".")
    assert visitor.desk.session.answers.schema.separator == "\t"


def test_a_choice_that_the_page_does_not_offer_is_refused(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    visitor.to_columns("a.csv", separator="x")
    assert (visitor.status, visitor.wrong) == (422, ["Choose one of the list."])


def test_the_decimal_sign_is_asked_for_where_it_is_often_a_comma(visitor: Visitor, tmp_path: Path) -> None:
    """Taken for a point, every cell would count as missing, and the budget be spent on nothing."""
    (tmp_path / "a.csv").write_text("x;y\n1,5;2\n")
    visitor.to_columns("a.csv", separator=";")
    assert visitor.wrong == ["Files with semicolons often have decimal commas. Say which sign this one has."]
    visitor.send("/table", file="a.csv", decimal=",")
    assert visitor.path == "/columns"
    assert "a number is written with a comma, as 1,5" in visitor.text
    visitor.get("/table")
    assert visitor.form("/table")["decimal"] == ","


def test_names_that_no_form_can_carry_are_not_listed(visitor: Visitor, tmp_path: Path) -> None:
    for name in ("a.csv", "line\nbreak.csv", "\x1b[31m.csv", "bad\udcff.csv"):
        (tmp_path / name).write_text("x,y\n1,2\n")
    assert visitor.desk.folder.listed((".csv",)) == ["a.csv"]
