"""The words of the benchmark: cell, outcome, suite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

Value = int | float | str

OK = "ok"
ABSTAINED = "abstained"
NOT_APPLICABLE = "not applicable"
NOT_AVAILABLE = "not available"
OUT_OF_TIME = "time limit"
FAILED = "failed"
STATUSES = (OK, ABSTAINED, NOT_APPLICABLE, NOT_AVAILABLE, OUT_OF_TIME, FAILED)
"""How a cell can end. Only the first two have measured values."""

WORTH_ANOTHER_TRY = (NOT_AVAILABLE, OUT_OF_TIME, FAILED)
"""What ``--retry`` runs again."""


class NotApplicableError(Exception):
    """The method does not take this setting: too many columns, too few rows. The message says why."""


class NotAvailableError(Exception):
    """Something that has to be installed is not. The message says what."""


class AbstainedError(Exception):
    """The method ran and gave no answer; `seconds` is how long it took."""

    def __init__(self, seconds: float) -> None:
        super().__init__("no answer")
        self.seconds = seconds


@dataclass(frozen=True)
class Cell:
    """One run of one method on one data set.

    Attributes
    ----------
    suite, method : str
        Names in `benchmarks.suites.SUITES` and, mostly, in `benchmarks.methods.METHODS`.
    setting : dict
        The numbers of the setting, under the names that the suite declares, in that order.
    seed : int
        Of the data and of the noise.
    """

    suite: str
    method: str
    setting: Mapping[str, Value]
    seed: int

    @property
    def key(self) -> tuple[str, ...]:
        """What tells this cell from every other of its suite, as it is written in the store."""
        return (self.method, *(str(value) for value in self.setting.values()), str(self.seed))


@dataclass(frozen=True)
class Outcome:
    """What came of a cell.

    Attributes
    ----------
    status : str
        One of `STATUSES`.
    values : dict
        What was measured, under the names that the suite declares; empty unless `status` is "ok".
    seconds : float or None
        Time in the method, without making the data.
    memory_mb : float or None
        Largest memory of the process, data included.
    note : str
        Why there is no value, in one line.
    """

    status: str
    values: Mapping[str, Value] = field(default_factory=dict)
    seconds: float | None = None
    memory_mb: float | None = None
    note: str = ""


@dataclass(frozen=True)
class Suite:
    """A question, and the cells that answer it.

    Attributes
    ----------
    name : str
        As given to ``--suite``.
    question : str
        One sentence.
    settings, values : tuple of str
        Names of the columns of a setting and of what is measured.
    cells : callable
        From "quick?" to the cells, the first seed of every setting first, so that a run that is stopped half-way
        has something to say about everything.
    measure : callable
        From a cell to ``(values, seconds)``; runs in a process of its own. May raise the errors of this module.
    limit : callable
        From "quick?" to the seconds that a cell may take.
    alone : bool
        Whether its cells must not share the machine: times are measured, or much memory is taken.
    prepare : callable or None
        Called once in the main process before the first cell, to install what is needed.
    """

    name: str
    question: str
    settings: tuple[str, ...]
    values: tuple[str, ...]
    cells: Callable[[bool], Iterator[Cell]]
    measure: Callable[[Cell], tuple[dict[str, Value], float]]
    limit: Callable[[bool], float]
    alone: bool = False
    prepare: Callable[[], None] | None = None
