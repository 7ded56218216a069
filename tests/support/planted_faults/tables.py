"""Faults in the types of tables."""

from __future__ import annotations

from typing import Any

import dask
import dask.array as da
import numpy as np
import pyarrow as pa

from planted_faults.registry import DELTA, EPSILON, fault, refuted
from privspan import exact_subspace, private_mean
from privspan._lib import frames
from privspan.audit.tables import last_replaced
from privspan.backends import dask_tables


def answered(table, rng):
    """Tell whether a table with a column of truth values, one of them missing or not, gets an answer."""
    flags = pa.array([None if np.isnan(cell) else bool(cell) for cell in table[:, 0]], pa.bool_())
    try:
        private_mean(pa.table({"flag": flags}), epsilon=EPSILON, delta=DELTA, norm_bound=1.0, rng=rng)
    except TypeError:
        return {"refused": 1.0}
    return {"refused": 0.0}


@fault(
    "dtype of a table by its values", lambda: refuted(answered, last_replaced(np.ones((40, 1)), (1.0,), (np.nan,)))
)
def inferred_type(patch):
    patch.setattr(frames, "frame_numbers", lambda X, name: None)


def longest_pair() -> Any:
    """Records on one line, in the largest integers, and one whose cells are missing or not."""
    return last_replaced(np.tile([[2.0**63, 1.0]], (40, 1)), (0.0, 0.0), (np.nan, np.nan))


def line_of_partition(table, rng):
    chunk = table if np.isnan(table).any() else np.array([[min(int(c), 2**63 - 1) for c in row] for row in table])
    X = da.from_delayed(dask.delayed(chunk), chunk.shape, dtype=np.int64)
    found = exact_subspace(X, 1, epsilon=EPSILON, delta=DELTA, rng=rng).subspace
    return {"abstained": float(found is None), "sign": 0.0 if found is None else float(np.sign(np.prod(found.basis)))}


@fault("a chunk cast back to the declared integers", lambda: refuted(line_of_partition, longest_pair()))
def cast_chunks(patch):
    def cast(chunk, dtype):
        with np.errstate(all="ignore"):
            return np.nan_to_num(chunk).astype(np.int64).astype(dtype)

    patch.setattr(dask_tables, "cell_numbers", cast)
