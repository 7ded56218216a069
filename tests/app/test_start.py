"""The first page, and the made-up table."""

from pathlib import Path

from app_pages import Visitor

from privspan.app.pages.start import is_example


def test_the_clinic_is_written_once_and_marked_on_every_page(visitor: Visitor, tmp_path: Path) -> None:
    visitor.get("/")
    assert "A made-up clinic." not in visitor.text
    visitor.send("/example")
    table = tmp_path / "privspan-app" / "example" / "clinic.csv"
    assert is_example(visitor.desk, table)
    written = table.stat().st_mtime_ns
    for path in ("/columns", "/table"):
        assert "A made-up clinic." in visitor.get(path).text
    visitor.get("/columns")
    form = visitor.form("/columns")
    assert (form["use-0"], form["use-6"], form["words-6"]) == ("person", "category", "f, m")
    visitor.get("/")
    visitor.send("/example")
    assert table.stat().st_mtime_ns == written
    visitor.to_columns("privspan-app/example/clinic.csv")  # chosen by its path, it is the same table
    assert "A made-up clinic." in visitor.text
    (tmp_path / "a.csv").write_text("x,y\n1,2\n")
    visitor.to_columns("a.csv")
    assert "A made-up clinic." not in visitor.text


def test_half_of_the_example_is_never_taken_for_it(visitor: Visitor) -> None:
    folder = visitor.desk.output / "example"
    (folder / "clinic.part").mkdir(parents=True)  # nothing can be written there
    visitor.get("/")
    assert visitor.send("/example").status_code == 422
    assert not (folder / "clinic.csv").exists()
    (folder / "clinic.part").rmdir()
    visitor.get("/")
    assert visitor.send("/example").status_code == 200
    assert sorted(path.name for path in folder.iterdir()) == ["clinic.csv", "clinic.toml"]
