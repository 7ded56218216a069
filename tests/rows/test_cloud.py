"""Files elsewhere: copied once, the same rows as from the file, nothing left behind, nothing secret told."""

import gc
import logging
import shutil
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import numpy as np
import pyarrow as pa
import pytest
import zarr
from pyarrow import feather, parquet

from privspan._lib.errors import MissingPackageError, ParameterError
from privspan.rows import UnreadableFileError, draft_schema, open_rows
from privspan.rows.limits import Limits

X = np.random.default_rng(0).normal(size=(500, 3))
FILES = ["people.parquet", "people.csv", "people.feather", "people.arrow", "people.npy", "people.zarr"]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same table in all formats."""
    folder = tmp_path_factory.mktemp("files")
    table = pa.table({"id": np.arange(500)} | {f"c{i}": X[:, i] for i in range(3)})
    parquet.write_table(table, folder / "people.parquet")
    for name in ("people.feather", "people.arrow"):
        feather.write_feather(table, folder / name)
    heads, lines = "id,c0,c1,c2", [f"{i},{','.join(map(repr, row))}" for i, row in enumerate(X.tolist())]
    (folder / "people.csv").write_text("\n".join([heads, *lines]))
    np.save(folder / "people.npy", X)
    array = zarr.create_array(folder / "people.zarr", shape=X.shape, chunks=(90, 2), dtype=X.dtype)
    array[:] = X
    old = zarr.create_array(folder / "old.zarr", shape=X.shape, chunks=(90, 2), dtype=X.dtype, zarr_format=2)
    old[:] = X
    zarr.create_group(folder / "group.zarr")
    return folder


class Handler(SimpleHTTPRequestHandler):
    """Serves files, remembers what was asked for, and breaks off in the middle of those that begin with "cut"."""

    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        if self.path.startswith("/cut"):
            self.send_response(200)
            self.send_header("Content-Length", "1000000")
            self.end_headers()
            self.wfile.write(b"id,c0,c1,c2\n1,2,3,4\n")
            self.close_connection = True
        elif self.path.startswith("/silent"):
            time.sleep(2.0)
        elif self.path.startswith("/forbidden"):
            self.send_error(403)
        elif self.path.endswith("/"):
            self.send_error(404)  # no list of what is in a folder
        else:
            with suppress(BrokenPipeError):
                super().do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def host(files: Path):
    """A server of files on this machine: its address, and what it is asked for."""
    asked: list[tuple[str, str | None]] = []
    kind = type("Remembering", (Handler,), {"asked": asked})
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(kind, directory=str(files))) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


@pytest.fixture
def memory(files: Path):
    """A folder of fsspec's own memory with all files."""
    system = fsspec.filesystem("memory")
    system.put(str(files), "/people", recursive=True)
    yield "memory://people"
    system.rm("/people", recursive=True)


@pytest.fixture(autouse=True)
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where copies are made; and no proxy stands before this machine."""
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("PRIVSPAN_TMPDIR", str(tmp_path))
    return tmp_path


def check(url: str, file: Path, copies: Path) -> None:
    """The same table as from the file; the copy is the owner's alone, and goes with the last reference."""
    rows, wanted = open_rows(url), open_rows(file)
    assert (rows.shape, rows.dtype, rows.names, rows.left_out) == (
        wanted.shape, wanted.dtype, wanted.names, wanted.left_out,
    )  # fmt: skip
    np.testing.assert_array_equal(rows[:], wanted[:])
    [folder] = copies.iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700
    assert url not in repr(rows)
    del rows
    gc.collect()
    assert list(copies.iterdir()) == []
    with open_rows(url):
        assert list(copies.iterdir()) != []
    assert list(copies.iterdir()) == []


@pytest.mark.parametrize("name", [*FILES, "old.zarr"])
def test_the_same_rows_as_from_the_file(name: str, files: Path, memory: str, host, copies: Path) -> None:
    check(f"{memory}/{name}", files / name, copies)
    check(f"http://{host[0]}/{name}", files / name, copies)
    assert open_rows(f"file://{files}/{name}").shape == X.shape
    assert list(copies.iterdir()) == []


def test_a_file_that_changes_meanwhile_is_read_as_it_was(memory: str, files: Path) -> None:
    system = fsspec.filesystem("memory")
    for name in ("people.parquet", "people.zarr"):
        rows = open_rows(f"{memory}/{name}")
        before = rows[:10].copy()
        system.rm(f"/people/{name}", recursive=True)
        np.testing.assert_array_equal(rows[:10], before)
        assert rows[:].shape == X.shape


def test_ids_are_read_from_the_copy(memory: str, files: Path) -> None:
    for name in ("people.csv", "people.parquet", "people.feather"):
        rows = open_rows(f"{memory}/{name}", person="id")
        gc.collect()
        assert len({*rows.ids().tolist()}) == 500


def test_a_file_is_asked_for_once(host, files: Path) -> None:
    address, asked = host
    open_rows(f"http://zoe:pw@{address}/people.parquet?token=secret")[:]
    assert asked == [("/people.parquet?token=secret", "Basic em9lOnB3")]


def test_a_schema_is_drafted_from_a_copy(memory: str, files: Path, copies: Path) -> None:
    for name in ("people.parquet", "people.csv"):
        assert draft_schema(f"{memory}/{name}") == draft_schema(files / name)
    assert list(copies.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("cut.csv", "cannot be copied from http:// (ClientPayloadError); nothing of it was kept."),
        ("forbidden.csv", "cannot be copied from http:// (ClientResponseError); nothing of it was kept."),
        ("no.parquet", "does not exist, or may not be seen."),
        ("no.zarr", "does not exist, or may not be seen."),
        ("group.zarr", "is a group of Zarr arrays, and its folder cannot be listed; name one array, or copy it."),
        ("people.xlsx", "must end in one of"),
        ("..%2Fno.csv", "does not exist, or may not be seen."),
    ],
)
def test_what_fails_is_told_in_one_sentence_and_leaves_nothing(name: str, words: str, host, copies: Path) -> None:
    with pytest.raises(UnreadableFileError) as refusal:
        open_rows(f"http://zoe:pa55@{host[0]}/{name}?token=secret".replace("zarr?token=secret", "zarr"))
    assert words in str(refusal.value)
    assert not any(word in str(refusal.value) for word in ("zoe", "pa55", "secret", host[0]))
    assert (refusal.value.__cause__, refusal.value.__context__) == (None, None)
    assert list(copies.iterdir()) == []


@pytest.mark.parametrize("call", [open_rows, draft_schema])
def test_a_url_that_cannot_be_read_is_not_quoted_behind_the_refusal_either(call) -> None:
    with pytest.raises(ParameterError, match="cannot be read") as refusal:
        call("https://ann:secret\u2100@host/people.csv")  # a sign that urllib refuses, and quotes the password with
    assert "secret" not in str(refusal.value)
    assert (refusal.value.__cause__, refusal.value.__context__) == (None, None)


def test_no_url_is_logged_and_logs_are_as_before(host, memory: str, files: Path, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    open_rows(f"http://zoe:pa55@{host[0]}/people.csv?token=secret")
    for url in ("http://zoe:pa55@127.0.0.1:1/people.csv?token=secret", "memory://zoe/people.csv?token=secret"):
        with pytest.raises(UnreadableFileError):
            open_rows(url)
    assert not any(word in caplog.text for word in ("zoe", "pa55", "secret"))
    fsspec.filesystem("memory").info("/people/people.csv")
    assert "/people/people.csv" in caplog.text


def test_a_server_that_is_not_there(copies: Path) -> None:
    with pytest.raises(
        UnreadableFileError, match=r"'people.csv' cannot be copied from http:// \(ClientConnectorError\)"
    ):
        open_rows("http://127.0.0.1:1/people.csv")
    assert list(copies.iterdir()) == []


FULL = """
import resource, sys, fsspec
from privspan.rows import UnreadableFileError, open_rows
fsspec.filesystem("memory").put(sys.argv[1], "/people.csv")
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
try:
    open_rows("memory://people.csv")
except UnreadableFileError as refusal:
    print(refusal)
"""


def test_a_server_that_says_nothing(host, copies: Path) -> None:
    with pytest.raises(UnreadableFileError, match=r"'silent.csv' cannot be copied from http:// \(.*Timeout.*\)"):
        open_rows(f"http://{host[0]}/silent.csv", limits=Limits(silent_seconds=1))
    assert list(copies.iterdir()) == []


def test_a_disk_that_is_full(files: Path, copies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = subprocess.run(
        [sys.executable, "-c", FULL, files / "people.csv"], capture_output=True, text=True, check=True
    )
    assert "needs a temporary copy" in run.stdout
    assert "there is no room for it" in run.stdout
    assert list(copies.iterdir()) == []
    monkeypatch.setenv("PRIVSPAN_TMPDIR", str(copies / "none"))
    with pytest.raises(ParameterError, match="must name a folder"):
        open_rows("memory://people.csv")


@pytest.mark.parametrize(
    ("scheme", "package"), [("s3", "s3fs"), ("gs", "gcsfs"), ("https", "aiohttp"), ("memory", "fsspec")]
)
def test_a_package_that_is_missing_is_named_with_its_extra(
    scheme: str, package: str, monkeypatch, copies: Path
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(
        MissingPackageError, match=rf"{scheme}:// tables needs {package}: pip install 'privspan\[cloud\]'"
    ):
        open_rows(f"{scheme}://host/people.csv")
    assert list(copies.iterdir()) == []


def test_a_file_with_an_odd_name(memory: str, files: Path, tmp_path: Path) -> None:
    shutil.copy(files / "people.csv", tmp_path / "od d%20é.csv")
    fsspec.filesystem("memory").put(str(tmp_path / "od d%20é.csv"), "/people/od d%20é.csv")
    (tmp_path / "od d%20é.csv").unlink()
    np.testing.assert_array_equal(open_rows(f"{memory}/od d%20é.csv")[:], open_rows(files / "people.csv")[:])
