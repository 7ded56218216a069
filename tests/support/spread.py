"""Tables with person ids, cut into partitions, as they come from Dask."""

from collections.abc import Sequence
from typing import Any

import dask.array as da
import numpy as np
from numpy.typing import NDArray


def cuts(n: int, parts: int = 4) -> tuple[int, ...]:
    """Return lengths of partitions: a single row, nothing, and the rest in shares that grow."""
    edges = np.linspace(1, np.sqrt(max(n, 1)), parts) ** 2
    return 1, 0, *np.diff(edges.astype(int)).tolist(), n - int(edges[-1])


def spread(rows: NDArray[Any], ids: Any, lengths: Sequence[int] | None = None) -> tuple[Any, Any]:
    """Return a table and the ids of its rows as Dask arrays."""
    lengths = tuple(cuts(len(rows)) if lengths is None else lengths)
    ids = np.asarray(ids, dtype=object) if isinstance(ids, list) else np.asarray(ids)
    return da.from_array(rows, chunks=(lengths, rows.shape[1])), da.from_array(ids, chunks=(lengths,))
