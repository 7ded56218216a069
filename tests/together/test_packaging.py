"""What the package promises about itself: light imports, docstrings, proof notes linked both ways."""

import importlib.metadata
import inspect
import re
import statistics
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from public_functions import FUNCTIONS, SPENDING

import privspan

ROOT = Path(__file__).parents[2]
EXPLANATION = ROOT / "docs" / "explanation"
LOADED_LATE = {
    "dask",
    "dp_accounting",
    "jinja2",
    "matplotlib",
    "pandas",
    "pyarrow",
    "rich",
    "sklearn",
    "starlette",
    "typer",
}

PUBLIC = {name: value for name in privspan.__all__ if callable(value := getattr(privspan, name))}


def python(code: str) -> str:
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.strip()


def seconds_to_import(module: str) -> float:
    clock = "time.perf_counter()"
    return float(python(f"import time; start = {clock}; import {module}; print({clock} - start)"))


# --- Imports ---------------------------------------------------------------------------------------------


def test_import_takes_less_than_half_a_second_more_than_numpy() -> None:
    # Both are timed in turns, so that a busy machine slows them alike.
    pairs = [(seconds_to_import("numpy"), seconds_to_import("privspan")) for _ in range(5)]
    numpy_seconds, privspan_seconds = (statistics.median(column) for column in zip(*pairs, strict=True))
    assert privspan_seconds < numpy_seconds + 0.5


def test_import_loads_no_optional_package() -> None:
    loaded = python("import sys, privspan; print(*sorted({name.split('.')[0] for name in sys.modules}))")
    assert "privspan" in loaded.split()
    assert LOADED_LATE.isdisjoint(loaded.split())


def test_names_outside_all_are_refused() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        privspan.no_such_name  # noqa: B018


# --- The built package -----------------------------------------------------------------------------------


def test_version_is_the_installed_one() -> None:
    assert privspan.__version__ == importlib.metadata.version("privspan")


def test_the_wheel_is_typed_licensed_and_holds_nothing_else(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    assert {"privspan/py.typed", "privspan/report/page.html", "privspan/report/style.css"} <= set(names)
    assert {"privspan/app/templates/base.html", "privspan/app/static/app.js", "privspan/app/static/app.css"} <= set(
        names
    )
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert all(name.startswith(("privspan/", "privspan-")) for name in names)
    parts = {part for name in names for part in name.split("/")}
    assert parts.isdisjoint({"bench", "benchmarks", "suites", "scripts", "results", "tests", "conftest.py"})
    assert not [part for part in parts if part.startswith("test_")]


# --- Docstrings and the reference ------------------------------------------------------------------------


@pytest.mark.parametrize("name", PUBLIC)
def test_public_callables_and_their_methods_have_docstrings(name: str) -> None:
    value = PUBLIC[name]
    assert inspect.getdoc(value)
    if inspect.isclass(value):
        undocumented = [
            attribute
            for attribute, member in vars(value).items()
            if not attribute.startswith("_")
            and (inspect.isfunction(member) or isinstance(member, (property, classmethod)))
            and not inspect.getdoc(getattr(value, attribute))
        ]
        assert undocumented == []


def test_the_reference_lists_every_public_name() -> None:
    reference = "\n".join(page.read_text("utf-8") for page in (ROOT / "docs" / "reference").glob("*.md"))
    missing = [name for name in PUBLIC if not re.search(rf"::\s+privspan\.{name}\b", reference)]
    assert missing == []


# --- Guarantees and their proofs -------------------------------------------------------------------------


def has_guarantee(value: object) -> bool:
    return re.search(r"^Guarantee\n-{9}$", inspect.getdoc(value) or "", re.MULTILINE) is not None


PRIVATE = {name: value for name, value in FUNCTIONS.items() if has_guarantee(value)}


def test_there_are_private_functions_to_check() -> None:
    assert "exact_subspace" in {name.rsplit(".", 1)[-1] for name in PRIVATE}


def test_whatever_spends_epsilon_with_randomness_states_its_guarantee() -> None:
    assert SPENDING - set(PRIVATE) == set()


@pytest.mark.parametrize("name", PRIVATE)
def test_a_guarantee_and_its_proof_name_each_other(name: str) -> None:
    pages = re.findall(r"explanation/([\w-]+)", inspect.getdoc(PRIVATE[name]) or "")
    assert pages, f"{name} names no page of docs/explanation in its docstring"
    short_name = name.rsplit(".", 1)[-1]
    for page in pages:
        proof = EXPLANATION / f"{page}.md"
        assert proof.exists(), f"{name} names docs/explanation/{page}.md, which does not exist"
        text = proof.read_text("utf-8")
        assert re.search(rf"\b{short_name}\b", text), f"docs/explanation/{page}.md does not name {short_name}"
