"""Whose row is whose: the same from every container, each id from its own cell."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from privspan.rows import UnreadableFileError, id_codes, open_rows, split_ids
from privspan.rows.arrays import HeldRows

PATIENTS = ["p 7", "p,8", None, "p 7", 'say "a"', None, "p,8", "Zoë"]
NUMBERS = [3, 3, 9, None, -1, 9, 2**53 + 1, 2**53]


def _together(codes):
    """Which rows are of one person: all that a code may say."""
    codes = np.asarray(codes)
    same = codes[:, None] == codes[None, :]
    same[codes < 0] = False
    return same | np.eye(len(codes), dtype=bool)


def _expected(ids):
    return np.array(
        [[(one is not None and one == two) or i == j for j, two in enumerate(ids)] for i, one in enumerate(ids)]
    )


def _frame(ids):
    return pd.DataFrame({"patient": ids, "age": np.arange(len(ids), dtype=float)})


def _containers(ids, folder):
    frame = _frame(pd.array(ids, dtype="Int64" if isinstance(ids[0], int) else "string"))
    table = pa.table({"patient": pa.array(ids), "age": frame["age"].to_numpy()})
    pq.write_table(table, folder / "t.parquet", row_group_size=3)
    feather.write_feather(table, folder / "t.feather", chunksize=3)
    frame.to_csv(folder / "t.csv", index=False)
    frame.to_csv(folder / "t.tsv", index=False, sep="\t")
    yield from (frame, table, pl.from_arrow(table))
    yield _frame(pd.Series(ids, dtype=object))
    yield _frame(pd.Series(ids, dtype=object).astype("category"))
    yield pa.table({"patient": pa.array(ids).dictionary_encode(), "age": table["age"]})
    for suffix in ("parquet", "feather", "csv", "tsv"):
        yield open_rows(folder / f"t.{suffix}", person="patient")


@pytest.mark.parametrize("ids", [PATIENTS, NUMBERS])
def test_every_container_tells_the_same_persons(ids, tmp_path):
    for X in _containers(ids, tmp_path):
        rest, codes = split_ids(X, "patient")
        assert codes.shape == (len(ids),)
        assert codes.dtype == np.intp
        np.testing.assert_array_equal(_together(codes), _expected(ids), err_msg=repr(type(X)))
        names = rest.names if hasattr(rest, "names") else getattr(rest, "column_names", None) or list(rest.columns)
        assert list(names) == ["age"]
        assert rest.shape == (len(ids), 1)


def test_ids_given_by_themselves():
    for ids in (
        PATIENTS,
        np.array(PATIENTS, dtype=object),
        pd.Series(PATIENTS),
        pl.Series(PATIENTS),
        pa.array(PATIENTS),
    ):
        np.testing.assert_array_equal(_together(id_codes(ids, len(PATIENTS))), _expected(PATIENTS))
    for ids in (np.array([5, 5, 4]), pd.Index([5, 5, 4]), pd.CategoricalIndex(["b", "b", "a"]), pd.array([5, 5, 4])):
        np.testing.assert_array_equal(_together(id_codes(ids, 3)), _expected([5, 5, 4]))
    assert (id_codes(np.array([1.0, np.nan, np.inf, 1.0]), 4) >= 0).tolist() == [True, False, False, True]
    with pytest.raises(ValueError, match="one id per row of the table; got more or fewer"):
        id_codes([1, 2, 3], 4)
    with pytest.raises(TypeError, match="text or whole numbers"):
        id_codes(np.array([True, False]), 2)
    with pytest.raises(TypeError, match="text or whole numbers"):
        id_codes(np.zeros((2, 2)), 2)


@pytest.mark.parametrize("cell", [None, np.nan, np.inf, [1], {"a": 1}, object(), 1 + 2j, 10**400, b"\xff"])
def test_a_strange_cell_is_an_id_of_its_own_or_none(cell):
    codes = id_codes(["a", "b", cell, "a"], 4)
    assert codes[0] == codes[3] != codes[1]
    assert codes[2] not in (codes[0], codes[1])


def test_a_broken_line_spoils_its_own_id_only(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'patient,age\na,1\n"b,2\na,3,4\n\nc,5\n b ,6\n"b",7\n\xe9,8\n\xe8,9\na,10')
    codes = split_ids(open_rows(path, person="patient"), "patient")[1]
    assert (codes >= 0).tolist() == [True, False, False, False, True, True, True, True, True, True]
    assert codes[0] == codes[9]
    assert codes[5] == codes[6]
    assert len({*codes[[0, 4, 5, 7, 8]].tolist()}) == 5


def test_a_column_of_numbers_in_a_source():
    frame = _frame([4, 4, 5])
    frame["bmi"] = 20.0
    table = frame.to_numpy()
    source = HeldRows(table.shape, table.dtype, lambda: table)
    source.names = ("patient", "age", "bmi")
    rest, codes = split_ids(source, "patient")
    assert rest.names == ("age", "bmi")
    assert codes[0] == codes[1] != codes[2]


def test_refusals_follow_from_names_and_types(tmp_path):
    frame = _frame(PATIENTS)
    with pytest.raises(ValueError, match="no column named 'person'"):
        split_ids(frame, "person")
    with pytest.raises(ValueError, match="several columns named 'patient'"):
        split_ids(pd.concat([frame, frame], axis=1), "patient")
    with pytest.raises(ValueError, match="must have a column beside"):
        split_ids(frame[["patient"]], "patient")
    with pytest.raises(TypeError, match="text or whole numbers"):
        split_ids(pa.table({"patient": pa.array([[1], [2]]), "age": [1, 2]}), "patient")
    with pytest.raises(TypeError, match="no column names"):
        split_ids(np.zeros((3, 2)), "patient")
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(UnreadableFileError, match="no column named 'whose'"):
        open_rows(tmp_path / "t.csv", person="whose")
    with pytest.raises(ValueError, match="open_rows"):
        split_ids(open_rows(tmp_path / "t.csv", columns=["age"]), "patient")
    with pytest.raises(UnreadableFileError, match="says whose each row is"):
        open_rows(tmp_path / "t.csv", person="patient", columns=["patient"])
    pq.write_table(pa.table({"patient": pa.array([[1], [2]]), "age": [1, 2]}), tmp_path / "t.parquet")
    with pytest.raises(UnreadableFileError, match="neither text nor whole numbers"):
        open_rows(tmp_path / "t.parquet", person="patient")
    np.save(tmp_path / "t.npy", np.zeros((3, 2)))
    with pytest.raises(UnreadableFileError, match="leave out `person`"):
        open_rows(tmp_path / "t.npy", person="patient")
