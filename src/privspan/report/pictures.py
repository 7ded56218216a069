"""Pictures of released numbers as inline SVG: no library, real text, colours from the page's style sheet.

Widths are in per cent and heights in pixels, so that a picture fills a phone or a page and its letters keep their
size.  Every picture has a label for those who listen to the page, and its numbers stand in a table beside it.
"""

from __future__ import annotations

import math
from collections.abc import Container, Sequence

from privspan._lib.in_words import two_digits
from privspan._lib.markup import Html, element, shortened
from privspan.planner import USELESS, Plan

_ROW = 24  # pixels
_LONGEST_NAME = 23  # letters that fit half of a narrow phone
_LEFT, _WIDE = 33.0, 64.0  # where an axis beside names begins and how long it is, in per cent


def bars(
    rows: Sequence[tuple[str, float, str]],
    label: str,
    *,
    faint: Container[int] = (),
    noise: Sequence[float] | None = None,
    full: float | None = None,
) -> Html:
    """Draw one bar per row: its name, its length as a share of the longest, what is written at its end; its noise.

    With `full`, lengths are shares of that.
    """
    errors = [0.0] * len(rows) if noise is None else noise
    reached = max((value + error for (_, value, _), error in zip(rows, errors, strict=True)), default=0.0)
    longest = full or reached or 1.0
    pieces = []
    for i, ((name, value, written), error) in enumerate(zip(rows, errors, strict=True)):
        width, reach = (34.0 * max(0.0, size) / longest for size in (value, value + error))
        pieces += [
            _text(_LEFT - 2, i, element("title", name), shortened(name, 16), text_anchor="end"),
            _bar(_LEFT, width, i, "bar faint" if i in faint else "bar"),
            *([_whisker(_LEFT + max(0.0, 2.0 * width - reach), _LEFT + reach, i)] if error else []),
            _text(_LEFT + 1.5 + reach, i, written, class_="value"),
        ]
    return _picture(pieces, len(rows) * _ROW, label)


def diverging_bars(rows: Sequence[tuple[str, float, float]], label: str, *, faint: bool = False) -> Html:
    """Draw values of either sign, with their noise, about a middle line; names stand where their bars leave room."""
    height, largest = len(rows) * _ROW, max((abs(value) + error for _, value, error in rows), default=1.0)
    pieces = [element("line", x1="50%", x2="50%", y1=0, y2=height, class_="axis")]
    for i, (name, value, error) in enumerate(rows):
        width, reach = (24.0 * size / (largest or 1.0) for size in (abs(value), abs(value) + error))
        kind = f"bar{' minus' if value < 0 else ''}{' faint' if faint else ''}"
        side, before, after = (1, "end", "start") if value >= 0 else (-1, "start", "end")
        pieces += [
            _bar(min(50.0, 50.0 + side * width), width, i, kind),
            _text(50.0 - 1.5 * side, i, element("title", name), shortened(name, _LONGEST_NAME), text_anchor=before),
            *([_whisker(50.0 + side * (2.0 * width - reach), 50.0 + side * reach, i)] if error else []),
            _text(50.0 + side * (reach + 1.5), i, _with_error(value, error), text_anchor=after, class_="value"),
        ]
    return _picture(pieces, height, label)


def stacked_bar(shares: Sequence[tuple[str, float]]) -> Html:
    """Draw shares of a whole in one bar, coloured in the order of a legend beside it."""
    pieces, left = [], 0.0
    for i, (name, share) in enumerate(shares):
        place = {"x": f"{left:.3f}%", "width": f"{100 * share:.3f}%"}
        pieces.append(element("rect", element("title", name), **place, y=0, height=22, class_=f"part{i % 6}"))
        left += 100.0 * share
    return _picture(pieces, 22, "Shares of the budget by step")


def guess_meter(chance: float, label: str) -> Html:
    """Draw a chance between that of a coin and certainty."""
    reached = 100.0 * (2.0 * chance - 1.0)
    anchor = "end" if reached > 70 else "start" if reached < 30 else "middle"
    pieces = [
        element("rect", x=0, y=26, width="100%", height=12, rx=6, class_="track"),
        element("rect", x=0, y=26, width=f"{max(reached, 1.0):.2f}%", height=12, rx=6, class_="bar"),
        element("text", label, x=f"{reached:.2f}%", y=17, text_anchor=anchor, class_="strong"),
        element("text", "50 %: a coin", x=0, y=57),
        element("text", "100 %: certainty", x="100%", y=57, text_anchor="end"),
    ]
    return _picture(pieces, 64, f"Best possible guess: {label}")


def error_axis(plans: Sequence[Plan], chosen: str) -> Html:
    """Draw predicted errors, median to 90th percentile, on a logarithmic axis; errors of no use are shaded."""
    lowest = min(-3, math.floor(math.log10(max(min(plan.error for plan in plans), 1e-9))))
    height = len(plans) * _ROW

    def place(error: float) -> float:
        return _LEFT + _WIDE * (1.0 - math.log10(max(error, 10.0**lowest)) / lowest)

    useless = f"{place(USELESS):.2f}%", f"{place(1.0) - place(USELESS):.2f}%"
    pieces = [element("rect", x=useless[0], y=0, width=useless[1], height=height, class_="shade")]
    for power in range(lowest, 1):
        x = f"{place(10.0**power):.2f}%"
        pieces.append(element("line", x1=x, x2=x, y1=0, y2=height, class_="grid"))
        pieces.append(element("text", f"{10.0**power:g}", x=x, y=height + 17, text_anchor="middle"))
    for i, plan in enumerate(plans):
        kind = "strong" if plan.method == chosen else "plain"
        pieces.append(_text(_LEFT - 2, i, plan.label, text_anchor="end", class_=kind))
        if plan.abstention >= 0.5:
            pieces.append(_text(_LEFT + 2, i, "expected to abstain", class_="value"))
            continue
        median, ninetieth, middle = f"{place(plan.error):.2f}%", f"{place(plan.error_90):.2f}%", (i + 0.5) * _ROW
        pieces += [
            element("line", x1=median, x2=ninetieth, y1=middle, y2=middle, class_=f"range {kind}"),
            element("circle", cx=median, cy=middle, r=5, class_=f"dot {kind}"),
        ]
    return _picture(pieces, height + 24, "Predicted error by method")


def _picture(pieces: Sequence[Html], height: float, label: str) -> Html:
    return element("svg", *pieces, role="img", aria_label=label, width="100%", height=height)


def _bar(left: float, width: float, row: int, kind: str) -> Html:
    place = {"x": f"{left:.2f}%", "width": f"{width:.2f}%"}
    return element("rect", **place, y=row * _ROW + 5, height=_ROW - 10, rx=2, class_=kind)


def _whisker(start: float, end: float, row: int) -> Html:
    """Draw the noise of a bar: a line across its end."""
    middle = (row + 0.5) * _ROW
    return element("line", x1=f"{start:.2f}%", x2=f"{end:.2f}%", y1=middle, y2=middle, class_="whisker")


def _with_error(value: float, error: float) -> str:
    """Return a loading, which is at most 1, and its error rounded up, in hundredths: a phone has room for that."""
    if not error:
        return two_digits(value)
    return f"{value + 0.0:.2f} ± {math.ceil(100.0 * error) / 100.0:.2f}".replace("-", "−")


def _text(left: float, row: int, *words: str, **attributes: str) -> Html:
    return element("text", *words, x=f"{left:.2f}%", y=row * _ROW + 16, **attributes)
