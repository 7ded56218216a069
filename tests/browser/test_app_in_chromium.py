"""The app in a real browser: its whole way, with and without a script, by keyboard alone; and what a browser refuses.

Run by `make test-browser`, and by `make test-slow` where Playwright and a Chromium are installed.
"""

import http.server
import shutil
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import uvicorn
from app_pages import SLOW

from privspan.app.desk import Desk
from privspan.app.server import application, desk_at, sockets
from privspan.ledger import Ledger

pytestmark = pytest.mark.slow

PHONE, DESKTOP = 390, 1280
PATIENCE = 60_000  # milliseconds, for a release on a busy machine


class Site:
    """A running app, and pages in a browser that look at it."""

    def __init__(self, browser, desk: Desk) -> None:
        self.browser, self.desk, self.complaints = browser, desk, []
        listening = sockets(None, 0, knowing=False)
        self.port = listening[0].getsockname()[1]
        self.home = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(application(desk, self.port), log_config=None, log_level="critical", ws="none")
        self.server = uvicorn.Server(config)
        self.thread = threading.Thread(target=self.server.run, kwargs={"sockets": listening}, daemon=True)
        self.thread.start()
        while not self.server.started:
            time.sleep(0.01)

    def open(self, width: int = DESKTOP, *, scheme: str = "light", script: bool = True, enter: bool = True):
        """Return a page of a new browser that has come in with the address."""
        context = self.browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, java_script_enabled=script
        )
        context.set_default_timeout(PATIENCE)
        page = context.new_page()
        page.on("console", lambda told: self.complaints.append(told.text) if told.type == "error" else None)
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        if enter:
            page.goto(f"{self.home}/open?token={self.desk.session.token}")
            page.wait_for_url(f"{self.home}/")
        return page

    def spent(self) -> int:
        return sum(len(account.entries) for account in Ledger(self.desk.ledger_path).accounts().values())

    def close(self) -> None:
        self.desk.runs.interrupt(30.0)
        self.server.should_exit = True
        self.thread.join(10)


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright: pip install --group browser")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    rebound = "--host-resolver-rules=MAP evil.example 127.0.0.1"
    with playwright.sync_playwright() as tools:
        shown = tools.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu", rebound])
        yield shown
        shown.close()


@pytest.fixture
def site(browser, tmp_path: Path) -> Iterator[Site]:
    made = Site(browser, desk_at(tmp_path))
    yield made
    made.close()


@pytest.fixture
def slow(browser, tmp_path: Path) -> Iterator[Site]:
    """An app whose releases take a minute once they are paid for."""
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 500)
    made = Site(browser, desk_at(tmp_path, program=(sys.executable, str(tmp_path / "slow.py"))))
    yield made
    made.close()


def button(page, name: str) -> None:
    page.get_by_role("button", name=name).click()
    page.wait_for_load_state()


def to_confirm(page, home: str, file: str) -> None:
    page.goto(f"{home}/table")
    page.get_by_label(file, exact=True).check()
    button(page, "Look at its columns")
    for _ in range(3):
        button(page, "Go on")
    assert page.url.endswith("/confirm")


def shows(page, words: str) -> None:
    """Wait until the picture shows these words beside a bar."""
    page.locator("#picture svg text", has_text=words).first.wait_for()


def too_wide(page) -> int:
    return page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


def serious(page) -> list[str]:
    """Return what axe-core finds that keeps people out."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page).response["violations"]
    grave = [one for one in found if one["impact"] in ("serious", "critical")]
    return [f"{one['id']}: {one['nodes'][0]['html'][:120]}" for one in grave]


def test_the_clinic_from_the_first_page_to_the_report_and_a_map(site: Site) -> None:
    """Every page on the way fits phone and desk, keeps nobody out; the whole takes no three minutes."""
    page, found, begun = site.open(), [], time.monotonic()

    def look() -> None:
        page.wait_for_load_state()
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            found.extend(f"{page.url}, {scheme}: {one}" for one in serious(page))
        for width in (PHONE, DESKTOP):
            page.set_viewport_size({"width": width, "height": 900})
            if (over := too_wide(page)) > 0:
                found.append(f"{page.url} is {over} px too wide at {width}")

    look()
    page.goto(f"{site.home}/table")
    look()
    page.goto(f"{site.home}/")
    button(page, "Try it with a made-up clinic")
    look()
    button(page, "Go on")
    look()
    button(page, "Go on")
    look()
    page.get_by_label("ε (epsilon)", exact=True).fill("3")
    shows(page, "▸ ε = 3")
    look()
    button(page, "Go on")
    look()
    button(page, "Spend it and make the release")
    look()
    page.get_by_role("link", name="Open the report").wait_for()
    look()
    release = page.url
    page.get_by_role("link", name="Open the report").click()
    page.wait_for_load_state()
    assert page.locator("h1").first.inner_text() == "Private principal components"
    assert time.monotonic() - begun < 180
    page.goto((site.desk.output / "release-1" / "report.html").as_uri())  # where axe may run: in the app nothing may
    look()
    page.goto(release)
    button(page, "A map of the scores")
    look()
    button(page, "Spend it and make the map")
    page.get_by_role("img", name="Map of the scores").wait_for()
    look()
    page.goto(f"{site.home}/ledger")
    look()
    assert found == []
    assert site.complaints == []
    assert site.spent() == 2


def test_two_hundred_columns_without_a_script(site: Site) -> None:
    """Every page works as a plain form; progress is a page that loads itself again."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1_000, 3)) @ rng.normal(size=(3, 200))
    head = ",".join(["user_id", *(f"q{at}" for at in range(199))])
    np.savetxt(site.desk.folder.root / "wide.csv", rows, delimiter=",", header=head, comments="", fmt="%.3f")
    page = site.open(PHONE, script=False)
    page.goto(f"{site.home}/table")
    page.get_by_label("wide.csv").check()
    button(page, "Look at its columns")
    page.get_by_label("Use q3 as", exact=True).select_option("leave out")
    page.get_by_label("Lower public bound of q4", exact=True).fill("-9")
    page.get_by_label("Upper public bound of q4", exact=True).fill("9")
    button(page, "Go on")
    button(page, "Go on")
    page.get_by_label("ε (epsilon)", exact=True).fill("2")
    button(page, "Show the picture for these numbers")
    shows(page, "▸ ε = 2")
    button(page, "Go on")
    assert "198: q0, q1, q2, q4" in page.content()
    assert site.desk.session.csrf not in page.url
    button(page, "Spend it and make the release")
    page.get_by_role("link", name="Open the report").wait_for()
    assert site.spent() == 1
    assert site.complaints == []


def test_by_keyboard_alone(site: Site) -> None:
    (site.desk.folder.root / "a.csv").write_text("x,y\n" + "1,2\n" * 500)
    page = site.open()

    def to(name: str) -> None:
        """Press Tab until something of that name has the focus, as a person would, and see that it is shown."""
        for _ in range(60):
            page.keyboard.press("Tab")
            told = page.evaluate(
                "(() => { const e = document.activeElement; const label = e.labels && e.labels[0];"
                "return (label ? label.textContent : e.getAttribute('aria-label') || e.textContent).trim(); })()"
            )
            if told == name:
                outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
                assert outline != "none", name
                return
        raise AssertionError(f"{name} is not reached")

    def press(key: str) -> None:
        page.keyboard.press(key)
        page.wait_for_load_state()

    to("Choose a table")
    press("Enter")
    page.wait_for_url("**/table*")
    to("a.csv")
    press("Space")
    to("Look at its columns")
    press("Enter")
    page.wait_for_url("**/columns")
    to("Use x as")
    to("Go on")
    press("Enter")
    page.wait_for_url("**/question")
    to("This many:")
    press("ArrowDown")  # to the next of the group
    assert page.get_by_label("As many as hold this much").is_checked()
    to("Go on")
    press("Enter")
    page.wait_for_url("**/budget")
    to("ε (epsilon)")
    page.keyboard.press("Control+A")
    page.keyboard.type("0.7")
    press("Enter")
    page.wait_for_url("**/confirm")
    assert "ε = 0.7" in page.content()
    to("Spend it and make the release")


def test_the_picture_moves_with_epsilon_and_k(site: Site) -> None:
    page = site.open()
    button(page, "Try it with a made-up clinic")
    button(page, "Go on")
    button(page, "Go on")
    picture = page.locator("#picture")
    for epsilon, k in (("0.3", "2"), ("4", "3"), ("0.05", "3")):
        page.get_by_label("ε (epsilon)", exact=True).fill(epsilon)
        page.get_by_label("Components", exact=True).fill(k)
        shows(page, f"▸ ε = {epsilon}")
        picture.get_by_text(f"{k} components from 6,000 persons").wait_for()
    page.get_by_label("ε (epsilon)", exact=True).fill("much")
    picture.get_by_text("one of the numbers above cannot be taken").wait_for()
    assert page.locator("#meaning").is_visible()
    assert site.complaints == []


def test_back_reload_and_two_tabs_spend_once(slow: Site) -> None:
    page = slow.open()
    to_confirm(page, slow.home, "a.csv")
    other = page.context.new_page()
    other.goto(f"{slow.home}/confirm")
    page.get_by_role("button", name="Spend it").dblclick()
    page.get_by_text("is being made").first.wait_for()
    page.reload()
    page.get_by_text("is being made").first.wait_for()
    button(other, "Spend it")  # the same page in another tab
    assert other.url == page.url
    page.go_back()
    page.wait_for_load_state()
    assert page.get_by_text("One at a time.").count() == 1 or page.url.endswith("/releases/release-1")
    page.goto(f"{slow.home}/")
    page.get_by_role("link", name="release-1").click()
    while slow.spent() < 1:  # its program has begun
        time.sleep(0.05)
    button(page, "Stop it")
    page.get_by_text("was interrupted").wait_for()
    assert "its budget counts as spent" in page.content()
    assert (slow.spent(), len(slow.desk.runs.all())) == (1, 1)


def test_another_browser_comes_in_only_with_the_next_address(site: Site) -> None:
    token = site.desk.session.token
    site.open()
    stranger = site.open(enter=False)
    assert stranger.goto(f"{site.home}/").status == 401
    assert stranger.goto(f"{site.home}/open?token={token}").status == 401
    assert stranger.goto(f"{site.home}/ledger").status == 401
    assert "needs the address" in stranger.content()


def test_a_name_that_is_made_to_point_here_is_refused(site: Site) -> None:
    page = site.open()
    assert page.goto(f"http://evil.example:{site.port}/").status == 421
    assert page.goto(f"http://evil.example:{site.port}/open?token={site.desk.session.token}").status == 421


def test_a_page_of_another_site_can_send_no_form(site: Site, tmp_path: Path) -> None:
    """Also one of this very machine, which a browser takes for the same site: ports do not count there."""
    secret = site.desk.session.csrf  # say that it had leaked
    text = (
        f'<form method="post" action="{site.home}/example"><input name="csrf" value="{secret}"></form>'
        "<script>document.forms[0].submit()</script>"
    )
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "index.html").write_text(text)

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *given) -> None:
            super().__init__(*given, directory=str(tmp_path / "elsewhere"))

        def log_message(self, *_) -> None:
            pass

    page = site.open()
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as attacker:
        threading.Thread(target=attacker.serve_forever, daemon=True).start()
        for name in ("127.0.0.1", "localhost", "evil.example"):
            with page.expect_response(f"{site.home}/example") as sent:
                page.goto(f"http://{name}:{attacker.server_port}/index.html")
            assert sent.value.status in (401, 403)
        attacker.shutdown()
    assert not site.desk.output.exists()


def test_markup_in_names_stays_text_and_the_report_runs_nothing(site: Site) -> None:
    head = '<script>alert(1)</script>,"<img src=x onerror=alert(2)>",z\n'
    (site.desk.folder.root / "a.csv").write_text(head + "1,2,3\n4,5,7\n" * 500)
    page = site.open()
    to_confirm(page, site.home, "a.csv")
    assert page.get_by_text("<script>alert(1)</script>").count() > 0
    button(page, "Spend it")
    page.get_by_role("link", name="Open the report").click()
    page.wait_for_load_state()
    assert page.get_by_text("<script>alert(1)</script>").count() > 0
    assert page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth") != "none"  # its style is used
    assert site.complaints == []


def test_refusals_are_told_where_they_belong(site: Site) -> None:
    (site.desk.folder.root / "a.csv").write_text("x,y\n" + "1,2\n" * 500)
    page = site.open()
    page.goto(f"{site.home}/table")
    page.get_by_label("Or type a path").fill("../secret.csv")
    button(page, "Look at its columns")
    assert page.get_by_role("alert").get_by_text("leads out of the folder").count() == 1
    assert serious(page) == []
    page.get_by_label("a.csv").check()
    button(page, "Look at its columns")
    button(page, "Go on")
    button(page, "Go on")
    page.get_by_label("ε (epsilon)", exact=True).fill("-1")
    button(page, "Go on")
    field = page.get_by_label("ε (epsilon)", exact=True)
    assert field.get_attribute("aria-invalid") == "true"
    assert "epsilon-wrong" in field.get_attribute("aria-describedby")
    page.get_by_role("alert").get_by_role("link").click()
    assert page.evaluate("location.hash") == "#epsilon"
    assert serious(page) == []


def test_what_must_not_be_is_refused(site: Site, tmp_path: Path) -> None:
    """Files that are none, links out of the folder, forms without their word, and more than the ledger has left."""
    root = site.desk.folder.root
    (root / "a.csv").write_text("x,y\n" + "1,2\n" * 500)
    (root / "bad.parquet").write_text("no table")
    (root / "link.csv").symlink_to("/etc/hostname")
    page = site.open()
    page.goto(f"{site.home}/table")
    assert page.get_by_label("link.csv").count() == 0
    page.get_by_label("bad.parquet").check()
    button(page, "Look at its columns")
    assert page.get_by_role("alert").get_by_text("'bad.parquet' is damaged").count() == 1
    page.get_by_label("Or type a path").fill("link.csv")
    button(page, "Look at its columns")
    assert page.get_by_role("alert").get_by_text("leads out of the folder").count() == 1
    assert page.request.post(f"{site.home}/example", form={"csrf": ""}).status == 403
    to_confirm(page, site.home, "a.csv")
    with Ledger(site.desk.ledger_path).spending(
        str(root / "a.csv"), "1", "1e-6", limit_epsilon="1.5", limit_delta="1e-5"
    ):
        pass
    page.goto(f"{site.home}/confirm")
    assert page.get_by_role("alert").get_by_text("This would be refused.").count() == 1
    assert page.get_by_role("button", name="Spend it").count() == 0
    assert serious(page) == []
    page.goto(f"{site.home}/budget")
    page.get_by_label("ε (epsilon)", exact=True).fill("2")
    button(page, "Go on")
    assert page.get_by_role("alert").get_by_text("The ledger limits").count() == 1
    assert serious(page) == []
    assert site.spent() == 1


def test_pages_that_few_see_keep_nobody_out(site: Site) -> None:
    """A wide table on a phone, a table that has gone, a ledger with many entries, a map that promises little."""
    root, found = site.desk.folder.root, []
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(3_000, 2)) @ rng.normal(size=(2, 60))
    head = ",".join(["user_id", *(f"question number {at}" for at in range(59))])
    np.savetxt(root / "wide.csv", rows, delimiter=",", header=head, comments="", fmt="%.3f")
    page = site.open(PHONE, scheme="dark")

    def look() -> None:
        page.wait_for_load_state()
        found.extend(f"{page.url}: {one}" for one in serious(page))
        if (over := too_wide(page)) > 0:
            found.append(f"{page.url} is {over} px too wide")

    page.goto(f"{site.home}/table")
    page.get_by_label("wide.csv").check()
    button(page, "Look at its columns")
    look()
    page.get_by_label("Use question number 3 as", exact=True).select_option("category")
    button(page, "Go on")
    look()
    page.get_by_role("alert").get_by_role("link", name="question number 3").click()
    assert page.evaluate("document.activeElement.id || location.hash").lstrip("#") == "words-4"
    page.get_by_label("Use question number 3 as", exact=True).select_option("leave out")
    button(page, "Go on")
    button(page, "Go on")
    page.get_by_label("ε (epsilon)", exact=True).fill("8")
    button(page, "Go on")
    look()
    button(page, "Spend it and make the release")
    page.get_by_role("link", name="Open the report").wait_for()
    look()
    button(page, "A map of the scores")
    page.get_by_label("δ (delta)", exact=True).fill("0.4")
    button(page, "Spend it and make the map")
    assert page.get_by_role("alert").get_by_text("This budget promises little").count() == 1
    look()
    page.goto(f"{site.home}/ledger")
    look()
    (root / "wide.csv").unlink()
    page.goto(f"{site.home}/columns")
    assert page.get_by_role("alert").get_by_text("There is no such file").count() == 1
    look()
    assert found == []
    assert site.spent() == 1
