"""Teach numpydoc the section that every private function has, ``Guarantee``, and link it to its proof.

numpydoc knows a fixed list of sections and drops any other. Here the section joins the list and is drawn
as a box after the returned values. Should a later numpydoc stop reading these hooks, it reports an unknown
section, and the build, where warnings are errors, says so.

Docstrings name proofs by file, ``docs/explanation/page.md``, because that is what a reader of the source can
open. On the site the name becomes a link; a page that does not exist is then a warning, hence an error.
"""

import re

from numpydoc.docscrape import NumpyDocString
from numpydoc.docscrape_sphinx import SphinxDocString
from sphinx.application import Sphinx

PROOF_FILE = re.compile(r"(``|)docs/(explanation/[\w-]+)\.md\1")

_warnings_section = SphinxDocString._str_warnings


def _guarantee_then_warnings(docstring: SphinxDocString) -> list[str]:
    lines = docstring["Guarantee"]
    box = [".. admonition:: Guarantee", "", *docstring._str_indent(lines), ""] if lines else []
    return box + _warnings_section(docstring)


def _link_proofs(app: Sphinx, what: str, name: str, obj: object, options: object, lines: list[str]) -> None:
    lines[:] = [PROOF_FILE.sub(r":doc:`/\2`", line) for line in lines]


def setup(app: Sphinx) -> dict[str, bool]:
    NumpyDocString.sections["Guarantee"] = []
    SphinxDocString._str_warnings = _guarantee_then_warnings
    app.connect("autodoc-process-docstring", _link_proofs)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
