"""The command line as a user meets it: results on stdout, everything else on stderr, exit codes, no traceback."""

import csv
import errno
import html
import io
import json
import math
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import typer
from steps import interrupt, steps_but

from privspan import NotPrivateWarning, PrivatePCA, Release, __version__
from privspan.cli import _progress, main
from privspan.cli._steps import Steps
from privspan.cli.app import app
from privspan.cli.exits import ExitCode
from privspan.ledger import Ledger
from privspan.ledger.release_file import load_release
from privspan.privacy import mu_from_budget
from privspan.subspace import Subspace

pty = pytest.importorskip("pty", reason="these tests use signals, limits and terminals of POSIX")
resource = pytest.importorskip("resource")

ROOT = Path(__file__).parents[2]
BUDGET = ["--epsilon", "1", "--delta", "1e-6"]
HEADS = ["person_id", "height", "weight", "age", "[pulse]"]


def write_csv(path: Path, heads: list[str], rows) -> None:
    with path.open("w", newline="") as handle:
        csv.writer(handle).writerows([heads, *rows])


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with tables: close to a plane, with an exact relation in cents, and without structure."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    loadings = np.array([[3.0, 1.0, 0.0, 0.5], [0.0, 1.0, 2.0, -1.0]])
    people = rng.normal(size=(3000, 2)) @ loadings + 0.05 * rng.normal(size=(3000, 4)) + 10
    write_csv(folder / "people.csv", HEADS, [[i, *row.round(4)] for i, row in enumerate(people)])
    np.save(folder / "people.npy", people)
    np.save(folder / "few.npy", people[:12])
    rent, food = rng.integers(100, 99_999, (2, 120))
    cents = np.column_stack([rent, food, rent + food])
    write_csv(folder / "money.csv", ["rent", "food", "total"], [[f"{v / 100:.2f}" for v in row] for row in cents])
    write_csv(folder / "noise.csv", ["a", "b", "c"], rng.integers(0, 10**6, (60, 3)).tolist())
    write_csv(folder / "words.csv", ["id", "user_id"], [["Ann", "Ulm"], ["Bob", "Bonn"]])
    return folder


@pytest.fixture
def folder(tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder with links to the tables."""
    for table in tables.iterdir():
        (tmp_path / table.name).symlink_to(table)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def fitted(tables: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a subspace of the people and one of the money."""
    folder = tmp_path_factory.mktemp("fitted")
    for table, name, options in (
        ("people.csv", "a.npz", []),
        ("money.csv", "m.npz", ["--exact", "--decimals", "2"]),
    ):
        output = str(folder / name)
        assert main(["fit", str(tables / table), "--k", "2", *BUDGET, "-o", output, "--seed", "1", *options]) == 0
    return folder


def in_process(code: str, *arguments: str, **options) -> subprocess.Popen:
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def left_behind(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir() if not path.is_symlink()}


COMMANDS = ("plan", "fit", "transform", "show", "report", "relations", "compare", "ledger")

# --- The frame: help, version, exit codes ----------------------------------------------------------------


def test_help_names_every_command_and_exit_code(capsys) -> None:
    assert main(["--help"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    for command in (*COMMANDS, "audit", "bench", "demo"):
        assert command in said
    for code in ExitCode:
        assert f"{code.value} {code.meaning.split(';')[0].split('(')[0].strip()[:25]}" in said


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str, capsys) -> None:
    assert main([command, "--help"]) == 0
    assert command == "ledger" or f"privspan {command}" in capsys.readouterr().out


@pytest.mark.parametrize("group", [[], ["ledger"]])
def test_the_name_of_a_group_alone_gets_its_help_and_no_error(group: list[str], capsys) -> None:
    assert main(group) == ExitCode.OK
    said = capsys.readouterr()
    assert f"Usage: {' '.join(['privspan', *group])}" in said.out
    assert said.err == ""


def test_help_loads_neither_numpy_nor_anything_heavy() -> None:
    code = "import sys; from privspan.cli import main; main(['--help']); print(*sys.modules, file=sys.stderr)"
    loaded = set(in_process(code).communicate()[1].split())
    assert "typer" in loaded
    assert loaded.isdisjoint({"numpy", "scipy", "sklearn", "pyarrow", "matplotlib", "pandas"})


def test_version_and_python_m() -> None:
    run = subprocess.run([sys.executable, "-m", "privspan", "--version"], capture_output=True, text=True, check=True)
    assert run.stdout == f"privspan {__version__}\n"


def test_the_reference_names_every_command_and_option() -> None:
    page = (ROOT / "docs" / "reference" / "command-line.md").read_text("utf-8")

    def walk(command, path):
        for name, inner in getattr(command, "commands", {}).items():
            yield from walk(inner, f"{path} {name}")
        if path.count(" "):
            yield path, [option for parameter in command.params for option in parameter.opts if option[0] == "-"]

    for path, options in walk(typer.main.get_command(app), "privspan"):
        assert path in page
        for option in set(options) - {"--help", "-h"}:
            assert f"`{option}" in page, f"{path} {option}"
    for code in ExitCode:
        assert f"| {code.value} |" in page


def test_without_typer_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setattr("privspan.cli.find_spec", lambda name: None)
    assert main(["--help"]) == 1
    assert "pip install 'privspan[cli]'" in capsys.readouterr().err


# --- Mistakes --------------------------------------------------------------------------------------------


FIT = ["fit", "people.csv", "--k", "2", *BUDGET, "-o", "out.npz"]


def fit_with(**changes: str | None) -> list[str]:
    """FIT with a file or options replaced, or left out for None."""
    values = {"file": "people.csv", "k": "2", "epsilon": "1", "delta": "1e-6", "output": "out.npz", **changes}
    file = values.pop("file")
    options = [[f"--{name.replace('_', '-')}", value] for name, value in values.items() if value is not None]
    return ["fit", file, *(word for option in options for word in option if word != "")]


MISTAKES = [
    (fit_with(file="peple.csv"), 3, "did you mean 'people.csv'"),
    (fit_with(file="nowhere.parquet"), 3, "there is no file 'nowhere.parquet'"),
    (fit_with(file="people.xlsx"), 3, "convert it to one of"),
    (fit_with(file="words.csv"), 3, "no column of numbers"),
    (fit_with(file="broken.npy"), 3, "broken.npy"),
    (fit_with(k="5"), 2, "at most the number of columns, 4; got 5"),
    (fit_with(k="0"), 2, "for example --k 3; got '0'"),
    (fit_with(k="two"), 2, "a whole number from 1 or a share of the variance below 1 or 'auto'"),
    (fit_with(epsilon="0"), 2, "--epsilon takes a number above 0, for example --epsilon 1; got '0'"),
    (fit_with(epsilon="nan"), 2, "for example --epsilon 1"),
    (fit_with(delta="1"), 2, "--delta takes a number between 0 and 1, for example --delta 1e-6; got '1'"),
    (fit_with(delta=None), 2, "Missing option '--delta'; add for example: --delta 1e-6"),
    (fit_with(output=None), 2, "-o out.npz"),
    (fit_with(output="out.csv"), 2, "ends in .npz, for example -o out.npz"),
    (fit_with(file="a.npz", output="a.npz"), 2, "-o would replace the table itself"),
    (fit_with(output="no/out.npz"), 2, "create it first: mkdir -p no"),
    (fit_with(output="."), 2, "-o takes"),
    (fit_with(columns="hight,weight"), 2, "has no column 'hight'; did you mean 'height'"),
    (fit_with(schema="none.toml"), 3, "schema file 'none.toml' cannot be read"),
    (fit_with(separator="--"), 2, "--separator must be one character"),
    (fit_with(decimal=","), 3, "both between cells and as --decimal; name the --separator"),
    (fit_with(width="0"), 2, "--width takes a whole number from 1"),
    (fit_with(file="people.npy", encoding="latin-1"), 3, "is no CSV file; leave out --separator"),
    (["columns", "people.npy"], 3, "has no column names"),
    (["columns", "people.csv", "-o", "people.json"], 2, "for example -o people.toml"),
    (fit_with(columns="colour"), 2, "it has height, weight, age, [pulse], person_id."),
    (fit_with(file="people.npy", columns="a"), 3, "--columns"),
    (fit_with(method="magic"), 2, "--method takes one of auto, adaptive"),
    (fit_with(method="exact"), 2, "for exact relations: --exact"),
    (fit_with(method="stable", exact=""), 2, "--method takes one of auto, gap-max, votes"),
    (fit_with(exact="", k="auto"), 2, "--exact needs a number: --k 3"),
    (fit_with(exact="", gamma="0.1"), 2, "--gamma does not go with --exact; leave it out"),
    (fit_with(exact="", no_center=""), 2, "--no-center does not go with --exact"),
    (fit_with(decimals="2"), 2, "add --exact, or leave it out"),
    (fit_with(affine=""), 2, "--affine goes with --exact"),
    (fit_with(max_k="3"), 2, "--max-k goes with --k auto"),
    (fit_with(k="auto", max_k="2", file="noise.csv", columns="a,b"), 2, "at most 1 dimension(s)"),
    (fit_with(k="auto", max_k="4"), 2, "at most 3 dimension(s) in 4 columns"),
    (fit_with(file="few.npy", k="auto", method="approximate"), 2, "the table must have at least 14 rows for two"),
    (
        fit_with(exact="", delta="1e-40"),
        2,
        "--delta must be at least 2**-100, or nothing would ever be released; got 1e-40",
    ),
    (fit_with(exact="", decimals="301"), 2, "--decimals takes at most 300; got 301"),
    (fit_with(epsilon="1e-30", delta="1e-40"), 2, "--epsilon must be between 1e-09 and 10000; got 1e-30"),
    (
        fit_with(norm_bound="3"),
        2,
        "--norm-bound is gone: lengths are found privately; what is public of columns goes",
    ),
    (fit_with(scale="", units="age=10"), 2, "--scale measures the scales of the columns, and --units declares them"),
    (
        fit_with(bounds="hight=0:9"),
        2,
        "--bounds names 'hight', but the table has no such column; did you mean 'height'",
    ),
    (fit_with(bounds="colour=0:9"), 2, "it has height, weight, age, [pulse]."),
    (fit_with(bounds="age=9:0"), 2, "--bounds for column 'age' takes low:high, the lower end first, for example"),
    (fit_with(bounds="age=old"), 2, "for example --bounds age=0:120,bmi=10:80; got 'age=old'"),
    (fit_with(bounds="age"), 2, "--bounds takes low:high"),
    (fit_with(bounds="0:9,age=0:5"), 2, "--bounds takes low:high"),
    (fit_with(bounds="age=0:9,age=1:2"), 2, "--bounds for column 'age' is said twice"),
    (fit_with(bounds="none.toml"), 3, "--bounds: the file 'none.toml' cannot be read"),
    (fit_with(units="age=0"), 2, "--units for column 'age' takes a number above 0"),
    (
        fit_with(units="5=1", file="people.npy"),
        2,
        "--units names '5', but the table has no such column; it has 1, 2, 3, 4",
    ),
    (fit_with(around="age=nan"), 2, "--around for column 'age' takes a number, for example --around age=40,bmi=25"),
    (fit_with(around="age=1", no_center=""), 2, "--around gives a centre, and --no-center turns centring off"),
    (fit_with(exact="", scale=""), 2, "--scale does not go with --exact"),
    (fit_with(scale="", scale_by="size"), 2, "--scale-by takes 'ranks' or 'deviations'; got 'size'"),
    (fit_with(scale_by="ranks"), 2, "--scale-by goes with --scale; add it"),
    (fit_with(exact="", robust=""), 2, "--robust does not go with --exact"),
    (fit_with(exact="", bounds="0:9"), 2, "--bounds does not go with --exact"),
    (["plan", "--d", "3", "--k", "2", "--n", "99", *BUDGET, "--scale", "--no-center"], 2, "leave out --no-center"),
    (["plan", "--d", "3", "--k", "2", "--n", "1", *BUDGET], 2, "--n takes at least 2 rows"),
    (fit_with(gamma="1"), 2, "for example --gamma 0.05"),
    (fit_with(report="report.pdf"), 2, "ends in .html, for example --report report.html"),
    (fit_with(limit_epsilon="2"), 2, "add --ledger budget.json"),
    (fit_with(ledger="budget.txt"), 2, "for example --ledger budget.json"),
    (fit_with(file="-", ledger="budget.json"), 2, "add --dataset people"),
    (["fti"], 2, "Did you mean 'fit'?"),
    ([*FIT, "--epsilo", "1"], 2, "No such option: --epsilo"),
    (["plan", "--d", "3", "--k", "4", "--n", "9", *BUDGET], 2, "at most the number of columns, 3; got 4"),
    (["plan", "--d", "3", "--k", "2", *BUDGET], 2, "--n 10000"),
    (["plan", "--d", "3", "--k", "2", "--n", "1.5", *BUDGET], 2, "--n takes a whole number"),
    (["plan", "--d", "3", "--k", "2", "--n", "99", *BUDGET, "--plot", "p.bmp"], 2, "--plot p.png"),
    (["plan", "--d", "3", "--k", "2", *BUDGET, "--error", "0.1", "--exact"], 2, "add --n 100"),
    (["show", "nothing.npz"], 3, "`privspan fit FILE … -o nothing.npz` makes one"),
    (["show", "people.csv"], 3, "Name a file that `privspan fit` wrote"),
    (["show", "."], 3, "is a folder"),
    (["report", "nothing.npz", "-o", "r.html"], 3, "makes one"),
    (["report", "nothing.npz", "-o", "r.pdf"], 2, "ends in .html"),
    (["relations", "a.npz"], 2, "privspan fit FILE --exact"),
    (["compare", "a.npz", "m.npz"], 2, "the two have 4 and 3 columns"),
    (["transform", "a.npz", "money.csv", "-o", "o.csv"], 2, "'money.csv' has no column 'height'"),
    (["transform", "a.npz", "people.csv", "-o", "o.txt"], 2, "for example -o o.csv"),
    (["transform", "a.npz", "people.csv", "-o", "-", "--json"], 2, "leave one out"),
    (["ledger", "show", "nothing.json"], 3, "--ledger nothing.json` begins one"),
    (["ledger", "limit", "budget.json", "--dataset", "x"], 2, "--limit-epsilon 3"),
]


@pytest.mark.parametrize(("arguments", "code", "words"), MISTAKES)
def test_a_mistake_gets_one_sentence_that_says_what_to_type(
    arguments: list[str], code: int, words: str, folder: Path, tables: Path, fitted: Path, capsys
) -> None:
    for name in ("a.npz", "m.npz"):
        (folder / name).symlink_to(fitted / name)
    for name in ("people.xlsx", "broken.npy"):
        (folder / name).symlink_to(tables / "people.csv")
    capsys.readouterr()
    assert main(arguments) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert words in said.err
    assert said.err.count("Error: ") == 1
    assert "Traceback" not in said.err
    assert left_behind(folder) == set()


def test_debug_shows_the_traceback_wherever_it_stands(folder: Path, capsys) -> None:
    for arguments in (["--debug", "show", "nothing.npz"], ["show", "nothing.npz", "--debug"]):
        assert main(arguments) == 3
        assert "Traceback" in capsys.readouterr().err


def test_foreign_messages_are_not_repeated_as_they_may_quote_a_cell(folder: Path, capsys) -> None:
    def explode(*_: object) -> None:
        raise ValueError("could not convert 'Smith' to a number")

    assert main(FIT, steps_but(learn=explode)) == 1
    said = capsys.readouterr().err
    assert "unexpected ValueError; run it again with --debug" in said
    assert "counts as spent" in said
    assert "Smith" not in said


def test_a_missing_package_is_named_before_anything_is_spent(folder: Path) -> None:
    code = "import sys; sys.modules['pyarrow'] = None; from privspan.cli import main; sys.exit(main(sys.argv[1:]))"
    run = in_process(code, *FIT, "--ledger", "budget.json")
    said = run.communicate()[1]
    assert run.returncode == ExitCode.FAILED
    assert "pip install 'privspan[files]'" in said
    assert "Traceback" not in said
    assert Ledger("budget.json").accounts() == {}


WITHOUT_SCIKIT_LEARN = """
    import json, sys
    from privspan.cli import main

    class Blocker:
        def find_spec(self, name, path=None, target=None):
            if name.partition(".")[0] == "sklearn":
                raise ModuleNotFoundError(f"No module named {name!r}", name=name)

    sys.meta_path.insert(0, Blocker())
    assert not [name for name in sys.modules if name.startswith("sklearn")]
    codes = [main(line.split()) for line in sys.argv[1:]]
    print("exit codes", json.dumps(codes))
"""


def test_scikit_learn_is_not_needed(folder: Path) -> None:
    """One process for all the commands: most of what each would take is to start."""
    lines = (
        "fit people.csv --k 2 -o csv.npz --report csv.html",
        "fit people.npy --k auto --seed 1 -o auto.npz",
        "fit people.npy --k 1 --method approximate -o blocks.npz --no-center",
        "fit money.csv --k 2 --exact --decimals 2 -o exact.npz --report exact.html",
        "plan --n 10_000 --d 200 --k 3",
    )
    run = in_process(WITHOUT_SCIKIT_LEARN, *(" ".join([line, *BUDGET]) for line in lines))
    out, said = run.communicate()
    assert run.returncode == 0, said
    codes = json.loads(out.rpartition("exit codes ")[2])
    assert len(codes) == len(lines)
    assert set(codes) <= {ExitCode.OK, ExitCode.ABSTAINED}, said
    abstained = {"blocks.npz", "exact.npz", "exact.html"}  # or not: those two may
    assert left_behind(folder) - abstained == {"csv.npz", "csv.html", "auto.npz"}
    for page in folder.glob("*.html"):
        assert "<!DOCTYPE html>" in page.read_text("utf-8")


def test_nor_for_the_demo_and_the_names_that_have_nothing_to_do_with_it(folder: Path) -> None:
    code = """
        import sys
        from pathlib import Path

        sys.modules["sklearn"] = None
        import privspan as ps
        from privspan import demo

        ps.NotPrivateWarning, ps.AbstentionWarning, ps.private_pca
        demo.tell(Path(), parts=[demo.everyday_pca])
        try:
            ps.PrivatePCA
        except ImportError as missing:
            print(missing)
    """
    run = in_process(code)
    out, said = run.communicate()
    assert run.returncode == 0, said
    assert "pip install 'privspan[sklearn]'" in out
    assert left_behind(folder) == {"households.html"}


# --- plan ------------------------------------------------------------------------------------------------

PLAN = ["plan", "--n", "10_000", "--d", "200", "--k", "3", *BUDGET]


def test_plan_prints_a_table_and_sentences(capsys) -> None:
    assert main(PLAN) == 0
    said = capsys.readouterr()
    assert said.err == ""
    lines = said.out.splitlines()
    assert lines[0] == "10,000 rows, 200 columns, k = 3, (1, 1e-06)-DP, centred; for ideal data"
    (everyday,) = [line.split() for line in lines if line.startswith("everyday ")]
    assert len(everyday) == 5
    assert float(everyday[1]) < 0.05
    assert "Leave --method out (everyday)" in said.out
    assert main([*PLAN, "--no-center"]) == 0
    assert "Leave --method out (auto)" in capsys.readouterr().out
    assert all(line == line.rstrip() for line in lines)


def test_plan_in_json_agrees_with_the_library(capsys) -> None:
    from privspan import plan

    assert main([*PLAN, "--json", "--error", "0.02"]) == 0
    said = json.loads(capsys.readouterr().out)
    wanted = plan(10_000, 200, 3, epsilon=1.0, delta=1e-6, center=True)
    assert (said["method"], said["error"]) == ("everyday", wanted.error)
    assert said["needed_n"]["everyday"] == wanted.alternatives[0].needed_n(0.02)
    assert main([*PLAN, "--json", "--scale"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["error"] == plan(10_000, 200, 3, epsilon=1.0, delta=1e-6, center=True, scale=True).error


@pytest.mark.parametrize("options", [[], ["--scale"], ["--no-center"]])
def test_plan_and_fit_agree(options: list[str], folder: Path, capsys) -> None:
    assert main(["plan", "--n", "3000", "--d", "4", "--k", "2", *BUDGET, *options, "--json"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert main([*FIT, *options, "--json"]) == 0
    made = json.loads(capsys.readouterr().out)["plan"]
    assert (made["method"], made["n"]) == (planned["method"], 3000)
    assert made["error"] == pytest.approx(planned["error"], rel=0.1)


def test_how_many_rows_is_one_flag_and_needs_no_n(capsys) -> None:
    assert main(["plan", "--d", "200", "--k", "3", *BUDGET, "--error", "0.1", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert 500 < said["n"] < 10_000
    assert said["error"] == pytest.approx(0.1, rel=0.02)


def test_plan_draws_a_picture_and_a_page(folder: Path, capsys) -> None:
    assert main([*PLAN, "--plot", "p.png", "--html", "p.html"]) == 0
    assert (folder / "p.png").read_bytes().startswith(b"\x89PNG")
    page = (folder / "p.html").read_text("utf-8")
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace(
        "http://creativecommons.org", ""
    ).replace("https://matplotlib.org", "")
    assert "Leave --method out" in page
    assert main([*PLAN, "--scale", "--plot", "scaled.png"]) == 0  # with sizes at which scales cannot be afforded
    assert left_behind(folder) == {"p.png", "p.html", "scaled.png"}


def test_plan_of_the_exact_case(capsys) -> None:
    assert main(["plan", "--exact", "--n", "60", "--d", "10000", "--k", "3", *BUDGET, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["release_probability"] > 0.999


def test_plan_says_what_such_a_fit_costs_in_a_ledger(folder: Path, capsys) -> None:
    numbers = ["plan", "--n", "1000", "--d", "4", "--k", "2", *BUDGET, "--ledger", "b.json", "--json"]
    page = Ledger("b.json").page("survey", limit_epsilon="3", limit_delta="1e-5")
    with page.spending("1", "1e-6", mu=mu_from_budget(1.0, 1e-6)):
        pass
    assert main(numbers) == 0
    (said,) = json.loads(capsys.readouterr().out)["ledger"]
    assert "'survey' would then have spent together: epsilon 1.33 of 3" in said  # two Gaussian fits, and not 2
    assert "about 6 more fits like the last" in said
    assert main([*numbers, "--exact"]) == 0
    (said,) = json.loads(capsys.readouterr().out)["ledger"]
    assert said.startswith("The ledger would refuse this: ")
    assert len(page.account().entries) == 1  # nothing was written
    assert main([*numbers[:-3], "--dataset", "survey"]) == ExitCode.USAGE


# --- fit -------------------------------------------------------------------------------------------------


def test_fit_writes_a_private_pca_and_tells_about_it(folder: Path, capsys) -> None:
    assert main(FIT) == 0
    said = capsys.readouterr()
    assert "out.npz: 2 of 4 dimensions, through a private mean" in said.out
    assert "(1, 1e-06)-DP, replace-one" in said.out
    lines = said.out.splitlines()
    assert lines[2].startswith("captured   about ")
    assert " %) of the variance that the best 2 would" in lines[2]
    assert lines[3].startswith("stand out  ")
    assert any(line.startswith("planned ") and line.endswith("for ideal data") for line in lines)
    assert any(line.startswith("height ") and " ± " in line for line in lines)
    assert "people.csv, 3,000 rows, 4 columns" in said.out
    assert "Left out (named like an identifier): person_id." in said.err
    assert "A CSV file has no types, so these columns are taken as numbers: height, weight, age, [pulse]." in said.err
    saved = load_release("out.npz")
    assert saved.subspace.names == ("height", "weight", "age", "[pulse]")
    assert saved.release.private
    truth = Subspace.from_spanning(np.array([[3.0, 1.0, 0.0, 0.5], [0.0, 1.0, 2.0, -1.0]]).T)
    assert saved.subspace.distance(truth) < 0.2
    assert left_behind(folder) == {"out.npz"}


def test_fit_scales_and_transform_divides(folder: Path, capsys) -> None:
    assert main([*FIT, "--scale", "--report", "r.html", "--seed", "1"]) == 0
    assert "rank correlations" in (folder / "r.html").read_text("utf-8")
    assert "rank correlations" in capsys.readouterr().out
    assert main(["transform", "out.npz", "people.npy", "-o", "o.npy"]) == 2
    assert "Fit again with --bounds" in capsys.readouterr().err
    Path("bounds.toml").write_text('height = [0, 20]\nweight = [0, 20]\nage = [0, 20]\n"[pulse]" = [0, 20]\n')
    by_deviations = [*FIT, "--scale", "--scale-by", "deviations", "--seed", "1", "-o", "by_deviations.npz"]
    assert main(by_deviations) == 0
    assert load_release("by_deviations.npz").release.parameters["course"] == "deviations"
    assert main([*FIT, "--scale", "--bounds", "bounds.toml", "--seed", "1", "--overwrite"]) == 0
    saved = load_release("out.npz")
    units, mean = saved.release.extras["scale"], saved.release.extras["mean"]
    np.testing.assert_allclose(units, 10.0 / math.sqrt(3.0))
    np.testing.assert_allclose(mean, 10.0)
    assert main(["transform", "out.npz", "people.npy", "-o", "o.npy"]) == 0
    wanted = (np.clip(np.load("people.npy"), 0.0, 20.0) - mean) / units @ saved.subspace.basis
    np.testing.assert_allclose(np.load("o.npy"), wanted, atol=1e-9)


def test_public_numbers_of_columns_reach_the_library(folder: Path, capsys) -> None:
    Path("bounds.toml").write_text('height = [0, 20]\n"[pulse]" = [5.5, 14]\nage = [0, 20]\nweight = [0, 20]\n')
    assert main([*FIT, "--bounds", "bounds.toml", "--seed", "1"]) == 0
    by_file = load_release("out.npz")
    assert list(by_file.release.extras["scale"]) == [10.0, 10.0, 10.0, 4.25]
    typed = "height=0:20,weight=0:20, age = 0:20 ,[pulse]=5.5:14"
    assert main([*FIT, "--bounds", typed, "--seed", "1", "--overwrite"]) == 0
    assert load_release("out.npz").subspace == by_file.subspace
    assert main([*fit_with(file="people.npy", bounds="0:20", output="all.npz")]) == 0
    assert list(load_release("all.npz").release.extras["scale"]) == [10.0] * 4
    units = fit_with(file="people.npy", units="1=3,3=2", around="1=10,2=10,3=10,4=10", output="units.npz")
    assert main(units) == 0
    made = load_release("units.npz").release
    assert list(made.extras["scale"]) == [3.0, 1.0, 2.0, 1.0]
    assert made.parameters["centring"] == "public centre"
    assert main(fit_with(robust="", output="robust.npz")) == 0
    robust = load_release("robust.npz").release
    assert (robust.method[:13], robust.parameters["robust"]) == ("private PCA (", True)


def test_components_are_rotated_where_they_are_shown(fitted: Path, folder: Path, capsys) -> None:
    file = str(fitted / "a.npz")
    assert main(["show", file, "--rotate", "varimax"]) == 0
    assert "largest loadings, rotated by varimax" in capsys.readouterr().out
    assert main(["show", file, "--rotate", "oblimin", "--json"]) == 0
    rotated = json.loads(capsys.readouterr().out)["rotated"]
    assert rotated["criterion"] == "oblimin"
    assert main(["report", file, "--rotate", "varimax", "-o", "turned.html"]) == 0
    assert "Rotated loadings of Factor 1" in Path("turned.html").read_text("utf-8")
    assert main(["show", file, "--rotate", "equamax"]) == 2
    assert "--rotate takes one of varimax, quartimax, promax, oblimin; got 'equamax'" in capsys.readouterr().err


def test_what_a_small_table_cannot_tell_is_said_not_to_be_measured(folder: Path, capsys) -> None:
    np.save("little.npy", np.load("people.npy")[:60])
    assert main(fit_with(file="little.npy")) == 0
    said = capsys.readouterr()
    assert "predicted to be useless" in said.err
    assert "for ideal data" in said.err
    assert "not measured  the mean; the size of the variances, of which only shares are told" in said.out
    assert "private mean" not in said.out
    assert main(["show", "out.npz", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["mean"] is None
    assert [one["noise"] for one in shown["components"]].count(False) == shown["release"]["extras"]["stands_out"]


def test_fit_in_json_writes_nothing_else_to_stdout(folder: Path, capsys) -> None:
    assert main([*FIT, "--columns", "age, height ,weight", "--json", "--seed", "3"]) == 0
    said = capsys.readouterr()
    result = json.loads(said.out)
    assert result["columns"] == ["age", "height", "weight"]
    assert result["release"]["private"] is False
    assert result["release"]["cost"]["epsilon"] == 1.0
    assert len(result["components"]) == 2
    assert "NOT PRIVATE" in said.err
    assert "Left out" not in said.err


def test_a_seed_repeats_a_run(folder: Path, fitted: Path) -> None:
    assert main([*FIT, "--seed", "1"]) == 0
    assert load_release("out.npz").subspace == load_release(fitted / "a.npz").subspace


def test_fit_reads_csv_from_standard_input(folder: Path, monkeypatch, capsys) -> None:
    text = (folder / "people.csv").read_bytes()
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    assert main(fit_with(file="-", ledger="b.json", dataset="people")) == 0
    assert "standard input, 3,000 rows" in capsys.readouterr().out
    assert Ledger("b.json").account("people").spent.epsilon == 1.0


def test_what_a_killed_command_had_read_from_standard_input_goes_with_the_next(
    folder: Path, tmp_path_factory, monkeypatch
) -> None:
    copies = tmp_path_factory.mktemp("copies")
    monkeypatch.setenv("PRIVSPAN_TMPDIR", str(copies))
    text = (folder / "people.csv").read_bytes()
    command = [sys.executable, "-m", "privspan", *fit_with(file="-")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL) as running:
        running.stdin.write(text)
        running.stdin.flush()
        while not (left := list(copies.glob("privspan-copy-*/stdin.csv"))):
            time.sleep(0.01)
        running.kill()
    assert left[0].parent.stat().st_mode & 0o777 == 0o700
    done = subprocess.run(command, input=text, capture_output=True)
    assert (done.returncode, list(copies.iterdir())) == (0, [])
    assert b"Removed a temporary copy of a table that a process had left behind" in done.stderr


SURVEY = "person_id;city;age;income\n" + "".join(f"{i};Ulm;{20 + i % 7},5;{i % 11}\n" for i in range(400))


def test_a_schema_is_drafted_edited_and_used(folder: Path, capsys) -> None:
    Path("survey.csv").write_text(SURVEY)
    written = ["--separator", ";", "--decimal", ","]
    assert main(["columns", "survey.csv", *written]) == 0
    shown = capsys.readouterr().out
    assert "made by looking at the data" in shown
    assert main(["columns", "survey.csv", *written, "-o", "survey.toml"]) == 0
    assert Path("survey.toml").read_text() == shown
    assert main(["columns", "survey.csv", *written, "-o", "survey.toml"]) == ExitCode.USAGE
    assert "exists already" in capsys.readouterr().err
    assert main(fit_with(file="survey.csv", schema="survey.toml", k="1")) == 0
    said = capsys.readouterr()
    assert "survey.csv, 400 rows, 2 columns" in said.out
    assert "Left out (text): city." in said.err
    assert "no types" not in said.err
    named = fit_with(file="survey.csv", schema="survey.toml", columns="age,city", output="other.npz")
    assert main(named) == ExitCode.UNREADABLE
    assert "Column 'city' of 'survey.csv' is not a column of numbers (text)." in capsys.readouterr().err
    assert not Path("other.npz").exists()
    moved = ["transform", "out.npz", "survey.csv", "--schema", "survey.toml", "-o", "-"]
    assert main(moved) == 0
    assert len(capsys.readouterr().out.splitlines()) == 401


def test_what_is_said_of_a_csv_file_does_not_hang_on_its_cells(folder: Path, capsys) -> None:
    said = set()
    for odd in ("1;2;3;4", "x", "", ";;;", '"', "\x00;\x1b[31m;é;,"):
        Path("survey.csv").write_text(SURVEY + odd + "\n")
        assert main(fit_with(file="survey.csv", separator=";", k="1", seed="0")) == 0
        said.add(capsys.readouterr().err)
        Path("out.npz").unlink()
    assert len(said) == 1


def test_fit_without_names_numbers_the_columns(folder: Path, capsys) -> None:
    assert main(fit_with(file="people.npy", no_center="", k="auto")) == 0
    said = capsys.readouterr().out
    assert "column 1" in said
    assert "through a private mean" not in said


def test_a_useless_plan_is_told_before_the_budget_is_spent(folder: Path, capsys) -> None:
    assert main(fit_with(file="noise.csv", epsilon="0.1"), steps_but(learn=interrupt)) == 130
    assert "predicted to be useless" in capsys.readouterr().err


def test_exact_relations_and_their_report(folder: Path, capsys) -> None:
    arguments = fit_with(file="money.csv", exact="", decimals="2", report="report.html")
    assert main(arguments) == 0
    assert "total = rent + food" in capsys.readouterr().out
    assert "total = rent + food" in (folder / "report.html").read_text("utf-8")
    assert main(["show", "out.npz", "--report", "again.html"]) == 0
    assert "total = rent + food" in (folder / "again.html").read_text("utf-8")
    assert main(["report", "out.npz"]) == 0
    assert (folder / "out.html").read_text("utf-8") == (folder / "again.html").read_text("utf-8")
    assert left_behind(folder) == {"out.npz", "report.html", "again.html", "out.html"}


def test_an_abstention_has_an_exit_code_and_costs_the_budget(folder: Path, capsys) -> None:
    assert main(fit_with(file="noise.csv", exact="", ledger="b.json", dataset="x", json="")) == ExitCode.ABSTAINED
    said = capsys.readouterr()
    assert "abstained" in said.err
    result = json.loads(said.out)
    assert result["output"] is None
    assert result["release"]["abstained"] is True
    assert [entry.state for entry in Ledger("b.json").account("x").entries] == ["abstained"]
    assert not (folder / "out.npz").exists()


def test_an_older_result_is_replaced_only_by_a_newer_one(folder: Path) -> None:
    (folder / "out.npz").write_bytes(b"old")
    assert main(FIT) == ExitCode.USAGE
    assert main([*FIT, "--overwrite"], steps_but(learn=interrupt)) == 130
    assert (folder / "out.npz").read_bytes() == b"old"
    assert main([*FIT, "--overwrite"]) == 0
    assert load_release("out.npz").release is not None


def test_a_full_disk_does_not_lose_what_was_paid_for(folder: Path, capsys) -> None:
    def full_at_home(path, *arguments, **options):
        if path.name == "out.npz" and path.parent == Path("."):
            raise OSError(errno.ENOSPC, "No space left on device")
        return Steps().save(path, *arguments, **options)

    spare_folder = partial(tempfile.mkdtemp, prefix="privspan-", dir=folder)
    assert main(FIT, steps_but(save=full_at_home, spare_folder=lambda: Path(spare_folder()))) == ExitCode.FAILED
    said = capsys.readouterr().err
    assert "No space left on device" in said
    (spare,) = folder.glob("privspan-*/out.npz")
    assert repr(str(spare)) in said
    assert load_release(spare).release is not None


def test_a_file_that_cannot_be_written_leaves_nothing_half_written(folder: Path) -> None:
    code = "import sys; from privspan.cli import main; sys.exit(main(sys.argv[1:]))"
    small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))  # noqa: E731
    arguments = fit_with(file="money.csv", exact="", decimals="2")
    run = in_process(code, *arguments, preexec_fn=small, env={**os.environ, "TMPDIR": str(folder)})
    _, said = run.communicate()
    assert run.returncode == ExitCode.FAILED
    assert "File too large" in said
    assert "Traceback" not in said
    assert [path for path in folder.rglob("*") if not path.is_symlink() and path.is_file()] == []


@pytest.mark.parametrize("k", ["3", "auto"])
@pytest.mark.parametrize("center", ["--center", "--no-center"])
def test_what_public_numbers_rule_out_costs_nothing(k: str, center: str, folder: Path, capsys) -> None:
    arguments = fit_with(file="few.npy", k=k, method="approximate", ledger="b.json", limit_epsilon="1")
    assert main([*arguments, center]) == ExitCode.USAGE
    said = capsys.readouterr().err
    assert "Error: the table must have at least" in said
    assert ("got 6. Centring makes one row of every two." in said) == (center == "--center")
    assert "spent" not in said
    assert Ledger("b.json").accounts() == {}


@pytest.mark.parametrize("changes", [{"epsilon": "1e290"}, {"epsilon": "1e-20"}, {"delta": "1e-200"}])
@pytest.mark.parametrize("exact", [{}, {"exact": "", "decimals": "2"}])
def test_a_budget_that_nothing_could_spend_is_refused_before_the_charge(changes, exact, folder, capsys) -> None:
    assert main(fit_with(**changes, **exact, file="money.csv", ledger="b.json")) == ExitCode.USAGE
    assert "must be" in capsys.readouterr().err
    assert not (folder / "b.json").exists()


@pytest.mark.filterwarnings("error::privspan.WeakPrivacyWarning")
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"epsilon": "100"}, "can give the row away"),
        ({"delta": "0.1"}, "publishing one random row would still count as private"),
    ],
)
def test_a_budget_that_promises_little_is_told_of_once(changes, words, folder, capsys) -> None:
    assert main(fit_with(**changes)) == 0
    said = capsys.readouterr().err
    assert said.count("promises little") == 1
    assert words in " ".join(said.split())


# --- The ledger ------------------------------------------------------------------------------------------


def test_ten_fits_at_a_tenth_reach_a_limit_of_one(folder: Path, capsys) -> None:
    spent = []

    def learn(task, table):
        spent.append(Fraction(task._budget()["epsilon"]))
        return task.run(table)

    arguments = fit_with(file="money.csv", exact="", decimals="2", epsilon="0.1", ledger="b.json", limit_epsilon="1")
    codes = [main([*arguments, "--overwrite"], steps_but(learn=learn)) for _ in range(11)]
    assert set(codes[:10]) <= {ExitCode.OK, ExitCode.ABSTAINED}
    assert codes[10] == ExitCode.REFUSED
    assert sum(spent) <= 1  # as real numbers
    assert "Nothing was run and nothing was spent" in capsys.readouterr().err
    name = str((folder / "money.csv").resolve())
    assert Ledger("b.json").account(name).left[0] == 0.0


def test_a_refused_fit_does_not_read_the_table(folder: Path) -> None:
    Ledger("b.json").begin("x", "1", "1e-6", limit_epsilon="1")
    unread = steps_but(open=lambda *_: pytest.fail("the table was opened"))
    assert main(fit_with(ledger="b.json", dataset="x"), unread) == ExitCode.REFUSED


def test_a_fit_cannot_raise_the_limit_and_a_person_can(folder: Path, capsys) -> None:
    Ledger("b.json").begin("x", "1", "1e-6", limit_epsilon="1")
    assert main(fit_with(ledger="b.json", dataset="x", limit_epsilon="5")) == ExitCode.REFUSED
    assert "would raise that" in capsys.readouterr().err
    assert main(["ledger", "limit", "b.json", "--dataset", "x", "--limit-epsilon", "2"]) == 0
    assert "epsilon 1 of 2 (1 left)" in capsys.readouterr().out
    assert main(fit_with(file="money.csv", exact="", decimals="2", ledger="b.json", dataset="x")) == 0


def test_a_damaged_ledger_stops_the_fit(folder: Path, capsys) -> None:
    (folder / "b.json").write_text("{")
    assert main(fit_with(ledger="b.json")) == ExitCode.UNREADABLE
    assert "has not been changed" in capsys.readouterr().err
    assert (folder / "b.json").read_text() == "{"


def test_a_ledger_that_fails_at_the_end_does_not_lose_the_result(folder: Path, capsys) -> None:
    def saved_then_damaged(*about, **options):
        path = Steps().save(*about, **options)
        Path("b.json").rename("kept.json")
        Path("b.json").write_text("no ledger")
        return path

    arguments = fit_with(file="money.csv", exact="", decimals="2", ledger="b.json", dataset="x")
    assert main(arguments, steps_but(save=saved_then_damaged)) == 0
    assert "stays recorded as begun" in capsys.readouterr().err
    assert (folder / "out.npz").exists()
    Path("kept.json").rename("b.json")
    assert Ledger("b.json").account("x").spent.epsilon == 1.0


def test_ledger_show_for_people_and_programs(folder: Path, capsys) -> None:
    Ledger("b.json").begin("a", "0.1", "1e-6", what="PCA", limit_delta="1e-5")
    Ledger("b.json").begin("b", "0.2", "1e-6")
    assert main(["ledger", "show", "b.json"]) == 0
    text = capsys.readouterr().out
    spent = "Spent together: epsilon 0.1 (no limit); delta 1e-06 of 1e-05 (9e-06 left)"
    assert f"{spent}; about 9 more fits like the last." in text
    assert main(["ledger", "show", "b.json", "--dataset", "b", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert list(said) == ["b"]
    assert said["b"]["limit"] == {"epsilon": None, "delta": None}
    assert said["b"]["entries"][0]["state"] == "begun"
    assert main(["ledger", "show", "b.json", "--dataset", "c"]) == ExitCode.USAGE
    assert "it has 'a', 'b'" in capsys.readouterr().err


def test_a_ledger_tells_rows_from_persons(folder: Path, capsys) -> None:
    rows = np.random.default_rng(0).standard_normal((400, 2))
    np.savetxt(
        "visits.csv", np.column_stack([np.arange(400) // 2, rows]), "%d,%.6f,%.6f", header="who,a,b", comments=""
    )
    (folder / "visits.toml").write_text('person = "who"\n')
    options = {"file": "visits.csv", "k": "1", "ledger": "b.json", "dataset": "x"}
    assert main([*fit_with(**options, person="who"), "--overwrite"]) == 0
    assert main([*fit_with(**options, schema="visits.toml"), "--overwrite"]) == 0
    capsys.readouterr()
    assert main([*fit_with(**options), "--overwrite"]) == ExitCode.REFUSED
    assert "are for persons by 'who', and this one is for rows" in capsys.readouterr().err
    assert main(["ledger", "show", "b.json"]) == 0
    assert re.search(r"for one .*\n.* who ", capsys.readouterr().out)
    assert main(["ledger", "show", "b.json", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)["x"]["entries"]
    assert {(entry["neighbours"], entry["unit"]) for entry in entries} == {("replace-one-person", "who")}


# --- Interruptions ---------------------------------------------------------------------------------------

SLOW = """
    import signal, sys, time
    from privspan.cli import _task, main

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a suite that runs in the background ignores it

    def run(task, source):
        print("running", flush=True)
        time.sleep(60)

    _task.Task.run = run
    sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_fit_says_what_was_spent(ending: signal.Signals, folder: Path) -> None:
    run = in_process(SLOW, *fit_with(file="money.csv", exact="", ledger="b.json", dataset="x"))
    assert run.stdout.readline() == "running\n"
    assert [entry.state for entry in Ledger("b.json").account("x").entries] == ["begun"]
    run.send_signal(ending)
    said = run.communicate()[1]
    assert run.returncode == ExitCode.INTERRUPTED
    assert "its budget counts as spent, and the ledger says so" in said
    assert "Traceback" not in said
    assert [entry.state for entry in Ledger("b.json").account("x").entries] == ["interrupted"]
    assert left_behind(folder) <= {"b.json", "b.json.lock"}


def test_an_interruption_while_writing_says_what_was_spent(folder: Path, capsys) -> None:
    arguments = fit_with(file="money.csv", exact="", decimals="2")
    assert main(arguments, steps_but(save=interrupt)) == ExitCode.INTERRUPTED
    assert "its budget counts as spent." in capsys.readouterr().err


def test_an_interruption_before_the_private_step_costs_nothing(folder: Path, capsys) -> None:
    assert main(FIT, steps_but(open=interrupt)) == ExitCode.INTERRUPTED
    assert "nothing was spent" in capsys.readouterr().err


def test_a_closed_pipe_is_no_traceback(tables: Path, fitted: Path) -> None:
    code = "import sys; from privspan.cli import main; sys.exit(main(sys.argv[1:]))"
    with in_process(code, "transform", str(fitted / "a.npz"), str(tables / "people.npy"), "-o", "-") as run:
        run.stdout.readline()
        run.stdout.close()
        said = run.stderr.read()
    assert "Traceback" not in said
    assert "BrokenPipe" not in said


# --- show, relations, compare, transform -----------------------------------------------------------------


def test_show_tells_size_cost_making_and_loadings(fitted: Path, capsys) -> None:
    assert main(["show", str(fitted / "a.npz"), "--loadings", "2"]) == 0
    said = capsys.readouterr().out
    assert "2 of 4 dimensions" in said
    assert "NONE: a seed was given" in said
    assert "private PCA, centred by localised rounds" in said
    assert "captured   about 100.0 % (± less than 0.1 %)" in said
    assert "of the variance (private estimate)" in said
    (first,) = [line for line in said.splitlines() if line.startswith("1 ")]
    assert first.count("±") == 3  # of the variance, and of two loadings
    assert main(["show", str(fitted / "a.npz"), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["subspace"]["dimension"] == 2
    assert shown["plan"]["method"] == "everyday"
    assert shown["release"]["extras"]["captured_variance"] > 0.9
    assert len(shown["release"]["extras"]["mean_std"]) == len(shown["mean"]) == 4
    assert len(shown["components"][0]["loadings"]) == 4
    assert all(0.0 < one["std"] < 0.2 for one in shown["components"][0]["loadings"])


def test_as_many_components_as_columns_hold_all_of_the_variance(folder: Path, capsys) -> None:
    assert main(fit_with(k="4")) == 0
    assert "captured   all of the variance: there are as many components as columns" in capsys.readouterr().out


def test_show_of_a_bare_subspace(folder: Path, capsys) -> None:
    Subspace(np.eye(3, 2)).save("plain.npz")
    assert main(["show", "plain.npz"]) == 0
    assert "this file holds a subspace only" in capsys.readouterr().out
    assert main(["show", "plain.npz", "--report", "r.html"]) == ExitCode.USAGE
    assert main(["report", "plain.npz", "-o", "r.html"]) == ExitCode.USAGE
    assert "no report on it" in capsys.readouterr().err


def test_relations_for_people_and_programs(fitted: Path, capsys) -> None:
    assert main(["relations", str(fitted / "m.npz")]) == 0
    assert capsys.readouterr().out == "total = rent + food\n"
    assert main(["relations", str(fitted / "m.npz"), "--json"]) == 0
    (relation,) = json.loads(capsys.readouterr().out)
    assert relation == {"text": "total = rent + food", "terms": {"rent": 1, "food": 1, "total": -1}, "constant": 0}


@pytest.mark.parametrize(
    ("angle", "words"),
    [
        (0.0, "the same"),
        (0.01, "nearly the same"),
        (0.1, "close"),
        (0.4, "similar"),
        (1.0, "different"),
        (1.57, "at a right angle"),
    ],
)
def test_compare_in_words(angle: float, words: str, folder: Path, capsys) -> None:
    Subspace(np.eye(3, 1)).save("a.npz")
    Subspace(np.array([[np.cos(angle)], [np.sin(angle)], [0.0]])).save("b.npz")
    assert main(["compare", "a.npz", "b.npz"]) == 0
    assert f"a.npz and b.npz: {words}" in capsys.readouterr().out
    assert main(["compare", "a.npz", "b.npz", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["angles_in_degrees"] == pytest.approx([np.degrees(angle)], abs=1e-9)
    assert said["distance"] == pytest.approx(np.sin(angle), abs=1e-12)


def test_compare_refuses_other_columns_and_names_other_dimensions(folder: Path, capsys) -> None:
    Subspace(np.eye(3, 1), names=("a", "b", "c")).save("a.npz")
    Subspace(np.eye(3, 1), names=("a", "c", "b")).save("b.npz")
    Subspace(np.eye(3, 2)).save("c.npz")
    assert main(["compare", "a.npz", "b.npz"]) == ExitCode.USAGE
    assert "same --columns" in capsys.readouterr().err
    assert main(["compare", "a.npz", "c.npz"]) == 0
    assert "of 1 and 2 dimensions" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["o.csv", "o.npy", "o.parquet"])
def test_transform_writes_coordinates_and_warns(name: str, folder: Path, fitted: Path, capsys) -> None:
    assert main(["transform", str(fitted / "a.npz"), "people.csv", "-o", name, "--json"]) == 0
    said = capsys.readouterr()
    assert "not private" in said.err
    assert json.loads(said.out) == {"output": name, "rows": 3000, "columns": 2, "private": False}
    from privspan.rows import open_rows

    rows = np.loadtxt("people.csv", delimiter=",", skiprows=1, usecols=(1, 2, 3, 4))
    wanted = load_release(fitted / "a.npz").subspace.coordinates(rows)
    np.testing.assert_allclose(np.asarray(open_rows(name)), wanted, atol=1e-12)
    assert left_behind(folder) == {name}


def test_a_disk_that_is_full_leaves_no_part_of_the_coordinates(folder: Path, fitted: Path) -> None:
    code = """
        import resource, sys
        from privspan.cli import main

        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        print(*[main([*sys.argv[1:], "--overwrite", "-o", name]) for name in ("o.csv", "o.npy", "o.parquet")])
    """
    (folder / "o.npy").write_bytes(b"old")
    run = in_process(code, "transform", str(fitted / "a.npz"), "people.csv")
    told, said = run.communicate()
    assert told.split() == [str(ExitCode.FAILED.value)] * 3
    assert said.count("Error: File too large") == 3
    assert "Traceback" not in said
    assert (folder / "o.npy").read_bytes() == b"old"
    assert left_behind(folder) == {"o.npy"}


def test_transform_to_stdout_is_csv_with_heads(folder: Path, fitted: Path, capfdbinary) -> None:
    assert main(["transform", str(fitted / "a.npz"), "people.npy", "-o", "-"]) == 0
    lines = capfdbinary.readouterr().out.decode().splitlines()
    assert lines[0] == "component_1,component_2"
    assert len(lines) == 3001


# --- audit, bench, demo ----------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["audit", "bench", "demo"])
def test_a_mistake_in_a_long_command_is_told_in_one_line(command: str, capsys) -> None:
    assert main([command, "--nonsense"]) == ExitCode.USAGE
    (said,) = capsys.readouterr().err.splitlines()
    assert "--nonsense" in said
    assert f"privspan {command} --help" in said


def test_the_runs_of_an_audit_are_those_of_the_library(capsys) -> None:
    from privspan.audit.runner import DEFAULT_RUNS

    assert main(["audit", "--help"]) == 0
    assert f"default: {DEFAULT_RUNS}" in capsys.readouterr().out


def test_without_its_source_bench_says_where_the_benchmarks_are(tmp_path: Path, monkeypatch, capsys) -> None:
    foreign = tmp_path / "benchmarks"  # of another project: never run
    foreign.mkdir()
    (foreign / "__init__.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.split(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr("privspan.cli.bench._CHECKOUT", tmp_path / "lib")
    assert main(["bench", "--quick"]) == ExitCode.FAILED
    (said,) = capsys.readouterr().err.splitlines()
    assert "come with the source" in said


# --- Screens ---------------------------------------------------------------------------------------------


def test_a_terminal_gets_lines_and_colours_and_a_pipe_does_not() -> None:
    code = "import sys; from privspan.cli import main; sys.exit(main(sys.argv[1:]))"
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "80"}
    environment.pop("NO_COLOR", None)
    ours, theirs = pty.openpty()
    subprocess.run([sys.executable, "-c", code, *PLAN], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    screen = b""
    while True:
        try:
            screen += os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not screen.endswith(b"\n") or b"optimistic" in screen:
            break
    assert "─" in screen.decode()
    assert b"\x1b[" in screen
    piped = in_process(code, *PLAN, env=environment).communicate()[0]
    assert "─" not in piped
    assert "\x1b" not in piped


def test_progress_is_silent_for_two_seconds_and_then_speaks(capsys) -> None:
    import time

    with _progress.activity("Short"):
        pass
    assert capsys.readouterr().err == ""
    with _progress.activity("Long", rows=100.0, lines_at=(0.15, 60.0)) as shown:
        shown.advance(50)
        time.sleep(0.5)
    assert capsys.readouterr().err.startswith("Long: 0 s so far")


@pytest.mark.parametrize(
    ("seconds", "done", "said"),
    [
        (10.0, 0, "Work: 10 s so far"),
        (10.0, 50, "Work: 10 s so far, about 10 s left"),
        (10.0, 99, "Work: 10 s so far, nearly done"),
        (300.0, 10, "Work: 5 min 0 s so far, about 45 min 0 s left"),
        (40_000.0, 10, "Work: 11.1 h so far, about 100.0 h left"),
    ],
)
def test_the_time_left_is_told_where_it_is_known(seconds: float, done: int, said: str) -> None:
    now = 0.0
    shown = _progress.Activity("Work", 100.0, clock=lambda: now)
    shown.advance(done)
    now = seconds
    assert shown.describe() == said
    assert _progress.Activity("Work").describe() == "Work: 0 s so far"


def test_rows_are_counted_while_an_algorithm_runs() -> None:
    from privspan import private_subspace
    from privspan._lib.watch import watching_rows

    X = np.random.default_rng(0).normal(size=(500, 4))
    seen: list[int] = []
    with watching_rows(seen.append):
        private_subspace(X, 1, epsilon=1.0, delta=1e-6, method="analyze-gauss", rng=0)
    assert sum(seen) % 500 == 0
    assert sum(seen) >= 500
    counted = len(seen)
    private_subspace(X, 1, epsilon=1.0, delta=1e-6, method="analyze-gauss", rng=0)
    assert len(seen) == counted


def test_people_with_several_rows_are_counted_as_persons(folder: Path, capsys) -> None:
    rng = np.random.default_rng(0)
    ids = rng.permutation(np.repeat(np.arange(1500), 3))
    rows = rng.standard_normal((4500, 3)) * [5, 1, 1]
    write_csv(folder / "visits.csv", ["a", "b", "c", "patient"], np.column_stack([rows, ids]))
    fit = ["fit", "visits.csv", "--k", "1", *BUDGET, "-o", "visits.npz", "--report", "visits.html", "--seed", "1"]
    assert main([*fit, "--person", "patient", "--max-rows", "2"]) == 0
    told = capsys.readouterr().out
    assert "visits.csv, 1,500 persons, 3 columns" in told
    release = Release.load("visits.npz")
    assert release.cost.neighbours == "replace-one-person"
    assert release.parameters["n"] == 1500
    assert release.parameters["max_rows"] == 2
    page = Path("visits.html").read_text("utf-8")
    assert "The number of persons is public" in page
    assert "--person patient --max-rows 2" in page
    assert not re.search("4,?500", told + page)
    assert main(["transform", "visits.npz", "visits.csv", "-o", "scores.csv", "--person", "patient"]) == 0


def test_transform_fills_gaps_with_the_centre_as_the_library_does(folder: Path, capsys) -> None:
    rows = np.random.default_rng(0).normal(size=(2_000, 3)) * [3.0, 1.0, 1.0] + 5.0
    with pytest.warns(NotPrivateWarning):
        model = PrivatePCA(1, epsilon=1.0, delta=1e-6, units={0: 2.0}, random_state=0).fit(rows)
    model.release_.save("centred.npz")
    rows[4, 1] = np.nan
    np.save("gappy.npy", rows)
    assert main(["transform", "centred.npz", "gappy.npy", "-o", "scores.npy"]) == 0
    np.testing.assert_allclose(np.load("scores.npy"), model.transform(rows), atol=1e-9)
    assert np.isfinite(np.load("scores.npy")).all()


def test_a_plan_takes_the_bounds_that_it_asks_for(capsys) -> None:
    plan = ["plan", "-n", "60", "-d", "4", "-k", "1", *BUDGET, "--scale"]
    assert main(plan) == 0
    assert "will need public `bounds=`" in " ".join(capsys.readouterr().out.split())
    assert main([*plan, "--bounds", "age=0:120"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "will use the public bounds" in said
    assert "will need" not in said


def test_a_report_says_who_what_for_and_what_is_spent_and_its_command_runs_again(folder: Path, capsys) -> None:
    rng = np.random.default_rng(0)
    write_csv(folder / "visits.csv", ["a", "b", "c", "name"], rng.standard_normal((900, 4)))
    (folder / "s.toml").write_text('[columns]\na = "number"\nb = "number"\nc = "number"\nname = "text"\n')
    about = ["--by", "Office", "--purpose", "year book", "--reviewed-by", "A. Reader"]
    command = ["fit", "visits.csv", "--k", "1", *BUDGET, "--schema", "s.toml", "--bounds", "a=-9:9", *about]
    command += ["--ledger", "budget.json", "--dataset", "visits"]
    assert main([*command, "-o", "one.npz", "--report", "one.html"]) == 0
    page = html.unescape(Path("one.html").read_text("utf-8"))
    for said in ("Office", "year book", "A. Reader", "name (", "a -9 to 9", 'name = "text"', "visits"):
        assert said in page, said
    assert "not recorded: no ledger" not in page
    again = shlex.split(re.search(r"privspan fit [^<]+", page).group())[1:]
    for old, new in (("one.npz", "two.npz"), ("one.html", "two.html")):
        again[again.index(old)] = new
    assert main(again) == 0
    assert Path("two.npz").exists()
    capsys.readouterr()


def test_a_column_of_text_in_a_csv_has_no_mean(folder: Path, capsys) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{age:.2f},{bmi:.2f},aspirin" for age, bmi in rng.standard_normal((4_000, 2))]
    (folder / "people.csv").write_text("\n".join(["age,bmi,rx", *lines]))
    assert (
        main(["fit", "people.csv", "--k", "1", *BUDGET, "--columns", "age,bmi,rx", "--seed", "1", "-o", "out.npz"])
        == 0
    )
    said = capsys.readouterr().out
    assert "Hardly any cell holds a number in: rx." in " ".join(said.split())
    assert re.search(r"^rx +not known", said, re.MULTILINE)
