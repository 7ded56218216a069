"""Draw docs/_static/first-report.png: run the tutorial, open its report in headless Chromium, take a picture.

Run ``python benchmarks/scripts/_report_picture.py`` where a ``chromium`` is installed.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from sybil import Sybil
from sybil.parsers.myst import PythonCodeBlockParser

DOCS = Path(__file__).resolve().parents[2] / "docs"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for example in (
            Sybil(parsers=[PythonCodeBlockParser()]).parse(DOCS / "tutorial/first-private-pca.md").examples()
        ):
            example.evaluate()
        picture = f"--screenshot={DOCS / '_static/first-report.png'}"
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=900,1080"]
        page = Path(folder, "activities.html").as_uri()
        subprocess.run(["chromium", *options, picture, page], check=True, capture_output=True, timeout=120)


if __name__ == "__main__":
    main()
