"""Sparse rows, each made from its own stored entries alone, to the last bit.

A sparse table may store a cell several times; the cell then holds the sum.  SciPy adds such entries in an order that
depends on how the *other* rows are stored (``sum_duplicates`` sorts all rows or none, and its sort is not stable), so
that replacing one record could change what other records amount to.  Here entries are added in the order in which
their row stores them, whatever the others look like.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse


def rows_inside(data: NDArray[Any], columns: NDArray[Any], starts: NDArray[Any], shape: tuple[int, int]) -> Any:
    """Return a CSR array of stored entries; a row with an entry outside the table becomes a row of zeros.

    Such an entry would make products read foreign memory.  Its row keeps its entries, as zeros: neither the dtype nor
    another row shows that it was there.

    Parameters
    ----------
    data, columns : (entries,) arrays
    starts : (n + 1,) array
    shape : (n, d)
    """
    foreign = (columns < 0) | (columns >= shape[1])
    if foreign.any():
        owner = np.repeat(np.arange(shape[0]), np.diff(starts))
        data, columns = data.copy(), np.where(foreign, 0, columns)
        data[np.isin(owner, owner[foreign])] = 0
    return sparse.csr_array((data, columns, starts), shape=shape)


def compressed_rows(table: Any) -> Any:
    """Return a sparse table as CSR; no two entries are added, and those of a row stay in their order.

    Parameters
    ----------
    table : (n, d) SciPy sparse matrix or array, of any format

    Returns
    -------
    CSR matrix or array
        The table itself if it is one.
    """
    if table.format == "csr":
        return table
    entries = table.tocoo(copy=False)
    order = np.argsort(entries.row, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(entries.row, minlength=table.shape[0]))])
    return sparse.csr_array((entries.data[order], entries.col[order], starts), shape=table.shape)


def summed_rows(table: Any) -> Any:
    """Return a CSR table as float64, its columns in order and every cell stored once.

    Parameters
    ----------
    table : (n, d) CSR matrix or array

    Returns
    -------
    CSR array
        Fresh.
    """
    owner = entry_rows(table)
    data, columns = table.data.astype(np.float64), table.indices
    same_row = owner[1:] == owner[:-1]
    if not (same_row & (columns[1:] <= columns[:-1])).any():  # nothing to do, and the same bits as below
        return sparse.csr_array((data, columns.copy(), table.indptr.copy()), shape=table.shape)
    order = np.lexsort((columns, owner))  # stable
    owner, columns, data = owner[order], columns[order], data[order]
    first = np.ones(len(data), dtype=bool)  # of each cell
    first[1:] = (owner[1:] != owner[:-1]) | (columns[1:] != columns[:-1])
    sums = np.bincount(np.cumsum(first) - 1, weights=data)  # one after the other
    starts = np.concatenate([[0], np.cumsum(np.bincount(owner[first], minlength=table.shape[0]))])
    return sparse.csr_array((sums, columns[first], starts), shape=table.shape)


def entry_rows(table: Any) -> NDArray[np.intp]:
    """Return the row of each stored entry of a CSR table."""
    return np.repeat(np.arange(table.shape[0]), np.diff(table.indptr))
