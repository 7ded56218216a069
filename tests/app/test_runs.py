"""Releases on disk: how each ended, and that one is at work at a time."""

import fcntl
import signal
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from test_answers import ANSWERS

from privspan.app.runs import _ENDED, BusyError, Run, Runs, made_now
from privspan.cli.exits import ExitCode

WAITS = """
import sys, time
try:
    print("ready", file=sys.stderr, flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    sys.exit(130)
"""


def program(code: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code)


def begun(runs: Runs) -> Run:
    return runs.start(runs.new_folder(), made_now("fit", ["fit"], ANSWERS, "a test"), ANSWERS, {"schema.toml": "x"})


def ended(run: Run) -> str:
    until = time.monotonic() + 30
    while run.state == "running":
        assert time.monotonic() < until
        time.sleep(0.01)
    return run.state


@pytest.mark.parametrize(
    ("code", "state"),
    [
        (0, "finished"),
        (4, "abstained"),
        (5, "refused"),
        (130, "interrupted"),
        (1, "failed"),
        (2, "failed"),
        (3, "failed"),
    ],
)
def test_how_a_release_ended_is_told_by_the_exit_code(code: int, state: str, tmp_path: Path) -> None:
    runs = Runs(tmp_path / "out", tmp_path, program(f"import sys; print('said', file=sys.stderr); sys.exit({code})"))
    run = begun(runs)
    assert ended(run) == state
    assert run.log == ["said"]
    (again,) = Runs(tmp_path / "out", tmp_path).all()  # as another app finds it
    assert again == run
    assert again.state == state
    assert again.answers == ANSWERS


def test_exit_codes_are_those_of_the_command_line() -> None:
    codes = {ExitCode.OK: "finished", ExitCode.ABSTAINED: "abstained", ExitCode.REFUSED: "refused"}
    assert codes | {ExitCode.INTERRUPTED: "interrupted", -signal.SIGINT: "interrupted"} == _ENDED


def test_one_is_at_work_at_a_time_and_can_be_stopped(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "out", tmp_path, program(WAITS))
    run = begun(runs)
    while not run.log:
        time.sleep(0.01)
    with pytest.raises(BusyError, match="release-1 is being made"):
        begun(runs)
    other = Runs(tmp_path / "out", tmp_path)  # another app on the same folder
    assert other.at_work() == run
    assert other.interrupt() is None
    assert runs.interrupt(30.0) == run
    assert run.state == "interrupted"
    assert runs.interrupt() is None
    assert begun(runs).state == "running"
    runs.interrupt(30.0)


def test_what_ended_without_a_word_is_judged_by_its_result(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "out", tmp_path, program(""))
    run = begun(runs)
    ended(run)
    (run.folder / "ended.txt").unlink()
    assert run.state == "interrupted"
    run.result.write_bytes(b"x")
    assert run.state == "finished"


def test_folders_of_others_are_passed_over(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for name in ("release-7", "release-x", "example", "release-01"):
        (out / name).mkdir(parents=True)
    (out / "release-7" / "made.json").write_text('{"made": 1}')
    runs = Runs(out, tmp_path, program(""))
    assert runs.all() == []
    assert [runs.new_folder().name for _ in range(2)] == ["release-1", "release-2"]
    assert Runs(tmp_path / "none", tmp_path).all() == []


def test_nothing_is_replaced(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "out", tmp_path, program(""))
    folder = runs.new_folder()
    (folder / "schema.toml").write_text("mine")
    with pytest.raises(FileExistsError):
        runs.start(folder, made_now("fit", ["fit"], ANSWERS, "a test"), ANSWERS, {"schema.toml": "x"})
    assert (folder / "schema.toml").read_text() == "mine"


def test_a_log_is_shown_without_what_a_terminal_obeys(tmp_path: Path) -> None:
    runs = Runs(tmp_path / "out", tmp_path, program(r"import sys; print('\x1b[31mred\x07', file=sys.stderr)"))
    run = begun(runs)
    ended(run)
    assert run.log == ["\ufffd[31mred\ufffd"]


@pytest.mark.parametrize(
    "code", ["raise KeyboardInterrupt", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]
)
def test_what_was_stopped_before_it_had_begun_is_told_from_what_failed(code: str, tmp_path: Path) -> None:
    runs = Runs(tmp_path / "out", tmp_path, program(code))
    run = begun(runs)
    ended(run)
    assert run.state == ("interrupted" if "Keyboard" in code else "failed")


def test_two_apps_on_one_folder_begin_one_after_the_other(tmp_path: Path) -> None:
    apps = [Runs(tmp_path / "out", tmp_path, program(WAITS)) for _ in range(2)]
    folders = [app.new_folder() for app in apps]  # nothing is at work yet
    made = made_now("fit", ["fit"], ANSWERS, "a test")
    with ThreadPoolExecutor(2) as pool, (tmp_path / "out" / "begin.lock").open("a") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)  # as a third one that is beginning
        begun_by = [pool.submit(app.start, to, made, ANSWERS, {}) for app, to in zip(apps, folders, strict=True)]
        time.sleep(0.2)
        assert not any(one.done() for one in begun_by)
        fcntl.flock(gate, fcntl.LOCK_UN)
        refused = [one.exception(60) for one in begun_by]
    assert sorted(type(error).__name__ for error in refused) == ["BusyError", "NoneType"]
    assert [app.interrupt(30.0) is None for app in apps].count(False) == 1
