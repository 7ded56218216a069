"""Where a budget went."""

from __future__ import annotations

from typing import TYPE_CHECKING

from privspan._lib.errors import ParameterTypeError
from privspan._lib.in_words import number, share
from privspan.plot._drawing import axes, colours
from privspan.privacy import PrivacyCost
from privspan.privacy.reading import budget_shares

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_STEPS = 6
_HEIGHT = 0.6  # of the bar, in inches
_TWO_COLUMNS = 5.0  # inches that two columns of words need
_ROOM_FOR_WORDS = 0.08  # of the bar


def budget(source: object, *, ax: Axes | None = None) -> Axes:
    """Draw the cost of each step, as parts of one bar.

    Parameters
    ----------
    source : fitted model, Release, PrivacyCost, or anything with a ``cost``
        Such as a PrivateMean.
    ax : matplotlib Axes, optional
        Where to draw; by default in a new figure.

    Returns
    -------
    matplotlib Axes

    Notes
    -----
    Gaussian steps are shown by their share of mu squared, because these add up; other steps by their share of
    epsilon.
    """
    released = getattr(source, "release_", source)
    cost = getattr(released, "cost", released)
    if not isinstance(cost, PrivacyCost):
        raise ParameterTypeError("something with a cost is needed; got {kind}.", kind=type(source).__name__)
    shares = budget_shares(cost, _MOST_STEPS) or [("one step", 1.0)]
    ax = axes(ax, (7.2, 2.3))
    palette, left = colours(ax), 0.0
    for i, (name, part) in enumerate(shares):
        tint = palette.parts[i % len(palette.parts)]
        ax.barh(0, part, left=left, color=tint, height=0.5, label=f"{name} {share(part)}")
        if part >= _ROOM_FOR_WORDS:
            ax.text(left + part / 2, 0, share(part), ha="center", va="center", color=palette.ground)
        left += part
    # Words beside the bar keep their size, so the bar keeps its own, however high the axes are.
    wide, high = (size / ax.figure.dpi for size in ax.get_window_extent().size)
    half = max(0.3, 0.25 * high / _HEIGHT)
    ax.set(xlim=(0.0, 1.0), ylim=(0.3 - 2.0 * half, 0.3), xticks=[], yticks=[])
    title = f"where ε = {number(cost.epsilon)}, δ = {number(cost.delta)} went"
    ax.set_title(title, color=palette.ink, fontsize="medium")
    ax.legend(
        frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.28), bbox_transform=ax.transData,
        ncols=1 if wide < _TWO_COLUMNS else 2, fontsize="small", labelcolor=palette.ink,
    )  # fmt: skip
    for spine in ax.spines.values():
        spine.set_visible(False)
    return ax
