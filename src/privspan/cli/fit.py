"""``privspan fit``: learn a subspace of a table privately, charge the ledger, write the file and the report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from privspan._lib.readable import Note
from privspan.cli import _console
from privspan.cli import _fit_options as options
from privspan.cli import _read_options as reading
from privspan.cli._charge import Charge, charge_for
from privspan.cli._delivery import Delivery
from privspan.cli._interrupts import interruptible
from privspan.cli._options import Delta, Epsilon, Gamma, Json, Overwrite, check_target, split_names
from privspan.cli._progress import activity
from privspan.cli._table import open_table, table_in_words, table_name, tell_left_out
from privspan.cli.exits import Complaint, ExitCode

if TYPE_CHECKING:
    from privspan.cli._task import Task


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
    overwrite: Overwrite = False,
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
    inputs = {"the table": file, "the ledger": ledger}
    check_target(output, "-o", (".npz",), spare=inputs, overwrite=overwrite)
    if report is not None:
        check_target(report, "--report", (".html",), spare={**inputs, "the file of -o": output}, overwrite=overwrite)
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
    with interruptible() as interrupts:
        delivery = Delivery(output, report, json, overwrite, interrupts)
        try:
            _learn(task, file, None if columns is None else split_names(columns), written, charge, delivery)
            return delivery.tell()
        except KeyboardInterrupt:
            raise Complaint(f"interrupted. {delivery.kept or charge.spent()}", ExitCode.INTERRUPTED) from None
        except Exception as error:
            if charge.begun and (delivery.kept or not isinstance(error, Complaint)):
                error.add_note(Note(delivery.kept or charge.spent()))
            raise


def _learn(
    task: Task, file: Path, columns: list[str] | None, written: dict[str, Any], charge: Charge, delivery: Delivery
) -> None:
    """Read, check, charge, run, and write the result before anything else can happen."""
    from privspan._lib.watch import watching_rows

    charge.check(task)
    with activity(f"Reading {table_name(file)}") as shown, open_table(file, columns, written) as source:
        tell_left_out(source, file, asked=columns is not None, declared=written["schema"] is not None)
        task.check(source)
        delivery.source = table_in_words(file, source)
        shown.now("Learning privately", task.rows_to_see(source))
        with charge.spending(task) as spending, watching_rows(shown.advance):
            made = task.run(source)
            delivery.interrupts.hold()
            spending.outcome = "abstained" if made[0].abstained else "finished"
            delivery.save(*made)
    delivery.interrupts.let_through()
