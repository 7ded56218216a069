"""The page that shows the way through the code names what is there, and the house keeps its size."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "privspan"
PAGE = (ROOT / "docs" / "explanation" / "code-layout.md").read_text("utf-8")


def test_every_room_is_on_the_page():
    table = PAGE.split("## The rooms")[1].split("## Five walks")[0]
    named = set(
        re.findall(r"`(\w+)`", " ".join(line.split("|")[1] for line in table.splitlines() if line.startswith("| `")))
    )
    rooms = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists()}
    modules = {path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")}
    assert named == rooms | modules


def test_every_file_that_the_page_names_is_there():
    files = set(re.findall(r"`((?:\w+/)+\w+\.py|\w+\.py)`", PAGE))
    assert len(files) > 20
    assert [name for name in files if not any((place / name).exists() for place in (PACKAGE, ROOT))] == []


def test_few_rooms_and_fewer_modules_outside_of_them():
    assert len(list(PACKAGE.glob("*.py"))) <= 6
    assert len([path for path in PACKAGE.iterdir() if path.is_dir() and path.name != "__pycache__"]) <= 21


# ---- Gates: numbers that may only fall -----------------------------------------------------------------------------

TRACE = """
import os, sys, warnings
import numpy as np
import privspan as ps
warnings.simplefilter("ignore")
X = np.random.default_rng(0).normal(size=(2000, 12)) * np.linspace(3.0, 0.5, 12)
root, seen, deepest = os.path.dirname(ps.__file__), set(), 0

def fit():
    ps.PrivatePCA(3, epsilon=1.0, delta=1e-6, random_state=0).fit(X)

def called(frame, event, argument):
    global deepest
    code = frame.f_code
    if event == "call" and code.co_filename.startswith(root):
        seen.add((code.co_filename, code.co_qualname))
        depth = 0
        while frame is not None:
            depth, frame = depth + frame.f_code.co_filename.startswith(root), frame.f_back
        deepest = max(deepest, depth)

fit()  # what is done once in a process is no station
sys.setprofile(called)
fit()
sys.setprofile(None)
print(len({file for file, _ in seen}), len(seen), deepest)
"""

KINDS = r"""\b(?:
    RowSource|\w*Table|GatheredRows|EncodedRows|Rows|UnitRows|PartRows|PartitionedRows|CentredSparseRows
    |SingleShiftedRows|CentredPiece|RowValues|PersonValues|PartitionedSums
)\b"""


def sources(folder: Path) -> dict[str, str]:
    return {path.relative_to(folder).as_posix(): path.read_text("utf-8") for path in sorted(folder.rglob("*.py"))}


def test_a_plain_fit_comes_by_few_stations():
    run = subprocess.run([sys.executable, "-c", TRACE], capture_output=True, text=True)
    files, functions, depth = map(int, run.stdout.split())
    assert (files <= 36, functions <= 258, depth <= 18) == (True, True, True), (files, functions, depth)


def test_kinds_of_tables_are_told_apart_in_their_room():
    outside = {name: text for name, text in sources(PACKAGE).items() if not name.startswith("rows/")}
    asked = [
        f"{name}: {found[0]}"
        for name, text in outside.items()
        for found in re.finditer(r"isinstance\([^()]*,[^()]*\)", text)
        if re.search(KINDS, found[0].split(",", 1)[1], re.VERBOSE)
    ]
    assert asked == []


def test_few_tests_patch_the_code():
    text = "".join(sources(ROOT / "tests").values())
    assert text.count("monkeypatch.setattr" + "(") <= 63


def test_few_types_are_anything():
    assert len(re.findall(r"\bAny\b", "".join(sources(PACKAGE).values()))) <= 430


def test_the_house_does_not_grow():
    assert sum(text.count("\n") for text in sources(PACKAGE).values()) <= 49036


def modules_without_tests() -> list[str]:
    """Modules of rooms without a file of tests of their own name in the room that mirrors theirs."""
    modules = [PACKAGE / name for name, text in sources(PACKAGE).items() if "def " in text]
    modules = [path.relative_to(PACKAGE) for path in modules if not path.stem.startswith("__")]
    tests = {path.relative_to(ROOT / "tests").as_posix() for path in (ROOT / "tests").rglob("test_*.py")}
    room = {path: path.parts[0] if len(path.parts) > 1 else "together" for path in modules}
    return sorted(str(path) for path in modules if f"{room[path]}/test_{path.stem.lstrip('_')}.py" not in tests)


def test_tests_mirror_modules():
    assert len(modules_without_tests()) <= 184, modules_without_tests()


# ---- Nothing works behind the reader's back ------------------------------------------------------------------------

BEHIND = {
    r"\bsys\.meta_path\b": "imports that a hook answers",
    r"\bContextVar\b": "state that no signature shows",
    r"\bco_code\b|\bf_lasti\b|\bimport dis\b|\bopcode\b": "bytecode",
    r"\bre\.\w+\([^\n]*(?:str\((?:error|failure|refusal)|\.args\b|message)": "messages that are read",
}


@pytest.mark.parametrize("pattern", BEHIND, ids=BEHIND.values())
def test_nothing_works_behind_the_readers_back(pattern):
    assert [name for name, text in sources(PACKAGE).items() if re.search(pattern, text)] == []


def test_modules_that_are_imported_by_name_are_of_rooms_below():
    """`make lint` checks imports that are written as such; only the package itself hands in rooms above others."""
    by_name, whole = set(), set()
    for name, text in sources(PACKAGE).items():
        by_name |= {f"{name}: {given}" for given in re.findall(r"import_module[(,] ?f?.privspan\.([\w.{}]+)", text)}
        whole |= {name for _ in re.finditer(r"^ *import privspan\b", text, re.MULTILINE)}  # all rooms at once
    handed_in = {f"__init__.py: {room}" for room in ("ledger", "ledger.release_file", "backends.dask_tables")}
    assert by_name == {"__init__.py: {name}", "rows/files/opening.py: rows.files.{module}"} | handed_in
    assert whole == {"app/commands.py", "cli/bench.py", "demo.py"}  # the first in a program that it writes
