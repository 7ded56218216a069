"""How often does stable leverage abstain on the benchmark's grid, with the code as it is and as results are stored?

Every cell of the suites accuracy, growth and map that the method takes is run again, with the seeds of the benchmark,
and compared with benchmarks/results/. One line per setting, then the sums; --output stores them as CSV.

python benchmarks/scripts/stable_abstentions.py --quick
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))  # the benchmark is no part of the package

from benchmarks.cells import ABSTAINED, NOT_APPLICABLE, OK, Cell, Suite  # noqa: E402
from benchmarks.runner import outcome_of  # noqa: E402
from benchmarks.store import read_rows  # noqa: E402
from benchmarks.suites.accuracy import ACCURACY, GROWTH, MAP  # noqa: E402

COLUMNS = ("data", "n", "d", "gamma_w", "epsilon", "runs", "abstained", "abstained_stored", "median_error", "seconds")
Settings = dict[tuple[str, ...], list[tuple[Suite, Cell]]]


def stable_settings(most_rows: int, quick: bool) -> Settings:
    """Return the cells of the grid by setting; a setting that two suites share comes once from each."""
    settings: Settings = {}
    for suite in (ACCURACY, GROWTH, MAP):
        for cell in suite.cells(quick):
            if cell.method == "stable" and int(cell.setting["n"]) <= most_rows:
                key = (suite.name, *(str(value) for value in cell.setting.values()))
                settings.setdefault(key, []).append((suite, cell))
    return settings


def stored_statuses(folder: Path) -> dict[tuple[str, ...], str]:
    """Return how each cell ended when the results were stored."""
    return {
        (suite.name, row["method"], *(row[name] for name in suite.settings), row["seed"]): row["status"]
        for suite in (ACCURACY, GROWTH, MAP)
        for row in read_rows(folder, suite)
    }


def lines(settings: Settings, stored: dict[tuple[str, ...], str]) -> Iterator[tuple[object, ...]]:
    """Run the cells and yield one line of `COLUMNS` per setting."""
    for cells in settings.values():
        outcomes = [outcome_of(cell, suite.measure) for suite, cell in cells]
        outcomes = [one for one in outcomes if one.status != NOT_APPLICABLE]
        if not all(one.status in (OK, ABSTAINED) for one in outcomes):
            raise RuntimeError("\n".join(one.note for one in outcomes))
        if outcomes:
            before = [stored.get((suite.name, *cell.key), "") for suite, cell in cells]
            errors = [float(one.values["error"]) if one.status == OK else 1.0 for one in outcomes]
            data, n, d, _, gamma_w, epsilon = cells[0][1].setting.values()
            silent = sum(one.status == ABSTAINED for one in outcomes)
            seconds = np.median([one.seconds or 0.0 for one in outcomes])
            counts = len(outcomes), silent, before.count(ABSTAINED)
            yield data, n, d, gamma_w, epsilon, *counts, f"{np.median(errors):.5f}", f"{seconds:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--most-rows", type=int, default=4_000, help="leave out settings with more records")
    parser.add_argument("--output", type=Path, help="CSV file to write")
    parser.add_argument("--quick", action="store_true", help="the small grid of the benchmark's quick form")
    options = parser.parse_args()
    print(" ".join(f"{name:>12s}" for name in COLUMNS))
    table = []
    for line in lines(
        stable_settings(options.most_rows, options.quick), stored_statuses(ROOT / "benchmarks/results")
    ):
        print(" ".join(f"{value!s:>12s}" for value in line), flush=True)
        table.append(line)
    runs, now, before = (sum(int(str(line[column])) for line in table) for column in (5, 6, 7))
    print(f"{now} of {runs} runs abstained; {before} of the same runs as stored")
    if options.output:
        with options.output.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows([COLUMNS, *table])


if __name__ == "__main__":
    main()
