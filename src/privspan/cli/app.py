"""The application: its commands, and what ``privspan --help`` says."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from privspan import __version__
from privspan.cli import audit, bench, browser, columns, compare, demo, fit, ledger, plan, read, score_maps, transform
from privspan.cli._options import option
from privspan.cli._style import ACCOUNT, BEGIN, READ, TRUST, Command, Group
from privspan.cli.exits import ExitCode

_EPILOG = "Exit codes: " + "; ".join(f"{code.value} {code.meaning}" for code in ExitCode) + "."

app = typer.Typer(
    name="privspan",
    cls=Group,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"privspan {__version__}")
        raise typer.Exit


@app.callback(epilog=_EPILOG)
def privspan(
    version: Annotated[
        bool, option("--version", "Print the version and stop.", callback=_print_version, is_eager=True)
    ] = False,
    debug: Annotated[bool, option("--debug", "Show where an error comes from, in Python.")] = False,
) -> None:
    """Find the few directions that matter in people's data, under differential privacy.

    Start with `privspan demo`, or with a plan, which needs no data.

    Example:

    privspan plan -n 10000 -d 200 -k 3 --epsilon 1 --delta 1e-6
    """


_begin, _read, _trust = (partial(app.command, cls=Command, rich_help_panel=panel) for panel in (BEGIN, READ, TRUST))
_begin("plan")(plan.plan)
_begin("columns")(columns.columns)
_begin("fit")(fit.fit)
_begin("app")(browser.app)
_read("show")(read.show)
_read("report")(read.report)
_read("relations")(read.relations)
_read("compare")(compare.compare)
_read("transform")(transform.transform)
_begin("score-map")(score_maps.score_map)
app.add_typer(ledger.commands, name="ledger", rich_help_panel=ACCOUNT)
_trust("demo")(demo.demo)
_trust("audit")(audit.audit)
_trust("bench", add_help_option=False, context_settings=bench.REST_OF_THE_LINE)(bench.bench)
