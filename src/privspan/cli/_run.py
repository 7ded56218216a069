"""Runs the application and turns whatever happens into one sentence and an exit code."""

from __future__ import annotations

import os
import re
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer

import privspan
from privspan.cli import _console
from privspan.cli.app import app
from privspan.cli.exits import Complaint, ExitCode

__all__ = ["run"]

_PACKAGE = str(Path(privspan.__file__).parent)
_EXAMPLES = {
    "--d": "--d 200",
    "--dataset": "--dataset people.csv",
    "--delta": "--delta 1e-6",
    "--epsilon": "--epsilon 1",
    "--k": "--k 3",
    "--output": "-o out.npz",
}
_FLAGS = {
    "X": "the table",
    "center": "--no-center",
    "max_components": "--max-k",
    "n_components": "--k",
    "name": "NAME",
    "random_state": "--seed",
}


def run(arguments: list[str]) -> int:
    """Run one command and return its exit code."""
    debug = "--debug" in arguments
    arguments = [argument for argument in arguments if argument != "--debug"]
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without "ε" gets "?" rather than a crash
    try:
        with _terminable():
            result = typer.main.get_command(app).main(arguments, prog_name="privspan", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains when it closes it
        return ExitCode.FAILED
    except (Exception, KeyboardInterrupt) as error:
        if debug:
            traceback.print_exc()
        return _complain(error)
    if result == ExitCode.INTERRUPTED:
        _console.fail("interrupted.")
    return int(result or 0)


@contextmanager
def _terminable() -> Iterator[None]:
    """Let SIGTERM end a command like Ctrl-C, so that it cleans up and tells what was spent."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # not in the main thread
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _complain(error: BaseException) -> int:
    sentence, code = _explained(error)
    _console.fail(" ".join([sentence, *getattr(error, "__notes__", [])]))
    return code


def _explained(error: BaseException) -> tuple[str, ExitCode]:
    """Return what to tell the user about an exception, and the exit code."""
    from privspan.ledger import DamagedLedgerError, OverspendError
    from privspan.rows import UnreadableFileError

    usage_error: Any = typer.BadParameter.__base__  # typer has no public name for it
    match error:
        case Complaint():
            return str(error), error.code
        case usage_error():
            context = getattr(error, "ctx", None)
            path = context.command_path if context is not None else "privspan"
            return f"{error.format_message().rstrip('.')}; {_example(error) or f'see: {path} --help'}", ExitCode.USAGE
        case KeyboardInterrupt() | typer.Abort():
            return "interrupted.", ExitCode.INTERRUPTED
        case OverspendError():
            return f"{error} Nothing was run and nothing was spent.", ExitCode.REFUSED
        case UnreadableFileError() | DamagedLedgerError():
            return str(error), ExitCode.UNREADABLE
        case ImportError() if "privspan[" in str(error):
            return str(error), ExitCode.FAILED
        case MemoryError():
            return "not enough memory; use fewer columns with --columns.", ExitCode.FAILED
        case OSError():
            where = f" ({error.filename})" if error.filename else ""
            return f"{error.strerror or error}{where}.", ExitCode.FAILED
        case ValueError() | TypeError() if _is_ours(error):
            return re.sub(r"`(\w+)`", _flag, str(error)), ExitCode.USAGE
    # The text of a foreign exception may quote a cell of the table.
    return f"unexpected {type(error).__name__}; run it again with --debug to see where.", ExitCode.FAILED


def _example(error: Any) -> str | None:
    """Return what to add for an option that is missing."""
    options = getattr(getattr(error, "param", None), "opts", ())
    examples = [_EXAMPLES[option] for option in options if option in _EXAMPLES]
    return f"add for example: {examples[0]}" if examples and "issing" in type(error).__name__ else None


def _is_ours(error: BaseException) -> bool:
    """Tell whether the exception was raised by this package, whose messages never quote data."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and frames[-1].filename.startswith(_PACKAGE)


def _flag(parameter: re.Match[str]) -> str:
    """Turn a parameter's name into the option of the command line."""
    name = parameter.group(1)
    return _FLAGS.get(name, f"--{name.replace('_', '-')}")
