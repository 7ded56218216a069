"""The picture of a plan: predicted error against the number of rows, one curve per method."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template

from privspan._lib.errors import MissingPackageError
from privspan._lib.whole_file import whole_file
from privspan.cli import _console
from privspan.planner import Plan


def save(
    found: Plan, wanted: float, plot: Path | None, html: Path | None, words: Sequence[str], *, overwrite: bool
) -> None:
    """Draw the curves into a file whose suffix names the format, and into a page that needs nothing else."""
    if plot is not None:
        _write(plot, _drawn(found, wanted, plot.suffix.lower().lstrip(".")), overwrite)
    if html is not None:
        _write(html, _page(found, wanted, words).encode(), overwrite)


def _write(path: Path, content: bytes, overwrite: bool) -> None:
    with whole_file(path, overwrite=overwrite) as handle:
        handle.write(content)
    _console.note(f"Wrote {path}.")


def _page(found: Plan, wanted: float, words: Sequence[str]) -> str:
    """Return the curves, the table and what it means."""
    svg = _drawn(found, wanted, "svg").decode()
    rows = "\n".join(
        f'<tr class="{"chosen" if one.method == found.method else ""}"><td>{one.label}</td>'
        f"<td>{one.error:.2g}</td><td>{one.error_90:.2g}</td><td>{one.abstention:.0%}</td></tr>"
        for one in found.alternatives
    )
    page = Template(resources.files("privspan.cli").joinpath("plan.html").read_text(encoding="utf-8"))
    return page.substitute(picture=svg[svg.index("<svg") :], rows=rows, words=escape(" ".join(words)))


def _drawn(found: Plan, wanted: float, suffix: str) -> bytes:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPackageError("Drawing needs matplotlib: pip install 'privspan[plot]'.") from None
    from privspan.plot import error_against_rows

    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    error_against_rows(found, wanted=wanted, alternatives=True, ax=figure.subplots())
    target = io.BytesIO()
    figure.savefig(target, format=suffix, dpi=150)
    return target.getvalue()
