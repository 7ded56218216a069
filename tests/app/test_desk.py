"""How pages are made: nothing from outside is markup, nothing is left out silently."""

import pytest
from app_pages import Visitor, desk_in
from jinja2 import UndefinedError

from privspan._lib.markup import element
from privspan.app.desk import _TEMPLATES, piece


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("<b>", "&lt;b&gt;"),
        ("a\x1b[31m", "a\ufffd[31m"),
        ("a\u202eb", "a\ufffdb"),
        ("a\nb", "a\nb"),
        (element("b", "<i>"), "<b>&lt;i&gt;</b>"),
        (3, "3"),
    ],
)
def test_text_is_escaped_and_fit_to_be_shown_and_our_own_markup_stays(given: object, shown: str) -> None:
    assert _TEMPLATES.from_string("{{ given }}").render(given=given) == shown
    if isinstance(given, str):
        assert _TEMPLATES.from_string('<a b="{{ given }}">').render(given=given + '"').count('"') >= 2


def test_a_value_that_is_missing_is_an_error() -> None:
    with pytest.raises(UndefinedError):
        piece("refusal.html")


def test_the_ledger_may_lie_elsewhere(tmp_path) -> None:
    desk = desk_in(tmp_path)
    assert desk.ledger_name == "privspan-app/ledger.json"
    desk.ledger_path = tmp_path.parent / "book.json"
    assert desk.ledger_name == str(tmp_path.parent / "book.json")
    assert Visitor(desk).get("/").status_code == 200
