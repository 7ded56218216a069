"""Sparse rows, each made from its own stored entries alone, to the last bit.

A sparse table may store a cell several times; the cell then holds the sum.  SciPy adds such entries in an order that
depends on how the *other* rows are stored (``sum_duplicates`` sorts all rows or none, and its sort is not stable), so
that replacing one record could change what other records amount to.  Here entries are added in the order in which
their row stores them, whatever the others look like.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan._lib.arrays import Reals
from privspan._lib.errors import ParameterError

Stored: TypeAlias = Reals | sparse.csr_array
"""Rows as a table has them, dense or CSR."""


class Readable(Protocol):
    """A table whose rows are read by their numbers."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    def __getitem__(self, rows: slice, /) -> Stored: ...


Summing: TypeAlias = Callable[..., NDArray[np.float64]]
"""From a run of rows, dense or CSR, to a sum over them."""

Make: TypeAlias = Callable[[Stored, Stored], Stored]
"""What is made of the first and of the second rows of pairs, pair by pair; float64, dense or CSR as the rows are."""


def as_dense(rows: Stored) -> Reals:
    """Return rows as an array; one as it is."""
    return rows if isinstance(rows, np.ndarray) else np.asarray(rows.toarray())


def rows_inside(data: Reals, columns: Reals, starts: NDArray[np.integer], shape: tuple[int, int]) -> sparse.csr_array:
    """Return a CSR array of stored entries; a row with an entry outside the table becomes a row of zeros.

    Such an entry would make products read foreign memory.  Its row keeps its entries, as zeros: neither the dtype nor
    another row shows that it was there.  `data` and `columns` are (entries,), `starts` is (n + 1,).
    """
    foreign = _foreign(columns, shape[1])
    if foreign.any():
        owner = entry_rows(starts)
        data, columns = data.copy(), np.where(foreign, 0, columns)
        data[np.isin(owner, owner[foreign])] = 0
    return sparse.csr_array((data, columns, starts), shape=shape)


def _foreign(columns: Reals, d: int) -> NDArray[np.bool_]:
    return np.asarray((columns < 0) | (columns >= d))


def sorted_rows(
    data: Reals, rows: NDArray[np.integer], columns: NDArray[np.integer], shape: tuple[int, int]
) -> sparse.csr_array:
    """Return the same as `rows_inside` of entries whose rows come in any order; those of a row stay in their order.

    A row number outside the table is a ValueError: such an entry is of no record.
    """
    if len(rows) and not 0 <= int(rows.min()) <= int(rows.max()) < shape[0]:
        raise ParameterError("An entry must be of a row of the table.")
    order = np.argsort(rows, kind="stable")
    return rows_inside(data[order], columns[order], _starts(rows, shape[0]), shape)


def compressed_rows(table: Any) -> sparse.csr_array:
    """Return a sparse table of any format as CSR, itself if it is sound CSR; no two entries are added.

    Rows, columns or blocks that end before they begin are a ValueError: SciPy would write outside its arrays.
    """
    if hasattr(table, "indptr") and (np.diff(table.indptr) < 0).any():
        raise ParameterError("Rows or columns of a sparse table must not end before they begin.")
    if table.format != "csr":
        entries = table.tocoo(copy=False)
        return sorted_rows(entries.data, entries.row, entries.col, table.shape)
    used = slice(int(table.indptr[-1]))  # SciPy allows for room behind
    if not _foreign(table.indices[used], table.shape[1]).any():
        found: sparse.csr_array = table
        return found
    return rows_inside(table.data[used], table.indices[used], table.indptr, table.shape)


def summed_rows(table: sparse.csr_array) -> sparse.csr_array:
    """Return a CSR table as a fresh one of float64, its columns in order and every cell stored once."""
    owner = entry_rows(table.indptr)
    data, columns = table.data.astype(np.float64), table.indices
    same_row = owner[1:] == owner[:-1]
    if not (same_row & (columns[1:] <= columns[:-1])).any():  # nothing to do, and the same bits as below
        return sparse.csr_array((data, columns.copy(), table.indptr.copy()), shape=table.shape)
    order = np.lexsort((columns, owner))  # stable
    owner, columns, data = owner[order], columns[order], data[order]
    first = np.ones(len(data), dtype=bool)  # of each cell
    first[1:] = (owner[1:] != owner[:-1]) | (columns[1:] != columns[:-1])
    sums = np.bincount(np.cumsum(first) - 1, weights=data)  # one after the other
    return sparse.csr_array((sums, columns[first], _starts(owner[first], table.shape[0])), shape=table.shape)


def _starts(owner: NDArray[np.integer], n: int) -> NDArray[np.intp]:
    """Return where each of n rows begins among entries in the order of rows, given the row of each; (n + 1,)."""
    return np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n))])


def entry_rows(starts: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the row of each stored entry, given where rows begin, as in the `indptr` of a CSR table."""
    return np.repeat(np.arange(len(starts) - 1), np.diff(starts))


def inner_products(rows: sparse.csr_array, width: int) -> NDArray[np.float64]:
    """Return those of every `width` consecutive rows, computed from these alone, (groups, width, width).

    No cell may be stored twice.  What two groups store in one column is kept apart, so that no others are computed.
    """
    column = entry_rows(rows.indptr) // width * rows.shape[1] + rows.indices  # of its group
    _, place = np.unique(column, return_inverse=True)
    apart = sparse.csr_array((rows.data, place, rows.indptr), shape=(rows.shape[0], len(place) + 1))
    found = sparse.coo_array(apart @ apart.T)
    inner = np.zeros((rows.shape[0], width))
    inner[found.row, found.col % width] = found.data
    return inner.reshape(-1, width, width)
