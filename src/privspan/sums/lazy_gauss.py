"""Analyze Gauss without a (d, d) matrix: the noise is drawn only where it is looked at.

Analyze Gauss (Dwork, Talwar, Thakurta, Zhang, 2014) releases A = sum x xᵀ plus a symmetric Gaussian matrix N.  An
eigenvector routine asks such a matrix for products with a few vectors only.  `LazyGauss` answers these questions one
block of orthonormal directions Q at a time.  With B the directions asked for earlier,

* Bᵀ (A + N) Q is known by symmetry from earlier answers,
* Qᵀ A Q is released with symmetric noise,
* (I - B Bᵀ - Q Qᵀ) A Q is released with independent noise.

These are coordinates of A in an orthonormal system of symmetric matrices, chosen as we go; by Bessel's inequality all
of them together are worth no more than A itself, however many there are and however they were chosen.  The law of the
answers is that of dense Analyze Gauss; memory and noise are O(d m) for m directions.
Proofs, float64 included: docs/explanation/everyday-pca.md, lemmas 2 to 5.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from privspan._lib.arrays import Reals
from privspan._lib.rounding import SINGLE_ROUNDOFF, relative_error
from privspan.privacy.run import Run
from privspan.rows.partitioned_rows import AnyRows, ChunkSums
from privspan.rows.scaling import Piece, combined, single_sum_error
from privspan.rows.unit import CHUNK_ROWS, Finish
from privspan.sums.grid import (
    ROOT_HALF,
    NoiseLevel,
    SumBounds,
    gaussian_symmetric,
    grid_total,
    grid_totals,
    noise_level,
    row_slabs,
)
from privspan.sums.lifts import Lift

Array = NDArray[np.float64]

ALLOWED_DEFECT = 2.0**-26
"""Largest ||BᵀB - I||_F to be measured before a release; the sensitivity adds what float64 may hide from that."""

_MOST_STORED = 2**27  # entries of all directions together
_FEWEST_COLUMNS = 64  # however much memory that takes
_SAME_DIRECTION = 1e-9  # rounding: a direction that is off the revealed ones by less than this is not new


class GramSource(Protocol):
    """Rows y of bounded length whose second moment sum y yᵀ is to be looked at; or several such y for each record."""

    shape: tuple[int, int]
    size: float
    """Bound on the Frobenius norm of what one record adds: ||y||², if it has one y."""
    largest: float
    """Bound on every entry of that."""
    moments: int
    """How many second moments there are."""
    empty: float
    """How far an empty place moves one, where a replacement does by `size`."""

    def products(self, block: Array | None, finish: Finish | None = None) -> ChunkSums:
        """Return (sum over one chunk of y yᵀ) @ block for each chunk, or that sum itself for None; fresh arrays.

        Those of several moments are side by side.

        With `finish`, what that function makes of each of them.
        """

    def chunk_error(self, columns: int) -> float:
        """Bound the Frobenius norm of the error of one of these arrays, or of several together.

        Several: for blocks with so many columns in all, which together are orthonormal.
        """


class UnitGram:
    """The second moment of unit rows; those of persons may be lifted."""

    size, empty = 1.0, ROOT_HALF
    moments = 1

    def __init__(self, rows: AnyRows, lift: Lift | None = None) -> None:
        self._rows, self._lifts = rows, () if lift is None else (lift.factors,)
        self.shape, self.largest = rows.shape, 1.0 if lift is None else lift.most
        self._single = rows.single

    def products(self, block: Array | None, finish: Finish | None = None) -> ChunkSums:
        """Return one array (d, b) per chunk."""
        dtype: type = np.float32 if self._single else np.float64
        directions: Reals | None = None if block is None else block.astype(dtype, copy=False)

        def part(piece: Piece, scales: Array, *lifts: Array) -> Array:
            factors = scales * lifts[0] if lifts else scales
            if directions is not None:
                inner = np.ascontiguousarray((piece @ directions).T, dtype=np.float64)  # (b, rows): along the rows
                inner *= factors**2
                return combined(piece, inner.astype(dtype, copy=False).T)
            if dtype == np.float32:
                rows = piece * factors[:, None].astype(dtype)
                return combined(rows, rows)
            rows = piece * factors[:, None]
            return as_dense(rows.T @ rows)

        return self._rows.map_folded(part, *self._lifts, finish=finish)

    def chunk_error(self, columns: int) -> float:
        """Bound the error of two products: inner ones of length d and a factor, then sums over the chunk.

        In float32 a replacement changes the inner products of its own row only, and sums over its own piece.
        """
        root = math.sqrt(columns)
        error = CHUNK_ROWS * (root * relative_error(self.shape[1] + 4) + relative_error(CHUNK_ROWS + 4))
        if self._single:
            error += root * relative_error(self.shape[1] + 8, SINGLE_ROUNDOFF) + single_sum_error()
        return 1.01 * error


def as_dense(gram: Any) -> Array:
    """Return a (d, d) product as an array; that of sparse rows is sparse."""
    return gram if isinstance(gram, np.ndarray) else np.asarray(gram.toarray())


class Asked:
    """Orthonormal directions that rows have been asked about, and the noise bounds that provide for all of them.

    `most_columns` and `most_passes` are what the float64 part of the sensitivity provides for; further calls are
    ignored.
    """

    def __init__(self, source: GramSource, *, most_columns: int, most_passes: int) -> None:
        self._source = source
        self._most_columns = min(most_columns, source.shape[1])
        self._passes_left = most_passes
        self._allowed_defect = ALLOWED_DEFECT + 2.0 * self._most_columns * relative_error(source.shape[1] + 2)
        self._bounds = self._sum_bounds(most_passes)
        self._defect_square = 0.0
        self._columns = 0
        self._basis = self._room_for_columns()

    def _room_for_columns(self) -> Array:
        """Return (d, most_columns): columns lie one after the other and take memory when they are filled."""
        return np.empty((self._source.shape[1], self._most_columns), order="F")

    @property
    def basis(self) -> Array:
        """Directions revealed so far, (d, m)."""
        return self._basis[:, : self._columns]

    @property
    def complete(self) -> bool:
        """Whether every direction has been revealed, so that the whole matrix is known."""
        return bool(self.basis.shape[1] == self._source.shape[1])

    @property
    def room(self) -> int:
        """Number of directions that may still be revealed."""
        return self._most_columns - self.basis.shape[1] if self._passes_left > 0 else 0

    def _sum_bounds(self, passes: int) -> SumBounds:
        """Bound what a replacement changes, in coordinates whose diagonal is divided by sqrt(2) (lemmas 4 and 5)."""
        n, d = self._source.shape
        size, m = self._source.size, self._most_columns
        project = math.sqrt(m) * (2.0 * relative_error(d) + relative_error(m)) + 4.0 * relative_error(1)
        root = math.sqrt(passes)
        turned = 1.0 + 9.0 * root * self._allowed_defect
        return SumBounds(
            sensitivity=size * turned,
            # The products of all passes are charged together: their blocks are orthonormal.
            chunk_error=self._source.chunk_error(m) + root * 1.02 * CHUNK_ROWS * size * project,
            entries=2 * m * (d + m),
            largest=1.02 * n * self._source.largest,
            empty=self._source.empty * turned,
        )

    def _asked(self, block: Array) -> Array | None:
        """Append to the basis the directions of `block` that are new and fit; return them, or None."""
        fresh = self._orthonormal(block[:, : self.room])
        if fresh is not None:
            self._passes_left -= 1
            self._append(fresh)
        return fresh

    def _append(self, directions: Array) -> None:
        new = slice(self._columns, self._columns + directions.shape[1])
        self._basis[:, new] = directions
        self._columns = new.stop

    def _seen(self, block: Array, grid: float) -> list[tuple[Array, Array]]:
        """Return, for each moment of the source, A @ block within span(block) and off span(basis), not released.

        `block` (d, b) is the end or all of the basis; (b, b) and (d, b) on the grid, from one pass over the rows.
        """
        d, b = block.shape
        basis, moments = self.basis, self._source.moments

        def seen_parts(products: Array) -> tuple[Array, Array]:
            within = (block.T @ products).reshape(b, moments, b)  # moments side by side
            _take_away(products, basis)
            return 0.5 * (within + within.transpose(2, 1, 0)), products

        sums = self._source.products(block, seen_parts)
        inside, outside = grid_totals(sums, ((b, moments, b), grid), ((d, moments * b), grid))
        return [(inside[:, i], outside[:, i * b : (i + 1) * b]) for i in range(moments)]

    def _noisy(self, last: slice, seen: tuple[Array, Array], level: NoiseLevel, run: Run) -> Array:
        """Release what was seen of A times the directions `last`, when these were the last ones; (d, b)."""
        (inside, outside), block = seen, self._basis[:, last]
        symmetric = gaussian_symmetric(inside, level, run)
        noisy = run.gaussian(outside, level.sigma, level.grid)
        _take_away(noisy, self._basis[:, : last.stop])
        for rows in row_slabs(*block.shape):
            noisy[rows] += block[rows] @ symmetric
        return noisy

    def _orthonormal(self, block: Array) -> Array | None:
        """Return the block made orthonormal and orthogonal to the basis, or None if that is not possible."""
        d, m = self.basis.shape
        block = block[:, : d - m]
        if block.shape[1] == 0:
            return None
        measured = (m + block.shape[1]) * relative_error(d + 2)  # what float64 may have hidden from the measurement
        for projected in range(3):
            block = block - self.basis @ (self.basis.T @ block)
            block = np.linalg.qr(block)[0]
            if projected == 0:  # two rounds make the new directions orthogonal to working precision; a third is spare
                continue
            defect_square = self._defect_square + self._defect_of(block)
            if math.sqrt(defect_square) * 1.01 + 2.0 * measured <= self._allowed_defect:
                self._defect_square = defect_square
                return block
        return None

    def _defect_of(self, block: Array) -> float:
        """Return what a block adds to the square of ||BᵀB - I||_F, as it is measured."""
        off = np.linalg.norm(self.basis.T @ block) if self._columns else 0.0
        own = np.linalg.norm(block.T @ block - np.eye(block.shape[1]))
        return 2.0 * float(off) ** 2 + float(own) ** 2


class LazyGauss(Asked):
    """The matrix A + N, revealed block by block, for the rows of `source` behind A.

    `most_columns` and `most_passes` are what the float64 part of the sensitivity provides for; further calls are
    ignored.

    Guarantee
    ---------
    All revealed values together are mu-GDP for replace-one neighbours, where the directions may depend on everything
    revealed before; after `strengthen` the squares of both mu add up.  n and d are public.  Assumed: the lengths
    promised by `source`.  Proof: docs/explanation/everyday-pca.md, lemmas 2 to 5.
    """

    def __init__(self, source: GramSource, mu: float, run: Run, *, most_columns: int, most_passes: int) -> None:
        super().__init__(source, most_columns=most_columns, most_passes=most_passes)
        self._run = run
        self._level = noise_level(self._bounds, mu)
        self._mu_square = mu * mu
        self._strengthened = False
        self._image = self._room_for_columns()

    @property
    def image(self) -> Array:
        """The matrix times these directions, (d, m)."""
        return self._image[:, : self._columns]

    @property
    def noise(self) -> float:
        """Standard deviation of an off-diagonal entry of N."""
        return self._level.sigma

    def reveal_all(self) -> None:
        """Reveal the whole matrix at once, for small d."""
        d = self._source.shape[1]
        if self._passes_left < 1 or self._most_columns < d or self.basis.shape[1]:
            return
        self._passes_left -= 1
        whole = self._whole(self._level)
        self._append(np.eye(d))
        self.image[...] = whole

    def extend(self, block: Array) -> bool:
        """Reveal A + N on the directions of `block` (from revealed values) that are new and fit; tell if any did."""
        before = self._columns
        fresh = self._asked(block)
        if fresh is None:
            return False
        known = self.basis[:, :before] @ (self.image[:, :before].T @ fresh)  # (d, b): Bᵀ (A + N) Q by symmetry
        self.image[:, before:] = known + self._reveal(fresh, self._level)
        return True

    def product(self, block: Array) -> Array:
        """Return (A + N) @ block, revealing what is needed; what no longer fits is left out.

        Parameters
        ----------
        block : (d, b) array
            A function of public and revealed values; need not be orthonormal or new.
        """
        if not self.complete:
            inner = self.basis.T @ block
            fresh = block - self.basis @ inner
            new = np.linalg.norm(fresh, axis=0) > _SAME_DIRECTION * np.linalg.norm(block, axis=0)
            self.extend(fresh[:, new])
        return self.image @ (self.basis.T @ block)

    def strengthen(self, mu: float) -> None:
        """Spend another mu, once: reveal what is known again and average; later blocks get the lower noise at once.

        Raises
        ------
        RuntimeError
            On a second call, or after the last pass: the sensitivity provides for neither.
        """
        if self._strengthened or self._passes_left < 1:
            raise RuntimeError("A second moment can be released again only once, while passes are left.")
        self._strengthened = True
        self._passes_left -= 1
        # One grid for all levels: then they share one charge, which lemma 5 needs.
        level = noise_level(self._bounds, mu, grid=self._level.grid)
        # What is known are images of the basis, which need not be the standard one even if it is complete.
        again = self._whole(level) @ self.basis if self.complete else self._reveal(self.basis, level)
        weight = mu * mu / (self._mu_square + mu * mu)
        self.image[...] *= 1.0 - weight
        again *= weight
        self.image[...] += again
        self._mu_square += mu * mu
        # The joint mu is rounded down by more than these float operations can be off.
        joint = math.sqrt(self._mu_square) * (1.0 - 2.0**-48)
        self._level = noise_level(self._bounds, joint, grid=self._level.grid)

    def _whole(self, level: NoiseLevel) -> Array:
        """Release A itself, (d, d), in standard coordinates."""
        d = self._source.shape[1]
        total = grid_total(self._source.products(None), (d, d), level.grid)
        return gaussian_symmetric(total, level, self._run)

    def _reveal(self, block: Array, level: NoiseLevel) -> Array:
        """Release A @ block within span(block) and off span(basis); `block` is the end or all of the basis."""
        (seen,) = self._seen(block, level.grid)
        return self._noisy(slice(self._columns - block.shape[1], self._columns), seen, level, self._run)


def _take_away(block: Array, basis: Array) -> None:
    """Subtract from the columns of `block` their part in the span of the orthonormal `basis`, in place."""
    inner = basis.T @ block  # (m, b)
    for rows in row_slabs(*block.shape):
        block[rows] -= basis[rows] @ inner


def within_memory(columns: int, d: int) -> int:
    """Return how many directions of length d may be revealed: fewer than wanted only from half a million columns on.

    Directions and images then take a gigabyte each, and so do sums that are kept for a second release.  It costs
    accuracy at most, where many passes would be needed.
    """
    return min(columns, max(_MOST_STORED // d, _FEWEST_COLUMNS))
