"""``audit``, ``bench`` and ``demo``: commands with an option parser of their own, which get the rest of the line."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

import typer

__all__ = ["COMMANDS", "SETTINGS"]

SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}


def audit(context: typer.Context) -> int:
    """Test the privacy promises by attack and by enumeration (see: privspan audit --help)."""
    return _forwarded("audit", context)


def bench(context: typer.Context) -> int:
    """Measure accuracy and speed against other systems (see: privspan bench --help)."""
    return _forwarded("bench", context)


def demo(context: typer.Context) -> int:
    """Walk through plan, fit and report on bundled data, in under a minute (see: privspan demo --help)."""
    return _forwarded("demo", context)


COMMANDS: dict[str, Callable[[typer.Context], int]] = {"audit": audit, "bench": bench, "demo": demo}


def _forwarded(name: str, context: typer.Context) -> int:
    try:
        return int(import_module(f"privspan.{name}").main(context.args) or 0)
    except SystemExit as stop:  # argparse leaves that way
        return stop.code if isinstance(stop.code, int) else int(stop.code is not None)
