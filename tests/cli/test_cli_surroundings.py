"""The command line in hostile surroundings: full disks, closed streams, links, names that hold escape sequences.

What is paid for is never lost for a reason that could have been known before, or for one that does not matter.
"""

import csv
import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from steps import steps_but

from privspan._lib import whole_file as _whole_file
from privspan._lib.errors import ParameterError
from privspan.cli import _console, _progress, _task, main
from privspan.cli.exits import ExitCode
from privspan.ledger import Ledger
from privspan.ledger.release_file import load_release

pytest.importorskip("pty", reason="these tests use signals, links and devices of POSIX")

NASTY = "fo\x1b[31mod\x9b2J\u202e\nError: forged"
RAW = ("\x1b", "\x9b", "\u202e", "\nError: forged")
FIT = ["fit", "money.csv", "--k", "2", "--epsilon", "1", "--delta", "1e-6", "--exact"]
RUN = "import sys; from privspan.cli import main; sys.exit(main(sys.argv[1:]))"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a table that has an exact relation."""
    rent, food = np.random.default_rng(0).integers(100, 9_999, (2, 300))
    write_csv(tmp_path / "money.csv", ["rent", "food", "total"], np.column_stack([rent, food, rent + food]).tolist())
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_csv(path: Path, heads: list[str], rows: list[list[int]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as handle:
        csv.writer(handle).writerows([heads, *rows])


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a line of the shell, in which $RUN is the command; -I would hide the package under test."""
    return subprocess.run(
        ["sh", "-c", line],
        env={**os.environ, "RUN": RUN, "PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )


def states(ledger: str = "b.json") -> list[str]:
    return [entry.state for account in Ledger(ledger).accounts().values() for entry in account.entries]


# --- The budget and the file -----------------------------------------------------------------------------


@pytest.mark.parametrize("length", [230, 244, 251])
def test_a_long_name_that_is_possible_is_written(length: int, folder: Path) -> None:
    name = "x" * (length - 4) + ".npz"
    assert main([*FIT, "-o", name, "--ledger", "b.json"]) == 0
    assert load_release(name).release is not None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-o", "x" * 252 + ".npz"], "File name too long"),
        (["-o", "o.npz", "--report", "x" * 252 + ".html"], "File name too long"),
        (["-o", "locked/o.npz"], "Permission denied"),
        (["-o", "o.npz", "--report", "locked/o.html"], "Permission denied"),
        (["-o", "pipe.npz"], "ordinary file"),
        (["-o", "old.npz"], "'old.npz' exists already; choose another name with -o, or add --overwrite."),
        (["-o", "o.npz", "--report", "old.html"], "'old.html' exists already"),
        (["-o", "dangling.npz"], "'dangling.npz' exists already"),
        (["-o", "o.npz", "--report", "table.html"], "--report would replace the table itself"),
        (["-o", "o.npz", "--report", "table.html", "--overwrite"], "--report would replace the table itself"),
        (["-o", "hard.npz", "--overwrite"], "-o would replace the table itself"),
        (["-o", "book.npz", "--overwrite"], "-o would replace the ledger itself"),
        (["-o", "o.npz", "--report", "o.html", "--overwrite"], "--report would replace the file of -o itself"),
    ],
)
def test_what_cannot_be_written_is_known_before_anything_is_spent(
    options: list[str], words: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys
) -> None:
    (folder / "locked").mkdir()
    os.mkfifo("pipe.npz")
    for name in ("old.npz", "old.html"):
        (folder / name).write_bytes(b"old")
    (folder / "dangling.npz").symlink_to("nowhere")
    (folder / "table.html").symlink_to("money.csv")
    os.link("money.csv", "hard.npz")
    (folder / "book.npz").symlink_to("b.json")
    (folder / "o.html").symlink_to("o.npz")

    def locked(path, *arguments, **keywords):  # root may write everywhere
        if Path(path).parent.name == "locked":
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        return open(path, *arguments, **keywords)

    monkeypatch.setattr(_whole_file, "open", locked, raising=False)
    before = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    assert main([*FIT, *options, "--ledger", "b.json"]) == ExitCode.USAGE
    assert words in capsys.readouterr().err
    assert {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_no_command_replaces_a_file_unasked(folder: Path, capsys) -> None:
    assert main([*FIT, "-o", "m.npz"]) == 0
    plan = ["plan", "--n", "100", "--d", "3", "--k", "1", "--epsilon", "1", "--delta", "1e-6"]
    for name, command in (
        ("r.html", ["show", "m.npz", "--report", "r.html"]),
        ("m.html", ["report", "m.npz"]),
        ("o.csv", ["transform", "m.npz", "money.csv", "-o", "o.csv"]),
        ("o.npy", ["transform", "m.npz", "money.csv", "-o", "o.npy"]),
        ("p.svg", [*plan, "--plot", "p.svg"]),
        ("p.html", [*plan, "--html", "p.html"]),
    ):
        (folder / name).write_bytes(b"old")
        assert main(command) == ExitCode.USAGE
        assert "add --overwrite" in capsys.readouterr().err
        assert (folder / name).read_bytes() == b"old"
        assert main([*command, "--overwrite"]) == 0
        assert (folder / name).read_bytes() != b"old"


@pytest.mark.parametrize("output", ["table.csv", "hard.csv", "inner.npy"])
def test_transform_spares_what_it_reads(output: str, folder: Path, capsys) -> None:
    assert main([*FIT, "-o", "m.npz"]) == 0
    (folder / "table.csv").symlink_to("money.csv")
    os.link("money.csv", "hard.csv")
    os.link("m.npz", "inner.npy")
    assert main(["transform", "m.npz", "money.csv", "-o", output, "--overwrite"]) == ExitCode.USAGE
    assert "itself; choose another name" in capsys.readouterr().err


def test_transform_spares_the_table_on_standard_input(folder: Path) -> None:
    assert main([*FIT, "-o", "m.npz"]) == 0
    before = (folder / "money.csv").read_bytes()
    run = shell('"$PYTHON" -c "$RUN" transform m.npz - -o money.csv --overwrite < money.csv')
    assert run.returncode == ExitCode.USAGE
    assert (folder / "money.csv").read_bytes() == before


def test_a_file_that_appears_meanwhile_is_not_replaced(folder: Path, capsys) -> None:
    def learn(task, table):
        (folder / "o.npz").write_bytes(b"somebody else's")
        return task.run(table)

    spare_folder = partial(tempfile.mkdtemp, prefix="privspan-", dir=folder)
    steps = steps_but(learn=learn, spare_folder=lambda: Path(spare_folder()))
    assert main([*FIT, "-o", "o.npz", "--ledger", "b.json"], steps) == ExitCode.FAILED
    assert (folder / "o.npz").read_bytes() == b"somebody else's"
    (spare,) = folder.glob("privspan-*/o.npz")
    assert repr(str(spare)) in capsys.readouterr().err
    assert load_release(spare).release is not None
    assert states() == ["finished"]


@pytest.mark.parametrize(
    "fault", [OSError(errno.ENOSPC, "No space left on device"), MemoryError(), TypeError("Smith")]
)
def test_with_no_disk_left_the_result_goes_to_standard_output(fault: Exception, folder: Path, capsys) -> None:
    def full(*_: object, **__: object) -> None:
        raise fault

    assert main([*FIT, "-o", "o.npz", "--ledger", "b.json"], steps_but(save=full)) == ExitCode.FAILED
    said = capsys.readouterr()
    assert "is on standard output, as JSON" in said.err
    assert "Smith" not in said.err
    told = json.loads(said.out)
    assert told["relations"] == ["total = rent + food"]
    assert all(len(component["loadings"]) == 3 for component in told["components"])
    assert states() == ["finished"]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_waits_until_the_paid_result_is_written(ending: signal.Signals, folder: Path) -> None:
    code = """
        import os, signal, sys
        from privspan.ledger import release_file
        from privspan.cli import main

        signal.signal(signal.SIGINT, signal.default_int_handler)
        real = release_file.save_release

        def save(*arguments, **options):
            os.kill(os.getpid(), int(os.environ["ENDING"]))
            return real(*arguments, **options)

        release_file.save_release = save
        sys.exit(main(sys.argv[1:]))
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), *FIT, "-o", "o.npz", "--ledger", "b.json"],
        env={**os.environ, "ENDING": str(int(ending))},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == ExitCode.INTERRUPTED
    assert "interrupted. The budget is spent, and the result is in 'o.npz'." in run.stderr
    assert load_release("o.npz").release is not None
    assert states() == ["finished"]


# --- Streams that take nothing ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("streams", "code"),
    [
        pytest.param(">&-", ExitCode.FAILED, marks=pytest.mark.slow),  # as are all three below
        (">/dev/full", ExitCode.FAILED),
        pytest.param("2>&-", ExitCode.OK, marks=pytest.mark.slow),
        ("2>/dev/full", ExitCode.OK),
        (">&- 2>&- <&-", ExitCode.FAILED),
    ],
)
def test_streams_that_take_nothing_do_not_cost_the_result(streams: str, code: ExitCode, folder: Path) -> None:
    if "full" in streams and not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    words = " ".join([*FIT, "-o", "o.npz", "--ledger", "b.json", "--seed", "1", "--report", "r.html"])
    run = shell(f'"$PYTHON" -c "$RUN" {words} {streams}')
    assert run.returncode == code
    assert "Traceback" not in run.stderr
    if "2>" not in streams:
        assert "standard output cannot be written to" in run.stderr
        assert "The budget is spent, and the result is in 'o.npz'." in run.stderr
    assert load_release("o.npz").release is not None
    assert states() == ["finished"]
    assert Path("r.html").read_text("utf-8").startswith("<!DOCTYPE html>")  # and no line of standard output in it


def test_show_says_that_nobody_could_read_it(folder: Path) -> None:
    assert main([*FIT, "-o", "o.npz"]) == 0
    run = shell('"$PYTHON" -c "$RUN" show o.npz >&-')
    assert (run.returncode, run.stderr.count("\n")) == (ExitCode.FAILED, 1)
    assert "standard output cannot be written to" in run.stderr


def test_progress_that_cannot_be_shown_is_no_reason_to_stop(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def isatty(self) -> bool:
            return False

        def write(self, _: str) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

        def flush(self) -> None: ...

    monkeypatch.setattr(sys, "stderr", Full())
    with _progress.activity("Reading [/red] money.csv", lines_at=(0.0, 60.0)):
        _console.warn("nobody reads this")


def test_brackets_in_a_name_are_no_markup_of_the_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    import io
    import time

    class Screen(io.StringIO):
        def isatty(self) -> bool:
            return True

    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm-256color")
    with _progress.activity(f"Reading [/red]{NASTY}.csv", patience=0.0):
        time.sleep(0.6)
    assert "[/red]fo\ufffd[31mod\ufffd2J" in screen.getvalue()


# --- Names from outside ----------------------------------------------------------------------------------


def test_escape_sequences_reach_neither_terminal_nor_report(folder: Path, capsys) -> None:
    rows = [line.split(",") for line in (folder / "money.csv").read_text().splitlines()[1:]]
    names = ["rent", NASTY, "total", f"id {NASTY}"]
    columns = [*(pa.array(map(int, column)) for column in zip(*rows, strict=True)), pa.array(["x"] * len(rows))]
    table = f"ta\x1b[31m\nble{NASTY[:3]}.parquet"  # names with ends of lines need a format that has them
    pq.write_table(pa.table(columns, names=names), folder / table)
    fit = ["fit", table, *FIT[2:]]
    dataset = ["--ledger", "b.json", "--dataset", NASTY]
    commands = [
        [*fit, "-o", "o.npz", "--report", "r.html", *dataset],
        ["show", "o.npz"],
        ["show", "o.npz", "--json"],
        ["relations", "o.npz"],
        ["relations", "o.npz", "--json"],
        ["ledger", "show", "b.json"],
        ["ledger", "show", "b.json", "--json"],
        ["ledger", "show", "b.json", "--dataset", "nobody"],
        ["--debug", "show", f"{NASTY}.npz"],
        ["transform", "o.npz", "money.csv", "-o", "c.csv"],
        [*fit, "-o", f"{NASTY}/o.npz"],
        [*fit, "-o", "o2.npz", "--columns", NASTY],
        [NASTY],
    ]
    for command in commands:
        main(command)
        said = capsys.readouterr()
        for text in (said.out, said.err):
            assert not any(raw in text for raw in RAW), command
        if "--json" in command:
            told = json.dumps(json.loads(said.out), ensure_ascii=False)
            assert json.dumps(NASTY, ensure_ascii=False)[1:-1] in told  # nothing is lost
    page = (folder / "r.html").read_text("utf-8")
    assert "fo\ufffd[31mod" in page
    assert not any(raw in page for raw in RAW[:3])


def test_joined_letters_and_emoji_stay_as_they_are() -> None:
    from privspan._lib.readable import escaped_json, readable

    for text in ("naïve", "\u0645\u06cc\u200c\u062e", "👩\u200d🔬", "a b"):
        assert readable(text) == text
    assert readable("a\u2028b\u2066c\ud800\x7f\U000e0041") == "a\ufffdb\ufffdc\ufffd\ufffd\ufffd"
    odd = {"a\x9b": "\u202e\U000e0041\ud800"}
    assert json.loads(escaped_json(json.dumps(odd, ensure_ascii=False))) == odd


# --- Whose words are shown -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statement",
    [
        "int('Smith')",
        "b'Smith'.decode('utf-16')[0] + 1",
        "np.array(['Smith']).astype(float)",
        "np.asarray('Smith').reshape(7)[9, 'Smith']",
        "(_ for _ in ()).throw(ImportError('privspan[Smith]'))",
        "(_ for _ in ()).throw(OSError('Smith'))",
        "(_ for _ in ()).throw(OSError(22, 'Smith'))",
        "error = ValueError('Smith'); error.add_note('Smith'); raise error",
    ],
)
def test_what_a_function_in_c_raises_in_a_frame_of_ours_is_not_repeated(statement: str, folder: Path, capsys) -> None:
    code = compile(f"def learn(task, table):\n    {statement}", _task.__file__, "exec")
    scope = {"np": np}
    exec(code, scope)
    assert main([*FIT, "-o", "o.npz"], steps_but(learn=scope["learn"])) == ExitCode.FAILED
    said = capsys.readouterr().err
    assert "Smith" not in said
    assert "counts as spent" in said


def test_a_refusal_is_told_in_flags(folder: Path, capsys) -> None:
    def learn(task: object, table: object) -> None:
        raise ParameterError("{k} is odd.")

    assert main([*FIT, "-o", "o.npz"], steps_but(learn=learn)) == ExitCode.USAGE
    assert "--k is odd." in capsys.readouterr().err


# --- Files of ours ---------------------------------------------------------------------------------------


def test_files_that_are_not_what_they_should_be_have_the_documented_exit_code(folder: Path, capsys) -> None:
    assert main([*FIT, "-o", "m.npz", "--ledger", "b.json"]) == 0
    with np.load("m.npz") as archive:
        arrays = dict(archive)
    text = arrays["description"].tobytes().replace(b'"private": true', b'"private": "false"')
    np.savez("spoiled.npz", **{**arrays, "description": np.frombuffer(text, np.uint8)})
    turned = {**arrays, "basis": np.roll(arrays["basis"], 1, axis=0)}
    np.savez("turned.npz", **turned)
    for name in ("spoiled.npz", "turned.npz"):
        for command in (
            ["show", name],
            ["show", name, "--report", "r.html"],
            ["report", name, "-o", "r.html"],
            ["relations", name],
            ["compare", name, "m.npz"],
            ["transform", name, "money.csv", "-o", "c.csv"],
        ):
            assert main(command) == ExitCode.UNREADABLE
    ledger = folder / "b.json"
    ledger.write_text(ledger.read_text().replace('"entries": [', '"entries": [], "entries": ['))
    for command in (["ledger", "show", "b.json"], [*FIT, "-o", "n.npz", "--ledger", "b.json"]):
        assert main(command) == ExitCode.UNREADABLE
        assert "a key twice" in capsys.readouterr().err
    assert not (folder / "n.npz").exists()
