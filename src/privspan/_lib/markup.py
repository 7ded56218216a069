"""HTML and SVG that cannot be broken into: every string is escaped unless this module made it."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Mapping

from privspan._lib.readable import readable

_LAYOUT = "\n\t"  # of code; elsewhere a page shows them as blanks


class Html(str):
    """Markup that is safe to put on the page as it is."""

    __slots__ = ()

    def __new__(cls, markup: str) -> Html:
        """Vouch for the markup."""
        return super().__new__(cls, markup)

    def __html__(self) -> Html:
        """Tell templates that this is not to be escaped again."""
        return self


def element(name: str, *children: str, **attributes: str | float) -> Html:
    """Return one element; children and attribute values that are not `Html` are escaped.

    ``class_`` stands for ``class``, and every other underscore of an attribute for a hyphen.
    """
    written = "".join(f' {key.rstrip("_").replace("_", "-")}="{_value(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{written}>{join(*children)}</{name}>")


def join(*children: str) -> Html:
    """Return the pieces one after the other, those that are not `Html` escaped."""
    return Html("".join(child if isinstance(child, Html) else _escaped(child) for child in children))


def note(words: str) -> Html:
    """Return a paragraph in small print."""
    return element("p", words, class_="note")


def listed(lines: Iterable[str], **attributes: str) -> Html:
    """Return a list with one point per line."""
    return element("ul", *(element("li", line) for line in lines), **attributes)


def figure(title: str, words: str, *content: Html) -> Html:
    """Return a picture and what belongs to it, below a caption."""
    return element("figure", element("figcaption", element("b", title), words), *content)


def row(name: str, *numbers: str, kind: str = "td") -> Html:
    """Return a row of a table: a name, and numbers that are aligned to the right."""
    return element("tr", element(kind, name), *(element(kind, text, class_="number") for text in numbers))


def points(said: Mapping[str, str]) -> Html:
    """Return a table of points and what is said of each."""
    return element("table", *(element("tr", element("th", name), element("td", said[name])) for name in said))


def folded(title: str, *content: Html) -> Html:
    """Return what a reader has to unfold."""
    return element("details", element("summary", title), *content)


def shortened(text: str, width: int) -> str:
    """Return the text, cut in the middle if it is wider than so many Latin letters."""
    clean = readable(" ".join(text.split()))
    if _width(clean) <= width:
        return clean
    head, tail = clean, clean
    while _width(head) > (width - 1) * 2 // 3:
        head = head[:-1]
    while _width(tail) > width - 1 - _width(head):
        tail = tail[1:]
    return f"{head}…{tail}"


def _value(value: str | float) -> str:
    return _escaped(value) if isinstance(value, str) else f"{value:.6g}"


def _escaped(text: str) -> str:
    return html.escape(readable(text, keep=_LAYOUT))


def _width(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)
