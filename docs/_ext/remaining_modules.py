"""Fill ``reference/inside`` with every module that no other reference page shows.

Proofs speak of functions deep in the code. This page lets each of them be linked, and a new module appears on
it without anybody keeping a list.
"""

import pkgutil
import re
from pathlib import Path

from sphinx.application import Sphinx

import privspan

PAGE = "reference/inside"
NOT_SHOWN = re.compile(r"\._|\.(cli|demo)\b")

SECTION = """
## {module}

```{{eval-rst}}
.. automodule:: {module}
   :members:
   :ignore-module-all:
   :exclude-members: {public}
```
"""


def _remaining_modules(reference: Path) -> list[str]:
    pages = "\n".join(page.read_text("utf-8") for page in reference.glob("*.md"))
    shown = set(re.findall(r"automodule:: (\S+)", pages))
    modules = (info.name for info in pkgutil.walk_packages(privspan.__path__, "privspan.") if not info.ispkg)
    return sorted(name for name in modules if name not in shown and not NOT_SHOWN.search(name))


def _append_sections(app: Sphinx, docname: str, source: list[str]) -> None:
    if docname == PAGE:
        public = ", ".join(privspan.__all__)  # shown on the other pages under their short names
        modules = _remaining_modules(Path(app.srcdir) / "reference")
        source[0] += "".join(SECTION.format(module=module, public=public) for module in modules)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("source-read", _append_sections)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
