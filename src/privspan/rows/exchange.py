"""Rows that change partitions: each partition is cut into pieces, and every piece goes where it is wanted.

A piece is a tuple of arrays, entry i of each about the same thing; pieces that arrive at one place are joined, in an
order that means nothing: whoever joins them knows their places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from operator import getitem
from typing import TypeAlias

import numpy as np

from privspan._lib.arrays import Reals
from privspan.rows.place import Part, Place

Piece: TypeAlias = tuple[Reals, ...]


def exchange(place: Place, parts: Sequence[Part], count: int) -> list[Part]:
    """Return one piece for each of `count` places: what all parts have for it, joined.

    Every part is a list of `count` pieces.  They go by way of about sqrt(parts) times sqrt(count) bundles: sent
    directly they would be as many tasks as parts times places.
    """
    parts, aims = place.once(parts), _in_groups(count)
    cuts = [slice(aim.start, aim.stop) for aim in aims]
    some = place.map(getitem, [part for part in parts for _ in cuts], place.send(cuts * len(parts)))
    bundles: list[Part] = []  # those of one group of parts after the other, one for each aim
    for group in _in_groups(len(parts)):
        bundles += place.map(_bundled, *(some[source * len(cuts) : (source + 1) * len(cuts)] for source in group))
    bundles, groups = place.once(bundles), len(bundles) // len(aims)
    in_aim = [(at, number) for at, aim in enumerate(aims) for number in range(len(aim))]
    ways = [(index * len(aims) + at, number) for index in range(groups) for at, number in in_aim]
    pieces = place.map(getitem, [bundles[at] for at, _ in ways], place.send([number for _, number in ways]))
    return place.map(join_pieces, *(pieces[index * count : (index + 1) * count] for index in range(groups)))


def recut(place: Place, parts: Sequence[Part], lengths: Sequence[int], wanted: Sequence[int]) -> list[Part]:
    """Return the rows of consecutive partitions, in the same order, in others of these lengths."""
    edges = np.cumsum([0, *lengths]).tolist()
    parts, made = place.once(parts), []
    for start, stop in pairwise(np.cumsum([0, *wanted]).tolist()):
        first, last = np.searchsorted(edges, [start, stop - 1], side="right").tolist()
        sources = range(first - 1, last)
        cuts = [slice(max(start - edges[i], 0), min(stop, edges[i + 1]) - edges[i]) for i in sources]
        pieces = place.map(getitem, [parts[i] for i in sources], place.send(cuts))
        made += place.map(_stacked, *([piece] for piece in pieces))
    return made


def _in_groups(count: int) -> list[range]:
    step = math.isqrt(max(count - 1, 0)) + 1
    return [range(count)[start : start + step] for start in range(0, count, step)]


def _bundled(*parts: Sequence[Piece]) -> list[Piece]:
    return [join_pieces(*pieces) for pieces in zip(*parts, strict=True)]


def join_pieces(*pieces: Piece) -> Piece:
    """Return pieces as one."""
    return tuple(np.concatenate(arrays) for arrays in zip(*pieces, strict=True))


def _stacked(*rows: Reals) -> Reals:
    return rows[0] if len(rows) == 1 else np.concatenate(rows)
