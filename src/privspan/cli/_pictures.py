"""Pictures as files, and that of a plan: predicted error against the number of rows, one curve per method."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING

from privspan._lib.errors import MissingPackageError
from privspan._lib.whole_file import whole_file
from privspan.cli import _console

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from privspan.planner import Plan


def save_plan(
    found: Plan, wanted: float, plot: Path | None, html: Path | None, words: Sequence[str], *, overwrite: bool
) -> None:
    """Draw the curves into a file whose suffix names the format, and into a page that needs nothing else."""
    if plot is not None:
        write(plot, _curves(found, wanted, plot.suffix), overwrite)
    if html is not None:
        write(html, _page(found, wanted, words).encode(), overwrite)


def write(path: Path, content: bytes, overwrite: bool) -> None:
    """Write a file, and say so."""
    with whole_file(path, overwrite=overwrite) as handle:
        handle.write(content)
    _console.note(f"Wrote {path}.")


def _page(found: Plan, wanted: float, words: Sequence[str]) -> str:
    """Return the curves, the table and what it means."""
    svg = _curves(found, wanted, ".svg").decode()
    rows = "\n".join(
        f'<tr class="{"chosen" if one.method == found.method else ""}"><td>{one.label}</td>'
        f"<td>{one.error:.2g}</td><td>{one.error_90:.2g}</td><td>{one.abstention:.0%}</td></tr>"
        for one in found.alternatives
    )
    page = Template(resources.files("privspan.cli").joinpath("plan.html").read_text(encoding="utf-8"))
    return page.substitute(picture=svg[svg.index("<svg") :], rows=rows, words=escape(" ".join(words)))


def _curves(found: Plan, wanted: float, suffix: str) -> bytes:
    from privspan.plot import error_against_rows

    return drawn(lambda ax: error_against_rows(found, wanted=wanted, alternatives=True, ax=ax), (7.5, 4.6), suffix)


def drawn(draw: Callable[[Axes], object], size: tuple[float, float], suffix: str) -> bytes:
    """Return a picture of that size in the format of a suffix."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingPackageError("Drawing needs matplotlib: pip install 'privspan[plot]'.") from None
    figure = Figure(figsize=size, layout="constrained")
    draw(figure.subplots())
    target = io.BytesIO()
    figure.savefig(target, format=suffix.lower().lstrip("."), dpi=150)
    return target.getvalue()
