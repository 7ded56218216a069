"""Pairs of rows that a public random order puts together, and what is made of each: a difference, or its signs.

No record is in two pairs of one pairing, so neighbouring tables give neighbouring tables of pairs: whatever is
private for these is private for the rows, at the same cost.  Proof: docs/explanation/private-mean.md.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan.privacy.randomness import open_streams
from privspan.rows import PartitionedTable, RowSource
from privspan.rows.arrays import as_source
from privspan.rows.compressed import summed_rows
from privspan.rows.derived import RowPairs
from privspan.rows.gaps import surely_whole
from privspan.rows.partitions import mixed_partitions
from privspan.rows.persons import PersonTable
from privspan.rows.shifting import less
from privspan.rows.unit import as_rows_input, is_sparse, piece_rows

Array = NDArray[np.float64]
Make: TypeAlias = Callable[[Any, Any], Any]
"""What is made of the first and of the second rows of pairs, pair by pair; float64, dense or CSR as the rows are."""


def pair_differences(X: object, public: np.random.Generator) -> Any:
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
        Sparse rows stay sparse.  Those of a memory map or a row source are formed when they are read; where a source
        is read by windows, or a table is in partitions, pairs are drawn within these.

    Guarantee
    ---------
    Not private by itself.  Neighbouring tables (replace-one) give neighbouring tables of differences, so whatever is
    private for these is private for the rows, at the same cost.  Proof: docs/explanation/private-mean.md.
    """
    source = as_rows_input(X, min_rows=2, accept_partitions=True, accept_persons=True)
    pairs = row_pairs(source, public, less)
    if isinstance(source, RowSource | PartitionedTable | PersonTable):
        return pairs
    step = pairs.shape[0] if is_sparse(source) else piece_rows(pairs.shape[1])  # dense ones a few at a time
    made = [pairs[start : start + step] for start in range(0, pairs.shape[0], step)]
    return made[0] if len(made) == 1 else np.concatenate(made)


def pair_signs(source: Any, public: np.random.Generator) -> Any:
    """Return in which columns the first row of a pair is larger (1), smaller (-1) or neither (0).

    Rows of different partitions are paired too: a table may be sorted.

    Parameters
    ----------
    source : as `privspan.rows.unit.as_rows_input` returns it
        At least two rows.
    public : numpy.random.Generator
        Draws the pairs.

    Guarantee
    ---------
    Not private by itself; as for `pair_differences`.  Proof: docs/explanation/standardised.md, lemma 1.
    """
    if isinstance(source, PartitionedTable):
        source = mixed_partitions(source, public)
    return row_pairs(source, public, signs)


def row_pairs(source: Any, public: np.random.Generator, make: Make) -> Any:
    """Return what `make` makes of pairs that are drawn from a public generator; see `pair_differences`."""
    if isinstance(source, PersonTable):
        pairs = public.permutation(len(source))[: len(source) // 2 * 2].reshape(-1, 2)  # of persons
        slots = np.column_stack([source.slots(pairs[:, side]) for side in (0, 1)])
        return source.then(lambda rows: RowPairs(as_source(rows), slots, make))
    if isinstance(source, PartitionedTable):
        halves = [length // 2 for length in source.lengths]
        seeds = public.integers(2**63, size=len(halves)).tolist()
        return source.then(partial(_within, make), seeds, lengths=halves, dtype=np.dtype(np.float64))
    source = as_source(source.dealt(public) if isinstance(source, RowSource) else source)
    return RowPairs(source, _public_pairs(source, public), make)


def signs(first: Any, second: Any) -> Any:
    """Return the signs of first - second, compared cell by cell: 0 for equal cells, and where either is a gap.

    Nothing is subtracted in dense rows, so nothing can overflow.

    Parameters
    ----------
    first, second : (m, d) arrays or CSR arrays
    """
    if not isinstance(first, np.ndarray):
        compared = sparse.csr_array(_gaps_marked(first) - _gaps_marked(second))
        compared.data = np.nan_to_num(np.sign(compared.data), nan=0.0)
        return compared
    with np.errstate(all="ignore"):
        a, b = first.astype(np.float64), second.astype(np.float64)  # by value: the type is one for all rows
        compared = np.subtract(a > b, a < b, dtype=np.float64)
    if not (surely_whole(a) and surely_whole(b)):
        compared[~(np.isfinite(a) & np.isfinite(b))] = 0.0
    return compared


def _gaps_marked(rows: Any) -> Any:
    whole = summed_rows(rows)
    whole.data = np.where(np.isfinite(whole.data), whole.data, np.nan)
    return whole


def _within(make: Make, part: NDArray[Any], seed: int) -> Array:
    """Return what is made of pairs within one partition, drawn by a public seed.

    Whether the partition happens to be a memory map makes no difference: a task that is run again, elsewhere, must
    draw the same pairs.
    """
    source = as_source(part)
    return np.asarray(RowPairs(source, _public_pairs(source, open_streams(seed).public), make)[:])


def _public_pairs(source: RowSource, public: np.random.Generator) -> NDArray[np.intp]:
    """Draw disjoint pairs of row numbers, in windows of a file where it has any; (n // 2, 2).

    Within a window the first half of a random order is paired with the second.  A row left over by an odd window
    is paired with the first of the next.
    """
    n = source.shape[0]
    edges = np.array([0, n]) if source.edges is None else source.edges
    in_turn = []
    for start, stop in pairwise(edges.tolist()):
        half, order = (stop - start) // 2, start + public.permutation(stop - start)
        in_turn += [order[: 2 * half].reshape(2, half).T.ravel(), order[2 * half :]]
    return np.concatenate(in_turn)[: n // 2 * 2].reshape(-1, 2)
