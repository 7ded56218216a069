"""``privspan app``: mistakes get a sentence, and nothing is started."""

import socket
import sys
from pathlib import Path

import pytest

from privspan.cli import main


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "--host must be an address of this machine alone"),
        (["--folder", "none"], "--folder takes a folder"),
        (["--ledger", "book.txt"], "--ledger takes a name that ends in .json"),
        (["--port", "70000"], "--port takes a number up to 65,535"),
        (["-o", ".."], "--output must be a folder below --folder"),
    ],
)
def test_a_mistake_on_the_command_line_gets_a_sentence(options, words, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["app", *options]) == 2
    assert words in capsys.readouterr().err


def test_a_port_that_is_taken_is_told_of(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        assert main(["app", "--port", str(taken.getsockname()[1])]) == 1
    assert "in use" in capsys.readouterr().err


def test_a_system_without_locks_of_files_is_told_of(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    assert main(["app", "--folder", str(tmp_path)]) == 1
    assert "needs Linux or macOS" in capsys.readouterr().err
