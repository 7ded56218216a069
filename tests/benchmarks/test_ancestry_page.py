"""The tutorial on ancestry says what was measured."""

import csv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EPSILONS = ("0.3", "1", "3")


def measured() -> dict[tuple[str, str, str, str], str]:
    """Return accuracy in per cent, by way, method, number of components and epsilon."""
    with (ROOT / "benchmarks" / "results" / "ancestry.csv").open() as file:
        return {
            (row["way"], row["method"], row["k"], row["epsilon"]): (
                f"{100 * float(row['accuracy']):.1f} ± {100 * float(row['standard_error']):.1f}"
            )
            for row in csv.DictReader(file)
        }


def line(way: str, method: str, k: str) -> str:
    """Return a line of a table of the page."""
    found = measured()
    cells = [found[way, method, k, epsilon] for epsilon in EPSILONS]
    return " | ".join(("", k, *cells, found[way, "not private", k, "inf"], "")).strip()


@pytest.mark.parametrize("case", sorted({case[:3] for case in measured() if case[1] != "not private"}))
def test_the_page_says_what_was_measured(case):
    page = (ROOT / "docs" / "tutorial" / "ancestry.md").read_text("utf-8")
    assert line(*case) in page
