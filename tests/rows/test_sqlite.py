"""SQLite: what a column holds follows from its declared type; what a cell holds changes its own row only."""

import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privspan.rows import Column, Schema, UnreadableFileError, open_rows

CELLS = st.one_of(
    st.none(),
    st.floats(),
    st.integers(-(2**63), 2**63 - 1),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.sampled_from(["1.5", " 2 ", "1e999", "nan", "٣", "true", b"\xff", b"4", 2**53 + 1]),
)
TYPES = ("real", "integer", "numeric", "decimal(9, 2)", "boolean", "")


def opened(folder: Path | str, declared, rows, query: str = "select * from people order by rowid", **options):
    """Write rows into a new file, columns by their declared types, and open it."""
    path = Path(folder) / "people.db"
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("pragma synchronous = off")
        columns = ", ".join(f"c{i} {kind}" for i, kind in enumerate(declared))
        file.execute(f"create table people ({columns})")
        file.executemany(f"insert into people values ({', '.join('?' * len(declared))})", rows)
    return open_rows(f"sqlite:///{path}", query=query, **options)


def test_types_are_those_that_are_declared_whatever_the_first_rows_hold(tmp_path: Path) -> None:
    declared = (
        "real",
        "double precision",
        "integer",
        "text",
        "blob",
        "date",
        "bool",
        "varchar(9)",
        "uuid",
        "geometry",
    )
    nothing = [(None,) * 10] * 3_000
    last = [(1.5, 2, 2**62 + 1, "3", b"4", "2020-01-01", 1, "5", "6", "7")]
    rows = opened(tmp_path, declared, nothing + last)
    assert rows.names == ("c0", "c1", "c2", "c6")
    reasons = {column.name: column.reason for column in rows.left_out}
    assert reasons.pop("c5") == "dates or times"
    assert reasons == {"c3": "text", "c4": "no numbers", "c7": "text", "c8": "text", "c9": "no numbers"}
    assert np.isnan(rows[:3_000]).all()
    np.testing.assert_array_equal(rows[3_000:], [[1.5, 2.0, float(2**62 + 1), 1.0]])
    assert rows.dtype == np.float64
    assert rows.boolean is not None
    assert rows.boolean.tolist() == [False, False, False, True]


def test_cells_of_another_type_than_their_column_are_numbers_or_gaps(tmp_path: Path) -> None:
    cells = [1.5, "abc", None, "2.5", b"x", 2**53 + 1, -(2**63), 9e999, "٣"]
    wanted = [1.5, np.nan, np.nan, 2.5, np.nan, 2.0**53, -(2.0**63), np.inf, np.nan]
    for declared in ("real", "numeric", ""):
        rows = opened(tmp_path, (declared,), [(cell,) for cell in cells])
        np.testing.assert_array_equal(rows[:][:, 0], wanted)
    rows = opened(tmp_path, ("boolean", "real"), [(cell, 0) for cell in (0, 1, 1.0, 2, -1, "true", None, b"1")])
    np.testing.assert_array_equal(rows[:][:, 0], [0, 1, 1, *[np.nan] * 5])


def test_expressions_count_as_numbers_like_columns_of_a_csv_file(tmp_path: Path) -> None:
    query = "select c0, c0 / 2 as half, count(*) over () as n, cast(c1 as real) as c1 from people"
    rows = opened(tmp_path, ("real", "text"), [(1, "7"), (None, "x")], query)
    assert rows.names == ("c0", "half", "n", "c1")
    np.testing.assert_array_equal(rows[:], [[1, 0.5, 2, 7], [np.nan, np.nan, 2, 0]])


def test_text_that_is_none_is_a_cell_like_any_other(tmp_path: Path) -> None:
    broken = "select c0, cast(c1 as text) as person from people"
    rows = opened(
        tmp_path, ("real", "blob"), [(1, b"\xff"), (2, b"\xff"), (3, b"a"), (4, None)], broken, person="person"
    )
    assert rows.ids()[0] == rows.ids()[1] != rows.ids()[2]
    assert rows.ids()[3] == -1


def test_ids_of_mixed_types_and_of_any_length(tmp_path: Path) -> None:
    ids = [2**60, 2**60 + 1, "a", 2**60, "A", None, 2.5]
    rows = opened(tmp_path, ("integer", "real"), [(one, 1) for one in ids], person="c0")
    assert len({*rows.ids().tolist()}) == 6
    assert rows.ids()[0] == rows.ids()[3]


def test_whole_numbers_are_the_same_words_and_ids_however_they_are_written(tmp_path: Path) -> None:
    """A column of reals holds 1.0 where 1 was written."""
    ward = Schema({"c0": Column("category", categories=[1, 2]), "c1": Column("number")})
    rows = opened(tmp_path, ("real", ""), [(1, 1), (2, 1.0), (None, 2.5)], schema=ward)
    np.testing.assert_array_equal(rows[:][:, :2], [[1, 0], [0, 1], [np.nan, np.nan]])
    assert opened(tmp_path, ("real", ""), [(1, 1), (2, 1.0), (3, 2.5)], person="c1").ids().tolist() == [0, 0, 1]


@pytest.mark.parametrize("place", [0, 99_999])
def test_an_expression_that_fails_on_a_record_is_told_as_such(place: int, tmp_path: Path) -> None:
    numbers = "with recursive r(i) as (select 0 union all select i + 1 from r where i < 99999)"
    query = f"{numbers} select case i when {place} then abs(-9223372036854775808) else i end as x from r"
    with pytest.raises(UnreadableFileError, match="an expression in it fails on some record; write it so"):
        opened(tmp_path, ("real",), [], query)


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_a_record_changes_its_own_row_only(data) -> None:
    record = st.tuples(*[CELLS] * len(TYPES))
    rows = data.draw(st.lists(record, min_size=1, max_size=6))
    place, other = data.draw(st.integers(0, len(rows) - 1)), data.draw(record)
    with tempfile.TemporaryDirectory() as folder:
        one = opened(folder, TYPES, rows)
        two = opened(folder, TYPES, [*rows[:place], other, *rows[place + 1 :]])
    assert (one.shape, one.dtype, one.names, one.left_out) == (two.shape, two.dtype, two.names, two.left_out)
    others = np.arange(len(rows)) != place
    np.testing.assert_array_equal(one[:][others], two[:][others])


def test_a_database_that_is_written_to_meanwhile_is_read_as_it_was(tmp_path: Path) -> None:
    opened(tmp_path, ("real",), [(1,), (2,)])
    with closing(sqlite3.connect(tmp_path / "people.db", isolation_level=None)) as writer:
        writer.execute("pragma journal_mode = wal")
        writer.execute("begin immediate")
        writer.execute("insert into people values (3)")
        assert open_rows(f"sqlite:///{tmp_path}/people.db", table="people").shape == (2, 1)
        writer.execute("commit")
        assert open_rows(f"sqlite:///{tmp_path}/people.db", table="people").shape == (3, 1)


@pytest.mark.parametrize("table", ['odd "name', "select", "people; drop table people"])
def test_a_table_of_any_name(table: str, tmp_path: Path) -> None:
    quoted = table.replace('"', '""')
    with closing(sqlite3.connect(tmp_path / "people.db")) as file, file:
        file.execute(f'create table "{quoted}" (a real)')
        file.execute(f'insert into "{quoted}" values (1)')
    assert open_rows(f"sqlite:///{tmp_path}/people.db", table=table).shape == (1, 1)
