"""The last button spends once, whatever is done to it."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from app_pages import Visitor


def at_work(visitor: Visitor) -> None:
    """Wait until the private step has begun."""
    mark = visitor.desk.folder.root / "at-work"
    while not mark.exists():
        assert visitor.desk.runs.at_work() is not None


def test_double_clicks_reloads_and_two_tabs_spend_once_and_a_stop_says_what(slow: Visitor) -> None:
    fields = slow.form("/confirm") | {"csrf": slow.desk.session.csrf}
    with ThreadPoolExecutor(4) as pool:
        clicks = [pool.submit(slow.client.post, "/confirm", data=fields) for _ in range(4)]
    assert {click.result().url.path for click in clicks} == {"/releases/release-1"}
    at_work(slow)
    assert slow.post("/confirm", fields).url.path == "/releases/release-1"  # a reload
    assert "is being made" in slow.text
    other = Visitor(slow.desk)  # another tab, another browser even
    other.get("/confirm")
    assert "One at a time" in other.text
    assert 'name="ticket"' not in other.text
    other.post("/confirm", {"ticket": slow.desk.session.ticket, "size": fields["size"]})
    assert other.wrong == ["Release-1 is being made. One release at a time."]
    assert [run.name for run in slow.desk.runs.all()] == ["release-1"]
    slow.get("/releases/release-1")
    slow.send("/releases/release-1/stop")
    assert slow.wait("release-1") == "interrupted"
    assert "its budget counts as spent, and the ledger says so" in slow.text
    (account,) = slow.desk.ledger.accounts().values()
    assert [entry.state for entry in account.entries] == ["interrupted"]


def test_a_page_that_is_out_of_date_spends_nothing(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 500)
    visitor.to_confirm("a.csv")
    old = visitor.form("/confirm")
    other = Visitor(visitor.desk)
    other.get("/budget")
    other.send("/budget", epsilon="3")
    visitor.post("/confirm", old)
    assert visitor.status == 422
    assert "The answers have changed" in visitor.wrong[0]
    assert "ε = 3 and" in visitor.text
    assert visitor.desk.runs.all() == []


def test_a_file_that_has_changed_is_confirmed_anew(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 500)
    visitor.to_confirm("a.csv")
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 700)
    visitor.send("/confirm")
    assert visitor.wrong == ["The file has changed since this page was shown. Look again at what will be done."]
    assert "from 700 rows" in visitor.text
    assert visitor.desk.runs.all() == []


def test_a_damaged_ledger_or_a_table_that_has_gone_is_told_of_on_every_page(visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 500)
    visitor.to_confirm("a.csv")
    visitor.desk.output.mkdir(exist_ok=True)
    visitor.desk.ledger_path.write_text("{")
    for path in ("/budget", "/confirm", "/ledger"):
        assert visitor.get(path).status_code == 422
        assert "it is not JSON" in visitor.text
    visitor.desk.ledger_path.unlink()
    (tmp_path / "a.csv").unlink()
    for path in ("/columns", "/budget", "/confirm", "/forecast?epsilon=1&delta=1e-6&k=1"):
        assert visitor.get(path).status_code == 422
        assert "There is no such file" in visitor.text
