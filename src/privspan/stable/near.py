"""People near a subspace that need not go through zero: the course for every tail, with the mean carried along.

Rows about a rough centre get one more entry, a constant.  If they lie near a k-dimensional subspace through *some*
point, the longer rows lie near a (k + 1)-dimensional subspace through zero, whatever that point is: its directions
without a constant are the ones that are wanted, and the point can be read off.  So an error of the centre, which
would keep residuals long and with them the noise of localised rounds, costs little more than one more direction.
Whether most people are that near is asked first, by one noisy count.  Proofs: docs/explanation/near-a-subspace.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib.watch import rows_seen
from privspan.privacy import Budget
from privspan.privacy.run import Run
from privspan.rows.limits import LIMITS
from privspan.rows.scaling import scaled_rows
from privspan.rows.source import as_source
from privspan.rows.table import LocalTable, Table
from privspan.stable.course import course_within, delta_share
from privspan.stable.records import public_groups
from privspan.stable.scales import each_alone
from privspan.sums.centre import Centre, as_good_among, noise_ratio, polished_centre
from privspan.sums.everyday import searches
from privspan.sums.everyday_tuning import EVERYDAY
from privspan.sums.grid import MOMENTS, SumBounds, gaussian_sum
from privspan.sums.lengths import LONGEST
from privspan.sums.loadings import errors_after_turning, told_errors
from privspan.sums.pca_result import Noisy, PCAResult, share_errors
from privspan.sums.variance import second_moments

Array = NDArray[np.float64]

_GROUP_ENTRIES = 2**17  # of the rows of groups that are looked at together: they stay in the cache
_NO_ENERGY = 1e-12  # of a Gram matrix in float64: below it is rounding


@dataclass(frozen=True)
class NearTuning:
    """Of the question and what follows *yes*, no part of a proof: fitted by benchmarks/scripts/everyday_tables.py."""

    constant: float = 0.3  # typical lengths, the entry that is added
    of_even: float = 0.44  # after the question, at most so much of a row along one of k equal directions: hides none
    rows: int = 2  # times k + 2 rows has a group: what is near a subspace then shows in most groups
    near: float = 0.06  # of the energy of a group, off its best k + 1 directions, at most
    near_of_many: float = 0.205  # the same where columns are many, for k = 3, as looks are worse there
    fall: float = 1.35  # with this power of 4 / (k + 1) for more
    sure: float = 1.0 / 20.0  # z, at most, for that
    probe: float = 6.0  # groups over the noise of the count: nearly all of them are near, or nearly none
    least_probe: float = 5.0  # the same, where that would cost more than
    most_probe: float = 0.04  # of mu²
    least_columns: int = 4  # times k + 1: with fewer there is little room off a subspace
    moments: tuple[float, float] = (0.1, 60.0)  # of what is left for second moments: at most, and (this / n mu)²
    adds: float = 0.25  # to the noise, per squared error of the centre, for each direction that is looked for
    little: float = 1.0 / 8.0  # z beyond which a better centre costs more than it helps, and one may be far off:
    exact: float = 0.003  # most energy there, of what is off the first direction, which may be that error
    surely_found: float = 1.9  # and least typical length over that error
    clip: float = 2.0  # typical lengths of these, for second moments
    cheap: float = 0.004  # of mu²; a count need not cost less
    least_slope: float = 0.05  # of the constant's direction in the subspace, for a point to be read off
    within: float = 0.5  # of the squared error of the centre, which may lie within the subspace: fitted on half A


NEAR = NearTuning()


def can_be_near(source: Table, k: int, mu: float, tuning: NearTuning = NEAR) -> bool:
    """Tell from public numbers whether it is worth asking if most rows lie near a subspace."""
    n, d = source.shape
    enough = d >= tuning.least_columns * (k + 1) and searches(n, d, mu) and not source.is_sparse
    return enough and _groups(n, d, k, mu, tuning) * mu * math.sqrt(tuning.most_probe) >= tuning.least_probe


def probe_share(n: int, d: int, k: int, mu: float, tuning: NearTuning = NEAR) -> float:
    """Return the share of mu² of the count: its noise is then a sixth of the number of groups, at most a fifth."""
    return min((tuning.probe / (max(_groups(n, d, k, mu, tuning), 1) * mu)) ** 2, tuning.most_probe)


def _groups(n: int, d: int, k: int, mu: float, tuning: NearTuning = NEAR) -> int:
    """Return how many groups are asked: no more than make the count cheap, and than are quickly held in memory."""
    rows = min(n, LIMITS.held_entries // (d + 1))
    return min(rows // (tuning.rows * (k + 2)), math.ceil(tuning.probe / (mu * math.sqrt(tuning.cheap))))


def most_off(n: int, d: int, k: int, mu: float, error: float = 0.0, tuning: NearTuning = NEAR) -> float:
    """Return the most energy of a group off its best k + 1 directions that counts as near.

    With many columns the noise of looks is worse than what rows of one length change of PCA, so the tail may be as
    heavy as one of k equal directions: about this is what groups see of it, less the part that the `error` of the
    rough centre, in typical lengths, has in every row.  With little data one look is as good, and with very little it
    is better unless the tail is next to nothing: of what is off the first direction, there.
    """
    z = noise_ratio(n, d, mu)
    if z > tuning.little:
        return tuning.exact
    if d < EVERYDAY.many_columns or z > tuning.sure:
        return tuning.near
    tail = tuning.near_of_many * math.pow(min(1.0, 4.0 / (k + 1)), tuning.fall)
    return max(tuning.near, tail * (1.0 - min(error, 1.0) ** 2))


def test_share(source: Table, k: int, budget: Budget) -> float:
    """Return the fraction of delta to set aside for the test of stable leverage, from public numbers."""
    if not can_be_near(source, k, budget.mu):
        return 0.0
    n, d = source.shape
    return delta_share(as_source(np.broadcast_to(0.0, (n, d + 1))), k + 1, budget, 0.8)


@dataclass(frozen=True)
class NearCourse:
    """What a private PCA asks once it has a rough centre: a look near a subspace, or None to go on as usual."""

    source: Table
    k: int
    run: Run
    apart: Run  # with other streams, for the course
    tuning: NearTuning = NEAR

    def __call__(self, centre: Centre) -> PCAResult | None:
        """Ask whether most rows are near a subspace; if so, learn it with all that is left.

        Guarantee
        ---------
        (mu, set_aside)-approximate GDP for replace-one neighbours, with the mu that it takes from the account and
        what that has set aside, for a released centre.  Proof: docs/explanation/near-a-subspace.md.
        """
        # Lengths are not measured beyond a cap; there the constant would be nothing beside the rows.
        measured = centre.measured and centre.length < LONGEST / 2.0
        (n, d), tuning = self.source.shape, self.tuning
        little = noise_ratio(n, d, self.run.account.mu) > tuning.little
        sure = not little or centre.length >= tuning.surely_found * centre.error
        if not (measured and sure and can_be_near(self.source, self.k, self.run.account.mu, tuning)):
            return None
        origin, asked = centre.vector(d), tuning.constant * centre.length
        mu = self.run.account.spend("near a subspace?", probe_share(n, d, self.k, self.run.account.mu, tuning))
        bar = most_off(n, d, self.k, self.run.account.mu, centre.error / centre.length, tuning)
        groups = _groups(n, d, self.k, self.run.account.mu, tuning)

        def made(drawn: Table) -> Table:
            return drawn.with_constant(origin, asked)

        near = most_are_near(
            self.source, self.k, groups, bar, mu, self.run, but_first=little, made=made, tuning=tuning
        )
        if not near:
            return None
        centre = self._polished(centre)
        rows = self.source.with_constant(centre.vector(d), self._constant(centre)).settled()
        most, needed = tuning.moments
        moments = self.run.account.left * min(most, (needed / (n * self.run.account.mu)) ** 2 + 0.01)
        inner = self.run.account.nested("subspace near most rows", self.run.account.left - moments)
        found = course_within(self.apart.within(inner), rows, self.k + 1, constant=True)
        mu = self.run.account.spend("second moments", self.run.account.left, MOMENTS)
        assert found.subspace is not None
        seen = _measured(rows, found.subspace.basis, tuning.clip * centre.length, mu, self.run)
        return self._look(centre, seen, found.parameters)

    def _polished(self, centre: Centre) -> Centre:
        """Make the centre better as far as that pays: among the few rows that it was found in if they do, or all."""
        (n, d), few, weight = self.source.shape, centre.among, self.tuning.adds * self.k
        if noise_ratio(n, d, self.run.account.mu) > self.tuning.little:
            return centre
        if few is not None and as_good_among(few, self.source, centre, self.run, weight):
            polished = polished_centre(few, centre, self.run, weight)
        else:
            polished = polished_centre(self.source, replace(centre, rows=None), self.run, weight)
        lost = not polished.located or polished.length >= LONGEST / 2.0
        return centre if lost else polished

    def _constant(self, centre: Centre) -> float:
        """Return the entry that is added: a larger one would hide weak directions in short rows."""
        return min(self.tuning.constant, self.tuning.of_even / math.sqrt(self.k)) * centre.length

    def _look(self, centre: Centre, seen: _Measured, told: Any) -> PCAResult:
        """Cut the subspace of the longer rows down to one of the rows, and say what is known of it."""
        cut = _cut(seen, self._constant(centre), centre.error, self.tuning)
        d, k = cut.basis.shape
        found, errors, error = min(k, int(told["stands_out"])), told_errors(told, k), float(told["expected_error"])
        of_found = float(told.get("expected_error_of_found", error))
        explained = float(cut.variances.sum())
        total = explained + seen.outside
        # What the directions are off costs the squared sine of what lies along them; the rest was never in reach.
        value = max(explained / max(total, 1e-300), 1.0 - error * error)
        unsure = of_found * of_found + (1.0 - min(value, 1.0) if found < k else 0.0)
        off = of_found * math.sqrt(max(explained, 0.0))  # of the mean, at right angles to the subspace
        total, total_std = max(total, 1e-300), seen.noise * math.sqrt(k + 1.0)
        ratios_std = share_errors(cut.variances, seen.noise, total, total_std, within=True)
        return PCAResult(
            basis=cut.basis,
            ratios=Noisy(cut.variances / total, ratios_std),
            variances=Noisy(cut.variances, seen.noise),
            total=Noisy(total, total_std),
            course="near a subspace",
            mean=Noisy(centre.vector(d) + cut.point, np.hypot(cut.point_std, off / math.sqrt(d))),
            components_std=errors_after_turning(cut.basis, cut.variances, seen.noise, errors),
            captured=Noisy(value, min(1.0, unsure)),
            stands_out=found,
            clip=self.tuning.clip * centre.length,
            filled=centre.vector(d),
            shares=self.run.account.shares,
            about={"k": k, "course": "near a subspace", **centre.told, "weight_of_unit_rows": 1.0},
        )


def most_are_near(
    rows: Table,
    k: int,
    groups: int,
    bar: float,
    mu: float,
    run: Run,
    *,
    but_first: bool = False,
    made: Callable[[Table], Table] = lambda rows: rows,
    tuning: NearTuning = NEAR,
) -> bool:
    """Tell whether half of so many groups of 2 (k + 2) rows have no more than `bar` energy off k + 1 directions.

    That is of all their energy, or of what they have off the first direction.  `made` turns rows into those that are
    meant, each by itself.

    Guarantee
    ---------
    mu-GDP for replace-one neighbours: groups are disjoint and public, and each value is a function of its own
    records, so a record moves the count by at most one.  Proof: docs/explanation/near-a-subspace.md, lemma 1.
    """
    size = tuning.rows * (k + 2)
    numbers = np.sort(run.streams.public.choice(rows.shape[0], groups * size, replace=False, shuffle=False))
    dealt = public_groups(len(numbers), size - 1, run.streams.public)  # (groups, size)
    off = partial(_off, rank=k + 1, but_first=but_first)
    near = np.concatenate([each_alone(off, grams) for grams in _grams(made(rows.draw(numbers)).here(), dealt)])
    counted = np.array([np.count_nonzero(near <= bar)], dtype=np.float64)
    count, _ = gaussian_sum([counted], (1,), SumBounds(1.0, 0.0, 1, 1.1 * groups), mu, run)
    return bool(count[0] >= groups / 2)


def _grams(table: LocalTable, groups: NDArray[np.intp]) -> Iterator[Array]:
    """Yield Gram matrices (some, m, m) of groups (t, m) of rows at unit length, each from the rows of its group."""
    d = table.shape[1]
    at_a_time = max(1, _GROUP_ENTRIES // (d * groups.shape[1]))
    for start in range(0, len(groups), at_a_time):
        some = groups[start : start + at_a_time]
        rows_seen(some.size)
        rows = scaled_rows(table[some.ravel()]).reshape(*some.shape, d)
        yield rows @ rows.transpose(0, 2, 1)


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


def _measured(rows: Table, basis: Array, clip: float, mu: float, run: Run) -> _Measured:
    n = rows.shape[0]
    inside, outside, noise = second_moments(rows.looked_at(rows.rows(clip=clip, keep=False), clip), basis, mu, run)
    scale = clip * clip / n
    return _Measured(basis, inside * scale, max(outside, 0.0) * scale, noise * scale)


@dataclass(frozen=True)
class _Cut:
    """A basis (d, k) by falling variance, the variances about the mean, and the mean seen from the centre, (d,)."""

    basis: Array
    variances: Array
    point: Array
    point_std: Array  # what the noise of the second moments makes of it; (d,)


def _cut(seen: _Measured, constant: float, error: float, tuning: NearTuning = NEAR) -> _Cut:
    """Leave out the one direction of a subspace (d + 1, k + 1) that has the constant.

    Off the subspace the mean is where the subspace is.  Within, it is as far from the centre as was measured, shrunk
    by what the `error` of the centre, and the measured distance itself, say of that distance.
    """
    slopes = seen.basis[-1]  # (k + 1,)
    slope = float(np.linalg.norm(slopes))
    first = slopes / slope if slope > tuning.least_slope else np.eye(len(slopes))[-1]
    turn = np.linalg.qr(np.column_stack([first, np.eye(len(slopes))]))[0]  # (k + 1, k + 1)
    turn[:, 0] = first  # the same but for its sign
    moments, basis = turn.T @ seen.inside @ turn, seen.basis @ turn
    height = constant / max(slope, tuning.least_slope)  # of every row near the subspace, along the first direction
    means, std = moments[1:, 0] / height, seen.noise / height  # (k,), along the others
    chance = std**2 / 2.0  # off the diagonal, where they stand
    beyond = float(means @ means) / len(means) - chance * (1.0 + 2.0 * math.sqrt(2.0 / len(means)))
    apart = max(tuning.within * error**2 / len(means), beyond)
    weight = apart / max(apart + chance, 1e-300)
    shrink = max(0.0, 1.0 - len(means) * std**2 / max(float(means @ means), 1e-300))  # James and Stein
    values, axes = np.linalg.eigh(moments[1:, 1:] - shrink * np.outer(means, means))
    flat = np.linalg.qr(basis[:-1, 1:] @ axes[:, ::-1])[0]  # (d, k); a QR keeps the order and the directions
    variances = np.maximum(values[::-1], 0.0)
    if slope <= tuning.least_slope:
        return _Cut(flat, variances, np.zeros(len(flat)), np.full(len(flat), error / math.sqrt(len(flat))))
    point_std = math.sqrt(weight * chance) * np.linalg.norm(basis[:-1, 1:], axis=1)
    return _Cut(flat, variances, basis[:-1] @ np.append(height, weight * means), point_std)
