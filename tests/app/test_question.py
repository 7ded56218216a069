"""What is to be learnt."""

import pytest
from app_pages import Visitor


@pytest.mark.parametrize(
    ("changes", "components"),
    [({"k": "1"}, 1), ({"how_many": "share", "share": "72.5"}, 0.725), ({"how_many": "auto"}, "auto")],
)
def test_the_number_of_components_is_asked_in_three_ways(changes, components, small: Visitor) -> None:
    small.send("/question", **changes)
    assert small.path == "/budget"
    assert small.desk.session.answers.question.components == components
    small.get("/question")
    kept = small.form("/question")
    assert {name: kept[name] for name in changes} == changes


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"k": "0"}, "A whole number from 1 to 500"),
        ({"k": "two"}, "A whole number"),
        ({"how_many": "share", "share": "100"}, "between 0 and 100"),
        ({"how_many": "share", "share": ""}, "between 0 and 100"),
        ({"how_many": "share", "share": "99.99999999999999999999"}, "between 0 and 100"),
        ({"how_many": "some"}, "Choose one of the list."),
        ({"by": "x" * 400}, "One line, please"),
    ],
)
def test_what_cannot_be_is_told_of(changes, words, small: Visitor) -> None:
    small.send("/question", **changes)
    assert (small.status, small.path) == (422, "/question")
    assert words in small.wrong[0]


def test_rows_of_a_person_are_asked_for_where_people_have_several(small: Visitor) -> None:
    assert "max_rows" not in small.form("/question")
    small.get("/columns")
    small.send("/columns", use_AT_0="person")
    small.send("/question", max_rows="3")
    assert small.desk.session.answers.question.max_rows == 3
    small.get("/question")
    small.send("/question", max_rows="2000")
    assert "1,024" in small.wrong[0]


def test_a_report_of_the_example_says_that_it_is_one(visitor: Visitor) -> None:
    visitor.get("/")
    visitor.send("/example")
    visitor.send("/columns")
    for purpose in ("", "For the board", "It is a made-up table"):
        visitor.get("/question")
        visitor.send("/question", purpose=purpose)
        assert visitor.desk.session.answers.question.purpose.count("made-up table") == 1
        assert purpose in visitor.desk.session.answers.question.purpose
