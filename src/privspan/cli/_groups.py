"""Options in groups, each a dataclass with a field per option: how a table is written, what is learnt, the ledger."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from privspan.cli import _public
from privspan.cli._options import Delta, Epsilon, Gamma, fraction, option, positive, whole

_READING = "How the file is written"  # panels of --help
_WHAT, _PUBLIC, _EXACT, _LEDGER = "What to learn", "What is public of the columns", "Exact relations", "Ledger"

Columns = Annotated[str | None, option("--columns", "Columns to use; by default all numbers.", "A,B,C", panel=_WHAT)]
Center = Annotated[bool, option("--center/--no-center", "Subtract a private mean.", panel=_WHAT)]
Scale = Annotated[
    bool, option("--scale", "Standardise columns: all get the same weight, whatever their units.", panel=_WHAT)
]
ScaleBy = Annotated[
    str | None,
    option("--scale-by", "With --scale: 'ranks' or 'deviations'; else the table's size decides.", "HOW", panel=_WHAT),
]
LimitEpsilon = Annotated[
    Decimal | None,
    positive("--limit-epsilon", "3", "What all fits on the data set may cost together.", panel=_LEDGER),
]
LimitDelta = Annotated[Decimal | None, fraction("--limit-delta", "1e-5", "The same for delta.", panel=_LEDGER)]
_reading = partial(option, panel=_READING)


_METHODS = ("auto", "adaptive", "stable", "approximate", "analyze-gauss")  # the library is not loaded for --help
_EXACT_METHODS = ("auto", "gap-max", "votes")


def _methods(context: typer.Context, incomplete: str) -> list[str]:
    """Return what a shell may complete after ``--method``."""
    known = _EXACT_METHODS if context.params.get("exact") else _METHODS
    return [name for name in known if name.startswith(incomplete)]


def _separator(text: str) -> str:
    return "\t" if text in ("tab", "\\t") else text


@dataclass(frozen=True)
class TextForm:
    """How a text file is written; None where its suffix or a schema says so."""

    separator: Annotated[
        str | None,
        _reading(
            "--separator", "CSV: between cells; by default a comma, in .tsv files a tab.", "SIGN", parser=_separator
        ),
    ] = None
    decimal: Annotated[
        str | None, _reading("--decimal", "CSV: '.' or ',', as in 1,5 for one and a half.", "SIGN")
    ] = None
    encoding: Annotated[str | None, _reading("--encoding", "CSV: utf-8, or for example latin-1.", "NAME")] = None
    quoted_newlines: Annotated[
        bool | None,
        _reading(
            "--quoted-newlines",
            "CSV: cells in quotation marks may hold ends of lines. One record can then join its line with others.",
        ),
    ] = None


@dataclass(frozen=True)
class Reading(TextForm):
    """What is declared about the file of a table: options of `privspan.rows.open_rows`."""

    width: Annotated[
        int | None,
        whole("--width", "64", "Parquet, Arrow: numbers in each list of a column of lists.", panel=_READING),
    ] = None
    person: Annotated[
        str | None, _reading("--person", "Column with the person ids, if people have several rows.", "COLUMN")
    ] = None
    schema: Annotated[
        Path | None,
        _reading(
            "--schema",
            "Types of columns, and the options above, in TOML; `privspan columns` writes a first one.",
            "FILE",
        ),
    ] = None


@dataclass(frozen=True)
class Learning:
    """What is learnt, and at which cost."""

    k: Annotated[
        Any,  # an int, a share of the variance as a float, or "auto"
        whole(
            "--k",
            "3",
            "Dimension wanted: a number, a share of the variance such as 0.8, or 'auto'.",
            word="auto",
            share="a share of the variance below 1",
            metavar="DIMENSION",
            short="-k",
        ),
    ]
    epsilon: Epsilon
    delta: Delta
    center: Center = True
    scale: Scale = False
    scale_by: ScaleBy = None
    robust: Annotated[bool, option("--robust", "Give every row the same weight, however long.", panel=_WHAT)] = False
    max_k: Annotated[int | None, whole("--max-k", "10", "The most for --k auto, or for a share.", panel=_WHAT)] = None
    bounds: Annotated[
        _public.Declared | None,
        _public.bounds(
            "--bounds",
            "Public bounds of columns, or a .toml file of them; half a range is a unit. Never read off the data.",
            panel=_PUBLIC,
        ),
    ] = None
    units: Annotated[
        _public.Declared | None,
        _public.numbers(
            "--units", "income=20000,age=10", "Public units to divide columns by.", positive=True, panel=_PUBLIC
        ),
    ] = None
    around: Annotated[
        _public.Declared | None,
        _public.numbers(
            "--around", "age=40,bmi=25", "Public centre, about where people lie: for small tables.", panel=_PUBLIC
        ),
    ] = None
    max_rows: Annotated[
        int, whole("--max-rows", "8", "With --person: rows of a person that are used, at most.", panel=_WHAT)
    ] = 8
    missing: Annotated[
        str,
        option(
            "--missing",
            "What a missing cell does: 'fill', it counts as the centre; 'zero-row', its whole row counts as zeros.",
            "RULE",
            panel=_WHAT,
        ),
    ] = "fill"
    method: Annotated[
        str,
        option(
            "--method",
            f"{', '.join(_METHODS)}; with --exact: {', '.join(_EXACT_METHODS)}.",
            "NAME",
            panel=_WHAT,
            autocompletion=_methods,
        ),
    ] = "auto"
    gamma: Gamma = None
    exact: Annotated[bool, option("--exact", "Find exact relations instead of directions.", panel=_EXACT)] = False
    decimals: Annotated[
        int | None, whole("--decimals", "2", "Decimals that the table is written with.", least=0, panel=_EXACT)
    ] = None
    affine: Annotated[bool, option("--affine", "Relations may have constants.", panel=_EXACT)] = False
    seed: Annotated[
        int | None, whole("--seed", "0", "For tests only: makes the run repeatable and NOT private.", least=0)
    ] = None

    def describe(self) -> str:
        """Say what is run, for the ledger."""
        by = "" if self.method == "auto" else f", {self.method}"
        seeded = "" if self.seed is None else ", seeded and so not private"
        return f"{'exact relations' if self.exact else 'private PCA'}, k = {self.k}{by}{seeded}"


@dataclass(frozen=True)
class Circumstances:
    """What the report is to say of who made the release and why: free text, kept with the result."""

    by: Annotated[
        str | None, option("--by", "Who makes the release: a person or an office, in your own words.", "TEXT")
    ] = None
    purpose: Annotated[str | None, option("--purpose", "What the release is for, in your own words.", "TEXT")] = None
    reviewed_by: Annotated[str | None, option("--reviewed-by", "Who reviewed the release beforehand.", "TEXT")] = None


@dataclass(frozen=True)
class Account:
    """Where the spend is written down, and what the data set may cost."""

    ledger: Annotated[
        Path | None, option("--ledger", "Write the spend down here first (JSON).", "FILE", panel=_LEDGER)
    ] = None
    dataset: Annotated[
        str | None,
        option("--dataset", "Name in the ledger; by default the file's path, or database.", "NAME", panel=_LEDGER),
    ] = None
    limit_epsilon: LimitEpsilon = None
    limit_delta: LimitDelta = None
    plain: Annotated[
        bool, option("--plain", "Add epsilons up on a new data set, instead of composing fits.", panel=_LEDGER)
    ] = False
    part: Annotated[
        str | None,
        option("--part", "The table is this part of the data set, disjoint from others.", "NAME", panel=_LEDGER),
    ] = None
    pot: Annotated[
        str | None, option("--pot", "Charge a pot that `privspan ledger pot` opened.", "NAME", panel=_LEDGER)
    ] = None
