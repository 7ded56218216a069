"""The options of every command that reads a table: what is declared about its file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from privspan.cli._options import whole

_PANEL = "How the file is written"


def _separator(text: str) -> str:
    return "\t" if text in ("tab", "\\t") else text


SchemaFile = Annotated[
    Path | None,
    typer.Option(
        "--schema",
        metavar="FILE",
        help="Types of columns, and the options below, in TOML; `privspan columns` writes a first one.",
        rich_help_panel=_PANEL,
    ),
]
Separator = Annotated[
    str | None,
    typer.Option(
        "--separator",
        parser=_separator,
        metavar="SIGN",
        help="CSV: between cells; by default a comma, in .tsv files a tab.",
        rich_help_panel=_PANEL,
    ),
]
DecimalSign = Annotated[
    str | None,
    typer.Option(
        "--decimal", metavar="SIGN", help="CSV: '.' or ',', as in 1,5 for one and a half.", rich_help_panel=_PANEL
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option("--encoding", metavar="NAME", help="CSV: utf-8, or for example latin-1.", rich_help_panel=_PANEL),
]
QuotedNewlines = Annotated[
    bool | None,
    typer.Option(
        "--quoted-newlines",
        help="CSV: cells in quotation marks may hold ends of lines. One record can then join its line with others.",
        rich_help_panel=_PANEL,
    ),
]
Width = Annotated[
    int | None,
    typer.Option(
        "--width",
        parser=whole("--width", "64"),
        metavar="NUMBER",
        help="Parquet, Arrow: numbers in each list of a column of lists.",
        rich_help_panel=_PANEL,
    ),
]
