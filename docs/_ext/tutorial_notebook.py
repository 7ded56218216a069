"""Offer the tutorial as a notebook: its prose as text cells, its Python blocks as code cells, from one source.

The notebook is written beside the page when the site is built; `tests/together/test_notebook.py` executes it.
"""

import re
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook
from sphinx.application import Sphinx

PAGES = ("tutorial/first-private-pca",)
BLOCK = re.compile(r"^```python\n(.*?)^```\n", re.DOTALL | re.MULTILINE)
OUTPUT = re.compile(r"^```text\n.*?^```\n", re.DOTALL | re.MULTILINE)  # which a notebook makes anew
PICTURE = re.compile(r"^!\[.*?\]\(.*?\)\n", re.MULTILINE)
LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")


def notebook_of(page: str) -> nbformat.NotebookNode:
    """Return a page as a notebook; links and pictures of the site, which are elsewhere, as their words."""
    cells = []
    for number, piece in enumerate(BLOCK.split(page)):
        if number % 2:
            cells.append(new_code_cell(_code(piece)))
        elif words := _words(piece):
            cells.append(new_markdown_cell(words))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"  # the same at every build
    return new_notebook(cells=cells, metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}})


def _code(block: str) -> str:
    lines = block.strip().splitlines()
    if lines[0].startswith(">>> "):  # a dialogue, of which the notebook needs what is typed
        lines = [line[4:] for line in lines if line.startswith((">>> ", "... "))]
    return "\n".join(lines)


def _words(text: str) -> str:
    return LINK.sub(r"\1", PICTURE.sub("", OUTPUT.sub("", text))).strip()


def _write(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    for page in PAGES:
        target = Path(app.outdir) / f"{page}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(notebook_of((Path(app.srcdir) / f"{page}.md").read_text("utf-8")), target)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", _write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
