"""From lines of the store to medians, and from medians to Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks import environments
from benchmarks.cells import ABSTAINED, NOT_APPLICABLE, OK, Suite
from benchmarks.methods import METHODS
from benchmarks.store import Row, read_rows
from benchmarks.suites import SUITES

USELESS = 0.5
"""An error from here on tells next to nothing: half of some direction, or more, is noise."""

TIE = 1.05
"""Errors whose ratio is below this are called a tie."""

_LABELS = {
    "sklearn_full": "scikit-learn PCA, not private",
    "sklearn_randomized": "scikit-learn PCA, randomized, not private",
    "diffprivlib": f"diffprivlib {environments.version('diffprivlib')}",
    "opendp": f"OpenDP {environments.version('opendp')}",
    "plain": "Gaussian mechanism on all coordinates",
    "envelope": "Analyze Gauss, true mean, best clip, not private",
    "exact": "exact_subspace",
    "boosted": "boosted_subspace",
}


def label(method: str) -> str:
    """Return a method's name for people."""
    return METHODS[method].label if method in METHODS else _LABELS.get(method, method)


@dataclass
class Group:
    """All runs of one method in one setting.

    Attributes
    ----------
    method : str
    setting : dict
        Names and values as in the store.
    rows : list of dict
        One per seed.
    """

    method: str
    setting: Mapping[str, str]
    rows: list[Row] = field(default_factory=list)

    def count(self, status: str) -> int:
        """How many runs ended so."""
        return sum(row["status"] == status for row in self.rows)

    def numbers(self, name: str) -> list[float]:
        """What was measured in the runs that gave an answer."""
        return [float(row[name]) for row in self.rows if row["status"] == OK and row[name] != ""]

    def median(self, name: str) -> float | None:
        """The median of those; None if no run gave an answer."""
        numbers = self.numbers(name)
        return statistics.median(numbers) if numbers else None

    @property
    def ran(self) -> int:
        """How many runs answered or abstained."""
        return self.count(OK) + self.count(ABSTAINED)

    @property
    def error(self) -> float | None:
        """The median error, with an abstention counted as 1; None if the method did not run here."""
        errors = [*self.numbers("error"), *[1.0] * self.count(ABSTAINED)]
        return statistics.median(errors) if errors else None


def groups(suite: Suite, rows: Iterable[Row]) -> list[Group]:
    """Gather the runs of the same method and setting, in the order of the grid: cells that run at once end in any."""
    found: dict[tuple[str, ...], Group] = {}
    for row in rows:
        key = (row["method"], *(row[name] for name in suite.settings))
        if key not in found:
            found[key] = Group(row["method"], {name: row[name] for name in suite.settings})
        found[key].rows.append(row)
    places: dict[tuple[str, ...], int] = {}
    for place, cell in enumerate(suite.cells(False)):
        places.setdefault(cell.key[:-1], place)  # the last entry is the seed
    return [found[key] for key in sorted(found, key=lambda key: places.get(key, len(places)))]


def stored_groups(folder: Path) -> dict[str, list[Group]]:
    """Return the groups of every suite that has results in a folder."""
    return {suite.name: groups(suite, rows) for suite in SUITES.values() if (rows := read_rows(folder, suite))}


def where(some: Iterable[Group], **setting: object) -> list[Group]:
    """Return the groups with these numbers in their setting (or this ``method``)."""
    wanted = {name: str(value) for name, value in setting.items()}
    return [one for one in some if all({**one.setting, "method": one.method}[key] == wanted[key] for key in wanted)]


def best(some: Iterable[Group], among: Callable[[str], bool]) -> Group | None:
    """Return the group with the smallest error among the methods that are let in."""
    running = [
        (one.error, index, one) for index, one in enumerate(some) if among(one.method) and one.error is not None
    ]
    return min(running)[2] if running else None


def is_ours(method: str) -> bool:
    """Whether this is one of our own algorithms ("auto" is not counted: it is one of the others)."""
    return method in METHODS and METHODS[method].ours and method != "auto"


def is_prior(method: str) -> bool:
    """Whether this is a prior system."""
    return method in METHODS and not METHODS[method].ours


def markdown_table(header: list[str], lines: Iterable[list[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join(f"| {' | '.join(line)} |" for line in [header, ["---"] * len(header), *lines]) + "\n"


def suite_table(suite: Suite, some: Iterable[Group]) -> str:
    """Return everything a suite measured as one Markdown table, medians over the seeds."""
    header = ["method", *suite.settings, "answered", *suite.values, "seconds", "memory MB", "note"]
    return markdown_table(header, (_summary_line(suite, one) for one in some))


def _summary_line(suite: Suite, one: Group) -> list[str]:
    memory = max((float(row["memory_mb"]) for row in one.rows if row["memory_mb"]), default=None)
    notes = dict.fromkeys(f"{row['status']}: {row['note']}" for row in one.rows if row["note"])
    answered = "–" if one.count(NOT_APPLICABLE) == len(one.rows) else f"{one.count(OK)} of {len(one.rows)}"
    measured = [shown(one.median(name)) for name in suite.values]
    return [
        label(one.method), *one.setting.values(), answered, *measured,
        shown(one.median("seconds")), shown(memory), "; ".join(notes),
    ]  # fmt: skip


def shown(number: float | None) -> str:
    """Return a number as tables show it: three digits, a dash for none."""
    if number is None:
        return "–"
    if number == 0 or 1e-3 <= abs(number) < 1e3:
        return f"{number:.3g}"
    return f"{number:,.0f}" if abs(number) >= 1e3 else f"{number:.1e}"
