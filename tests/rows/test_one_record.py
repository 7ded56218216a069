"""One record of a file changes its own row, and nothing else: not the shape, a dtype, a refusal or another row."""

from __future__ import annotations

import string
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse

from privspan import private_mean
from privspan.rows import Column, LeftOut, Schema, UnreadableFileError, draft_schema, open_rows, read_schema
from privspan.rows.door import open_table
from privspan.rows.files import text
from privspan.rows.limits import Limits
from privspan.rows.scaling import scaled_rows

NAN = np.nan


def opened(folder: Path, content: bytes | str, name: str = "people.csv", **options):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return open_rows(path, **options)


def public_facts(source):
    return source.shape, source.dtype, source.names, source.left_out, source.is_sparse


def assert_only_row_changed(before, after, row: int) -> None:
    assert public_facts(before) == public_facts(after)
    others = np.delete(np.arange(len(before)), row)
    np.testing.assert_array_equal(before[others].view(np.uint64), after[others].view(np.uint64))


# ---- Lists ------------------------------------------------------------------------------------------------------


def write_lists(path: Path, lists, kind=None) -> Path:
    table = pa.table({"v": pa.array(lists, kind or pa.list_(pa.float64()))})
    (pq.write_table if path.suffix == ".parquet" else pyarrow.feather.write_feather)(table, path)
    return path


LISTS = [[float(i), 1.0, 2.0] for i in range(9)]
ODD_LISTS = [None, [], [1.0], [1.0] * 12, [NAN] * 3, [None, 1.0, 2.0], [1e308] * 3]


@pytest.mark.parametrize("suffix", [".parquet", ".feather", ".arrow"])
@pytest.mark.parametrize("kind", [pa.list_(pa.float64()), pa.large_list(pa.float32()), pa.list_(pa.int16())])
def test_lists_without_a_width_are_refused_whatever_they_hold(tmp_path, suffix, kind):
    said = set()
    whole = pa.types.is_integer(kind.value_type)
    for odd in ([1.0, 2.0, 3.0], *([None, [], [1.0]] if whole else ODD_LISTS)):
        path = write_lists(tmp_path / f"x{suffix}", [*LISTS, odd], kind)
        with pytest.raises(
            UnreadableFileError, match=r"does not say how long they are; say it with `width`"
        ) as caught:
            open_rows(path)
        said.add(str(caught.value))
    assert len(said) == 1


@pytest.mark.parametrize("suffix", [".parquet", ".feather"])
@pytest.mark.parametrize("place", [0, 4, 9])
def test_a_list_of_another_length_spoils_its_own_record(tmp_path, suffix, place):
    lists = [*LISTS[:place], [7.0, 8.0, 9.0], *LISTS[place:]]
    before = open_rows(write_lists(tmp_path / f"x{suffix}", lists), width=3)
    np.testing.assert_array_equal(before[:], lists)
    for odd in ODD_LISTS:
        lists[place] = odd
        after = open_rows(write_lists(tmp_path / f"y{suffix}", lists), width=3)
        assert_only_row_changed(before, after, place)
        if odd is None or len(odd) != 3:
            assert np.isnan(after[:][place]).all()


def test_the_width_of_lists_can_stand_in_a_schema(tmp_path):
    table = pa.table({"v": LISTS, "age": list(range(9))})
    pq.write_table(table, tmp_path / "x.parquet")
    schema = Schema({"v": Column("list", 3)})
    assert open_rows(tmp_path / "x.parquet", schema=schema).shape == (9, 3)
    assert open_rows(tmp_path / "x.parquet", columns=["v"], width=2).shape == (9, 2)
    with pytest.raises(UnreadableFileError, match="without a column of lists; leave out `width`"):
        open_rows(tmp_path / "x.parquet", width=3)
    with pytest.raises(UnreadableFileError, match=r"'age' .* a list; it holds numbers"):
        open_rows(tmp_path / "x.parquet", schema=Schema({"age": Column("list", 3)}))
    for width in (0, -1, True, "3"):
        with pytest.raises(ValueError, match="`width` must be a whole number"):
            open_rows(tmp_path / "x.parquet", columns=["v"], width=width)


# ---- CSV: the reproductions -------------------------------------------------------------------------------------


def test_one_cell_does_not_turn_an_empty_column_into_numbers(tmp_path):
    lines = ["age,notes", *(f"{20 + i % 50}," for i in range(1000))]
    before = opened(tmp_path, "\n".join(lines) + "\n")
    lines[1] = "20,7"
    after = opened(tmp_path, "\n".join(lines) + "\n")
    assert_only_row_changed(before, after, 0)
    assert after.names == ("age", "notes")
    assert opened(tmp_path, "\n".join(lines) + "\n", columns=["age"]).shape == (1000, 1)


@pytest.mark.parametrize("cell", ["", " ", '""', "x", "\r", "2,3", '"'])
def test_a_single_column_keeps_rows_without_a_number(tmp_path, cell):
    rows = opened(tmp_path, f"age\n1\n{cell}\n3\n")
    np.testing.assert_array_equal(rows[:], [[1], [NAN], [3]])


def test_the_number_of_rows_is_the_number_of_lines(tmp_path):
    for content, n in [("a\n1\n2\n", 2), ("a\n1\n2", 2), ("a\n1\n\n2\n\n", 4), ("a\r\n1\r\n\r\n", 2), ("a\n\n", 1)]:
        assert opened(tmp_path, content).shape == (n, 1), content
    np.testing.assert_array_equal(opened(tmp_path, "a,b\n1,2\n\n3,4\n")[:], [[1, 2], [NAN, NAN], [3, 4]])


@pytest.mark.parametrize("odd", ['"1,2', '1,"2', '1,2"', '"', "1", "1,2,3", ",", '"1""2"",3', '5" x 3",1'])
def test_a_broken_line_spoils_itself_alone(tmp_path, odd):
    lines = ["a,b", *(f"{i},{i}.5" for i in range(30))]
    before = opened(tmp_path, "\n".join(lines) + "\n")
    lines[12] = odd
    after = opened(tmp_path, "\n".join(lines) + "\n")
    assert_only_row_changed(before, after, 11)
    assert np.isnan(after[:][11]).any()


@pytest.mark.parametrize("block", [1, 2, 7, 64])
def test_quoted_newlines_where_they_are_declared(tmp_path, block):
    options = {"quoted_newlines": True, "columns": ["a", "b"], "limits": Limits(block_bytes=block)}
    content = 'a,"no\ntes",b\n1,"one\n\nline",2\n3,"say ""hi""\n",4\n5,,6\n'
    rows = opened(tmp_path, content, **options)
    np.testing.assert_array_equal(rows[:], [[1, 2], [3, 4], [5, 6]])
    assert rows.left_out == (LeftOut("no\ntes", "not asked for"),)
    broken = opened(tmp_path, content + '7,"never,8\n9,x,10\n', **options)
    np.testing.assert_array_equal(broken[:], [[1, 2], [3, 4], [5, 6], [NAN, NAN]])


@pytest.mark.parametrize("block", [1, 3, 16, 2**24])
def test_a_quoted_newline_on_the_edge_of_a_block_refuses_nothing(tmp_path, block):
    content, limits = 'a,b\n1,"x\ny"\n2,3\n', Limits(block_bytes=block)
    np.testing.assert_array_equal(opened(tmp_path, content, limits=limits)[:], [[NAN, NAN], [NAN, NAN], [2, 3]])
    rows = opened(tmp_path, content, quoted_newlines=True, limits=limits)
    np.testing.assert_array_equal(rows[:], [[1, NAN], [2, 3]])


def test_the_old_block_size_is_no_edge_either(tmp_path):
    """A quoted end of line right where a block of 16 MiB ended refused a valid file."""
    head, row = "a,b\n", "1,%s\n" % ("x" * 1020)
    lines = (2**24 - len(head)) // len(row)
    content = head + row * lines
    content += '1,"' + "x" * (2**24 - len(content) - 4) + '\n\n"\n2,3\n'
    rows = opened(tmp_path, content, columns=["a"])
    assert rows.shape == (lines + 4, 1)
    assert opened(tmp_path, content, columns=["a"], quoted_newlines=True).shape == (lines + 2, 1)


def test_bytes_that_are_no_text_spoil_their_own_cell(tmp_path):
    content = b"na\xc3\xafve,b\n1,2\n\xff\xfe\x00,3\n4,\xc3\n5,6\n"
    rows = opened(tmp_path, content)
    assert rows.names == ("naïve", "b")
    np.testing.assert_array_equal(rows[:], [[1, 2], [NAN, 3], [4, NAN], [5, 6]])


NUMBERS_TOO_FAR = [
    "1e400",
    "-1e400",
    "1e-400",
    "1e99999999999",
    "1e-99999999999",
    "9" * 5000,
    "0." + "0" * 5000 + "1",
]


@pytest.mark.parametrize("number", NUMBERS_TOO_FAR)
def test_numbers_beyond_all_ranges_refuse_nothing(tmp_path, number):
    rows = opened(tmp_path, f"a,b\n1,2\n{number},4\n")
    np.testing.assert_array_equal(rows[:], [[1, 2], [float(number), 4]])


def test_numbers_that_pyarrow_would_refuse_are_read_one_by_one(monkeypatch):
    def refuse(*_):
        raise pa.ArrowInvalid

    monkeypatch.setattr(text.pc, "cast", refuse)
    cells = pa.array(["0.1", "x", "1e5"], pa.large_string())
    np.testing.assert_array_equal(text.text_numbers(cells), [0.1, NAN, 1e5])


# ---- CSV: any bytes in one line ---------------------------------------------------------------------------------

lines_of_bytes = st.one_of(
    st.binary(max_size=30),
    st.text(alphabet='0123456789.,;eE+-" \t\rtruefalsx', max_size=20).map(str.encode),
).map(lambda line: line.replace(b"\n", b""))


@settings(max_examples=150, deadline=None)
@given(
    st.data(),
    st.integers(1, 4),
    st.sampled_from([",", ";", "\t"]),
    st.sampled_from([".", ","]),
    st.sampled_from([b"\n", b"\r\n"]),
    st.integers(1, 80),
    st.booleans(),
)
def test_any_bytes_in_one_line_change_its_row_alone(data, d, separator, decimal, end, block, bom):
    decimal = "." if separator == "," else decimal
    rows = data.draw(st.lists(lines_of_bytes, min_size=1, max_size=8))
    sound = separator.join(["1" + decimal + "5"] * d).encode()
    rows = [sound if data.draw(st.booleans()) else row for row in rows]
    place = data.draw(st.integers(0, len(rows) - 1))
    header = separator.join(string.ascii_lowercase[:d]).encode()

    def table(lines):
        return (b"\xef\xbb\xbf" if bom else b"") + b"".join(line + end for line in [header, *lines])

    options = {"separator": separator, "decimal": decimal}
    limited = {**options, "limits": Limits(block_bytes=block)}
    with tempfile.TemporaryDirectory() as folder:
        before = opened(Path(folder), table(rows), **limited)
        changed = [*rows[:place], data.draw(lines_of_bytes), *rows[place + 1 :]]
        after = opened(Path(folder), table(changed), "other.csv", **limited)
        assert_only_row_changed(before, after, place)
        assert before.shape == (len(rows), d)
        assert after.dtype == np.float64
        for number, row in enumerate(rows):
            if row == sound:
                np.testing.assert_array_equal(before[number : number + 1], np.full((1, d), 1.5))
        # Where blocks end changes nothing.
        np.testing.assert_array_equal(after[:], opened(Path(folder), table(changed), **options)[:])


@settings(max_examples=100, deadline=None)
@given(st.text(alphabet="0123456789.eE+- x", max_size=12))
@example("1_0")
@example("nan")
@example("0x10")
def test_a_cell_is_a_number_by_its_own_letters(cell):
    (found,) = text.text_numbers(pa.array([cell], pa.large_string()))
    together = text.text_numbers(pa.array(["1", cell, "x"], pa.large_string()))
    np.testing.assert_array_equal([found], together[1:2])
    try:
        expected = float(cell) if set(cell) <= set(string.digits + ".eE+- ") else NAN
    except ValueError:
        expected = NAN
    np.testing.assert_array_equal(found, expected)


# ---- CSV: how files are written ---------------------------------------------------------------------------------


def test_named_ways_of_writing(tmp_path):
    expected = [[1.5, 2], [NAN, 3]]
    for content, name, options in [
        ("a;b\n1.5;2\nx;3\n", "x.csv", {"separator": ";"}),
        ("a;b\n1,5;2\n1.5;3\n", "x.csv", {"separator": ";", "decimal": ","}),
        ("a\tb\n1.5\t2\n\t3\n", "x.tsv", {}),
        ("a\tb\r\n1,5\t2\r\n\t3", "x.tsv", {"decimal": ","}),
        ("\ufeffa,b\n1.5,2\n,3\n", "x.csv", {}),
        ('"a","b"\n"1.5",2\n"","3"\n', "x.csv", {}),
    ]:
        rows = opened(tmp_path, content, name, **options)
        assert rows.names == ("a", "b"), content
        np.testing.assert_array_equal(rows[:], expected, err_msg=content)
    latin = "größe,b\n1.5,2\nä,3\n".encode("latin-1")
    with pytest.raises(UnreadableFileError, match="are not utf-8; name their `encoding`"):
        opened(tmp_path, latin)
    rows = opened(tmp_path, latin, encoding="latin-1")
    assert rows.names == ("größe", "b")
    np.testing.assert_array_equal(rows[:], expected)
    for encoding in ("utf-16", "utf-16-le", "utf-16-be"):
        content = "\ufeffa,b\n1,2\n".encode(encoding) if encoding[-1] == "e" else "a,b\n1,2\n".encode(encoding)
        with pytest.raises(UnreadableFileError, match="is written in UTF-16; save it as UTF-8"):
            opened(tmp_path, content)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"separator": ";;"}, "`separator` must be one character"),
        ({"separator": "1"}, "`separator` must be one character"),
        ({"separator": "é"}, "`separator` must be one character"),
        ({"separator": '"'}, "must not be a sign"),
        ({"separator": "-"}, "must not be a sign"),
        ({"separator": ",", "decimal": ","}, "comma of `decimal`"),
        ({"decimal": ","}, "name the `separator`"),
        ({"decimal": "'"}, "a point or a comma"),
        ({"encoding": "utf-16"}, "`encoding` must be utf-8"),
        ({"encoding": "shift-jis"}, "`encoding` must be utf-8"),
        ({"encoding": "base64"}, "`encoding` must be utf-8"),
        ({"encoding": "nonsense"}, "`encoding` must be utf-8"),
        ({"quoted_newlines": 1}, "true or false"),
        ({"width": 3}, "no columns of lists"),
    ],
)
def test_ways_of_writing_that_cannot_be(tmp_path, options, message):
    with pytest.raises(ValueError, match=message):
        opened(tmp_path, "a,b\n1,2\n", **options)


def test_options_of_csv_files_are_refused_elsewhere(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    with pytest.raises(UnreadableFileError, match="is no CSV file; leave out `separator`"):
        open_rows(tmp_path / "x.npy", separator=";")
    with pytest.raises(UnreadableFileError, match="no column names"):
        open_rows(tmp_path / "x.npy", schema=Schema({"a": Column("number")}))


def test_another_separator_in_the_names_is_told_before_any_cell_is_read(tmp_path):
    for separator, told in ((";", "';'"), ("\t", "a tab"), ("|", r"'\|'")):
        for cells in ("1,2", f"1{separator}2", ""):
            with pytest.raises(
                UnreadableFileError, match=f"have {told} between its names, not ',': name the `separator`"
            ):
                opened(tmp_path, f"a{separator}b\n{cells}\n")
    assert opened(tmp_path, "a;b\n1\n", separator=",").names == ("a;b",)


# ---- Schemas ----------------------------------------------------------------------------------------------------

SCHEMA = """
separator = ";"
decimal = ","

[columns]
age = "number"
name = "text"
person_id = {type = "number"}
note = "skip"
"""


def test_a_schema_declares_what_is_used(tmp_path):
    (tmp_path / "s.toml").write_text(SCHEMA)
    content = "person_id;name;age;note;more\n1;Ann;1,5;;7\n2;5;x;3;7\n"
    rows = opened(tmp_path, content, schema=tmp_path / "s.toml")
    assert rows.names == ("person_id", "age")
    assert rows.left_out == (
        LeftOut("name", "text"),
        LeftOut("note", "skipped by the schema"),
        LeftOut("more", "not in the schema"),
    )
    np.testing.assert_array_equal(rows[:], [[1, 1.5], [2, NAN]])
    for name, reason in (("name", "text"), ("note", "skipped"), ("more", "not in the schema")):
        with pytest.raises(UnreadableFileError, match=rf"{name!r} .* is not a column of numbers \({reason}"):
            opened(tmp_path, content, schema=tmp_path / "s.toml", columns=["age", name])
    with pytest.raises(UnreadableFileError, match="no column named 'name', which the schema declares"):
        opened(tmp_path, "age;b\n1;2\n", schema=tmp_path / "s.toml")
    assert opened(tmp_path, "a;b\n1.5;2\n", schema=Schema(decimal=".", separator=";"))[:].tolist() == [[1.5, 2]]


def test_a_schema_is_for_typed_files_too(tmp_path):
    pq.write_table(pa.table({"name": ["a"], "age": [1], "size": [2.0]}), tmp_path / "x.parquet")
    rows = open_rows(tmp_path / "x.parquet", schema=Schema({"age": Column("text"), "size": Column("number")}))
    assert rows.names == ("size",)
    assert rows.left_out == (LeftOut("name", "not in the schema"), LeftOut("age", "text"))
    with pytest.raises(UnreadableFileError, match=r"calls column 'name' .* a number; it holds text"):
        open_rows(tmp_path / "x.parquet", schema=Schema({"name": Column("number")}))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("separator =", "is not TOML"),
        ("seperator = ';'", "it says 'seperator', and only columns, separator"),
        ("separator = 5", "`separator` must be one character"),
        ("columns = 3", "`columns` must be a table"),
        ("[columns]\na = 3", "column 'a' needs a type"),
        ("[columns]\na = 'words'", "must be one of number, "),
        ("[columns.a]\ntype = 'number'\nunit = 1", "it says 'unit' for column 'a'"),
        ("[columns.a]\ntype = 'number'\nwidth = 3", "`width` is for columns of type list"),
        ("encoding = ['x']", "`encoding` must be utf-8"),
        ("quoted_newlines = 'yes'", "true or false"),
    ],
)
def test_a_schema_file_that_says_something_else_is_refused(tmp_path, content, message):
    (tmp_path / "s.toml").write_text(content)
    with pytest.raises(UnreadableFileError, match=message):
        read_schema(tmp_path / "s.toml")
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        read_schema(tmp_path / "none.toml")


def test_a_draft_can_be_used_as_it_is(tmp_path):
    content = 'person_id;name;age;;"x""y";a\x7fb\n1;Ann;1,5;1;2;3\n2;7;;1;z;4\n3;Bob;x;1;3;5\n'
    (tmp_path / "x.csv").write_text(content)
    written = draft_schema(tmp_path / "x.csv", Schema(separator=";", decimal=","))
    assert "made by looking at the data" in written
    assert "\x7f" not in written
    (tmp_path / "s.toml").write_text(written)
    schema = read_schema(tmp_path / "s.toml")
    assert (schema.separator, schema.decimal) == (";", ",")
    types = {"person_id": "skip", "name": "text", "age": "text", "": "skip", 'x"y': "number", "a\x7fb": "number"}
    assert {name: column.type for name, column in schema.columns.items()} == types
    assert open_rows(tmp_path / "x.csv", schema=schema).names == ('x"y', "a\x7fb")


def test_drafts_of_typed_files_come_from_their_types(tmp_path):
    kinds = {
        "id": pa.array([1]),
        "age": pa.array([None], pa.int8()),
        "name": pa.array(["x"]),
        "born": pa.array([0], pa.date32()),
        "v": pa.array([[1.0]]),
        "w": pa.array([[1.0, 2.0]], pa.list_(pa.float32(), 2)),
    }
    for suffix, write in ((".parquet", pq.write_table), (".feather", pyarrow.feather.write_feather)):
        write(pa.table(kinds), tmp_path / f"x{suffix}")
        written = draft_schema(tmp_path / f"x{suffix}")
        assert "not from its rows" in written
        assert "dates or times" in written
        (tmp_path / "s.toml").write_text(written)
        schema = read_schema(tmp_path / "s.toml")
        assert {name: (column.type, column.width) for name, column in schema.columns.items()} == {
            "id": ("skip", None),
            "age": ("number", None),
            "name": ("text", None),
            "born": ("skip", None),
            "v": ("list", None),
            "w": ("list", 2),
        }
        assert open_rows(tmp_path / f"x{suffix}", schema=schema).names == ("age",)
        assert open_rows(tmp_path / f"x{suffix}", schema=schema, columns=["w"]).shape == (1, 2)
    np.save(tmp_path / "x.npy", np.ones((2, 2)))
    with pytest.raises(UnreadableFileError, match="no column names"):
        draft_schema(tmp_path / "x.npy")


# ---- Sparse matrices --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["i4", "f4", "?"])
def test_an_entry_outside_a_sparse_matrix_spoils_its_own_record(tmp_path, dtype):
    table = sparse.csr_array(np.arange(1, 13).reshape(4, 3).astype(dtype))
    sparse.save_npz(tmp_path / "x.npz", table)
    before = open_rows(tmp_path / "x.npz")
    table.indices[4] = 99
    sparse.save_npz(tmp_path / "y.npz", table)
    after = open_rows(tmp_path / "y.npz")
    assert public_facts(before) == public_facts(after)
    assert after[:].dtype == before[:].dtype
    expected = before[:].toarray()
    expected[1] = 0
    np.testing.assert_array_equal(after[:].toarray(), expected)


@pytest.mark.parametrize("coords", [False, True])
@pytest.mark.parametrize("foreign", [99, 3, -1, 2**40])
@pytest.mark.parametrize("dtype", ["i4", "f4", "?"])
def test_a_foreign_column_among_triples_spoils_its_own_record(tmp_path, dtype, foreign, coords):
    """SciPy refuses such a file as a whole: one record could make the table unreadable for all."""
    order = np.random.default_rng(0).permutation(12)  # entries need not come row by row
    row, col = (part.ravel()[order] for part in np.indices((4, 3)))
    data = np.arange(1, 13).astype(dtype)[order]
    common = {"format": np.array(b"coo"), "shape": np.array((4, 3)), "data": data, "_is_array": np.array(True)}

    def saved(name, columns):
        where = {"coords": np.array([row, columns])} if coords else {"row": row, "col": columns}
        np.savez(tmp_path / name, **common, **where)
        return open_rows(tmp_path / name)

    before = saved("x.npz", col)
    np.testing.assert_array_equal(before[:].toarray(), np.arange(1, 13).reshape(4, 3).astype(dtype))
    after = saved("y.npz", np.where((row == 1) & (col == 2), foreign, col))
    assert public_facts(before) == public_facts(after)
    assert after[:].dtype == before[:].dtype
    expected = before[:].toarray()
    expected[1] = 0
    np.testing.assert_array_equal(after[:].toarray(), expected)


@pytest.mark.parametrize("change", [{"row": 4}, {"row": -1}, {"data": None}, {"col": 0.5}])
def test_triples_of_no_record_are_damage_of_the_file(tmp_path, change):
    parts = {"row": np.array([0, 1]), "col": np.array([0, 1]), "data": np.ones(2)}
    for name, new in change.items():
        parts[name] = np.ones(3) if new is None else np.array([0, new])
    np.savez(tmp_path / "x.npz", format=np.array(b"coo"), shape=np.array((4, 3)), **parts)
    with pytest.raises(UnreadableFileError, match="not a readable NumPy archive"):
        open_rows(tmp_path / "x.npz")[:]


@pytest.mark.parametrize("kind", [sparse.csr_array, sparse.csr_matrix])
def test_an_entry_outside_a_sparse_matrix_in_memory_spoils_its_own_record(kind):
    table = kind(np.arange(1.0, 13.0).reshape(4, 3))
    table.indices[4] = 99
    found = scaled_rows(open_table(table).unwrapped()).toarray()
    expected = scaled_rows(np.arange(1.0, 13.0).reshape(4, 3))
    expected[1] = 0
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_spoilt_line_is_a_row_of_zeros_to_an_algorithm(tmp_path):
    content = "a,b\n" + "1,2\n" * 50
    means = [
        private_mean(opened(tmp_path, content + line), epsilon=1, delta=1e-6, norm_bound=3.0, rng=0).mean.tolist()
        for line in ("0,0\n", "x,\n", "\n", '"\n', "1,2,3\n")
    ]
    assert all(mean == means[0] for mean in means)
