"""Sources of NumPy's own files: memory maps, ``.npy`` and ``.npz``."""

from __future__ import annotations

import mmap
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from privspan._lib.archive import declared
from privspan._lib.archive import read as read_member
from privspan._lib.arrays import Reals
from privspan.rows.compressed import compressed_rows, sorted_rows
from privspan.rows.damage import UnreadableFileError, damage_told
from privspan.rows.limits import LIMITS, Limits
from privspan.rows.source import HeldRows, RowSource
from privspan.rows.windows import DealtRows

_SPARSE_KEYS = {"format", "shape", "data"}  # of every matrix that SciPy saves


class MappedRows(RowSource):
    """Rows of an array that lives in a mapped file.

    Rows are copied out, and the pages they came from are handed back at once, so that a pass over a large file
    does not count as memory of this process.

    Parameters
    ----------
    array : (n, d) array
        A view of the mapping.
    mapping : mmap.mmap
        The mapping behind it.  It must be shared with the file: handing back the pages of a private one would
        undo what was written to it.
    limits : Limits, optional
    """

    def __init__(self, array: Reals, mapping: mmap.mmap, limits: Limits = LIMITS) -> None:
        self._array, self._mapping, self.limits = np.asarray(array), mapping, limits
        self.shape, self.dtype = (int(array.shape[0]), int(array.shape[1])), array.dtype
        self._in_use = 0  # bytes of the file that may be mapped
        # Rows of a file in Fortran order, or of a transposed view, are scattered over it.
        self._in_runs = array.strides == (self.shape[1] * self.dtype.itemsize, self.dtype.itemsize)
        self.cheap = self._in_runs

    def _run(self, start: int, stop: int) -> Reals:
        return self.lend(slice(start, stop)).copy()

    def _take(self, numbers: NDArray[np.intp]) -> Reals:
        order = np.argsort(numbers, kind="stable")  # the file is read forwards
        ascending, forwards = numbers[order], bool((order[1:] > order[:-1]).all())
        out = np.empty((len(numbers), self.shape[1]), dtype=self.dtype)
        for part in self._parts(ascending):
            if forwards:
                np.take(self._array, ascending[part], axis=0, out=out[part], mode="clip")  # one copy, no buffer
            else:
                out[order[part]] = self._array[ascending[part]]
            self._used(self.limits.taken_bytes)
        return out

    def _parts(self, ascending: NDArray[np.intp]) -> Iterator[slice]:
        """Cut row numbers into parts that make the system map about `taken_bytes` of the file each."""
        length, near, most = self.shape[1] * self.dtype.itemsize, self.limits.neighbourhood, self.limits.taken_bytes
        first, last = ascending * length // near, ((ascending + 1) * length - 1) // near
        before = np.concatenate([[-1], last[:-1]])
        mapped = np.cumsum(last - np.maximum(first, before + 1) + 1) * near  # up to and with each row
        edges = np.searchsorted(mapped, np.arange(0, mapped[-1] if len(mapped) else 0, most), side="right")
        for start, stop in pairwise([*np.unique(edges).tolist(), len(ascending)]):
            yield slice(start, stop)

    def dealt(self, generator: np.random.Generator) -> RowSource:
        """Return the rows of a large file in a public random order that can be read nearly forwards."""
        if self._array.nbytes <= self.limits.freely_read_bytes or not self._in_runs:
            return self
        return DealtRows(self, max(1, self.limits.neighbourhood // (self.shape[1] * self.dtype.itemsize)), generator)

    def take_columns(self, part: slice) -> Reals:
        """Return consecutive columns of all rows, (n, columns), reading no more than those."""
        found = self._array[:, part].copy()
        self._used(self._array.nbytes)
        return found

    def lend(self, rows: slice) -> Reals:
        """Return rows in the file itself."""
        lent = self._array[rows]
        self._used(lent.nbytes)  # gives back pages of rows that were lent before
        return lent

    def _used(self, count: int) -> None:
        """Give pages back to the system, once enough of them have been copied or used."""
        self._in_use += count if self._in_runs else self._array.nbytes
        if self._in_use >= self.limits.taken_bytes and hasattr(self._mapping, "madvise"):  # not on Windows
            self._mapping.madvise(mmap.MADV_DONTNEED)
            self._in_use = 0


def mapped_rows(array: Reals, limits: Limits = LIMITS) -> Reals | MappedRows:
    """Return a source for an array in a mapping that shares a file, and every other array as it is.

    Only NumPy's own maps tell that they do: a `mmap.mmap` does not say whether its pages are private, and what was
    written to those is nowhere else.
    """
    owner: Any = array
    while isinstance(owner.base, np.ndarray):
        owner = owner.base
    shared = isinstance(owner, np.memmap) and owner.mode in ("r", "r+", "w+")
    return MappedRows(array, owner.base, limits) if shared and isinstance(owner.base, mmap.mmap) else array


def open_npy(path: Path, limits: Limits) -> RowSource:
    """Map a ``.npy`` file; a file shorter than its header says is refused here."""
    with damage_told(path.name, "is not a NumPy array file of plain numbers, or is shorter than its header says."):
        array = np.lib.format.open_memmap(path, mode="r")  # `np.load` would leave a damaged archive open
    check_numbers(path.name, array.shape, array.dtype)
    source = mapped_rows(array, limits)
    assert isinstance(source, RowSource)
    return source


def open_npz(path: Path, limits: Limits) -> RowSource:
    """Open a ``.npz`` archive with one dense array, or with a matrix saved by SciPy."""
    damage = "is not a readable NumPy archive; save it again with `numpy.savez`."
    with damage_told(path.name, damage), zipfile.ZipFile(path) as archive:
        members = {name.removesuffix(".npy") for name in archive.namelist()}
        is_sparse = members >= _SPARSE_KEYS
        if len(members) != 1 and not is_sparse:
            raise UnreadableFileError(
                "{file!r} must hold one array; it holds {count}.", file=path.name, count=len(members)
            )
        stored = {member: declared(archive, member) for member in members}
        shape, dtype = stored["data" if is_sparse else next(iter(members))]
        if is_sparse:
            if stored["shape"][0] != (2,) or stored["format"][0] != ():
                raise ValueError("A matrix has two sizes and one format.")
            shape = tuple(int(size) for size in read_member(archive, "shape"))
        check_numbers(path.name, shape, dtype)

    def read() -> Any:
        with damage_told(path.name, damage), np.load(path, allow_pickle=False) as parts:
            return _stored_matrix(path, parts, shape) if is_sparse else np.asarray(parts[parts.files[0]])

    source = HeldRows((shape[0], shape[1]), dtype, read, is_sparse=is_sparse)
    source.limits = limits
    return source


def _stored_matrix(path: Path, parts: Any, shape: tuple[int, ...]) -> Any:
    """Return a matrix that SciPy saved as CSR; an entry in a column outside the table spoils its own row only."""
    if parts["format"].item() in ("coo", b"coo"):  # SciPy would refuse the whole matrix for one such entry
        rows, columns = parts["coords"] if "coords" in parts else (parts["row"], parts["col"])
        if not (len(parts["data"]) == len(rows) == len(columns) and columns.dtype.kind in "iu"):
            raise ValueError("An entry must have a number, a row and a column.")
        return sorted_rows(parts["data"], rows, columns, (shape[0], shape[1]))
    return sparse.csr_array(compressed_rows(sparse.load_npz(path)))


def check_numbers(name: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Refuse a table that is not two-dimensional, is empty, or does not hold real numbers of up to 64 bits."""
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise UnreadableFileError(
            "{name!r} must hold real numbers of at most 64 bits; it holds {dtype}.", name=name, dtype=dtype.name
        )
    if len(shape) != 2:
        raise UnreadableFileError(
            "{name!r} must hold a table with one row per person; its shape is {shape}.", name=name, shape=tuple(shape)
        )
    if shape[0] < 1 or shape[1] < 1:
        raise UnreadableFileError("{name!r} holds no {what}.", name=name, what="rows" if shape[0] < 1 else "columns")
