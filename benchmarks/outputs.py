"""What a run leaves beside its CSV files: one Markdown page of tables, and the figures."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures import FIGURES
from benchmarks.store import read_rows, replace_file
from benchmarks.suites import SUITES
from benchmarks.summary import suite_table


def write_outputs(folder: Path) -> str:
    """Write ``summary.md`` and the figures of every suite that has results; return where they are, in a sentence."""
    parts, drawn = [], 0
    for suite in SUITES.values():
        rows = read_rows(folder, suite)
        if rows:
            parts.append(f"## {suite.name}\n\n{suite.question} Medians over the seeds.\n\n{suite_table(suite, rows)}")
            drawn += draw(folder, suite.name, folder / "figures")
    replace_file(folder / "summary.md", "# Benchmark\n\n" + "\n".join(parts))
    return f"{folder / 'summary.md'} has the tables, {folder / 'figures'} {drawn} figures."


def draw(folder: Path, suite: str, target: Path) -> int:
    """Draw the figure of a suite into a folder; return how many were drawn."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    if suite not in FIGURES:
        return 0
    target.mkdir(parents=True, exist_ok=True)
    figure = FIGURES[suite](read_rows(folder, SUITES[suite]))
    figure.savefig(target / f"{suite}.png", dpi=110, metadata={"Software": None})
    plt.close(figure)
    return 1
