"""The picture of a plan: predicted error against the number of rows, one curve per method."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from privspan._lib.whole_file import whole_file
from privspan.cli import _console
from privspan.planner import METHODS, USELESS, Plan, plan
from privspan.report.words import planned_name

_POINTS = 60
_SPAN = 30.0  # the curves reach so many times fewer and more rows
_MOST_ABSTENTION = 0.2  # beyond, a curve is dotted: the method would often give no answer
_COLOURS = dict(
    zip(("everyday", *METHODS), ("#2f2f2f", "#b8860b", "#1b6ca8", "#d1495b", "#66a182", "#8d8d8d"), strict=True)
)


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
        f'<tr class="{"chosen" if one.method == found.method else ""}"><td>{planned_name(one)}</td>'
        f"<td>{one.error:.2g}</td><td>{one.error_90:.2g}</td><td>{one.abstention:.0%}</td></tr>"
        for one in found.alternatives
    )
    page = Template(resources.files("privspan.cli").joinpath("plan.html").read_text(encoding="utf-8"))
    return page.substitute(picture=svg[svg.index("<svg") :], rows=rows, words=escape(" ".join(words)))


def _drawn(found: Plan, wanted: float, suffix: str) -> bytes:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Drawing needs matplotlib: pip install 'privspan[plot]'.") from None
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes: Any = figure.subplots()
    sizes = _sizes(found)
    curves = error_curves(found, sizes)
    for one in found.alternatives:
        method, (error, abstains) = one.method, curves[one.method]
        axes.plot(sizes, error, ":", color=_COLOURS[method], lw=1)
        answered = np.where(abstains <= _MOST_ABSTENTION, error, np.nan)
        axes.plot(sizes, answered, color=_COLOURS[method], lw=2.2, label=planned_name(one))
    axes.axvline(found.n, color="0.5", lw=1)
    axes.annotate(f" {found.n:,} rows", (found.n, 1.0), color="0.35", va="bottom", annotation_clip=False)
    axes.axhline(wanted, color="0.5", lw=1, ls="--")
    axes.annotate(f"error {wanted:g} ", (sizes[-1], wanted), color="0.35", va="bottom", ha="right")
    axes.axhspan(USELESS, 1.0, color="0.93", zorder=0)
    axes.annotate(" useless", (sizes[0], USELESS), color="0.5", va="bottom")
    axes.set(
        xscale="log", yscale="log", xlabel="rows (people)", ylabel="predicted error, for ideal data", ylim=(None, 1.0)
    )
    axes.set_xlim(sizes[0], sizes[-1])
    axes.set_title(_numbers(found), fontsize=10, pad=18)
    axes.legend(frameon=False, loc="lower left", title="dotted: would often abstain", title_fontsize=8)
    target = io.BytesIO()
    figure.savefig(target, format=suffix, dpi=150)
    return target.getvalue()


def _sizes(found: Plan) -> np.ndarray:
    """Return numbers of rows from few to many, (points,)."""
    first = max(found.k + 1.0, found.n / _SPAN)
    return np.unique(np.geomspace(first, max(found.n * _SPAN, 10 * first), _POINTS).astype(int))


def error_curves(found: Plan, sizes: Sequence[int] | np.ndarray) -> dict[str, np.ndarray]:
    """Return for every method its error and chance to abstain with each number of rows, (2, points)."""
    numbers: dict[str, Any] = {"epsilon": found.epsilon, "delta": found.delta, "gamma": found.gamma}
    numbers |= {"center": found.center, "scale": found.scale}
    plans = [_planned(int(n), found.d, found.k, numbers) for n in sizes]
    curves = {}
    for index, method in enumerate(one.method for one in found.alternatives):
        curves[method] = np.array([plans_at[index] for plans_at in plans]).T
    return curves


def _planned(n: int, d: int, k: int, numbers: dict[str, Any]) -> list[tuple[float, float]]:
    """Return error and chance to abstain of every method; no use where the scales of columns cannot be afforded."""
    try:
        return [(one.error, one.abstention) for one in plan(n, d, k, **numbers).alternatives]
    except ValueError:
        return [(1.0, 0.0)] * len(_COLOURS)  # more than enough


def _numbers(found: Plan) -> str:
    supposed = ", supposed" if found.assumed else ""
    privacy = f"ε = {found.epsilon:g}, δ = {found.delta:g}"
    return f"{found.d:,} columns, k = {found.k}, {privacy}, γ = {found.gamma:.2g}{supposed}"
