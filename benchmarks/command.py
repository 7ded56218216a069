"""``privspan bench``: choose suites, run what is missing, write tables and figures."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from benchmarks.cells import FAILED, OK, STATUSES, WORTH_ANOTHER_TRY, Outcome, Suite
from benchmarks.machine import machine_facts
from benchmarks.runner import run_cells
from benchmarks.store import Store, StoreError
from benchmarks.suites import SUITES
from privspan.cli import _console
from privspan.cli._options import option, output_to, whole
from privspan.cli._style import Command, Group
from privspan.cli.exits import Complaint, ExitCode

__all__ = ["app"]

_NEEDED = ("filelock", "matplotlib")
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
_HELP = """Measure every method and every rival.

A run that is interrupted or killed continues where it stopped when the same command is given again.

Example:

privspan bench --quick

Suites:

"""

app = typer.Typer(cls=Group, add_completion=False, context_settings={"help_option_names": ["-h", "--help"]})


@dataclass(frozen=True)
class _Choice:
    """What of a suite is run, and how."""

    quick: bool
    methods: list[str]
    jobs: int
    again: tuple[str, ...]


def _suite(name: str) -> Suite:
    if name not in SUITES:
        raise Complaint(f"there is no suite {name!r}; choose one of {', '.join(SUITES)}.")
    return SUITES[name]


@app.callback(
    invoke_without_command=True,
    help=_HELP + "\n\n".join(f"{name}: {suite.question}" for name, suite in SUITES.items()),
)
def bench(
    context: typer.Context,
    quick: Annotated[bool, typer.Option("--quick", help="Every method once, in minutes.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The full grid, an hour or two; the default.")] = False,
    suite: Annotated[
        list[Suite] | None,
        typer.Option("--suite", parser=_suite, metavar="NAME", help="Only this one; may be repeated."),
    ] = None,
    method: Annotated[
        list[str] | None, typer.Option("--method", metavar="NAME", help="Only this one; may be repeated.")
    ] = None,
    output: Annotated[
        Path | None, output_to("Folder of results (bench-quick or bench-results).", metavar="DIR")
    ] = None,
    jobs: Annotated[int | None, whole("--jobs", "2", "Cells at once; by default one per core.")] = None,
    retry: Annotated[bool, typer.Option("--retry", help="Run again what failed or ran out of time, too.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Forget earlier results of what is chosen.")] = False,
) -> int:
    """Measure every method and every rival."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise Complaint(f"the benchmarks need {' and '.join(missing)}; type: pip install --group bench")
    if context.invoked_subcommand is not None:
        return 0
    if (quick and full) or (retry and fresh):
        raise Complaint("choose one of --quick and --full, and one of --retry and --fresh.")
    again = STATUSES if fresh else WORTH_ANOTHER_TRY if retry else ()
    folder = output or Path("bench-quick" if quick else "bench-results")
    for variable in _THREADS:
        os.environ.setdefault(variable, "1")  # read by the workers: one thread each
    choice = _Choice(quick, method or [], jobs or os.cpu_count() or 1, again)
    return _bench(folder, suite or list(SUITES.values()), choice)


@app.command("page", cls=Command)
def page(
    output: Annotated[Path, output_to("Folder of results.", metavar="DIR")] = Path("benchmarks/results"),
    docs: Annotated[Path, option("--docs", "Folder of the documentation.", "DIR")] = Path("docs"),
) -> None:
    """Write the results page of the documentation from stored results.

    Example:

    privspan bench page
    """
    from benchmarks.page import write_page

    _console.print_lines(write_page(output, docs))


def _bench(folder: Path, suites: list[Suite], choice: _Choice) -> int:
    from benchmarks.outputs import write_outputs

    try:
        with Store(folder) as store:
            failures = sum(_run_suite(suite, store, choice) for suite in suites)
    except StoreError as refusal:
        raise Complaint(str(refusal)) from refusal
    except KeyboardInterrupt:
        raise Complaint("interrupted; the same command goes on from here.", ExitCode.INTERRUPTED) from None
    _console.print_lines(write_outputs(folder))
    if failures:
        _console.warn(f"{failures} cells failed; their notes say why, and --retry runs them again.")
    return int(failures > 0)


def _run_suite(suite: Suite, store: Store, choice: _Choice) -> int:
    """Run what is missing of one suite; return how many cells failed."""
    cells = suite.cells(choice.quick)
    wanted = [cell for cell in cells if not choice.methods or cell.method in choice.methods]
    missing = store.missing(suite, wanted, choice.again)
    if not missing:
        return 0
    if suite.prepare is not None:
        suite.prepare()
    jobs = 1 if suite.alone else choice.jobs
    store.record_machine(suite, machine_facts(jobs))
    failures = 0
    with _progress(suite.name, len(wanted), len(wanted) - len(missing)) as advance:
        for cell, outcome in run_cells(missing, jobs=jobs, limit=suite.limit(choice.quick)):
            store.add(suite, cell, outcome)
            advance(outcome)
            failures += outcome.status == FAILED
    return failures


@contextmanager
def _progress(name: str, total: int, done: int) -> Iterator[Any]:
    """Show a bar with the time left on standard error; yield what moves it on."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<11}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[odd]}"),
    )
    odd: dict[str, int] = {}
    with Progress(*columns, console=_console.stderr()) as bar:
        task = bar.add_task(name, total=total, completed=done, odd="")

        def advance(outcome: Outcome) -> None:
            if outcome.status != OK:
                odd[outcome.status] = odd.get(outcome.status, 0) + 1
            bar.update(task, advance=1, odd=", ".join(f"{count} {status}" for status, count in odd.items()))

        yield advance
