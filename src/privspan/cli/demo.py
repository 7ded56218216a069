"""``privspan demo``: the demonstration, and what it leaves in a browser."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from privspan.cli._options import Overwrite, option, output_to
from privspan.cli.exits import Complaint, ExitCode


def demo(
    output: Annotated[Path, output_to("Folder for what it writes.", "DIR")] = Path("demo-output"),
    overwrite: Overwrite = False,
    show: Annotated[bool, option("--open", "Show the reports in a browser at the end.")] = False,
) -> None:
    """Walk through plan, fit and report on real and made-up tables, within a minute.

    Example:

    privspan demo --open
    """
    import webbrowser

    from privspan.demo import FILES, tell

    there = [name for name in FILES if os.path.lexists(output / name)]
    if there and not overwrite:
        raise Complaint(f"{str(output / there[0])!r} exists already; add --overwrite, or choose another --output.")
    try:
        files = tell(output)
    except KeyboardInterrupt:
        raise Complaint("stopped; what had been written is whole.", ExitCode.INTERRUPTED) from None
    if show:
        for file in files:
            webbrowser.open(file.resolve().as_uri())
