"""What a schema declares of columns: their public ranges, the same from files, streams and frames."""

import tomllib

import h5py
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

import privspan as ps
from privspan.rows import Column, Schema, SelectedColumns, open_rows, read_schema
from privspan.rows.columns import public_columns
from privspan.rows.files.schema import schema_text

RNG = np.random.default_rng(0)
PEOPLE = pa.table(
    {
        "age": RNG.integers(0, 100, 400).astype(float),
        "ill": (RNG.random(400) < 0.3).astype(float),
        "sex": ["f", "m"] * 200,
        "bmi": RNG.normal(25.0, 4.0, 400),
    }
)
DECLARED = Schema(
    {
        "age": Column("number", bounds=(0, 120)),
        "ill": Column("boolean"),
        "sex": Column("category", categories=["f", "m"]),
        "bmi": Column("number"),
    }
)
BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def opened(folder):
    """The table, from every kind of file, a stream and a frame."""
    feather.write_feather(PEOPLE, folder / "people.feather")
    parquet.write_table(PEOPLE, folder / "people.parquet")
    rows = [",".join(map(str, row.values())) for row in PEOPLE.to_pylist()]
    (folder / "people.csv").write_text("\n".join([",".join(PEOPLE.column_names), *rows, ""]))
    (folder / "people.toml").write_text(schema_text(DECLARED, {}, []))
    given = [folder / "people.feather", folder / "people.parquet", folder / "people.csv", PEOPLE.to_reader(), PEOPLE]
    return [open_rows(table, schema=folder / "people.toml") for table in given]


@pytest.mark.filterwarnings("ignore::privspan.UselessPlanWarning")
def test_declared_ranges_are_public_wherever_the_table_comes_from(tmp_path):
    means = set()
    for source in opened(tmp_path):
        known = public_columns(source, 5)
        np.testing.assert_array_equal(known.low, [0.0, 0.0, 0.0, 0.0, np.nan])
        np.testing.assert_array_equal(known.high, [120.0, 1.0, 1.0, 1.0, np.nan])
        assert known.boolean.tolist() == [False, True, True, True, False]
        release = ps.private_pca(source, 1, rng=0, **BUDGET)
        means.add(release.extras["mean"].tobytes())
        asked = ps.private_pca(source, 1, rng=0, bounds={"age": (0, 120)}, **BUDGET)  # says it once more
        assert release.extras["mean"].tobytes() == asked.extras["mean"].tobytes()
        assert release.parameters["declared"] == asked.parameters["declared"]
        assert release.parameters["declared"]["bounds"] == {"age": (0.0, 120.0)}
    assert len(means) == 1


def test_what_the_call_says_replaces_what_the_schema_does(tmp_path):
    known = public_columns(opened(tmp_path)[0], 5, bounds={"age": (18, 65)})
    np.testing.assert_array_equal(known.low, [18.0, 0.0, 0.0, 0.0, np.nan])
    np.testing.assert_array_equal(known.high, [65.0, 1.0, 1.0, 1.0, np.nan])


def test_ranges_go_with_their_columns(tmp_path):
    source = opened(tmp_path)[0]
    chosen = SelectedColumns(source, [4, 0])
    np.testing.assert_array_equal(chosen.bounds, [[np.nan, 0.0], [np.nan, 120.0]])
    doubled = source.then(lambda rows: rows)
    np.testing.assert_array_equal(doubled.bounds, source.bounds)
    assert source.then(lambda rows: rows[:, :2], columns=2).bounds is None
    asked = open_rows(tmp_path / "people.parquet", columns=["bmi", "age"], schema=DECLARED)
    np.testing.assert_array_equal(asked.bounds, [[np.nan, 0.0], [np.nan, 120.0]])


def test_ranges_and_booleans_of_anndata(tmp_path):
    with h5py.File(tmp_path / "cells.h5ad", "w") as file:
        file["X"] = np.ones((4, 3))
        file["var/_index"] = ["a", "b", "c"]
        file["var"].attrs["_index"] = "_index"
    declared = Schema({"c": Column("number", bounds=(0, 9)), "a": Column("boolean"), "b": Column("skip")})
    source = open_rows(tmp_path / "cells.h5ad", schema=declared)
    known = public_columns(source, 2)
    assert source.names == ("a", "c")
    assert (known.low.tolist(), known.high.tolist(), known.boolean.tolist()) == ([0, 0], [1, 9], [True, False])


def test_a_schema_is_written_as_it_is_read(tmp_path):
    (tmp_path / "people.toml").write_text(schema_text(DECLARED, {}, []))
    assert read_schema(tmp_path / "people.toml") == DECLARED
    assert tomllib.loads(schema_text(DECLARED, {}, []))["columns"]["age"]["bounds"] == [0, 120]


@pytest.mark.parametrize(
    ("bounds", "said"),
    [
        ((0, 1, 2), "must be two numbers"),
        ("01", "must be two numbers"),
        (5, "must be two numbers"),
        ((0, "1"), "must be two numbers"),
        ((False, True), "must be two numbers"),
        ((1, 1), "the lower one first"),
        ((0, float("inf")), "must be finite"),
        ((float("nan"), 1), "must be finite"),
    ],
)
def test_bounds_that_cannot_be_are_refused(bounds, said):
    with pytest.raises(ValueError, match=said):
        Column("number", bounds=bounds)


@pytest.mark.parametrize("kind", ["boolean", "text", "skip", "list"])
def test_only_numbers_have_bounds(kind):
    with pytest.raises(ValueError, match="is for columns of type number"):
        Column(kind, bounds=(0, 1))
