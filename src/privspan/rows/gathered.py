"""The rows of a table in partitions, brought here one partition at a time for methods that need them all."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib.watch import unwatched
from privspan.rows.partitions import PartitionedTable
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
        self.shape, self.dtype = table.shape, table.dtype
        self.names, self.left_out = table.names, table.left_out
        self.edges = np.concatenate([[0], np.cumsum(table.lengths)]).astype(np.intp)

    def _load(self, window: int) -> Any:
        table = self._table
        with unwatched():  # whoever asks for rows counts them
            return table.place.fetch([table.parts[window]], [table.lengths[window]])[0]

    def take_columns(self, part: slice) -> NDArray[Any]:
        """Return consecutive columns of all rows, (n, columns); the others stay where they are."""
        table = self._table
        parts = table.place.map(partial(_some_columns, part), table.parts)
        with unwatched():
            return np.concatenate(table.place.fetch(parts, table.lengths))


def _some_columns(part: slice, rows: NDArray[Any]) -> NDArray[Any]:
    return np.ascontiguousarray(rows[:, part])
