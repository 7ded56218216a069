"""``privspan bench``: the benchmarks, where they are; the installed package does not hold them."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import typer

import privspan
from privspan.cli.exits import Complaint, ExitCode

REST_OF_THE_LINE = {"allow_extra_args": True, "ignore_unknown_options": True}  # the benchmarks know their options

_CHECKOUT = Path(privspan.__file__).parents[2]


def bench(context: typer.Context) -> int:
    """Measure accuracy and speed against other systems, in a checkout.

    Example:

    privspan bench --quick
    """
    if "benchmarks" not in sys.modules:  # there already in `python -m benchmarks`
        # Only those beside this very package: many a project has a folder of that name.
        if not (_CHECKOUT / "benchmarks" / "command.py").is_file():
            raise Complaint(
                "the benchmarks come with the source of privspan, not with the installed package; "
                "in a checkout type: make bench",
                ExitCode.FAILED,
            )
        sys.path.insert(0, str(_CHECKOUT))
    command = typer.main.get_command(import_module("benchmarks.command").app)
    return int(command.main(list(context.args), prog_name="privspan bench", standalone_mode=False) or 0)
