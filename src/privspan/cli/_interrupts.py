"""Ctrl-C and SIGTERM: both end a command alike, but never between a private step and the file of its result."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


class Interrupts:
    """What to do when one comes: raise ``KeyboardInterrupt`` at once, or first let something be finished."""

    def __init__(self) -> None:
        self._held = self._came = False

    def __call__(self, *_: object) -> None:
        """Take an interruption: what the signals call."""
        if not self._held:
            raise KeyboardInterrupt
        self._came = True

    def hold(self) -> None:
        """Put interruptions off."""
        self._held = True

    def let_through(self) -> None:
        """Stop putting them off, and raise one that came meanwhile."""
        self._held = False
        if self._came:
            self._came = False
            raise KeyboardInterrupt


@contextmanager
def interruptible() -> Iterator[Interrupts]:
    """Let Ctrl-C and SIGTERM both raise ``KeyboardInterrupt`` inside, so that a command cleans up and says so."""
    interrupts = Interrupts()
    before = {}
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) not in (signal.SIG_IGN, None):  # ignored in the background of a shell
                before[number] = signal.signal(number, interrupts)
    except ValueError:  # not in the main thread
        pass
    try:
        yield interrupts
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
