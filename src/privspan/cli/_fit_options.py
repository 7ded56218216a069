"""The options of ``privspan fit``, by the type of the parameter that takes them."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from privspan.cli._options import fraction_of, positive, whole

_WHAT, _EXACT, _LEDGER = "What to learn", "Exact relations", "Ledger"  # panels of --help

TableFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The table, one row per person; - for CSV from standard input.")
]
Dimension = Annotated[
    Any,  # an int or "auto"
    typer.Option("--k", parser=whole("--k", "3", word="auto"), metavar="DIMENSION", help="A number, or 'auto'."),
]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="OUT", help="The .npz file to write.")]
Report = Annotated[
    Path | None, typer.Option("--report", metavar="FILE", help="Write a report for people, one .html page.")
]
Seed = Annotated[
    int | None,
    typer.Option(
        "--seed",
        parser=whole("--seed", "0", least=0),
        metavar="NUMBER",
        help="For tests only: makes the run repeatable and NOT private.",
    ),
]

Columns = Annotated[
    str | None,
    typer.Option("--columns", metavar="A,B,C", help="Columns to use; by default all numbers.", rich_help_panel=_WHAT),
]
Method = Annotated[
    str,
    typer.Option(
        "--method",
        metavar="NAME",
        help="auto, adaptive, stable, approximate or analyze-gauss; with --exact: auto, gap-max or votes.",
        rich_help_panel=_WHAT,
    ),
]
Center = Annotated[
    bool, typer.Option("--center/--no-center", help="Take a private mean away.", rich_help_panel=_WHAT)
]
NormBound = Annotated[
    Decimal | None,
    typer.Option(
        "--norm-bound",
        parser=positive("--norm-bound", "10"),
        metavar="NUMBER",
        help="A public bound on the length of rows; helps the centring.",
        rich_help_panel=_WHAT,
    ),
]
MostDimensions = Annotated[
    int | None,
    typer.Option(
        "--max-k",
        parser=whole("--max-k", "10"),
        metavar="NUMBER",
        help="The most for --k auto.",
        rich_help_panel=_WHAT,
    ),
]

Exact = Annotated[
    bool, typer.Option("--exact", help="Find exact relations instead of directions.", rich_help_panel=_EXACT)
]
Decimals = Annotated[
    int | None,
    typer.Option(
        "--decimals",
        parser=whole("--decimals", "2", least=0),
        metavar="NUMBER",
        help="Decimals that the table is written with.",
        rich_help_panel=_EXACT,
    ),
]
Affine = Annotated[bool, typer.Option("--affine", help="Relations may have constants.", rich_help_panel=_EXACT)]

LedgerFile = Annotated[
    Path | None,
    typer.Option("--ledger", metavar="FILE", help="Write the spend down here first (JSON).", rich_help_panel=_LEDGER),
]
Dataset = Annotated[
    str | None,
    typer.Option(
        "--dataset", metavar="NAME", help="Name in the ledger; by default the file's path.", rich_help_panel=_LEDGER
    ),
]
LimitEpsilon = Annotated[
    Decimal | None,
    typer.Option(
        "--limit-epsilon",
        parser=positive("--limit-epsilon", "3"),
        metavar="NUMBER",
        help="What all fits on the data set may cost together.",
        rich_help_panel=_LEDGER,
    ),
]
LimitDelta = Annotated[
    Decimal | None,
    typer.Option(
        "--limit-delta",
        parser=fraction_of("--limit-delta", "1e-5"),
        metavar="NUMBER",
        help="The same for delta.",
        rich_help_panel=_LEDGER,
    ),
]
