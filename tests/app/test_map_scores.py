"""A map of scores: asked for, refused, and spent once."""

import sys

import numpy as np
import pytest
from app_pages import Visitor
from test_answers import ANSWERS
from test_runs import begun, ended

import privspan as ps
from privspan.app.pages.one_release import why_no_map
from privspan.app.runs import Run, Runs


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
