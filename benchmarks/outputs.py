"""What a run leaves beside its CSV files: one Markdown page of tables, and the figures."""

from __future__ import annotations

from pathlib import Path

from benchmarks.figures import FIGURES
from benchmarks.store import replace_file
from benchmarks.suites import SUITES
from benchmarks.summary import Group, stored_groups, suite_table


def write_outputs(folder: Path) -> str:
    """Write ``summary.md`` and the figures of every suite that has results; return where they are, in a sentence."""
    stored = stored_groups(folder)
    parts = [
        f"## {name}\n\n{SUITES[name].question} Medians over the seeds.\n\n{suite_table(SUITES[name], some)}"
        for name, some in stored.items()
    ]
    replace_file(folder / "summary.md", "# Benchmark\n\n" + "\n".join(parts))
    draw(stored, folder / "figures")
    return f"{folder / 'summary.md'} has the tables, {folder / 'figures'} {len(stored)} figures."


def draw(stored: dict[str, list[Group]], target: Path) -> None:
    """Draw the figure of every suite into a folder."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    target.mkdir(parents=True, exist_ok=True)
    for name, some in stored.items():
        figure = FIGURES[name](some)
        figure.savefig(target / f"{name}.png", dpi=110, metadata={"Software": None})
        plt.close(figure)
