"""What is given without a cookie: the style sheet, the script, the icon."""

import pytest
from app_pages import Visitor


@pytest.mark.parametrize(
    ("name", "kind"), [("style.css", "text/css"), ("app.js", "text/javascript"), ("icon.svg", "image/svg+xml")]
)
def test_files_of_the_pages_are_given(name: str, kind: str, visitor: Visitor) -> None:
    given = visitor.get(f"/static/{name}")
    assert given.status_code == 200
    assert given.headers["content-type"].startswith(kind)
    assert "http://" not in given.text.replace("http://www.w3.org/2000/svg", "")  # nothing from elsewhere


def test_no_other_file_is_given(visitor: Visitor) -> None:
    for name in ("app.css", "page.html", "..%2fserver.py", "__init__.py"):
        assert visitor.get(f"/static/{name}").status_code == 404


def test_the_style_is_that_of_the_report_with_lines_of_its_own(visitor: Visitor) -> None:
    text = visitor.get("/static/style.css").text
    assert "prefers-color-scheme: dark" in text
    assert ".steps" in text
