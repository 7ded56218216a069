"""Small neighbouring tables, each pair the worst of its kind that is known for some mechanism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspan._lib.arrays import Reals

Array = NDArray[np.float64]
Pair: TypeAlias = tuple[Reals, Reals]

_HUGE = 1e300  # its square overflows
_SLOPE_TAIL = 4.9e-4


def last_replaced(table: Reals, *records: tuple[float, ...]) -> Pair:
    """Return the table with its last record replaced by the one and by the other of two records."""
    first, second = (np.vstack([table[:-1], np.array([record])]) for record in records)
    return first, second


def moment_pairs(padding: int = 0) -> dict[str, Pair]:
    """Return pairs (n, 2) for mechanisms that add noise to a second moment of unit rows.

    `padding` is the number of further records on the first axis, for mechanisms that need a gap.
    """
    axes = np.vstack([np.eye(2), np.zeros((1, 2)), np.tile([[1.0, 0.0]], (padding, 1))])  # (3 + padding, 2)
    return {
        "tie": last_replaced(axes, (1.0, 0.0), (0.0, 1.0)),
        "tilted either way": last_replaced(axes, (1.0, 1.0), (1.0, -1.0)),
        "zero row, huge row": last_replaced(axes, (0.0, 0.0), (0.0, _HUGE)),
        "NaN row, unit row": last_replaced(axes, (np.nan, 1.0), (0.0, 1.0)),
    }


def near_axis(n: int, d: int = 3, tail: float = 1e-4) -> Array:
    """Return n records along the first axis with small tails; a fixed table."""
    rng = np.random.default_rng(n)
    return np.column_stack([rng.choice([-1.0, 1.0], size=n), tail * rng.standard_normal((n, d - 1))])


def near_axis_pairs(n: int, d: int = 3, tail: float = 1e-4) -> dict[str, Pair]:
    """Return pairs (n, d) for algorithms that look for the subspace most records lie close to."""
    table, rest = near_axis(n, d, tail), (0.0,) * (d - 2)
    return {
        "outlier becomes inlier": last_replaced(table, (0.0, 1.0, *rest), (1.0, 0.0, *rest)),
        "tilted either way": last_replaced(table, (1.0, 1.0, *rest), (1.0, -1.0, *rest)),
        "zero row, huge row": last_replaced(table, (0.0, 0.0, *rest), (0.0, _HUGE, *rest)),
        "NaN row, inlier": last_replaced(table, (np.nan, 1.0, *rest), (1.0, 0.0, *rest)),
    }


def line_pairs(n: int = 10) -> dict[str, Pair]:
    """Return pairs (n, 2) for algorithms that look for the line that holds most records exactly."""
    first, second = (1.0, 0.0), (0.0, 1.0)

    def lines(inside: int) -> Array:
        return np.array([first] * inside + [second] * (n - inside))

    half = n // 2
    return {
        "threshold": last_replaced(lines(half + 1), first, (1.0, 1.0)),
        "tie": last_replaced(lines(half), first, second),
        "middle of the ramp": last_replaced(lines(half + 2), first, (1.0, 1.0)),
        "outlier becomes inlier": last_replaced(lines(n - 2), (1.0, 2.0), first),
        "zero row, huge row": last_replaced(lines(half + 1), (0.0, 0.0), (_HUGE, 0.0)),
        "NaN row, inlier": last_replaced(lines(half + 1), (np.nan, 0.0), first),
    }


def affine_line_pairs(n: int = 10) -> dict[str, Pair]:
    """Return pairs (n, 2) for algorithms that look for the line, through the origin or not, that holds most."""
    last = float(n - 1)

    def levels(inside: int) -> Array:
        heights = np.where(np.arange(n) < inside, 1.0, 2.0)
        return np.column_stack([np.arange(n, dtype=float), heights])

    half = n // 2
    return {
        "middle of the ramp": last_replaced(levels(half + 2), (last, 1.0), (last, 3.0)),
        "tie": last_replaced(levels(half), (last, 1.0), (last, 2.0)),
        "threshold": last_replaced(levels(half + 1), (last, 1.0), (last, 3.0)),
        "outlier becomes inlier": last_replaced(levels(n - 2), (last, 3.0), (last, 1.0)),
        "zero row, huge row": last_replaced(levels(half + 2), (0.0, 0.0), (_HUGE, 1.0)),
        "NaN row, inlier": last_replaced(levels(half + 2), (np.nan, 1.0), (last, 1.0)),
    }


def slope_pairs() -> dict[str, Pair]:
    """Return pairs (60, 3) like `near_axis_pairs` with twelve records whose tails put their weights on the ramp.

    All sixty cannot lie there: a plan allows fewer records on the ramp than the level at which it starts.
    """
    pairs = near_axis_pairs(60, tail=1e-5)
    for tails in (table[:12, 1:] for pair in pairs.values() for table in pair):
        tails[...] = tails * (_SLOPE_TAIL / np.linalg.norm(tails, axis=1, keepdims=True))
    return pairs


def rank_pairs(first: str, table: Array) -> dict[str, Pair]:
    """Return pairs (n, 3), the first of that name, whose last row decides on the rank of the table's last block."""
    return {
        first: last_replaced(table, (1.0, 0.0, 0.0), (0.0, 1.0, 0.0)),
        "zero row, huge row": last_replaced(table, (0.0, 0.0, 0.0), (0.0, _HUGE, 0.0)),
        "NaN row, unit row": last_replaced(table, (np.nan, 0.0, 0.0), (0.0, 0.0, 1.0)),
    }


def mean_pairs() -> dict[str, Pair]:
    """Return pairs (3, 2) for a mean: the two ends of the ball, and rows that have no length or no value."""
    table = np.zeros((3, 2))
    return {
        "opposite rows": last_replaced(table, (1.0, 0.0), (-1.0, 0.0)),
        "zero row, huge row": last_replaced(table, (0.0, 0.0), (_HUGE, 0.0)),
        "NaN row, unit row": last_replaced(table, (np.nan, 0.0), (1.0, 0.0)),
    }


def scale_pairs() -> dict[str, Pair]:
    """Return pairs (200, 2) for column scales: one record decides what spread there is, in both columns."""
    alike, apart = np.zeros((200, 2)), np.repeat([[0.0, 0.0], [1.0, 1.0]], 100, axis=0)
    return {
        "zero row, huge row": last_replaced(alike, (0.0, 0.0), (2.0**50, 2.0**50)),
        "tiny row, long row": last_replaced(apart, (2.0**-50, 2.0**-50), (64.0, 64.0)),
        "NaN row, unit row": last_replaced(apart, (np.nan, 0.0), (1.0, 1.0)),
    }


def corner_pairs(n: int = 4) -> dict[str, Pair]:
    """Return pairs (n, 2) for signs of pairs: a record that is above all others in both columns, or in one only."""
    inside = np.random.default_rng(n).uniform(-1.0, 1.0, (n, 2))
    return {
        "corner, corner across": last_replaced(inside, (9.0, 9.0), (9.0, -9.0)),
        "zero row, huge row": last_replaced(inside, (0.0, 0.0), (0.0, _HUGE)),
        "NaN row, corner": last_replaced(inside, (np.nan, 9.0), (9.0, 9.0)),
    }


def regression_pairs() -> dict[str, Pair]:
    """Return pairs (3, 3) with the target last; the first attains the sensitivity, the second that on a line."""
    table = np.zeros((3, 3))
    return {
        "opposite targets": last_replaced(table, (1.0, 0.0, -1.0), (0.5, 0.75**0.5, 1.0)),
        "target turned round": last_replaced(table, (1.0, 0.0, -1.0), (1.0, 0.0, 1.0)),
        "zero row, huge row": last_replaced(table, (0.0, 0.0, 0.0), (_HUGE, 0.0, _HUGE)),
        "NaN target, unit row": last_replaced(table, (1.0, 0.0, np.nan), (1.0, 0.0, 1.0)),
    }


def classifier_pairs() -> dict[str, Pair]:
    """Return pairs (300, 3) with the label last: opposite rows of one label, another label, no label."""
    table = np.tile([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0]], (150, 1))  # so that the centre stays in the middle
    return {
        "opposite rows": last_replaced(table, (1.0, 0.0, 1.0), (-1.0, 0.0, 1.0)),
        "label turned round": last_replaced(table, (1.0, 0.0, 0.0), (1.0, 0.0, 2.0)),
        "zero row, huge row": last_replaced(table, (0.0, 0.0, 0.0), (_HUGE, 0.0, 1.0)),
        "no label, unit row": last_replaced(table, (1.0, 0.0, np.nan), (1.0, 0.0, 1.0)),
    }


# ---- Pairs for replays: what one record costs along one transcript ------------------------------------------------


def balanced_pairs(copies: int) -> dict[str, Pair]:
    """Return pairs (2 copies, 2) with as many records on either axis, and a last one that may go either way."""
    axes = np.tile(np.eye(2), (copies, 1))
    return {
        "between the axes": last_replaced(axes, (1.0, 1.0), (1.0, -1.0)),
        "either axis": last_replaced(axes, (1.0, 0.0), (0.0, 1.0)),
    }


def axis_pair(n: int) -> Pair:
    """Return a pair (n, 2) of records on the first axis, one of which may be on the second."""
    return last_replaced(np.tile([[1.0, 0.0]], (n, 1)), (1.0, 0.0), (0.0, 1.0))


def halves_pair(n: int, d: int, apart: bool = True) -> Pair:
    """Return a pair (n, d) of whole numbers, alike or close together, but for one far off in half of the columns.

    Histograms zoom in on them to the end, and see the one record leave them in every stage.  In its other half the
    record is a little below the middle (the mean, or that of the last bin), so that it is at the angle to its
    neighbour at which their moments differ most.
    """
    drawn = np.random.default_rng(0).integers(2_000_000, 15_000_000, 40 * d).astype(np.float64)
    numbers = drawn[np.abs(_off_the_last_bin(drawn) + 0.06) < 0.05][:d]
    first = np.arange(d) < d // 2
    records = (tuple(np.where(half, 1e12, numbers).tolist()) for half in (first, ~first))
    steps = np.resize([-2.0, -1.0, 0.0, 1.0, 3.0], n) if apart else np.zeros(n)  # with a mean of 0.2
    return last_replaced(numbers + steps[:, None], *records)


def _off_the_last_bin(numbers: Array, stages: int = 7) -> Array:
    """Return how far numbers, alike in a column, lie off the centre of its range, in reaches, if noise is small."""
    low, width, centre, reach = np.full(len(numbers), 16.0**5), 15.0 * 16.0**5 / 24.0, numbers, 1.0
    for _ in range(stages):
        centre = low + width * (np.floor((numbers - low) / width) + 0.5)
        reach = 4.0 * width / 12.0**0.5
        low, width = centre - reach, 2.0 * reach / 24.0
    return (numbers - centre) / reach


def friends_pair(n: int, radius: float) -> Pair:
    """Return a pair (n, 2) of records on the first axis, and one that is as far off on either side as a friend is."""
    sine = (1.0 - 1e-6) * radius / 2.0**0.5  # of the angle at which projectors are `radius` apart
    cosine = (1.0 - sine * sine) ** 0.5
    return last_replaced(np.tile([[1.0, 0.0]], (n, 1)), (cosine, sine), (cosine, -sine))


def vote_pair(votes: int, others: int) -> Pair:
    """Return a pair (n, 2): `votes` records on the first axis, `others` on lines of their own, one on either axis."""
    angles = np.linspace(0.35, 2.8, others)
    lines = np.column_stack([np.cos(angles), np.sin(angles)])
    return last_replaced(
        np.vstack([np.tile([[1.0, 0.0]], (votes, 1)), lines, np.zeros((1, 2))]), (1.0, 0.0), (0.0, 1.0)
    )


def side_pair(pairs: int = 47, close: int = 9, votes: int = 4) -> Pair:
    """Return a pair (2 pairs, 2) of lines that are compared two by two, in their order, and then vote.

    One in two pairs lies within any side that is not tiny, but for `close` of them that are not quite alike. The last
    record joins its partner on the first axis, which `votes` other pairs vote for, or the runner-up: all large sides
    then score less and all tiny ones more, and the lead moves by two ballots.
    """
    half, angles = pairs // 2, np.linspace(0.3, 2.8, pairs)
    lines = np.column_stack([angles, angles])  # (pairs, 2), angles of the two records of each
    lines[:votes] = 0.0
    lines[half - close : half, 1] += 1e-10
    lines[half:, 1] += 0.15
    lines[-3:-1, 0] = 1.5  # the runner-up
    lines[-1] = 0.0
    table = np.stack([np.cos(lines), np.sin(lines)], axis=-1).reshape(-1, 2)
    return last_replaced(table, (float(np.cos(1.5)), float(np.sin(1.5))), (1.0, 0.0))


def ballots_and_votes_pair(blocks: int = 16, votes: int = 6) -> Pair:
    """Return a pair (6 blocks, 3) of lines, two rows for each, whose blocks of three lines vote for k.

    Half of these lie on one line and half on several, and the last record decides which half the last one joins; it
    also votes for the first axis, which `votes` of the others have once and the last block twice, or the runner-up.
    """
    lines = np.linspace(0.3, 2.8, 3 * blocks).reshape(blocks, 3)
    lines[blocks // 2 :] = lines[blocks // 2 :, :1]
    lines[:votes, 0], lines[:3, 1], lines[-1] = 0.0, 1.5, 0.0
    angles = np.repeat(lines.ravel(), 2)
    table = np.column_stack([np.cos(angles), np.sin(angles), np.zeros_like(angles)])
    runner_up = (float(np.cos(1.5)), float(np.sin(1.5)), 0.0)
    return partners_pair(table, (0.0, 0.0, 0.0), (1.0, 0.0, 0.0), runner_up)


def partners_pair(table: Array, partner: tuple[float, ...], *records: tuple[float, ...]) -> Pair:
    """Return the table with its last two records replaced, by that partner and by the one and the other record."""
    return last_replaced(np.vstack([table[:-2], [partner], table[-1:]]), *records)


# ---- Records at the levels of stable leverage ---------------------------------------------------------------------


@dataclass(frozen=True)
class Levels:
    """A plan of stable leverage for n items on the first axis, but for one that may be off it, and some on the ramp.

    The bars are so high that the one item costs a step of the margin, in every order of the items and whichever part
    they are dealt into: it is not among those of the highest levels, or is one more on the ramp.
    """

    n: int
    full: int
    empty: int
    margin: int  # of the table whose margin is larger
    ridge: float = 1e-5
    ramp: int = 0  # items halfway up, as far off the axis as the last; these rise by a level when it joins them

    def off(self, level: float) -> float:
        """Return how far off the axis an item lies that stays up to this level, and all on the ramp with it."""
        share = 1.0 / level - 1.0 / (self.n - self.ramp)  # of the leverage, the rest is along the axis
        return float(np.sqrt(self.ridge * share / (1.0 - (self.ramp + 1) * share)))

    @property
    def sides(self) -> tuple[float, float]:
        """Distances from the axis: as far as the larger margin allows (or the ramp), and as far as weight 1 does."""
        near = (self.full + self.empty) / 2 if self.ramp else self.full + self.margin
        return self.off(near + 0.6), self.off(self.full + 0.6)

    @property
    def options(self) -> dict[str, Any]:
        """Expert settings whose bars the table just clears."""
        off = self.ridge + (self.ramp + 1) * self.sides[0] ** 2
        rounding = 1.5e-4 * self.margin * self.ridge
        spread = 1.001 * off / (self.empty - self.margin) + rounding
        high = self.n - (self.ramp + 1 if self.ramp else 0)  # items of the highest levels
        bars = {"signal": high - self.margin - 0.1, "spread": spread, "ridge": self.ridge}
        levels = {"full_level": self.full, "ramp": self.full - self.empty, "movers": self.ramp + self.margin}
        return {**levels, **bars}


def levels_between_bins(n: int, full: int, empty: int, margin: int, third: int = 36) -> Levels:
    """Return levels whose two sides fall into different bins of the tails, which end at 2 to the power -third/3."""
    near, far = Levels(n, full, empty, margin, 1.0).sides
    return Levels(n, full, empty, margin, 2.0 ** (1.0 - 2.0 * third / 3.0) / (near * far))


def short_row_pair(levels: Levels) -> Pair:
    """Return a pair (n, 3) whose last record is next to nothing, or long and off the axis.

    That moves the norms, the tails, how many of them are long, the signal, the margin and the weighted top space.
    The others are a little shorter than the edge of a bin of norms, which becomes their unit.
    """
    table, off = np.tile([[1.0 - 1e-6, 0.0, 0.0]], (levels.n, 1)), levels.sides[0]
    table[: levels.ramp, 1] = off
    return last_replaced(table, (1e-9, 0.0, 0.0), (8.0, 8.0 * off, 0.0))


def sides_pair(levels: Levels, copies: int = 1) -> Pair:
    """Return a pair (n copies, 3) whose last record is off the axis on either side.

    That moves the tails, the margin, and the weighted top space about as far as the levels let any record move it.
    """
    near, far = levels.sides
    return last_replaced(np.tile([[1.0, 0.0, 0.0]], (levels.n * copies, 1)), (1.0, near, 0.0), (1.0, -far, 0.0))


def ballot_pair(levels: Levels) -> Pair:
    """Return a pair (2 n, 4) whose items are blocks of two, and whose ballots for k are those of blocks of six.

    The last record has a row of zeros beside it, so the item of both is its own line, on either side of the axis as
    in `sides_pair`.  Half of the ballots are for 1; in the last block the gap before the second singular value is
    about as wide as the one after it, and which is wider depends on the side.
    """
    near, far = levels.sides
    table = np.tile([[1.0, 0.0, 0.0, 0.0]], (2 * levels.n, 1))
    either = np.tile([1.0, -1.0], levels.n)  # in every item both, so that its line is the axis
    half = len(table) // 12 * 6
    table[:half, 2] = 2e-3 * either[:half]  # enough for a ballot for 2
    table[-2] = 0.0
    table[-6:-4, 2] = 0.8 / 10.0**0.5 * near * far * either[:2]  # singular values: root 5, root .8 times the side
    return last_replaced(table, (1.0, near, 0.0, 0.0), (1.0, -far, 0.0, 0.0))


def ramp_pair(length: float, far: float) -> Pair:
    """Return a pair (60, 3) like `slope_pairs`, whose last record lies on the axis at `far` or on the ramp."""
    table, _ = slope_pairs()["tilted either way"]
    on_ramp = (length, length * _SLOPE_TAIL, 0.0)
    return last_replaced(table, (far, 0.0, 0.0), on_ramp)


def turned_pair(n: int = 2_000, d: int = 10, residual: float = 0.12) -> Pair:
    """Return a pair (n, d) of records near a line, one of which has its residual turned round."""
    rng = np.random.default_rng(5)
    table = 0.03 * rng.standard_normal((n, d))
    table[:, 0] = rng.standard_normal(n)
    rest = (0.0,) * (d - 2)
    return last_replaced(table, (1.0, residual, *rest), (1.0, -residual, *rest))


def looked_at_pair(n: int, d: int, tail: float, residual: float) -> Pair:
    """Return a pair (n, d) near the first axis, one record of which has its residual turned round and its length."""
    rest = (0.0,) * (d - 2)
    return last_replaced(near_axis(n, d, tail), (8.0, 8.0 * residual, *rest), (1.0, -residual, *rest))


def sketch_pair(directions: Array) -> Pair:
    """Return a pair (1, d) of unit rows, alike, whose clipped sketches along (d, b) directions are opposite."""
    d, b = directions.shape
    basis = np.linalg.qr(directions, mode="complete")[0]
    along, across = basis[:, 0], basis[:, b]  # one that the sketch sees and one that it does not
    least = 1.0000001 * np.sqrt(b / d)  # so that the sketch is as long as a sketch may be
    rows = [sign * least * along + np.sqrt(1.0 - least**2) * across for sign in (1.0, -1.0)]
    return last_replaced(np.zeros((1, d)), *(tuple(row.tolist()) for row in rows))


# ---- Persons with several rows ------------------------------------------------------------------------------------


def persons_pairs(pairs: Mapping[str, Pair], rows: int = 500) -> dict[str, Pair]:
    """Return neighbours that differ in a person, with ids in the last column, from those that differ in a record.

    In the first table everybody has one row. In the second the last person has so many, alike, at both ends of the
    table, and an id that comes before the others.
    """
    return {f"{name}, {rows} times": _persons_pair(*pair, rows) for name, pair in pairs.items()}


def _persons_pair(first: Reals, second: Reals, rows: int) -> Pair:
    ids = np.arange(float(len(first)))
    mine = np.append(second[-1], -7.0)  # (d + 1,)
    front, back = np.tile(mine, (rows // 2, 1)), np.tile(mine, (rows - rows // 2, 1))
    others = np.column_stack([second, ids])[:-1]
    return np.column_stack([first, ids]), np.vstack([front, others, back])
