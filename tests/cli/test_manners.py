"""Manners of the command line: one style of help, completion, bars on terminals, suggestions that can be followed."""

import os
import pty
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import typer

from privspan.cli import _console, main
from privspan.cli._groups import _EXACT_METHODS, _METHODS
from privspan.cli.app import app
from privspan.cli.exits import ExitCode
from privspan.subspace import Subspace

PLAN = ["plan", "--epsilon", "1", "--delta", "1e-6"]


def commands() -> dict[str, object]:
    """Every command by the words that call it, groups and the program itself included."""

    def walk(command, path: str):
        yield path, command
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, f"{path} {name}")

    return dict(walk(typer.main.get_command(app), "privspan"))


# --- One style of help -----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", commands())
def test_help_is_one_sentence_in_one_line_and_an_example_to_copy(path: str) -> None:
    text = (commands()[path].help or "").strip()
    first, *_ = text.split("\n")
    assert first.endswith(".")
    assert len(first) <= 82
    assert ". " not in first
    calls = path if path != "privspan" and path != "privspan ledger" else f"{path} "
    assert re.search(rf"\n\s*Example:\n\s*\n\s*{calls}[^\n]*$", text), "Example:, an empty line, a line to copy"
    assert len(text.split("\n")[-1].strip()) <= 78  # 80 letters less the margins: not wrapped


@pytest.mark.parametrize("path", commands())
def test_every_option_says_in_a_sentence_what_it_does(path: str) -> None:
    for parameter in commands()[path].params:
        if not parameter.hidden:
            assert (parameter.help or "").rstrip().endswith((".", ")")), parameter.name


def test_flags_are_shown_without_a_type(capsys) -> None:
    for path in commands():
        if path != "privspan bench":  # hands its line on to the benchmarks, which are not always there
            assert main([*path.split()[1:], "--help"]) == 0
            assert "<bool>" not in capsys.readouterr().out


@pytest.mark.parametrize("short", ["-k", "--k"])
def test_the_dimension_has_a_short_name(short: str, capsys) -> None:
    assert main([*PLAN, "-n", "10000", "-d", "20", short, "3"]) == 0
    assert "k = 3" in capsys.readouterr().out


# --- Completion ------------------------------------------------------------------------------------------


def completed(*words: str) -> list[str]:
    """What bash would be offered for the last word."""
    asked = {"_PRIVSPAN_COMPLETE": "complete_bash", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
    run = [sys.executable, "-m", "privspan"]
    done = subprocess.run(run, env={**os.environ, **asked}, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    return done.stdout.split()


def test_a_shell_completes_commands_options_and_methods() -> None:
    assert completed("privspan", "rel") == ["relations"]
    assert "--epsilon" in completed("privspan", "fit", "people.csv", "--e")
    assert completed("privspan", "fit", "people.csv", "--method", "a") == [m for m in _METHODS if m[0] == "a"]
    assert completed("privspan", "fit", "people.csv", "--exact", "--method", "v") == ["votes"]


def test_the_methods_that_are_completed_are_those_of_the_library() -> None:
    from privspan.exact.plan import METHODS as EXACT
    from privspan.pca import PCA_METHODS

    assert sorted(_METHODS) == sorted(PCA_METHODS)
    assert sorted(_EXACT_METHODS) == sorted(EXACT)


def test_completion_can_be_installed(tmp_path: Path) -> None:
    asked = {**os.environ, "HOME": str(tmp_path), "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    run = [sys.executable, "-m", "privspan", "--install-completion", "bash"]
    subprocess.run(run, env=asked, capture_output=True, check=True)
    assert "privspan" in (tmp_path / ".bashrc").read_text()


# --- Suggestions can be followed -------------------------------------------------------------------------


@pytest.fixture
def plane(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    np.save("people.npy", np.random.default_rng(0).normal(size=(20, 3)))
    Subspace(np.eye(3)[:, :2]).save("plane.npz")
    return tmp_path


@pytest.mark.parametrize("given", [[], ["-o", "coordinates.txt"], ["-o", "coordinates.npz"]])
def test_transform_suggests_a_suffix_that_it_takes(given: list[str], plane: Path, capsys) -> None:
    line = ["transform", "plane.npz", "people.npy"]
    assert main([*line, *given]) == ExitCode.USAGE
    suggested = re.search(r"-o (\S+\.\w+)", capsys.readouterr().err.split("example")[1]).group(1)
    assert main([*line, "-o", suggested]) == 0
    assert (plane / suggested).is_file()


# --- Bars ------------------------------------------------------------------------------------------------


def on_a_terminal(arguments: list[str], monkeypatch: pytest.MonkeyPatch, encoding: str = "utf-8") -> str:
    """What a command writes to a terminal of that encoding."""
    ours, theirs = pty.openpty()
    monkeypatch.setenv("COLUMNS", "120")
    with monkeypatch.context() as patch, open(theirs, "w", encoding=encoding, errors="replace") as terminal:
        patch.setattr(sys, "stdout", terminal)
        assert main(arguments) == 0
        terminal.flush()
        os.set_blocking(ours, False)
        pieces = []
        with suppress(BlockingIOError):  # a terminal hands out what it has in pieces
            while True:
                pieces.append(os.read(ours, 1_000_000))
    os.close(ours)
    return b"".join(pieces).decode(encoding)


def test_a_plan_is_drawn_on_a_terminal_and_plain_in_a_pipe(monkeypatch, capsys) -> None:
    line = [*PLAN, "-n", "10000", "-d", "20", "-k", "3"]
    drawn = on_a_terminal(line, monkeypatch)
    assert "█" in drawn
    assert "300,000" in drawn  # what thirty times the rows would bring
    assert "█" not in on_a_terminal(line, monkeypatch, "ascii")
    assert main(line) == 0
    assert "█" not in capsys.readouterr().out


def test_compare_draws_angles_and_names_what_moved(plane: Path, monkeypatch, capsys) -> None:
    tilted = np.array([[1.0, 0.0], [0.0, np.cos(0.5)], [0.0, np.sin(0.5)]])
    Subspace(tilted, names=("age", "height", "weight")).save("tilted.npz")
    assert "█" in on_a_terminal(["compare", "plane.npz", "tilted.npz"], monkeypatch)
    assert main(["compare", "plane.npz", "tilted.npz"]) == 0
    said = capsys.readouterr().out
    assert "dimensions" in said
    moved = dict(line.split() for line in said.split("columns that moved most")[1].splitlines()[1:] if line)
    assert moved == {"height": "0.48", "weight": "0.48", "age": "0"}  # sin(0.5), and a column that both hold


@pytest.mark.parametrize(
    ("share", "bar"), [(0.0, ""), (1e-9, "▏"), (0.5, "█" * 12), (1.0, "█" * 24), (7.0, "█" * 24)]
)
def test_bars_are_as_long_as_their_share(share: float, bar: str) -> None:
    assert _console._bar(share) == bar.ljust(24) + "▕"
