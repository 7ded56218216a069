"""``privspan fit``: learn a subspace of a table privately, charge the ledger, write the file and the report."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspan.cli import _console
from privspan.cli import _fit_options as options
from privspan.cli import _read_options as reading
from privspan.cli._charge import Charge, charge_for
from privspan.cli._options import Delta, Epsilon, Gamma, Json, check_target, split_names
from privspan.cli._progress import activity
from privspan.cli._table import open_table, table_in_words, table_name, tell_left_out
from privspan.cli.exits import Complaint, ExitCode

if TYPE_CHECKING:
    from privspan.cli._task import Task
    from privspan.planner import Plan
    from privspan.privacy import Release
    from privspan.release_file import SavedRelease

__all__ = ["fit"]


def fit(
    file: options.TableFile,
    k: options.Dimension,
    epsilon: Epsilon,
    delta: Delta,
    output: options.Output,
    columns: options.Columns = None,
    schema: reading.SchemaFile = None,
    separator: reading.Separator = None,
    decimal: reading.DecimalSign = None,
    encoding: reading.Encoding = None,
    quoted_newlines: reading.QuotedNewlines = None,
    width: reading.Width = None,
    method: options.Method = "auto",
    center: options.Center = True,
    gamma: Gamma = None,
    norm_bound: options.NormBound = None,
    max_k: options.MostDimensions = None,
    exact: options.Exact = False,
    decimals: options.Decimals = None,
    affine: options.Affine = False,
    seed: options.Seed = None,
    ledger: options.LedgerFile = None,
    dataset: options.Dataset = None,
    limit_epsilon: options.LimitEpsilon = None,
    limit_delta: options.LimitDelta = None,
    report: options.Report = None,
    json: Json = False,
) -> int:
    """Learn a subspace of a table privately and write it to a file.

    A private PCA: components, variances and a mean. With --exact instead:
    exact relations between columns. What is written is private. The budget
    is spent once the private step begins, whether it answers, abstains or
    is interrupted.

    Example:

    privspan fit people.csv --k 3 --epsilon 1 --delta 1e-6 -o subspace.npz
    """
    check_target(output, "-o", (".npz",), spare=file)
    if report is not None:
        check_target(report, "--report", (".html",))
    charge = charge_for(file, ledger, dataset, limit_epsilon, limit_delta)
    from privspan.cli._task import Task

    task = Task(
        k=k,
        epsilon=epsilon,
        delta=delta,
        method=method,
        center=center,
        gamma=None if gamma is None else float(gamma),
        norm_bound=None if norm_bound is None else float(norm_bound),
        max_k=max_k,
        exact=exact,
        affine=affine,
        decimals=decimals,
        seed=seed,
    )
    task.check_options()
    if seed is not None:
        _console.warn("--seed makes the noise repeatable: this result is NOT PRIVATE and must not leave your hands.")
    written = {
        "schema": schema,
        "separator": separator,
        "decimal": decimal,
        "encoding": encoding,
        "quoted_newlines": quoted_newlines,
        "width": width,
    }
    try:
        made = _learn(task, file, None if columns is None else split_names(columns), written, charge)
        return _deliver(*made, output, report, json)
    except KeyboardInterrupt:
        raise Complaint(f"interrupted. {charge.spent()}", ExitCode.INTERRUPTED) from None
    except Exception as error:
        if charge.begun and not isinstance(error, Complaint):
            error.add_note(charge.spent())
        raise


def _learn(
    task: Task, file: Path, columns: list[str] | None, written: dict[str, Any], charge: Charge
) -> tuple[Release, Plan | None, str]:
    """Read, check, charge and run."""
    from privspan._watch import watching_rows

    charge.check(task)
    with activity(f"Reading {table_name(file)}") as shown, open_table(file, columns, written) as source:
        tell_left_out(source, file, asked=columns is not None, declared=written["schema"] is not None)
        task.check(source)
        shown.now("Learning privately", task.rows_to_see(source))
        with charge.spending(task) as spending, watching_rows(shown.advance):
            release, plan = task.run(source)
            spending.outcome = "abstained" if release.abstained else "finished"
        return release, plan, table_in_words(file, source)


def _deliver(
    release: Release, plan: Plan | None, source: str, output: Path, report: Path | None, json: bool
) -> ExitCode:
    """Write the file, then the report, and tell what was found."""
    from privspan.cli import _describe
    from privspan.release_file import SavedRelease

    saved = None if release.subspace is None else SavedRelease(release.subspace, release, plan, source)
    if saved is not None:
        _save(saved, output)
    if report is not None:
        _write_report(release, plan, source, report)
    if saved is None:
        if json:
            _console.print_json({"output": None, "release": release.to_dict(), "source": source})
        _console.fail(
            f"the private step abstained: it found nothing that it could release safely. {release.cost} is spent all "
            "the same. `privspan plan` tells how many rows would do."
        )
        return ExitCode.ABSTAINED
    if json:
        _console.print_json({"output": str(output), **_describe.as_json(saved, 5)})
    else:
        _describe.print_saved(saved, output, 5)
    return ExitCode.OK


def _save(saved: SavedRelease, output: Path) -> None:
    """Write the file; if its disk is full, somewhere else: the budget is spent, and the result must not be lost."""
    from privspan.release_file import save_release

    assert saved.release is not None
    also: dict[str, Any] = {"plan": saved.plan, "source": saved.source}
    try:
        save_release(output, saved.release, **also)
    except OSError as error:
        failed = f"could not write {str(output)!r} ({error.strerror or error})"
        try:
            spare = save_release(Path(tempfile.mkdtemp(prefix="privspan-")) / output.name, saved.release, **also)
        except OSError:
            message = f"{failed} nor a spare copy; the result is lost and its budget spent."
        else:
            message = f"{failed}; the result, which is paid for, is safe in {str(spare)!r}."
        raise Complaint(message, ExitCode.FAILED) from None


def _write_report(release: Release, plan: Plan | None, source: str, report: Path) -> None:
    from privspan.report import write_report

    names = None if release.subspace is None else release.subspace.names
    try:
        write_report(report, release, plan=plan, columns=names, source=source)
    except OSError as error:
        _console.warn(f"could not write {str(report)!r} ({error.strerror}); privspan show … --report makes it again.")
    else:
        _console.note(f"Wrote {report}.")
