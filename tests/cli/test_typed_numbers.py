"""Numbers on the command line, and interruptions before a command has begun."""

import os
import signal
import subprocess
import sys
import textwrap

import pytest

from privspan.cli import main

PLAN = {"--n": "10000", "--d": "20", "--k": "3", "--epsilon": "1", "--delta": "1e-6"}


def planned(capsys, **changes: str) -> tuple[int, str]:
    given = PLAN | {f"--{name}": value for name, value in changes.items()}
    code = main(["plan", *(word for pair in given.items() for word in pair)])
    return code, capsys.readouterr().err


@pytest.mark.parametrize("typed", ["1_0", "٣", "\uff11", "1,5", "1e", ".", "1 0", "0x1", "1e1_0", "9" * 2_000])
@pytest.mark.parametrize("name", ["epsilon", "delta", "gamma"])
def test_a_number_that_is_not_written_plainly_is_refused(capsys, name: str, typed: str) -> None:
    code, told = planned(capsys, **{name: typed})
    assert code == 2
    assert f"--{name} takes a number" in told


@pytest.mark.parametrize("typed", ["1,0", "10,0000", "10__000", "10_000,", "1_000_00", "\u0661\u0660", "3,5"])
def test_digits_are_grouped_by_thousands(capsys, typed: str) -> None:
    code, told = planned(capsys, n=typed)
    assert code == 2
    assert "--n takes a whole number" in told


@pytest.mark.parametrize("typed", ["10000", "10_000", "10,000", "1e4", "+10000", "10000.0", "1,234,567", "1_234_567"])
def test_usual_ways_to_write_a_whole_number(capsys, typed: str) -> None:
    assert planned(capsys, n=typed)[0] == 0


@pytest.mark.parametrize("given", ["--bounds=1_0:20", "--bounds=٣:20", "--units=1_0", "--around=\uff11"])
def test_public_numbers_of_columns_are_written_plainly(tmp_path, capsys, given: str) -> None:
    (tmp_path / "x.csv").write_text("a,b\n" + "1,2\n" * 40)
    budget = ["--k", "1", "--epsilon", "1", "--delta", "1e-3"]
    assert main(["fit", str(tmp_path / "x.csv"), *budget, "-o", str(tmp_path / "o.npz"), given]) == 2
    assert given.partition("=")[0] in capsys.readouterr().err


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("module", ["typer", "rich.console", "privspan.cli.fit"])
def test_an_interruption_while_packages_load_is_told_in_a_sentence(ending: signal.Signals, module: str) -> None:
    program = f"""
        import os, signal, sys
        signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the suite runs in the background

        class Finder:
            def find_spec(self, name, path, target=None):
                if name == {module!r}:
                    os.kill(os.getpid(), {int(ending)})

        sys.meta_path.insert(0, Finder())
        from privspan.cli import main
        sys.exit(main(["--version"]))
    """
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (130, "Error: interrupted.\n")
