"""Answers as values: what follows from them, and that nothing is lost on disk."""

import json
from dataclasses import replace
from decimal import Decimal

import pytest

from privspan._lib.errors import ParameterError
from privspan.app.answers import (
    Answers,
    ColumnAnswer,
    Price,
    Question,
    TableAnswer,
    answers_of,
    words_typed,
    words_written,
)
from privspan.rows import Column, Schema

COLUMNS = (
    ColumnAnswer("who", "person"),
    ColumnAnswer("age", "number", low="0", high="1.2e2"),
    ColumnAnswer("ward", "category", ("a, b", 'c "d"', "e")),
    ColumnAnswer("smokes", "boolean"),
    ColumnAnswer("vector", "list", width=3),
    ColumnAnswer("note", "skip"),
)
ANSWERS = Answers(
    TableAnswer("a.csv", ";", ",", "latin-1", True, True),
    COLUMNS,
    Question("share", 4, "0.75", False, 3, "me", "why", "she"),
    Price(Decimal("0.10"), Decimal("1e-6"), Decimal(3), None),
)


def test_they_become_a_schema_and_bounds() -> None:
    schema = ANSWERS.schema
    assert (schema.person, schema.separator, schema.decimal, schema.encoding) == ("who", ";", ",", "latin-1")
    assert schema.quoted_newlines
    assert {name: one.type for name, one in schema.columns.items()} == {
        "who": "skip",
        "age": "number",
        "ward": "category",
        "smokes": "boolean",
        "vector": "list",
        "note": "skip",
    }
    assert schema.columns["vector"].width == 3
    assert ANSWERS.bounds == {"age": (0.0, 120.0)}
    assert ANSWERS.question.components == 0.75
    assert Question("auto").components == "auto"
    assert Question("count", 4).components == 4
    epsilon, delta = ANSWERS.price.floats
    assert Decimal(epsilon) <= Decimal("0.1")  # what is spent is no more than what is charged
    assert Decimal(delta) <= Decimal("1e-6")


def test_another_table_forgets_the_columns_of_the_last_one() -> None:
    assert ANSWERS.of_table(ANSWERS.table) == ANSWERS
    other = replace(ANSWERS.table, file="b.csv")
    assert ANSWERS.of_table(other) == Answers(other)


def test_they_come_back_from_disk_as_they_were() -> None:
    assert Answers.from_json(json.loads(json.dumps(ANSWERS.to_json()))) == ANSWERS


@pytest.mark.parametrize("change", [{"price": {}}, {"columns": [{}]}, {"extra": 1}, {"table": None}])
def test_a_file_that_says_something_else_is_refused(change) -> None:
    with pytest.raises(ValueError, match="field"):
        Answers.from_json(json.loads(json.dumps(ANSWERS.to_json())) | change)


@pytest.mark.parametrize("words", [("a",), ("a, b", 'c "d"', "e f"), ("ü", "1")])
def test_words_are_read_as_they_are_written(words) -> None:
    assert words_typed(words_written(words)) == words


def test_words_may_stand_on_lines_of_their_own() -> None:
    assert words_typed("a, b\nc,,\n") == ("a", "b", "c")


def test_a_schema_file_is_taken_and_bounds_stay() -> None:
    schema = Schema({"age": Column("number"), "ward": Column("category", categories=["x", "y"])}, person="who")
    found = answers_of(schema, [one.name for one in COLUMNS], COLUMNS)
    assert [one.use for one in found] == ["person", "number", "category", "skip", "skip", "skip"]
    assert found[1].bounds == (0.0, 120.0)
    assert found[2].words == ("x", "y")


@pytest.mark.parametrize("schema", [Schema({"other": Column("number")}), Schema(person="other")])
def test_a_schema_of_another_table_is_refused(schema: Schema) -> None:
    with pytest.raises(ParameterError, match="other"):
        answers_of(schema, ["who"], COLUMNS[:1])
