"""The budget: what is refused, what is weak, what is expected, what is left."""

from pathlib import Path

import pytest
from app_pages import Visitor


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": "0"}, "A number above 0"),
        ({"epsilon": "much"}, "A number above 0"),
        ({"epsilon": ""}, "A number is needed here"),
        ({"epsilon": "1e9"}, "ε must be between"),
        ({"delta": "1"}, "A number between 0 and 1"),
        ({"delta": "1e-200"}, "δ must be at least 2**-100"),
        ({"k": "0"}, "A whole number from 1"),
        ({"k": "3"}, "Number of components must be at most 2"),
        ({"limit_epsilon": "0.5"}, "The ledger limits"),
    ],
)
def test_a_wrong_budget_is_told_of(changes, words, small: Visitor) -> None:
    visitor = small
    visitor.send("/question")
    visitor.send("/budget", **changes)
    assert (visitor.status, visitor.path) == (422, "/budget")
    assert words in visitor.wrong[0]
    (name, typed), *_ = changes.items()
    assert visitor.form("/budget")[name] == typed  # stays as it was typed
    assert visitor.get("/confirm").url.path == "/budget"


def test_a_weak_budget_and_a_useless_result_are_told_of_before_they_are_paid_for(visitor, tmp_path: Path) -> None:
    names = [f"x{at}" for at in range(60)]
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join("1" * 60) + "\n" + "\n" * 20)
    visitor.to_columns("a.csv")
    visitor.send("/columns")
    visitor.send("/question", k="1")
    visitor.send("/budget", epsilon="0.1", delta="0.2")
    assert "This budget promises little" in visitor.text
    assert "Expected to be useless" in visitor.text


def test_a_button_shows_the_picture_without_a_script_and_puts_numbers_alone_into_the_address(small: Visitor) -> None:
    small.send("/question")
    small.send("/budget", epsilon="0.25", show="yes", typed="secret")
    assert small.desk.session.answers.price is None
    assert small.seen[-1].splitlines()[0].endswith("?epsilon=0.25&delta=0.000001&k=2&limit_epsilon=&limit_delta=")
    assert "▸ ε = 0.25" in small.text


def test_numbers_are_tried_out_without_a_script_and_are_not_kept(small: Visitor) -> None:
    small.send("/question")
    before = small.desk.session.answers
    small.get("/budget?epsilon=0.25&delta=1e-7&k=1")
    assert small.form("/budget")["epsilon"] == "0.25"
    assert "▸ ε = 0.25" in small.text
    assert "1 component from 500 rows and 2 columns" in small.text
    assert small.desk.session.answers == before


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("epsilon=0.25&delta=1e-6&k=1", "▸ ε = 0.25"),
        ("epsilon=8&delta=1e-6&k=2", "2 components from 500 rows"),
        ("epsilon=x&delta=1e-6&k=2", "one of the numbers above cannot be taken"),
        ("epsilon=1e8&delta=1e-6&k=2", "must be between"),
        ("epsilon=1&delta=1e-6&k=9", "are not possible"),
        ("", "▸ ε = 1"),
    ],
)
def test_the_picture_follows_the_numbers(query: str, words: str, small: Visitor) -> None:
    small.send("/question")
    small.get(f"/forecast?{query}")
    assert small.status == 200
    assert words in small.text
    assert "<html" not in small.text
    assert small.text.count('id="picture"') == small.text.count('id="meaning"') == 1


def test_there_is_no_picture_before_the_question(visitor: Visitor) -> None:
    assert visitor.get("/forecast").status_code == 404


def test_a_share_of_the_variance_and_auto_have_a_forecast_too(small: Visitor) -> None:
    for how in ("share", "auto"):
        small.get("/question")
        small.send("/question", how_many=how)
        assert "Drawn for 2, as their number is not known yet." in small.text
        assert "k" not in small.form("/budget")
        small.send("/budget")
        assert small.path == "/confirm"
