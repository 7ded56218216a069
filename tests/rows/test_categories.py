"""Categories, gaps and ids from every container: the same table, the same numbers, and one record changes its own."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pytest

import privspan as ps
from privspan.datasets import clinic
from privspan.rows import UnreadableFileError, open_rows
from privspan.rows.categories import encoded

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
CLINIC = clinic(900, 3_000, rng=3)
WARDS = ("medicine", "surgery", "maternity")
NAMES = ("age", "bmi", "systolic", "income", "smoker", "sex=f", "sex=m", *(f"ward={ward}" for ward in WARDS))


def in_memory(frame):
    """The same visits in pandas, polars and Arrow, with words in several types."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    yield "pandas", frame
    yield "objects", frame.astype({"sex": object, "ward": object})
    yield "pandas with Arrow", frame.convert_dtypes(dtype_backend="pyarrow")
    yield "Arrow", table
    yield "Arrow, words", table.set_column(7, "ward", table["ward"].cast(pa.string()))
    yield "polars", pl.from_arrow(table)
    yield "polars, enum", pl.from_arrow(table).with_columns(pl.col("sex").cast(pl.Enum(["f", "m"])))


def files(made, frame, folder):
    (folder / "clinic.toml").write_text(made.schema)
    made.to_csv(folder / "clinic.csv")
    frame.to_parquet(folder / "clinic.parquet", row_group_size=700)
    feather.write_feather(pa.Table.from_pandas(frame, preserve_index=False), folder / "clinic.feather", chunksize=500)
    for suffix in ("csv", "parquet", "feather"):
        yield suffix, open_rows(folder / f"clinic.{suffix}", schema=folder / "clinic.toml")


def test_every_container_gives_the_same_numbers_and_the_same_release(tmp_path):
    frame = CLINIC.to_pandas()
    wanted = encoded(frame, CLINIC.categories, person="patient")
    assert wanted.names == NAMES == CLINIC.names
    there = ~np.isnan(wanted[:])
    np.testing.assert_array_equal(wanted[:][there], CLINIC.complete[there])
    assert 0.06 < 1.0 - there.mean() < 0.1
    first = None
    options = {**BUDGET, "epsilon": 6.0, "scale": True, "rng": 1}
    for name, X in in_memory(frame):
        np.testing.assert_array_equal(encoded(X, CLINIC.categories, person="patient")[:], wanted[:], err_msg=name)
        release = ps.private_pca(X, 3, **options, categories=CLINIC.categories, person="patient")
        first = release if first is None else first
        assert release.subspace == first.subspace, name
        np.testing.assert_array_equal(release.extras["mean"], first.extras["mean"], err_msg=name)
    for name, source in files(CLINIC, frame, tmp_path):
        assert source.names == NAMES
        np.testing.assert_array_equal(source[:], wanted[:], err_msg=name)
        np.testing.assert_array_equal(source.boolean, [False] * 4 + [True] * 6)
        assert ps.private_pca(source, 3, **options).subspace == first.subspace, name
    assert first.subspace.names == NAMES
    assert first.parameters["n"] == 900


@pytest.mark.parametrize("cell", [None, "zz", "", "f", 7])
def test_a_replaced_word_changes_its_own_row_only(cell, tmp_path):
    frame = CLINIC.to_pandas().astype({"sex": object, "ward": object})
    other = frame.copy()
    other.loc[11, "sex"] = cell
    tables = [encoded(X, CLINIC.categories, person="patient") for X in (frame, other)]
    for suffix, writer in (("csv", "to_csv"), ("parquet", "to_parquet")):
        for number, X in enumerate((frame, other)):
            getattr(X.astype({"sex": "string", "ward": "string"}), writer)(
                tmp_path / f"{number}.{suffix}", index=False
            )
        (tmp_path / "s.toml").write_text(CLINIC.schema)
        tables += [open_rows(tmp_path / f"{number}.{suffix}", schema=tmp_path / "s.toml") for number in (0, 1)]
    for one, two in zip(tables[::2], tables[1::2], strict=True):
        assert (one.shape, one.dtype, one.names) == (two.shape, two.dtype, two.names)
        same = ((one[:] == two[:]) | (np.isnan(one[:]) & np.isnan(two[:]))).all(axis=1)
        assert same[np.arange(len(same)) != 11].all()
        expected = [1.0, 0.0] if cell == "f" else [np.nan, np.nan]
        np.testing.assert_array_equal(two[11:12][0, 5:7], expected)


def test_a_number_of_many_digits_is_a_gap_of_its_own():
    """Python refuses to spell it."""
    table = encoded(pd.DataFrame({"ward": ["a", 10**5000, 7], "age": [1, 2, 3]}), {"ward": ["a", 7]})
    np.testing.assert_array_equal(table[:][:, :2], [[1, 0], [np.nan, np.nan], [0, 1]])


def test_declared_words_are_taken_only_when_that_is_said():
    frame = CLINIC.to_pandas().drop(columns=["patient", "sex"])
    table = pa.Table.from_pandas(frame, preserve_index=False)
    with pytest.raises(TypeError, match="column 'ward' holds categories") as refused:
        ps.private_pca(frame, 2, **BUDGET)
    assert "categories=" in refused.value.__notes__[0]
    for X in (frame, table, pl.from_arrow(table).with_columns(pl.col("ward").cast(pl.Enum(WARDS)))):
        assert encoded(X, "declared").names[-3:] == NAMES[-3:]
        assert encoded(X, {"ward": "declared"}).names[-3:] == NAMES[-3:]
    with pytest.raises(TypeError, match="its type declares none"):
        encoded(frame.astype({"ward": "string"}), {"ward": "declared"})


def test_refusals_name_the_column_and_what_to_do(tmp_path):
    frame = CLINIC.to_pandas().drop(columns="patient")
    for categories, told in (
        ({"sex": ["f", "m"]}, "column 'ward' holds categories"),
        ({**CLINIC.categories, "town": ["a"]}, "no column named 'town'"),
        ({**CLINIC.categories, "sex": ["f", "f"]}, "different words.*'sex'"),
        ({**CLINIC.categories, "sex": "fm"}, "different words.*'sex'"),
        ({**CLINIC.categories, "smoker": ["0", "1"]}, "text or whole numbers; 'smoker'"),
        (["sex"], "a mapping"),
    ):
        with pytest.raises((TypeError, ValueError), match=told):
            ps.private_pca(frame, 2, **BUDGET, categories=categories)
    with pytest.raises(TypeError, match="must go with a data frame"):
        ps.private_pca(np.zeros((9, 2)), 1, **BUDGET, categories={"sex": ["f"]})
    (tmp_path / "bad.toml").write_text('[columns.sex]\ntype = "category"\n')
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(UnreadableFileError, match="needs `categories`"):
        open_rows(tmp_path / "t.csv", schema=tmp_path / "bad.toml")


def test_frames_as_people_have_them_fit():
    rng = np.random.default_rng(0)
    n = 2_000
    dummies = pd.get_dummies(
        pd.DataFrame({"ward": rng.choice(["a", "b"], n), "age": rng.integers(0, 99, n)}), dtype=int
    )
    nullable = pd.DataFrame(
        {"age": pd.array(rng.integers(0, 99, n), dtype="Int64"), "on": pd.array(rng.random(n) < 0.5)}
    )
    nullable["bmi"] = pd.array(rng.normal(25, 3, n), dtype="Float64")
    nullable.loc[3, :] = pd.NA
    for X in (dummies, nullable, pl.from_pandas(nullable), pa.Table.from_pandas(nullable)):
        assert np.isfinite(ps.private_pca(X, 1, **BUDGET, rng=0).subspace.basis).all()
    with pytest.raises(TypeError, match="column 'name' holds"):
        ps.private_pca(nullable.assign(name=["x"] * n), 1, **BUDGET)


def test_estimators_fit_and_transform_words_and_gaps():
    frame = CLINIC.to_pandas()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ps.NotPrivateWarning)
        model = ps.PrivatePCA(2, epsilon=8.0, delta=1e-6, scale=True, categories=CLINIC.categories, random_state=0)
        model.fit(frame, person="patient")
        scaler = ps.PrivateStandardScaler(epsilon=8.0, delta=1e-6, categories=CLINIC.categories, random_state=0)
        scaler.fit(frame.drop(columns="patient"))
    assert model.components_.shape == (2, 10)
    assert tuple(model.feature_names_in_) == NAMES == tuple(scaler.get_feature_names_out())
    scores = model.transform(frame)
    assert scores.shape == (3_000, 2)
    assert np.isfinite(scores).all()
    np.testing.assert_array_equal(scores, model.transform(frame.drop(columns="patient")))
    assert scaler.transform(frame.drop(columns="patient")).shape == (3_000, 10)
    assert model.gaps_.shape == (10,)
