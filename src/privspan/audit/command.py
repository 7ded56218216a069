"""The command ``privspan audit``: a table on stdout, progress on stderr, JSON in a file."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from privspan._readable import readable
from privspan._whole_file import try_out, whole_file
from privspan.audit.page import write_passage
from privspan.audit.results import AuditResult, run_facts, summary
from privspan.audit.runner import DEFAULT_RUNS, run_audit, tasks

__all__ = ["main"]

_DEFAULT_OUTPUT = Path("privspan-audit.json")
_COLUMNS = ("mechanism", "audit", "case", "claim", "found", "runs", "verdict")


def main(arguments: list[str]) -> int:
    """Run audits as the command line asks.

    Parameters
    ----------
    arguments : list of str
        Without the name of the command; ``["--help"]`` lists them.

    Returns
    -------
    int
        0 if nothing was refuted, 1 if something was, 2 if the arguments make no sense or a file cannot be written.
    """
    try:
        options = _parser().parse_args(arguments)
    except SystemExit as stop:  # argparse has said why, or printed its help
        return int(stop.code or 0)
    try:
        return _obey(options)
    except (OSError, TypeError, ValueError) as error:
        print(readable(f"privspan audit: {error}"), file=sys.stderr)
        return 2


def _obey(options: argparse.Namespace) -> int:
    if options.page is not None:
        print(write_passage(options.page, Path("docs")))
        return 0
    if options.list:
        for name in dict.fromkeys(task.name for task in tasks()):
            print(name)
        return 0
    target: Path | None = options.output or (None if options.json else _DEFAULT_OUTPUT)
    if target is not None:
        _make_ready(target, options.overwrite)
    results = run_audit(
        options.name, runs=options.runs, seed=options.seed, workers=options.workers, progress=_report_progress
    )
    text = json.dumps({**run_facts(runs=options.runs, seed=options.seed), **summary(results)}, indent=1)
    try:
        _print_results(results, text if options.json else None)
    finally:  # a reader of the table that hangs up early must not cost the results
        if target is not None:
            _store(text, target, options.overwrite)
    return int(any(result.refuted for result in results))


def _make_ready(target: Path, overwrite: bool) -> None:
    """Refuse, before audits that take half an hour are run, a file that could not be written afterwards."""
    if target.is_dir():
        raise ValueError(f"--output takes a file, and {str(target)!r} is a folder.")
    if target.exists() and not target.is_file():  # a device, which would be replaced
        raise ValueError(f"--output takes an ordinary file, which {str(target)!r} is not; use --json for stdout.")
    if os.path.lexists(target) and not overwrite:
        raise ValueError(f"{str(target)!r} is there already; choose another name with --output, or add --overwrite.")
    folder = target.parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"the folder {str(folder)!r} cannot be made; choose another one with --output.") from error
    try:
        try_out(target)
    except OSError as error:
        message = f"{str(target)!r} cannot be written ({error.strerror}); choose another name with --output."
        raise ValueError(message) from error


def _store(text: str, target: Path, overwrite: bool) -> None:
    try:
        with whole_file(target, overwrite=overwrite) as handle:
            handle.write(f"{text}\n".encode())
    except OSError as error:
        raise OSError(f"the results could not be stored in {str(target)!r}: {error.strerror}.") from error
    print(readable(f"privspan audit: results are stored in {target}"), file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="privspan audit",
        description="Check the privacy claims of this package on small tables: by enumeration, by tests of the "
        "noise, and by runs on neighbouring tables. Exit code 1 if a claim is refuted.",
    )
    parser.add_argument("name", nargs="?", help="a mechanism, or exact, sampler or sampled (default: all)")
    parser.add_argument("--list", action="store_true", help="list the mechanisms and stop")
    parser.add_argument("--runs", type=int, default=DEFAULT_RUNS, help="runs on each table (default: %(default)s)")
    parser.add_argument("--seed", type=int, help="make the audit repeatable (default: real randomness)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: %(default)s)")
    parser.add_argument(
        "--output",
        type=Path,
        metavar="FILE",
        help=f"store the results as JSON (default: {_DEFAULT_OUTPUT}; none with --json)",
    )
    parser.add_argument("--overwrite", action="store_true", help="replace the file of --output if it is there")
    parser.add_argument("--page", type=Path, metavar="FILE", help=argparse.SUPPRESS)  # stored results, into docs/
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser


def _report_progress(result: AuditResult, done: int, whole: int) -> None:
    verdict = "REFUTED" if result.refuted else "passed"
    print(f"[{done}/{whole}] {result.name}, {result.case}: {verdict} ({result.seconds:.1f} s)", file=sys.stderr)


def _cells(result: AuditResult) -> tuple[str, ...]:
    """One result as the cells of its line."""
    claim, found = {
        "exact": (f"delta {result.delta}", f"delta {result.found:.6g}"),
        "sampler": ("exact law", f"p = {result.found:.2g}"),
        "sampled": (f"epsilon {result.epsilon}", f"epsilon >= {result.found:.3f}"),
    }[result.kind]
    verdict = "REFUTED" if result.refuted else "passed"
    return result.name, result.kind, result.case, claim, found, f"{result.runs:,}", verdict


def _print_results(results: Sequence[AuditResult], text: str | None) -> None:
    if text is not None:
        print(text)
        return
    _print_table(results)
    _print_verdict(results)


def _print_table(results: Sequence[AuditResult]) -> None:
    lines = [_cells(result) for result in results]
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        _print_plain([_COLUMNS, *lines])
        return
    console = Console()
    if not console.is_terminal:  # a file or a pipe has no width to fold the table to
        _print_plain([_COLUMNS, *lines])
        return
    table = Table(*_COLUMNS, header_style="bold")
    for line, result in zip(lines, results, strict=True):
        table.add_row(*line, style="red" if result.refuted else None)
    console.print(table)


def _print_plain(lines: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(line[column]) for line in lines) for column in range(len(_COLUMNS))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def _print_verdict(results: Sequence[AuditResult]) -> None:
    whole = summary(results)
    print(
        f"{whole['audits']} audits, {whole['refuted']} refuted. "
        f"Chance of a false alarm in all of them together: at most {whole['false_alarm']:.2g}."
    )
