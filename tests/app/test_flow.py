"""The whole way in process: from the first page to a release and what comes next, and back."""

import json
from pathlib import Path

from app_pages import Visitor

from privspan.ledger import Ledger
from privspan.ledger.release_file import load_release


def test_the_clinic_from_the_first_page_to_a_map_of_its_scores(visitor: Visitor, tmp_path: Path) -> None:
    visitor.get("/")
    visitor.send("/example")
    assert visitor.path == "/columns"
    assert "A made-up clinic" in visitor.text
    visitor.send("/columns")
    visitor.send("/question", by="Somebody")
    assert "6,000 persons" in visitor.text
    visitor.send("/budget", epsilon="2", delta="1e-6")
    assert "<b>ε = 2 and δ = 0.000001</b>" in visitor.text
    visitor.send("/confirm")
    assert visitor.path == "/releases/release-1"
    assert visitor.wait("release-1") == "finished"
    assert "Open the report" in visitor.text
    saved = load_release(tmp_path / "privspan-app" / "release-1" / "release.npz")
    assert saved.release.cost.epsilon == 2
    assert saved.record.by == "Somebody"
    visitor.get("/releases/release-1/map")
    visitor.send("/releases/release-1/map", epsilon="0.5")
    assert visitor.wait("release-2") == "finished"
    made = json.loads((tmp_path / "privspan-app" / "release-2" / "map.json").read_text())
    assert made["n"] == 6_000
    account = Ledger(tmp_path / "privspan-app" / "ledger.json").account(
        str(tmp_path / "privspan-app" / "example" / "clinic.csv")
    )
    assert [(float(one.epsilon), one.unit, one.state) for one in account.entries] == [
        (2.0, "patient", "finished"),
        (0.5, "patient", "finished"),
    ]
    assert "A made-up clinic" in visitor.text
    visitor.get("/releases/release-2/picture")
    assert visitor.text.lstrip().startswith("<?xml")


def test_going_back_keeps_what_was_answered(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 50)
    visitor.to_confirm("a.csv", epsilon="0.7")
    visitor.get("/question")
    visitor.send("/question", k="1", scale="no")
    assert visitor.form("/budget")["epsilon"] == "0.7"
    visitor.get("/columns")
    visitor.send("/columns", use_AT_1="skip")
    visitor.get("/question")
    assert visitor.form("/question")["k"] == "1"
    assert visitor.form("/question")["scale"] == "no"
    visitor.get("/confirm")
    assert "1: x" in visitor.text
    visitor.get("/table")
    visitor.send("/table", typed="a.csv")
    assert visitor.form("/columns")["use-1"] == "skip"


def test_a_table_that_is_taken_away_is_told_of(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 500)
    visitor.to_confirm("a.csv")
    ticket = visitor.form("/confirm")
    (tmp_path / "a.csv").unlink()
    for path in ("/columns", "/budget", "/confirm"):
        assert visitor.get(path).status_code == 422
        assert "There is no such file below the folder." in visitor.text
    assert visitor.post("/confirm", ticket).status_code == 422
    assert visitor.desk.runs.all() == []
