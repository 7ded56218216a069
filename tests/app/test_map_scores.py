"""A map of scores: asked for, refused, and spent once."""

import sys

import numpy as np
import pytest
from app_pages import Visitor, desk_in
from test_answers import ANSWERS
from test_runs import begun, ended

import privspan as ps
from privspan.app.pages.one_release import why_no_map
from privspan.app.runs import BusyError, Run, Runs


@pytest.fixture
def mapped(visitor: Visitor) -> Run:
    """A release with two components of a small table."""
    root = visitor.desk.folder.root
    table = np.random.default_rng(0).normal(size=(3_000, 3)) * [3.0, 2.0, 1.0]
    np.savetxt(root / "a.csv", table, delimiter=",", header="x,y,z", comments="")
    run = begun(Runs(visitor.desk.output, root, (sys.executable, "-c", "")))
    ended(run)
    release = ps.private_pca(ps.rows.open_rows(root / "a.csv"), 2, epsilon=5.0, delta=1e-6)
    release.save(run.result)
    return run


@pytest.fixture
def made(visitor: Visitor) -> Visitor:
    """A visitor who has made a release of two components of a small table."""
    rng = np.random.default_rng(0)
    table = rng.normal(size=(3_000, 2)) @ rng.normal(size=(2, 4)) + 0.1 * rng.normal(size=(3_000, 4))
    np.savetxt(visitor.desk.folder.root / "a.csv", table, delimiter=",", header="a,b,c,d", comments="")
    visitor.to_confirm("a.csv", epsilon="5")
    visitor.send("/confirm")
    assert visitor.wait("release-1") == "finished"
    return visitor


def test_its_cost_is_asked_for_and_checked(visitor: Visitor, mapped: Run) -> None:
    assert why_no_map(mapped) is None
    visitor.get("/releases/release-1/map")
    action = "/releases/release-1/map"
    visitor.send(action, epsilon="x")
    assert "A number above 0" in visitor.wrong[0]
    visitor.send(action, epsilon="1", ticket="old")
    assert "Something has changed" in visitor.wrong[0]
    with visitor.desk.ledger.spending(str(visitor.desk.folder.root / "a.csv"), "1", "1e-6", person="id"):
        pass
    assert [run.name for run in visitor.desk.runs.all()] == ["release-1"]


def test_a_budget_that_cannot_be_is_refused_and_a_weak_one_told_of(made: Visitor) -> None:
    action = "/releases/release-1/map"
    made.get(action)
    made.send(action, epsilon="1e6")
    assert "ε must be between" in made.wrong[0]
    made.send(action, epsilon="1", delta="0.5")
    assert "This budget promises little" in made.wrong[0]
    assert [run.name for run in made.desk.runs.all()] == ["release-1"]
    assert made.form(action)["weak"] == "yes"
    made.send(action)
    state, log = made.wait("release-2"), made.desk.runs.find("release-2").log
    assert state == "finished", log
    assert any(line.startswith("Warning: This budget promises little") for line in log)
    assert not any("typer" in line for line in log)


def test_a_ticket_of_the_last_button_makes_no_map(made: Visitor) -> None:
    """Two tabs with the same ticket: the page whose ticket another one has spent starts nothing, and says so."""
    made.get("/confirm")
    ticket = made.form("/confirm")
    made.get("/releases/release-1/map")
    made.send("/releases/release-1/map", epsilon="5")
    assert made.path == "/releases/release-2"
    made.wait("release-2")
    made.post("/confirm", ticket)
    assert (made.path, made.wrong[0][:24]) == ("/confirm", "The answers have changed")
    assert len(made.desk.runs.all()) == 2


def test_while_a_release_is_made_no_folder_is_left_behind(slow: Visitor) -> None:
    slow.send("/confirm")
    with pytest.raises(BusyError):
        slow.desk.runs.new_folder()
    assert not (slow.desk.output / "release-2").exists()
    assert "Stop it" in slow.get("/releases/release-1").text
    another = Visitor(desk_in(slow.desk.folder.root))
    another.get("/releases/release-1")
    assert "Stop it" not in another.text
    assert "cannot be stopped here" in another.text
    slow.desk.runs.interrupt(30.0)


def test_a_ledger_that_is_used_up_refuses_it(visitor: Visitor, mapped: Run) -> None:
    name = str(visitor.desk.folder.root / "a.csv")
    with visitor.desk.ledger.spending(name, "1", "1e-6", person="who", limit_epsilon="1.5", limit_delta="1e-3"):
        pass
    visitor.get("/releases/release-1/map")
    visitor.send("/releases/release-1/map", epsilon="1", delta="1e-6")
    assert "The ledger limits" in visitor.wrong[0]
    assert [run.name for run in visitor.desk.runs.all()] == ["release-1"]


def test_a_release_that_lacks_what_it_needs_says_so(visitor: Visitor, mapped: Run) -> None:
    mapped.result.unlink()
    assert why_no_map(mapped) == "There is nothing to map."
    ps.Subspace(np.eye(3)[:, :1]).save(mapped.result)
    assert why_no_map(mapped) == "There is nothing to map."
    one = ps.private_pca(ps.rows.open_rows(visitor.desk.folder.root / "a.csv"), 1, epsilon=5.0, delta=1e-6)
    one.save(mapped.result, overwrite=True)
    assert why_no_map(mapped) == "A map of the scores needs two components."
    assert visitor.get("/releases/release-1/map").status_code == 404
    assert visitor.post("/releases/release-1/map", {}).status_code == 404
    visitor.get("/releases/release-1")
    assert "A map of the scores needs two components." in visitor.text
    assert ANSWERS.person == "who"
