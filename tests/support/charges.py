"""What a private step is charged and what it adds: the bounds of its sums, the sums themselves, and the noise.

A test that reads these sees a constant, a share or a rounding charge that has gone wrong at once, where one that
looks at the results would need thousands of runs.
"""

import math
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from unittest import mock

import numpy as np

from privspan.privacy.run import Run
from privspan.sums import grid


@dataclass(frozen=True)
class Charged:
    """One call of `noise_level`: what a record is said to do, for which mu, and the noise that is made of it."""

    bounds: grid.SumBounds
    mu: float
    level: grid.NoiseLevel


@dataclass(frozen=True)
class Added:
    """One call of `Run.gaussian`."""

    values: np.ndarray
    sigma: float


@dataclass
class Seen:
    """All that was charged and added, in the order of the calls."""

    charged: list[Charged] = field(default_factory=list)
    added: list[Added] = field(default_factory=list)
    chunks: list[np.ndarray] = field(default_factory=list)  # sums of chunks, as float64 has them

    @property
    def sigmas(self) -> list[float]:
        return [one.sigma for one in self.added]

    @property
    def mus(self) -> list[float]:
        return [one.mu for one in self.charged]

    def charged_error(self) -> Fraction:
        """The error of a chunk that the only sum is charged for."""
        (one,) = self.charged
        return Fraction(one.bounds.chunk_error)


@contextmanager
def watched() -> Iterator[Seen]:
    """Watch every sum and every Gaussian noise of the package, wherever a module holds the functions by name."""
    seen = Seen()
    level, draw, add = grid.noise_level, Run.gaussian, grid.GridSum.add

    def noise_level(bounds, mu, **options):
        made = level(bounds, mu, **options)
        seen.charged.append(Charged(bounds, mu, made))
        return made

    def gaussian(self, values, sigma, grid=None):
        seen.added.append(Added(np.array(values), sigma))
        return draw(self, values, sigma, grid)

    def add_chunk(self, chunk):
        seen.chunks.append(np.array(chunk))
        add(self, chunk)

    with ExitStack() as patches:
        for module in list(sys.modules.values()):
            if module.__name__.startswith("privspan.") and vars(module).get("noise_level") is level:
                patches.enter_context(mock.patch.object(module, "noise_level", noise_level))
        patches.enter_context(mock.patch.object(Run, "gaussian", gaussian))
        patches.enter_context(mock.patch.object(grid.GridSum, "add", add_chunk))
        yield seen


def is_noise_of(sigma: float, change: float, mu: float) -> bool:
    """Tell whether noise makes a change mu-GDP, with nothing to spare but what rounding is charged."""
    return change / mu <= sigma <= change / mu * (1.0 + 1e-5)


def composed(*mus: float) -> float:
    """The mu of all steps together."""
    return math.sqrt(math.fsum(mu * mu for mu in mus))
