"""Someone who uses the app without a browser: reads its pages, fills in its forms, as they stand there."""

from __future__ import annotations

import html
import re
import time
from html.parser import HTMLParser
from pathlib import Path

from starlette.testclient import TestClient

from privspan.app.desk import Desk
from privspan.app.server import application, desk_at

PORT = 8123
HERE = f"http://127.0.0.1:{PORT}"

SLOW = """
import sys, time
from privspan.cli import main
from privspan.cli._task import Task
from pathlib import Path

def run(task, source):
    Path("at-work").touch()
    time.sleep(60)

Task.run = run
sys.exit(main(sys.argv[1:]))
"""
"""A program that does what privspan does, but for a private step that takes a minute."""


class Forms(HTMLParser):
    """The forms of a page: where each goes, and what it holds as it stands."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[tuple[str, str, dict[str, str]]] = []
        self._select: str | None = None
        self._first = False
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        given = dict(attrs)
        if tag == "form":
            self.forms.append((given.get("method", "get"), given.get("action", ""), {}))
        if not self.forms:
            return
        fields = self.forms[-1][2]
        if tag == "input" and "name" in given:
            if given.get("type") not in ("radio", "checkbox") or "checked" in given:
                fields[given["name"]] = given.get("value", "")
        elif tag == "select":
            self._select, self._first = given["name"], True
        elif tag == "option" and self._select is not None and (self._first or "selected" in given):
            fields[self._select] = given.get("value", "")
            self._first = False

    def handle_endtag(self, tag) -> None:
        if tag == "select":
            self._select = None


class Visitor:
    """A browser that has come in, and the page that it shows."""

    def __init__(self, desk: Desk, *, enter: bool = True) -> None:
        self.desk = desk
        self.client = TestClient(application(desk, PORT), base_url=HERE, raise_server_exceptions=False)
        self.seen: list[str] = []  # every response, with its head
        self.status, self.text, self.path = 0, "", ""
        if enter:
            self.get(f"/open?token={desk.session.token}")

    def take(self, answer):
        self.seen.append(f"{answer.url}\n{answer.headers}\n{answer.text}")
        self.status, self.text, self.path = answer.status_code, answer.text, answer.url.path
        return answer

    def get(self, path: str, **options):
        return self.take(self.client.get(path, **options))

    def post(self, path: str, fields: dict[str, str], **options):
        """Send fields, with the word that our own forms bring unless another is given."""
        return self.take(self.client.post(path, data={"csrf": self.desk.session.csrf} | fields, **options))

    def form(self, action: str) -> dict[str, str]:
        """Return the fields of the form that goes there, as they stand on the page."""
        return next(fields for method, to, fields in Forms(self.text).forms if to == action and method == "post")

    def send(self, action: str, **changes: str):
        """Fill in the form that goes there and send it."""
        fields = self.form(action) | {name.replace("_AT_", "-"): value for name, value in changes.items()}
        return self.post(action, fields)

    @property
    def wrong(self) -> list[str]:
        """What the page says cannot be taken."""
        return [html.unescape(words) for words in re.findall(r'<li><a href="#[^"]*">(.*?)</a></li>', self.text)]

    def to_columns(self, file: str, **how: str) -> None:
        self.get("/table")
        self.send("/table", typed=file, **how)

    def to_confirm(self, file: str, **budget: str) -> None:
        """Go from the choice of a file to the last page with the answers that are proposed."""
        self.to_columns(file)
        self.send("/columns")
        self.send("/question")
        self.send("/budget", **budget)

    def wait(self, name: str, seconds: float = 60.0) -> str:
        """Wait until a release has ended, and return how."""
        until = time.monotonic() + seconds
        while (state := self.get(f"/releases/{name}/progress").json()["state"]) == "running":
            assert time.monotonic() < until
            time.sleep(0.05)
        self.get(f"/releases/{name}")
        return state


def desk_in(folder: Path, **options) -> Desk:
    """Return a desk for a folder."""
    made = desk_at(folder, None, None)
    return Desk(made.folder, made.output, made.ledger_path, **options)
