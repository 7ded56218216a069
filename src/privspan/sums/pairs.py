"""Pairs of rows that a public random order puts together, and what is made of each: a difference, or its signs.

No record is in two pairs of one pairing, so neighbouring tables give neighbouring tables of pairs: whatever is
private for these is private for the rows, at the same cost.  Proof: docs/explanation/private-mean.md.
"""

from __future__ import annotations

from typing import overload

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan.rows.compressed import Stored, as_dense, summed_rows
from privspan.rows.door import given_table, open_table
from privspan.rows.gaps import surely_whole
from privspan.rows.shifting import less
from privspan.rows.table import Table

Array = NDArray[np.float64]


@overload
def pair_differences(X: Table, public: np.random.Generator) -> Table: ...


@overload
def pair_differences(X: object, public: np.random.Generator) -> Stored | Table: ...


def pair_differences(X: object, public: np.random.Generator) -> Stored | Table:
    """Return the differences of rows that a public random order pairs; one record reaches one difference.

    Their mean is zero whatever that of the rows is, and their covariance twice that of the rows.

    Parameters
    ----------
    X : (n, d) array, memory map, SciPy sparse matrix, RowSource, or Dask array or dataframe
        At least two rows; the last one of an odd number is left out, of every partition if there are partitions.
    public : numpy.random.Generator
        Draws the order, which is public.

    Returns
    -------
    (n // 2, d) array, CSR array, RowSource or PartitionedTable
        float64, whatever the dtype of `X`: what a difference is must not depend on the type that another row needs.
        Sparse rows stay sparse.  Those of a memory map or a row source are formed when they are read; where a
        source is read by windows, or a table is in partitions, pairs are drawn within these.

    Guarantee
    ---------
    Not private by itself.  Neighbouring tables (replace-one) give neighbouring tables of differences, so whatever is
    private for these is private for the rows, at the same cost.  Proof: docs/explanation/private-mean.md.
    """
    pairs = open_table(X, min_rows=2).pairs(public, less).settled()
    return pairs if given_table(X) is not None else pairs.unwrapped()


def pair_signs(source: Table, public: np.random.Generator) -> Table:
    """Return in which columns the first row of a pair is larger (1), smaller (-1) or neither (0).

    Rows of different partitions are paired too: a table may be sorted.

    Parameters
    ----------
    source : Table
        At least two rows.
    public : numpy.random.Generator
        Draws the pairs.

    Guarantee
    ---------
    Not private by itself; as for `pair_differences`.  Proof: docs/explanation/standardised.md, lemma 1.
    """
    return source.mixed(public).pairs(public, signs)


def signs(first: Stored, second: Stored) -> Stored:
    """Return the signs of first - second, compared cell by cell: 0 for equal cells, and where either is a gap.

    Nothing is subtracted in dense rows, so nothing can overflow.

    Parameters
    ----------
    first, second : (m, d) arrays or CSR arrays
    """
    if not isinstance(first, np.ndarray) and not isinstance(second, np.ndarray):
        stored = sparse.csr_array(_gaps_marked(first) - _gaps_marked(second))
        stored.data = np.nan_to_num(np.sign(stored.data), nan=0.0)
        return stored
    with np.errstate(all="ignore"):
        a, b = (
            as_dense(rows).astype(np.float64) for rows in (first, second)
        )  # by value: the type is one for all rows
        compared = np.subtract(a > b, a < b, dtype=np.float64)
    if not (surely_whole(a) and surely_whole(b)):
        compared[~(np.isfinite(a) & np.isfinite(b))] = 0.0
    return compared


def _gaps_marked(rows: sparse.csr_array) -> sparse.csr_array:
    whole = summed_rows(rows)
    whole.data = np.where(np.isfinite(whole.data), whole.data, np.nan)
    return whole
