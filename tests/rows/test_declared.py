"""What a file says of its columns without its rows."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from privspan.rows import Column, Schema, UnreadableFileError
from privspan.rows.files.declared import FileColumn, file_columns


def test_a_csv_file_declares_names_only(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('who;"the age"\n1;2\n')
    assert file_columns(path, Schema(separator=";")) == (FileColumn("who", None), FileColumn("the age", None))


@pytest.mark.parametrize("write", [parquet.write_table, feather.write_feather])
def test_typed_files_declare_types(write, tmp_path: Path) -> None:
    path = tmp_path / ("a.parquet" if write is parquet.write_table else "a.arrow")
    columns = {"x": pa.array([1.0]), "word": pa.array(["a"]), "day": pa.array([1], pa.date32())}
    columns["two"] = pa.array([[1.0, 2.0]], pa.list_(pa.float64(), 2))
    write(pa.table(columns), path)
    found = {one.name: one.column for one in file_columns(path)}
    assert found == {"x": Column("number"), "word": Column("text"), "day": Column("skip"), "two": Column("list", 2)}


def test_files_without_names_have_no_columns_to_declare(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((3, 2)))
    assert file_columns(tmp_path / "a.npy") == ()


@pytest.mark.parametrize(
    ("name", "text"), [("a.csv", "x,x\n1,2\n"), ("a.parquet", "no"), ("a.txt", ""), ("a.csv", "")]
)
def test_what_cannot_be_read_is_refused(name: str, text: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises(UnreadableFileError):
        file_columns(tmp_path / name)


def test_no_cell_is_read_for_it(tmp_path: Path) -> None:
    """Whatever stands below the names, the answer is the same."""
    path = tmp_path / "a.csv"
    found = set()
    for rows in ("1,2\n", "1,2\nx,y\n3,4\n", "x\n", '"open\n' * 9, "\udcff,\n"):
        path.write_text("a,b\n" + rows, errors="surrogateescape")
        found.add(file_columns(path))
    assert len(found) == 1
