"""PostgreSQL: declared types, logins as libpq has them, and a server that goes away; against a real server."""

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from urllib.parse import quote

import numpy as np
import postgres_server
import pyarrow as pa
import pytest
from postgres_server import PASSWORD, USER, Server
from pyarrow import parquet

import privspan as ps
from privspan.rows import UnreadableFileError, draft_schema, open_rows
from privspan.rows.limits import Limits

N = 1_000_000
NAMES = ["age", "height", "income"]
needs_server = pytest.mark.skipif(postgres_server.programs() is None, reason=postgres_server.MISSING)


def test_a_server_that_is_not_there_is_told_in_one_sentence_without_the_url() -> None:
    pytest.importorskip("adbc_driver_postgresql")
    url = "postgresql://zoe:secret@127.0.0.1:1/clinic?sslmode=disable"
    with pytest.raises(UnreadableFileError) as refusal:
        open_rows(url, query="select hidden from people")
    told = str(refusal.value)
    assert told.startswith(
        "The database 'clinic' cannot be opened: the server cannot be reached, or refuses the login;"
    )
    assert not any(word in told for word in ("zoe", "secret", "127.0.0.1", "hidden", "sslmode"))
    assert (refusal.value.__cause__, refusal.value.__context__) == (None, None)


# --- Against a server --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def server():
    with postgres_server.postgres_server() as running:
        yield running


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take what libpq would find out of the environment."""
    for name in list(os.environ):
        if name.startswith("PG"):
            monkeypatch.delenv(name)


def run(server: Server, *statements: str) -> None:
    """Run statements that write."""
    from adbc_driver_postgresql import dbapi

    with dbapi.connect(server.url(), autocommit=True) as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


@pytest.fixture(scope="module")
def people(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a million rows with NULLs, a NUMERIC column and UUID ids into the server, and into a Parquet file."""
    from adbc_driver_postgresql import dbapi

    random = np.random.default_rng(0)
    X = random.normal(size=(N, 3)) * [1, 2, 3] + [4, 5, 6]
    X[:, 2] = [float(f"{value:.3f}") for value in X[:, 2].tolist()]
    X[random.random(X.shape) < 0.01] = np.nan
    columns = {name: pa.array(X[:, i], from_pandas=True) for i, name in enumerate(NAMES)}
    table = pa.table(columns | {"row_id": np.arange(N), "visitor": np.arange(N) // 2})
    with dbapi.connect(server.url(), autocommit=True) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("staged", table, mode="create")
        cursor.execute(
            "create table people as select age, height, income::numeric(12, 3) as income, row_id, "
            "md5(visitor::text)::uuid as person, now() as seen, 'text' as word from staged"
        )
    path = tmp_path_factory.mktemp("people") / "people.parquet"
    parquet.write_table(table.select([*NAMES, "row_id", "visitor"]), path)
    return path


@pytest.mark.slow
@needs_server
def test_the_same_release_as_from_a_file(server: Server, people: Path) -> None:
    def released(rows) -> np.ndarray:
        found = ps.private_pca(rows, 2, epsilon=1.0, delta=1e-6, rng=0)
        return np.column_stack([found.subspace.basis, found.extras["mean"]])

    rows = open_rows(server.url(), query="select * from people order by row_id")
    assert rows.names == tuple(NAMES)
    assert {(one.name, one.reason) for one in rows.left_out} == {
        ("row_id", "named like an identifier"),
        ("person", "no numbers"),
        ("seen", "dates or times"),
        ("word", "text"),
    }
    file = open_rows(people, columns=NAMES)
    np.testing.assert_array_equal(rows[:], file[:])
    np.testing.assert_array_equal(released(rows), released(file))
    spooled = open_rows(
        server.url(),
        query="select * from people order by row_id",
        limits=Limits(stream_bytes=2**20, window_bytes=2**20),
    )
    np.testing.assert_array_equal(spooled[:], file[:])


@pytest.mark.slow
@needs_server
def test_persons_by_uuid_are_those_of_the_file(server: Server, people: Path) -> None:
    rows = open_rows(server.url(), query="select * from people order by row_id", person="person")
    ids, same = rows.ids(), open_rows(people, person="visitor").ids()
    assert len(np.unique(ids)) == len(np.unique(np.column_stack([ids, same]), axis=0)) == N // 2


TYPES = {
    "1::smallint": 1, "2::integer": 2, "3::bigint": 3, "1.5::real": 1.5, "2.5::float8": 2.5, "true": 1,
    "1.25::numeric": 1.25, "'1.20'::numeric(9, 2)": 1.2, "'NaN'::numeric": np.nan, "null::numeric": np.nan,
    "1e400::numeric": np.inf, "9007199254740993::numeric": 2.0**53, "sum(1::numeric) over ()": 1,
}  # fmt: skip
OTHERS = [
    "'x'::text", "'x'::varchar(3)", "'x'::char(4)", "gen_random_uuid()", "now()", "current_date", "'12:00'::time",
    "'1 day'::interval", "'\\x00'::bytea", "'{}'::json", "'{}'::jsonb", "'1.1.1.1'::inet", "array[1, 2]::float8[]",
    "array[1.5]::numeric[]", "'(1,2)'::point", "int4range(1, 2)", "null",
]  # fmt: skip


CANNOT_BE_HELD = ["interval '100000000 hours'", "array[interval '100000000 hours']", "row(1, 2)", "1 / (1 - i)"]


@pytest.mark.slow
@needs_server
@pytest.mark.parametrize("cell", CANNOT_BE_HELD)
def test_a_cell_that_the_driver_cannot_hold_breaks_nothing_off(cell: str, server: Server) -> None:
    """Of a column that is not used, or of the ids: it is not sent, or sent as text."""
    query = f"select i::float8 as age, {cell} as other from generate_series(0, 2) as numbers(i) order by i desc"
    asked = {"columns": ["age"]} if "i)" in cell else {}
    np.testing.assert_array_equal(open_rows(server.url(), query=query, **asked)[:], [[2], [1], [0]])
    if cell.startswith("interval"):
        assert open_rows(server.url(), query=query, person="other").ids().tolist() == [0, 0, 0]


@pytest.mark.slow
@needs_server
def test_a_few_columns_do_not_come_in_the_order_of_an_index(server: Server) -> None:
    wide = f"select i, -i::float8 as income, {', '.join(f'i::text as w{at}' for at in range(20))}"
    run(server, f"create table wide as {wide} from generate_series(1, 20000) as numbers(i)")
    run(server, "create index of_income on wide (income)", "vacuum analyze wide")
    rows = open_rows(server.url(), table="wide", columns=["income"])
    np.testing.assert_array_equal(rows[:][:, 0], -np.arange(1.0, 20_001.0))


@pytest.mark.slow
@needs_server
def test_declared_types_decide(server: Server) -> None:
    numbers = [f"{kind} as n{i}" for i, kind in enumerate(TYPES)]
    others = [f"{kind} as o{i}" for i, kind in enumerate(OTHERS)]
    query = f"select {', '.join(numbers + others)}"
    rows = open_rows(server.url(), query=query)
    assert rows.names == tuple(f"n{i}" for i in range(len(TYPES)))
    assert len(rows.left_out) == len(OTHERS)
    np.testing.assert_array_equal(rows[:], [[*TYPES.values()]])
    nothing = open_rows(
        server.url(), query=f"select * from ({query}) as one union all select * from ({query}) as two"
    )
    assert (nothing.names, nothing.left_out, nothing.dtype) == (rows.names, rows.left_out, rows.dtype)
    assert '[columns."n6"]\ntype = "number"' in draft_schema(server.url(), query=query)
    for person in ("n6", "o0", "o3", "o4", "o11"):
        assert open_rows(server.url(), query=query, person=person).ids().tolist() == [0]


@pytest.mark.slow
@needs_server
def test_what_writes_is_refused_by_the_server(server: Server) -> None:
    run(server, "create table kept as select 1.0::float8 as x", "create sequence numbers")
    for query in (
        "drop table kept",
        "delete from kept returning x",
        "with gone as (delete from kept returning x) select * from gone",
        "select nextval('numbers')::float8 as x",
        "select 1 as x; drop table kept",
        "copy (select 1) to program 'touch was-here'",
        "explain analyze delete from kept",
        "set transaction read write; delete from kept",
        "commit; delete from kept",
    ):
        with pytest.raises(UnreadableFileError) as refusal:
            open_rows(server.url(), query=query)
        assert query not in str(refusal.value)
    assert not list((server.folder / "data").glob("was-here"))
    assert open_rows(server.url(), table="public.kept").shape == (1, 1)


@pytest.mark.slow
@needs_server
@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("select nothing from people", "a column that it names is not there"),
        ("select * from nobody", "a table that it names is not there"),
        ("selec 'secret'", "one statement that selects, without errors of syntax"),
        ("select 'secret'::float8 as x", "fails on some record"),
        ("select (word || 'secret')::float8 as x from (select 'a' as word) as words", "fails on some record"),
        ("select 1 / (i - 90000)::float8 as x from generate_series(1, 100000) as i", "fails on some record"),
        ("select age from pg_authid, pg_sleep(0)", "a column that it names is not there"),
    ],
)
def test_a_refusal_is_one_sentence_without_cells(query: str, words: str, server: Server) -> None:
    with pytest.raises(UnreadableFileError, match=words) as refusal:
        open_rows(server.url(), query=query)
    assert not any(word in str(refusal.value) for word in ("secret", PASSWORD, quote(PASSWORD, safe=""), USER))
    assert (refusal.value.__cause__, refusal.value.__context__) == (None, None)


@pytest.mark.slow
@needs_server
def test_logins_work_as_those_of_psql(server: Server, tmp_path: Path, monkeypatch) -> None:
    def works(url: str) -> bool:
        try:
            return open_rows(url, query="select 1 as one").shape == (1, 1)
        except UnreadableFileError as refusal:
            return "refuses the login" not in str(refusal)

    plain = server.url(USER)
    assert works(server.url())
    assert not works(plain)
    assert not works(server.url(f"{USER}:wrong"))
    with monkeypatch.context() as patch:
        patch.setenv("PGPASSWORD", PASSWORD)
        assert works(plain)
        patch.setenv("PGUSER", USER)
        patch.setenv("PGHOST", str(server.folder))
        assert works("postgresql:///postgres")
    line = f"*:*:postgres:{USER}:{PASSWORD}".replace(PASSWORD, PASSWORD.replace(":", "\\:"))
    (tmp_path / ".pgpass").write_text(f"{line}\n")
    (tmp_path / ".pgpass").chmod(0o600)
    with monkeypatch.context() as patch:
        patch.setenv("HOME", str(tmp_path))
        assert works(plain)
    with monkeypatch.context() as patch:
        patch.setenv("PGPASSFILE", str(tmp_path / ".pgpass"))
        assert works(plain)
        (tmp_path / "services").write_text(f"[clinic]\nhost={server.folder}\ndbname=postgres\nuser={USER}\n")
        patch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
        assert works("postgresql:///?service=clinic")
        patch.setenv("PGSERVICE", "clinic")
        assert works("postgresql://")
    assert not works(plain)


# --- The command line --------------------------------------------------------------------------------------


def fit(server: Server, folder: Path, query: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Run the command in another process, with the URL in its environment, or typed."""
    line = ["fit", "--query", query, "-k", "1", "--epsilon", "1", "--delta", "1e-6", "-o", "out.npz"]
    line += ["--ledger", "ledger.json", "--report", "report.html", "--overwrite", *options]
    environment = os.environ | {"PRIVSPAN_DATABASE": server.url(), "PRIVSPAN_TMPDIR": str(folder / "copies")}
    (folder / "copies").mkdir(exist_ok=True)
    command = [sys.executable, "-m", "privspan", *line]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
@needs_server
@pytest.mark.parametrize("debug", [[], ["--debug"]])
@pytest.mark.parametrize("typed", [False, True])
def test_no_password_and_no_url_anywhere(
    typed: bool, debug: list[str], server: Server, people, tmp_path: Path
) -> None:
    options = [*(["--database", server.url()] if typed else []), *debug]
    done = fit(server, tmp_path, "select age, height from people limit 5000", *options)
    assert (done.returncode, "5,000 rows" in done.stdout) == (0, True), done.stderr
    shown = [fit(server, tmp_path, "select nope from people", *options), done]
    shown.append(fit(server, tmp_path, "select age from people", "--columns", "nope", *options))
    with np.load(tmp_path / "out.npz") as saved:
        kept = " ".join(str(saved[name]) for name in saved.files)
    texts = [text for one in shown for text in (one.stdout, one.stderr)] + [kept]
    texts += [path.read_bytes().decode("latin-1") for path in tmp_path.iterdir() if path.is_file()]
    texts += [
        subprocess.run(
            [sys.executable, "-m", "privspan", "show", "out.npz", "--json"],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        ).stdout
    ]
    for secret in (PASSWORD, quote(PASSWORD, safe=""), server.url(), f"{USER}:", f"{USER}@"):
        assert [text for text in texts if secret in text] == []
    assert "PRIVSPAN_DATABASE" in (tmp_path / "report.html").read_text()
    assert [one.returncode for one in shown] == [3, 0, 3]


def wait_for_a_query(server: Server) -> None:
    """Wait until the server runs a query of ours, and a moment more."""
    from adbc_driver_postgresql import dbapi

    ours = "state = 'active' and query like 'COPY (select %' and query not like '%pg_stat%'"
    asked = f"select 1 from pg_stat_activity where {ours} and pid <> pg_backend_pid()"
    with dbapi.connect(server.url(), autocommit=True) as connection, connection.cursor() as cursor:
        for _ in range(600):
            cursor.execute(asked)
            if cursor.fetchone() is not None:
                time.sleep(0.5)
                return
            time.sleep(0.1)
    raise TimeoutError


@pytest.mark.slow
@needs_server
@pytest.mark.parametrize(
    "query", ["select pg_sleep(600)::text, 1 as x", "select generate_series(1, 2000000000)::float8 as x"]
)
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_the_query_at_once(ending: int, query: str, server: Server, tmp_path: Path) -> None:
    line = [sys.executable, "-m", "privspan", "fit", "--query", query, "-k", "1", "--epsilon", "1", "--delta", "1e-6"]
    environment = os.environ | {"PRIVSPAN_DATABASE": server.url(), "PRIVSPAN_TMPDIR": str(tmp_path)}
    command = [*line, "-o", "out.npz", "--ledger", "ledger.json"]
    told = {"stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, **told) as running:
        try:
            wait_for_a_query(server)
            running.send_signal(ending)
            words = running.communicate(timeout=60)[1]
        finally:
            running.kill()
    assert (running.returncode, "nothing was spent" in words) == (130, True), words
    assert list(tmp_path.iterdir()) == []


ENDLESS = "select generate_series(1, 2000000000)::float8 as x, 1.5::float8 as y"


@pytest.mark.slow
@needs_server
def test_a_server_that_is_killed_in_the_middle(server: Server, people, tmp_path: Path, monkeypatch) -> None:
    """One sentence, nothing spent, nothing left behind."""
    monkeypatch.setenv("PRIVSPAN_TMPDIR", str(tmp_path))
    told: list[str] = []

    def read() -> None:
        with pytest.raises(UnreadableFileError) as refusal:
            open_rows(server.url(), query=ENDLESS, limits=Limits(stream_bytes=2**20))
        told.append(str(refusal.value))

    reading = threading.Thread(target=read)
    reading.start()
    wait_for_a_query(server)
    server.kill()
    reading.join(timeout=60)
    assert told == [
        "The database 'postgres' broke off while it was read: the server went away, or the query fails on some "
        "record. Nothing was kept."
    ]
    assert list(tmp_path.iterdir()) == []

    server.start()
    killing = threading.Thread(target=lambda: (wait_for_a_query(server), server.kill()))
    killing.start()
    done = fit(server, tmp_path, ENDLESS)
    killing.join()
    assert (done.returncode, "broke off" in done.stderr, "Traceback" in done.stderr) == (3, True, False), done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["copies"]
    assert list((tmp_path / "copies").iterdir()) == []
    server.start()
    assert open_rows(server.url(), table="people").shape == (N, 3)
