"""The demonstration runs, leaves what it names, and stops politely."""

import sys
import webbrowser
from pathlib import Path

import numpy as np
import pytest

from privspan import demo
from privspan.cli import main


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"PEOPLE": 300, "COLUMNS": 60, "HOUSEHOLDS": 600, "PATIENTS": 3_000}.items():
        monkeypatch.setattr(demo, name, value)


@pytest.mark.usefixtures("small")
@pytest.mark.filterwarnings("ignore::privspan.UselessPlanWarning")
def test_it_finds_the_relations_and_names_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--output", str(tmp_path / "new")]) == 0
    told = capsys.readouterr().out
    assert "  * dep_time = 100 hour + minute" in told
    files = sorted((tmp_path / "new").iterdir())
    assert [file.name for file in files] == sorted(demo.FILES)
    assert all(str(file) in told for file in files)
    assert "trains" in (tmp_path / "new" / "households.html").read_text("utf-8")
    assert "ward=surgery" in (tmp_path / "new" / "clinic.html").read_text("utf-8")


def test_an_interrupt_is_answered_with_130(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "flights_release", interrupted)
    assert main(["demo", "--output", str(tmp_path)]) == 130
    assert "stopped" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("small")
def test_it_opens_the_files_only_when_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(demo, "tell", lambda folder: [folder / "a.html"])
    main(["demo", "--output", str(tmp_path)])
    assert opened == []
    main(["demo", "--output", str(tmp_path), "--open"])
    assert opened == [(tmp_path / "a.html").as_uri()]


def test_a_missing_package_costs_one_part_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for part in ("clinic_visits", "many_columns", "everyday_pca"):
        monkeypatch.setattr(demo, part, lambda voice, folder: folder)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    files = demo.tell(tmp_path)
    assert files == [tmp_path / "flights.html", tmp_path, tmp_path, tmp_path]
    assert "Left out: it needs a package that is not installed" in capsys.readouterr().out


def test_rich_tells_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("rich")
    for voice in (demo.Voice(), demo.RichVoice()):
        voice.title("name", "motto")
        voice.heading("heading")
        voice.line("a [line]")
        voice.found("found")
        voice.table(("head",), [("cell",)])
        with voice.waiting("waiting"):
            pass
        told = capsys.readouterr().out
        assert all(word in told for word in ("name", "motto", "heading", "a [line]", "found", "head", "cell"))


def test_households_lie_near_their_habits() -> None:
    X, truth = demo.households()
    centred = X - X.mean(axis=0)
    _, _, directions = np.linalg.svd(centred.T @ centred)
    assert np.linalg.norm(directions[:3] - directions[:3] @ truth.projector(), 2) < 0.05
