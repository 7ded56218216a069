"""Rows of length at most one, provably, handed out piece by piece.

Every record is divided by its own length, so no bound on the data is asked of anybody and the subspace the rows
span stays what it was.  That the result is no longer than 1 is a theorem about floats, not a hope: the length is
computed from values that can neither overflow nor underflow, and inflated by more than its rounding error before it
divides (docs/explanation/everyday-pca.md, lemma 1).  An entry that is not finite is a gap and counts as 0: rows about
a released centre have it filled with that centre (docs/explanation/gaps.md).

Rows are cut by row number alone: into chunks of 4096, whose sums are the unit of exact adding (`sums.grid`), and
these into pieces that fit in memory.  Replacing a record touches one chunk, and every row is cleaned from its own
entries.  Dense pieces are float64 arrays, sparse ones CSR matrices whose duplicate entries have been added up;
nothing is ever densified.

What an algorithm does with the rows is a function of one piece, handed to `Rows.map_chunks` (sums over chunks) or
`Rows.map_rows` (one result per row): nothing else asks where the rows are, so the same functions run on an array,
on a file, and wherever else pieces of rows may live.  Scaling a piece takes as long as a thin product with it, so
`Rows.map_folded` hands out rows as they lie in the table, and beside them the factor of each, to be multiplied into
what is thin.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan._lib.arrays import Floats, Reals
from privspan._lib.watch import rows_seen, watchers
from privspan.rows.compressed import Readable, Stored, Summing
from privspan.rows.limits import LIMITS, Limits
from privspan.rows.scaling import (
    Factors,
    Piece,
    delicate_lengths,
    near_one_rows,
    redo_delicate,
    row_scales,
    scaled_dense,
    scaled_rows,
    scaled_sparse,
    squared_lengths_of,
)
from privspan.rows.shifting import Shift, SingleShift

Array: TypeAlias = NDArray[np.float64]
Finish: TypeAlias = Callable[[Array], Any]
"""What is done with the sum of a chunk, a fresh array, before it is rounded and added to others."""

CHUNK_ROWS = 4096
"""Rows per chunk (the last may be shorter): a replacement touches as little whatever n is: everyday-pca, lemma 3."""

_ROUNDED_UNIT = 1.0 - 2.0**-23  # of the rows that are scaled with care, and then rounded to float32
_LONGEST_SPARSE = 2.0**64  # rounding: a square of what is longer may leave the range of float64
_FEW_CALLS = 2**19  # entries at a time, where nothing is computed but a count: calls would take longer than that


def is_sparse(X: object) -> bool:
    """Tell whether an array, a SciPy matrix or a source of rows is sparse."""
    return bool(getattr(X, "is_sparse", sparse.issparse(X)))


@dataclass(frozen=True)
class PersonValues:
    """What is known of every row of persons.

    Attributes
    ----------
    slots : (n * width, …) array
    width : int
        Rows of each.
    """

    slots: Reals
    width: int

    def __len__(self) -> int:
        return len(self.slots) // self.width


def of_persons(slots: Reals, width: int) -> PerRow:
    """Return what is known of every row as `PersonValues`, and of persons with one row each as it is."""
    return slots if width == 1 else PersonValues(slots, width)


PerRow: TypeAlias = Any
"""One entry per row: an array (n, ...), `PersonValues`, or `RowValues` of `privspan.rows.partitioned_rows`."""


class Rows:
    """The rows of a matrix, each scaled to unit length or clipped to a given length.

    Parameters
    ----------
    X : (n, d) array, CSR matrix or RowSource
    centre : (d,) array, optional
        Released or public: what is taken away from dense rows before they are made short.
    single : bool, default=False
        Whether to do so in float32, for rows of that type and a centre within its range.
    clip : float, optional
        None: every row is scaled to length at most 1 (1 up to rounding, or 0).  A positive number R: every row is
        divided by R, and scaled down to length 1 where it is still longer; lengths are then in units of R.
    keep : bool, default=True
        Whether cleaned rows may be kept between passes, if there are few enough.
    width : int, default=1
        So many consecutive rows are one person's: what is summed over rows is averaged over these, no border of a
        piece or a chunk is between them, and what is known of every row are `PersonValues`.
    limits : Limits, optional
        By default those of the source.

    Attributes
    ----------
    single : bool
        Whether `map_folded` may hand out rows of float32, by declared types: `weighted_sums` adds them up with care.
    rounding : float
        How many times larger than those of ordinary rows the rounding errors of these may be.

    Examples
    --------
    >>> import numpy as np
    >>> rows = Rows(np.array([[3.0, 4.0], [np.nan, 2.0], [1e-200, 0.0]]))
    >>> next(rows.pieces())[1].round(6)
    array([[0.6, 0.8],
           [0. , 1. ],
           [1. , 0. ]])
    """

    def __init__(
        self,
        X: Stored | Readable,
        *,
        centre: Array | None = None,
        single: bool = False,
        clip: float | None = None,
        keep: bool = True,
        width: int = 1,
        limits: Limits | None = None,
    ) -> None:
        self._source: Any = X  # None once all rows are kept
        self._centre, self.width = centre, width
        self.limits: Limits = getattr(X, "limits", LIMITS) if limits is None else limits
        self._shift = None if centre is None else (SingleShift if single else Shift)(centre)
        self._clip = clip
        self.is_sparse = is_sparse(X)
        self._length = int(X.shape[0])
        self.shape: tuple[int, int] = (self._length // width, int(X.shape[1]))
        self.single, self.rounding = single, 1.0
        self._chunk_rows = whole_persons(CHUNK_ROWS, width)
        most, times = piece_rows(self.shape[1], self.limits), self.limits.single_times if single else 1
        most = CHUNK_ROWS if self.is_sparse else most * times
        self._piece_rows = whole_persons(min(most, CHUNK_ROWS), width)
        # How much a sparse file stores is not known before it has been read.
        stored = 12 * getattr(X, "nnz", 0) if self.is_sparse else 8 * self._length * self.shape[1]
        self._few = stored <= self.limits.kept_bytes
        self._keep = keep and self._few
        self._kept: dict[int, Piece] = {}  # by number: should two threads clean a piece, it is still kept once
        self._kept_bytes = 0
        self._measured: dict[int, Array] = {}  # computed squared lengths of dense rows before they are scaled
        self._factors: dict[int, Factors] = {}
        self._squares: PerRow = None

    def pieces(self) -> Iterator[tuple[slice, Piece]]:
        """Yield the row numbers and the cleaned rows of one piece after the other: one pass over the data."""
        for index, numbers in self._cuts():
            piece = self._kept.get(index)
            if piece is None:
                piece = self._cleaned(index, numbers)
                self._store(index, piece)
            yield numbers, piece

    def _cuts(self) -> Iterator[tuple[int, slice]]:
        """Yield the number of each piece and those of its rows, and tell that they are seen."""
        for index, start in enumerate(range(0, self._length, self._piece_rows)):
            numbers = slice(start, min(start + self._piece_rows, self._length))
            if watchers:
                rows_seen(numbers.stop - start)
            yield index, numbers

    def _cleaned(self, index: int, numbers: slice) -> Piece:
        """Read and clean one piece; from the second pass on the factors of its rows are known."""
        if self.is_sparse:
            return scaled_rows(self._source[numbers], clip=self._clip)
        piece, found = scaled_dense(self._lent(numbers), self._clip, self._factors.get(index))
        if not self.single:  # whose factors are for rows within the range of float32
            self._factors[index] = found
        return piece

    def _lent(self, numbers: slice) -> Any:
        """Return rows of the table, where they lie if that is possible, less the centre: only until the next are."""
        source = self._source
        stored = source.lend(numbers) if hasattr(source, "lend") else source[numbers]  # an array of a partition
        return stored if self._shift is None else self._shift(stored)

    def _store(self, index: int, piece: Piece) -> None:
        """Keep a piece for the next pass; let all go once they turn out too large, as only sparse ones can."""
        if not self._keep:
            return
        self._kept[index] = piece
        self._kept_bytes += 12 * piece.nnz if is_sparse(piece) else piece.nbytes
        if self._kept_bytes > self.limits.kept_bytes:
            self._keep = False
            self._kept = {}

    def held(self) -> Rows:
        """Clean all rows now and, if they are kept, let go of the table they came from; return this object."""
        for _ in self.pieces():
            pass
        if self._keep:
            self._source = None
        return self

    def __sizeof__(self) -> int:
        """Count the rows that are kept, for schedulers that look at memory."""
        return object.__sizeof__(self) + self._kept_bytes

    def map_chunks(
        self, function: Callable[..., Array], *per_row: PerRow, finish: Finish | None = None
    ) -> Iterator[Any]:
        """Yield one sum per chunk of `CHUNK_ROWS` rows, in float64, or what `finish` makes of it.

        The function turns a piece (rows, d), and the same rows of the arrays `per_row` (n, ...) of what else is known
        of them, into a fresh array that is a sum over these rows.
        """
        return self._chunk_sums(self.pieces(), function, per_row, finish)

    def map_folded(
        self, function: Callable[..., Array], *per_row: PerRow, finish: Finish | None = None
    ) -> Iterator[Any]:
        """Yield one sum per chunk, as `map_chunks` does, without scaling the rows.

        The function takes rows (rows, d) and one factor for each (rows,): row i of what it sums over is the *real*
        vector factors[i] times row i, no longer than 1.  It must neither change nor keep the rows.  They are float32
        where the rows are `single`.
        """
        return self._chunk_sums(self._folded(), function, per_row, finish)

    def _chunk_sums(
        self,
        pieces: Iterable[tuple[Any, ...]],
        function: Callable[..., Array],
        per_row: Sequence[PerRow] = (),
        finish: Finish | None = None,
        chunk_rows: int | None = None,
    ) -> Iterator[Any]:
        """Add up what a function makes of pieces, each given after the numbers of its rows, to sums over chunks."""
        total: Array | None = None
        step = self._chunk_rows if chunk_rows is None else chunk_rows
        if self.width > 1:
            function, per_row = partial(_averaged, function, self.width), [known.slots for known in per_row]
        for numbers, *piece in pieces:
            for known in per_row:
                piece.append(known[numbers])
            part = function(*piece)
            if total is None:
                total = part
            else:
                total += part
            if numbers.stop % step == 0 or numbers.stop == self._length:
                yield total if finish is None else finish(total)
                total = None

    @property
    def _in_place(self) -> bool:
        """Whether rows are used where they lie: not if sparse, of persons, or kept because they are slow to make."""
        if self.is_sparse or self.width > 1 or self._kept:
            return False
        return not self._keep or getattr(self._source, "cheap", True)

    def _folded(self) -> Iterator[tuple[slice, Piece, Floats]]:
        """Yield the row numbers, the rows and their factors of one piece after the other: one pass over the data."""
        if not self._in_place:
            for numbers, piece in self.pieces():
                yield numbers, piece, np.ones(piece.shape[0])
            return
        for index, numbers in self._cuts():
            stored = self._lent(numbers)
            with np.errstate(all="ignore"):
                rows = stored if self.single else np.ascontiguousarray(stored, dtype=np.float64)
                factors = self._factors.get(index)
                if factors is None:
                    factors = row_scales(self._measure(index, rows), self.shape[1], self._clip, single=self.single)
                    self._factors[index] = factors
                scales, delicate = factors
                if delicate.any():
                    rows, scales = rows.copy(), np.where(delicate, _ROUNDED_UNIT if self.single else 1.0, scales)
                    redo_delicate(rows, stored, np.flatnonzero(delicate), self._clip)
            yield numbers, rows, scales

    def _measure(self, index: int, rows: Reals) -> Array:
        """Return the squared lengths of dense rows as they are, computed in their type; `clipped` shares them."""
        found = self._measured.get(index)
        if found is None:
            rows = rows if self.single else np.ascontiguousarray(rows, dtype=np.float64)
            found = squared_lengths_of(rows).astype(np.float64, copy=False)
            self._measured[index] = found
        return found

    def clipped(self, clip: float) -> Rows:
        """Return the same rows clipped to another length; what was measured of dense ones is not measured again."""
        other = copy(self)
        other._clip, other._squares, other._factors = clip, None, {}
        other._keep, other._kept, other._kept_bytes = False, {}, 0
        return other

    def kept(self) -> Rows:
        """Return the same rows, kept between passes if there are few enough and they are slow to make."""
        other = copy(self)
        other._keep, other._kept = self._few, {}
        return other

    def lengths(self) -> PerRow:
        """Return the length of every row before it is scaled, each from its own entries; (n,).

        Those that are not finite have length zero; one beyond the range of float64 is infinite.  Of sparse rows,
        lengths beyond 2**64 are taken for that.
        """
        lengths = np.empty(self._length)
        for index, numbers in self._cuts():
            lengths[numbers] = self._lengths(index, self._lent(numbers))
        return lengths if self.width == 1 else PersonValues(lengths, self.width)

    def lengths_and_sums(
        self, function: Callable[[Array, Array, int], Array], chunk_rows: int
    ) -> tuple[Array, list[Array]]:
        """Return the lengths of dense rows, and one sum per so many of them, from one pass; (n,) and a list.

        The function takes rows (m, d) as the table has them, their computed squared lengths (m,) and the number of
        the first, and makes a fresh array that is a sum over them.  It must neither change nor keep the rows.
        """
        lengths: list[Array] = []

        def pieces() -> Iterator[tuple[slice, Array, Array, int]]:
            for at, numbers in self._cuts():
                rows = np.ascontiguousarray(self._lent(numbers), dtype=np.float64)
                lengths.append(self._lengths(at, rows))
                yield numbers, rows, self._measured[at], numbers.start

        with np.errstate(all="ignore"):
            sums = list(self._chunk_sums(pieces(), function, chunk_rows=chunk_rows))
        return np.concatenate(lengths), sums

    def stored(self, numbers: NDArray[np.intp]) -> Array:
        """Return dense rows of these numbers as the table has them, fresh ones in float64; (m, d)."""
        rows = self._source[numbers]
        return np.array(rows if self._shift is None else self._shift(rows), dtype=np.float64)

    def _lengths(self, index: int, stored: Stored) -> Array:
        if sparse.issparse(stored):
            return np.asarray(np.sqrt(squared_lengths_of(scaled_sparse(stored, _LONGEST_SPARSE))) * _LONGEST_SPARSE)
        with np.errstate(all="ignore"):
            squares = self._measure(index, stored)
            delicate = delicate_lengths(squares, single=self.single)
            lengths = np.sqrt(squares)
            if delicate.any():
                careful = np.flatnonzero(delicate)
                near_one, exponents = near_one_rows(stored, careful)
                lengths[careful] = np.ldexp(np.sqrt(np.add.reduce(near_one * near_one, axis=1)), exponents)
        return lengths

    def map_rows(self, function: Callable[[Piece], Reals]) -> PerRow:
        """Return one result per row: those of a function of pieces (rows, d), put together; (n, ...).

        The lengths of the rows, if they are not known yet, are taken in the same pass.
        """
        if self._squares is not None:
            return self.results(function)
        results, self._squares = self.results_and_lengths(function)
        return results

    def coordinates(self, basis: Array) -> PerRow:
        """Return the coordinates of every row in a basis (d, k), each from its own row, without scaling it; (n, k).

        The lengths of the rows, if they are not known yet, are taken in the same pass.
        """
        if not self._in_place:
            return self.map_rows(partial(inside, basis=basis))
        directions = basis.astype(np.float32) if self.single else basis
        found, squares = np.empty((basis.shape[1], self._length)), []  # what follows goes along the rows
        for index, (numbers, rows, factors) in enumerate(self._folded()):
            found[:, numbers] = (rows @ directions).T
            found[:, numbers] *= factors
            if self._squares is None:
                squares.append(self._squares_of(index, rows) * factors**2)
        if self._squares is None:
            self._squares = np.concatenate(squares)
        return found.T

    def _squares_of(self, index: int, rows: Array) -> Floats:
        """Return the squared lengths of rows that `_folded` has handed out, without their factors."""
        measured, delicate = self._measured.get(index), self._factors[index][1]
        if measured is None or delicate.all():
            return squared_lengths_of(rows)
        return np.where(delicate, squared_lengths_of(rows), measured) if delicate.any() else measured

    def results(self, function: Callable[[Piece], Reals]) -> PerRow:
        """Return one result per row, and remember nothing."""
        found = np.concatenate([function(piece) for _, piece in self.pieces()])
        return found if self.width == 1 else PersonValues(found, self.width)

    def results_and_lengths(self, function: Callable[[Piece], Reals]) -> tuple[PerRow, PerRow]:
        """Return one result per row, and the squared lengths of the rows, from one pass."""
        results, squares = zip(
            *((function(piece), squared_lengths_of(piece)) for _, piece in self.pieces()), strict=True
        )
        both = np.concatenate(results), np.concatenate(squares)
        return both if self.width == 1 else (PersonValues(both[0], self.width), PersonValues(both[1], self.width))

    def squared_lengths(self) -> PerRow:
        """Return the computed squared length of every cleaned row, off by at most gamma_{d+4} relatively."""
        if self._squares is None:
            self._squares = self.results(squared_lengths_of)  # (n,)
        return self._squares


def _averaged(function: Callable[..., Array], width: int, *piece: Any) -> Array:
    return np.asarray(function(*piece) / width)


def inside(piece: Piece, basis: Array) -> Array:
    """Return the coordinates of rows in a basis (d, k)."""
    return np.asarray(piece @ basis)


def piece_rows(d: int, limits: Limits = LIMITS) -> int:
    """Return the rows of a dense piece: a power of two from 16 to `CHUNK_ROWS`, fewer where rows are long."""
    most = min(limits.largest_piece // d, max(limits.piece_entries // d, limits.enough_piece_rows))
    return max(limits.fewest_piece_rows, min(CHUNK_ROWS, 1 << max(0, most.bit_length() - 1)))


def whole_persons(rows: int, grain: int) -> int:
    """Return the largest of grain, 2 grain, 4 grain, … that is at most so many rows, and at least one grain."""
    return grain << max(0, (rows // grain).bit_length() - 1)


def chunk_sums(function: Summing, X: Stored | Readable, grain: int = 1, *, exact: bool = False) -> Iterator[Array]:
    """Yield one sum per chunk of rows as they are, not made short; see `privspan.rows.table.Table.sums`."""
    n, d = (int(size) for size in X.shape)
    read = getattr(X, "lend", X.__getitem__)
    step = CHUNK_ROWS if is_sparse(X) else piece_rows(d, getattr(X, "limits", LIMITS))
    chunk = whole_persons(CHUNK_ROWS, grain)
    if exact and not is_sparse(X):
        step = chunk = max(step, _FEW_CALLS // d)
    for start in range(0, n, chunk):
        stop = min(start + chunk, n)
        pieces = (read(slice(first, min(first + step, stop))) for first in range(start, stop, step))
        with np.errstate(all="ignore"):  # this may run where nobody else has asked for silence
            total = np.asarray(sum(function(piece) for piece in pieces))
        rows_seen(stop - start)
        yield total
