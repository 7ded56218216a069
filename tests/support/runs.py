"""Runs for tests: of a seed, of a replay, or with outcomes that a test has chosen.

`Told` is handed in as `rng`, as the transcript of an audit is: public functions run as users run them, nothing is
patched, and the six draws of private noise are overridden in one place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import pytest

from privspan.privacy import Budget
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.randomness import Child, Streams
from privspan.privacy.run import Run, open_run


def seeded(rng=0, epsilon=1.0, delta=1e-6, mu=None, **account) -> Run:
    """Return a run of a seed, or of what stands for one, with an account of its own."""
    return open_run(MuLedger(Budget(epsilon, delta), mu, **account), rng)


class Told:
    """Stands for a seed: its runs keep what their draws are asked for, and say what they are told.

    Parameters
    ----------
    seed : int
        Of whatever nobody tells.
    answers : callables by the name of a draw
        From its arguments to its outcome.

    Attributes
    ----------
    asked : dict of lists
        The arguments of every draw so far, by its name.
    children : list of Child
        Of the seed, whose streams were asked for.
    """

    def __init__(self, seed: int = 0, **answers: Callable[..., Any]) -> None:
        self.seed, self.answers = seed, answers
        self.asked: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self.children: list[Child] = []

    def run(self, account: MuLedger, streams: Streams) -> Run:
        """Return the run of a private call."""
        return _Run(account, streams, self)

    def draw(self, name: str, sound: Callable[..., Any], *arguments: Any) -> Any:
        """Keep the arguments of a draw, and return its outcome."""
        self.asked[name].append(arguments)
        return self.answers.get(name, sound)(*arguments)


def noiseless(seed: int = 0) -> Told:
    """Return what makes runs whose Gaussian noise is none."""
    return Told(seed, gaussian=lambda values, *_: values.copy())


def answering(yes: bool, seed: int = 0) -> Told:
    """Return what makes runs in which the test of stable leverage says so."""
    return Told(seed, test=lambda *_: yes)


class NoDraws:
    """Stands for a seed that must not be needed: no stream is opened, and so no bit is drawn and no run begins."""

    @property
    def seed(self) -> int:
        pytest.fail("a stream was opened")

    def run(self, *_: Any) -> Run:
        pytest.fail("a run began")


class _Run(Run):
    def __init__(self, account: MuLedger, streams: Streams, told: Told) -> None:
        super().__init__(account, streams)
        self._told = told

    def on(self, child: Child) -> Run:
        self._told.children.append(child)
        return _Run(self.account, self.streams.child(child), self._told)

    def within(self, account: MuLedger) -> Run:
        return _Run(account, self.streams, self._told)

    def gaussian(self, values, sigma, grid=None):
        return self._told.draw("gaussian", super().gaussian, values, sigma, grid)

    def test(self, margin, coin):
        return self._told.draw("test", super().test, margin, coin)

    def basis(self, basis, shift, error, mu, delta):
        return self._told.draw("basis", super().basis, basis, shift, error, mu, delta)

    def select(self, scores, epsilon):
        return self._told.draw("select", super().select, scores, epsilon)

    def draw(self, law, *arguments):
        return self._told.draw("draw", super().draw, law, *arguments)

    def decide(self, margin, epsilon, delta, rule="optimal"):
        return self._told.draw("decide", super().decide, margin, epsilon, delta, rule)
