"""Whatever hands out batches, as one thing: types before any row, some columns, in the order of the table."""

import duckdb
import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from pyarrow import parquet
from streams import DAY, STREAMS, arrow, relation

from privspan.rows import LeftOut, UnreadableFileError, draft_schema, open_rows
from privspan.rows.files.batches import batches_of
from privspan.rows.limits import Limits

ROWS = np.random.default_rng(0).normal(size=(90, 3))
FEW = Limits(batch_rows=20)


@pytest.mark.parametrize("kind", STREAMS)
def test_types_are_known_before_rows_and_columns_come_as_asked(kind):
    batches = batches_of(STREAMS[kind](arrow(ROWS)), FEW)
    assert batches.types.names == ["c0", "c1", "c2"]
    assert {*batches.types.types} == {pa.float64()}
    read = pa.Table.from_batches(batches.read(["c2", "c0"]))
    np.testing.assert_array_equal(np.column_stack(read.columns), ROWS[:, [2, 0]])


@pytest.mark.parametrize(
    "make",
    [lambda table: pl.from_arrow(table).lazy(), pyarrow.dataset.dataset, lambda table: table.to_reader(20)],
    ids=["lazy frame", "dataset", "reader"],
)
def test_batches_are_as_long_as_was_asked_for(make):
    lengths = [batch.num_rows for batch in batches_of(make(arrow(ROWS)), FEW).read(["c0"])]
    assert sum(lengths) == 90
    assert max(lengths) <= 20


def test_wide_tables_come_a_few_rows_at_a_time():
    assert Limits().stream_rows(3) == 2**16
    assert Limits().stream_rows(2**20) == 8
    assert Limits().stream_rows(2**40) == 1


def test_columns_whose_names_differ_in_capitals_alone_are_not_mixed_up():
    """They are one name to DuckDB."""
    for columns, values in ((["Age", "age"], [3, 1]), (["AGE"], [2])):
        (batch,) = batches_of(duckdb.sql("select 1.0 as age, 2.0 as AGE, 3.0 as Age")).read(columns)
        assert batch.schema.names == columns
        assert [column[0].as_py() for column in batch.columns] == values


def test_a_relation_reads_the_columns_that_are_asked_for_alone():
    """A cell of another, one of two gigabytes say, must not break the reading off."""
    broken = duckdb.sql("select 1.0 as age, error('cell') as word from range(3)")
    assert batches_of(broken).types.names == ["age", "word"]
    assert sum(batch.num_rows for batch in batches_of(broken).read(["age"])) == 3


OBJECTS = [[1.0, 2.0, 3.0], [1.0, None, "x"], ["x", "y", "z"], [None, None, None], [1j, b"x", DAY], [[1], {}, 2.5]]


@pytest.mark.parametrize("cells", OBJECTS)
def test_objects_of_a_frame_are_text_whatever_they_hold(cells):
    """Arrow would say what they are by looking at them, or refuse the frame for one that differs, and quote it."""
    other = pd.Series(cells, dtype=object)
    frame = pd.DataFrame({"age": [41.0, 7.0, 3.0], "other": other}).set_axis(["a", "b", "c"])
    assert batches_of(frame).types == pa.schema({"age": pa.float64(), "other": pa.string()})
    assert open_rows(frame).left_out == (LeftOut("other", "text"),)
    assert 'type = "text"' in draft_schema(frame)
    missing = [cell is None for cell in cells]
    assert (open_rows(frame, person="other").ids() == -1).tolist() == missing


def test_frames_of_all_dtypes_are_read_by_them():
    frame = pd.DataFrame(
        {
            "float": [1.5, np.nan],
            "Int": pd.array([1, None], "Int8"),
            "flag": pd.array([True, None], "boolean"),
            "sex": pd.Categorical(["f", None], categories=["f", "m"]),
            "word": pd.array(["a", None], "string"),
            "day": pd.to_datetime(["2020-01-01", None]),
            "arrow": pd.array([1.5, None], pd.ArrowDtype(pa.decimal128(9, 2))),
            7: [True, False],
        }
    )
    rows = open_rows(frame)
    assert rows.names == ("float", "Int", "flag", "arrow", "7")
    np.testing.assert_array_equal(rows[:], [[1.5, 1, 1, 1.5, 1], [np.nan] * 4 + [0]])
    ids = [open_rows(frame, person=name).ids().tolist() for name in ("Int", "sex", "word", "day", "arrow")]
    assert ids == [[0, -1]] * 5
    objects = pd.DataFrame({"age": [1.0] * 5, "who": pd.Series([7, 7.0, "7", " 7 ", 2.5], dtype=object)})
    assert open_rows(objects, person="who").ids().tolist() == [0, 0, 0, 0, 1]
    with pytest.raises(UnreadableFileError, match="two columns named 'age'"):
        open_rows(pd.DataFrame([[1.0, 2.0]], columns=["age", "age"]))


def test_a_failure_while_types_are_asked_for_is_told_without_its_words():
    with pytest.raises(UnreadableFileError, match="broke off while it was read"):
        draft_schema(pd.DataFrame({"age": [1.0 + 2.0j]}))


def test_a_dataset_reads_the_columns_that_are_asked_for_alone(tmp_path):
    parquet.write_table(arrow(ROWS), tmp_path / "people.parquet")
    seen = [batch.schema.names for batch in batches_of(pyarrow.dataset.dataset(tmp_path)).read(["c1"])]
    assert seen == [["c1"]]


def test_no_query_is_computed_for_its_types():
    calls = []
    lazy = pl.LazyFrame({"age": [1.0]}).map_batches(lambda frame: calls.append(1) or frame)
    assert batches_of(lazy).types.names == batches_of(narwhals.from_native(lazy)).types.names == ["age"]
    assert calls == []


def test_a_relation_of_duckdb_is_read_while_it_is_computed():
    """As a stream it would be computed as a whole before the first batch."""
    running = relation(arrow(ROWS)).query("people", "select sum(c0) over (order by c1) as c0 from people")
    first = next(iter(batches_of(running, FEW).read(["c0"])))
    assert 0 < first.num_rows <= 2048
