"""The usual pictures of one fit, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from privspan.plot._drawing import pyplot, reading_of
from privspan.plot.columns import biplot, correlation_circle
from privspan.plot.components import loadings, scree
from privspan.plot.spent import budget

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_BARS = 10
_MOST_ARROWS = 12


def overview(source: object, *, columns: Sequence[str] | None = None) -> Figure:
    """Draw the scree plot, the first loadings and the columns in the plane of the first two components.

    Where one of these is not available (an exact subspace, one component), the budget is drawn instead.

    Parameters
    ----------
    source : fitted model or Release
    columns : sequence of str, optional
        Names of the columns; by default those of the model or release, or their numbers.

    Returns
    -------
    matplotlib Figure
    """
    reading = reading_of(source, columns)
    names, drawing = list(reading.names), pyplot()
    figure: Figure
    figure, panels = drawing.subplots(1, 3, figsize=(15.0, 4.4), layout="constrained", width_ratios=(1.0, 1.0, 1.35))
    release = reading.release
    if reading.is_pca:
        scree(release, ax=panels[0])
    else:
        budget(release, ax=panels[0])
    loadings(release, most=_MOST_BARS, columns=names, ax=panels[1])
    if (reading.k or 0) > 1:
        plane = correlation_circle if reading.is_standardised else biplot
        plane(release, most=_MOST_ARROWS, columns=names, ax=panels[2])
    else:
        budget(release, ax=panels[2])
    from matplotlib import get_backend

    if "inline" in get_backend():  # a notebook draws what a cell returns, and what is open: once is enough
        drawing.close(figure)
    return figure
