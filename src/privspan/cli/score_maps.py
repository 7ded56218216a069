"""``privspan score-map``: a noisy map of people's scores, which may be shown; charged to the ledger like a fit."""

from __future__ import annotations

from dataclasses import asdict
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from privspan._lib.errors import Note
from privspan._lib.whole_file import whole_file
from privspan.cli import _console
from privspan.cli._charge import Charge, charge_for
from privspan.cli._groups import Account, Reading
from privspan.cli._interrupts import Interrupts, interruptible
from privspan.cli._options import (
    Delta,
    Epsilon,
    Json,
    Overwrite,
    budget_float,
    check_target,
    grouped,
    option,
    output_to,
)
from privspan.cli._place import Database, Place, TableFile, table_place
from privspan.cli._progress import activity
from privspan.cli._table import columns_of, open_table
from privspan.cli.exits import Complaint, ExitCode
from privspan.cli.read import SubspaceFile, load

if TYPE_CHECKING:
    from privspan.ledger.release_file import SavedRelease
    from privspan.sums.score_map import ScoreMap

Components = Annotated[tuple[int, int], option("--components", "Which two components, from 1.", "A B")]


@grouped
def score_map(
    subspace: SubspaceFile,
    epsilon: Epsilon,
    delta: Delta,
    output: Annotated[Path, output_to("The .json file to write: counts, borders, cost.")],
    database: Database,
    reading: Reading,
    account: Account,
    file: TableFile = None,
    components: Components = (1, 2),
    plot: Annotated[Path | None, option("--plot", "Draw the map into a .png, .svg or .pdf.", "FILE")] = None,
    overwrite: Overwrite = False,
    json: Json = False,
) -> None:
    """Count privately how many people have which scores: a map to show.

    A release of its own, with a budget in addition to that of the subspace.

    Example:

    privspan score-map subspace.npz people.csv --epsilon 1 --delta 1e-6 -o m.json
    """
    place = table_place(file, database)
    inputs = {"the table": place.path, "the subspace": subspace, "the ledger": account.ledger}
    check_target(output, "-o", (".json",), spare=inputs, overwrite=overwrite)
    check_target(plot, "--plot", (".png", ".svg", ".pdf"), spare=inputs, overwrite=overwrite)
    charge = charge_for(epsilon, delta, "map of scores", place=place, account=account, reading=reading)
    saved, kept = load(subspace), ""
    with interruptible() as interrupts:
        try:
            made = _made(saved, place, reading, charge, (components[0] - 1, components[1] - 1), interrupts)
            kept = _save(made, output, overwrite)
            interrupts.let_through()
            if plot is not None:
                _draw(made, plot, overwrite)
        except KeyboardInterrupt:
            raise Complaint(f"interrupted. {kept or charge.spent()}", ExitCode.INTERRUPTED) from None
        except Exception as error:
            if charge.begun:
                error.add_note(Note(kept or charge.spent()))
            raise
    if json:
        _console.print_json({"output": str(output), **_plain(made)})
    else:
        _console.print_lines(str(made))


def _made(
    saved: SavedRelease,
    place: Place,
    reading: Reading,
    charge: Charge,
    components: tuple[int, int],
    interrupts: Interrupts,
) -> ScoreMap:
    """Read, charge and count; what can be refused is refused before the charge."""
    from privspan.sums.score_map import private_score_map

    charge.check()
    found = saved.subspace
    if max(components) >= found.dimension or min(components) < 0 or components[0] == components[1]:
        raise Complaint(f"--components takes two different numbers from 1 to {found.dimension}, the dimension.")
    names = columns_of(found, place, reading)
    epsilon, delta = budget_float(charge.epsilon), budget_float(charge.delta)
    with activity(f"Reading {place.name}") as shown, open_table(place, names, reading, shown) as source:
        shown.now("Counting privately")
        with _console.warnings_in_words():
            made = private_score_map(
                source,
                saved.release or found,
                epsilon=epsilon,
                delta=delta,
                components=components,
                ledger=charge,
            )
        interrupts.hold()
    return made


def _plain(made: ScoreMap) -> dict[str, object]:
    """Return the map as JSON has it; components from 1."""
    from privspan._lib.frozen import plain

    kept = {name: value for name, value in asdict(made).items() if name not in ("labels", "class_counts")}
    return {name: plain(value) for name, value in kept.items()} | {"components": [one + 1 for one in made.components]}


def _save(made: ScoreMap, output: Path, overwrite: bool) -> str:
    """Write the map, or tell it where no file can be written: it is paid for."""
    try:
        with whole_file(output, overwrite=overwrite) as handle:
            handle.write(dumps(_plain(made), indent=1).encode())
    except OSError:
        _console.print_json({"output": None, **_plain(made)})
        words = f"could not write {str(output)!r}; the map, which is paid for, is on standard output, as JSON."
        raise Complaint(words, ExitCode.FAILED) from None
    return f"The budget is spent, and the result is in {str(output)!r}."


def _draw(made: ScoreMap, plot: Path, overwrite: bool) -> None:
    from privspan.cli._pictures import drawn, write
    from privspan.plot import score_map as draw

    write(plot, drawn(lambda ax: draw(made, ax=ax), (6.4, 4.8), plot.suffix), overwrite)
