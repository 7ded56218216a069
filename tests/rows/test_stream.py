"""Tables that are read once: the same rows as in memory and in a file, decided by declared types alone."""

import os
import subprocess
import sys
import textwrap
import tomllib
import warnings
from contextlib import suppress
from dataclasses import replace

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.dataset
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet
from streams import EVERY_TYPE, STREAMS, Offer, arrow, uneven

import privspan as ps
from privspan import IdentifierWarning
from privspan._lib.watch import watching_rows
from privspan.privacy.call import Call
from privspan.rows import Column, Schema, UnreadableFileError, draft_schema, open_rows
from privspan.rows.door import open_table
from privspan.rows.files.stream import SpooledRows, StreamRows, open_stream
from privspan.rows.limits import LIMITS

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SPOOLED = replace(LIMITS, stream_bytes=200, window_bytes=500)
ROWS = np.random.default_rng(0).normal(size=(90, 3))
NUMBERS = ["int8", "uint64", "float16", "float32", "float64", "decimal", "wide_decimal", "boolean"]


@pytest.fixture(autouse=True)
def copies(tmp_path, monkeypatch):
    """The folder of the copies, which must be empty in the end."""
    folder = tmp_path / "copies"
    folder.mkdir()
    monkeypatch.setenv("PRIVSPAN_TMPDIR", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("limits", [LIMITS, SPOOLED], ids=["in memory", "in a file"])
@pytest.mark.parametrize("kind", STREAMS)
def test_every_stream_is_read_to_its_end(kind, limits):
    rows = open_rows(STREAMS[kind](arrow(ROWS)), limits=limits)
    assert isinstance(rows, SpooledRows if limits is SPOOLED else StreamRows)
    assert (rows.shape, rows.dtype, rows.names) == ((90, 3), np.float64, ("c0", "c1", "c2"))
    for _ in range(2):  # as often as need be
        np.testing.assert_array_equal(np.asarray(rows), ROWS)
        np.testing.assert_array_equal(rows[np.array([80, 3, 41])], ROWS[[80, 3, 41]])
    rows.close()


@pytest.mark.parametrize("limits", [LIMITS, SPOOLED], ids=["in memory", "in a file"])
def test_types_decide_as_they_do_for_files(tmp_path, limits):
    feather.write_feather(EVERY_TYPE, tmp_path / "people.feather")
    filed = open_rows(tmp_path / "people.feather")
    with open_rows(EVERY_TYPE.to_reader(), limits=replace(limits, stream_bytes=limits.stream_bytes // 10)) as rows:
        assert list(rows.names) == NUMBERS
        assert (rows.names, rows.dtype, rows.left_out) == (filed.names, filed.dtype, filed.left_out)
        assert rows.boolean.tolist() == filed.boolean.tolist() == [name == "boolean" for name in NUMBERS]
        assert rows.whole.tolist() == filed.whole.tolist() == [name in ("int8", "uint64") for name in NUMBERS]
        assert np.asarray(rows).tobytes() == np.asarray(filed).tobytes()
        np.testing.assert_array_equal(np.asarray(rows)[:, 5], [1.25, np.nan, -3.5])


@pytest.mark.parametrize("suffix", ["feather", "parquet"])
@pytest.mark.parametrize("column", EVERY_TYPE.column_names)
def test_a_column_by_itself_is_read_as_a_file_of_it(tmp_path, column, suffix):
    """Asked for, or with a width, as numbers or as ids: the same rows, or the same refusal."""
    table = EVERY_TYPE.select([column]).append_column("other", pa.array([1.0, 2.0, 3.0]))
    path = tmp_path / f"people.{suffix}"
    write = feather.write_feather if suffix == "feather" else parquet.write_table
    try:
        write(table, path)
    except pa.ArrowException:
        pytest.skip("The format has no such type.")
    if suffix == "parquet":
        table = parquet.read_table(path)  # it keeps no dictionaries of numbers

    def outcome(given, **options):
        try:
            with open_rows(given, **options) as rows:
                ids = rows.ids().tolist() if "person" in options else None
                return rows.names, rows.dtype, np.asarray(rows).tobytes(), ids
        except UnreadableFileError as refusal:
            return str(refusal).replace("RecordBatchReader", path.name)

    for options in ({}, {"columns": [column]}, {"columns": [column], "width": 2}, {"person": column}):
        filed = outcome(path, **options)
        assert outcome(table.to_reader(1), **options) == filed
        assert outcome(table.to_reader(1), limits=replace(LIMITS, stream_bytes=1), **options) == filed


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=5).filter(any),
    stream=st.sampled_from([1, 300, 10**9]),
    window=st.integers(30, 3000),
)
def test_how_rows_come_in_batches_does_not_matter(lengths, stream, window):
    limits = replace(LIMITS, stream_bytes=stream, window_bytes=window)
    with open_stream(uneven(arrow(ROWS), lengths), limits=limits) as rows:
        assert np.asarray(rows).tobytes() == ROWS.tobytes()
        if stream < 10**9:  # windows are cut where those of any other file are
            assert rows.edges.tolist() == [*range(0, 90, limits.window_rows(3, 8)), 90]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    record=st.tuples(
        st.none() | st.integers(-(2**63), 2**63 - 1),
        st.none() | st.floats(width=64),
        st.none() | st.booleans(),
        st.none() | st.text(max_size=300),
    ),
    limits=st.sampled_from([LIMITS, SPOOLED]),
)
def test_a_record_changes_its_own_row_alone(record, limits):
    types = pa.schema([("whole", pa.int64()), ("real", pa.float64()), ("yes", pa.bool_()), ("sex", pa.string())])
    plain = [(i, i / 3, i % 2 == 0, "f") for i in range(40)]
    schema = Schema(
        {name: Column("number") for name in types.names[:3]} | {"sex": Column("category", None, ["f", "m"])}
    )

    def rows(records):
        table = pa.Table.from_pylist([dict(zip(types.names, one, strict=True)) for one in records], types)
        with open_stream(table.to_reader(7), schema=schema, limits=limits) as source:
            return type(source), source.shape, source.dtype, np.asarray(source)

    *about, before = rows(plain)
    *others, after = rows([*plain[:17], record, *plain[18:]])
    assert about == others
    assert np.delete(before, 17, 0).tobytes() == np.delete(after, 17, 0).tobytes()


def test_where_rows_are_kept_does_not_depend_on_how_long_words_are():
    for word in ("", "x" * 10_000):
        table = pa.table({"c0": ROWS[:, 0], "who": [word] * 90})
        for limit, kind in ((90 * 40, StreamRows), (90 * 40 - 1, SpooledRows)):
            limits = replace(LIMITS, stream_bytes=limit)
            with open_stream(table.to_reader(), schema=Schema(person="who"), limits=limits) as rows:
                assert isinstance(rows, kind)


def test_dictionaries_of_batches_may_differ():
    words = [pa.array(part).dictionary_encode() for part in (["f", "m"], ["m", None, "f"], ["?", "m"])]
    kind = words[0].type
    parts = [pa.record_batch([part, pa.array([1.0] * len(part))], names=["sex", "age"]) for part in words]
    schema = Schema({"sex": Column("category", categories=["f", "m"]), "age": Column("number")})
    for limits in (LIMITS, replace(SPOOLED, stream_bytes=1)):
        reader = pa.RecordBatchReader.from_batches(pa.schema([("sex", kind), ("age", pa.float64())]), parts)
        with open_stream(reader, schema=schema, limits=limits) as rows:
            assert rows.names == ("sex=f", "sex=m", "age")
            nan = np.nan
            np.testing.assert_array_equal(np.asarray(rows)[:, 0], [1.0, 0.0, 0.0, nan, 1.0, nan, 0.0])


@pytest.mark.parametrize("other", [pa.array([2]), pa.array([2], pa.int16()), pa.array([2.5]), pa.array(["2"])])
@pytest.mark.parametrize("limits", [LIMITS, SPOOLED], ids=["in memory", "in a file"])
def test_a_batch_of_another_type_is_refused_whatever_it_holds(limits, other):
    """Else its cells would decide whether they can be made what was announced."""
    parts = [pa.record_batch([column], names=["age"]) for column in (pa.array([1] * 99, pa.int8()), other)]
    with pytest.raises(UnreadableFileError, match="batches of other types than it has announced"):
        open_rows(pa.RecordBatchReader.from_batches(parts[0].schema, parts), limits=limits)
    nothing = pa.record_batch([pa.nulls(2)], names=["age"])  # which can be made anything
    with open_rows(pa.RecordBatchReader.from_batches(parts[0].schema, [parts[0], nothing]), limits=limits) as rows:
        assert np.isnan(np.asarray(rows)[:, 0]).tolist() == [False] * 99 + [True] * 2


@pytest.mark.parametrize("limits", [LIMITS, SPOOLED], ids=["in memory", "in a file"])
def test_ids_are_those_of_a_frame(limits):
    table = arrow(ROWS).append_column("who", pa.array([f"p{i // 3}" if i % 10 else None for i in range(90)]))
    with open_stream(table.to_reader(11), schema=Schema(person="who"), limits=limits) as rows:
        expected = ps.rows.split_ids(table, "who")[1]
        assert rows.ids().tolist() == expected.tolist()
        assert (rows.person, rows.names) == ("who", ("c0", "c1", "c2"))
    with open_stream(table.to_reader(11), columns=["c0", "c1"], limits=limits) as rows:  # or one of the numbers
        rest, codes = ps.rows.split_ids(rows, "c1")
        assert (rest.shape, len(set(codes.tolist()))) == ((90, 1), 90)


@pytest.mark.parametrize("batches", [[], [0, 0]], ids=["no batch", "empty batches"])
@pytest.mark.parametrize("limits", [LIMITS, SPOOLED], ids=["in memory", "in a file"])
def test_an_empty_stream_is_refused(batches, limits):
    table = arrow(ROWS)
    parts = [part for _ in batches for part in table.slice(0, 1).to_batches()]
    reader = pa.RecordBatchReader.from_batches(table.schema, [part.slice(0, 0) for part in parts])
    with pytest.raises(UnreadableFileError, match=r"^'RecordBatchReader' holds no rows\.$"):
        open_rows(reader, limits=limits)


def broken(table, after, failure):
    """Return a reader that fails after so many batches."""

    def batches():
        yield from table.to_batches(max_chunksize=10)[:after]
        raise failure

    return pa.RecordBatchReader.from_batches(table.schema, batches())


class ServerGone(Exception):
    """What a driver raises."""


@pytest.mark.parametrize("after", [0, 1, 8])
@pytest.mark.parametrize(
    "failure", [ServerGone("secret"), OSError(5, "secret"), ValueError("secret"), KeyError("secret")]
)
def test_a_stream_that_breaks_off_is_one_sentence(after, failure):
    with pytest.raises(UnreadableFileError) as told:
        open_rows(broken(arrow(ROWS), after, failure), limits=SPOOLED)
    kind = type(failure).__name__
    assert str(told.value) == f"'RecordBatchReader' broke off while it was read ({kind}); nothing of it was kept."
    assert (told.value.__cause__, told.value.__context__) == (None, None)


def test_a_stream_that_breaks_off_spends_nothing(tmp_path):
    ledger = tmp_path / "ledger.json"
    for fit in (
        lambda X: ps.private_pca(X, 1, ledger=ledger, **BUDGET),
        lambda X: ps.PrivatePCA(1, ledger=ledger, **BUDGET).fit(X),
        lambda X: ps.exact_subspace(X, 1, ledger=ledger, **BUDGET),
    ):
        with pytest.raises(UnreadableFileError, match="broke off") as told:
            fit(broken(arrow(ROWS), 3, ServerGone("secret")))
        assert (told.value.__cause__, told.value.__context__) == (None, None)
    assert not ledger.exists()


@pytest.mark.parametrize("failure", [KeyboardInterrupt, SystemExit, MemoryError])
def test_an_interruption_passes_and_leaves_nothing(failure):
    with pytest.raises(failure):
        open_rows(broken(arrow(ROWS), 8, failure()), limits=SPOOLED)


def test_the_copy_has_no_name_while_rows_come(copies):
    seen = []

    def batches():
        for batch in arrow(ROWS).to_batches(max_chunksize=10):
            seen.append(sorted(copies.rglob("*")))
            yield batch

    reader = pa.RecordBatchReader.from_batches(arrow(ROWS).schema, batches())
    with open_rows(reader, limits=SPOOLED) as rows:
        assert isinstance(rows, SpooledRows)
        assert sorted(copies.rglob("*")) == []
    assert len(seen) == 9
    assert not any(seen)


def test_rows_of_a_closed_copy_are_gone():
    rows = open_rows(arrow(ROWS).to_reader(), limits=SPOOLED)
    with rows:
        held = rows[:3]
    np.testing.assert_array_equal(held, ROWS[:3])
    with pytest.raises(UnreadableFileError, match="has been closed"):
        rows[:3]
    rows.close()


def test_a_folder_that_is_not_there_is_refused_before_a_row_is_read(monkeypatch):
    monkeypatch.setenv("PRIVSPAN_TMPDIR", "/no/such/folder")
    with pytest.raises(ValueError, match="PRIVSPAN_TMPDIR must name a folder that exists"):
        open_rows(arrow(ROWS).to_reader(), limits=SPOOLED)


def test_a_full_disk_is_one_sentence_and_leaves_nothing(copies):
    """No file of the process may be longer than a page: what it is told is what a full disk tells."""
    code = """
        import resource, pyarrow as pa, numpy as np
        from dataclasses import replace
        from privspan.rows import open_rows, UnreadableFileError
        from privspan.rows.limits import LIMITS
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        table = pa.table({"age": np.arange(10_000.0)})
        try:
            open_rows(table.to_reader(100), limits=replace(LIMITS, stream_bytes=100, window_bytes=1000))
        except UnreadableFileError as told:
            print(told)
    """
    told = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=os.environ, capture_output=True, text=True, check=True
    )
    assert told.stdout.strip().endswith("and there is no room for it; name another folder with PRIVSPAN_TMPDIR.")
    assert str(copies) in told.stdout
    assert told.stderr == ""


# ---- As a frame ----------------------------------------------------------------------------------------------------


def test_what_is_fitted_keeps_its_columns_and_what_is_opened_leaves_ids_out():
    table = arrow(ROWS, ["age", "user_id", "bmi"])
    assert open_rows(table.to_reader()).names == ("age", "bmi")
    for X in (table, table.to_reader(), pl.from_arrow(table).lazy(), Offer(table)):
        with pytest.warns(IdentifierWarning, match="Column 'user_id' of X is named like an identifier") as told:
            model = ps.PrivatePCA(1, **BUDGET).fit(X)
        assert list(model.feature_names_in_) == ["age", "user_id", "bmi"]
        assert "person='user_id'" in str(told[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error", IdentifierWarning)
        model = ps.PrivatePCA(1, **BUDGET).fit(table.to_reader(), person="user_id")
        ps.private_pca(open_rows(table.to_reader()), 1, **BUDGET)
    assert list(model.feature_names_in_) == ["age", "bmi"]


@pytest.mark.parametrize("column", EVERY_TYPE.column_names)
def test_a_fitted_stream_has_the_rows_of_a_fitted_frame(column):
    """Or is refused in the same words."""
    table = EVERY_TYPE.select([column])

    def outcome(X):
        try:
            opened = open_table(X)
            return opened.dtype, opened.shape, np.asarray(opened).tobytes()
        except TypeError as refusal:
            return str(refusal), refusal.__notes__ if hasattr(refusal, "__notes__") else []

    assert outcome(table.to_reader(2)) == outcome(table)


@pytest.mark.filterwarnings("ignore::privspan.NotPrivateWarning")
def test_categories_and_persons_of_a_stream_are_those_of_a_frame():
    table = pa.table(
        {
            "who": [f"p{i // 2}" for i in range(400)],
            "sex": ["f" if i % 3 else "m" for i in range(400)],
            "age": [i % 70 + i / 400 for i in range(400)],
        }
    )
    for categories in ({"sex": ["f", "m"]}, {"sex": ("m", "f", "other")}):
        options = {"categories": categories, "random_state": 0, **BUDGET}
        framed, streamed = (ps.PrivatePCA(1, **options).fit(X, person="who") for X in (table, table.to_reader(30)))
        assert list(framed.feature_names_in_) == list(streamed.feature_names_in_)
        assert framed.components_.tobytes() == streamed.components_.tobytes()
        for other in (table, table.to_reader(7), table.drop_columns("who").to_reader()):
            assert streamed.transform(other).tobytes() == framed.transform(table).tobytes()


def test_what_cannot_be_a_category_is_refused_before_a_row_is_read():
    reader = lambda: broken(arrow(ROWS), 0, ServerGone())  # noqa: E731
    with pytest.raises(TypeError, match="with the words of each, for a stream"):
        ps.private_pca(reader(), 1, categories="declared", **BUDGET)
    with pytest.raises(ValueError, match="no column named 'sex'"):
        ps.private_pca(reader(), 1, categories={"sex": ["f"]}, **BUDGET)
    with pytest.raises(ValueError, match="list different words"):
        ps.private_pca(reader(), 1, categories={"c0": ["f", "f"]}, **BUDGET)
    with pytest.raises(UnreadableFileError, match="no column named 'who'"):
        ps.private_pca(reader(), 1, person="who", **BUDGET)


@pytest.mark.filterwarnings("ignore::privspan.NotPrivateWarning", "ignore::privspan.UselessPlanWarning")
@pytest.mark.filterwarnings("ignore::privspan.NoSpreadWarning")
def test_a_stream_is_read_once_for_fit_and_transform():
    options = {"random_state": 0, **BUDGET}
    for estimator in (ps.PrivatePCA(2, **options), ps.PrivateStandardScaler(**options)):
        np.testing.assert_array_equal(
            estimator.fit_transform(arrow(ROWS).to_reader()), estimator.fit_transform(arrow(ROWS))
        )


@pytest.mark.filterwarnings("ignore::privspan.NoSpreadWarning")
def test_a_stream_with_other_columns_is_not_transformed():
    model = ps.PrivatePCA(1, **BUDGET).fit(arrow(ROWS, ["a", "b", "c"]).to_reader())
    scaler = ps.PrivateStandardScaler(**BUDGET).fit(arrow(ROWS, ["a", "b", "c"]).to_reader())
    for fitted in (model, scaler):
        with pytest.raises(ValueError, match="got 'b' in the place of 'a'"):
            fitted.transform(arrow(ROWS, ["b", "a", "c"]).to_reader())
        with pytest.raises(ValueError, match="must have 3 columns; got 2"):
            fitted.transform(arrow(ROWS[:, :2], ["a", "b"]).to_reader())


def test_a_table_is_not_checked_where_that_would_use_it_up():
    with pytest.raises(TypeError, match="can be read once"):
        ps.PrivatePCA(1, **BUDGET).check_table(arrow(ROWS).to_reader())


def test_a_column_that_is_no_table_is_refused():
    with pytest.raises(UnreadableFileError, match="broke off"):
        open_rows(Offer(pa.chunked_array([[1.0, 2.0]])))
    with pytest.raises(TypeError, match="must be a file, or hand out Arrow batches"):
        open_rows(5)
    with pytest.raises(ValueError, match="must go with a CSV file"):
        open_rows(arrow(ROWS).to_reader(), separator=";")


def test_whoever_watches_is_told_how_many_rows_have_come():
    arrived = []
    with watching_rows(read=arrived.append):
        open_rows(uneven(arrow(ROWS), (20, 0, 31)))
    assert (sum(arrived), arrived[0]) == (90, 20)


def test_a_dataset_of_several_files_is_read_in_its_order(tmp_path):
    for part in range(6):
        parquet.write_table(arrow(ROWS[part * 15 : part * 15 + 15]), tmp_path / f"{part}.parquet", row_group_size=4)
    people = pyarrow.dataset.dataset(tmp_path)
    for limits in (LIMITS, replace(SPOOLED, batch_rows=7)):
        with open_rows(people, limits=limits) as rows:
            np.testing.assert_array_equal(np.asarray(rows), ROWS)


def test_a_lazy_frame_is_computed_once():
    calls = []
    lazy = pl.from_arrow(arrow(ROWS)).lazy().map_batches(lambda frame: calls.append(len(frame)) or frame)
    with open_rows(lazy, limits=SPOOLED) as rows:
        ps.private_pca(rows, 1, **BUDGET)
    assert sum(calls) == 90


def test_a_schema_is_drafted_from_declared_types_and_no_row_is_read():
    def batches():
        raise AssertionError("a row was asked for")
        yield

    reader = pa.RecordBatchReader.from_batches(EVERY_TYPE.schema, batches())
    drafted = tomllib.loads(draft_schema(reader))["columns"]
    assert {name: column["type"] for name, column in drafted.items()} == {
        **dict.fromkeys(NUMBERS, "number"),
        **dict.fromkeys(["user_id", "category", "numbered", "day", "moment", "span", "bytes", "uuid"], "skip"),
        **{
            "text": "text",
            "large_text": "text",
            "lists": "list",
            "vector": "list",
            "struct": "skip",
            "nothing": "skip",
        },
    }
    lazy = pl.LazyFrame({"age": [41], "user_id": [7]})
    assert tomllib.loads(draft_schema(lazy))["columns"]["user_id"] == {"type": "skip"}


def test_what_a_call_has_read_is_let_go_of_when_it_ends_however_that_is():
    for failure in (None, ServerGone()):
        closed = []
        with suppress(ServerGone), Call("private_mean", 1.0, 1e-6) as call:
            rows = call.taken(arrow(ROWS).to_reader())
            rows.let_go = lambda closed=closed: closed.append(True)
            assert closed == []
            if failure is not None:
                raise failure
        assert closed == [True]
    mine = open_rows(arrow(ROWS).to_reader(), limits=SPOOLED)
    ps.private_mean(mine, **BUDGET)
    np.testing.assert_array_equal(mine[:], ROWS)  # what was opened by somebody else stays open


def test_a_cursor_of_adbc_is_read_in_batches():
    from adbc_driver_sqlite import dbapi

    with dbapi.connect() as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("people", arrow(ROWS))
        for limits in (LIMITS, SPOOLED):
            cursor.execute("select * from people")
            with open_rows(cursor, limits=limits) as rows:
                np.testing.assert_array_equal(np.asarray(rows), ROWS)
        cursor.execute("select * from people")
        assert list(ps.PrivatePCA(1, **BUDGET).fit(cursor).feature_names_in_) == ["c0", "c1", "c2"]
        cursor.execute("select * from people")
        np.testing.assert_array_equal(np.asarray(open_table(cursor.fetch_arrow())), ROWS)
