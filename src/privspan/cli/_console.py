"""What the commands write: results to standard output, everything else to standard error.

On a terminal there are colours and lines; in a pipe or a file plain text that is never cut or wrapped.  All text goes
through `readable` here, last of all: names of columns and files may hold escape sequences.  What cannot be written to
standard error is dropped; a notice that nobody can read is no reason to lose a result.
"""

from __future__ import annotations

import json
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from types import MappingProxyType
from typing import TextIO

from rich import box
from rich.console import Console
from rich.table import Table

from privspan._lib.readable import escaped_json, readable
from privspan.cli.exits import Complaint, ExitCode

_UNLIMITED = 100_000  # columns of a pipe: nothing is wrapped there
_EIGHTHS, _END, _BAR = "▏▎▍▌▋▊▉█", "▕", 24  # what bars are made of, and how long they get


def stdout() -> Console:
    """Return the console of results.  Text is never read as markup: column names may hold brackets."""
    return _console(sys.stdout)


def stderr() -> Console:
    """Return the console of notices."""
    return _console(sys.stderr)


def _console(file: TextIO) -> Console:
    width = None if file.isatty() else _UNLIMITED
    return Console(file=file, width=width, markup=False, highlight=False, emoji=False)


def print_json(value: object) -> None:
    """Write a result for programs: one JSON document, without NaN."""
    document = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    with stdout_in_words():
        sys.stdout.write(escaped_json(document) + "\n")


def print_lines(*lines: str, style: str | None = None) -> None:
    """Write lines of a result for people."""
    with stdout_in_words():
        for line in lines:
            stdout().print(readable(line), style=style)


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Write names and values, aligned."""
    if not stdout().is_terminal:
        _print_plain(pairs, ("left", "left"))
        return
    table = Table.grid(padding=(0, 2))
    table.add_column(style="dim", no_wrap=True)
    table.add_column()
    for name, value in pairs:
        table.add_row(readable(name), readable(value))
    with stdout_in_words():
        stdout().print(table)


def print_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], *, styles: Mapping[int, str] = MappingProxyType({})
) -> None:
    """Write a table between empty lines.

    Columns whose head begins with ``>`` are aligned to the right; on a terminal rows stand out by their `styles`.
    """
    sides = ["right" if head.startswith(">") else "left" for head in heads]
    names = [head.removeprefix(">") for head in heads]
    rows = [[readable(cell) for cell in row] for row in rows]
    if not stdout().is_terminal:
        print_lines("")
        _print_plain([names, *rows], sides)
        print_lines("")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for name, side in zip(names, sides, strict=True):
        table.add_column(name, justify="right" if side == "right" else "left")
    for number, row in enumerate(rows):
        table.add_row(*row, style=styles.get(number))
    with stdout_in_words():
        stdout().print(table)


def print_bars(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    shares: Sequence[float],
    scale: str,
    *,
    styles: Mapping[int, str] = MappingProxyType({}),
) -> None:
    """Write a table, and on a terminal beside each row a bar for its share of the `scale`, which heads them."""
    if draws():
        heads = (*heads, scale)
        rows = [(*row, _bar(share)) for row, share in zip(rows, shares, strict=True)]
    print_table(heads, rows, styles=styles)


def draws() -> bool:
    """Tell whether results go to a terminal that can show bars."""
    if not stdout().is_terminal:
        return False
    try:
        (_EIGHTHS + _END).encode(stdout().encoding)
    except UnicodeEncodeError:
        return False
    return True


def _bar(share: float) -> str:
    """Return a bar in eighths of a letter, and where it would end; what is not nothing shows."""
    eighths = max(round(8 * _BAR * min(max(share, 0.0), 1.0)), int(share > 0.0))
    bar = _EIGHTHS[-1] * (eighths // 8) + (_EIGHTHS[eighths % 8 - 1] if eighths % 8 else "")
    return f"{bar.ljust(_BAR)}{_END}"


def _print_plain(rows: Sequence[Sequence[str]], sides: Sequence[str]) -> None:
    """Write aligned columns, two blanks apart, and nothing else."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    with stdout_in_words():
        for row in rows:
            cells = (
                cell.rjust(width) if side == "right" else cell.ljust(width)
                for cell, width, side in zip(map(readable, row), widths, sides, strict=True)
            )
            sys.stdout.write("  ".join(cells).rstrip() + "\n")


@contextmanager
def stdout_in_words() -> Iterator[None]:
    """Write to standard output inside, and hear of a failure there and then, in a sentence."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has seen enough
        raise
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else "it is closed"
        raise Complaint(f"standard output cannot be written to ({reason}).", ExitCode.FAILED) from None


def note(message: str) -> None:
    """Tell something on standard error."""
    _say(message, "dim")


def warn(message: str) -> None:
    """Warn on standard error."""
    _say(f"Warning: {message}", "yellow")


@contextmanager
def warnings_in_words(elsewhere: tuple[type[Warning], ...] = ()) -> Iterator[None]:
    """Tell warnings of the library in the words of a command; those that are told elsewhere are passed over."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        if issubclass(warning.category, UserWarning) and not issubclass(warning.category, elsewhere):
            warn(str(warning.message))


def fail(message: str) -> None:
    """Complain on standard error."""
    _say(f"Error: {message}", "red")


def show_trace(error: BaseException, hidden: Callable[[str], str]) -> None:
    """Write where an error comes from to standard error, as Python words it; the words of the error in one line.

    `hidden` takes out of them what nobody may see.
    """
    with suppress(OSError, ValueError):
        for piece in traceback.format_exception(error):
            piece = hidden(piece)
            ours = piece.startswith(("  File ", "\n"))  # a frame, or what joins two exceptions
            sys.stderr.write(readable(piece, keep="\n") if ours else readable(piece.rstrip("\n")) + "\n")


def _say(message: str, style: str) -> None:
    with suppress(OSError, ValueError):  # full, or closed
        stderr().print(readable(message), style=style)
