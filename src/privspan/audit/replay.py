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

All private steps go through the six draws of a `Run`. A `Transcript` is handed to a private function as its `rng`
and makes the run itself: a `Replay`, which overrides those six. Nothing is patched, and a mechanism is replayed as
users run it, without a line of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import orthogonal_procrustes
from scipy.special import ndtri

from privspan._lib.arrays import Reals
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
from privspan.audit.releases import Released
from privspan.baselines._bingham import drawn_direction
from privspan.baselines._common import add_laplace, wishart_root
from privspan.privacy import coin as thrown
from privspan.privacy import selection
from privspan.privacy.mu_ledger import MuLedger
from privspan.privacy.noise import grid_for
from privspan.privacy.randomness import BitSource, Child, RunMaker, Streams
from privspan.privacy.run import Run

Array = NDArray[np.float64]
Repeated = Callable[[Reals, "Transcript"], Released]
"""From a table, and what is handed on as `rng`, to what is released."""

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

    If both tables can come this way, the results must say the same: all that was released is.
    """

    chance: float  # of these selections, on the first table
    other: float  # and on the second
    spent: float  # the sum of squares of the Gaussian steps, and of the coin as the proof counts it
    laws: tuple[Cells, ...]  # of the steps that are neither Gaussian nor selections
    results: tuple[Released, Released]
    coin: Coin | None = None  # the test, where the tables differ in its chance or in the basis seen after *yes*


class Transcript:
    """Records and replays private steps.  It is handed to a private function as `rng`, and makes its `Run`.

    The seed is that of everything that is drawn, the same for both tables. `answer` is what the test of stable
    leverage is to say, *yes* only where that is likelier than the delta that pays for a wrong one; its coin decides
    by default.
    """

    def __init__(self, seed: int = 0, *, answer: bool | None = None) -> None:
        self.seed = seed
        self.results: list[Released] = []  # of the two runs of the last replay
        self.margins: list[int] = []  # that the coins have seen
        self.answer = answer
        self.spent, self.laws = 0.0, list[Cells]()
        self.last_coin: Coin | None = None
        self.coin_seen: Coin | None = None
        self._steps: list[tuple[Any, ...]] = []
        self._position: int | None = None  # in the replay; None while a run is recorded
        self._choices: tuple[int, ...] = ()  # outcomes of the first selections, by number
        self._selected: list[tuple[Array, int]] = []  # law and outcome of every selection

    def run(self, account: MuLedger, streams: Streams) -> Run:
        """Return the run of a private call, whose draws this transcript keeps or replays."""
        return Replay(account, streams, self)

    def seeded(self, seed: int) -> RunMaker:
        """Return what stands for another seed and keeps the same transcript."""
        return _Seeded(seed, self)

    def spent_by(self, run: Repeated, table: Reals, neighbour: Reals) -> float:
        """Return the sum of squares along one run, whose selections go the likeliest way."""
        return self._path(run, table, neighbour, ()).spent

    def paths(self, run: Repeated, table: Reals, neighbour: Reals) -> list[Path]:
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

    def _path(self, run: Repeated, table: Reals, neighbour: Reals, choices: tuple[int, ...]) -> Path:
        self._steps, self._position, self._choices, self._selected = [], None, choices, []
        self.spent, self.laws, self.coin_seen, self.last_coin = 0.0, [], None, None
        first = run(table, self)
        selected, self._selected, self._position = self._selected, [], 0
        self.results = [first, run(neighbour, self)]
        if self._position != len(self._steps):
            raise ReplayError("the number of steps depends on unreleased values")
        chances = [math.prod(float(law[taken]) for law, taken in side) for side in (selected, self._selected)]
        self._selected = selected
        return Path(chances[0], chances[1], self.spent, tuple(self.laws), (first, self.results[1]), self.coin_seen)

    def kept(self, kind: str, *values: object) -> tuple[Any, ...] | None:
        """Keep a step of the first run and return None, or return what the first run kept of the same step."""
        if self._position is None:
            self._steps.append((kind, *values))
            return None
        if self._position == len(self._steps) or self._steps[self._position][0] != kind:
            raise ReplayError("which step comes next depends on unreleased values")
        self._position += 1
        return self._steps[self._position - 1][1:]

    def taken(self, law: Array) -> int:
        """Return what is asked for of a selection, or else what is likeliest on the first table."""
        place = len(self._selected)
        outcome = self._choices[place] if place < len(self._choices) else int(np.argmax(law))
        before = self.kept("selection", outcome)
        outcome = outcome if before is None else before[0]
        self._selected.append((law, outcome))
        return outcome

    @property
    def replaying(self) -> bool:
        """Whether this is the second run."""
        return self._position is not None


@dataclass(frozen=True)
class _Seeded:
    seed: int
    transcript: Transcript

    def run(self, account: MuLedger, streams: Streams) -> Run:
        return self.transcript.run(account, streams)


class Replay(Run):
    """A run whose private draws are those of a transcript."""

    def __init__(self, account: MuLedger, streams: Streams, transcript: Transcript) -> None:
        super().__init__(account, streams)
        self._transcript = transcript

    def on(self, child: Child) -> Replay:
        """Return a run with the streams of a child, in the same transcript."""
        return Replay(self.account, self.streams.child(child), self._transcript)

    def within(self, account: MuLedger) -> Replay:
        """Return a run with another account, in the same transcript."""
        return Replay(account, self.streams, self._transcript)

    # ---- Gaussian steps, and those of stable leverage ----------------------------------------------------------

    def gaussian(self, values: Array, sigma: float, grid: float | None = None) -> Array:
        """Compare the values that go in, in units of the noise, and hand back what came out of the first run."""
        step = grid_for(sigma) if grid is None else grid
        values = np.rint(values / step) * step
        released = values if self._transcript.replaying else super().gaussian(values, sigma, grid)
        before = self._transcript.kept("noise", values, sigma, released)
        if before is not None:
            known, known_sigma, released = before
            if sigma != known_sigma or values.shape != known.shape:
                raise ReplayError("a noise level or a shape depends on unreleased values")
            self._transcript.spent += float(np.sum(((values - known) / sigma) ** 2))
        return np.array(released)  # a copy: the algorithm may work on in its own array

    def _turned(self, basis: Array, shift: float, mu: float) -> tuple[Array, float]:
        transcript = self._transcript
        before, spent = transcript.kept("basis", basis), transcript.spent
        if before is not None:  # the gauge is drawn at random, so the nearest is as likely as any
            basis = basis @ orthogonal_procrustes(basis, before[0])[0]
        released = super()._turned(basis, shift, mu)
        if transcript.spent > spent:  # which is seen after *yes* only, whatever the coin tells by itself
            transcript.coin_seen = transcript.coin_seen or transcript.last_coin
        return released

    def test(self, margin: int, coin: thrown.Coin) -> bool:
        """Compare the scores of the chances with which the test of stable leverage goes on."""
        transcript = self._transcript
        transcript.margins.append(margin)
        overheard = _Overheard()
        thrown.goes_on(margin, coin, overheard)
        heard = overheard.chance
        said = heard > coin.delta and transcript.answer is not False
        if transcript.answer is None and not transcript.replaying:
            said = super().test(margin, coin)
        before = transcript.kept("test", heard, said)
        if before is None:
            return said
        known, answer = before
        if min(known, heard) > 0.0:
            cost = float(ndtri(known) - ndtri(heard)) ** 2
            transcript.last_coin = Coin(known, heard, transcript.spent, cost)
            transcript.coin_seen = transcript.coin_seen or (transcript.last_coin if cost else None)
            transcript.spent += cost
        elif answer or max(known, heard) > coin.delta:
            transcript.spent = math.inf  # *yes* gives one of the tables away, more often than delta allows
        return bool(answer and heard > 0.0)

    # ---- Steps with other laws ---------------------------------------------------------------------------------

    def select(self, scores: Sequence[int], epsilon: float) -> int:
        """Take one of the outcomes, and note its law."""
        return self._transcript.taken(flipped_law(scores, epsilon))

    def decide(self, margin: int, epsilon: float, delta: float, rule: selection.ReleaseRule = "optimal") -> bool:
        """Take one of the outcomes, and note its law."""
        chance = float(selection.release_probability(margin, epsilon, delta, rule))
        return self._transcript.taken(np.array([1.0 - chance, chance])) == 1

    def draw(self, law: Callable[..., Any], *arguments: Any) -> Any:
        """Note the exact laws on both tables, and hand back what was drawn in the first run.

        What is drawn without regard to the data, a rotation or noise that is added, is drawn again.
        """
        compared = _LAWS.get(law)
        if compared is None or (law is drawn_direction and len(arguments[0]) == 1):  # there is but one direction
            return super().draw(law, *arguments)
        drawn = None if self._transcript.replaying else super().draw(law, *arguments)
        before = self._transcript.kept(law.__name__, arguments, drawn)
        if before is not None:
            known, drawn = before
            self._transcript.laws += compared(known, arguments)
        return None if drawn is None else np.array(drawn)


_Arguments = tuple[Any, ...]  # of a law, but for the generator


def _wishart_laws(known: _Arguments, now: _Arguments) -> list[Cells]:
    (before, *_), (root, degrees, inverse) = known, now
    first, second = (root, before) if inverse else (before, root)
    return covariance_cells(first @ first.T, second @ second.T, degrees)


_LAWS: dict[object, Callable[[_Arguments, _Arguments], list[Cells]]] = {
    add_laplace: lambda known, now: [laplace_cells(*pair, now[1]) for pair in zip(known[0], now[0], strict=True)],
    wishart_root: _wishart_laws,
    drawn_direction: lambda known, now: [direction_cells(known[0], now[0], now[1])],
}


class _Overheard(BitSource):
    """Stands for a source of bits, to hear with which chance a coin is thrown."""

    chance = 0.0

    def bernoulli(self, numerator: int, bits: int) -> bool:
        self.chance = float(Fraction(numerator, 2**bits))
        return False


def spent_by(run: Repeated, table: Reals, neighbour: Reals, *, seed: int = 0, answer: bool | None = None) -> float:
    """Return what replacing one record costs along one run: `Transcript.spent_by`."""
    return Transcript(seed, answer=answer).spent_by(run, table, neighbour)


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
