"""The options of ``privspan fit`` in groups: what is learnt at which cost, and where the spend is written down."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any

import typer

from privspan.cli._options import Delta, Epsilon, Gamma, fraction, option, positive, whole

_WHAT, _EXACT, _LEDGER = "What to learn", "Exact relations", "Ledger"  # panels of --help

PeopleFile = Annotated[
    Path, typer.Argument(metavar="FILE", help="The table, one row per person; - for CSV from standard input.")
]
Columns = Annotated[str | None, option("--columns", "Columns to use; by default all numbers.", "A,B,C", panel=_WHAT)]
LimitEpsilon = Annotated[
    Decimal | None,
    positive("--limit-epsilon", "3", "What all fits on the data set may cost together.", panel=_LEDGER),
]
LimitDelta = Annotated[Decimal | None, fraction("--limit-delta", "1e-5", "The same for delta.", panel=_LEDGER)]


@dataclass(frozen=True)
class Learning:
    """What is learnt, and at which cost."""

    k: Annotated[
        Any,  # an int or "auto"
        whole("--k", "3", "A number, or 'auto'.", word="auto", metavar="DIMENSION"),
    ]
    epsilon: Epsilon
    delta: Delta
    method: Annotated[
        str,
        option(
            "--method",
            "auto, adaptive, stable, approximate or analyze-gauss; with --exact: auto, gap-max or votes.",
            "NAME",
            panel=_WHAT,
        ),
    ] = "auto"
    center: Annotated[bool, option("--center/--no-center", "Take a private mean away.", panel=_WHAT)] = True
    gamma: Gamma = None
    norm_bound: Annotated[
        float | None,
        positive(
            "--norm-bound",
            "10",
            "A public bound on the length of rows; helps the centring.",
            make=float,
            panel=_WHAT,
        ),
    ] = None
    max_k: Annotated[int | None, whole("--max-k", "10", "The most for --k auto.", panel=_WHAT)] = None
    exact: Annotated[bool, option("--exact", "Find exact relations instead of directions.", panel=_EXACT)] = False
    decimals: Annotated[
        int | None, whole("--decimals", "2", "Decimals that the table is written with.", least=0, panel=_EXACT)
    ] = None
    affine: Annotated[bool, option("--affine", "Relations may have constants.", panel=_EXACT)] = False
    seed: Annotated[
        int | None,
        whole("--seed", "0", "For tests only: makes the run repeatable and NOT private.", least=0),
    ] = None


@dataclass(frozen=True)
class Account:
    """Where the spend is written down, and what the data set may cost."""

    ledger: Annotated[
        Path | None, option("--ledger", "Write the spend down here first (JSON).", "FILE", panel=_LEDGER)
    ] = None
    dataset: Annotated[
        str | None, option("--dataset", "Name in the ledger; by default the file's path.", "NAME", panel=_LEDGER)
    ] = None
    limit_epsilon: LimitEpsilon = None
    limit_delta: LimitDelta = None
