"""Sums over the rows of a table as they are, not made short: one per chunk, wherever the rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from privspan._lib.watch import rows_seen
from privspan.rows import PartitionedTable
from privspan.rows.partitioned_rows import ChunkSums, PartitionedSums
from privspan.rows.persons import PersonTable
from privspan.rows.unit import CHUNK_ROWS, is_sparse, limits_of, piece_rows, whole_persons

Array: TypeAlias = NDArray[np.float64]

_FEW_CALLS = 2**19  # entries at a time, where nothing is computed but a count: calls would take longer than that


def table_sums(function: Callable[[Any], Array], table: Any, *, exact: bool = False) -> ChunkSums:
    """Return one sum per chunk of rows.

    The function turns a run of rows (m, d), dense or CSR, into a sum over these rows.  Rows of a person are averaged.
    Where it is `exact`, as counts are, chunks of dense rows may have any length, and there are few.
    """
    chunks = partial(_chunk_sums, function, exact=exact)
    if isinstance(table, PartitionedTable):
        return PartitionedSums(table.place, table.lengths, chunks, (table.parts,))
    if isinstance(table, PersonTable):
        return (part / table.width for part in _chunk_sums(function, table.rows, table.width))
    return chunks(table)


def _chunk_sums(
    function: Callable[[Any], Array], table: Any, grain: int = 1, *, exact: bool = False
) -> Iterator[Array]:
    n, d = (int(size) for size in table.shape)
    step = CHUNK_ROWS if is_sparse(table) else piece_rows(d, limits_of(table))
    chunk = whole_persons(CHUNK_ROWS, grain)
    if exact and not is_sparse(table):
        step = chunk = max(step, _FEW_CALLS // d)
    for start in range(0, n, chunk):
        stop = min(start + chunk, n)
        pieces = (table[first : min(first + step, stop)] for first in range(start, stop, step))
        with np.errstate(all="ignore"):  # this may run where nobody else has asked for silence
            total = np.asarray(sum(function(piece) for piece in pieces))
        rows_seen(stop - start)
        yield total
