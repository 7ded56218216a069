"""``privspan demo``: the demonstration, and what it leaves in a browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from privspan.cli._options import Overwrite, option, output_to
from privspan.cli._steps import Invocation
from privspan.cli.exits import Complaint, ExitCode


def demo(
    context: typer.Context,
    output: Annotated[Path, output_to("Folder for what it writes.", "DIR")] = Path("demo-output"),
    overwrite: Overwrite = False,
    show: Annotated[bool, option("--open", "Show the reports in a browser at the end.")] = False,
) -> None:
    """Walk through plan, fit and report on real and made-up tables, within a minute.

    Example:

    privspan demo --open
    """
    from privspan.demo import FILES

    there = [name for name in FILES if os.path.lexists(output / name)]
    if there and not overwrite:
        raise Complaint(f"{str(output / there[0])!r} exists already; add --overwrite, or choose another --output.")
    steps = (context.obj or Invocation()).steps
    try:
        files = steps.tell(output)
    except KeyboardInterrupt:
        raise Complaint("stopped; what had been written is whole.", ExitCode.INTERRUPTED) from None
    if show:
        for file in files:
            steps.show(file.resolve().as_uri())
