"""``privspan fit``: learn a subspace of a table privately, charge the ledger, write the file and the report."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from privspan._lib.errors import Note
from privspan._lib.record import Record
from privspan._lib.watch import watching_rows
from privspan.cli import _console
from privspan.cli._charge import Charge, charge_for
from privspan.cli._delivery import Delivery
from privspan.cli._groups import Account, Circumstances, Columns, Learning, Reading
from privspan.cli._interrupts import interruptible
from privspan.cli._options import Json, Overwrite, check_target, grouped, option, output_to, split_names
from privspan.cli._place import Database, Place, TableFile, for_report, table_place
from privspan.cli._progress import activity
from privspan.cli._steps import Invocation
from privspan.cli._table import table_in_words, tell_left_out
from privspan.cli.exits import Complaint, ExitCode

if TYPE_CHECKING:
    from privspan.cli._task import Task
    from privspan.planner import Plan
    from privspan.privacy import Release


@grouped
def fit(
    learning: Learning,
    output: Annotated[Path, output_to("The .npz file to write.")],
    database: Database,
    reading: Reading,
    account: Account,
    told: Circumstances,
    context: typer.Context,
    file: TableFile = None,
    columns: Columns = None,
    report: Annotated[Path | None, option("--report", "Write a report for people, one .html page.", "FILE")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> int:
    """Learn a subspace of a table privately and write it to a file.

    A private PCA: components, variances and a mean. With --exact instead:
    exact relations between columns. What is written is private. The budget
    is spent once the private step begins, whether it answers, abstains or
    is interrupted.

    Example:

    privspan fit people.csv -k 3 --epsilon 1 --delta 1e-6 -o subspace.npz
    """
    place = table_place(file, database)
    inputs = {"the table": place.path, "the ledger": account.ledger}
    check_target(output, "-o", (".npz",), spare=inputs, overwrite=overwrite)
    check_target(report, "--report", (".html",), spare={**inputs, "the file of -o": output}, overwrite=overwrite)
    what = learning.describe()
    charge = charge_for(learning.epsilon, learning.delta, what, place=place, account=account, reading=reading)
    from privspan.cli._task import Task

    task = Task(**vars(learning))
    task.check_options()
    if task.seed is not None:
        _console.warn("--seed makes the noise repeatable: this result is NOT PRIVATE and must not leave your hands.")
    given = context.obj or Invocation()
    with interruptible() as interrupts:
        record = Record(**vars(told), command=_as_typed(given.arguments), schema=_text_of(reading.schema))
        delivery = Delivery(output, report, json, overwrite, interrupts, record, given.steps)
        try:
            made = _learn(task, place, None if columns is None else split_names(columns), reading, charge, delivery)
            return delivery.tell(*made)
        except KeyboardInterrupt:
            raise Complaint(f"interrupted. {delivery.kept or charge.spent()}", ExitCode.INTERRUPTED) from None
        except Exception as error:
            if charge.begun and (delivery.kept or not isinstance(error, Complaint)):
                error.add_note(Note(delivery.kept or charge.spent()))
            raise


def _as_typed(arguments: list[str]) -> str | None:
    """Return the command line for the report; None where it is not known."""
    return shlex.join(["privspan", *for_report(arguments)]) if arguments else None


def _text_of(schema: Path | None) -> str | None:
    """Return the text of a schema file, which is public; None if there is none, or it cannot be read."""
    try:
        return None if schema is None else schema.read_text("utf-8")
    except (OSError, ValueError):  # refused in better words when it is used
        return None


def _learn(
    task: Task, place: Place, columns: list[str] | None, reading: Reading, charge: Charge, delivery: Delivery
) -> tuple[Release, Plan | None]:
    """Read, check, charge, run, and write the result before anything else can happen."""
    charge.check()
    with activity(f"Reading {place.name}") as shown, delivery.steps.open(place, columns, reading, shown) as source:
        tell_left_out(source, place, asked=columns is not None, declared=reading.schema is not None)
        table = task.people(source)
        mu, aside = task.check(table) or (None, 0.0)
        about = {
            "source": table_in_words(place, table),
            "left_out": tuple((column.name, column.reason) for column in source.left_out),
        }
        delivery.record = replace(delivery.record, **about)  # type: ignore[arg-type]
        shown.now("Learning privately", task.rows_to_see(table), table.shape[0] * table.width)
        with charge.spending(mu=mu, aside=aside) as spending, watching_rows(shown.advance):
            made = delivery.steps.learn(task, table)
            delivery.interrupts.hold()
            spending.outcome = "abstained" if made[0].abstained else "finished"
            delivery.record = replace(delivery.record, ledger=charge.told())
            delivery.save(*made)
    delivery.interrupts.let_through()
    return made
