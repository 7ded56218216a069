"""The demonstration runs, leaves what it names, and stops politely."""

import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from steps import interrupt, steps_but

from privspan import demo
from privspan.cli import main

SMALL = demo.Sizes(patients=3_000, people=300, columns=60, households=600)


@pytest.mark.filterwarnings("ignore::privspan.UselessPlanWarning")
def test_it_finds_the_relations_and_names_its_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = steps_but(tell=partial(demo.tell, sizes=SMALL))
    assert main(["demo", "--output", str(tmp_path / "new")], steps) == 0
    told = capsys.readouterr().out
    assert "  * dep_time = 100 hour + minute" in told
    files = sorted((tmp_path / "new").iterdir())
    assert [file.name for file in files] == sorted(demo.FILES)
    assert all(str(file) in told for file in files)
    assert "trains" in (tmp_path / "new" / "households.html").read_text("utf-8")
    assert "ward=surgery" in (tmp_path / "new" / "clinic.html").read_text("utf-8")


def test_an_interrupt_is_answered_with_130(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    steps = steps_but(tell=partial(demo.tell, parts=[interrupt]))
    assert main(["demo", "--output", str(tmp_path)], steps) == 130
    assert "stopped" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_it_opens_the_files_only_when_asked(tmp_path: Path) -> None:
    opened: list[str] = []
    steps = steps_but(show=opened.append, tell=lambda folder: [folder / "a.html"])
    main(["demo", "--output", str(tmp_path)], steps)
    assert opened == []
    main(["demo", "--output", str(tmp_path), "--open"], steps)
    assert opened == [(tmp_path / "a.html").as_uri()]


def test_a_missing_package_costs_one_part_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    files = demo.tell(tmp_path, parts=[demo.picture, demo.flights])
    assert files == [tmp_path / "flights.html"]
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
    X, truth = demo.households(demo.Sizes().households)
    centred = X - X.mean(axis=0)
    _, _, directions = np.linalg.svd(centred.T @ centred)
    assert np.linalg.norm(directions[:3] - directions[:3] @ truth.projector(), 2) < 0.05
