"""What the commands write: results to standard output, everything else to standard error.

On a terminal there are colours and lines; in a pipe or a file plain text that is never cut or wrapped.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

__all__ = ["fail", "note", "print_json", "print_lines", "print_pairs", "print_table", "stderr", "warn"]

_UNLIMITED = 100_000  # columns of a pipe: nothing is wrapped there


def stdout() -> Console:
    """Return the console of results.  Text is never read as markup: column names may hold brackets."""
    return _console(sys.stdout)


def stderr() -> Console:
    """Return the console of notices."""
    return _console(sys.stderr)


def _console(file: Any) -> Console:
    width = None if file.isatty() else _UNLIMITED
    return Console(file=file, width=width, markup=False, highlight=False, emoji=False)


def print_json(value: object) -> None:
    """Write a result for programs: one JSON document, without NaN."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def print_lines(*lines: str, style: str | None = None) -> None:
    """Write lines of a result for people."""
    for line in lines:
        stdout().print(line, style=style)


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Write names and values, aligned."""
    if not stdout().is_terminal:
        _print_plain(pairs, ("left", "left"))
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in pairs:
        table.add_row(name, value)
    stdout().print(table)


def print_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, styles: Mapping[int, str] = MappingProxyType({})
) -> None:
    """Write a table between empty lines.

    Columns whose head begins with ``>`` are aligned to the right; on a terminal rows stand out by their `styles`.
    """
    sides = ["right" if head.startswith(">") else "left" for head in heads]
    names = [head.removeprefix(">") for head in heads]
    if not stdout().is_terminal:
        sys.stdout.write("\n")
        _print_plain([names, *rows], sides)
        sys.stdout.write("\n")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, side in zip(names, sides, strict=True):
        table.add_column(name, justify="right" if side == "right" else "left")
    for number, row in enumerate(rows):
        table.add_row(*row, style=styles.get(number))
    stdout().print(table)


def _print_plain(rows: Sequence[Sequence[str]], sides: Sequence[str]) -> None:
    """Write aligned columns, two blanks apart, and nothing else."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (
            cell.rjust(width) if side == "right" else cell.ljust(width)
            for cell, width, side in zip(row, widths, sides, strict=True)
        )
        sys.stdout.write("  ".join(cells).rstrip() + "\n")


def note(message: str) -> None:
    """Tell something on standard error."""
    stderr().print(message, style="dim")


def warn(message: str) -> None:
    """Warn on standard error."""
    stderr().print(f"Warning: {message}", style="yellow")


def fail(message: str) -> None:
    """Complain on standard error."""
    stderr().print(f"Error: {message}", style="red")
