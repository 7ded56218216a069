"""``python -m privspan.audit``: the command ``privspan audit``, which lives with the other commands."""

from __future__ import annotations

from importlib import import_module


def main(arguments: list[str]) -> int:
    """Run ``privspan audit`` with these arguments.  Needs the packages of the extra ``cli``, as all commands do.

    Parameters
    ----------
    arguments : list of str
        Without the name of the command; ``["--help"]`` lists them.

    Returns
    -------
    int
        0 if nothing was refuted, 1 if something was, 2 if the arguments make no sense or a file cannot be written.
    """
    # By name: the room of the commands is above this one, which must not need it.
    return int(import_module("privspan.cli").main(["audit", *arguments]))
