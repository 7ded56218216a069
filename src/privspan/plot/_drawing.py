"""What the pictures share: whose they are, where they are drawn, and their colours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from privspan._lib.errors import MissingPackageError, ParameterTypeError
from privspan._lib.markup import shortened
from privspan.planner import Plan
from privspan.privacy import Release
from privspan.privacy.reading import Reading

if TYPE_CHECKING:
    from types import ModuleType

    from matplotlib.axes import Axes
    from matplotlib.typing import ColorType

_LONGEST_NAME = 28
_DARK = 0.45  # luminance of a background below which light colours are used


def reading_of(source: object, columns: Sequence[str] | None) -> Reading:
    """Return what is to be read of a release, or of a model that has one."""
    release = getattr(source, "release_", source)
    if not isinstance(release, Release):
        given = type(source).__name__
        raise ParameterTypeError(
            "a fitted model that learns a subspace, or a Release, is needed; got {given}.", given=given
        )
    known = getattr(source, "feature_names_in_", None)
    if columns is None and known is not None:
        columns = [str(name) for name in known]
    return Reading(release, columns)


def plan_of(source: object) -> Plan:
    """Return a plan, or that of a model."""
    found = getattr(source, "plan_", source)
    if not isinstance(found, Plan):
        given = type(source).__name__
        raise ParameterTypeError("a Plan, or a fitted model that has one, is needed; got {given}.", given=given)
    return found


def pyplot() -> ModuleType:
    """Import matplotlib, or say where to get it."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingPackageError("Drawing needs matplotlib: pip install 'privspan[plot]'.") from None
    return pyplot


def axes(ax: Axes | None, size: tuple[float, float]) -> Axes:
    """Return the axes to draw into: those that are given, or new ones of a figure of this size."""
    return pyplot().subplots(figsize=size, layout="constrained")[1] if ax is None else ax


@dataclass(frozen=True)
class Colours:
    """Colours that can be told apart, and read, on one background."""

    ground: str
    ink: str
    soft: str
    line: str
    blue: str
    orange: str

    @property
    def parts(self) -> tuple[str, ...]:
        """Colours of the parts of a whole, in their order."""
        return self.blue, self.orange, "#4b9a6f", "#9a6bb5", "#b9952b", "#7b8794"


_LIGHT = Colours("#ffffff", "#1d2530", "#5b6673", "#dcdfe3", "#2a62a8", "#c2571a")
_ON_DARK = Colours("#14181d", "#e6e9ed", "#a2adb9", "#4a535e", "#79aeea", "#f0a066")


def colours(ax: Axes) -> Colours:
    """Return the colours for the background of some axes; of a transparent one, for that of the text around."""
    from matplotlib import rcParams
    from matplotlib.colors import to_rgba

    for ground in (ax.get_facecolor(), ax.figure.get_facecolor()):
        if to_rgba(ground)[3] > 0.5:
            return _LIGHT if _luminance(ground) > _DARK else _ON_DARK
    return _LIGHT if _luminance(rcParams["text.color"]) < 1.0 - _DARK else _ON_DARK


def _luminance(colour: ColorType) -> float:
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue


def plainly(ax: Axes, palette: Colours) -> None:
    """Take away the frame, but for two thin lines, and give all words the colour of ink."""
    for side, spine in ax.spines.items():
        spine.set_visible(side in ("left", "bottom"))
        spine.set_color(palette.line)
    ax.tick_params(colors=palette.soft, labelcolor=palette.ink)
    for text in (ax.title, ax.xaxis.label, ax.yaxis.label):
        text.set_color(palette.ink)


def name_of(column: str) -> str:
    """Return the name of a column as it fits beside a picture; never read as a formula."""
    return shortened(column, _LONGEST_NAME).replace("$", r"\$")
