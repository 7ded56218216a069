"""A release: what is shown and given of it, also after the app was started again."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from app_pages import Visitor, desk_in

from privspan.ledger.release_file import load_release


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


def test_a_report_is_shown_with_a_policy_of_its_own(wide: Visitor) -> None:
    """It may load nothing, run nothing, and its only style is the one that it has."""
    headers = wide.get("/releases/release-1/report").headers
    policy = headers["content-security-policy"]
    assert re.fullmatch(r"default-src 'none'; .*; sandbox; style-src 'sha256-[\w+/=]{44}'", policy)
    assert headers["cache-control"] == "no-store"


def test_what_was_released_is_shown_where_the_ledger_is_damaged(wide: Visitor) -> None:
    kept = wide.desk.ledger_path.read_text()
    wide.desk.ledger_path.write_text("{")
    wide.get("/releases/release-1")
    wide.desk.ledger_path.write_text(kept)
    assert wide.status == 200
    assert "Open the report" in wide.text
    assert "it is not JSON" in wide.text


def test_what_is_not_there_is_not_found(wide: Visitor) -> None:
    for path in ("release-9", "release-9/progress", "release-9/report", "release-1/picture", "release-1/files/none"):
        assert wide.get(f"/releases/{path}").status_code == 404
    assert wide.post("/releases/release-9/stop", {}).url.path == "/"
    assert wide.post("/releases/release-9/again", {}).url.path == "/"
    assert wide.post("/releases/release-1/stop", {}).url.path == "/releases/release-1"


def test_an_abstention_is_told_with_what_it_cost(visitor: Visitor, tmp_path: Path) -> None:
    from test_runs import begun, ended

    from privspan.app.runs import Runs

    code = "import sys; print('Error: the private step abstained.', file=sys.stderr); sys.exit(4)"
    runs = Runs(visitor.desk.output, tmp_path, (sys.executable, "-c", code))
    ended(begun(runs))
    visitor.get("/releases/release-1")
    assert "release-1 ended without a result; its budget is spent" in visitor.text
    assert "the private step abstained." in visitor.text


def test_columns_that_were_declared_wrongly_are_told_of_by_what_was_released(
    visitor: Visitor, tmp_path: Path
) -> None:
    lines = (f"{at % 50},5;{at % 7};{at % 11}" for at in range(3_000))
    (tmp_path / "a.csv").write_text("age;beds;visits\n" + "\n".join(lines) + "\n")
    visitor.to_columns("a.csv", separator=";", decimal=".")
    visitor.send("/columns")
    visitor.send("/question")
    visitor.send("/budget", epsilon="3")
    visitor.send("/confirm")
    assert visitor.wait("release-1") == "finished"
    assert "Hardly any cell holds a number in age. Is the decimal sign that of the file" in visitor.text
