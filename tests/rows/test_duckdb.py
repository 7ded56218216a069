"""DuckDB: its types, its refusals, and that it sees no variables of Python."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

from privspan.rows import UnreadableFileError, open_rows
from privspan.rows.limits import Limits


@pytest.fixture
def url(tmp_path: Path) -> str:
    with duckdb.connect(tmp_path / "people.duckdb") as file:
        file.execute("create type mood as enum ('good', 'bad')")
        file.execute("""
            create table people as select
                i::double as float, i::decimal(20, 3) / 8 as decimal, i::hugeint as huge, i::utinyint as tiny,
                i % 2 = 0 as flag, uuid() as uuid, 'x' as word, date '2020-01-01' as day, 'good'::mood as mood,
                [i::double, 1] as list, [i, 1]::double[2] as pair, {'a': i} as struct, sum(i) over () as total
            from range(5) as numbers(i)
        """)
    return f"duckdb:///{tmp_path}/people.duckdb"


def test_declared_types_decide(url: str) -> None:
    rows = open_rows(url, table="people")
    assert rows.names == ("float", "decimal", "huge", "tiny", "flag", "total")
    reasons = {column.name: column.reason for column in rows.left_out}
    assert reasons.keys() == {"uuid", "word", "day", "mood", "list", "pair", "struct"}
    assert reasons["mood"] == "categories"
    assert reasons["day"] == "dates or times"
    np.testing.assert_array_equal(rows[:], [[i, i / 8, i, i, i % 2 == 0, 10] for i in range(5)])
    pairs = open_rows(url, table="people", columns=["pair"])
    np.testing.assert_array_equal(pairs[:], [[i, 1] for i in range(5)])


def test_a_variable_of_python_is_no_table(url: str) -> None:
    for name in ("statement", "connection", "limits", "np"):
        with pytest.raises(UnreadableFileError, match="is not there"):
            open_rows(url, query=f"select * from {name}")


def test_an_expression_that_fails_on_a_record_is_told_without_its_cell(url: str) -> None:
    with pytest.raises(UnreadableFileError, match="fails on some record; write it so that it gives null") as refusal:
        open_rows(url, query="select cast(word || 'secret' as integer) as number from people")
    assert "secret" not in str(refusal.value)
    assert np.isnan(open_rows(url, query="select try_cast(word as integer) as number from people")[:]).all()


@pytest.mark.parametrize(
    ("expression", "words"),
    [
        ("case when i = 99999 then error('secret') else i end", "fails on some record"),
        ("case when i = 99999 then cast('secret' as integer) else i end", "fails on some record"),
    ],
)
def test_a_failure_in_the_middle_is_told_as_one_at_the_beginning(url: str, expression: str, words: str) -> None:
    query = f"select {expression} as x, i as y from range(100000) as numbers(i)"
    with pytest.raises(UnreadableFileError, match=words) as refusal:
        open_rows(url, query=query)
    assert "secret" not in str(refusal.value)
    assert open_rows(url, query=query, columns=["y"]).shape == (100_000, 1)  # what is not used is not computed


def test_a_query_that_needs_more_memory_than_it_gets_is_told_so(url: str) -> None:
    with pytest.raises(UnreadableFileError, match="it needs more memory, or room to sort, than it gets here"):
        open_rows(url, query="select len(list(range)) as x from range(5000000)", limits=Limits(database_bytes=2**25))


def test_a_file_that_another_program_writes_to_is_refused(url: str) -> None:
    with (
        duckdb.connect(url.removeprefix("duckdb:///")),
        pytest.raises(UnreadableFileError, match="cannot be opened: another program holds it"),
    ):
        open_rows(url, table="people")
    open_rows(url, table="people")
