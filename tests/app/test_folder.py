"""No file outside of the folder can be reached, however its path is written."""

import os
from pathlib import Path

import pytest
from app_pages import Visitor, desk_in

from privspan.app.folder import TABLES, Folder, OutsideError

SECRET = "x,secret_column\n1,2\n"


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder with a table in it, one beside it, and links of every kind."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.csv").write_text(SECRET)
    root = tmp_path / "inside"
    (root / "deep" / "deeper").mkdir(parents=True)
    (root / "a.csv").write_text("x,y\n1,2\n")
    (root / "deep" / "b.CSV").write_text("x,y\n1,2\n")
    (root / ".hidden.csv").write_text("x\n1\n")
    (root / "notes.txt").write_text("x")
    (root / "link.csv").symlink_to(tmp_path / "outside" / "secret.csv")
    (root / "way.csv").symlink_to(root / "a.csv")
    (root / "loop.csv").symlink_to(root / "loop.csv")
    (root / "gone.csv").symlink_to(root / "nowhere.csv")
    (root / "out").symlink_to(tmp_path / "outside")
    return Folder.at(root)


WAYS = [
    "../outside/secret.csv",
    "deep/../../outside/secret.csv",
    "link.csv",
    "out/secret.csv",
    "loop.csv",
    "gone.csv",
    "nothing.csv",
    "deep",
    "",
    ".",
    "..",
    "notes.txt",
    "a.csv\0",
    "a" * 5_000 + ".csv",
    "~/a.csv",
    "/etc/passwd",
]


@pytest.mark.parametrize("typed", WAYS)
def test_what_leads_out_is_refused(typed: str, folder: Folder) -> None:
    with pytest.raises(OutsideError):
        folder.file(typed, TABLES)


def test_an_absolute_path_is_taken_only_below_the_folder(folder: Folder) -> None:
    with pytest.raises(OutsideError, match="leads out"):
        folder.file(str(folder.root.parent / "outside" / "secret.csv"), TABLES)
    assert folder.file(str(folder.root / "a.csv"), TABLES) == folder.root / "a.csv"


def test_what_is_outside_is_refused_in_the_same_words_whether_it_exists_or_not(folder: Folder) -> None:
    said = []
    for typed in ("../outside/secret.csv", "../outside/none.csv", "../outside", "/etc/passwd", "/etc/none"):
        with pytest.raises(OutsideError) as refused:
            folder.file(typed, TABLES)
        said.append(str(refused.value))
    assert len(set(said)) == 1


def test_files_below_are_found_by_their_real_path(folder: Folder) -> None:
    assert folder.file("way.csv", TABLES) == folder.root / "a.csv"
    assert folder.file("deep/../a.csv", TABLES) == folder.root / "a.csv"
    assert folder.listed(TABLES) == ["a.csv", "way.csv", "deep/b.CSV"]


def test_a_folder_that_is_a_link_is_followed_once_and_for_all(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "here").symlink_to(folder.root)
    assert Folder.at(tmp_path / "here") == folder


@pytest.mark.parametrize("typed", WAYS)
def test_no_page_leads_out(typed: str, folder: Folder) -> None:
    visitor = Visitor(desk_in(folder.root))
    visitor.get("/table")
    assert "link.csv" not in visitor.text
    for field in ("typed", "file"):
        visitor.post("/table", {field: typed, "decimal": ".", "encoding": "utf-8"})
        assert (visitor.status, visitor.path) == (422, "/table")
        assert "secret_column" not in visitor.text


def test_no_schema_comes_from_outside(folder: Folder, tmp_path: Path) -> None:
    (tmp_path / "outside" / "schema.toml").write_text('person = "secret_person"')
    visitor = Visitor(desk_in(folder.root))
    visitor.to_columns("a.csv")
    visitor.post("/columns/schema", {"schema": "../outside/schema.toml"})
    assert "leads out" in visitor.wrong[0]
    assert "secret_person" not in visitor.text


@pytest.mark.parametrize("path", ["..%2f..%2fetc", "example", "release-0", "release-1%2f..%2frelease-1"])
def test_no_release_is_found_by_a_path(path: str, folder: Folder) -> None:
    visitor = Visitor(desk_in(folder.root))
    visitor.get("/")
    visitor.send("/example")
    for rest in ("", "/progress", "/report", "/files/clinic.csv", "/picture"):
        assert visitor.get(f"/releases/{path}{rest}").status_code == 404


def test_a_link_that_is_laid_after_the_choice_is_seen(folder: Folder) -> None:
    visitor = Visitor(desk_in(folder.root))
    visitor.to_columns("a.csv")
    (folder.root / "a.csv").unlink()
    os.symlink(folder.root.parent / "outside" / "secret.csv", folder.root / "a.csv")
    visitor.get("/columns")
    assert visitor.status == 422
    assert "secret_column" not in visitor.text
