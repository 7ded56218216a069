"""The command ``privspan``: plan, fit and read private subspaces from a terminal.

One module per command, or per few that belong together; no mathematics here.  Standard output carries results (text
for people, or JSON with ``--json``), standard error everything else.  Modules load NumPy and the library only when a
command runs, so that ``--help`` answers at once.  Described in docs/reference/command-line.md.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from privspan.cli._steps import Steps

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None, steps: Steps | None = None) -> int:
    """Run the command line and return its exit code, one of `privspan.cli.exits.ExitCode`.

    The arguments are by default those of the process, and `steps` what a fit does: `privspan.cli._steps`.
    """
    from privspan.cli._interrupts import interruptible

    try:
        with interruptible():  # while the packages load, too
            if any(find_spec(package) is None for package in ("rich", "typer")):
                print("Error: the command line needs more packages: pip install 'privspan[cli]'", file=sys.stderr)
                return 1
            from privspan.cli._run import run

            return run(sys.argv[1:] if arguments is None else list(arguments), steps)
    except KeyboardInterrupt:
        print("Error: interrupted.", file=sys.stderr)
        return 130
