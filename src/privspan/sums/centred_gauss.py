"""Second moments of wide tables about the mean, revealed where they are looked at, with a second release to come.

A moment is revealed in few directions, as `privspan.sums.lazy_gauss` does it, with the mean carried along as in
`privspan.sums.looks`.  What is kept for a second look is spent when the first has shown what is needed: on the same
moment once more, which takes no pass over the rows, or on unit rows.
Proofs: docs/explanation/everyday-tables.md, lemma 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from numpy.typing import NDArray

from privspan.privacy.run import Run
from privspan.rows.partitioned_rows import AnyRows, PerRow
from privspan.sums.grid import NoiseLevel
from privspan.sums.lazy_gauss import Asked, UnitGram
from privspan.sums.lifts import Lift
from privspan.sums.looks import AugmentedGram, mean_part, shared_levels

Array = NDArray[np.float64]


@dataclass
class _Moment:
    """What is known of one noisy second moment: its image of the directions, and what that tells of the mean."""

    image: Array  # (d + 1, most directions)
    level: NoiseLevel
    mean: Array = field(default_factory=lambda: np.empty(0))
    mean_noise: float = 0.0
    added: Array = field(default_factory=lambda: np.empty(0))


class CentredGauss(Asked):
    """Noisy second moments of rows about their means, revealed block by block on the same directions.

    There is one at first.  Whoever gives two mus, and a constant, may then either `strengthen` it or
    `look_at_unit_rows` besides.

    Parameters
    ----------
    rows : Rows
        Of length at most 1.
    factors : (n,) array or RowValues
        As for `AugmentedGram`.
    constant : float
        0 if the mean is known to be zero; then the rows are taken as they are.
    mus : sequence of float
        Privacy of everything that is ever revealed of the moment, and of what follows.
    run : Run
        Draws the noise.
    first : (d, b) array
        First directions, public.
    columns, passes : int
        Most directions, and most passes over the rows.
    lift, count
        As for `released_looks`.
    unit : bool
        Whether to look at unit rows from the beginning.

    Attributes
    ----------
    directions : (d, m) array
        Revealed so far.
    noises : list of float
        Standard deviations off the diagonal, of each moment.
    added : list of (d,) arrays
        b, if the mean has added b bᵀ to the sum.
    mean, mean_noise : (d,) array, float
        Of the rows of the first moment.
    passes : int
        Made so far.

    Guarantee
    ---------
    What is revealed is Gaussian with the first mu until unit rows are looked at or one of the two is called, and then
    with both, whose squares add up, for replace-one neighbours.  Proof: docs/explanation/everyday-tables.md, lemma 3.
    """

    def __init__(
        self,
        rows: AnyRows,
        factors: PerRow | None,
        constant: float,
        mus: Sequence[float],
        run: Run,
        *,
        first: Array,
        columns: int,
        passes: int,
        lift: Lift | None = None,
        count: float | None = None,
        unit: bool = False,
    ) -> None:
        self._d, self._count = rows.shape[1], rows.shape[0] if count is None else count
        self._own = 1 if constant else 0  # directions that are for the mean
        self._grams = partial(AugmentedGram, rows, constant=constant, lift=lift)
        self._factors, self._constant, self._run, self.passes = factors, constant, run, 0
        source = self._grams([factors, None][: 1 + unit]) if constant else UnitGram(rows, lift)
        super().__init__(source, most_columns=columns + self._own, most_passes=passes)
        levels = shared_levels(self._bounds, mus)
        self._moments = [_Moment(self._room_for_columns(), level) for level in levels[: 1 + unit]]
        self._spare = levels[1 + unit :]  # of what may follow
        self._summed: list[tuple[slice, tuple[Array, Array]]] = []  # never released but with noise
        last = np.zeros((self._d + self._own, self._own))
        last[self._d :] = 1.0
        self._reveal(np.hstack([last, self._padded(first)]))
        for moment in self._moments:
            self._read_mean(moment)

    def _padded(self, block: Array) -> Array:
        return np.vstack([block, np.zeros((self._own, block.shape[1]))])

    def _read_mean(self, moment: _Moment) -> None:
        """Read the mean off the first direction, which is plus or minus the last axis if that is for the mean."""
        column = moment.image[: self._d, 0] * self.basis[-1, 0]
        parts = mean_part(column, moment.level.sigma, self._count, self._constant)
        moment.mean, moment.mean_noise, moment.added = parts

    @property
    def most_directions(self) -> int:
        """How many directions may be revealed, the one for the mean not counted."""
        return self._most_columns - self._own

    @property
    def noises(self) -> list[float]:
        """Standard deviations off the diagonal."""
        return [moment.level.sigma for moment in self._moments]

    @property
    def added(self) -> list[Array]:
        """What the means have added to the sums, as vectors."""
        return [moment.added for moment in self._moments]

    @property
    def mean(self) -> Array:
        """Mean of the rows of the first moment."""
        return self._moments[0].mean

    @property
    def mean_noise(self) -> float:
        """Noise of its coordinates."""
        return self._moments[0].mean_noise

    @property
    def directions(self) -> Array:
        """Directions revealed so far."""
        return self.basis[: self._d, self._own :]

    def image(self, number: int, start: int = 0) -> Array:
        """Return that moment about the mean, times the directions from `start` on."""
        moment, columns = self._moments[number], slice(self._own + start, self._columns)
        image = moment.image[: self._d, columns]
        return image - np.outer(moment.added, moment.added @ self.directions[:, start:]) if self._own else image

    def extend(self, block: Array) -> bool:
        """Reveal all moments on the directions of `block` that are new; False if nothing could be revealed."""
        return self._reveal(self._padded(block))

    def strengthen(self) -> float:
        """Spend the second mu on the same moment: release again what was summed up, and average.

        Later blocks get the lower noise at once.  Returns its square over that of before.
        """
        (moment,), second = self._moments, self._spend()
        first, again = moment.level, _Moment(self._room_for_columns(), second)
        for last, seen in self._summed:
            self._fill(again, last, seen)
        weight = first.sigma**2 / (first.sigma**2 + second.sigma**2)
        known = moment.image[:, : self._columns]
        known += weight * (again.image[:, : self._columns] - known)
        # Rounded up by more than these operations can be off: 1 / sigma² is at most the sum of both.
        joint = first.sigma * second.sigma / math.hypot(first.sigma, second.sigma) * (1.0 + 2.0**-48)
        moment.level = NoiseLevel(joint, first.grid)
        self._summed = []
        self._read_mean(moment)
        return (joint / first.sigma) ** 2

    def look_at_unit_rows(self) -> None:
        """Spend the second mu on a look at unit rows: in all directions so far, and in those that follow.

        Raises
        ------
        RuntimeError
            After the last pass, which the sensitivity provides for.
        """
        if self._passes_left < 1:
            raise RuntimeError("A look at unit rows takes a pass, and none is left.")
        unit = _Moment(self._room_for_columns(), self._spend())
        self._source, self._passes_left, self.passes = self._grams([None]), self._passes_left - 1, self.passes + 1
        (seen,) = self._seen(self.basis, unit.level.grid)
        self._fill(unit, slice(0, self._columns), seen)
        self._moments.append(unit)
        self._source, self._summed = self._grams([self._factors, None]), []
        self._read_mean(unit)

    def _spend(self) -> NoiseLevel:
        """Return the noise of the second look, which there is once."""
        if not self._spare:
            raise RuntimeError("There is no second look, or it has been had.")
        return self._spare.pop()

    def _reveal(self, block: Array) -> bool:
        before = self._columns
        fresh = self._asked(block)
        if fresh is None:
            return False
        self.passes += 1
        last, seen = slice(before, self._columns), self._seen(fresh, self._moments[0].level.grid)
        if self._spare:
            self._summed.append((last, seen[0]))
        for moment, part in zip(self._moments, seen, strict=True):
            self._fill(moment, last, part)
        return True

    def _fill(self, moment: _Moment, last: slice, seen: tuple[Array, Array]) -> None:
        """Release what was seen of a moment in some directions, given what it has shown in those before them."""
        before, image = slice(0, last.start), moment.image
        known = self._basis[:, before] @ (image[:, before].T @ self._basis[:, last])  # by symmetry
        image[:, last] = known + self._noisy(last, seen, moment.level, self._run)
