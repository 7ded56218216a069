"""``privspan bench``: choose suites, run what is missing, write tables and figures."""

from __future__ import annotations

import argparse
import importlib.util
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from privspan._readable import readable
from privspan.bench.cells import OK, STATUSES, WORTH_ANOTHER_TRY, Outcome, Suite

_NEEDED = ("filelock", "matplotlib", "rich")
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")

_EPILOG = """\
A run that is interrupted or killed continues where it stopped when the same command is given again.
`privspan bench page` writes the results page of the documentation from stored results."""


def run(arguments: list[str]) -> int:
    """Do what the arguments say; see `privspan.bench.main`."""
    missing = [name for name in _NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        print(f"The benchmark needs {', '.join(missing)}: type `pip install 'privspan[bench]'`.", file=sys.stderr)
        return 2
    if arguments[:1] == ["page"]:
        return _page(arguments[1:])
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as stop:  # argparse has said why
        return int(stop.code or 0)
    for variable in _THREADS:
        os.environ.setdefault(variable, "1")  # read by the workers: one thread each
    return _bench(options)


def _parser() -> argparse.ArgumentParser:
    from privspan.bench.suites import SUITES

    questions = "\n".join(f"  {name:<11} {suite.question}" for name, suite in SUITES.items())
    parser = argparse.ArgumentParser(
        prog="privspan bench",
        description=f"Measure every method and every rival.\n\nsuites:\n{questions}",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="every method once, in minutes")
    size.add_argument("--full", action="store_true", help="the full grid, an hour or two (the default)")
    parser.add_argument(
        "--suite", action="append", choices=list(SUITES), metavar="NAME", help="only this one; may be repeated"
    )
    parser.add_argument("--method", action="append", metavar="NAME", help="only this one; may be repeated")
    parser.add_argument("--output", type=Path, metavar="DIR", help="folder of results (bench-quick or bench-results)")
    parser.add_argument("--jobs", type=_positive, default=os.cpu_count() or 1, help="cells at once (all cores)")
    again = parser.add_mutually_exclusive_group()
    again.add_argument("--retry", action="store_true", help="also run again what failed or ran out of time")
    again.add_argument("--fresh", action="store_true", help="forget earlier results of these suites and methods")
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _bench(options: argparse.Namespace) -> int:
    from privspan.bench.store import Store, StoreError
    from privspan.bench.suites import SUITES

    folder: Path = options.output or Path("bench-quick" if options.quick else "bench-results")
    chosen = [SUITES[name] for name in options.suite or SUITES]
    again = STATUSES if options.fresh else WORTH_ANOTHER_TRY if options.retry else ()
    try:
        with Store(folder) as store:
            failures = sum(_run_suite(suite, store, options, again) for suite in chosen)
    except StoreError as refusal:
        print(readable(str(refusal)), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nInterrupted; the same command goes on from here.", file=sys.stderr)
        return 130
    from privspan.bench.outputs import write_outputs

    print(readable(write_outputs(folder)))
    if failures:
        print(f"{failures} cells failed; their notes say why, and --retry runs them again.", file=sys.stderr)
    return 1 if failures else 0


def _run_suite(suite: Suite, store: Any, options: argparse.Namespace, again: tuple[str, ...]) -> int:
    """Run what is missing of one suite; return how many cells failed."""
    from privspan.bench.machine import machine_facts
    from privspan.bench.runner import run_cells

    cells = suite.cells(options.quick)
    wanted = [cell for cell in cells if not options.method or cell.method in options.method]
    missing = store.missing(suite, wanted, again)
    if not missing:
        return 0
    if suite.prepare is not None:
        suite.prepare()
    jobs = 1 if suite.alone else options.jobs
    store.record_machine(suite, machine_facts(jobs))
    failures = 0
    with _progress(suite.name, len(wanted), len(wanted) - len(missing)) as advance:
        for cell, outcome in run_cells(missing, jobs=jobs, limit=suite.limit(options.quick)):
            store.add(suite, cell, outcome)
            advance(outcome)
            failures += outcome.status == "failed"
    return failures


@contextmanager
def _progress(name: str, total: int, done: int) -> Iterator[Any]:
    """Show a bar with the time left on standard error; yield what moves it on."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<11}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[odd]}"),
    )
    odd: dict[str, int] = {}
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=total, completed=done, odd="")

        def advance(outcome: Outcome) -> None:
            if outcome.status != OK:
                odd[outcome.status] = odd.get(outcome.status, 0) + 1
            bar.update(task, advance=1, odd=", ".join(f"{count} {status}" for status, count in odd.items()))

        yield advance


def _page(arguments: list[str]) -> int:
    """Write the results page of the documentation."""
    from privspan.bench.page import write_page

    parser = argparse.ArgumentParser(prog="privspan bench page", description="Write the results page.")
    parser.add_argument("--output", type=Path, default=Path("benchmarks/results"), help="folder of results")
    parser.add_argument("--docs", type=Path, default=Path("docs"), help="folder of the documentation")
    try:
        options = parser.parse_args(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    print(write_page(options.output, options.docs))
    return 0
