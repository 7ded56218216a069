"""Stable leverage on records: the subspace of people's data with noise that does not grow with n·d.

Steps: (1) release the scale of the norms and divide, (2) release the length of a record's part outside the
subspace, (3) release the strength of the signal, (4) plan, (5) weigh records by stable leverage levels, (6) test in
private that the plan's bound holds, (7) release the weighted top-k space with noise of the certified size.
`StableRecords` has these steps one by one, each with a mu of its own; `stable_subspace` puts them together.
Proofs: ``docs/explanation/stable-leverage.md``.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray

from privspan._lib import checks
from privspan._lib.arrays import Reals
from privspan._lib.watch import rows_seen
from privspan.privacy import Budget, Release
from privspan.privacy.call import Call, LedgerLike
from privspan.privacy.coin import Coin
from privspan.privacy.randomness import RandomLike
from privspan.privacy.run import Learn, Run
from privspan.rows import PartitionedTable, RowSource
from privspan.rows.compressed import as_dense
from privspan.rows.gaps import without_gaps
from privspan.rows.table import LocalTable, Table
from privspan.stable import plan as stable_plan
from privspan.stable.certificate import EIGENVALUE_TOLERANCE, LeveragePlan, kth_eigenvalue
from privspan.stable.leverage import GRID, combination, exact_gram
from privspan.stable.release import Certified, NoisyBasis, certified_items, noisy_basis
from privspan.stable.scales import noisy_histogram, released_share, released_tail, smallest_squares
from privspan.stable.tuning import STABLE

Array = NDArray[np.float64]

_COLUMNS_AT_A_TIME = 2048
_ONE_POWER = 900  # of two, that float64 is multiplied with at once
_NORM_BINS_PER_OCTAVE = 4  # of a histogram of exact counts
_NORM_OCTAVES = (-1080, 1060)  # of every float64 row of up to 2**50 columns


def stable_subspace(
    X: ArrayLike | RowSource | PartitionedTable,
    k: int,
    *,
    epsilon: float,
    delta: float,
    person: object = None,
    preset: stable_plan.StablePreset = "auto",
    options: Mapping[str, object] | None = None,
    rng: RandomLike = None,
    ledger: LedgerLike = None,
    **settings: object,
) -> Release:
    """Learn the top-k subspace of records that lie near one, with an error that falls like 1/n, or abstain.

    For data with a clear low-dimensional signal and a small tail this needs far fewer records than noise on the
    covariance matrix, and its error depends on d only through the length of the tail. Without a clear signal it
    abstains.

    Parameters
    ----------
    X : (n, d) array of real numbers, memory map, dense RowSource, or Dask array or dataframe
        One person per row. A value that is not finite counts as 0.
    k : int
        Dimension of the subspace.
    epsilon, delta : float
        The guarantee.
    person : (n,) array-like or str, optional
        Who each row belongs to, where people have several rows: one id per row, or the name of the column of `X` that
        holds the ids. One row of each person is then drawn; the guarantee is for persons, and n is their number:
        docs/explanation/several-rows.md.
    preset : {"auto", "tight", "robust"}, default="auto"
        How far the plan allows for tails longer than the typical one. ``"auto"`` measures, at a small part of the
        budget, how many are much longer and leaves room accordingly. ``"tight"`` saves that part, is most accurate
        when all tails are about equally long, and abstains on heavy tails; ``"robust"`` tolerates them at about two
        and a half times the error.
    options : mapping, optional
        Expert settings by name, each also taken as a keyword argument: public, never chosen by looking at the data.
        ``full_level``, ``ramp``, ``movers`` (int): weight 1 from `full_level`, weight 0 up to ``full_level - ramp``,
        fewer than `movers` records in between. ``signal``, ``spread``, ``ridge`` (float): certified bounds, and the
        ridge of the leverages; a ridge below 2**-36, or a `signal` less than 1 above the tail's bound, leads to an
        abstention. ``split`` (mapping): how the budget is shared out, by the names of
        `privspan.stable.plan.StableSplit`: weights of the steps ``scale``, ``tail``, ``long``, ``signal``, ``test``,
        ``noise``, and ``delta_test``, ``norm_quantile``. With a weight for ``test`` or ``noise``, or a
        ``delta_test``, the test counts as a Gaussian step; otherwise test and noise are accounted together.
    rng : None, int, SeedSequence or Generator, optional
        None draws from the operating system. A seed is for tests: the release then says ``private=False``.
    ledger : path, Ledger or Page, optional
        Where the budget is charged, before any data are read; see :class:`privspan.ledger.Ledger`.

    Returns
    -------
    Release
        `subspace` is None after an abstention. `parameters` holds public and released numbers only.

    Guarantee
    ---------
    (epsilon, delta)-differential privacy for replace-one neighbours; n, d and all parameters are public. It holds
    for all data, floating-point errors included. Assumed: each person contributes one row; `rng` is None. An
    abstention costs the same. With `person`, for replacing one person.
    Proof: ``docs/explanation/stable-leverage.md``, ``docs/explanation/several-rows.md``.

    Notes
    -----
    Takes time n²(n + d) and memory n² beside the data; for more than about 12,000 records use blocks.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> axes = np.linalg.qr(rng.standard_normal((50, 2)))[0]
    >>> X = rng.standard_normal((1200, 2)) @ axes.T + 1e-4 * rng.standard_normal((1200, 50))
    >>> found = stable_subspace(X, 2, epsilon=1.0, delta=1e-6, rng=0)
    >>> found.subspace is None or found.subspace.ambient_dimension
    50
    """
    with Call("stable_subspace", epsilon, delta, rng, ledger, X, person, k) as call:
        table = call.persons(X, person)
        learn = prepare_stable(call, table, k, call.budget, preset=preset, options=options, **settings)
        return call.finish(learn(call.begin()))


def prepare_stable(
    call: Call,
    X: object,
    k: int,
    budget: Budget,
    *,
    preset: stable_plan.StablePreset = "auto",
    options: Mapping[str, object] | None = None,
    **settings: object,
) -> Learn:
    """Refuse what `stable_subspace` refuses, from public facts alone, and return what does the rest with a run."""
    checks.one_of(stable_plan.STABLE_PRESETS, preset=preset)
    expert = checks.options(stable_plan.STABLE_OPTIONS, options, settings)
    table = call.open(X, accept_sparse=False).here()
    n, d = table.shape
    checks.dimension(k=k, d=d, n=n)
    split = expert.get("split", {})
    shares = stable_plan.record_shares(n, int(k), budget, split, counts_long=preset == "auto")
    return partial(_learn, table, int(k), budget, shares, preset, expert)


def _learn(
    table: LocalTable,
    k: int,
    budget: Budget,
    shares: stable_plan.StableBudget,
    preset: stable_plan.StablePreset,
    expert: Mapping[str, object],
    run: Run,
) -> Release:
    """Take the steps of stable leverage, each with its share."""
    (n, d), records = table.shape, StableRecords(table, k, run)
    released: dict[str, object] = {"n": n, "d": d, "k": k, "preset": preset}

    released["log2_norm_scale"] = records.release_scale(shares.mu_scale, shares.norm_quantile)  # (1)
    tail = records.release_tail(shares.mu_tail)  # (2)
    long_share = records.release_long_share(tail, shares.mu_long) if shares.mu_long else None
    strength = records.release_strength(shares.mu_signal)  # (3)
    released |= {"tail_length": tail, "signal_strength": strength}
    released |= {"long_share": long_share} if shares.mu_long else {}
    room = stable_plan.allowance_for(preset, long_share)
    plan = stable_plan.certified_plan(n, d, strength, tail, shares.coin, room, expert)  # (4)
    subspace = None
    if plan is not None:
        released |= asdict(plan)
        passed = records.certified(plan, shares.coin)  # (5), (6)
        if passed is not None:
            noisy = records.noisy_basis(passed, shares.mu_noise, shares.delta_rotation)  # (7)
            subspace = noisy.subspace
            released["expected_error"] = min(1.0, noisy.std * (math.sqrt(d) + math.sqrt(k)))
    return Release(subspace, shares.cost(budget), "stable", released, run.private)


class StableRecords:
    """The records of a dense table as items of stable leverage, and the private steps on them one by one.

    Each step takes its own mu and spends nothing else, so that a caller may leave steps out, stop, or go on with
    something different after any of them; all it decides by must be public or released. Records have length 1 until
    `release_scale` makes the short ones shorter. The Gram matrix (n, n) is made when a step first asks for it.

    Guarantee
    ---------
    Every method says what it costs for replace-one neighbours, given what was released before; together they compose
    as the page tells, which `stable_subspace` does. Proof: ``docs/explanation/stable-leverage.md``.
    """

    def __init__(self, table: LocalTable, k: int, run: Run) -> None:
        self._rows, self._k, self._run = _ScaledRows(table), k, run
        self._groups = public_groups(table.shape[0], k, run.streams.public)
        self._gram: Array | None = None

    @property
    def gram(self) -> Array:
        """Exact Gram matrix (n, n) of the records as they are scaled: not released."""
        if self._gram is None:
            self._gram = exact_gram(self._rows.column_slices(), len(self._rows.length))
        return self._gram

    def release_scale(self, mu: float, quantile: float) -> float:
        """Step 1: release the logarithm of that quantile of the norms, and divide records by it or by their norm.

        Guarantee
        ---------
        mu-GDP for replace-one neighbours. Proof: ``docs/explanation/stable-leverage.md``.
        """
        log_scale = _norm_scale(self._rows, mu, quantile, self._run)
        self._rows.scale_to(log_scale)
        self._gram = None
        return log_scale

    def release_tail(self, mu: float) -> float:
        """Step 2: release the smallest singular value that is typical of disjoint groups of k + 1 records.

        Guarantee
        ---------
        mu-GDP for replace-one neighbours. Proof: ``docs/explanation/stable-leverage.md``.
        """
        return released_tail(self._squares(), mu, self._run)

    def release_long_share(self, tail: float, mu: float) -> float:
        """Step 2, continued: release which share of these groups is clearly longer than the released `tail`.

        Guarantee
        ---------
        mu-GDP for replace-one neighbours. Proof: ``docs/explanation/stable-leverage.md``.
        """
        long = int(np.count_nonzero(self._squares() > (STABLE.long_tail * tail) ** 2))
        return released_share(long, len(self._groups), mu, self._run)

    def release_strength(self, mu: float) -> float:
        """Step 3: release the k-th eigenvalue, which one record moves by at most 1, less a margin for the noise.

        Guarantee
        ---------
        mu-GDP for replace-one neighbours. Proof: ``docs/explanation/stable-leverage.md``.
        """
        sigma = (1 + 2 * EIGENVALUE_TOLERANCE + 2.0**-18) / mu
        noisy = self._run.gaussian(np.array([kth_eigenvalue(self.gram, self._k)]), sigma)
        return float(noisy[0]) - STABLE.signal_quantile * sigma

    def certified(self, plan: LeveragePlan, coin: Coin) -> Certified | None:
        """Steps 5 and 6: test in private whether the plan's bound holds; None is *no*. See `certified_items`."""
        return certified_items(self.gram, 1, self._k, plan, coin, self._run)

    def noisy_basis(self, passed: Certified, mu: float, delta_rotation: float) -> NoisyBasis:
        """Step 7, after *yes*: release a basis (d, k) of the weighted top-k space. See `release.noisy_basis`."""
        pull = partial(combination, self._rows.column_slices)
        return noisy_basis(passed, pull, mu, delta_rotation, self._run)

    def _squares(self) -> Array:
        """Squared smallest singular value of each group, (groups,)."""
        return smallest_squares(self.gram[self._groups[:, :, None], self._groups[:, None, :]])


def public_groups(n: int, k: int, generator: np.random.Generator) -> NDArray[np.intp]:
    """Deal row numbers into disjoint groups (n // (k + 1), k + 1)."""
    return generator.permutation(n)[: n // (k + 1) * (k + 1)].reshape(-1, k + 1)


def unit_tail_squares(table: Table, groups: NDArray[np.intp]) -> Array:
    """Squared smallest singular value of each group of records at unit length, from the rows of the groups alone.

    `groups` (t, k + 1) are disjoint row numbers. Each value is a function of the records of its group, to the last
    bit, so that `released_tail` may follow.
    """
    return np.concatenate([smallest_squares(grams) for grams in group_grams(table, groups)])


def group_grams(table: Table, groups: NDArray[np.intp]) -> Iterator[Array]:
    """Yield Gram matrices (some, m, m) of groups (t, m) of records at unit length: exact, as sums on a grid."""
    d = table.shape[1]
    at_a_time = max(1, table.limits.groups_bytes // (8 * d * groups.shape[1]))
    for start in range(0, len(groups), at_a_time):
        some = groups[start : start + at_a_time]
        slices = list(_ScaledRows(table.draw(some.ravel(), dense=True)).column_slices())
        rows = (slices[0] if len(slices) == 1 else np.hstack(slices)).reshape(*some.shape, d)
        yield rows @ rows.transpose(0, 2, 1)


class _ScaledRows:
    """Records as points of the grid 2⁻²⁶ in the unit ball, made on the fly from slices of columns.

    Every record is a function of its own entries and of public or released numbers, to the last bit: its norm is
    bounded from above by a sum of integers, which has no rounding and hence no order.
    """

    def __init__(self, table: LocalTable) -> None:
        n, d = table.shape
        self._table = table
        self._run = (53 - int(d - 1).bit_length()) // 2  # squares of that many bits add up exactly in float64
        self.exponent = np.zeros(n, dtype=np.int64)  # the largest entry is in [1/2, 1) after division by 2^exponent
        self.length = np.zeros(n)  # norm after that division, rounded up; 0 for a row of zeros
        step = max(1, table.limits.slab_bytes // (8 * d))
        for start in range(0, n, step):
            self._measure(slice(start, start + step))
        self.scale_to(-np.inf)

    def _measure(self, part: slice) -> None:
        rows = without_gaps(as_dense(self._table[part]))  # (step, d)
        np.abs(rows, out=rows)
        rows_seen(len(rows))
        largest = rows.max(axis=1)
        usable = largest > 0
        exponent = np.where(usable, np.frexp(np.where(usable, largest, 1.0))[1], 0)
        rows[~usable] = 0.0
        steps = np.ceil(_shifted(rows, self._run - exponent), out=rows)
        squares = np.einsum("ij,ij->i", steps, steps)  # exact: integers below 2^53
        self.exponent[part] = exponent
        self.length[part] = np.ldexp(np.sqrt(squares), -self._run) * (1 + 2.0**-50)

    def norm_bins(self) -> NDArray[np.int64]:
        """Quarter octave of each norm, counted from the smallest possible one; −1 for a zero row."""
        mantissa, exponent = np.frexp(self.length)
        quarter = np.searchsorted(2.0 ** np.array([-0.75, -0.5, -0.25]), mantissa, side="right")
        octave = exponent + self.exponent - _NORM_OCTAVES[0]
        return np.where(self.length > 0, _NORM_BINS_PER_OCTAVE * octave + quarter, -1).astype(np.int64)

    def scale_to(self, log_scale: float) -> None:
        """Divide each record by its norm or by 2^log_scale, whichever is larger, and a little more.

        Before any call records have unit length.
        """
        d = self._table.shape[1]
        shrink = 1 - np.sqrt(d) * GRID - 2.0**-40  # rounding to the grid moves a record by at most √d · grid / 2
        floor = np.exp2(np.clip(log_scale - self.exponent, -1000, 1000))
        self._factor = np.where(self.length > 0, shrink / np.maximum(self.length, floor), 0.0)

    def column_slices(self) -> Iterator[Array]:
        """Slices (n, at most 2048) of the scaled records, in the order of the columns."""
        for stored in self._stored_slices():
            part = without_gaps(stored)
            step = max(1, self._table.limits.slab_bytes // (8 * part.shape[1]))
            for start in range(0, len(part), step):
                slab = slice(start, start + step)
                rows = _shifted(part[slab], -self.exponent[slab], self._factor[slab] / GRID)
                np.rint(rows, out=rows)
                rows *= GRID
            yield part

    def _stored_slices(self) -> Iterator[Reals]:
        """The same as they are stored; of a file many columns are read at a time, from end to end where need be."""
        n, d = self._table.shape
        of_all = n * self._table.dtype.itemsize * _COLUMNS_AT_A_TIME
        wide = max(1, self._table.limits.columns_bytes // of_all) * _COLUMNS_AT_A_TIME
        for first in range(0, d, wide):
            read = self._table.take_columns(slice(first, min(first + wide, d)))
            for start in range(0, read.shape[1], _COLUMNS_AT_A_TIME):
                yield read[:, start : start + _COLUMNS_AT_A_TIME]
        rows_seen(n)


def _shifted(rows: Array, exponents: NDArray[np.int64], factors: Array | float = 1.0) -> Array:
    """Multiply every row by 2 to its own exponent, and by a factor of at most 2³⁰, in place.

    The powers do not round, but for what underflows.  One that takes a row into the range of float64 may itself lie
    outside; of those the row has half before.
    """
    before = np.where(np.abs(exponents) <= _ONE_POWER, 0, exponents // 2)
    if before.any():  # other rows are multiplied by 1
        rows *= np.ldexp(1.0, before)[:, None]
    rows *= np.ldexp(factors, exponents - before)[:, None]
    return rows


def _norm_scale(rows: _ScaledRows, mu: float, quantile: float, run: Run) -> float:
    """Release the logarithm of a low quantile of the norms, from their noisy log-histogram."""
    size = _NORM_BINS_PER_OCTAVE * (_NORM_OCTAVES[1] - _NORM_OCTAVES[0])
    counts = noisy_histogram(rows.norm_bins(), size, mu, run)
    centre = int(np.argmax(np.convolve(counts, np.ones(8, dtype=np.int64), "same")))
    start = max(0, centre - 16)
    below = np.cumsum(counts[start : centre + 16])
    reached = np.flatnonzero(below >= quantile * len(rows.length))
    last = start + (int(reached[0]) if len(reached) else len(below) - 1)
    return (last + 1) / _NORM_BINS_PER_OCTAVE + _NORM_OCTAVES[0] - 1
