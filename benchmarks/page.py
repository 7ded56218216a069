"""The results page of the documentation, written from stored results: every number on it is read from them."""

from __future__ import annotations

from pathlib import Path

from benchmarks import sections
from benchmarks.cells import Suite
from benchmarks.outputs import draw
from benchmarks.store import replace_file
from benchmarks.suites import SUITES
from benchmarks.summary import USELESS, Group, stored_groups
from privspan._lib import strict_json

PAGE = Path("explanation/results.md")
FIGURES = Path("_static/results")

_HEAD = """\
# Results

This page shows how accurate and how fast the methods are, on which machine, and where other methods are better.
`make results-page` writes it from the files in `benchmarks/results/`; no number on it was typed by hand.
`make bench` measures everything again, and `make bench-quick` runs every method once.

Every error is the sine of the largest angle between the released subspace and the true one: 0 is perfect, 1 is the
worst possible, and we call {useless} or more useless. Tables show medians; a run that abstained counts as an error
of 1. $\\delta$ is $10^{{-6}}$ everywhere. Tail energy is the typical length of a record's part outside the subspace,
divided by the standard deviation of one direction inside.

{machine}
"""


def render(folder: Path) -> str:
    """Return the page for the results of a folder.

    Parameters
    ----------
    folder : Path
        Where ``<suite>.csv`` and ``machine.json`` are. A suite without results is left out.
    """
    stored = stored_groups(folder)
    parts = [_HEAD.format(useless=USELESS, machine=_machine(folder, list(stored)))]
    for name, section in sections.SECTIONS.items():
        if name in stored:
            parts.append(_with_figure(SUITES[name], section, stored[name]))
    parts.append(sections.losses(stored))
    return "\n".join(parts)


def write_page(folder: Path, docs: Path) -> str:
    """Write the page and its figures into the documentation; return a sentence about it.

    Parameters
    ----------
    folder : Path
        Where the results are.
    docs : Path
        The root of the documentation.
    """
    replace_file(docs / PAGE, render(folder))
    stored = stored_groups(folder)
    draw(stored, docs / FIGURES)
    return f"{docs / PAGE} and {len(stored)} figures are written."


def _with_figure(suite: Suite, section: sections.Section, some: list[Group]) -> str:
    picture = f"![{suite.question}](../{FIGURES.as_posix()}/{suite.name}.png)"
    return f"## {section.title}\n\n{section.text(some)}\n{picture}\n"


def _machine(folder: Path, suites: list[str]) -> str:
    """Say where the numbers come from, one sentence per kind of machine."""
    path = folder / "machine.json"
    runs = strict_json.loads(path.read_text("utf-8")) if path.exists() else {}
    told: dict[str, list[str]] = {}
    for suite in suites:
        all_runs = runs.get(suite, [])
        for run in all_runs[-1:]:
            versions = ", ".join(f"{name} {version}" for name, version in run["versions"].items())
            where = f"{run['cores']} cores of {run['processor']}, {run['memory_gb']} GB"
            code = " and ".join(dict.fromkeys(one["commit"] for one in all_runs if one.get("commit")))
            where = f"{where}, {run['system']}, Python {run['python']}, {versions}{code and ', commit '}{code}"
            told.setdefault(where, []).append(suite)
    if len(told) == 1:
        return f"Measured on {next(iter(told))}."
    return "\n".join(f"* {', '.join(names)}: {where}." for where, names in told.items())
