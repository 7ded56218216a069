"""What pages know of a table is public: nothing that they show before the last button depends on a row of it."""

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from app_pages import Visitor, desk_in
from pyarrow import feather, parquet

from privspan.app.answers import Answers, ColumnAnswer, TableAnswer
from privspan.app.facts import Facts, declared_type, first_answer, looks_like_text, remark, uses
from privspan.app.session import Session
from privspan.rows import Schema

HEAD = "person_id,age,income,full name,smoker\n"
ROW = '4,41,2000,"Ann ""A"" Marker",1\n'
NEIGHBOURS = {
    "another person": '5,77,1,"Bob",0\n',
    "gaps": ",,,,\n",
    "text where numbers are": "x,y,z,w,v\n",
    "a huge number": "4,1e308,-1e308,,1\n",
    "no finite number": "4,inf,nan,,1\n",
    "too few cells": "1,2\n",
    "too many cells": "1,2,3,4,5,6,7,8,9\n",
    "an open quotation mark": '4,41,"20,Ann,1\n',
    "a blank line": "\n",
    "bytes that are no text": "\udcff\udcfe,1,2,3,4\n",
    "a line like the names": HEAD,
    "markup": '4,<script>alert(1)</script>,{{7*7}},"</td>",1\n',
}


def walk(visitor: Visitor, file: str, **columns: str) -> list[str]:
    """Go by every page before the last button, with refusals and forecasts on the way; return all that was seen."""
    visitor.get("/")
    visitor.to_columns(file)
    visitor.send("/columns", use_AT_1="category")  # refused: no words
    visitor.send("/columns", **{"use_AT_1": "number"} | columns)
    visitor.send("/question", k="9")
    visitor.send("/budget", epsilon="0")
    visitor.send("/budget", epsilon="1", k="90")
    visitor.get("/forecast?epsilon=0.3&delta=1e-6&k=2")
    visitor.get("/budget?epsilon=0.3&delta=1e-6&k=2")
    visitor.get("/budget")
    visitor.send("/budget", epsilon="0.5", k="2")
    assert visitor.path == "/confirm"
    visitor.get("/columns")
    visitor.get("/columns/schema.toml")
    visitor.get("/ledger")
    visitor.get("/table")
    return visitor.seen


def numbered() -> Session:
    """A session whose secrets are the same in every run, so that pages can be compared."""
    numbers = itertools.count()
    return Session(lambda: f"secret-{next(numbers)}")


def pages(folder: Path, name: str, write, **columns: str) -> list[str]:
    folder.mkdir(parents=True)
    write(folder / name)
    visitor = Visitor(desk_in(folder, session=numbered()))
    seen = walk(visitor, name, **columns)
    return [one.replace(str(folder), "") for one in seen]


@pytest.fixture(scope="module")
def first(tmp_path_factory) -> list[str]:
    return pages(tmp_path_factory.mktemp("first") / "here", "a.csv", csv(ROW))


def csv(row: str):
    return lambda path: path.write_text(HEAD + ROW * 30 + row + ROW * 9, errors="surrogateescape")


@pytest.mark.parametrize("row", NEIGHBOURS.values(), ids=NEIGHBOURS)
def test_pages_before_the_last_button_are_the_same_byte_for_byte(row: str, first: list[str], tmp_path: Path) -> None:
    """Whatever stands in one row instead: another value, a gap, text, a line that is no record."""
    assert len(first) > 15
    assert pages(tmp_path / "here", "a.csv", csv(row)) == first


PEOPLE = [["ann", 1.0, 2.0], ["ann", 2.0, 2.5], ["bob", 5.0, 1.0], *[[f"p{at}", 1.0 * at, 3.0] for at in range(40)]]


@pytest.mark.parametrize("rows", [1, 3, 60])
def test_how_many_rows_a_person_has_is_not_shown(rows: int, tmp_path: Path) -> None:
    """Replacing a person, with all rows, however many: the number of persons is public, that of rows is not."""

    def written(of_bob: int):
        lines = [",".join(map(str, row)) for row in [*PEOPLE, *[["bob", 9.0, 9.0]] * of_bob]]
        return lambda path: path.write_text("patient,x,y\n" + "\n".join(lines) + "\n")

    one, other = (pages(tmp_path / str(at) / "here", "a.csv", written(at), use_AT_0="person") for at in (0, rows))
    assert one == other
    assert any("42 persons" in page for page in one)


@pytest.mark.parametrize(
    ("name", "write"), [("a.parquet", parquet.write_table), ("a.feather", feather.write_feather)]
)
def test_typed_files_are_shown_by_their_types_alone(name: str, write, tmp_path: Path) -> None:
    """Footers hold statistics of rows; none is shown."""

    def table(cell: float | None, word: str | None) -> pa.Table:
        columns = {"id": range(50), "x": [*np.arange(49.0), cell], "y": [1.0] * 50, "ward": ["b"] * 49 + [word]}
        made = pa.table(columns)
        return made.set_column(3, "ward", made["ward"].dictionary_encode())

    one = pages(tmp_path / "one" / "here", name, lambda path: write(table(3.0, "b"), path))
    for at, given in enumerate([(None, "b"), (1e300, "marker"), (-5.0, None)]):
        made = pages(tmp_path / str(at) / "here", name, lambda path, given=given: write(table(*given), path))
        assert made == one
    assert any("holds categories" in page for page in one)


def test_no_value_of_the_table_is_on_any_page_nor_in_a_log(tmp_path: Path, capfd) -> None:
    """Cells that stand for themselves: none of them is in a page, a head, an address, a file name or a log."""
    numbers = [f"{at}.{90210 + at}" for at in range(60)]
    lines = [f"{4_000_000 + at},{number},zzword{at},zzname{at}" for at, number in enumerate(numbers)]
    (tmp_path / "a.csv").write_text(
        "person_id,<script>alert(1)</script>,y,name\n" + "\n".join([*lines, "a,b", '"zzopen,1,2,3']) + "\n"
    )
    visitor = Visitor(desk_in(tmp_path))
    walk(visitor, "a.csv", use_AT_2="number")
    visitor.get("/question")
    visitor.send("/question", k="1")
    visitor.get("/confirm")
    visitor.send("/confirm")
    visitor.wait("release-1")
    for path in ("", "/report", "/files/report.html", "/files/script.py", "/files/command.txt", "/files/sheet.json"):
        visitor.get(f"/releases/release-1{path}")
    visitor.get("/")
    said = capfd.readouterr()
    log = (visitor.desk.output / "release-1" / "log.txt").read_text()
    everything = "\n".join([*visitor.seen, said.out, said.err, log])
    assert "release-1" in everything
    for cell in (*numbers, "zzword", "zzname", "zzopen", *(str(4_000_000 + at) for at in range(60))):
        assert cell not in everything
    assert visitor.desk.runs.find("release-1").state == "finished"
    assert "&lt;script&gt;alert(1)" in everything
    assert "<script>alert" not in "\n".join(one for one in visitor.seen if "text/html" in one)


def test_a_column_with_markup_in_its_name_is_text(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(
        '<script>alert(1)</script>,"""><img src=x>",{{7*7}},a\u202eb\n' + "1,2,3,4\n" * 50
    )
    visitor = Visitor(desk_in(tmp_path))
    seen = walk(visitor, "a.csv", use_AT_1="number")
    together = "\n".join(one for one in seen if "schema.toml" not in one.splitlines()[0])
    assert "&lt;script&gt;alert(1)" in together
    assert "{{7*7}}" in together
    assert not any(bad in together for bad in ("<script>alert", "<img", "\u202e", ">49<"))


# ---- Names and types -----------------------------------------------------------------------------------------------


def test_columns_are_marked_by_name_and_type(tmp_path: Path) -> None:
    columns = {
        "user_id": pa.array([1, 2]),
        "age": pa.array([1, 2]),
        "e-mail": pa.array(["a", "b"]),
        "since": pa.array([1, 2], pa.date32()),
        "embedding": pa.array([[1.0, 2.0]] * 2, pa.list_(pa.float64(), 2)),
        "many": pa.array([[1.0], [2.0, 3.0]]),
    }
    parquet.write_table(pa.table(columns), tmp_path / "a.parquet")
    found = Facts().columns(tmp_path / "a.parquet", Schema())
    assert [remark(one) for one in found] == [
        "named like an identifier",
        None,
        "holds text",
        "holds dates or times",
        "holds list of numbers",
        "holds list of numbers",
    ]
    assert [one.use for one in first_answer(found)] == ["skip", "number", "skip", "skip", "skip", "skip"]
    assert [uses(one)[0] for one in found] == ["number", "number", "category", "skip", "list", "skip"]
    assert declared_type(found[1]) == "number"
    alone = Facts().columns(tmp_path / "a.parquet", Schema())[4:5]
    assert [(one.use, one.width) for one in first_answer(alone)] == [("list", 2)]


def test_words_of_names_that_hold_text():
    assert [looks_like_text(name) for name in ("name", "Last_Name", "notes", "namely", "rename")] == [1, 1, 1, 0, 0]


def test_a_file_is_counted_once_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x,y\n1,2\n")
    answers = Answers(TableAnswer("a.csv"), (ColumnAnswer("x", "number"), ColumnAnswer("y", "skip")))
    facts = Facts()
    outline = facts.outline(path, answers)
    assert facts.outline(path, answers) is outline
    assert (outline.size.n, outline.size.d, outline.names) == (1, 1, ("x",))
    with pytest.raises(RuntimeError, match="before anything was paid"):
        outline.source()[0:1]
    path.write_text("x,y\n1,2\n3,4\n")
    assert facts.outline(path, answers).size.n == 2
