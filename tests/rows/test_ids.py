"""Whose row is whose: ids that are equal are one person's in every container, each from its own cell."""

from array import array
from collections import deque
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

from privspan.rows import UnreadableFileError, id_codes, open_rows, split_ids, without_ids
from privspan.rows.source import HeldRows

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
    with pytest.raises(ValueError, match="one id per row of the table; got more or fewer"):
        id_codes([1, 2, 3], 4)


# ---- Equal ids of any type ---------------------------------------------------------------------------------------


class Ward(Enum):
    A = "a"
    B = "b"


DAYS = [date(2020, 1, 1), None, date(2020, 1, 1), date(2020, 1, 2)]
ANY = {
    "UUID": [UUID(int=7), None, UUID(int=7), UUID(int=8)],
    "Decimal": [Decimal("1.5"), None, Decimal("1.50"), Decimal("2.5")],
    "date": DAYS,
    "datetime": [None if day is None else datetime(day.year, 1, day.day, 7, tzinfo=UTC) for day in DAYS],
    "timedelta": [timedelta(1), None, timedelta(hours=24), timedelta(2)],
    "time": [time(1), None, time(1), time(2)],
    "bool": [True, None, True, False],
    "float": [1.5, None, 1.5, np.inf],
    "tuple": [("a", 1), None, ("a", 1.0), ("b", 1)],
    "bytes": [b"a\0", None, b"a", b"b"],
    "blanks": [" a", None, "a", "b"],
    "NUL": ["a\0", None, "a", "b"],
    "empty": ["", None, " ", "b"],
    "complex": [1j, None, 1j, 2j],
    "fraction": [Fraction(1, 3), None, Fraction(2, 6), Fraction(1, 2)],
    "enum": [Ward.A, None, Ward.A, Ward.B],
    "period": [pd.Period("2020-01"), None, pd.Period("2020-01"), pd.Period("2020-02")],
    "interval": [pd.Interval(0, 1), None, pd.Interval(0, 1), pd.Interval(1, 2)],
    "timestamp": [pd.Timestamp(10**9), pd.NaT, pd.Timestamp(10**9), pd.Timestamp(2 * 10**9)],
    "list": [[1], None, [1.0], [2]],
    "dict": [{"a": 1}, None, {"a": 1.0}, {"a": 2}],
    "set": [{1}, None, {1.0}, {2}],
}
NESTED = ("tuple", "list", "dict", "set")


def held_by(kind, ids):
    """Yield ids in every container that takes them."""
    yield from (list(ids), tuple(ids), deque(ids), iter(ids), pd.Series(ids, dtype=object))
    held = np.empty(len(ids), dtype=object)
    held[:] = ids
    yield from (held, np.ma.array(held, mask=[one is None for one in ids]), pd.Index(held, tupleize_cols=False))
    if kind in NESTED:
        return
    yield from (pd.Series(ids), pd.Series(pd.Categorical(ids)), pd.CategoricalIndex(ids))
    if kind not in ("complex", "enum"):
        yield pd.MultiIndex.from_arrays([[1] * 4, range(4), ids]).droplevel([0, 1])
    for package in (pl.Series, pa.array):
        try:
            made = package([None if one is pd.NaT else one for one in ids])
        except (AttributeError, TypeError, ValueError, pa.ArrowException, pl.exceptions.PolarsError):
            continue  # no ids of that package
        yield made
        if package is pa.array:
            yield from (pa.chunked_array([made[:1], made[1:]]), pd.Series(made, dtype=pd.ArrowDtype(made.type)))
            if not isinstance(made.type, pa.BaseExtensionType):
                yield made.dictionary_encode()
        elif made.dtype == pl.String:
            yield made.cast(pl.Categorical)


@pytest.mark.parametrize("kind", ANY)
def test_equal_ids_are_one_person_whatever_their_type(kind):
    containers = list(held_by(kind, ANY[kind]))
    assert len(containers) >= 8
    for ids in containers:
        codes = id_codes(ids, 4)
        told = f"{type(ids)} {getattr(ids, 'dtype', getattr(ids, 'type', ''))}"
        assert (codes >= 0).tolist() == [True, False, True, True], told
        assert codes[0] == codes[2] != codes[3], told


ARRAYS = {
    "masked": np.ma.array([7, 7, 7, 8], mask=[0, 1, 0, 0]),
    "masked text": np.ma.array(["a", "a", "a", "b"], mask=[0, 1, 0, 0]),
    "masked fields": np.ma.array([(7, 1), (7, 1), (7, 1), (8, 1)], dtype=[("a", int), ("b", int)])[[0, 3, 0, 3]],
    "bool": np.array([True, False, True, False]),
    "complex": np.array([1j, np.nan, 1j, 2j]),
    "float": np.array([0.0, np.nan, -0.0, -np.inf]),
    "long": np.array([1, np.nan, 1, 2], dtype=np.longdouble) / 3,
    "nullable": pd.array([True, None, True, False], dtype="boolean"),
    "sparse": pd.arrays.SparseArray([1.5, np.nan, 1.5, 2.5]),
    "day": np.array(["2020-01-01", "NaT", "2020-01-01", "2020-01-02"], dtype="M8[ns]"),
    "span": np.array([1, "NaT", 1, 2], dtype="m8[s]"),
    "fields": np.array([(1, b"a"), (2, b"b"), (1, b"a"), (2, b"b")], dtype=[("a", int), ("b", "S2")]),
    "void": np.array([b"ab", b"cd", b"ab", b"cd"], dtype="V2"),
    "text": np.array(["a", "c", "a ", "b"]),
    "bytes": np.array([b"a", b"c", b"a\0", b"b"]),
    "new text": np.array(["a", "c", "a\0", "b"], dtype=np.dtypes.StringDType()),
    "array": array("d", [1.5, 2.5, 1.5, 3.5]),
    "several columns": pd.MultiIndex.from_tuples([("a", 1), ("a", None), ("a", 1), ("b", 1)]),
    "periods": pd.PeriodIndex(["2020-01", None, "2020-01", "2020-02"], freq="M"),
    "categories of periods": pd.Categorical(pd.PeriodIndex(["2020-01", None, "2020-01", "2020-02"], freq="M")),
    "categories of intervals": pd.cut([0.5, np.nan, 0.6, 1.5], [0, 1, 2]),
    "polars numbers": pl.Series([0.0, np.nan, -0.0, 1.0]),
    "polars nanoseconds": pl.Series([1, None, 1, 2]).cast(pl.Datetime("ns")),
    "polars objects": pl.Series(ANY["UUID"], dtype=pl.Object),
    "Arrow numbers": pa.array([0.0, np.nan, -0.0, 1.0]),
    "Arrow decimals": pa.array(ANY["Decimal"], pa.decimal256(60, 3)),
    "Arrow, far away": pa.array([10**13, None, 10**13, 1]).cast(pa.timestamp("s")),
    "Arrow scalars": list(pa.array(["a", None, "a", "b"])),
    "Arrow, not UTF-8": pa.array([b"\xff", None, b"\xff", b"\xfe"]).view(pa.string()),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_declared_types(name):
    codes = id_codes(ARRAYS[name], 4)
    assert codes[0] == codes[2] != codes[3]
    assert codes[1] not in codes[[0, 2]]


def test_rows_without_any_id():
    for ids in ([None] * 3, pl.Series([None] * 3), pa.nulls(3), np.full(3, np.nan), pd.array([pd.NA] * 3, "Int8")):
        assert id_codes(ids, 3).tolist() == [-1, -1, -1]
    missing = [np.nan, np.float32("nan"), complex(1, np.nan), Decimal("sNaN"), pd.NA, pd.NaT, np.ma.masked]
    missing += [np.datetime64("NaT"), np.timedelta64("NaT"), np.longdouble("nan"), None]
    assert (id_codes(missing, len(missing)) == -1).all()
    there = ["nan", "None", "", "NA", np.inf, -np.inf, 0, False, b"", (), (None,), "-1"]
    assert (id_codes(there, len(there)) >= 0).all()


EQUAL = [
    [7, 7.0, np.int8(7), np.float32(7), np.longdouble(7), Decimal("7.00"), Fraction(7), 7 + 0j, "7", b"7", " 7\0"],
    [1, True, np.True_, "1"],
    [
        date(2020, 1, 1),
        datetime(2020, 1, 1),
        pd.Timestamp(2020, 1, 1),
        *(np.datetime64("2020", u) for u in ("Y", "ns")),
    ],
    [datetime(2020, 1, 1, tzinfo=UTC), pd.Timestamp("2020-01-01 01:00", tz="Europe/Berlin")],
    [timedelta(1), np.timedelta64(24, "h"), pd.Timedelta("1D")],
    [("a", 7), ["a ", 7.0], np.array(["a", 7], dtype=object), (b"a", "7")],
    [2**53, float(2**53)],
    [2**53 + 1, np.uint64(2**53 + 1), str(2**53 + 1)],
    [10**5000, 10**5000],
    [Decimal("1e999999"), Decimal("1e999999")],
    ["07"],
    [0.1, np.float64(0.1)],
    [np.float32(0.1)],
    [np.inf, Decimal("inf")],
]


@pytest.mark.parametrize("order", [1, -1])
def test_equal_ids_of_several_types_are_one_person(order):
    """In any order: whom an id meets first must not matter."""
    ids = [(group, one) for group, cells in enumerate(EQUAL) for one in cells][::order]
    codes = id_codes([one for _, one in ids], len(ids))
    np.testing.assert_array_equal(_together(codes), _expected([group for group, _ in ids]))


@pytest.mark.parametrize("other", ["x", 1.5, None, 2**70, -1, True, np.nan, [1], Decimal(1), b"\xff", 1 + 2j])
def test_one_id_changes_nothing_about_the_others(other):
    """NumPy would make text or floats of all of them."""
    ids = [2**53, 2**53 + 1, "a", "a ", 2**63, 2**63 + 1, -(2**63)]
    alone, beside = id_codes(ids, 7), id_codes([*ids, other], 8)
    np.testing.assert_array_equal(_together(beside[:7]), _together(alone))
    assert len(set(alone.tolist())) == 6
    assert beside[7] not in beside[:7]


class Nameless:
    """Equal to itself only, as every object is unless its class says otherwise."""


class Unhashable:
    def __eq__(self, other):
        return True

    __hash__ = None


class Touchy:
    def __eq__(self, other):
        raise ValueError("Mrs Smith")

    def __hash__(self):
        return 1


class NeverEqual(Touchy):
    def __eq__(self, other):
        return False

    __hash__ = Touchy.__hash__


CIRCLE = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize("cell", [Nameless(), Unhashable(), Touchy(), NeverEqual(), object(), CIRCLE, deque([1])])
def test_objects_that_cannot_be_compared_are_refused(cell):
    """Each row would be a person of its own, and the promise for persons a promise for rows."""
    for ids in (["a", cell, "a"], [("a", cell)] * 3):
        with pytest.raises(TypeError, match=r"^`person` must hold ids that can be compared; convert them") as refusal:
            id_codes(ids, 3)
        assert refusal.value.__suppress_context__ or refusal.value.__context__ is None


NO_COLUMNS = [{1, 2, 3}, {1: 1, 2: 2, 3: 3}, b"abc", 3, np.zeros((3, 1)), pd.DataFrame({"a": [1, 2, 3]})]
NO_COLUMNS += [pl.Series([[1]] * 3), pa.array([[1]] * 3), pa.array([{"a": 1}] * 3), pa.table({"a": [1, 2, 3]})]


@pytest.mark.parametrize("ids", NO_COLUMNS)
def test_what_is_no_column_of_ids_is_refused(ids):
    with pytest.raises(TypeError, match=r"^`person` must hold ids that can be compared"):
        id_codes(ids, 3)


def test_a_broken_line_spoils_its_own_id_only(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b'patient,age\na,1\n"b,2\na,3,4\n\nc,5\n b ,6\n"b",7\n\xe9,8\n\xe8,9\na,10')
    codes = split_ids(open_rows(path, person="patient"), "patient")[1]
    assert (codes >= 0).tolist() == [True, False, False, False, True, True, True, True, True, True]
    assert codes[0] == codes[9]
    assert codes[5] == codes[6]
    assert len({*codes[[0, 4, 5, 7, 8]].tolist()}) == 5


LONG = [2**53, 2**53 + 1, 2**53 + 2, 2**53, 2**63 - 1, 2**63 - 2, None, 5]


@pytest.mark.parametrize("suffix", ["parquet", "feather", "csv"])
def test_a_column_among_the_numbers_of_a_file_is_not_read_as_floats(suffix, tmp_path):
    table = pa.table({"patient": pa.array(LONG, pa.int64()), "age": np.arange(8.0), "bmi": np.arange(8.0)})
    pq.write_table(table, tmp_path / "t.parquet")
    feather.write_feather(table, tmp_path / "t.feather")
    pacsv.write_csv(table, tmp_path / "t.csv")
    source = open_rows(tmp_path / f"t.{suffix}")
    assert "patient" in source.names
    rest, codes = split_ids(source, "patient")
    assert rest.names == ("age", "bmi")
    np.testing.assert_array_equal(_together(codes), _expected(LONG))


def test_a_column_that_is_held_as_floats_is_refused():
    table = np.array([[4.0, 1.0], [4.0, 2.0]])
    source = HeldRows(table.shape, table.dtype, lambda: table)
    source.names = ("patient", "age")
    with pytest.raises(ValueError, match=r"open_rows\(path, person='patient'\)`, or give the ids as an array"):
        split_ids(source, "patient")
    assert without_ids(source, "patient").names == ("age",)


@pytest.mark.parametrize(
    "kind", ["UUID", "Decimal", "date", "datetime", "timedelta", "time", "bool", "float", "bytes"]
)
def test_files_have_ids_of_every_type(kind, tmp_path):
    if kind == "UUID" and not hasattr(pa, "uuid"):
        pytest.skip("this pyarrow has no UUIDs")
    ids = pa.array([one and one.bytes for one in ANY[kind]], pa.uuid()) if kind == "UUID" else pa.array(ANY[kind])
    table = pa.table({"patient": ids, "age": np.arange(4.0)})
    tables = [table]
    if not isinstance(ids.type, pa.BaseExtensionType):
        tables.append(table.set_column(0, "patient", ids.dictionary_encode()))
    for table in tables:
        feather.write_feather(table, tmp_path / "t.feather")
        codes = open_rows(tmp_path / "t.feather", person="patient").ids()
        assert codes[0] == codes[2] != codes[3]
        assert (codes >= 0).tolist() == [True, False, True, True]
    if kind != "timedelta":
        pq.write_table(tables[0], tmp_path / "t.parquet")
        assert (open_rows(tmp_path / "t.parquet", person="patient").ids() == codes).all()


def test_text_of_a_csv_file_is_cut_as_elsewhere(tmp_path):
    (tmp_path / "t.csv").write_bytes(b'patient,age\na,1\n a ,2\na\0,3\n" a",4\n,5\n  ,6\n"",7\n\0a,8\n')
    codes = open_rows(tmp_path / "t.csv", person="patient").ids()
    assert codes.tolist() == [0, 0, 0, 0, -1, -1, -1, 0]


def test_refusals_follow_from_names_and_types(tmp_path):
    frame = _frame(PATIENTS)
    with pytest.raises(ValueError, match="no column named 'person'"):
        split_ids(frame, "person")
    with pytest.raises(ValueError, match="several columns named 'patient'"):
        split_ids(pd.concat([frame, frame], axis=1), "patient")
    with pytest.raises(ValueError, match="must have a column beside"):
        split_ids(frame[["patient"]], "patient")
    with pytest.raises(TypeError, match="column 'patient' must hold ids that can be compared"):
        split_ids(pa.table({"patient": pa.array([[1], [2]]), "age": [1, 2]}), "patient")
    with pytest.raises(TypeError, match="no column names"):
        split_ids(np.zeros((3, 2)), "patient")
    frame.to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(UnreadableFileError, match="no column named 'whose'"):
        open_rows(tmp_path / "t.csv", person="whose")
    with pytest.raises(ValueError, match="open_rows"):
        split_ids(open_rows(tmp_path / "t.csv", columns=["age"]), "patient")
    with pytest.raises(UnreadableFileError, match="holds the person ids"):
        open_rows(tmp_path / "t.csv", person="patient", columns=["patient"])
    pq.write_table(pa.table({"patient": pa.array([[1], [2]]), "age": [1, 2]}), tmp_path / "t.parquet")
    with pytest.raises(UnreadableFileError, match="cells cannot be compared"):
        open_rows(tmp_path / "t.parquet", person="patient")
    np.save(tmp_path / "t.npy", np.zeros((3, 2)))
    with pytest.raises(UnreadableFileError, match="leave out `person`"):
        open_rows(tmp_path / "t.npy", person="patient")
