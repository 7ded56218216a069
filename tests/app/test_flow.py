"""The whole way in process: from the first page to a release and what comes next, and what goes wrong on it."""

import json
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from app_pages import Visitor, desk_in

from privspan.ledger import Ledger
from privspan.ledger.release_file import load_release

SLOW = """
import sys, time
from privspan.cli import main
from privspan.cli._task import Task
from pathlib import Path

def run(task, source):
    Path("at-work").touch()
    time.sleep(60)

Task.run = run
sys.exit(main(sys.argv[1:]))
"""


@pytest.fixture
def visitor(tmp_path: Path) -> Visitor:
    return Visitor(desk_in(tmp_path))


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> Visitor:
    """A visitor who has made a release of 200 columns."""
    folder = tmp_path_factory.mktemp("wide")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1_500, 3)) @ rng.normal(size=(3, 200)) + 0.3 * rng.normal(size=(1_500, 200))
    head = ",".join(["person_id", *(f"q{i}" for i in range(199))])
    np.savetxt(folder / "wide.csv", rows, delimiter=",", header=head, comments="", fmt="%.4f")
    visitor = Visitor(desk_in(folder))
    visitor.to_columns("wide.csv")
    visitor.send("/columns", **{"low_AT_5": "-10", "high_AT_5": "10"})
    visitor.send("/question", k="3", scale="no", purpose="A test, in one sentence")
    visitor.send("/budget", epsilon="3", limit_epsilon="4", limit_delta="1e-5")
    visitor.send("/confirm")
    visitor.wait("release-1")
    return visitor


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


def test_two_hundred_columns(wide: Visitor) -> None:
    saved = load_release(wide.desk.output / "release-1" / "release.npz")
    assert saved.subspace.basis.shape == (199, 3)
    assert saved.release.parameters["declared"]["bounds"] == {"q4": (-10, 10)}
    assert saved.record.purpose == "A test, in one sentence"
    assert dict(saved.record.left_out) == {"person_id": "skipped by the schema"}
    assert "Open the report" in wide.text


def test_every_file_is_there_to_be_kept(wide: Visitor) -> None:
    names = re.findall(r"/releases/release-1/files/([\w.]+)", wide.get("/releases/release-1").text)
    assert set(names) == {"report.html", "release.npz", "sheet.json", "script.py", "command.txt", "schema.toml"}
    for name in names:
        given = wide.get(f"/releases/release-1/files/{name}")
        assert given.status_code == 200
        assert given.headers["content-disposition"] == f'attachment; filename="release-1-{name}"'
    assert json.loads(wide.get("/releases/release-1/files/sheet.json").text)["claims"]
    assert wide.get("/releases/release-1/files/made.json").status_code == 404
    assert wide.get("/releases/release-1/files/..%2F..%2Fwide.csv").status_code == 404


def test_the_script_does_the_same_again(wide: Visitor) -> None:
    """It charges the account of the app, whose limit, 4, refuses a second release at 3."""
    command = [sys.executable, wide.desk.output / "release-1" / "script.py"]
    refused = subprocess.run(command, cwd=wide.desk.folder.root, capture_output=True, text=True, timeout=120)
    assert "the ledger limits" in refused.stderr


@pytest.mark.slow
def test_the_command_and_the_script_run_as_they_are_given(wide: Visitor, tmp_path: Path) -> None:
    """In a copy of the folder, whose table is another data set to the ledger."""
    root = shutil.copytree(wide.desk.folder.root, tmp_path / "copy")
    given = root / "privspan-app" / "release-1"
    command = (given / "command.txt").read_text().replace("privspan fit", f"{sys.executable} -m privspan fit")
    subprocess.run(command, shell=True, cwd=root, capture_output=True, timeout=120, check=True)
    by_command = (root / "release.npz").rename(tmp_path / "command.npz")
    (root / "privspan-app" / "ledger.json").unlink()
    subprocess.run([sys.executable, given / "script.py"], cwd=root, capture_output=True, timeout=120, check=True)
    made = [load_release(path) for path in (given / "release.npz", by_command, root / "release.npz")]
    assert {str(one.release.cost) for one in made} == {"(3, 1e-06)-DP, replace-one"}
    assert {one.release.method for one in made} == {made[0].release.method}
    assert made[1].subspace.distance(made[2].subspace) < 0.5  # fresh noise
    assert all(one.release.parameters["declared"] == made[0].release.parameters["declared"] for one in made)


def test_a_ledger_that_is_used_up_refuses_before_anything_is_run(wide: Visitor) -> None:
    before = len(wide.desk.runs.all())
    wide.get("/releases/release-1")
    wide.send("/releases/release-1/again")
    assert wide.path == "/budget"
    wide.send("/budget", epsilon="3")
    assert "The ledger limits" in wide.wrong[0]
    wide.send("/budget", epsilon="3", limit_epsilon="50")
    assert "would raise that" in wide.wrong[0]
    assert len(wide.desk.runs.all()) == before
    wide.send("/budget", epsilon="0.1", limit_epsilon="")
    assert wide.path == "/confirm"
    wide.get("/ledger")
    assert "wide.csv" in wide.text
    assert "of 4, at delta" in wide.text


def test_a_release_is_shown_after_the_app_was_started_again(wide: Visitor) -> None:
    another = Visitor(desk_in(wide.desk.folder.root))
    another.get("/")
    assert "release-1" in another.text
    another.get("/releases/release-1")
    assert "Open the report" in another.text
    another.send("/releases/release-1/again")
    assert another.path == "/budget"
    assert another.form("/budget")["k"] == "3"


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


def test_steps_that_are_not_answered_come_first(visitor: Visitor, tmp_path: Path) -> None:
    for path in ("/columns", "/question", "/budget", "/confirm"):
        assert visitor.get(path).url.path == "/table"
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 50)
    visitor.to_columns("a.csv")
    assert visitor.get("/confirm").url.path == "/columns"
    assert visitor.post("/confirm", {}).url.path == "/columns"


# ---- Once ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def slow(tmp_path: Path) -> Visitor:
    """A visitor before the last button, whose release takes a minute once its budget is spent."""
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 500)
    visitor = Visitor(desk_in(tmp_path, program=(sys.executable, str(tmp_path / "slow.py"))))
    visitor.to_confirm("a.csv")
    return visitor


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
    other.post("/confirm", {"ticket": slow.desk.session.ticket})
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


# ---- What cannot be taken ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("gone.csv", None, "There is no such file below the folder."),
        ("table.xlsx", "x", "Choose a file that ends in"),
        ("empty.csv", "", "'empty.csv' holds no rows."),
        ("semi.csv", "a;b\n1;2\n", "name the sign between cells"),
        ("twice.csv", "a,a\n1,2\n", "has two columns named 'a'"),
        ("numbers.csv", "1,2\n3,4\n", "must begin with a line of column names"),
        ("cut.parquet", "PAR1", "is not a .parquet file"),
    ],
)
def test_a_wrong_file_is_told_of(name, content, words, visitor: Visitor, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / name).write_text(content)
    visitor.to_columns(name)
    assert (visitor.status, visitor.path) == (422, "/table")
    assert words in visitor.wrong[0]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": "0"}, "A number above 0"),
        ({"epsilon": "much"}, "A number above 0"),
        ({"epsilon": ""}, "A number is needed here"),
        ({"epsilon": "1e9"}, "ε must be between"),
        ({"delta": "1"}, "A number between 0 and 1"),
        ({"delta": "1e-200"}, "δ must be at least 2**-100"),
        ({"k": "0"}, "A whole number from 1"),
        ({"k": "3"}, "Number of components must be at most 2"),
        ({"limit_epsilon": "0.5"}, "The ledger limits"),
    ],
)
def test_a_wrong_budget_is_told_of(changes, words, visitor: Visitor, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 500)
    visitor.to_columns("a.csv")
    visitor.send("/columns")
    visitor.send("/question")
    visitor.send("/budget", **changes)
    assert (visitor.status, visitor.path) == (422, "/budget")
    assert words in visitor.wrong[0]
    (name, typed), *_ = changes.items()
    assert visitor.form("/budget")[name] == typed  # stays as it was typed
    assert visitor.get("/confirm").url.path == "/budget"


def test_a_weak_budget_and_a_useless_result_are_told_of_before_they_are_paid_for(visitor, tmp_path: Path) -> None:
    names = [f"x{at}" for at in range(60)]
    (tmp_path / "a.csv").write_text(",".join(names) + "\n" + ",".join("1" * 60) + "\n" + "\n" * 20)
    visitor.to_columns("a.csv")
    visitor.send("/columns")
    visitor.send("/question", k="1")
    visitor.send("/budget", epsilon="0.1", delta="0.2")
    assert "This budget promises little" in visitor.text
    assert "Expected to be useless" in visitor.text


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
