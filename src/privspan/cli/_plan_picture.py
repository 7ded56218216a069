"""The picture of a plan: predicted error against the number of rows, one curve per method."""

from __future__ import annotations

import io
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from privspan._lib.whole_file import whole_file
from privspan.planner import METHODS, USELESS, Plan, plan

_POINTS = 60
_SPAN = 30.0  # the curves reach so many times fewer and more rows
_MOST_ABSTENTION = 0.2  # beyond, a curve is dotted: the method would often give no answer
_COLOURS = dict(zip(METHODS, ("#1b6ca8", "#d1495b", "#66a182", "#8d8d8d"), strict=True))

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
body {{ font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem; color: #222; }}
svg {{ width: 100%; height: auto; }} table {{ border-collapse: collapse; }}
th, td {{ padding: .2rem .8rem .2rem 0; text-align: right; border-bottom: 1px solid #ddd; }}
th:first-child, td:first-child {{ text-align: left; }} .chosen {{ font-weight: bold; }}
</style></head><body><h1>{title}</h1>
{picture}
<table><tr><th>method</th><th>error</th><th>9 of 10 below</th><th>abstains</th></tr>
{rows}
</table>
<p>{words} The predictions use public numbers only; no data was looked at.</p>
</body></html>
"""


def save_picture(found: Plan, wanted: float, path: Path, *, overwrite: bool) -> None:
    """Draw the curves into a file whose suffix names the format."""
    with whole_file(path, overwrite=overwrite) as handle:
        _figure(found, wanted, handle, path.suffix.lower().lstrip("."))


def save_page(found: Plan, wanted: float, path: Path, words: Sequence[str], *, overwrite: bool) -> None:
    """Write the curves, the table and what it means to one page that needs nothing else."""
    drawn = io.BytesIO()
    _figure(found, wanted, drawn, "svg")
    svg = drawn.getvalue().decode()
    rows = "\n".join(
        f'<tr class="{"chosen" if one.method == found.method else ""}"><td>{one.method}</td><td>{one.error:.2g}</td>'
        f"<td>{one.error_90:.2g}</td><td>{one.abstention:.0%}</td></tr>"
        for one in found.alternatives
    )
    page = _PAGE.format(
        title="What to expect of a private subspace",
        picture=svg[svg.index("<svg") :],
        rows=rows,
        words=escape(" ".join(words)),
    )
    with whole_file(path, overwrite=overwrite) as handle:
        handle.write(page.encode())


def _figure(found: Plan, wanted: float, target: Any, suffix: str) -> None:
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise ImportError("Drawing needs matplotlib: pip install 'privspan[plot]'.") from None
    figure = Figure(figsize=(7.5, 4.6), layout="constrained")
    axes: Any = figure.subplots()
    sizes, curves = _curves(found)
    for method in METHODS:
        error, abstains = curves[method]
        axes.plot(sizes, error, ":", color=_COLOURS[method], lw=1)
        answered = np.where(abstains <= _MOST_ABSTENTION, error, np.nan)
        axes.plot(sizes, answered, color=_COLOURS[method], lw=2.2, label=method)
    axes.axvline(found.n, color="0.5", lw=1)
    axes.annotate(f" {found.n:,} rows", (found.n, 1.0), color="0.35", va="bottom", annotation_clip=False)
    axes.axhline(wanted, color="0.5", lw=1, ls="--")
    axes.annotate(f"error {wanted:g} ", (sizes[-1], wanted), color="0.35", va="bottom", ha="right")
    axes.axhspan(USELESS, 1.0, color="0.93", zorder=0)
    axes.annotate(" useless", (sizes[0], USELESS), color="0.5", va="bottom")
    axes.set(xscale="log", yscale="log", xlabel="rows (people)", ylabel="predicted error", ylim=(None, 1.0))
    axes.set_xlim(sizes[0], sizes[-1])
    axes.set_title(_numbers(found), fontsize=10, pad=18)
    axes.legend(frameon=False, loc="lower left", title="dotted: would often abstain", title_fontsize=8)
    figure.savefig(target, format=suffix, dpi=150)


def _curves(found: Plan) -> tuple[np.ndarray, dict[str, tuple[np.ndarray, np.ndarray]]]:
    """Return numbers of rows, and error and chance to abstain of every method for each of them."""
    first = max(found.k + 1.0, found.n / _SPAN)
    sizes = np.unique(np.geomspace(first, max(found.n * _SPAN, 10 * first), _POINTS).astype(int))  # (points,)
    plans = [
        plan(int(n), found.d, found.k, epsilon=found.epsilon, delta=found.delta, gamma=found.gamma) for n in sizes
    ]
    curves = {}
    for index, method in enumerate(METHODS):
        forecasts = [one.alternatives[index] for one in plans]
        curves[method] = (
            np.array([one.error for one in forecasts]),
            np.array([one.abstention for one in forecasts]),
        )
    return sizes, curves


def _numbers(found: Plan) -> str:
    supposed = ", supposed" if found.assumed else ""
    privacy = f"ε = {found.epsilon:g}, δ = {found.delta:g}"
    return f"{found.d:,} columns, k = {found.k}, {privacy}, γ = {found.gamma:.2g}{supposed}"
