"""Columns as arrows in the plane of two components."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from privspan._lib.errors import ParameterError
from privspan._lib.in_words import share
from privspan.plot._drawing import Colours, axes, colours, name_of, plainly, reading_of
from privspan.plot.components import component_of, factor_of, largest
from privspan.privacy.reading import Reading
from privspan.privacy.rotated import Rotated

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]

_ROOM = 1.15  # times the reach of the arrows: where their names stand
_LINE = 0.105  # of the reach: how far apart names are


def correlation_circle(
    source: object,
    components: tuple[int, int] = (0, 1),
    *,
    most: int = 20,
    columns: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the correlations of the columns with two components, inside the circle of radius 1.

    An arrow that ends near the circle is a column that the two components explain nearly all of; arrows that point
    the same way are columns that rise and fall together.  Ellipses are one standard error of the noise.

    Parameters
    ----------
    source : fitted model or Release
        Of a private PCA with ``scale=True``, where every column has variance 1.
    components : pair of int, default=(0, 1)
        Which ones, from 0.
    most : int, default=20
        How many columns to show, of those with the longest arrows.
    columns : sequence of str, optional
        Names of the columns; by default those of the model or release, or their numbers.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib Axes

    See Also
    --------
    biplot : the same in the units of the table, for every private PCA.
    """
    reading = reading_of(source, columns)
    if not reading.is_standardised:
        raise ParameterError(
            "correlations need {scale:True} when fitting; `biplot` draws columns in their own units."
        )
    arrows = _arrows(reading, components, most)
    ax = axes(ax, (7.2, 5.6))
    palette = colours(ax)
    _draw(ax, palette, reading.names, arrows, max(1.0, float(np.abs(arrows.tips).max(initial=0.0))))
    from matplotlib.patches import Circle

    ax.add_patch(Circle((0.0, 0.0), 1.0, fill=False, color=palette.soft, lw=1.0))
    ax.set_title("correlations of columns with components", fontsize="medium")
    return ax


def biplot(
    source: object,
    components: tuple[int, int] = (0, 1),
    *,
    most: int = 20,
    columns: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the columns as arrows in the plane of two components, in the units of the fit.

    The length of an arrow is the standard deviation that the two components give the column.  No scores are drawn,
    because those are not private; :func:`score_map` draws a private histogram of them.

    Parameters
    ----------
    source : fitted model, Release or Rotated
        Of a private PCA; without variances, arrows are plain loadings.  Or what ``rotate`` made of them.
    components, most, columns, ax
        As for :func:`correlation_circle`.

    Returns
    -------
    matplotlib Axes
    """
    reading = source if isinstance(source, Rotated) else reading_of(source, columns)
    arrows = _arrows(reading, components, most)
    ax = axes(ax, (7.2, 5.6))
    _draw(ax, colours(ax), columns or reading.names, arrows, float(np.abs(arrows.tips).max(initial=0.0)) or 1.0)
    of = f"factors, by {source.criterion}" if isinstance(source, Rotated) else "components"
    ax.set_title(f"columns in the plane of two {of}", fontsize="medium")
    return ax


@dataclass(frozen=True)
class _Arrows:
    """The longest arrows: which columns, where they end, their errors if these are told, and how many there were."""

    order: NDArray[np.intp]
    tips: Array  # (columns, 2)
    errors: Array | None  # (columns, 2)
    noise: bool  # whether one of the two components cannot be distinguished from noise
    axes: tuple[str, str]  # what they are called


def _arrows(reading: Reading | Rotated, components: tuple[int, int], most: int) -> _Arrows:
    first, second = components
    if first == second:
        raise ParameterError("{components} must be two different ones.")
    if isinstance(reading, Rotated):
        ends, called = [factor_of(reading, factor) for factor in components], [f"factor {i + 1}" for i in components]
    else:
        ends = [_along(reading, component) for component in (first, second)]
        called = [_axis(reading, component) for component in components]
    tips = np.column_stack([tip for tip, _ in ends])  # (d, 2)
    errors = None if any(error is None for _, error in ends) else np.column_stack([e for _, e in ends])  # type: ignore[misc]
    order = largest(np.hypot(*tips.T), most)
    noise = isinstance(reading, Reading) and any(map(reading.is_noise, components))
    return _Arrows(order, tips[order], None if errors is None else errors[order], noise, (called[0], called[1]))


def _along(reading: Reading, component: int) -> tuple[Array, Array | None]:
    """Return how far every column reaches along a component, (d,), and the standard errors of that."""
    values, errors = component_of(reading, component), reading.loading_std(component)
    variances, noise = reading.released("explained_variance"), reading.released("explained_variance_std")
    if variances is None:
        return values, errors
    deviation = math.sqrt(float(variances[component]))
    if errors is None or noise is None or deviation == 0.0:
        return values * deviation, None
    # A root is off by half of what its square is off by, over itself.
    return values * deviation, np.hypot(errors * deviation, values * float(noise[component]) / (2.0 * deviation))


def _draw(ax: Axes, palette: Colours, names: Sequence[str], arrows: _Arrows, reach: float) -> None:
    from matplotlib.patches import Ellipse
    from matplotlib.ticker import MaxNLocator

    opacity = 0.35 if arrows.noise else 1.0
    for i, (x, y) in enumerate(arrows.tips):
        if arrows.errors is not None:
            width, height = 2.0 * arrows.errors[i]
            ax.add_patch(Ellipse((x, y), width, height, color=palette.blue, alpha=0.16, lw=0))
        arrow = {"arrowstyle": "-|>", "color": palette.blue, "alpha": opacity, "shrinkA": 0, "shrinkB": 0}
        ax.annotate("", (x, y), (0.0, 0.0), arrowprops=arrow)
    _names(ax, palette, [name_of(names[i]) for i in arrows.order], arrows.tips, reach)
    ax.axhline(0.0, color=palette.line, lw=0.8, zorder=0)
    ax.axvline(0.0, color=palette.line, lw=0.8, zorder=0)
    ax.set(xlabel=arrows.axes[0], ylabel=arrows.axes[1])
    ax.set_xlim(-1.9 * reach, 1.9 * reach)
    ax.set_ylim(-1.25 * reach, 1.25 * reach)
    ax.set_aspect("equal")
    ticks = [tick for tick in MaxNLocator(5).tick_values(-reach, reach) if abs(tick) <= 1.001 * reach]
    ax.set(xticks=ticks, yticks=ticks)
    plainly(ax, palette)


def _names(ax: Axes, palette: Colours, names: Sequence[str], tips: Array, reach: float) -> None:
    """Write the names in two columns, left and right, as high as their arrows end but never one upon another."""
    for side in (-1.0, 1.0):
        of = sorted(np.flatnonzero((tips[:, 0] < 0) == (side < 0)).tolist(), key=lambda i: float(tips[i, 1]))
        for height, i in zip(_apart(tips[of, 1], _LINE * reach, 1.2 * reach), of, strict=True):
            end = (side * _ROOM * reach, height)
            ax.plot([tips[i, 0], end[0]], [tips[i, 1], height], color=palette.line, lw=0.7, zorder=0.5)
            align = "left" if side > 0 else "right"
            ax.annotate(
                names[i], end, (2 * side, 0), textcoords="offset points", ha=align, va="center", fontsize="small",
                color=palette.ink, annotation_clip=False,
            )  # fmt: skip


def _apart(heights: Array, least: float, most: float) -> Array:
    """Return rising heights moved as little as needed to lie `least` apart, within plus and minus `most`."""
    count = len(heights)
    least = min(least, 2.0 * most / max(count - 1, 1))
    steps = least * np.arange(count)
    # What is left of the heights must rise: pool neighbours that do not into their mean.
    pools: list[list[float]] = []
    for value in heights - steps:
        pools.append([float(value), 1.0])
        while len(pools) > 1 and pools[-2][0] > pools[-1][0]:
            (one, m), (other, n) = pools[-2], pools.pop()
            pools[-1] = [(one * m + other * n) / (m + n), m + n]
    level = np.array([value for value, size in pools for _ in range(int(size))])
    return np.asarray(np.clip(level, -most, most - steps[-1] if count else most) + steps)


def _axis(reading: Reading, component: int) -> str:
    ratios = reading.released("explained_variance_ratio")
    part = "" if ratios is None else f" ({share(float(ratios[component]))})"
    return f"component {component + 1}{part}{', noise' if reading.is_noise(component) else ''}"
