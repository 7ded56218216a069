"""Databases as tables: one query, read once, for reading only; the same rows as from a file."""

import sqlite3
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

import privspan as ps
from privspan._lib.errors import MissingPackageError, ParameterError
from privspan.rows import UnreadableFileError, draft_schema, open_rows
from privspan.rows.limits import Limits

N = 3_000
NAMES = ["age", "height", "weight", "pulse"]
EVERY = "select * from people"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with gaps, ids and words, as Parquet, in SQLite and in DuckDB."""
    home = tmp_path_factory.mktemp("doors")
    random = np.random.default_rng(0)
    X = random.normal(size=(N, 4)) * [1, 2, 3, 4] + 5
    X[random.random(X.shape) < 0.01] = np.nan
    table = pa.table(
        {name: pa.array(X[:, i], from_pandas=True) for i, name in enumerate(NAMES)}
        | {
            "patient": [f"p{i // 2}" for i in range(N)],
            "record_id": np.arange(N) + 2**60,
            "ward": ["a", "b", "c"] * 1_000,
        }
    )
    parquet.write_table(table, home / "people.parquet")
    with sqlite3.connect(home / "people.db") as lite:
        kinds = "age real, height real, weight real, pulse real, patient text, record_id integer, ward text"
        lite.execute(f"create table people ({kinds})")
        lite.executemany(
            "insert into people values (?, ?, ?, ?, ?, ?, ?)", zip(*table.to_pydict().values(), strict=True)
        )
    lite.close()
    with duckdb.connect(home / "people.duckdb") as duck:
        duck.execute("create table people as select * from read_parquet($1)", [str(home / "people.parquet")])
        duck.execute('create schema "s""x"; create view "s""x".young as select * from people where age < 5')
    return home


@pytest.fixture(params=["sqlite", "duckdb"])
def url(request, folder: Path) -> str:
    return f"{request.param}:///{folder}/people.{'db' if request.param == 'sqlite' else 'duckdb'}"


def released(rows, **options) -> np.ndarray:
    release = ps.private_pca(rows, 2, epsilon=1.0, delta=1e-6, rng=0, **options)
    return np.column_stack([release.subspace.basis, release.extras["mean"]])


def test_the_same_release_as_from_a_file(url: str, folder: Path) -> None:
    wanted = released(open_rows(folder / "people.parquet"))
    for asked in ({"table": "people"}, {"query": f"{EVERY} order by record_id;"}, {"query": f"{EVERY} -- all"}):
        np.testing.assert_array_equal(released(open_rows(url, **asked)), wanted)
    spooled = open_rows(url, table="people", limits=Limits(stream_bytes=1_000, window_bytes=5_000))
    np.testing.assert_array_equal(spooled[:], open_rows(folder / "people.parquet")[:])
    spooled.close()


def test_the_same_columns_as_of_a_file(url: str, folder: Path) -> None:
    file, table = open_rows(folder / "people.parquet"), open_rows(url, table="people")
    assert (table.names, table.left_out, table.dtype) == (file.names, file.left_out, file.dtype)
    some = open_rows(url, table="people", columns=["pulse", "age"])
    np.testing.assert_array_equal(some[:], file[:][:, [3, 0]])
    with pytest.raises(UnreadableFileError, match="has no column named 'agee'"):
        open_rows(url, table="people", columns=["agee"])
    with pytest.raises(UnreadableFileError, match="no column of numbers"):
        open_rows(url, query="select patient from people")
    with pytest.raises(UnreadableFileError, match="two columns named 'age'"):
        open_rows(url, query="select age, height as age from people")
    with pytest.raises(UnreadableFileError, match="holds no rows"):
        open_rows(url, query=f"{EVERY} where age > 1e9")


@pytest.mark.parametrize("person", ["patient", "record_id"])
def test_persons_are_told_apart_by_ids_of_any_type(person: str, url: str, folder: Path) -> None:
    file, table = (
        open_rows(at, person=person, **asked)
        for at, asked in ((folder / "people.parquet", {}), (url, {"table": "people"}))
    )
    ids, same = file.ids(), table.ids()
    assert len({*zip(ids.tolist(), same.tolist(), strict=True)}) == len({*ids.tolist()}) == len({*same.tolist()})


def test_long_ids_are_not_taken_from_floats(folder: Path) -> None:
    rows = open_rows(f"sqlite:///{folder}/people.db", table="people", columns=["age", "height", "record_id"])
    with pytest.raises(ParameterError, match="open_rows"):
        ps.private_pca(rows, 1, epsilon=1.0, delta=1e-6, person="record_id")


def test_categories_and_a_schema(url: str, tmp_path: Path, folder: Path) -> None:
    text = draft_schema(url, table="people")
    assert "its rows" in text
    assert text.split("\n\n", 1)[1] == draft_schema(folder / "people.parquet").split("\n\n", 1)[1]
    words = '[columns]\nage = "number"\n[columns.ward]\ntype = "category"\ncategories = ["a", "c"]\n'
    (tmp_path / "schema.toml").write_text(words)
    rows = open_rows(url, table="people", schema=tmp_path / "schema.toml")
    assert rows.names == ("age", "ward=a", "ward=c")
    np.testing.assert_array_equal(rows[:], open_rows(folder / "people.parquet", schema=tmp_path / "schema.toml")[:])
    assert draft_schema(url, query=f"{EVERY} where 1 = 0") == text  # no row is needed


# --- What is refused ---------------------------------------------------------------------------------------

WRITES = [
    "create table other (a integer)",
    "drop table people",
    "delete from people",
    "update people set age = 1",
    "delete from people returning age",
    "select 1 as a; drop table people",
    "select 1 as a; select 2 as a",
    "attach database ':memory:' as other",
    "copy people to 'people.csv'",
    "begin",
]


@pytest.mark.parametrize("query", WRITES)
def test_what_does_not_select_is_refused(query: str, url: str, folder: Path, monkeypatch) -> None:
    monkeypatch.chdir(folder)
    before = {path: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(UnreadableFileError, match="one statement that selects"):
        open_rows(url, query=query)
    assert {path: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize(
    "query", ["selec age", "select agee from people", "select age from peeple", "select nofunction(age) from people"]
)
def test_a_mistake_gets_one_sentence_without_the_query(query: str, url: str) -> None:
    with pytest.raises(UnreadableFileError) as refusal:
        open_rows(url, query=query)
    told = str(refusal.value)
    assert told.startswith("The database 'people.d")
    assert not {"agee", "peeple", "nofunction", "selec "} & {
        word for word in ("agee", "peeple", "nofunction", "selec ") if word in told
    }
    assert refusal.value.__cause__ is None
    assert (refusal.value.__cause__, refusal.value.__context__) == (None, None)


def test_options_that_do_not_go_together(url: str, folder: Path) -> None:
    for asked in ({}, {"query": EVERY, "table": "people"}):
        with pytest.raises(ParameterError, match="either `query` or `table`"):
            open_rows(url, **asked)
    with pytest.raises(ParameterError, match="a statement that selects"):
        open_rows(url, query=" ; ")
    with pytest.raises(ParameterError, match="with a CSV file"):
        open_rows(url, table="people", separator=";")
    for read in (open_rows, draft_schema):
        with pytest.raises(ParameterError, match="database"):
            read(folder / "people.parquet", table="people")
    with pytest.raises(UnreadableFileError, match="without a column of lists"):
        open_rows(url, table="people", width=3)


@pytest.mark.parametrize("scheme", ["sqlite", "duckdb"])
def test_a_file_that_is_no_database(scheme: str, folder: Path) -> None:
    with pytest.raises(UnreadableFileError, match=r"'no.db' cannot be opened: there is no such file"):
        open_rows(f"{scheme}:///{folder}/no.db", table="people")
    assert not (folder / "no.db").exists()
    with pytest.raises(UnreadableFileError, match=r"'people.parquet'.* no (SQLite|DuckDB) database"):
        open_rows(f"{scheme}:///{folder}/people.parquet", table="people")


@pytest.mark.parametrize(("scheme", "package"), [("duckdb", "duckdb"), ("postgresql", "adbc_driver_postgresql")])
def test_a_package_that_is_missing_is_named_with_its_extra(
    scheme: str, package: str, monkeypatch, folder: Path
) -> None:
    monkeypatch.setitem(__import__("sys").modules, package, None)
    with pytest.raises(MissingPackageError, match=rf"{package.replace('_', '-')}: pip install 'privspan\[db\]'"):
        open_rows(f"{scheme}:///{folder}/people.duckdb", table="people")


def test_a_table_in_another_schema_whatever_its_name(folder: Path) -> None:
    rows = open_rows(f"duckdb:///{folder}/people.duckdb", table='s"x.young')
    assert 0 < rows.shape[0] < N
