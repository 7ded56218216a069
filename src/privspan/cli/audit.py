"""``privspan audit``: a table on standard output, progress on standard error, JSON in a file."""

from __future__ import annotations

from collections.abc import Sequence
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privspan._lib.whole_file import whole_file
from privspan.cli import _console
from privspan.cli._options import Json, Overwrite, check_target, option, output_to, whole
from privspan.cli._progress import activity
from privspan.cli.exits import Complaint

if TYPE_CHECKING:
    from privspan.audit import AuditResult

_DEFAULT_RUNS = 2000  # that of `run_audit`, which is not loaded for --help
_DEFAULT_OUTPUT = Path("privspan-audit.json")
_COLUMNS = ("mechanism", "audit", "case", "claim", "found", ">of it", ">runs", "verdict")


def audit(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A mechanism, or exact, sampler, sampled or replayed; else all."),
    ] = None,
    list_names: Annotated[bool, option("--list", "List the mechanisms and stop.")] = False,
    runs: Annotated[int, whole("--runs", "2000", "Runs on each table.")] = _DEFAULT_RUNS,
    seed: Annotated[int | None, whole("--seed", "1", "Make the audit repeatable.", least=0)] = None,
    workers: Annotated[int, whole("--workers", "2", "Processes.")] = 1,
    output: Annotated[
        Path | None, output_to(f"Store the results as JSON ({_DEFAULT_OUTPUT}; with --json nowhere).", "FILE")
    ] = None,
    overwrite: Overwrite = False,
    page: Annotated[Path | None, typer.Option("--page", hidden=True)] = None,  # stored results, into docs/
    json: Json = False,
) -> int:
    """Test the privacy promises of this package by enumeration, by replay and by attack.

    The exit code is 1 if a claim is refuted.

    Example:

    privspan audit analyze_gauss
    """
    try:
        if page is not None:
            from privspan.audit.page import write_passage

            _console.print_lines(write_passage(page, Path("docs")))
            return 0
        if list_names:
            from privspan.audit import tasks

            _console.print_lines(*dict.fromkeys(task.name for task in tasks()))
            return 0
        target = output or (None if json else _DEFAULT_OUTPUT)
        if target is not None:
            _make_ready(target, overwrite)
        return _run(name, runs, seed, workers, target, overwrite, json)
    except OSError as error:  # code 1 would say that a claim is refuted
        raise Complaint(str(error)) from error


def _run(
    name: str | None, runs: int, seed: int | None, workers: int, target: Path | None, overwrite: bool, json: bool
) -> int:
    from privspan.audit import run_audit, summary
    from privspan.audit.results import run_facts

    with activity("Auditing"):
        results = run_audit(name, runs=runs, seed=seed, workers=workers, progress=_report_progress)
    text = dumps({**run_facts(runs=runs, seed=seed), **summary(results)}, indent=1)
    try:
        if json:
            print(text)
        else:
            _print_results(results)
    finally:  # a reader of the table that hangs up early must not cost the results
        if target is not None:
            _store(text, target, overwrite)
    return int(any(result.refuted for result in results))


def _make_ready(target: Path, overwrite: bool) -> None:
    """Refuse, before audits that take half an hour are run, a file that could not be written afterwards."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        folder = str(target.parent)
        raise Complaint(f"the folder {folder!r} cannot be made; choose another one with --output.") from error
    check_target(target, "--output", (target.suffix.lower(),), overwrite=overwrite)


def _store(text: str, target: Path, overwrite: bool) -> None:
    try:
        with whole_file(target, overwrite=overwrite) as handle:
            handle.write(f"{text}\n".encode())
    except OSError as error:
        raise Complaint(f"the results could not be stored in {str(target)!r}: {error.strerror}.") from error
    _console.note(f"The results are stored in {target}")


def _report_progress(result: AuditResult, done: int, whole: int) -> None:
    _console.note(f"[{done}/{whole}] {result.name}, {result.case}: {_verdict(result)} ({result.seconds:.1f} s)")


def _verdict(result: AuditResult) -> str:
    return "REFUTED" if result.refuted else "passed"


def _cells(result: AuditResult) -> tuple[str, ...]:
    """One result as the cells of its line."""
    claim, part = "exact law", ""
    if result.claimed is not None and result.certified is not None:
        claim, part = f"{result.measure} {result.claimed:.4g}", f"{result.certified:.0%}"
    sign = {"sampler": "p =", "sampled": f"{result.measure} >="}.get(result.kind, result.measure)
    found = f"{sign} {result.found:.4g}"
    return result.name, result.kind, result.case, claim, found, part, f"{result.runs:,}", _verdict(result)


def _print_results(results: Sequence[AuditResult]) -> None:
    from privspan.audit import summary

    refuted = {number: "red" for number, result in enumerate(results) if result.refuted}
    _console.print_table(_COLUMNS, [_cells(result) for result in results], styles=refuted)
    whole = summary(results)
    _console.print_lines(
        f"{whole['audits']} audits, {whole['refuted']} refuted. "
        f"Chance of a false alarm in all of them together: at most {whole['false_alarm']:.2g}."
    )
