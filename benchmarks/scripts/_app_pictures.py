"""Draw docs/_static/app-*.png: go through the app with the made-up clinic in headless Chromium, and take pictures.

Run ``python benchmarks/scripts/_app_pictures.py`` where a ``chromium`` is installed, and the group ``browser``. With
``--all FOLDER`` every page is drawn there instead, on a phone and on a desk, light and dark, to be looked at.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import uvicorn
from playwright.sync_api import Page, sync_playwright

from privspan.app.server import application, desk_at, sockets

STATIC = Path(__file__).resolve().parents[2] / "docs" / "_static"
SHOWN = {"columns": 700, "budget": 880, "release": 620}  # pages of the how-to, and their heights
PATIENCE = 90_000  # milliseconds, for a release

Take = Callable[[Page, str], None]


def started(folder: Path) -> tuple[str, str]:
    """Start the app in a thread; return its address, and the one to come in."""
    desk, listening = desk_at(folder), sockets(None, 0, knowing=False)
    home = f"http://127.0.0.1:{listening[0].getsockname()[1]}"
    config = uvicorn.Config(application(desk, int(home.rsplit(":", 1)[1])), log_config=None, log_level="critical")
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, kwargs={"sockets": listening}, daemon=True).start()
    while not server.started:
        time.sleep(0.01)
    return home, f"{home}/open?token={desk.session.token}"


def walk(page: Page, home: str, take: Take) -> None:
    """Go from the first page to a map of the scores, and take a picture of every page."""

    def on(name: str) -> None:
        page.get_by_role("button", name=name).click()
        page.wait_for_load_state()

    take(page, "start")
    page.goto(f"{home}/table")
    take(page, "table")
    on("Look at its columns")
    take(page, "table-refused")
    page.goto(f"{home}/")
    on("Try it with a made-up clinic")
    take(page, "columns")
    on("Go on")
    take(page, "question")
    on("Go on")
    take(page, "budget")
    on("Go on")
    take(page, "confirm")
    on("Spend it and make the release")
    take(page, "progress")
    page.get_by_role("link", name="Open the report").wait_for()
    release = page.url
    take(page, "release")
    page.get_by_role("link", name="Open the report").click()
    page.wait_for_load_state()
    take(page, "report")
    page.goto(f"{release}/map")
    take(page, "map")
    on("Spend it and make the map")
    page.get_by_role("img", name="Map of the scores").wait_for()
    take(page, "map-done")
    page.goto(f"{home}/ledger")
    take(page, "ledger")


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--all", type=Path, metavar="FOLDER")
    where = options.parse_args().all
    looks = [(820, "light")] if where is None else [(w, s) for w in (390, 1280) for s in ("light", "dark")]
    with sync_playwright() as tools:
        browser = tools.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        )
        for width, scheme in looks:
            with tempfile.TemporaryDirectory() as folder:
                (Path(folder) / "tables").mkdir()
                home, address = started(Path(folder) / "tables")
                context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
                context.set_default_timeout(PATIENCE)
                page = context.new_page()
                page.goto(address)
                page.wait_for_url(f"{home}/")

                def take(page: Page, name: str, width: int = width, scheme: str = scheme) -> None:
                    page.wait_for_load_state()
                    if where is not None:
                        where.mkdir(exist_ok=True)
                        page.screenshot(path=where / f"{name}-{width}-{scheme}.png", full_page=True)
                    elif name in SHOWN:
                        clip = {"x": 0, "y": 0, "width": width, "height": SHOWN[name]}
                        page.screenshot(path=STATIC / f"app-{name}.png", clip=clip, full_page=True)

                walk(page, home, take)
                context.close()


if __name__ == "__main__":
    main()
