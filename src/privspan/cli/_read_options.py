"""The options of every command that reads a table: what is declared about its file."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from privspan.cli._options import option, whole

_PANEL = "How the file is written"
_option = partial(option, panel=_PANEL)


def _separator(text: str) -> str:
    return "\t" if text in ("tab", "\\t") else text


@dataclass(frozen=True)
class TextForm:
    """How a text file is written; None where its suffix or a schema says so."""

    separator: Annotated[
        str | None,
        _option(
            "--separator", "CSV: between cells; by default a comma, in .tsv files a tab.", "SIGN", parser=_separator
        ),
    ] = None
    decimal: Annotated[str | None, _option("--decimal", "CSV: '.' or ',', as in 1,5 for one and a half.", "SIGN")] = (
        None
    )
    encoding: Annotated[str | None, _option("--encoding", "CSV: utf-8, or for example latin-1.", "NAME")] = None
    quoted_newlines: Annotated[
        bool | None,
        _option(
            "--quoted-newlines",
            "CSV: cells in quotation marks may hold ends of lines. One record can then join its line with others.",
        ),
    ] = None


@dataclass(frozen=True)
class Reading(TextForm):
    """What is declared about the file of a table: options of `privspan.rows.open_rows`."""

    width: Annotated[
        int | None,
        whole("--width", "64", "Parquet, Arrow: numbers in each list of a column of lists.", panel=_PANEL),
    ] = None
    schema: Annotated[
        Path | None,
        _option(
            "--schema",
            "Types of columns, and the options above, in TOML; `privspan columns` writes a first one.",
            "FILE",
        ),
    ] = None
