"""What is said of columns: on the page, in a schema file, and what cannot be."""

from pathlib import Path

import pytest
from app_pages import Visitor

from privspan.rows import read_schema

HEAD = "id,age,ward,since\n"


@pytest.fixture
def declaring(visitor: Visitor, tmp_path: Path) -> Visitor:
    (tmp_path / "a.csv").write_text(HEAD + "1,41,a,2001\n" * 60)
    visitor.to_columns("a.csv")
    return visitor


def test_the_page_begins_with_what_names_suggest(declaring: Visitor) -> None:
    form = declaring.form("/columns")
    assert [form[f"use-{at}"] for at in range(4)] == ["skip", "number", "number", "number"]
    assert "named like an identifier" in declaring.text


def test_what_is_said_is_kept_and_becomes_a_schema(declaring: Visitor, tmp_path: Path) -> None:
    said = {"use_AT_0": "person", "use_AT_2": "category", "words_AT_2": 'a, "b, c"', "use_AT_3": "boolean"}
    declaring.send("/columns", low_AT_1="0", high_AT_1="120", **said)
    assert declaring.path == "/question"
    given = declaring.get("/columns/schema.toml")
    assert given.headers["content-disposition"] == 'attachment; filename="schema.toml"'
    (tmp_path / "kept.toml").write_text(given.text)
    schema = read_schema(tmp_path / "kept.toml")
    assert (schema.person, schema.levels) == ("id", {"ward": ("a", "b, c")})
    assert {name: one.type for name, one in schema.columns.items()} == {
        "id": "skip",
        "age": "number",
        "ward": "category",
        "since": "boolean",
    }
    declaring.get("/columns")
    form = declaring.form("/columns")
    assert (form["low-1"], form["high-1"], form["words-2"]) == ("0", "120", 'a, "b, c"')
    declaring.send("/columns", use_AT_0="skip", use_AT_2="skip")
    declaring.get("/columns")
    assert "kept.toml" in declaring.text
    declaring.send("/columns/schema", schema="kept.toml")
    form = declaring.form("/columns")
    assert [form[f"use-{at}"] for at in range(4)] == ["person", "number", "category", "boolean"]
    assert form["high-1"] == "120"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"use_AT_2": "category"}, "List the words that “ward” may hold"),
        ({"use_AT_2": "category", "words_AT_2": "a, a"}, "List the words that “ward” may hold"),
        ({"low_AT_1": "5"}, "Both ends of “age”, please, or none."),
        ({"low_AT_1": "5", "high_AT_1": "5"}, "The lower end of “age” comes first"),
        ({"low_AT_1": "x", "high_AT_1": "5"}, "A number, please"),
        ({"use_AT_0": "person", "use_AT_1": "person"}, "Only one column can hold the person ids."),
        ({f"use_AT_{at}": "skip" for at in range(4)}, "All columns are left out."),
        ({"use_AT_1": "list"}, "Choose one of the list."),
        ({"use_AT_2": "category", "words_AT_2": "x" * 200_000}, "List the words that “ward” may hold"),
        ({"of": "another"}, "This is another file"),
    ],
)
def test_what_cannot_be_is_told_of(changes, words, declaring: Visitor) -> None:
    declaring.send("/columns", **changes)
    assert (declaring.status, declaring.path) == (422, "/columns")
    assert words in declaring.wrong[0]


@pytest.mark.parametrize(
    ("text", "words"),
    [("x = [", "is not TOML"), ("colour = 1", "it says 'colour'"), ("[columns]\nother = 'number'", "'other'")],
)
def test_a_schema_that_does_not_fit_is_told_of(text: str, words: str, declaring: Visitor, tmp_path: Path) -> None:
    (tmp_path / "bad.toml").write_text(text)
    declaring.get("/columns")
    declaring.send("/columns/schema", schema="bad.toml")
    assert (declaring.status, declaring.path) == (422, "/columns/schema")
    assert words in declaring.wrong[0]


def test_a_schema_says_how_the_file_is_written_too(declaring: Visitor, tmp_path: Path) -> None:
    (tmp_path / "semi.toml").write_text('separator = ";"')
    (tmp_path / "a.csv").write_text(HEAD.replace(",", ";") + "1;41;a;2001\n" * 60)
    declaring.post("/columns/schema", {"schema": "semi.toml"})
    assert (declaring.status, declaring.desk.session.answers.table.separator) == (200, ";")
    declaring.send("/columns")
    assert declaring.path == "/question"


def test_a_schema_that_makes_other_columns_of_the_file_begins_anew(declaring: Visitor, tmp_path: Path) -> None:
    (tmp_path / "bar.toml").write_text('separator = "|"')
    declaring.post("/columns/schema", {"schema": "bar.toml"})
    assert [one.name for one in declaring.desk.session.answers.columns] == ["id,age,ward,since"]
    declaring.send("/columns")
    assert declaring.path == "/question"


def test_a_schema_that_says_something_else_than_the_file_is_told_of(declaring: Visitor, tmp_path: Path) -> None:
    (tmp_path / "list.toml").write_text('[columns.age]\ntype = "list"\nwidth = 3')
    declaring.post("/columns/schema", {"schema": "list.toml"})
    assert "something else of 'age' than the file" in declaring.wrong[0]


def test_a_form_for_one_table_is_not_taken_for_another(declaring: Visitor, tmp_path: Path) -> None:
    """Two tabs: as many columns, but others."""
    (tmp_path / "b.csv").write_text("salary,ssn,age,name\n" + "1,41,2,3\n" * 60)
    old = declaring.form("/columns")
    other = Visitor(declaring.desk)
    other.to_columns("b.csv")
    declaring.post("/columns", old)
    assert (declaring.status, declaring.wrong[0][:20]) == (422, "This is another file")
    assert declaring.desk.session.answers.columns is None
    assert ">salary<" in declaring.text


def test_words_with_signs_that_cannot_be_shown_stay_as_they_were(declaring: Visitor) -> None:
    declaring.send("/columns", use_AT_2="category", words_AT_2="a\u00adb, c")
    for _ in range(2):
        declaring.get("/columns")
        assert declaring.form("/columns")["words-2"] == "a\ufffdb, c"
        declaring.send("/columns")
    assert declaring.desk.session.answers.columns[2].words == ("a\u00adb", "c")


def test_a_very_wide_table_takes_a_schema_file(visitor: Visitor, tmp_path: Path) -> None:
    names = ["user_id", *(f"x{at}" for at in range(1_500))]
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + (",".join("1" * 1_501) + "\n") * 60)
    visitor.to_columns("a.csv")
    assert "1,501 columns, and a page shows at most 1,000" in visitor.text
    assert "1,500 in all" in visitor.text
    visitor.send("/columns")
    assert visitor.path == "/question"
    assert len(visitor.desk.session.answers.schema.columns) == 1_501


def test_columns_that_have_changed_are_looked_at_again(declaring: Visitor, tmp_path: Path) -> None:
    old = declaring.form("/columns")
    (tmp_path / "a.csv").write_text("new,age,ward,since\n" + "1,41,a,2001\n" * 60)
    declaring.get("/columns")
    assert ">new<" in declaring.text
    (tmp_path / "a.csv").write_text("new,since\n" + "1,2001\n" * 60)
    declaring.post("/columns", old)
    assert (declaring.status, declaring.wrong[0][:20]) == (422, "This is another file")
