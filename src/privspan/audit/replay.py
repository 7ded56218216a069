"""Replay: what replacing one record costs along the transcript of one run.

The real code runs once on a table, and every private step is kept: its exact value before the noise, the standard
deviation, and what came out. It runs again on a neighbour with the same outcomes handed back, so that every decision
is the same, and the values that go in are compared:

    spent  =  sum over all Gaussian steps of  ||(value - value') / sigma||².

If that never exceeds mu² the run is mu-GDP (docs/explanation/everyday-pca.md, lemma 2). If it is s² on every
transcript, whoever sees all outcomes tells the two tables apart exactly as well as N(0, 1) from N(s, 1). So
root(spent) / mu is the part of the claim that this pair of tables uses up.

Two steps of stable leverage count in their own way: of the coin between two margins the scores of its two chances are
compared in `spent`, as the proof does, and a basis in a random gauge is compared in the nearest one
(docs/explanation/stable-leverage.md). A coin tells less than the Gaussian step that it is counted as, so where an
epsilon is computed it enters with its exact law. Steps that are not Gaussian have no mu; their exact laws on both
tables are multiplied instead (`privspan.audit.laws`), and a step that selects is followed into everything that it may
select.

All private steps go through the few functions that `Transcript` names. They are replaced in whichever module holds
them, for as long as a transcript is open, so a mechanism that uses them is replayed without a line of its own.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes
from scipy.special import ndtri

from privspan.audit.laws import (
    Cells,
    covariance_cells,
    direction_cells,
    epsilon_at,
    exchanged,
    flipped_law,
    laplace_cells,
    product,
)
from privspan.baselines import _bingham, _common
from privspan.privacy import noise, selection
from privspan.stable import release as stable_release

Array = NDArray[np.float64]
Run = Callable[[Any], Any]  # from a table to what is released; public randomness must be the same on every call

_RAREST = 1e-9  # selections that are rarer on the first table are not followed, which makes less be found


class ReplayError(AssertionError):
    """Something other than a released value has decided what a run does."""


@dataclass(frozen=True)
class Coin:
    """A test that says yes with these chances on the two tables."""

    chance: float
    other: float
    before: float  # sum of squares of the steps before it
    cost: float  # what it adds to that sum in the proof


@dataclass(frozen=True)
class Path:
    """One way through the selections of a run.

    Attributes
    ----------
    chance, other : float
        Of these selections, on the first table and on the second.
    spent : float
        The sum of squares of the Gaussian steps.
    laws : tuple of pairs of arrays
        Of the steps that are neither Gaussian nor selections.
    results : tuple
        What the runs returned. If both tables can come this way, they must say the same: all that was released is.
    coin : Coin or None
        The test of stable leverage, where the tables differ in its chance or in the basis that is seen after *yes*;
        `spent` has it as the proof counts it.
    """

    chance: float
    other: float
    spent: float
    laws: tuple[Cells, ...]
    results: tuple[Any, Any]
    coin: Coin | None = None


class Transcript(AbstractContextManager["Transcript"]):
    """Records and replays private steps, while it is open.

    Parameters
    ----------
    answer : bool, optional
        What the test of stable leverage is to say; *yes* only where that is likelier than the delta that pays for a
        wrong one. By default its coin decides.
    """

    def __init__(self, *, answer: bool | None = None) -> None:
        self.results: list[Any] = []  # of the two runs of the last replay
        self.margins: list[int] = []  # that the coins have seen
        self._answer = answer
        self._genuine: dict[str, Callable[..., Any]] = {}
        self._swapped: list[tuple[Callable[..., Any], Callable[..., Any]]] = []  # genuine, and what stands for it
        self._steps: list[tuple[Any, ...]] = []
        self._position: int | None = None  # in the replay; None while a run is recorded
        self._choices: tuple[int, ...] = ()  # outcomes of the first selections, by number
        self._selected: list[tuple[Array, int]] = []  # law and outcome of every selection
        self._spent, self._laws = 0.0, list[Cells]()
        self._heard, self._said = 0.0, False  # chance of the last coin, and what it says
        self._coin_seen: Coin | None = None
        self._last_coin: Coin | None = None

    def _hooks(self) -> list[tuple[Any, str, Callable[..., Any]]]:
        return [
            (noise, "add_gaussian", self._gaussian),
            (stable_release, "goes_on", self._coin),
            (stable_release, "certified_items", self._test),
            (stable_release, "_with_noise", self._basis),
            (selection, "permute_and_flip", self._selection),
            (selection, "releases", self._decision),
            (_common, "add_laplace", self._laplace),
            (_common, "wishart_root", self._wishart),
            (_bingham, "drawn_direction", self._direction),
        ]

    def __enter__(self) -> Transcript:
        hooks = self._hooks()
        self._genuine = {name: getattr(module, name) for module, name, _ in hooks}
        self._swapped = [(self._genuine[name], instead) for _, name, instead in hooks]
        _swap(self._swapped)
        return self

    def __exit__(self, *_: object) -> None:
        _swap([(instead, genuine) for genuine, instead in self._swapped])  # also in modules loaded meanwhile

    def spent_by(self, run: Run, table: Any, neighbour: Any) -> float:
        """Return the sum of squares along one run, whose selections go the likeliest way."""
        return self._path(run, table, neighbour, ()).spent

    def paths(self, run: Run, table: Any, neighbour: Any) -> list[Path]:
        """Return every way that the selections of a run can go; one if there are none."""
        found, waiting = list[Path](), list[tuple[int, ...]]([()])
        while waiting:
            choices = waiting.pop()
            found.append(self._path(run, table, neighbour, choices))
            for place in range(len(choices), len(self._selected)):
                law, taken = self._selected[place]
                before = tuple(outcome for _, outcome in self._selected[:place])
                waiting += [(*before, int(other)) for other in np.flatnonzero(law > _RAREST) if other != taken]
        return found

    def _path(self, run: Run, table: Any, neighbour: Any, choices: tuple[int, ...]) -> Path:
        self._steps, self._position, self._choices, self._selected = [], None, choices, []
        self._spent, self._laws, self._coin_seen, self._last_coin = 0.0, [], None, None
        first = run(table)
        selected, self._selected, self._position = self._selected, [], 0
        self.results = [first, run(neighbour)]
        if self._position != len(self._steps):
            raise ReplayError("the number of steps depends on unreleased values")
        chances = [math.prod(float(law[taken]) for law, taken in side) for side in (selected, self._selected)]
        self._selected = selected
        return Path(chances[0], chances[1], self._spent, tuple(self._laws), (first, self.results[1]), self._coin_seen)

    def _kept(self, kind: str, *values: Any) -> tuple[Any, ...] | None:
        """Keep a step of the first run and return None, or return what the first run kept of the same step."""
        if self._position is None:
            self._steps.append((kind, *values))
            return None
        if self._position == len(self._steps) or self._steps[self._position][0] != kind:
            raise ReplayError("which step comes next depends on unreleased values")
        self._position += 1
        return self._steps[self._position - 1][1:]

    # ---- Gaussian steps, and those of stable leverage ----------------------------------------------------------

    def _gaussian(self, values: Array, sigma: float, bits: Any, *, grid: float | None = None) -> Array:
        step = noise.grid_for(sigma) if grid is None else grid
        values = np.rint(values / step) * step
        released = values if self._replaying else self._genuine["add_gaussian"](values, sigma, bits, grid=grid)
        before = self._kept("noise", values, sigma, released)
        if before is not None:
            known, known_sigma, released = before
            if sigma != known_sigma or values.shape != known.shape:
                raise ReplayError("a noise level or a shape depends on unreleased values")
            self._spent += float(np.sum(((values - known) / sigma) ** 2))
        return np.array(released)  # a copy: the algorithm may work on in its own array

    def _basis(self, basis: Array, shift: float, mu: float, bits: Any) -> Any:
        before = self._kept("basis", basis)
        if before is not None:  # the gauge is drawn at random, so the nearest is as likely as any
            basis = basis @ orthogonal_procrustes(basis, before[0])[0]
        spent = self._spent
        released = self._genuine["_with_noise"](basis, shift, mu, bits)
        if self._spent > spent:  # which is seen after *yes* only, whatever the coin tells by itself
            self._coin_seen = self._coin_seen or self._last_coin
        return released

    def _coin(self, margin: int, mu: float, delta: float, bits: Any) -> bool:
        """Hear with which chance the test of stable leverage goes on, and go on where it may, whatever it says."""
        self.margins.append(margin)
        said = _Overheard()
        self._genuine["goes_on"](margin, mu, delta, said)
        self._heard, self._said = said.chance, said.chance > delta and self._answer is not False
        if self._answer is None and not self._replaying:
            self._said = self._genuine["goes_on"](margin, mu, delta, bits)
        return self._heard > 0.0

    def _test(self, gram: Array, width: int, k: int, plan: Any, mu: float, delta: float, bits: Any) -> Any:
        self._heard, self._said = 0.0, False  # where there are no levels there is no coin: it is *no* for certain
        passed = self._genuine["certified_items"](gram, width, k, plan, mu, delta, bits)
        before = self._kept("test", self._heard, self._said)
        answer = self._said
        if before is not None:
            known, answer = before
            if min(known, self._heard) > 0.0:
                cost = float(ndtri(known) - ndtri(self._heard)) ** 2
                self._last_coin = Coin(known, self._heard, self._spent, cost)
                self._coin_seen = self._coin_seen or (self._last_coin if cost else None)
                self._spent += cost
            elif answer or max(known, self._heard) > delta:
                self._spent = math.inf  # *yes* gives one of the tables away, more often than delta allows
        return passed if answer else None

    @property
    def _replaying(self) -> bool:
        return self._position is not None

    # ---- Steps with other laws ---------------------------------------------------------------------------------

    def _selection(self, scores: Sequence[int], epsilon: float, bits: Any) -> int:
        return self._taken(flipped_law(scores, epsilon))

    def _decision(self, margin: int, epsilon: float, delta: float, bits: Any, release: Any = "optimal") -> bool:
        chance = float(selection.release_probability(margin, epsilon, delta, release))
        return self._taken(np.array([1.0 - chance, chance])) == 1

    def _taken(self, law: Array) -> int:
        """Return what is asked for, or else what is likeliest on the first table."""
        place = len(self._selected)
        outcome = self._choices[place] if place < len(self._choices) else int(np.argmax(law))
        before = self._kept("selection", outcome)
        outcome = outcome if before is None else before[0]
        self._selected.append((law, outcome))
        return outcome

    def _laplace(self, values: Array, scale: float, generator: Any) -> Array:
        released = values if self._replaying else self._genuine["add_laplace"](values, scale, generator)
        before = self._kept("laplace", values, released)
        if before is not None:
            known, released = before
            self._laws += [laplace_cells(*pair, scale) for pair in zip(known, values, strict=True)]
        return np.array(released)

    def _wishart(self, root: Array, degrees: int, generator: Any, *, inverse: bool = False) -> Array:
        drawn = root
        if not self._replaying:
            drawn = self._genuine["wishart_root"](root, degrees, generator, inverse=inverse)
        before = self._kept("wishart", root, drawn)
        if before is not None:
            known, drawn = before
            first, second = (root, known) if inverse else (known, root)
            self._laws += covariance_cells(first @ first.T, second @ second.T, degrees)
        return np.array(drawn)

    def _direction(self, matrix: Array, weight: float, tries: int, generator: Any) -> Array | None:
        drawn: Array | None = None
        if not self._replaying or len(matrix) == 1:
            drawn = self._genuine["drawn_direction"](matrix, weight, tries, generator)
        if len(matrix) == 1:  # there is but one direction
            return drawn
        before = self._kept("direction", matrix, drawn)
        if before is not None:
            known, drawn = before
            self._laws.append(direction_cells(known, matrix, weight))
        return drawn


class _Overheard:
    """Stands for a source of bits, to hear with which chance a coin is thrown."""

    chance = 0.0

    def bernoulli(self, numerator: int, bits: int) -> bool:
        self.chance = float(Fraction(numerator, 2**bits))
        return False


def spent_by(run: Run, table: Any, neighbour: Any, *, answer: bool | None = None) -> float:
    """Return what replacing one record costs along one run: `Transcript.spent_by`, opened and closed."""
    with Transcript(answer=answer) as transcript:
        return transcript.spent_by(run, table, neighbour)


def replayed_epsilon(paths: Sequence[Path], delta: float) -> float:
    """Return the epsilon at delta of whoever sees all outcomes of a run, from either table to the other."""
    parts = [part for path in paths for part in _parts(path)]
    turned = [(exchanged(cells), mu) for cells, mu in parts]
    return max(epsilon_at(delta, *parts), epsilon_at(delta, *turned))


def _parts(path: Path) -> Iterator[tuple[Cells, float]]:
    """Yield the laws and the mu of a way through a run: once, or after *yes* and after *no*.

    A run that goes on after *no* tells more than is counted here, so that what is found is too low; that all of it
    costs no more than is claimed is seen by a replay in which the answer is *no*.
    """
    cells = product(path.laws)
    cells = path.chance * cells[0], path.other * cells[1]
    if path.coin is None:
        yield cells, math.sqrt(path.spent)
        return
    yes, other, before = path.coin.chance, path.coin.other, path.coin.before
    yield (yes * cells[0], other * cells[1]), math.sqrt(max(before, path.spent - path.coin.cost))
    yield ((1.0 - yes) * cells[0], (1.0 - other) * cells[1]), math.sqrt(before)


def is_gaussian(paths: Sequence[Path]) -> bool:
    """Tell whether all private steps of a run are Gaussian, so that its mu says everything."""
    (path, *others) = paths
    return not others and path.chance == path.other == 1.0 and not path.laws and path.coin is None


def _swap(pairs: Sequence[tuple[Callable[..., Any], Callable[..., Any]]]) -> None:
    """Put the second of each pair in the place of the first wherever the package holds it by name, in one sweep."""
    instead = {id(old): new for old, new in pairs}
    for module in _modules():
        for name, value in list(vars(module).items()):
            if id(value) in instead:
                setattr(module, name, instead[id(value)])


def _modules() -> Iterator[Any]:
    """Yield the modules of this package that are loaded."""
    return (module for name, module in list(sys.modules.items()) if name.partition(".")[0] == "privspan")
