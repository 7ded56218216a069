"""Who is not let in: other names, other sites, other browsers, forms of others, and what pages may load."""

import re
from pathlib import Path

import pytest
from app_pages import HERE, PORT, Visitor, desk_in
from starlette.testclient import TestClient

from privspan.app.guard import POLICY, cookie_name
from privspan.app.pages import question
from privspan.app.server import _PAGES, application

FORM = {"content-type": "application/x-www-form-urlencoded"}
GETS = [path for path, shows, _ in _PAGES if shows is not None]
POSTS = [path for path, _, takes in _PAGES if takes is not None]
CLOSED = [path for path in GETS if path != "/open" and not path.startswith("/static/")]


def at(path: str) -> str:
    return path.format(name="release-1", file="style.css")


@pytest.fixture
def visitor(tmp_path: Path) -> Visitor:
    return Visitor(desk_in(tmp_path))


@pytest.mark.parametrize("host", ["evil.example", f"evil.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", ""])
@pytest.mark.parametrize("path", ["/", "/open?token=x", "/static/style.css"])
def test_a_foreign_host_is_refused_whatever_it_brings(host: str, path: str, visitor: Visitor) -> None:
    """A name that somebody else's server resolves to this machine (DNS rebinding) is not one of ours."""
    assert visitor.get(path, headers={"host": host}).status_code == 421
    token = visitor.desk.session.token
    assert visitor.get(f"/open?token={token}", headers={"host": host}).status_code == 421
    assert visitor.desk.session.token == token  # not used up either


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"[::1]:{PORT}"])
def test_the_names_of_this_machine_are_taken(host: str, visitor: Visitor) -> None:
    assert visitor.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", CLOSED)
def test_nothing_is_shown_without_the_cookie(path: str, tmp_path: Path) -> None:
    stranger = Visitor(desk_in(tmp_path), enter=False)
    assert stranger.get(at(path)).status_code == 401
    stranger.client.cookies.set(cookie_name(PORT), "guessed")
    assert stranger.get(at(path)).status_code == 401
    assert stranger.get(at(path), headers={"cookie": f'{cookie_name(PORT)}="; ;;=[]'}).status_code == 401


@pytest.mark.parametrize("path", POSTS)
def test_no_form_is_taken_without_the_cookie_or_the_word_of_our_pages(path: str, visitor: Visitor) -> None:
    stranger = Visitor(visitor.desk, enter=False)
    assert stranger.post(at(path), {}).status_code == 401
    for csrf in ("", "guessed", visitor.desk.session.token):
        assert visitor.post(at(path), {"csrf": csrf}).status_code == 403
        assert "did not come from a page of this app" in visitor.text


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://evil.example"},
        {"origin": f"https://127.0.0.1:{PORT}"},
        {"origin": f"http://127.0.0.1:{PORT + 1}"},
        {"origin": "null"},
        {"origin": "null", "sec-fetch-site": "cross-site"},
        {"origin": HERE, "sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site"},
    ],
)
def test_no_form_is_taken_from_another_site_even_with_its_word(headers, visitor: Visitor) -> None:
    assert visitor.post("/example", {}, headers=headers).status_code == 403
    assert "another site" in visitor.text


@pytest.mark.parametrize("headers", [{"origin": HERE}, {"origin": "null", "sec-fetch-site": "same-origin"}, {}])
def test_forms_of_our_own_pages_are_taken(headers, visitor: Visitor) -> None:
    assert visitor.post("/example", {}, headers=headers).url.path == "/columns"


def test_a_token_lets_one_browser_in(tmp_path: Path) -> None:
    desk = desk_in(tmp_path)
    token = desk.session.token
    first, second = Visitor(desk, enter=False), Visitor(desk, enter=False)
    given = first.get(f"/open?token={token}")
    cookie = given.headers["set-cookie"]
    assert all(word in cookie for word in ("HttpOnly", "SameSite=strict", "Path=/"))
    assert first.get("/").status_code == 200
    assert second.get(f"/open?token={token}").status_code == 401
    assert second.get("/").status_code == 401
    assert second.get("/open").status_code == 401
    assert second.get(f"/open?token={desk.session.token}").status_code == 200  # the next address
    assert second.get("/").status_code == 200


def test_the_entrance_is_a_page_of_its_own_as_a_strict_cookie_is_not_sent_along_a_redirect(tmp_path: Path) -> None:
    desk = desk_in(tmp_path)
    client = TestClient(application(desk, PORT), base_url=HERE, follow_redirects=False)
    given = client.get(f"/open?token={desk.session.token}")
    assert given.status_code == 200
    assert 'http-equiv="refresh" content="0; url=/"' in given.text


@pytest.mark.parametrize("path", [*map(at, GETS), "/nothing", "/open?token=wrong"])
def test_every_answer_has_its_headers(path: str, visitor: Visitor) -> None:
    headers = visitor.get(path).headers
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cross-origin-resource-policy"] == "same-origin"
    assert headers["content-security-policy"] == POLICY


def test_pages_hold_no_script_and_no_style_of_their_own(visitor: Visitor) -> None:
    """The policy would stop them in a browser; so that nothing is missing there, none is written."""
    assert "unsafe" not in POLICY
    assert POLICY.startswith("default-src 'none'")
    for page in (Path(question.__file__).parents[1] / "templates").glob("*.html"):
        text = page.read_text("utf-8")
        assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|https?://", text), page.name
        assert all("src=" in tag and "></script>" in tag for tag in re.findall(r"<script[^>]*>.{0,9}", text)), (
            page.name
        )


@pytest.mark.parametrize(
    ("content", "headers", "status"),
    [
        (b"csrf=%C3", {"content-type": "multipart/form-data; boundary=x"}, 415),
        (b'{"csrf": 1}', {"content-type": "application/json"}, 415),
        (b"a" * 5_000_000, FORM, 413),
        (b"csrf=\xff", FORM, 400),
        (b"&".join(b"a%d=1" % at for at in range(30_000)), FORM, 400),
    ],
)
def test_what_is_no_form_of_ours_is_refused(content, headers, status, visitor: Visitor) -> None:
    """A file cannot be uploaded: no body but that of a plain form is read."""
    assert visitor.take(visitor.client.post("/table", content=content, headers=headers)).status_code == status


def test_there_is_one_way_to_ask_for_a_page(visitor: Visitor) -> None:
    assert visitor.take(visitor.client.put("/table")).status_code in (403, 405)
    assert visitor.take(visitor.client.delete("/releases/release-1", headers={"origin": HERE})).status_code == 405
    assert visitor.get("/confirm/..%2f..%2fetc%2fpasswd").status_code == 404


def test_an_exception_is_told_by_its_kind_alone(visitor: Visitor, capfd) -> None:
    """Its words may quote a cell, and nobody keeps a log of them."""

    class Broken:
        def accounts(self):
            raise ZeroDivisionError("the cell 4711")

    visitor.desk.__class__ = type("Desk", (type(visitor.desk),), {"ledger": Broken()})
    assert visitor.get("/ledger").status_code == 500
    assert "ZeroDivisionError" in visitor.text
    said = capfd.readouterr()
    assert "4711" not in visitor.text + said.out + said.err
    assert said.err == "privspan app: unexpected ZeroDivisionError.\n"
    assert visitor.text.startswith("<!DOCTYPE html>")
