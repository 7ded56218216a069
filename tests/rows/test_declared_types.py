"""One record decides no shape, no dtype, no refusal and no other record's numbers, whatever holds the table."""

from __future__ import annotations

import decimal
import math
import subprocess
import sys
from functools import partial

import dask
import dask.array as da
import dask.dataframe as dd
import h5py
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

import privspan as ps
from privspan._lib import checks
from privspan.privacy.randomness import open_streams
from privspan.rows import GatheredRows, PartitionedTable, open_rows, partition_rows
from privspan.rows.door import open_table
from privspan.rows.place import LocalPlace
from privspan.sums.pairs import pair_differences

N, WHO = 12, 5  # records, and the one that is replaced
INTEGERS = [127, -3, 0, 5, 90, 1, -128, 64, 33, 2, -7, 8]
LONG = [2**63 - 1, 2**53 + 1, -(2**63), 1, 2, 3, 2**62 + 1, -5, 0, 7, 2**53 + 3, 9]
TRUTH = [True, False, True] * 4
REAL = [0.1, -3e38, 3e38, 2.5, 1e-40, -7.25, 3.3e38, 1.0, -0.0, 5e-324, 1e300, -2.0]
PLAIN = [*map(list, zip(INTEGERS, LONG, TRUTH, REAL, strict=True))]  # one list per record
NAMES = ["small", "long", "truth", "real"]

GAPS = [None] * 4
HUGE = [-128, -(2**63), True, 1.7e308]
NOT_FINITE = [1, 2, None, math.inf]
NOT_A_NUMBER = [1, 2, False, math.nan]
TEXT = ["x", "1.5", "true", "three"]
STRANGE = [1 + 2j, 10**400, object(), decimal.Decimal("1e999999")]
TYPED = [GAPS, HUGE, NOT_FINITE, NOT_A_NUMBER]
UNTYPED = [*TYPED, TEXT, STRANGE]


def column(records, index):
    return [record[index] for record in records]


def frame(dtypes, records):
    """A frame of pandas with nullable or Arrow dtypes."""
    return pd.DataFrame(
        {
            name: pd.array(column(records, i), dtype=kind)
            for i, (name, kind) in enumerate(zip(NAMES, dtypes, strict=True))
        }
    )


def arrow(records):
    types = [pa.int8(), pa.int64(), pa.bool_(), pa.float64()]
    columns = [pa.array(column(records, i), kind, from_pandas=False) for i, kind in enumerate(types)]
    return pa.table(dict(zip(NAMES, columns, strict=True)))


def polars(records):
    types = [pl.Int8, pl.Int64, pl.Boolean, pl.Float64]
    return pl.DataFrame(records, schema=dict(zip(NAMES, types, strict=True)), orient="row")


def plain_pandas(records):
    """Types as pandas infers them: objects where a cell is missing, but for a column that is declared."""
    return pd.DataFrame({name: column(records, i) for i, name in enumerate(NAMES)})


def dask_frame(records):
    """Two partitions, each of the types that its own records lead pandas to; declared are those of the meta."""
    meta = plain_pandas(PLAIN[:1])
    parts = [dask.delayed(plain_pandas)(part) for part in (records[:4], records[4:])]
    return dd.from_delayed(parts, meta=meta, verify_meta=False)


def numpy_chunk(dtype, cells):
    """A chunk of the declared type, if its cells allow it."""
    if all(isinstance(cell, int) for row in cells for cell in row):
        return np.array(cells).astype(dtype)
    gaps = [[math.nan if cell is None else cell for cell in row] for row in cells]
    numbers = all(isinstance(cell, int | float) for row in gaps for cell in row)
    return np.array(gaps, dtype=float if numbers else object)


def dask_array(records, dtype=np.int64):
    """Integers in chunks; a chunk with a gap comes as floats, one with text as objects."""
    second = 0 if dtype == np.int8 else 1
    cells = [[record[0], record[second]] for record in records]
    chunks = [
        da.from_delayed(dask.delayed(numpy_chunk)(dtype, part), (len(part), 2), dtype=dtype)
        for part in (cells[:4], cells[4:])
    ]
    return da.concatenate(chunks)


def floats(dtype, records):
    with np.errstate(over="ignore"):
        return np.array(
            [[math.nan if cell is None else cell for cell in row] for row in records], dtype=float
        ).astype(dtype)


CONTAINERS = {
    "NumPy float64": (partial(floats, np.float64), TYPED),
    "NumPy float32": (partial(floats, np.float32), TYPED),
    "lists": (lambda records: [*map(list, records)], UNTYPED),
    "tuples": (lambda records: tuple(map(tuple, records)), UNTYPED),
    "pandas float64": (lambda records: pd.DataFrame(floats(np.float64, records), columns=NAMES), TYPED),
    "pandas float32": (lambda records: pd.DataFrame(floats(np.float32, records), columns=NAMES), TYPED),
    "pandas, some float32": (lambda records: plain_pandas(PLAIN).assign(real=floats("f4", records)[:, 3]), TYPED),
    "pandas nullable": (partial(frame, ["Int8", "Int64", "boolean", "Float64"]), TYPED),
    "pandas on Arrow": (
        partial(frame, ["int8[pyarrow]", "int64[pyarrow]", "bool[pyarrow]", "double[pyarrow]"]),
        TYPED,
    ),
    "polars": (polars, TYPED),
    "polars, Boolean": (lambda records: polars(records).select("truth"), [GAPS]),
    "polars, small": (lambda records: polars(records).select("small"), [GAPS]),
    "Arrow, Boolean": (lambda records: arrow(records).select(["truth"]), [GAPS]),
    "Arrow, small": (lambda records: arrow(records).select(["small"]), [GAPS]),
    "Arrow table": (arrow, TYPED),
    "Arrow table in chunks": (lambda records: pa.concat_tables([arrow(records[:4]), arrow(records[4:])]), TYPED),
    "Arrow batch": (lambda records: arrow(records).combine_chunks().to_batches()[0], TYPED),
    "Arrow stream": (lambda records: Stream(arrow(records)), TYPED),
    "Dask array of integers": (dask_array, UNTYPED),
    "Dask array of small integers": (partial(dask_array, dtype=np.int8), [GAPS, TEXT, STRANGE]),
    "Dask array of float32": (partial(dask_array, dtype=np.float32), UNTYPED),
    "Dask frame": (dask_frame, UNTYPED),
    "Dask frame, nullable": (
        lambda records: dd.from_pandas(frame(["Int8", "Int64", "boolean", "Float64"], records), npartitions=3),
        TYPED,
    ),
}
CASES = [
    pytest.param(make, record, id=f"{name}-{index}")
    for name, (make, records) in CONTAINERS.items()
    for index, record in enumerate(records)
]


class Stream:
    """A table of a package that we do not know."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def replaced(record):
    return [record if who == WHO else own for who, own in enumerate(PLAIN)]


def here(X):
    """Return the rows of a table as an array, and what it says of itself."""
    source = open_table(X, accept_sparse=False).here()
    return source.dtype, source.shape, np.asarray(source[:])


@pytest.mark.parametrize(("make", "record"), CASES)
def test_a_record_reaches_its_own_row_alone(make, record):
    (dtype, shape, rows), (other_dtype, other_shape, other_rows) = here(make(PLAIN)), here(make(replaced(record)))
    assert dtype == other_dtype == rows.dtype == other_rows.dtype
    assert shape == other_shape == rows.shape == other_rows.shape
    others = np.arange(N) != WHO
    assert rows[others].tobytes() == other_rows[others].tobytes()
    assert np.isfinite(rows[others]).mean() > 0.9


@pytest.mark.parametrize(("make", "record"), CASES)
def test_a_record_reaches_the_difference_of_its_own_pair_alone(make, record):
    """In memory, in partitions, and on the way through scikit-learn's checks."""
    differences = [pair_differences(make(records), open_streams(3).public) for records in (PLAIN, replaced(record))]
    assert differences[0].dtype == differences[1].dtype
    rows = [
        np.asarray(GatheredRows(each)[:]) if isinstance(each, PartitionedTable) else np.asarray(each[:])
        for each in differences
    ]
    changed = [i for i in range(len(rows[0])) if rows[0][i].tobytes() != rows[1][i].tobytes()]
    assert len(changed) <= 1


class Stopped(Exception):
    """Raised where the private steps would begin."""


class Caught(ps.PrivatePCA):
    """An estimator that stops with the rows on which its private steps would run."""

    def _release(self, call, X, names, declared):
        raise Stopped(X.dtype, X.shape, np.asarray(X))


@pytest.mark.parametrize(("make", "record"), [case for case in CASES if "Dask" not in case.id])
def test_a_record_changes_nothing_else_in_an_estimator(make, record):
    """scikit-learn has rules of its own for frames, which look at where cells are missing."""
    seen = []
    for records in (PLAIN, replaced(record)):
        with pytest.raises(Stopped) as caught:
            Caught(1, epsilon=1.0, delta=1e-6).fit(make(records))
        seen.append(caught.value.args)
    (dtype, shape, rows), (other_dtype, other_shape, other_rows) = seen
    assert (dtype, shape) == (other_dtype, other_shape)
    others = np.arange(N) != WHO
    assert rows[others].tobytes() == other_rows[others].tobytes()


def whole(cells):
    return [cell if cell is None else int(cell) for cell in cells]


TARGETS = {
    "list": (list, [None, True, math.nan, "x", 10**400, 1j]),
    "pandas nullable": (partial(pd.Series, dtype="boolean"), [None]),
    "pandas index": (lambda cells: pd.Index(whole(cells), dtype="Int64"), [None]),
    "pandas array": (lambda cells: pd.array(whole(cells), dtype="Int64"), [None]),
    "polars": (partial(pl.Series, dtype=pl.Boolean), [None]),
    "Arrow array": (partial(pa.array, type=pa.bool_()), [None]),
    "Arrow column": (lambda cells: pa.chunked_array([whole(cells[:4]), whole(cells[4:])], pa.int8()), [None]),
    "Arrow decimals": (
        lambda cells: pa.array(whole(cells), pa.decimal128(5, 2)),
        [None],
    ),
    "Arrow stream": (lambda cells: Stream(pa.chunked_array([whole(cells)], pa.int8())), [None]),
}


@pytest.mark.parametrize(
    ("make", "cell"),
    [
        pytest.param(make, cell, id=f"{name}-{i}")
        for name, (make, cells) in TARGETS.items()
        for i, cell in enumerate(cells)
    ],
)
def test_a_target_reaches_its_own_record_alone(make, cell):
    spoilt = [cell if who == WHO else own for who, own in enumerate(TRUTH)]
    y, other = checks.column(make(TRUTH), N), checks.column(make(spoilt), N)
    others = np.arange(N) != WHO
    assert y.dtype == other.dtype == np.float64
    assert y[others].tolist() == other[others].tolist() == [float(truth) for truth in np.array(TRUTH)[others]]
    X = np.random.default_rng(0).standard_normal((N, 2))
    bounds = {"epsilon": 1.0, "delta": 1e-6, "norm_bound": 1.0, "target_bound": 1.0, "rng": 0}
    for table in (X, partition_rows(X, [4, 8])):
        assert np.isfinite(ps.private_regression(table, make(spoilt), **bounds).coefficients).all()


REFUSED = {
    "text": [
        pd.DataFrame({"a": [1.0], "who": ["x"]}),
        pd.DataFrame({"a": [1.0], "who": pd.array(["x"], dtype="string")}),
        pl.DataFrame({"a": [1.0], "who": ["x"]}),
        pa.table({"a": [1.0], "who": ["x"]}),
    ],
    "objects": [pd.DataFrame({"a": [1.0], "who": pd.Series([3], dtype=object)})],
    "lists": [pl.DataFrame({"a": [1.0], "who": [[1.0]]}), pa.table({"a": [1.0], "who": [[1.0]]})],
    "categories": [
        pd.DataFrame({"a": [1.0], "who": pd.Categorical([3])}),
        pa.table({"a": [1.0], "who": pa.array(["x"]).dictionary_encode()}),
    ],
    "dates": [
        pd.DataFrame({"a": [1.0], "who": pd.to_datetime(["2020-01-01"])}),
        pa.table({"a": [1.0], "who": pa.array([3], pa.date32())}),
    ],
    "complex": [pd.DataFrame({"a": [1.0], "who": [1j]})],
}


@pytest.mark.parametrize(
    ("table", "what"), [pytest.param(table, what) for what, tables in REFUSED.items() for table in tables]
)
def test_a_column_that_is_not_of_numbers_is_refused_by_name(table, what):
    for take in (open_table, ps.PrivatePCA(1, epsilon=1.0, delta=1e-6).fit):
        with pytest.raises(TypeError, match=rf"column 'who' holds {what}"):
            take(table)


def test_float32_stays_only_where_all_of_it_is_declared_so():
    narrow = np.ones((3, 1), dtype=np.float32)
    for table in (
        pd.DataFrame({"a": narrow[:, 0], "b": pd.array([1.0, None, 2.0], dtype="Float32")}),
        pl.DataFrame({"a": narrow[:, 0]}),
        pa.table({"a": narrow[:, 0]}),
        da.from_array(narrow, chunks=(2, 1)),
        dd.from_pandas(pd.DataFrame(narrow, columns=["a"]), npartitions=2),
    ):
        assert open_table(table).dtype == np.float32
    for table in (
        pd.DataFrame({"a": narrow[:, 0], "b": np.ones(3, dtype=np.float16)}),
        pl.DataFrame({"a": narrow[:, 0], "b": [True, False, True]}),
        pa.table({"a": narrow[:, 0], "b": pa.array([1, 2, 3], pa.int8())}),
        da.from_array(narrow.astype(np.int8), chunks=(2, 1)),
        dd.from_pandas(pd.DataFrame({"a": narrow[:, 0], "b": [1, 2, 3]}), npartitions=2),
    ):
        assert open_table(table).dtype == np.float64


def test_a_frame_of_floats_is_viewed():
    table = np.ones((4, 3))
    assert np.shares_memory(checks.matrix(pd.DataFrame(table, copy=False)), table)


def test_columns_that_store_only_what_is_not_zero_are_taken():
    held = pd.arrays.SparseArray([0, 1, 0])
    assert checks.matrix(pd.DataFrame({"a": held, "b": pd.arrays.SparseArray([False, True, False])})).tolist() == [
        [0, 0],
        [1, 1],
        [0, 0],
    ]


def test_one_null_in_arrow_decides_nothing_about_the_other_pairs():
    """Near the end of float32 the differences of all others came and went with one null."""
    rng = np.random.default_rng(0)
    cells = (rng.choice([-3e38, 3e38], (400, 2)) * rng.uniform(0.9, 1.0, (400, 2))).astype(np.float32)
    small = [1] * 400
    tables = [
        pa.table({"small": pa.array(own, pa.int8()), "a": cells[:, 0], "b": cells[:, 1]})
        for own in (small, [None, *small[1:]])
    ]
    one, other = (pair_differences(X, open_streams(1).public) for X in tables)
    assert one.dtype == other.dtype
    assert (one != other).any(axis=1).sum() <= 1


def test_one_missing_cell_in_dask_decides_nothing_about_the_rows_of_others():
    """The largest integer became the smallest in all other rows of the partition, and the answer was another line."""
    cells = np.tile([[2**63 - 1, 1, 0]], (80, 1))
    gappy = np.where(np.arange(80)[:, None] == 7, np.nan, cells)
    tables = [da.from_delayed(dask.delayed(rows), (80, 3), dtype=np.int64) for rows in (cells, gappy)]
    whole, other = (np.asarray(open_table(table, accept_sparse=False).here()[:]) for table in tables)
    others = np.arange(80) != 7
    assert np.array_equal(whole[others], other[others])
    assert np.array_equal(whole, cells.astype(np.float64))
    found = [ps.exact_subspace(table, 1, epsilon=2.0, delta=1e-3, rng=2).subspace.basis for table in tables]
    assert np.array_equal(*found)


def test_a_table_in_partitions_is_one_of_floats():
    with pytest.raises(TypeError, match="float32 or float64; got dtype int64"):
        PartitionedTable(LocalPlace(), [partial(np.ones, (2, 2))], (2,), 2, np.dtype(np.int64))
    home = partition_rows(np.array([[2**62 + 1, 1], [3, 4]]), [1, 1])
    assert home.dtype == np.float64
    assert GatheredRows(home).take_columns(slice(0, 1)).tolist() == [[2.0**62], [3.0]]


@pytest.mark.parametrize("dtype", [bool, np.int64, np.float64, np.float32])
@pytest.mark.parametrize("to", [str, bytes, object, np.longdouble, complex])
def test_a_chunk_that_one_cell_turned_into_something_else_keeps_the_others(dtype, to):
    cells = np.array([[0.1, 2.0**53 + 2], [-1e-8, 1.0], [0.0, 7.0]]).astype(dtype)
    turned = np.array(cells.astype("U32" if to in (str, bytes) else to), dtype="S32" if to is bytes else None)
    turned[1] = {str: "x", bytes: b"x", complex: 1j}.get(to, np.nan)
    one, other = (da.from_delayed(dask.delayed(chunk), (3, 2), dtype=dtype) for chunk in (cells, turned))
    assert here(one)[2][[0, 2]].tobytes() == here(other)[2][[0, 2]].tobytes()
    assert np.isnan(here(other)[2][1]).all()


def test_a_masked_chunk_has_gaps():
    cells = np.ma.masked_less(np.array([[1.0, 2.0], [3.0, 4.0]]), 2.0)
    chunk = da.from_delayed(dask.delayed(cells), (2, 2), dtype=float)
    assert np.isnan(here(chunk)[2]).tolist() == [[True, False], [False, False]]


def test_an_entry_outside_a_sparse_file_leaves_the_type_of_the_others(tmp_path):
    table = sparse.random_array((20, 6), density=0.5, rng=0, format="csr", data_sampler=lambda size: np.full(size, 3))
    table = table.astype(np.int8)
    for name, column_of_first in (("sound", None), ("foreign", 99)):
        with h5py.File(tmp_path / f"{name}.h5ad", "w") as file:
            group = file.create_group("X")
            group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", table.shape
            indices = table.indices.copy()
            if column_of_first is not None:
                indices[0] = column_of_first
            for part, values in (("data", table.data), ("indices", indices), ("indptr", table.indptr)):
                group[part] = values
    sound, foreign = (open_rows(tmp_path / f"{name}.h5ad") for name in ("sound", "foreign"))
    assert sound.dtype == foreign.dtype == sound[:].dtype == foreign[:].dtype
    assert np.array_equal(sound[1:].toarray(), foreign[1:].toarray())


def test_packages_that_nobody_uses_stay_unloaded():
    code = (
        "import sys, numpy, privspan as ps; ps.private_mean(numpy.ones((4, 2)), epsilon=1.0, delta=0.1);"
        "ps.private_mean([[1, 2], [3, None]], epsilon=1.0, delta=0.1);"
        "print(sorted({'pandas', 'polars', 'pyarrow', 'dask'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
