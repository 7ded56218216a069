"""The application: its commands, and what ``privspan --help`` says."""

from __future__ import annotations

from typing import Annotated

import typer

from privspan import __version__
from privspan.cli import audit, bench, columns, demo, fit, ledger, plan, read, transform
from privspan.cli._options import option
from privspan.cli.exits import ExitCode

_EPILOG = "Exit codes: " + "; ".join(f"{code.value} {code.meaning}" for code in ExitCode) + "."

app = typer.Typer(
    name="privspan",
    add_completion=False,
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

    Start with `privspan plan`, which needs no data, or with `privspan demo`.
    """


app.command("plan")(plan.plan)
app.command("columns")(columns.columns)
app.command("fit")(fit.fit)
app.command("show")(read.show)
app.command("report")(read.report)
app.command("relations")(read.relations)
app.command("compare")(read.compare)
app.command("transform")(transform.transform)
app.add_typer(ledger.commands, name="ledger")
app.command("audit")(audit.audit)
app.command("bench", add_help_option=False, context_settings=bench.REST_OF_THE_LINE)(bench.bench)
app.command("demo")(demo.demo)
