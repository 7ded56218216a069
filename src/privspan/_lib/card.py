"""Small cards for notebooks: a value in plain words, beside the plain text that every other place shows.

A card is one HTML element with its own style, in the colours of the report.  It loads nothing and runs no script, and
everything that is not markup of this module is escaped.  Colours follow the notebook: text and lines are made of the
colour of the text around, so that they can be read on light and on dark ground whoever chose it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from privspan._lib.markup import Html, element, join, shortened

_STYLE = Html(
    ".privspan-card{max-width:44rem;border:1px solid color-mix(in srgb,currentColor 22%,transparent);"
    "border-left:4px solid #4a86cf;border-radius:8px;padding:.6rem .9rem;margin:.3rem 0;line-height:1.45;"
    "box-sizing:border-box;"
    'font-family:system-ui,-apple-system,"Segoe UI",Roboto,Arial,sans-serif;font-size:.92rem;'
    "background:color-mix(in srgb,currentColor 3%,transparent);overflow-wrap:anywhere}"
    ".privspan-card p{margin:.25rem 0}"
    ".privspan-card .name{font-weight:650}"
    ".privspan-card .soft{opacity:.72;font-weight:400}"
    ".privspan-card .alarm{border-left:4px solid #d9734f;padding-left:.6rem;font-weight:600}"
    ".privspan-card .facts{display:flex;flex-wrap:wrap;gap:.3rem 1.6rem;margin:.5rem 0!important;padding:0}"
    ".privspan-card .facts div{margin:0}"
    ".privspan-card dt{font-size:.78rem;opacity:.72;font-weight:400}"
    ".privspan-card .facts dd{margin:0!important;font-weight:650;font-variant-numeric:tabular-nums}"
    ".privspan-card table{border-collapse:collapse;font-size:.86rem;font-variant-numeric:tabular-nums;margin:.4rem 0}"
    ".privspan-card th,.privspan-card td{text-align:left;padding:.12rem 1rem .12rem 0;background:none;"
    "border-bottom:1px solid color-mix(in srgb,currentColor 14%,transparent)}"
    ".privspan-card .number{text-align:right;white-space:nowrap}"
    ".privspan-card td:first-child{overflow-wrap:normal}"
    "@media(max-width:34rem){.privspan-card .words tr{display:flex;flex-wrap:wrap;gap:0 .9rem}"
    ".privspan-card .words :is(th,td){border:0;padding-right:0}.privspan-card .words :last-child{flex-basis:100%}"
    ".privspan-card .words tr{border-bottom:1px solid color-mix(in srgb,currentColor 14%,transparent)}"
    ".privspan-card :is(th,td){padding-right:.6rem;white-space:normal}}"
    ".privspan-card tr{background:none}.privspan-card th{white-space:nowrap}.privspan-card .scroll{overflow-x:auto}"
)
_LONGEST_NAME = 40  # characters shown


def card(name: str, *content: Html, about: str = "") -> str:
    """Return a card: the name of what it shows, a few words beside it, and its content."""
    soft = element("span", f" {about}", class_="soft") if about else join()
    title = element("p", element("span", name, class_="name"), soft)
    return element("div", element("style", _STYLE), title, *content, class_="privspan-card")


def sentence(words: str) -> Html:
    """Return a paragraph."""
    return element("p", words)


def aside(words: str) -> Html:
    """Return a paragraph in small print."""
    return element("p", words, class_="soft")


def alarm(words: str) -> Html:
    """Return what nobody may overlook."""
    return element("p", words, class_="alarm")


def facts(pairs: Iterable[tuple[str, str]]) -> Html:
    """Return numbers under their names, side by side."""
    entries = (element("div", element("dt", name), element("dd", value)) for name, value in pairs)
    return element("dl", *entries, class_="facts")


def table(heads: Sequence[str], rows: Iterable[Sequence[str]], *, words: bool = False) -> Html:
    """Return a table: names, cut where they are very long, and numbers; or `words` in the last column."""
    lines = [
        _line(heads, "th", words),
        *(_line([shortened(row[0], _LONGEST_NAME), *row[1:]], "td", words) for row in rows),
    ]
    return element("div", element("table", *lines), class_="scroll words" if words else "scroll")


def _line(cells: Sequence[str], kind: str, words: bool) -> Html:
    last = len(cells) - 1 if words else len(cells)
    written = (element(kind, cell, **({"class_": "number"} if 0 < i < last else {})) for i, cell in enumerate(cells))
    return element("tr", *written)
