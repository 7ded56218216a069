"""What all databases have in common: columns that are read as text, and refusals that quote nothing."""

import signal
import sqlite3
import threading
from contextlib import closing
from functools import partial
from pathlib import Path

import duckdb
import pytest

from privspan._lib.location import location
from privspan.rows import Column, Schema, open_rows
from privspan.rows.files.queries import heeding, refused, unreachable, worded

PLACE = location("postgresql://zoe:secret@host/clinic")


def test_ids_and_categories_are_read_as_text() -> None:
    ward = {"ward": Column("category", categories=["a"]), "age": Column("number")}
    assert worded(Schema(ward, person="patient")) == {"ward", "patient"}
    assert worded(Schema()) == set()


@pytest.mark.parametrize("why", [None, "a table that it names is not there"])
def test_a_refusal_quotes_nothing_of_the_driver(why: str | None) -> None:
    told = str(refused(PLACE, why, ValueError("secret cell")))
    assert told.startswith("The database 'clinic' refused the query")
    assert (why or "ValueError") in told
    assert not any(word in told for word in ("secret", "cell", "zoe", "host"))
    assert str(unreachable(PLACE, "it sleeps")) == "The database 'clinic' cannot be opened: it sleeps."


LONG = {
    "sqlite": "with recursive r(i) as (select 1 union all select i + 1 from r) select sum(i) as x from r",
    "duckdb": "select sum(a.range * b.range) as x from range(10000000) a join range(10000000) b on a.range < b.range",
}


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="signals of POSIX")
@pytest.mark.parametrize("scheme", LONG)
def test_an_interruption_ends_a_query_at_once(scheme: str, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("PRIVSPAN_TMPDIR", str(tmp_path / "copies"))
    (tmp_path / "copies").mkdir()
    file = tmp_path / "people.db"
    with closing(sqlite3.connect(file) if scheme == "sqlite" else duckdb.connect(file)) as connection:
        connection.execute("create table people (age real)")
        connection.commit()
    before = set(threading.enumerate())
    interrupt = partial(signal.pthread_kill, threading.main_thread().ident, signal.SIGINT)
    threading.Timer(0.5, interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        open_rows(f"{scheme}:///{file}", query=LONG[scheme])
    assert list((tmp_path / "copies").iterdir()) == []
    after = set(threading.enumerate()) - before
    assert [thread for thread in after if "ThreadPool" in thread.name] == []


def test_what_a_call_raises_comes_through() -> None:
    def fail() -> None:
        raise ValueError("as it is")

    with pytest.raises(ValueError, match="as it is"):
        heeding(fail, pytest.fail)
    assert heeding(lambda: 7, pytest.fail) == 7
