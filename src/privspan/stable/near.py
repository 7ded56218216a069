"""People near a subspace that need not go through zero: the course for every tail, with the mean carried along.

Rows about a rough centre get one more entry, a constant.  If they lie near a k-dimensional subspace through *some*
point, the longer rows lie near a (k + 1)-dimensional subspace through zero, whatever that point is: its directions
without a constant are the ones that are wanted, and the point can be read off.  So an error of the centre, which
would keep residuals long and with them the noise of localised rounds, costs little more than one more direction.
Whether most people are that near is asked first, by one noisy count.  Proofs: docs/explanation/near-a-subspace.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan.privacy import Budget
from privspan.privacy.run import Run
from privspan.privacy.zero_out import MOMENTS
from privspan.rows import GatheredRows, PartitionedTable
from privspan.rows.partitioned_rows import open_unit_rows
from privspan.rows.persons import PersonTable
from privspan.rows.unit import is_sparse
from privspan.stable.course import course_within, delta_share
from privspan.stable.records import group_grams, public_groups
from privspan.stable.scales import each_alone
from privspan.sums.about import with_constant
from privspan.sums.centre import Centre, noise_ratio, polished_centre
from privspan.sums.everyday import searches
from privspan.sums.everyday_look import EverydayLook, share_errors
from privspan.sums.grid import SumBounds, gaussian_sum
from privspan.sums.judge import MANY_COLUMNS, Captured
from privspan.sums.lengths import LONGEST
from privspan.sums.loadings import errors_after_turning, told_errors
from privspan.sums.variance import second_moments

Array = NDArray[np.float64]

_CONSTANT = 0.3  # the entry that is added, in typical lengths
_OF_EVEN = 0.44  # after the question, at most so much of the length of a row along one of k equal directions
_ROWS = 2  # a group has this many times k + 2 rows
_NEAR = 0.06  # most energy of a group off its best k + 1 directions
_NEAR_OF_MANY, _FALL = 0.205, 1.35  # where columns are many, for k = 3; with this power of 4 / (k + 1) for more
_SURE = 1.0 / 20.0  # most z for that
_PROBE = 6.0  # groups over the noise of the count: nearly all of them are near, or nearly none
_LEAST_PROBE = 5.0  # the same, where that would cost more than
_MOST_PROBE = 0.04  # of mu²
_LEAST_COLUMNS = 4  # times k + 1; with fewer there is little room off a subspace
_MOMENTS = (0.1, 60.0)  # share of what is left for the second moments: at most, and (this / n mu)²
_ADDS = 0.25  # to the noise, per squared error of the centre, for each direction that is looked for
_LITTLE = 1.0 / 8.0  # z beyond which a better centre costs more than it helps, and one may be far off:
_EXACT = 0.003  # most energy there, of what is off the first direction, which may be the error of the centre
_SURELY_FOUND = 1.9  # and least typical length over that error
_NO_ENERGY = 1e-12
_CLIP = 2.0  # of these, in typical lengths
_CHEAP = 0.004  # of mu²; a count need not cost less
_MOST_ENTRIES = 2**26  # of the rows that are drawn for it
_LEAST_SLOPE = 0.05  # of the constant's direction in the subspace, for a point to be read off


def can_be_near(source: Any, k: int, mu: float) -> bool:
    """Tell from public numbers whether it is worth asking if most rows lie near a subspace."""
    n, d = map(int, source.shape)
    enough = d >= _LEAST_COLUMNS * (k + 1) and searches(n, d, mu) and not is_sparse(source)
    return enough and _groups(n, d, k, mu) * mu * math.sqrt(_MOST_PROBE) >= _LEAST_PROBE


def probe_share(n: int, d: int, k: int, mu: float) -> float:
    """Return the share of mu² of the count: its noise is then a sixth of the number of groups, at most a fifth."""
    return min((_PROBE / (max(_groups(n, d, k, mu), 1) * mu)) ** 2, _MOST_PROBE)


def _groups(n: int, d: int, k: int, mu: float) -> int:
    """Return how many groups are asked: no more than make the count cheap, and than are quickly held in memory."""
    rows = min(n, _MOST_ENTRIES // (d + 1))
    return min(rows // (_ROWS * (k + 2)), math.ceil(_PROBE / (mu * math.sqrt(_CHEAP))))


def most_off(n: int, d: int, k: int, mu: float, error: float = 0.0) -> float:
    """Return the most energy of a group off its best k + 1 directions that counts as near.

    With many columns the noise of looks is worse than what rows of one length change of PCA, so the tail may be as
    heavy as one of k equal directions: about this is what groups see of it, less the part that the `error` of the
    rough centre, in typical lengths, has in every row.  With little data one look is as good, and with very little it
    is better unless the tail is next to nothing: of what is off the first direction, there.
    """
    z = noise_ratio(n, d, mu)
    if z > _LITTLE:
        return _EXACT
    if d < MANY_COLUMNS or z > _SURE:
        return _NEAR
    return max(_NEAR, _NEAR_OF_MANY * math.pow(min(1.0, 4.0 / (k + 1)), _FALL) * (1.0 - min(error, 1.0) ** 2))


def test_share(source: Any, k: int, budget: Budget) -> float:
    """Return the fraction of delta to set aside for the test of stable leverage, from public numbers."""
    if not can_be_near(source, k, budget.mu):
        return 0.0
    n, d = map(int, source.shape)
    return delta_share(np.broadcast_to(0.0, (n, d + 1)), k + 1, budget, 0.8)


@dataclass(frozen=True)
class NearCourse:
    """What `everyday_pca` asks once it has a centre: a look near a subspace, or None to go on as usual."""

    source: Any
    k: int
    run: Run
    apart: Run  # with other streams, for the course

    def __call__(self, centre: Centre) -> EverydayLook | None:
        """Ask whether most rows are near a subspace; if so, learn it with all that is left.

        Guarantee
        ---------
        (mu, set_aside)-approximate GDP for replace-one neighbours, with the mu that it takes from the account and
        what that has set aside, for a released centre.  Proof: docs/explanation/near-a-subspace.md.
        """
        # Lengths are not measured beyond a cap; there the constant would be nothing beside the rows.
        measured = centre.measured and centre.length < LONGEST / 2.0
        n, d = map(int, self.source.shape)
        little = noise_ratio(n, d, self.run.account.mu) > _LITTLE
        sure = not little or centre.length >= _SURELY_FOUND * centre.error
        if not (measured and sure and can_be_near(self.source, self.k, self.run.account.mu)):
            return None
        made = partial(with_constant, centre=centre.vector(d), constant=_CONSTANT * centre.length)
        mu = self.run.account.spend("near a subspace?", probe_share(n, d, self.k, self.run.account.mu))
        bar = most_off(n, d, self.k, self.run.account.mu, centre.error / centre.length)
        groups = _groups(n, d, self.k, self.run.account.mu)
        if not most_are_near(self.source, self.k, groups, bar, mu, self.run, but_first=little, made=made):
            return None
        centre = self._polished(centre)
        rows = with_constant(self.source, centre.vector(d), self._constant(centre))
        most, needed = _MOMENTS
        moments = self.run.account.left * min(most, (needed / (n * self.run.account.mu)) ** 2 + 0.01)
        inner = self.run.account.nested("subspace near most rows", self.run.account.left - moments)
        found = course_within(self.apart.within(inner), rows, self.k + 1, constant=True)
        mu = self.run.account.spend("second moments", self.run.account.left, MOMENTS)
        assert found.subspace is not None
        seen = _measured(rows, found.subspace.basis, _CLIP * centre.length, mu, self.run)
        return self._look(centre, seen, found.parameters)

    def _polished(self, centre: Centre) -> Centre:
        """Make the centre better as far as that pays, by all rows: it may have been found among a few of them."""
        n, d = map(int, self.source.shape)
        if noise_ratio(n, d, self.run.account.mu) > _LITTLE:
            return centre
        weight = _ADDS * self.k
        polished = polished_centre(self.source, replace(centre, rows=None), self.run, weight)
        lost = not polished.located or polished.length >= LONGEST / 2.0
        return centre if lost else polished

    def _constant(self, centre: Centre) -> float:
        """Return the entry that is added: a larger one would hide weak directions in short rows."""
        return min(_CONSTANT, _OF_EVEN / math.sqrt(self.k)) * centre.length

    def _look(self, centre: Centre, seen: _Measured, told: Any) -> EverydayLook:
        """Cut the subspace of the longer rows down to one of the rows, and say what is known of it."""
        cut = _cut(seen, self._constant(centre))
        d, k = cut.basis.shape
        found, errors, error = min(k, int(told["stands_out"])), told_errors(told, k), float(told["expected_error"])
        of_found = float(told.get("expected_error_of_found", error))
        explained = float(cut.variances.sum())
        total = explained + seen.outside
        # What the directions are off costs the squared sine of what lies along them; the rest was never in reach.
        value = max(explained / max(total, 1e-300), 1.0 - error * error)
        unsure = of_found * of_found + (1.0 - min(value, 1.0) if found < k else 0.0)
        off = of_found * math.sqrt(max(explained, 0.0))  # of the mean, at right angles to the subspace
        point_error = math.hypot(cut.point_std * math.sqrt(k), off)
        weight = centre.error**2 / max(centre.error**2 + point_error**2, 1e-300)  # by precision, as in the search
        return EverydayLook(
            basis=cut.basis,
            mean=centre.vector(d) + weight * cut.point,
            mean_std=math.sqrt(weight / d) * point_error,
            variances=cut.variances,
            variances_std=seen.noise,
            total=total,
            total_std=seen.noise * math.sqrt(k + 1.0),
            ratios=cut.variances / max(total, 1e-300),
            ratios_std=share_errors(
                cut.variances, seen.noise, max(total, 1e-300), seen.noise * math.sqrt(k + 1.0), within=True
            ),
            captured=Captured(value, min(1.0, unsure)),
            stands_out=found,
            clip=_CLIP * centre.length,
            shortened=None,
            shortened_std=None,
            length=centre.length,
            rounds=centre.rounds,
            course="near a subspace",
            weight=1.0,
            passes=None,
            shares=self.run.account.shares,
            basis_std=errors_after_turning(cut.basis, cut.variances, seen.noise, errors),
            filled=centre.vector(d),
        )


def most_are_near(
    rows: Any,
    k: int,
    groups: int,
    bar: float,
    mu: float,
    run: Run,
    *,
    but_first: bool = False,
    made: Callable[[Any], Any] = lambda rows: rows,
) -> bool:
    """Tell whether half of so many groups of 2 (k + 2) rows have no more than `bar` energy off k + 1 directions.

    That is of all their energy, or of what they have off the first direction.  `made` turns rows into those that are
    meant, each by itself.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours: groups are disjoint and public, and each value is a function of its own
    records, so a record moves the count by at most one.  Proof: docs/explanation/near-a-subspace.md, lemma 1.
    """
    size = _ROWS * (k + 2)
    numbers = np.sort(run.streams.public.choice(int(rows.shape[0]), groups * size, replace=False, shuffle=False))
    rows = rows.one_each() if isinstance(rows, PersonTable) else rows
    dealt = public_groups(len(numbers), size - 1, run.streams.public)  # (groups, size)
    if isinstance(rows, np.ndarray):  # any row is as quickly had as any other
        drawn, dealt = rows, numbers[dealt]
    else:
        drawn = (GatheredRows(rows) if isinstance(rows, PartitionedTable) else rows)[numbers]
    off = partial(_off, rank=k + 1, but_first=but_first)
    near = np.concatenate([each_alone(off, grams) for grams in group_grams(made(drawn), dealt)])
    counted = np.array([np.count_nonzero(near <= bar)], dtype=np.float64)
    count, _ = gaussian_sum([counted], (1,), SumBounds(1.0, 0.0, 1, 1.1 * groups), mu, run)
    return bool(count[0] >= groups / 2)


def _off(grams: Array, rank: int, but_first: bool = False) -> Array:
    """Return the share of the energy of unit records off their best `rank` directions, of all or off the first.

    From their Gram matrices (groups, m, m).
    """
    values = np.linalg.eigvalsh(grams)  # rising
    whole = np.maximum(values[:, :-1].sum(axis=1), _NO_ENERGY) if but_first else grams.shape[1]
    return np.asarray(values[:, :-rank].sum(axis=1) / whole)


@dataclass(frozen=True)
class _Measured:
    """Second moments, per row, of the longer rows along a released basis (d + 1, k + 1) and off it."""

    basis: Array
    inside: Array  # (k + 1, k + 1)
    outside: float
    noise: float


def _measured(rows: Any, basis: Array, clip: float, mu: float, run: Run) -> _Measured:
    n = int(rows.shape[0])
    inside, outside, noise = second_moments(open_unit_rows(rows, clip=clip), basis, mu, run)
    scale = clip * clip / n
    return _Measured(basis, inside * scale, max(outside, 0.0) * scale, noise * scale)


@dataclass(frozen=True)
class _Cut:
    """A basis (d, k) by falling variance, the variances about the mean, and the mean seen from the centre."""

    basis: Array
    variances: Array
    point: Array
    point_std: float


def _cut(seen: _Measured, constant: float) -> _Cut:
    """Leave out the one direction of a subspace (d + 1, k + 1) that has the constant."""
    slopes = seen.basis[-1]  # (k + 1,)
    slope = float(np.linalg.norm(slopes))
    first = slopes / slope if slope > _LEAST_SLOPE else np.eye(len(slopes))[-1]
    turn = np.linalg.qr(np.column_stack([first, np.eye(len(slopes))]))[0]  # (k + 1, k + 1)
    turn[:, 0] = first  # the same but for its sign
    moments, basis = turn.T @ seen.inside @ turn, seen.basis @ turn
    height = constant / max(slope, _LEAST_SLOPE)  # of every row near the subspace, along the first direction
    means, std = moments[1:, 0] / height, seen.noise / height  # (k,), along the others
    shrink = max(0.0, 1.0 - len(means) * std**2 / max(float(means @ means), 1e-300))  # James and Stein
    values, axes = np.linalg.eigh(moments[1:, 1:] - shrink * np.outer(means, means))
    flat = np.linalg.qr(basis[:-1, 1:] @ axes[:, ::-1])[0]  # (d, k); a QR keeps the order and the directions
    point = basis[:-1] @ np.append(height, shrink * means) if slope > _LEAST_SLOPE else np.zeros(len(flat))
    return _Cut(flat, np.maximum(values[::-1], 0.0), point, std)
