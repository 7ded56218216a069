"""The ledger as a page."""

from app_pages import Visitor

from privspan.ledger import Ledger


def test_an_empty_ledger_a_used_one_and_a_damaged_one(visitor: Visitor) -> None:
    assert "Nothing has been spent yet." in visitor.get("/ledger").text
    desk = visitor.desk
    desk.output.mkdir()
    table = desk.folder.root / "a.csv"
    for name in (str(table), "another <b>"):
        with Ledger(desk.ledger_path).spending(name, "0.5", "1e-6", what="a test", limit_epsilon="2"):
            pass
    visitor.get("/ledger")
    assert "<h2>a.csv</h2>" in visitor.text
    assert "made-up" not in visitor.text
    assert "another &lt;b&gt;" in visitor.text
    assert "0.5 of 2 (1.5 left)" in visitor.text
    assert str(desk.folder.root) not in visitor.text
    with Ledger(desk.ledger_path).spending(str(desk.output / "example" / "clinic.csv"), "0.5", "1e-6", what="a test"):
        pass
    assert visitor.get("/ledger").text.count("made-up table") == 1
    desk.ledger_path.write_text("{")
    assert visitor.get("/ledger").status_code == 422
    assert "That cannot be read" in visitor.text
