"""How the site is built: MyST pages, numpydoc docstrings, no network at build time nor in the browser."""

import json
import re
import sys
from pathlib import Path

import privspan

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))

project = "privspan"
author = "the privspan developers"
copyright = f"2026, {author}"
release = version = privspan.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "numpydoc",
    "guarantee_section",
    "remaining_modules",
    "tutorial_notebook",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "sphinxcontrib.katex",
]
exclude_patterns = ["_build", "howto/audit-results.md"]  # the latter is part of another page

myst_enable_extensions = ["amsmath", "attrs_inline", "colon_fence", "deflist", "dollarmath", "substitution"]
myst_heading_anchors = 3
myst_dmath_double_inline = True

autodoc_typehints = "none"  # the docstrings name the types in words
autodoc_member_order = "bysource"
autodoc_default_options = {"exclude-members": "set_fit_request"}  # scikit-learn's own, about its own pages
numpydoc_show_class_members = False

# Only the library's own names are checked: without network there is no inventory of NumPy's or SciPy's.
nitpick_ignore_regex = [(r"py:.*", r"(?!privspan\b).*")]

# KaTeX comes with the extension; MathML output needs neither its fonts nor its style sheet from a CDN.
katex_css_path = "katex-math.css"
katex_options = "output: 'mathml', throwOnError: false"

html_theme = "pydata_sphinx_theme"
html_title = "privspan"
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_context = {"default_mode": "auto"}  # light or dark, as the reader's system says
html_theme_options = {
    "show_toc_level": 2,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}

# Copy what is typed, not what is answered.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "auto_examples",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "thumbnail_size": (640, 448),
    "write_computation_times": False,
}

# The badges of the front door say what was counted, not what was typed.
_audits = json.loads((HERE / "_static" / "audit.json").read_text("utf-8"))
_faults = (HERE / "explanation" / "planted-faults.md").read_text("utf-8").split("\n## ")[0]
_caught = len(re.findall(r"^\| (?!fault|---)", _faults, flags=re.M))
myst_substitutions = {
    "audited": f"{{bdg-success}}`{_audits['audits']} audits, {_audits['refuted']} refuted`",
    "faulted": f"{{bdg-success}}`{_caught} planted faults, all caught`",
}
