"""The private map of scores, as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from privspan._lib.errors import ParameterTypeError
from privspan._lib.in_words import number
from privspan.plot._drawing import axes, colours, name_of, plainly, pyplot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from privspan.sums.score_map import ScoreMap


def score_maps(source: ScoreMap) -> Figure:
    """Draw the map of all people and those of the classes, side by side.

    Parameters
    ----------
    source : ScoreMap
        Of ``private_score_map`` with `classes`.

    Returns
    -------
    matplotlib Figure
    """
    if not getattr(source, "labels", ()):
        raise ParameterTypeError("a map by class is needed; `score_map` draws the others.")
    count = 1 + len(source.labels)
    columns = min(count, 3)
    shape = -(-count // columns), columns
    figure: Figure
    figure, panels = pyplot().subplots(
        *shape, figsize=(4.6 * shape[1], 3.7 * shape[0]), layout="constrained", squeeze=False
    )
    for panel, label in zip(panels.flat, (None, *source.labels), strict=False):
        score_map(source if label is None else source.of(label), ax=panel)
        panel.set_title("all" if label is None else name_of(str(label)))
    for panel in panels.flat[count:]:
        panel.set_visible(False)
    return figure


def score_map(source: ScoreMap, *, smooth: bool = True, ax: Axes | None = None) -> Axes:
    """Draw a private map of scores: a noisy histogram over two components, which may be shown.

    Parameters
    ----------
    source : ScoreMap
        What ``private_score_map`` released.
    smooth : bool, default=True
        Whether to draw the smoothed counts instead of the noisy ones as they are.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib Axes
    """
    if not all(hasattr(source, name) for name in ("counts", "edges", "noise", "smoothed")):
        raise ParameterTypeError(
            "what `private_score_map` released is needed; got {kind}.", kind=type(source).__name__
        )
    from matplotlib.colors import LinearSegmentedColormap

    counts = source.smoothed() if smooth else np.maximum(source.counts, 0.0)  # (first, second)
    ax = axes(ax, (6.4, 4.8))
    palette = colours(ax)
    tints = LinearSegmentedColormap.from_list("privspan", [palette.ground, palette.blue, palette.ink])
    first, second = source.edges
    drawn = ax.pcolormesh(first, second, counts.T, cmap=tints, vmin=0.0, vmax=max(float(counts.max()), source.noise))
    which = getattr(source, "components", (0, 1))
    ax.set(xlabel=f"component {which[0] + 1}", ylabel=f"component {which[1] + 1}")
    ax.set_title(f"people per cell, {'smoothed; ' if smooth else ''}noise ± {number(source.noise, 2)} each")
    bar = ax.figure.colorbar(drawn, ax=ax)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=palette.soft, labelcolor=palette.ink)
    plainly(ax, palette)
    return ax
