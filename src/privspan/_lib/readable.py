"""Text from outside, made fit to be shown: on a terminal, on a page, in an error message.

Names of columns, files and data sets come from people and files that may wish the reader ill.  A terminal obeys
escape sequences, a newline forges a line of its own, and marks that turn the direction of writing make one word read
like another.  Whatever is shown passes here last, so that nothing before it need think of it.
"""

from __future__ import annotations

import unicodedata

_JOINERS = "\u200c\u200d"  # of scripts and of composed emoji: without width, and without harm
_DISTURBING = {"Cc", "Cf", "Cs", "Zl", "Zp"}  # controls, invisible formatting, lone surrogates, separators of lines


def readable(text: str, *, keep: str = "") -> str:
    """Return the text with a mark in the place of every character that is obeyed rather than read.

    Those to `keep` are let through all the same, such as newlines where there is a block of text.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join("\ufffd" if _disturbs(character) and character not in keep else character for character in text)


def escaped_json(document: str) -> str:
    r"""Return a JSON document that says the same with ``\u`` in the place of such characters; newlines stay."""
    return "".join(_escape(each) if each != "\n" and _disturbs(each) else each for each in document)


def _escape(character: str) -> str:
    units = character.encode("utf-16-be", "surrogatepass")  # JSON writes what is above U+FFFF as two units
    return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))


def _disturbs(character: str) -> bool:
    return unicodedata.category(character) in _DISTURBING and character not in _JOINERS
