"""What a command says on standard error while it works for more than two seconds.

Row counts are public, so telling them tells nothing.  How long is left is told only where the number of rows still to
be looked at is known, at least roughly; elsewhere the display says how long it has taken and no more.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from rich.text import Text

from privspan._lib.readable import readable
from privspan.cli import _console

_PATIENCE = 2.0  # seconds of silence
_LINES_AT = (2.0, 10.0, 30.0, 60.0)  # where there is no terminal to draw on; later once a minute
_ENOUGH = 0.03  # share of the rows from which a rate is believed
_NEARLY = 0.97


class Activity:
    """Something that takes its time, counted in rows.

    Those that will be looked at, once for each pass, if that is known; how many there are in a pass, if it makes
    several; and those of a stream or a database that have been read.
    """

    def __init__(self, what: str, rows: float | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._begun = clock, clock()
        self.now(what, rows)

    def now(self, what: str, rows: float | None = None, in_a_pass: int | None = None) -> None:
        """Go on to the next stage; its time counts from here."""
        self.what, self.rows, self.done, self.in_a_pass, self.arrived = what, rows, 0, in_a_pass, 0
        self._first = self._clock()

    def read(self, rows: int) -> None:
        """Count rows that have arrived."""
        self.arrived += rows

    def advance(self, rows: int) -> None:
        """Count rows that have been looked at."""
        self.done += rows

    def elapsed(self) -> float:
        """Return the seconds since the beginning."""
        return self._clock() - self._begun

    def describe(self) -> str:
        """Return what there is to say now."""
        arrived = f", {self.arrived:,} rows read" if self.arrived else ""
        return f"{self.what}: {_spoken(self.elapsed())} so far{arrived}{self._pass()}{self._left()}"

    def _pass(self) -> str:
        if not (self.in_a_pass and self.done):
            return ""
        number = -(-self.done // self.in_a_pass)
        planned = 0 if self.rows is None else round(self.rows / self.in_a_pass)
        return f", pass {number} of about {planned} over the rows" if planned >= number else f", pass {number}"

    def _left(self) -> str:
        if self.rows is None or self.done < _ENOUGH * self.rows:
            return ""
        if self.done >= _NEARLY * self.rows:
            return ", nearly done"
        left = (self.rows - self.done) * (self._clock() - self._first) / self.done
        return ", nearly done" if left < 1.0 else f", about {_spoken(left)} left"


@contextmanager
def activity(
    what: str, rows: float | None = None, patience: float = _PATIENCE, lines_at: Sequence[float] = _LINES_AT
) -> Iterator[Activity]:
    """Show the activity on standard error, from the third second on, until the block ends."""
    shown = Activity(what, rows)
    finished = threading.Event()
    display = threading.Thread(target=_display, args=(shown, finished, patience, lines_at), daemon=True)
    display.start()
    try:
        yield shown
    finally:
        finished.set()
        display.join()


def _display(shown: Activity, finished: threading.Event, patience: float, lines_at: Sequence[float]) -> None:
    with suppress(OSError, ValueError):  # standard error may be full or closed
        if _console.stderr().is_terminal:
            _draw(shown, finished, patience)
        else:
            _write_lines(shown, finished, lines_at)


def _draw(shown: Activity, finished: threading.Event, patience: float) -> None:
    """Keep one line of a terminal up to date, and clear it in the end."""

    def described() -> Text:  # not a str, in which brackets of a file's name would be read as markup
        return Text(readable(shown.describe()))

    if finished.wait(patience):
        return
    with _console.stderr().status(described()) as line:
        while not finished.wait(0.25):
            line.update(described())


def _write_lines(shown: Activity, finished: threading.Event, lines_at: Sequence[float]) -> None:
    """Write a line now and then."""
    moments = iter(lines_at)
    moment = next(moments)
    while not finished.wait(max(0.0, moment - shown.elapsed())):
        _console.note(shown.describe())
        moment = next(moments, moment + 60.0)


def _spoken(seconds: float) -> str:
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 100 else f"{minutes / 60:.1f} h"
