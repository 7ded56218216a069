"""Row sources: every format gives the same values, nothing is read at opening, faults are told from metadata."""

import decimal
from datetime import date
from itertools import pairwise
from pathlib import Path

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
import zarr
from scipy import sparse

from privspan.rows import SUFFIXES, LeftOut, RowSource, UnreadableFileError, open_rows
from privspan.rows.arrays import mapped_rows
from privspan.rows.door import open_table
from privspan.rows.limits import Limits
from privspan.rows.shifting import less
from privspan.rows.source import HeldRows, RowPairs
from privspan.rows.windows import SelectedColumns

N, D = 103, 6
NAMES = tuple(f"c{index}" for index in range(D))


@pytest.fixture(scope="module")
def values() -> np.ndarray:
    table = np.random.default_rng(0).standard_normal((N, D)).astype(np.float32)
    table[np.random.default_rng(1).random((N, D)) < 0.4] = 0.0
    return table


def as_table(values):
    return pa.table({name: values[:, index] for index, name in enumerate(NAMES)})


def as_lists(values):
    return pa.table({"embedding": pa.FixedSizeListArray.from_arrays(values.ravel(), D)})


def write_npz(path, values):
    np.savez_compressed(path, rows=values)


def write_sparse_npz(path, values):
    sparse.save_npz(path, sparse.coo_array(values))


def write_csv(path, values):
    lines = [",".join(NAMES), *(",".join(repr(float(value)) for value in row) for row in values)]
    path.write_text("\n".join(lines) + "\n")


def write_parquet(path, values):
    pq.write_table(as_table(values), path, row_group_size=17)


def write_parquet_lists(path, values):
    pq.write_table(as_lists(values), path, row_group_size=40)


def write_parquet_free_lists(path, values):
    pq.write_table(pa.table({"embedding": values.tolist()}), path, row_group_size=40)


def write_arrow(path, values, compression=None):
    table = as_table(values)
    options = pa.ipc.IpcWriteOptions(compression=compression)
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=30)


def write_arrow_compressed(path, values):
    write_arrow(path, values, "lz4")


def write_feather_lists(path, values):
    pyarrow.feather.write_feather(pa.table({"embedding": values.tolist()}), path)


def write_zarr2(path, values):
    zarr.create_array(str(path), data=values, chunks=(20, 4), zarr_format=2)


def write_zarr3(path, values):
    zarr.create_array(str(path), data=values, chunks=(20, 4), zarr_format=3)


def write_anndata(group, values, *, dense):
    if dense:
        group["X"] = values
    else:
        matrix = sparse.csr_array(values)
        X = group.create_group("X")
        X.attrs["encoding-type"], X.attrs["shape"] = "csr_matrix", [*matrix.shape]
        for part in ("data", "indices", "indptr"):
            X[part] = getattr(matrix, part)
    variables = group.create_group("var")
    variables.attrs["_index"] = "gene"
    variables["gene"] = np.array(NAMES, dtype="S") if isinstance(group, h5py.Group) else np.array(NAMES)


def write_h5ad(path, values):
    with h5py.File(path, "w") as file:
        write_anndata(file, values, dense=True)


def write_h5ad_csr(path, values):
    with h5py.File(path, "w") as file:
        write_anndata(file, values, dense=False)


def write_zarr_anndata(path, values):
    write_anndata(zarr.open_group(str(path), mode="w", zarr_format=2), values, dense=False)


FORMATS = {
    "npy": (".npy", np.save),
    "npy by columns": (".npy", lambda path, values: np.save(path, np.asfortranarray(values))),
    "npz": (".npz", write_npz),
    "npz sparse": (".npz", write_sparse_npz),
    "csv": (".csv", write_csv),
    "parquet": (".parquet", write_parquet),
    "parquet lists": (".parquet", write_parquet_lists),
    "parquet free lists": (".parquet", write_parquet_free_lists),
    "arrow": (".arrow", write_arrow),
    "arrow compressed": (".arrow", write_arrow_compressed),
    "feather lists": (".feather", write_feather_lists),
    "zarr 2": (".zarr", write_zarr2),
    "zarr 3": (".zarr", write_zarr3),
    "h5ad": (".h5ad", write_h5ad),
    "h5ad CSR": (".h5ad", write_h5ad_csr),
    "zarr AnnData CSR": (".zarr", write_zarr_anndata),
}


@pytest.fixture(params=FORMATS)
def written(request, tmp_path, values) -> Path:
    suffix, write = FORMATS[request.param]
    path = tmp_path / f"people{suffix}"
    write(path, values)
    return path


def opened(path, **options):
    """Open a file with what its types do not tell."""
    free = path.suffix in (".parquet", ".feather") and is_free(path)
    return open_rows(path, **options, **({"width": D} if free else {}))


def is_free(path):
    types = pq.read_schema(path) if path.suffix == ".parquet" else pa.ipc.open_file(pa.memory_map(str(path))).schema
    return "embedding" in types.names and pa.types.is_list(types.field("embedding").type)


def dense(rows):
    return rows.toarray() if sparse.issparse(rows) else rows


@pytest.mark.parametrize("window_bytes", [2**27, 10 * D * 4])
def test_every_format_gives_the_same_rows_in_any_order(written, values, window_bytes):
    rows = opened(written, limits=Limits(window_bytes=window_bytes))
    assert isinstance(rows, RowSource)
    assert rows.shape == (N, D)
    assert rows.ndim == 2
    assert len(rows) == N
    assert rows.left_out == ()
    scattered = np.random.default_rng(2).permutation(N)
    for part in (slice(0, 0), slice(3, 50), slice(None), slice(40, 3), slice(-5, None), slice(2, 90, 7)):
        np.testing.assert_array_equal(dense(rows[part]), values[part])
    for numbers in (scattered, scattered[:1], scattered[:0], np.array([5, 5, 4])):
        np.testing.assert_array_equal(dense(rows[numbers]), values[numbers])
    np.testing.assert_array_equal(rows.take_columns(slice(1, 4)), values[:, 1:4])
    assert sparse.issparse(rows[:2]) == rows.is_sparse
    if rows.edges is not None:
        assert rows.edges[0] == 0
        assert rows.edges[-1] == N
        assert (np.diff(rows.edges) > 0).all()


def test_rows_handed_out_are_fresh(written, values):
    rows = opened(written)
    first = rows[:4]
    data = first.data if sparse.issparse(first) else first
    data[...] = 7.0
    np.testing.assert_array_equal(dense(rows[:4]), values[:4])


def test_names_come_with_the_format(written):
    rows = opened(written)
    named = rows.names is not None
    assert named == (written.suffix in (".csv", ".arrow", ".h5ad") or (written / "var").exists() or is_plain(written))
    if named:
        assert rows.names == NAMES


def is_plain(path):
    return path.suffix == ".parquet" and "c0" in pq.read_schema(path).names


def test_chosen_columns_come_in_the_order_asked_for(written, values):
    if opened(written).names is None:
        with pytest.raises(UnreadableFileError, match="has no column"):
            opened(written, columns=["c3"])
        return
    rows = opened(written, columns=["c3", "c1"])
    assert rows.names == ("c3", "c1")
    assert {left.name for left in rows.left_out} == {"c0", "c2", "c4", "c5"}
    assert {left.reason for left in rows.left_out} == {"not asked for"}
    np.testing.assert_array_equal(dense(rows[10:20]), values[10:20][:, [3, 1]])
    with pytest.raises(UnreadableFileError, match="no column named 'weight'"):
        opened(written, columns=["weight"])


def test_an_array_of_the_whole_can_be_asked_for(written, values):
    rows = opened(written)
    if rows.is_sparse:
        with pytest.raises(TypeError, match="sparse"):
            np.asarray(rows)
    else:
        np.testing.assert_array_equal(np.asarray(rows), values)
    with pytest.raises(TypeError, match="slice or by an array"):
        rows[3]
    with pytest.raises(TypeError):
        iter(rows)
    with pytest.raises(IndexError):
        rows[np.array([N])]


def test_opening_reads_no_values(tmp_path, values):
    """With every byte of the values overwritten, opening tells the same shape and columns."""
    for suffix, write in (FORMATS[name] for name in ("npy", "parquet", "arrow", "zarr 3", "h5ad CSR")):
        path = tmp_path / f"people{suffix}"
        write(path, values)
        before = open_rows(path)
        other = tmp_path / f"other{suffix}"
        write(other, np.full_like(values, np.nan))
        after = open_rows(other)
        assert (before.shape, before.names, before.left_out) == (after.shape, after.names, after.left_out)
    for name in ("npz", "npz sparse"):
        FORMATS[name][1](tmp_path / "held.npz", values)
        held = open_rows(tmp_path / "held.npz")
        assert isinstance(held, HeldRows)
        assert held.shape == (N, D)
        assert "_whole" not in vars(held)  # where values are kept, once they are read


MIXED = {
    "age": pa.array([30, None, 41], pa.int64()),
    "member": pa.array([True, False, None]),
    "price": pa.array([decimal.Decimal("1.25"), None, decimal.Decimal("2.50")]),
    "half": pa.array([1.5, 2.5, None], pa.float16()),
    "name": pa.array(["a", "b", "c"]),
    "born": pa.array([date(2000, 1, 1)] * 3),
    "colour": pa.array(["red", "red", "blue"]).dictionary_encode(),
    "user_id": pa.array([1, 2, 3]),
    "scores": pa.array([[1.0], [2.0, 3.0], []]),
    "empty": pa.nulls(3),
}
EXPECTED = np.array([[30, 1, 1.25, 1.5], [np.nan, 0, np.nan, 2.5], [41, np.nan, 2.5, np.nan]])


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
def test_columns_are_left_out_by_their_schema(tmp_path, suffix):
    path = tmp_path / f"mixed{suffix}"
    (pq.write_table if suffix == ".parquet" else pyarrow.feather.write_feather)(pa.table(MIXED), path)
    rows = open_rows(path)
    assert rows.names == ("age", "member", "price", "half")
    assert rows.dtype == np.float64
    np.testing.assert_array_equal(rows[:], EXPECTED)
    assert rows.left_out == (
        LeftOut("name", "text"),
        LeftOut("born", "dates or times"),
        LeftOut("colour", "categories"),
        LeftOut("user_id", "named like an identifier"),
        LeftOut("scores", "lists"),
        LeftOut("empty", "no numbers"),
    )
    np.testing.assert_array_equal(open_rows(path, columns=["user_id"])[:], [[1.0], [2.0], [3.0]])
    assert open_rows(path, columns=["half", "member"]).dtype == np.float32
    with pytest.raises(UnreadableFileError, match=r"'name' .* is not a column of numbers \(text\)"):
        open_rows(path, columns=["name", "age"])
    with pytest.raises(ValueError, match="twice"):
        open_rows(path, columns=["age", "age"])
    with pytest.raises(TypeError, match="sequence of column names"):
        open_rows(path, columns="age")


def test_csv_cells_that_are_no_numbers_count_as_missing(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text('a,b,c,id,t\n1,"x",1e400,1, true\n+2.5e1,2, .5,2,FALSE\nthree,y,,3,\n4,z,-3.,4,yes\n')
    rows = open_rows(path, columns=["a", "c", "t"])
    np.testing.assert_array_equal(rows[:], [[1, np.inf, 1], [25, 0.5, 0], [np.nan, np.nan, np.nan], [4, -3, np.nan]])
    rows = open_rows(path)
    assert rows.names == ("a", "b", "c", "t")
    assert rows.left_out == (LeftOut("id", "named like an identifier"),)
    np.testing.assert_array_equal(rows[:][:, 1], [np.nan, 2, np.nan, np.nan])


def test_lists_of_another_length_count_as_missing(tmp_path):
    path = tmp_path / "lists.parquet"
    fixed = pa.array([[1.0, 2.0], None, [3.0, None]], pa.list_(pa.float32(), 2))
    pq.write_table(pa.table({"v": fixed}), path)
    np.testing.assert_array_equal(open_rows(path)[:], [[1, 2], [np.nan, np.nan], [3, np.nan]])
    np.testing.assert_array_equal(open_rows(path)[1:], [[np.nan, np.nan], [3, np.nan]])
    with pytest.raises(UnreadableFileError, match="lists of 2 numbers, and `width` says 3"):
        open_rows(path, width=3)


def test_a_list_column_beside_others_is_used_when_asked_for(tmp_path):
    path = tmp_path / "both.parquet"
    table = as_lists(np.arange(12, dtype=np.float32).reshape(2, D)).append_column("age", pa.array([1, 2]))
    pq.write_table(table, path)
    assert open_rows(path).names == ("age",)
    rows = open_rows(path, columns=["embedding"])
    assert rows.shape == (2, D)
    assert rows.left_out == (LeftOut("age", "not asked for"),)


def cut(path, share):
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])


@pytest.mark.parametrize("name", ["npy", "npz", "parquet", "parquet lists", "arrow", "h5ad"])
def test_a_file_that_is_cut_short_is_refused_at_opening(tmp_path, values, name):
    suffix, write = FORMATS[name]
    path = tmp_path / f"people{suffix}"
    write(path, values)
    cut(path, 0.9)
    with pytest.raises(UnreadableFileError, match=r"people.*[^\n]\.$") as caught:
        open_rows(path)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_foreign_missing_and_empty_files_are_refused(tmp_path, suffix):
    path = tmp_path / f"people{suffix}"
    with pytest.raises(UnreadableFileError, match="does not exist"):
        open_rows(path)
    for content in (b"", b"certainly not a table", bytes(range(256)) * 20):
        path.write_bytes(content)
        with pytest.raises(UnreadableFileError):
            open_rows(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(UnreadableFileError, match=r"directory|not a Zarr|no table"):
        open_rows(path)


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.ones(3), "one row per person"),
        (np.ones((3, 2, 2)), "one row per person"),
        (np.ones((0, 3)), "holds no rows"),
        (np.ones((3, 0)), "holds no columns"),
        (np.ones((3, 2), dtype=complex), "real numbers"),
        (np.array([["a", "b"]]), "real numbers"),
        (np.ones((3, 2), dtype=[("a", float)]), "real numbers"),
    ],
)
def test_arrays_that_are_no_tables_are_refused(tmp_path, array, message):
    np.save(tmp_path / "x.npy", array)
    np.savez(tmp_path / "x.npz", array)
    for name in ("x.npy", "x.npz"):
        with pytest.raises(UnreadableFileError, match=message):
            open_rows(tmp_path / name)


def test_objects_are_never_unpickled(tmp_path):
    np.save(tmp_path / "x.npy", np.array([[None, {}]], dtype=object), allow_pickle=True)
    with pytest.raises(UnreadableFileError):
        open_rows(tmp_path / "x.npy")


def test_other_faults_of_tables(tmp_path):
    path = tmp_path / "x.parquet"
    for table, message in [
        (pa.table({"name": ["a"]}), "no column of numbers"),
        (pa.table({"id": [1]}), "no column of numbers"),
        (pa.table({"a": pa.array([], pa.float64())}), "holds no rows"),
        (pa.table([[1.0], [2.0]], names=["a", "a"]), "two columns named 'a'"),
    ]:
        pq.write_table(table, path)
        with pytest.raises(UnreadableFileError, match=message):
            open_rows(path)
    text = tmp_path / "x.csv"
    for content, message in [
        ("1,2\n3,4\n", "line of column names"),
        ("1,\n3,4\n", "line of column names"),
        (',"2"\n3,4\n', "line of column names"),
        ("NA,2\n3,4\n", "line of column names"),
        ("1e999,2,\n3,4,5\n", "line of column names"),
        ("true,-inf,2\n3,4,5\n", "line of column names"),
        (",\n3,4\n", "line of column names"),
        ("a,b\n", "holds no rows"),
        ("a,a\n1,2\n", "two columns named 'a'"),
        ("id\n1\n", "no column of numbers"),
    ]:
        text.write_text(content)
        with pytest.raises(UnreadableFileError, match=message):
            open_rows(text)
    with pytest.raises(UnreadableFileError, match=r"must end in one of .*\.parquet"):
        open_rows(tmp_path / "x.xlsx")


def test_a_record_with_a_decimal_comma_is_not_taken_for_names(tmp_path):
    (tmp_path / "x.csv").write_text("1,5;2,25;\n3,5;4,5;6\n")
    with pytest.raises(UnreadableFileError, match="line of column names"):
        open_rows(tmp_path / "x.csv", separator=";", decimal=",")
    (tmp_path / "x.csv").write_text("2019;;height\n3,5;4,5;6\n")  # a year may be a name
    assert open_rows(tmp_path / "x.csv", separator=";", decimal=",").names == ("2019", "height")


def test_faults_of_anndata(tmp_path, values):
    path = tmp_path / "x.h5ad"
    with h5py.File(path, "w") as file:
        file["obs"] = 1
    with pytest.raises(UnreadableFileError, match="no table 'X'"):
        open_rows(path)
    write_h5ad_csr(path, values)
    with h5py.File(path, "r+") as file:
        file["X"].attrs["encoding-type"] = "csc_matrix"
    with pytest.raises(UnreadableFileError, match="stored by rows"):
        open_rows(path)
    write_h5ad_csr(path, values)
    with h5py.File(path, "r+") as file:
        file["X/indices"][0] = D + 5  # foreign memory, if it were believed
    rows = open_rows(path)[:2].toarray()
    np.testing.assert_array_equal(rows, [np.zeros(D), values[1]])
    write_h5ad_csr(path, values)
    with h5py.File(path, "r+") as file:
        file["X/indptr"][2] = 10**6
    with pytest.raises(UnreadableFileError, match="damaged"):
        open_rows(path)[:]


def test_a_damaged_page_is_told_when_it_is_read(tmp_path):
    path = tmp_path / "x.parquet"
    pq.write_table(as_table(np.random.default_rng(3).standard_normal((5000, D))), path, compression="zstd")
    data = bytearray(path.read_bytes())
    data[4:60] = bytes(56)  # the header of the first page
    path.write_bytes(data)
    rows = open_rows(path)
    with pytest.raises(UnreadableFileError, match="damaged"):
        rows[:]


def test_memory_maps_are_read_without_keeping_their_pages(tmp_path, values):
    np.save(tmp_path / "x.npy", values)
    shared = np.load(tmp_path / "x.npy", mmap_mode="r+")
    private = np.load(tmp_path / "x.npy", mmap_mode="c")
    private[0] = 5.0  # would be lost if its pages were handed back
    assert mapped_rows(private) is private
    rows = mapped_rows(np.asarray(shared)[10:])
    assert isinstance(rows, RowSource)
    shared[11] = 3.0
    np.testing.assert_array_equal(rows[1:2], np.full((1, D), 3.0))
    np.testing.assert_array_equal(np.load(tmp_path / "x.npy")[11], np.full(D, 3.0))
    assert mapped_rows(values) is values


@pytest.mark.parametrize("dtype", ["?", "i2", "i4", "i8", "u8", "f2", "f4", "f8", ">f4", ">i8"])
@pytest.mark.parametrize("laid", [np.ascontiguousarray, np.asfortranarray, lambda X: np.repeat(X, 2, axis=0)[::2]])
@pytest.mark.parametrize("width", [3, 700])
def test_rows_less_a_vector_are_differences_of_numbers_whatever_their_type(dtype, laid, width):
    numbers = np.arange(4 * width) % 5
    if np.dtype(dtype).kind in "iu" and np.dtype(dtype).itemsize >= 4:  # more digits than float32 has, and float64
        numbers = numbers + (2**24 if np.dtype(dtype).itemsize == 4 else 2**53)
    X, vector = laid(numbers.reshape(4, width).astype(dtype)), np.linspace(-1.0, 1.0, width)
    wanted = X.astype(np.float64) - vector
    for found in (
        less(X, vector),
        less(X, vector, np.empty((4, width))),
        less(X, vector, np.empty((4, width + 1))[:, :-1]),
    ):
        assert found.dtype == np.float64
        np.testing.assert_array_equal(found, wanted)
    assert less(X, vector).flags.c_contiguous  # sums along rows then add in one order
    np.testing.assert_array_equal(less(X, X[::-1]), X.astype(np.float64) - X[::-1].astype(np.float64))


def test_derived_sources_compute_row_by_row(written, values):
    rows = opened(written)
    pairs = np.random.default_rng(4).permutation(N)[: N // 2 * 2].reshape(-1, 2)
    differences = RowPairs(rows, pairs, less)
    expected = values[pairs[:, 0]].astype(np.float64) - values[pairs[:, 1]]
    np.testing.assert_array_equal(dense(differences[:]), expected)
    np.testing.assert_array_equal(dense(differences[np.array([7, 3])]), expected[[7, 3]])
    assert differences.shape == expected.shape
    chosen = SelectedColumns(rows, [5, 0])
    np.testing.assert_array_equal(dense(chosen[4:9]), values[4:9][:, [5, 0]])
    if not rows.is_sparse:
        shift = np.arange(D, dtype=np.float64)
        np.testing.assert_array_equal(open_table(rows).less(shift)[3:8], values[3:8] - shift)


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_windows_do_not_follow_row_groups(tmp_path, values, suffix):
    """Some writers close a row group after a number of bytes, so that one record moves where they end."""
    table, edges = as_table(values), set()
    for number, cuts in enumerate([(), (50,), (3, 4, 40, 90), (10, 20, 30), (0, 101, 102)]):
        path = tmp_path / f"{number}{suffix}"
        with (pq.ParquetWriter if suffix == ".parquet" else pa.ipc.new_file)(path, table.schema) as writer:
            for start, stop in pairwise([0, *cuts, N]):
                writer.write_table(table.slice(start, stop - start))
        rows = open_rows(path, limits=Limits(window_bytes=10 * D * 4))
        edges.add(tuple(rows.edges.tolist()))
        for part in (slice(None), slice(37, 62), slice(0, 9), slice(95, None), slice(11, 12)):
            np.testing.assert_array_equal(rows[part], values[part])
    assert edges == {(*range(0, N, 10), N)}


def test_a_large_row_group_is_read_piece_by_piece(tmp_path):
    table = np.random.default_rng(5).standard_normal((1000, 2))
    pq.write_table(pa.table({"a": table[:, 0], "b": table[:, 1]}), tmp_path / "x.parquet", row_group_size=600)
    rows = open_rows(tmp_path / "x.parquet", limits=Limits(window_bytes=50 * 2 * 8))
    assert np.diff(rows.edges).max() == 50
    for start in (0, 120, 90, 590, 640, 30, 999):
        np.testing.assert_array_equal(rows[start : start + 130], table[start : start + 130])
    scattered = np.random.default_rng(6).integers(0, 1000, 300)
    np.testing.assert_array_equal(rows[scattered], table[scattered])
