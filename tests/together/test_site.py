"""The built site, in a real browser: nothing runs off a small screen, nothing fails, every link leads somewhere.

For the site that ``make docs`` has built, with Playwright and the Chromium of the system; skipped where one is
missing.
"""

import re
import shutil
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"
PHONE, DESK = 390, 1280
SHOWN = [  # the front door, a page of each shelf, the gallery and a page of it, a how-to, the reference
    "index.html",
    "explanation/index.html",
    "explanation/promise.html",
    "explanation/everyday-pca.html",
    "explanation/results.html",
    "auto_examples/index.html",
    "auto_examples/1_people/plot_ancestry.html",
    "howto/coming-from.html",
    "reference/command-line.html",
    "reference/pca.html",
    "release-notes.html",
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SITE / "index.html").is_file(), reason="make docs has not been run"),
]


def pages() -> list[Path]:
    return sorted(page for page in SITE.rglob("*.html") if "_static" not in page.parts)


# --- Links -----------------------------------------------------------------------------------------------


class _Page(HTMLParser):
    """Where a page leads, and the places in it that others can lead to."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for name, value in attributes:
            if value and name in ("href", "src"):
                self.links.append(value)
            if value and name in ("id", "name"):
                self.places.add(value)


def test_every_internal_link_leads_somewhere() -> None:
    read = {path: _Page(path) for path in pages()}
    lost = []
    for path, page in read.items():
        for link in page.links:
            target, place = urldefrag(unquote(link))
            if re.match(r"[a-z]+:|//", link) or "{{" in link:
                continue
            there = (path.parent / target.partition("?")[0]).resolve() if target else path
            there = there / "index.html" if there.is_dir() else there
            known = read[there].places if there in read else None
            if not there.is_file() or (place and known is not None and place not in known):
                lost.append(f"{path.relative_to(SITE)}: {link}")
    assert lost == []


# --- In a browser ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        pytest.skip("there is no Chromium")
    with playwright.sync_playwright() as tools:
        shown = tools.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield shown
        shown.close()


def opened(browser, path: str, width: int, complaints: list[str]):
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.on("console", lambda message: complaints.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("requestfailed", lambda request: complaints.append(f"not loaded: {request.url}"))
    page.goto((SITE / path).as_uri())
    return page


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_no_page_is_wider_than_the_screen(browser, width: int) -> None:
    wide, complaints = [], []
    page = opened(browser, "index.html", width, complaints)
    for path in pages():
        page.goto(path.as_uri())
        if (over := page.evaluate("document.documentElement.scrollWidth - window.innerWidth")) > 0:
            wide.append(f"{path.relative_to(SITE)}: {over} px")
    assert wide == []


@pytest.mark.parametrize("width", [PHONE, DESK])
def test_equations_and_tables_scroll_instead_of_being_cut(browser, width: int) -> None:
    """Whatever is wider than the text stands in something that scrolls."""
    cut = """
        () => [...document.querySelectorAll(
            '.bd-article math, .bd-article table, .bd-article pre, .bd-article code'
        )].filter(one => {
            const edge = document.querySelector('.bd-article').getBoundingClientRect().right + 1;
            if (one.getBoundingClientRect().right <= edge) return false;
            for (let box = one; box && !box.classList.contains('bd-article'); box = box.parentElement)
                if (['auto', 'scroll'].includes(getComputedStyle(box).overflowX)) return false;
            return true;
        }).map(one => one.textContent.trim().slice(0, 60))
    """
    complaints: list[str] = []
    found = {path: opened(browser, path, width, complaints).evaluate(cut) for path in SHOWN}
    assert {path: told for path, told in found.items() if told} == {}


@pytest.mark.parametrize("path", SHOWN)
def test_a_page_loads_without_complaints(browser, path: str) -> None:
    complaints: list[str] = []
    page = opened(browser, path, DESK, complaints)
    page.wait_for_load_state("load")
    assert complaints == []


@pytest.mark.parametrize("path", ["index.html", "howto/coming-from.html", "reference/command-line.html"])
def test_what_is_typed_can_be_copied(browser, path: str) -> None:
    page = opened(browser, path, DESK, [])
    page.wait_for_selector("button.copybtn", state="attached")
    blocks = page.locator("div.highlight > pre").count()
    assert page.locator("button.copybtn").count() == blocks > 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_both_themes_have_contrast(browser, theme: str) -> None:
    """The text of the front door stands out of its background, by day and by night."""
    page = opened(browser, "index.html", DESK, [])
    page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    lightness = """
        one => getComputedStyle(document.querySelector(one[0]))[one[1]].match(/[0-9.]+/g).slice(0, 3).map(Number)
            .reduce((sum, part) => sum + part / 765, 0)
    """
    text, ground = (
        page.evaluate(lightness, [".bd-article p", "color"]),
        page.evaluate(lightness, ["body", "background-color"]),
    )
    assert abs(text - ground) > 0.5
    assert (ground > 0.5) == (theme == "light")
