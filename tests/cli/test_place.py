"""Tables of databases and of URLs on the command line, and that nothing of a URL comes out anywhere."""

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import duckdb
import fsspec
import numpy as np
import pytest

from privspan.cli import main
from privspan.cli._place import Database, for_report, table_place, without_urls
from privspan.cli._progress import Activity
from privspan.cli.exits import Complaint, ExitCode
from privspan.ledger import Ledger
from privspan.ledger.release_file import load_release

BUDGET = ["-k", "1", "--epsilon", "1", "--delta", "1e-6"]
ASKED = ["--query", "select age, height from people"]
SECRET = "p4-sek/ret"
URL = f"postgresql://zoe:{quote(SECRET, safe='')}@127.0.0.1:1/clinic?sslmode=disable"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a table in SQLite, in DuckDB and as CSV."""
    X = np.random.default_rng(0).normal(size=(2_000, 2)) * [3, 1] + 5
    lines = [f"{age!r},{height!r},{i}" for i, (age, height) in enumerate(X.tolist())]
    (tmp_path / "people.csv").write_text("\n".join(["age,height,patient_id", *lines]))
    with closing(sqlite3.connect(tmp_path / "people.db")) as file, file:
        file.execute("create table people (age real, height real, patient_id integer)")
        file.executemany("insert into people values (?, ?, ?)", [(*row, i // 2) for i, row in enumerate(X.tolist())])
    with duckdb.connect(tmp_path / "people.duckdb") as file:
        file.execute("create table people as select * from read_csv('" + str(tmp_path / "people.csv") + "')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PRIVSPAN_DATABASE", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path


def test_fit_columns_and_transform_take_a_database(folder: Path, capsys) -> None:
    seeded = [*BUDGET, "--seed", "0"]
    assert main(["fit", "people.csv", *seeded, "--columns", "age,height", "-o", "file.npz"]) == 0
    wanted = load_release("file.npz").subspace.basis
    for url in ("sqlite:///people.db", f"duckdb:///{folder}/people.duckdb"):
        assert main(["fit", "--database", url, "--table", "people", *seeded, "-o", "out.npz", "--overwrite"]) == 0
        np.testing.assert_array_equal(load_release("out.npz").subspace.basis, wanted)
        told = capsys.readouterr()
        assert "made from  table 'people' of people.d" in told.out
        assert "Left out (named like an identifier): patient_id." in told.err
        assert main(["transform", "out.npz", "--database", url, *ASKED, "-o", "out.csv", "--overwrite"]) == 0
        assert len(Path("out.csv").read_text().splitlines()) == 2_001
        assert main(["columns", "--database", url, "--table", "people", "-o", "out.toml", "--overwrite"]) == 0
        assert '[columns."patient_id"]\ntype = "skip"' in Path("out.toml").read_text()
        options = ["--schema", "out.toml", "-o", "out.npz", "--overwrite"]
        assert main(["fit", "--database", url, "--table", "people", *seeded, *options]) == 0


def test_the_url_comes_from_the_environment_and_persons_from_a_column(folder: Path, monkeypatch, capsys) -> None:
    monkeypatch.setenv("PRIVSPAN_DATABASE", "sqlite:///people.db")
    assert main(["fit", "--table", "people", "--person", "patient_id", *BUDGET, "-o", "out.npz"]) == 0
    assert "1,000 persons" in capsys.readouterr().out
    assert main(["fit", "people.csv", "--columns", "age", *BUDGET, "-o", "file.npz"]) == 0  # a FILE is a file
    assert load_release("file.npz").record.source == "people.csv, 2,000 rows, 1 columns"


def test_the_ledger_takes_all_queries_of_a_database_for_one_data_set(folder: Path) -> None:
    books = ["--ledger", "book.json", "--overwrite", "-o", "out.npz"]
    for asked in (ASKED, ["--table", "people"], ["--query", "select age, height from people limit 500"]):
        assert main(["fit", "--database", "sqlite:///people.db", *asked, *BUDGET, *books]) == 0
    [(name, account)] = Ledger("book.json").accounts().items()
    assert (name, len(account.entries)) == (str(folder / "people.db"), 3)
    place = table_place(None, Database(URL, "select 1"))
    assert place.dataset == "postgresql://127.0.0.1:1/clinic"
    assert table_place("s3://bucket/people.csv?versionId=x", Database()).dataset == "s3://bucket/people.csv"


def test_the_report_says_how_to_run_it_again_without_the_url(folder: Path) -> None:
    for typed in (["--database", "sqlite:///people.db"], ["--database=sqlite:///people.db"]):
        line = ["fit", *typed, *ASKED, *BUDGET, "-o", "out.npz", "--report", "out.html", "--overwrite"]
        assert main(line) == 0
        page = Path("out.html").read_text()
        assert "Run this with the URL of the database in the variable PRIVSPAN_DATABASE." in page
        assert "privspan fit --query" in page
        assert "sqlite:" not in page
        assert load_release("out.npz").record.command.startswith("privspan fit --query 'select age")
    assert for_report(["fit", "https://zoe:pw@host/a/people.csv?token=x", "-o", "/a/o.npz"]) == [
        "fit", "people.csv", "-o", "o.npz",
    ]  # fmt: skip
    assert for_report(["fit", "ftp://zoe:pw@host/people.csv"]) == ["fit", "ftp://…"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "there is no table; name one: a FILE, or --database URL with --query SQL or --table NAME."),
        (["--database", "sqlite:///people.db"], "there is no table; name one"),
        (ASKED, "set PRIVSPAN_DATABASE, or add --database URL."),
        (["people.csv", *ASKED], "either a FILE or in a --database; leave one out."),
        (["people.csv", "--database", "sqlite:///people.db"], "either a FILE or in a --database"),
        (["sqlite:///people.db"], "named with --database, or in PRIVSPAN_DATABASE, and asked with --query."),
        ([*ASKED, "--table", "people", "--database", "sqlite:///people.db"], "--query and --table are two ways"),
        ([*ASKED, "--database", "people.db"], "--database takes postgresql://…, sqlite:///people.db or"),
        ([*ASKED, "--database", "mysql://zoe:pw@host/db"], "Tables at mysql:// are not read; known are"),
        ([*ASKED, "--database", "sqlite:///people.db", "--separator", ";"], "must go with a CSV file."),
    ],
)
def test_a_mistake_is_told_in_one_sentence(arguments: list[str], words: str, folder: Path, capsys) -> None:
    assert main(["fit", *arguments, *BUDGET, "-o", "out.npz", "--ledger", "book.json"]) == ExitCode.USAGE
    told = capsys.readouterr().err
    assert words in told
    assert told.count("\n") == 1
    assert not Path("book.json").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--database", "sqlite:///no.db", *ASKED], "The database 'no.db' cannot be opened: there is no such file."),
        (["--database", "sqlite:///people.db", "--table", "nobody"], "The database 'people.db' refused the query"),
        (
            ["--database", "sqlite:///people.db", *ASKED, "--columns", "agee"],
            "'people.db' has no column named 'agee'.",
        ),
        (["--database", URL, *ASKED], "The database 'clinic' cannot be opened: the server cannot be reached"),
        (["http://zoe:pw@127.0.0.1:1/people.csv?x=y"], "'people.csv' cannot be copied from http:// (ClientConnect"),
    ],
)
def test_what_cannot_be_read_costs_nothing(arguments: list[str], words: str, folder: Path, capsys) -> None:
    line = ["fit", *arguments, *BUDGET, "-o", "out.npz", "--ledger", "book.json"]
    assert main(line) == ExitCode.UNREADABLE
    assert words in capsys.readouterr().err
    assert not Path("book.json").exists()
    assert not Path("out.npz").exists()


def test_an_output_does_not_replace_the_database(folder: Path, capsys) -> None:
    os.link("people.db", "out.npz")
    line = ["fit", "--database", "sqlite:///people.db", *ASKED, *BUDGET, "-o", "out.npz", "--overwrite"]
    assert main(line) == ExitCode.USAGE
    assert "-o would replace the table itself" in capsys.readouterr().err


# --- Nothing of a URL comes out ------------------------------------------------------------------------------

MISUSED = [
    ["fit", "--database", URL, *ASKED, *BUDGET, "-o", "out.npz"],
    ["fit", f"--database={URL}", *ASKED, *BUDGET, "-o", "out.npz"],
    ["fit", *ASKED, *BUDGET, "-o", "out.npz"],
    ["fit", URL, *BUDGET, "-o", "out.npz"],
    ["fit", "people.csv", URL, *BUDGET, "-o", "out.npz"],
    ["fit", "people.csv", *BUDGET, "-o", URL],
    ["fit", "people.csv", *BUDGET, "-o", "out.npz", "--report", URL],
    ["fit", "people.csv", *BUDGET, "-o", "out.npz", "--schema", URL],
    ["fit", "people.csv", *BUDGET, "-o", "out.npz", "--ledger", f"{URL}.json"],
    ["fit", "people.csv", *BUDGET, "-o", "out.npz", "--method", URL],
    ["fit", "people.csv", *BUDGET, "-o", "out.npz", "--bounds", URL],
    ["fit", "people.csv", *BUDGET, "-o", "out.npz", "--columns", URL],
    ["fit", "people.csv", *BUDGET, "-o", "out.npz", "--databse", URL],
    ["fit", "people.csv", "-k", URL],
    ["columns", "--database", URL, "--table", "people"],
    ["columns", URL],
    ["transform", URL, "people.csv", "-o", "out.csv"],
    ["show", URL],
    ["compare", URL, URL],
    [URL],
]


@pytest.mark.parametrize("debug", [[], ["--debug"]])
@pytest.mark.parametrize("line", MISUSED, ids=lambda line: " ".join(line).replace(URL, "URL"))
def test_no_message_shows_a_url(line: list[str], debug: list[str], folder: Path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("PRIVSPAN_DATABASE", URL)
    assert main([*line, *debug]) in (ExitCode.USAGE, ExitCode.UNREADABLE)
    told = "".join(capfd.readouterr())
    assert not any(word in told for word in (SECRET, quote(SECRET, safe=""), "zoe"))


@pytest.mark.parametrize("command", ["fit", "columns", "transform"])
def test_the_help_does_not_show_what_is_in_the_environment(command: str, folder: Path, monkeypatch, capfd) -> None:
    monkeypatch.setenv("PRIVSPAN_DATABASE", URL)
    assert main([command, "--help"]) == 0
    told = "".join(capfd.readouterr())
    assert "PRIVSPAN_DATABASE" in told
    assert "zoe" not in told


def test_no_file_holds_a_password(folder: Path, host_with_login: str, capfd) -> None:
    """A table at an address with a login, through a release, a report, a ledger and what is printed of them."""
    url = f"http://zoe:{quote(SECRET, safe='')}@{host_with_login}/people.csv?token=t0ken-{SECRET}"
    line = ["fit", url, "--columns", "age,height", *BUDGET, "-o", "out.npz", "--report", "out.html"]
    assert main([*line, "--ledger", "book.json", "--json"]) == 0
    for words in (
        ["show", "out.npz", "--json"],
        ["ledger", "show", "book.json"],
        ["report", "out.npz", "-o", "b.html"],
    ):
        assert main(words) == 0
    release = load_release("out.npz")
    with np.load("out.npz") as saved:
        texts = [str(saved[name]) for name in saved.files]
    texts += [*capfd.readouterr(), repr(release), str(release), json.dumps(release.release.to_dict(), default=str)]
    for name in ("out.npz", "out.html", "b.html", "book.json"):
        texts.append(Path(name).read_bytes().decode("latin-1"))
    for secret in (SECRET, quote(SECRET, safe=""), "zoe", "t0ken"):
        assert not any(secret in text for text in texts)
    [name] = Ledger("book.json").accounts()
    assert name == f"http://{host_with_login}/people.csv"
    assert release.record.source == "people.csv, 2,000 rows, 2 columns"


@pytest.fixture
def host_with_login(folder: Path):
    """A server of files of this machine that asks for a login."""
    code = (
        "import http.server, sys\n"
        "class Handler(http.server.SimpleHTTPRequestHandler):\n"
        "    def log_message(self, *_): pass\n"
        "    def do_GET(self):\n"
        "        super().do_GET() if self.headers.get('Authorization') else self.send_error(401)\n"
        "server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)\n"
        "print(server.server_address[1], flush=True)\n"
        "server.serve_forever()\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], cwd=folder, stdout=subprocess.PIPE, text=True) as server:
        yield f"127.0.0.1:{server.stdout.readline().strip()}"
        server.kill()


def test_forms_of_a_url_in_a_message() -> None:
    for said in (URL, str(Path(URL)), f"No such option: {URL}", f"login zoe:{quote(SECRET, safe='')}@ is wrong"):
        assert "zoe" not in without_urls(f"Error: {said}.", ["fit", URL])
        assert "zoe" not in without_urls(f"Error: {said}.", ["fit", f"--database={URL}"])
    assert without_urls("nothing to hide", ["fit", "people.csv"]) == "nothing to hide"


def test_progress_says_how_many_rows_have_arrived() -> None:
    shown = Activity("Reading people")
    shown.read(1_000_000)
    assert shown.describe().endswith("so far, 1,000,000 rows read")
    shown.now("Learning privately")
    assert "rows" not in shown.describe()


def test_a_place_shows_no_url() -> None:
    database = Database(URL, "select 1")
    place = table_place(None, database)
    assert "zoe" not in repr(database) + repr(place) + place.name
    with pytest.raises(Complaint):
        table_place(None, Database())


@pytest.mark.parametrize("command", [["fit", *BUDGET, "-o", "out.npz"], ["columns"]], ids=["fit", "columns"])
def test_copies_that_a_killed_process_left_are_told_of_in_one_sentence(
    command: list[str], folder: Path, monkeypatch, capsys
) -> None:
    left = folder / "privspan-copy-left.temporary"
    left.mkdir(mode=0o700)
    (left / "people.parquet").touch()
    monkeypatch.setenv("PRIVSPAN_TMPDIR", str(folder))
    with fsspec.open("memory://copied/people.csv", "wb") as file:
        file.write((folder / "people.csv").read_bytes())
    assert main([*command, "memory://copied/people.csv"]) == ExitCode.OK
    assert not left.exists()
    assert "Removed a temporary copy of a table that a process had left behind" in capsys.readouterr().err
