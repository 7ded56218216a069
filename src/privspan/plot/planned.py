"""What a plan expects: error against epsilon, and against the number of rows."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.in_words import number
from privspan.planner import METHODS, USELESS, Plan
from privspan.plot._drawing import Colours, axes, colours, plainly, plan_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

_POINTS = 60
_SPAN = 30.0  # the curves reach so many times fewer and more rows
_EPSILON_SPAN = 20.0
_MOST_ABSTENTION = 0.2  # beyond, a curve is dotted: the method would often give no answer
_KNOWN = ("everyday", *METHODS)


def error_against_rows(
    source: object, *, wanted: float | None = None, alternatives: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw the predicted error against the number of rows, for the same columns and budget.

    Parameters
    ----------
    source : Plan or fitted model
        What :func:`privspan.plan` returned, or a model that has a ``plan_``.
    wanted : float, optional
        An error to mark.
    alternatives : bool, default=False
        Whether to draw every method instead of the planned one, with its 90th percentile.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import privspan as ps
    >>> plan = ps.plan(5_000, 20, 2, epsilon=1.0, delta=1e-6, center=True)
    >>> ps.plot.error_against_rows(plan).get_xlabel()
    'rows (people)'
    """
    found = plan_of(source)
    first = max(found.k + 1.0, found.n / _SPAN)
    sizes = np.unique(np.geomspace(first, max(found.n * _SPAN, 10 * first), _POINTS).astype(int))  # (points,)
    plans = [found.again(n=int(n)) for n in sizes]
    ax = axes(ax, (7.2, 4.4))
    _draw(ax, found, sizes.astype(float), plans, wanted, alternatives)
    ax.set(xlabel="rows (people)")
    ax.set_title(f"{_public(found)}, ε = {number(found.epsilon)}, δ = {number(found.delta)}", fontsize="medium")
    _mark(ax, float(found.n), f"{number(found.n)} rows")
    return ax


def error_against_epsilon(
    source: object, *, wanted: float | None = None, alternatives: bool = False, ax: Axes | None = None
) -> Axes:
    """Draw the predicted error against epsilon, for the same rows, columns and delta.

    Parameters
    ----------
    source, wanted, alternatives, ax
        As for :func:`error_against_rows`.

    Returns
    -------
    matplotlib Axes
    """
    found = plan_of(source)
    epsilons = np.geomspace(found.epsilon / _EPSILON_SPAN, found.epsilon * _EPSILON_SPAN, _POINTS)
    plans = [found.again(epsilon=float(epsilon)) for epsilon in epsilons]
    ax = axes(ax, (7.2, 4.4))
    _draw(ax, found, epsilons, plans, wanted, alternatives)
    title = f"{number(found.n)} rows, {_public(found)}, δ = {number(found.delta)}"
    ax.set(xlabel="ε (smaller is more private)")
    ax.set_title(title, fontsize="medium")
    _mark(ax, found.epsilon, f"ε = {number(found.epsilon)}")
    return ax


def _draw(
    ax: Axes, found: Plan, places: Array, plans: Sequence[Plan | None], wanted: float | None, alternatives: bool
) -> None:
    """Draw curves on two logarithmic axes, and what is useless shaded."""
    palette = colours(ax)
    if found.captured is not None:
        _draw_captured(ax, palette, places, plans)
        return
    tints = dict(zip(_KNOWN, (palette.blue, palette.orange, *palette.parts[2:]), strict=True))
    if alternatives:
        for one in found.alternatives:
            curve = [None if at is None else _of(at.alternatives, one.method) for at in plans]
            _curve(ax, places, curve, tints[one.method], one.label)
    else:
        curve = [None if at is None else _of((at, *at.alternatives), found.method) for at in plans]
        median, high = (_values(curve, name) for name in ("error", "error_90"))
        ax.fill_between(places, median, high, color=palette.blue, alpha=0.2, lw=0, label="to the 90th percentile")
        _curve(ax, places, curve, palette.blue, f"{found.label}, median")
    ax.axhspan(USELESS, 1.0, color=palette.soft, alpha=0.12, lw=0, zorder=0)
    ax.annotate(" useless", (places[0], USELESS), color=palette.soft, va="bottom", fontsize="small")
    if wanted is not None:
        checks.probability(wanted=wanted)
        ax.axhline(wanted, color=palette.soft, lw=1, ls="--")
        ax.annotate(f"error {wanted:g} ", (places[-1], wanted), color=palette.soft, va="bottom", ha="right")
    ax.set(xscale="log", yscale="log", ylabel="predicted error, for ideal data", xlim=(places[0], places[-1]))
    ax.set_ylim(top=1.0)
    dotted = "dotted: would often abstain" if alternatives else None
    legend = ax.legend(frameon=False, loc="lower left", title=dotted, fontsize="small", labelcolor=palette.ink)
    legend.get_title().set(fontsize="small", color=palette.soft)
    plainly(ax, palette)


def _draw_captured(ax: Axes, palette: Colours, places: Array, plans: Sequence[Plan | None]) -> None:
    """Draw what standardised columns are expected to capture."""
    captured = [math.nan if at is None or at.captured is None else at.captured for at in plans]
    ax.plot(places, captured, color=palette.blue, lw=2.2, label="as on real tables")
    ax.axhspan(0.0, USELESS, color=palette.soft, alpha=0.12, lw=0, zorder=0)
    ax.set(
        xscale="log", ylabel="predicted share of the best variance", xlim=(places[0], places[-1]), ylim=(0.0, 1.02)
    )
    ax.legend(frameon=False, loc="lower right", fontsize="small", labelcolor=palette.ink)
    plainly(ax, palette)


def _of(plans: Iterable[Plan], method: str) -> Plan | None:
    return next((one for one in plans if one.method == method), None)


def _curve(ax: Axes, places: Array, curve: Sequence[Plan | None], tint: str, label: str) -> None:
    error, abstains = _values(curve, "error"), _values(curve, "abstention")
    ax.plot(places, error, ":", color=tint, lw=1)
    ax.plot(places, np.where(abstains <= _MOST_ABSTENTION, error, np.nan), color=tint, lw=2.2, label=label)


def _values(curve: Sequence[Plan | None], name: str) -> Array:
    """Return a number of every plan; an error of 1 where there is none."""
    missing = 0.0 if name == "abstention" else 1.0
    return np.array([missing if one is None else getattr(one, name) for one in curve])


def _mark(ax: Axes, place: float, words: str) -> None:
    palette: Colours = colours(ax)
    ax.axvline(place, color=palette.soft, lw=1)
    ax.annotate(f" {words}", (place, ax.get_ylim()[0]), color=palette.soft, va="bottom", fontsize="small")


def _public(found: Plan) -> str:
    if found.captured is not None:
        return f"{number(found.d)} standardised columns, k = {found.k}"
    supposed = ", supposed" if found.assumed else ""
    return f"{number(found.d)} columns, k = {found.k}, γ = {found.gamma:.2g}{supposed}"
