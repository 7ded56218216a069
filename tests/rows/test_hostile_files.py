"""Files that were made to do harm: to run code, to take the memory, to end the process; and private maps."""

from __future__ import annotations

import json
import mmap
import struct
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np
import pytest
import zarr
from numcodecs.abc import Codec
from numcodecs.registry import register_codec
from scipy import sparse

import privspan as ps
from privspan.rows import RowSource, UnreadableFileError, open_rows
from privspan.rows.arrays import MappedRows, mapped_rows
from privspan.rows.compressed import compressed_rows

# --- Zarr: codecs -------------------------------------------------------------------------------------------------


class Attack(Codec):
    """A codec that does what it likes, as "pickle" of numcodecs did up to 0.16.5."""

    codec_id = "attack"
    ran: ClassVar[list[str]] = []

    def encode(self, buf: Any) -> Any:
        return buf

    def decode(self, buf: Any, out: Any = None) -> Any:
        self.ran.append("decoded")
        return np.array(["a", "b"], dtype=object)


register_codec(Attack)


def written(folder: Path, meta: dict[str, Any], chunk: bytes = b"", name: str = "0") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".zarray").write_text(json.dumps(meta))
    (folder / name).write_bytes(chunk)


def array_meta(shape: list[int], dtype: str, **codecs: Any) -> dict[str, Any]:
    codecs = {"compressor": None, "filters": None, **codecs}
    return {
        "zarr_format": 2,
        "shape": shape,
        "chunks": shape,
        "dtype": dtype,
        "fill_value": 0,
        "order": "C",
        **codecs,
    }


def store(folder: Path, *, csr: bool = False) -> Path:
    """Write an AnnData store of Zarr format 2, four rows and two columns, with its variables' names."""
    root = folder / "store.zarr"
    numbers = np.arange(8.0)
    if csr:
        parts = {"data": numbers, "indices": np.tile([0, 1], 4), "indptr": np.arange(0, 9, 2)}
        for part, values in parts.items():
            written(root / "X" / part, array_meta([len(values)], values.dtype.str), values.tobytes())
        (root / "X" / ".zgroup").write_text('{"zarr_format": 2}')
        (root / "X" / ".zattrs").write_text('{"encoding-type": "csr_matrix", "shape": [4, 2]}')
    else:
        written(root / "X", array_meta([4, 2], "<f8"), numbers.tobytes(), "0.0")
    names = b"".join(struct.pack("<I", len(name)) + name for name in (b"age", b"bmi"))
    text = array_meta([2], "|O", filters=[{"id": "vlen-utf8"}])
    written(root / "var" / "_index", text, struct.pack("<I", 2) + names)
    (root / "var" / ".zattrs").write_text('{"_index": "_index"}')
    for group in (root, root / "var"):
        (group / ".zgroup").write_text('{"zarr_format": 2}')
    return root


@pytest.mark.parametrize("csr", [False, True])
def test_a_store_of_usual_codecs_is_read(tmp_path, csr):
    rows = open_rows(store(tmp_path, csr=csr))
    assert rows.names == ("age", "bmi")
    found = rows[:].toarray() if csr else rows[:]
    np.testing.assert_array_equal(found, np.arange(8.0).reshape(4, 2))


@pytest.mark.parametrize("where", ["var/_index", "X", "X/indptr", "X/indices", "X/data"])
@pytest.mark.parametrize("place", ["compressor", "filters"])
@pytest.mark.parametrize("codec", ["attack", "pickle", "json2", "msgpack2", "vlen-array"])
def test_a_store_of_another_codec_is_refused_and_not_decoded(tmp_path, where, place, codec):
    root = store(tmp_path, csr=where.startswith("X/"))
    meta = json.loads((root / where / ".zarray").read_text())
    meta[place] = {"id": codec} if place == "compressor" else [{"id": codec}]
    written(root / where, meta, b"anything", "0.0" if where == "X" else "0")
    Attack.ran.clear()
    with pytest.raises(
        UnreadableFileError, match=r"store\.zarr.*codec|store\.zarr.*not a Zarr|store\.zarr.*damaged"
    ) as told:
        open_rows(root)[:]
    assert (codec, where) != ("attack", "X") or "codec 'attack', which is not read" in str(told.value)
    assert Attack.ran == []


def test_codecs_inside_others_are_looked_at(tmp_path):
    path = tmp_path / "x.zarr"
    zarr.create_array(str(path), shape=(8, 3), chunks=(2, 3), shards=(4, 3), dtype="f8")[:] = 1.0
    assert open_rows(path)[:].sum() == 24.0
    meta = json.loads((path / "zarr.json").read_text())
    meta["codecs"][0]["configuration"]["codecs"].append({"name": "numcodecs.zfpy", "configuration": {}})
    (path / "zarr.json").write_text(json.dumps(meta))
    with pytest.raises(UnreadableFileError):
        open_rows(path)


def test_names_of_another_number_are_not_read(tmp_path):
    path = tmp_path / "x.h5ad"
    with h5py.File(path, "w") as file:
        file["X"] = np.ones((4, 2))
        names = file.create_group("var").create_dataset("_index", shape=(10**9,), dtype="S8", chunks=(1000,))
        file["var"].attrs["_index"] = "_index"
        assert names.nbytes == 8 * 10**9
    assert open_rows(path).names is None


# --- Sparse matrices whose parts contradict one another -----------------------------------------------------------


@pytest.mark.parametrize("kind", ["csr", "csc", "bsr"])
def test_a_sparse_matrix_that_runs_backwards_is_refused_in_a_file_and_in_memory(tmp_path, kind):
    matrix = sparse.random_array((40, 40), density=0.2, format=kind, rng=0)
    matrix.indptr[1:-1:2] = matrix.indptr[-1]  # all entries, then none, then all of them again
    matrix.indptr[2:-1:2] = 0
    sparse.save_npz(tmp_path / "x.npz", matrix)
    program = f"""
        import privspan as ps
        try:
            print(ps.rows.open_rows({str(tmp_path / "x.npz")!r})[:])
        except ps.rows.UnreadableFileError:
            print("refused")
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "refused\n")
    with pytest.raises(ValueError, match="before they begin"):
        compressed_rows(matrix)


@pytest.mark.parametrize("row", [-1, 40, 2**60])
def test_an_entry_of_no_row_is_refused_before_memory_is_taken(tmp_path, row):
    parts = {
        "format": b"coo",
        "shape": (40, 3),
        "data": np.ones(2),
        "col": np.array([0, 1]),
        "row": np.array([0, row]),
    }
    np.savez(tmp_path / "x.npz", **parts)
    with pytest.raises(UnreadableFileError):
        open_rows(tmp_path / "x.npz")[:]


# --- Archives that unpack to more than they are --------------------------------------------------------------------


def header(shape: tuple[int, ...], dtype: str) -> bytes:
    told = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(told)) + told.encode()


def zeros(path: Path, name: str, shape: tuple[int, ...], dtype: str = "<f8") -> None:
    """Add an array of zeros to an archive, packed, a piece at a time."""
    left, piece = int(np.prod(shape)) * np.dtype(dtype).itemsize, bytes(2**20)
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(f"{name}.npy", "w") as member,
    ):
        member.write(header(shape, dtype))
        while left:
            member.write(piece[: min(left, len(piece))])
            left -= min(left, len(piece))


def peak(program: str) -> int:
    """Return by how many bytes a program in a process of its own grows at most."""
    after = "import resource; before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss"
    end = "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)"
    code = "\n".join(["import privspan as ps, privspan.ledger.release_file", after, textwrap.dedent(program), end])
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return int(run.stdout)


@pytest.mark.skipif(sys.platform != "linux", reason="how memory is counted")
@pytest.mark.parametrize("name", ["basis", "offset", "description"])
def test_a_release_file_that_inflates_is_refused_before_it_takes_memory(tmp_path, name):
    path = ps.Subspace(np.eye(3)[:, :1]).save(tmp_path / "line.npz")
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays.pop(name, None)
    np.savez(path, **arrays)
    zeros(path, name, {"basis": (2**15, 2**10), "offset": (2**25,), "description": (2**25,)}[name])
    assert path.stat().st_size < 2**22
    grown = peak(f"""
        for read in (ps.Subspace.load, ps.ledger.release_file.load_release):
            try:
                read({str(path)!r})
            except ValueError as error:
                assert "unpack to more than it is" in str(error), error
            else:
                raise SystemExit("taken")
    """)
    assert grown < 2**26


@pytest.mark.parametrize("shape", [(2**20, 2**20), (2, 1), (4, 1), (-3, 1)])
def test_a_header_that_lies_is_refused(tmp_path, shape):
    path = ps.Subspace(np.eye(3)[:, :1]).save(tmp_path / "line.npz")
    with np.load(path) as archive:
        description = archive["description"]
    np.savez(path, description=description)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("basis.npy", header(shape, "<f8") + np.eye(3)[:, :1].tobytes())
    with pytest.raises(ValueError, match="truncated or damaged"):
        ps.Subspace.load(path)


@pytest.mark.parametrize("name", ["shape", "format"])
def test_a_table_whose_size_is_a_bomb_is_refused(tmp_path, name):
    path = tmp_path / "x.npz"
    sparse.save_npz(path, sparse.eye_array(3, format="csr"))
    with np.load(path) as archive:
        arrays = dict(archive)
    arrays.pop(name)
    np.savez(path, **arrays)
    zeros(path, name, (2**20,), "<i8")
    with pytest.raises(UnreadableFileError):
        open_rows(path)


def test_a_file_that_numpy_2_0_wrote_is_read(tmp_path):
    line = ps.Subspace(np.eye(3)[:, :1])
    path = line.save(tmp_path / "line.npz")
    with np.load(path) as archive:
        arrays = dict(archive)
    assert set(arrays) == {"description", "basis"}  # with any NumPy
    np.savez(path, **arrays)
    with zipfile.ZipFile(path, "a") as archive, archive.open("allow_pickle.npy", "w") as member:
        np.save(member, np.array(False))
    assert ps.Subspace.load(path) == line


# --- Maps -----------------------------------------------------------------------------------------------------------


def mapped(path: Path, **options: Any) -> Any:
    with open(path, "r+b") as file:
        return np.ndarray((40_000, 64), buffer=mmap.mmap(file.fileno(), 0, **options))


PRIVATE_MAPS = {
    "copy": lambda path: mapped(path, access=mmap.ACCESS_COPY),
    "private": lambda path: mapped(path, flags=mmap.MAP_PRIVATE, prot=mmap.PROT_READ | mmap.PROT_WRITE),
    "a view that calls itself a map": lambda path: mapped(path, access=mmap.ACCESS_COPY).view(np.memmap),
    "anonymous": lambda path: np.ndarray(
        (40_000, 64), buffer=mmap.mmap(-1, path.stat().st_size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    ),
    "numpy's": lambda path: np.memmap(path, dtype=np.float64, mode="c", shape=(40_000, 64)),
}


@pytest.mark.skipif(sys.platform == "win32", reason="no private maps there")
@pytest.mark.parametrize("kind", PRIVATE_MAPS)
def test_a_fit_leaves_a_table_in_a_private_map_as_it_is(tmp_path, kind):
    path = tmp_path / "people.dat"
    path.write_bytes(bytes(40_000 * 64 * 8))
    table = PRIVATE_MAPS[kind](path)
    table[:] = np.random.default_rng(0).normal(size=table.shape)
    before = table.copy()
    assert not isinstance(mapped_rows(table[1:]), RowSource)
    ps.private_pca(table, 2, epsilon=1.0, delta=1e-6, rng=0)
    np.testing.assert_array_equal(table, before)


@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_table_in_a_shared_map_is_read_without_keeping_its_pages(tmp_path, mode):
    np.save(tmp_path / "x.npy", np.ones((10, 3)))
    table = np.load(tmp_path / "x.npy", mmap_mode=mode)
    for view in (table, table[2:], np.asarray(table), table.T.T, np.asarray(table)[1:]):
        assert isinstance(mapped_rows(view), MappedRows)
