"""Runs the application and turns whatever happens into one sentence and an exit code."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from functools import partial
from typing import Any, TextIO

import typer

from privspan._lib.errors import MissingPackageError, Note, PrivspanError
from privspan.cli import _console
from privspan.cli._interrupts import interruptible
from privspan.cli._place import without_urls
from privspan.cli._steps import Invocation, Steps
from privspan.cli.app import app
from privspan.cli.exits import Complaint, ExitCode

_EXAMPLES = {
    "--d": "--d 200",
    "--dataset": "--dataset people.csv",
    "--delta": "--delta 1e-6",
    "--epsilon": "--epsilon 1",
    "--k": "--k 3",
    "--output": "-o out.npz",
}
_OUTPUTS = {"transform": "-o coordinates.csv"}  # where a command takes other suffixes than `fit`
_FLAGS = {"X": "the table", "max_components": "--max-k", "name": "NAME", "rng": "--seed"}

_GONE = {
    "--norm-bound": "--norm-bound is gone: lengths are found privately; what is public of columns goes into "
    "--bounds, for example --bounds age=0:120,bmi=10:80."
}


def run(arguments: list[str], steps: Steps | None = None) -> int:
    """Run one command and return its exit code."""
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without "ε" gets "?" rather than a crash
    try:
        return _obey(Invocation(arguments, steps or Steps()), debug)
    finally:
        _let_go(sys.stdout)
        _let_go(sys.stderr)


def _obey(given: Invocation, debug: bool) -> int:
    try:
        with interruptible():
            result = typer.main.get_command(app).main(
                list(given.arguments), prog_name="privspan", standalone_mode=False, obj=given
            )
        with _console.stdout_in_words():
            pass
    except BrokenPipeError:
        return ExitCode.FAILED
    except (Exception, KeyboardInterrupt) as error:
        if _is_plea_for_help(error):
            return ExitCode.OK
        if debug:
            _console.show_trace(error, partial(without_urls, arguments=given.arguments))
        sentence, code = _explained(error)
        notes = [note for note in getattr(error, "__notes__", []) if isinstance(note, Note)]
        _console.fail(without_urls(" ".join([sentence, *notes]), given.arguments))
        return code
    if result == ExitCode.INTERRUPTED:
        _console.fail("interrupted.")
    return int(result or 0)


def _open_closed_streams() -> None:
    """Put something in the place of standard streams that were closed when the program began.

    Python has None for them, and their numbers go to the next files that are opened, which whoever still writes to a
    standard stream would then write to.  Standard output refuses what is written to it, so that a result is not
    believed to have been told; notices go nowhere.
    """
    for name, flags in (("stdin", os.O_RDONLY), ("stdout", os.O_RDONLY), ("stderr", os.O_WRONLY)):
        if getattr(sys, name) is None:
            descriptor = os.open(os.devnull, flags)  # takes the lowest number that is free
            mode = "r" if name == "stdin" else "w"
            stream = open(descriptor, mode, encoding="utf-8", errors="replace", closefd=False)  # noqa: SIM115
            setattr(sys, name, stream)


def _let_go(stream: TextIO) -> None:
    """Empty a stream, or turn it away from a place that takes nothing: Python would end with a code of its own."""
    try:
        stream.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, stream.fileno())
            os.close(nowhere)


def _explained(error: BaseException) -> tuple[str, ExitCode]:
    """Return what to tell the user about an exception, and the exit code."""
    from privspan.ledger import DamagedLedgerError, LockedLedgerError, OverspendError
    from privspan.rows import UnreadableFileError

    usage_error: Any = typer.BadParameter.__base__  # typer has no public name for it
    match error:
        case Complaint():
            return str(error), error.code
        case usage_error():
            context = getattr(error, "ctx", None)
            path = context.command_path if context is not None else "privspan"
            if (gone := _GONE.get(getattr(error, "option_name", ""))) is not None:
                return gone, ExitCode.USAGE
            return f"{error.format_message().rstrip('.')}; {_example(error) or f'see: {path} --help'}", ExitCode.USAGE
        case KeyboardInterrupt() | typer.Abort():
            return "interrupted.", ExitCode.INTERRUPTED
        case OverspendError():
            return f"{error.told(in_flags)} Nothing was run and nothing was spent.", ExitCode.REFUSED
        case UnreadableFileError() | DamagedLedgerError():
            return error.told(in_flags), ExitCode.UNREADABLE
        case MissingPackageError() | LockedLedgerError():
            return error.told(in_flags), ExitCode.FAILED
        case PrivspanError():
            return error.told(in_flags), ExitCode.USAGE
        case MemoryError():
            return "not enough memory; use fewer columns with --columns.", ExitCode.FAILED
        case OSError() if error.errno:
            where = f" ({error.filename})" if error.filename else ""
            return f"{os.strerror(error.errno)}{where}.", ExitCode.FAILED
    # The text of a foreign exception may quote a cell of the table.
    return f"unexpected {type(error).__name__}; run it again with --debug to see where.", ExitCode.FAILED


def _is_plea_for_help(error: BaseException) -> bool:
    """Tell whether somebody typed the name of a group and no more: its help has just been shown."""
    return type(error).__name__ == "NoArgsIsHelpError"  # typer has no public name for it


def _example(error: BaseException) -> str | None:
    """Return what to add for an option that is missing."""
    if "issing" not in type(error).__name__:
        return None
    options = getattr(getattr(error, "param", None), "opts", ())
    examples = dict(_EXAMPLES)
    command = str(getattr(getattr(error, "ctx", None), "info_name", ""))
    examples["--output"] = _OUTPUTS.get(command, examples["--output"])
    return next((f"add for example: {examples[option]}" for option in options if option in examples), None)


def in_flags(name: str, value: str) -> str:
    """Return a parameter as it is typed: ``k="auto"`` is ``--k auto``, and ``scale=True`` is ``--scale``."""
    flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
    return flag if value in ("", "True") else f"{flag} {value.strip(chr(34))}"
