"""The Python examples of the README and of the site run, in order, as a reader would type them."""

from pathlib import Path

import pytest
from sybil import Document, Sybil
from sybil.parsers.myst import PythonCodeBlockParser, SkipParser

from privspan.datasets import MissingPackageError

ROOT = Path(__file__).parents[2]
SYBIL = Sybil(parsers=[PythonCodeBlockParser(), SkipParser()])


def pages_with_examples() -> list[str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        str(page.relative_to(ROOT))
        for page in pages
        if page.exists() and "_build" not in page.parts and "```python" in page.read_text("utf-8")
    ]


@pytest.mark.parametrize("page", pages_with_examples())
def test_the_examples_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document: Document = SYBIL.parse(ROOT / page)
    monkeypatch.chdir(tmp_path)  # an example may save files
    examples = list(document.examples())
    assert examples
    for example in examples:
        try:
            example.evaluate()
        except MissingPackageError as missing:
            pytest.skip(str(missing))
