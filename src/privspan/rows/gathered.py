"""The rows of a table in partitions, brought here one partition at a time for methods that need them all."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib.watch import unwatched
from privspan.rows.partitions import Part, PartitionedTable
from privspan.rows.source import WindowedSource


class GatheredRows(WindowedSource):
    """A table in partitions as a source of rows: its windows are the partitions.

    Sums are better made where the rows are (`rows.partitioned_rows`); this is for methods that compare rows with
    one another, or that need every one of them.

    Parameters
    ----------
    table : PartitionedTable
    """

    def __init__(self, table: PartitionedTable) -> None:
        super().__init__()
        self._table = table
        self.shape, self.dtype, self.names, self.left_out = table.shape, table.dtype, table.names, table.left_out
        self.edges = np.cumsum([0, *table.lengths], dtype=np.intp)

    def _fetched(self, parts: Sequence[Part], lengths: Sequence[int]) -> list[Any]:
        with unwatched():  # whoever asks for rows counts them
            return self._table.place.fetch(parts, lengths)

    def _load(self, window: int) -> Any:
        return self._fetched([self._table.parts[window]], [self._table.lengths[window]])[0]

    def take_columns(self, part: slice) -> NDArray[Any]:
        """Return consecutive columns of all rows, (n, columns); the others stay where they are."""
        parts = self._table.place.map(partial(_some_columns, part), self._table.parts)
        return np.concatenate(self._fetched(parts, self._table.lengths))


def _some_columns(part: slice, rows: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(rows[:, part])
