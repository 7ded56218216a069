"""Numbers of a module are of three kinds: of a proof, of the machine, and tuned; the last are fields of a tuning.

Tuned numbers, and machine numbers that a test may want smaller, are fields of frozen dataclasses (`EverydayTuning`,
`Limits`), with unit and reason, and are passed on: a test passes others and patches nothing.
"""

import ast
import dataclasses
import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "privspan"

SHOWING = ("app", "audit", "cli", "datasets", "demo", "plot", "report")
"""Rooms that show, try out or make up tables: their numbers are sizes on a screen, words and examples."""

VALUES = ("Method", "AdaptiveTuning")
"""Classes whose fields say of what kind their numbers are."""

KINDS = r"""(?xi)\b(?:
    lemma|theorem|proof|prove[ds]?|docs/explanation|exact(?:ly)?|bound(?:s|ed)?|delta|chance  # of a proof
    |collisions|charged
    |float64|float32|rounding|roundoff|underflows?|overflows?|bits?  # of arithmetic
    |bytes?|memory|cache|entries|at\ a\ time|seconds|time  # of the machine
    |shown|card|message|notebook|characters|digits|letters|format  # of what is told
)\b"""


def constants(path: Path) -> list[tuple[str, str]]:
    """Return names of numbers that a module gives itself, and the words beside them."""
    text = path.read_text("utf-8")
    lines, body, found = text.split("\n"), ast.parse(text).body, []
    for at, node in enumerate(body):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        target = node.targets[0] if isinstance(node, ast.Assign) else node.target
        if isinstance(node.value, ast.Call) and "cache" in ast.unparse(node.value):  # how much is kept, of no result
            continue
        if isinstance(node.value, ast.Call) and ast.unparse(node.value.func) in VALUES:  # their fields are told there
            continue
        numbers = [part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
        if any(isinstance(number, str) for number in numbers):  # words, names and formats, with numbers among them
            continue
        if not any(isinstance(number, int | float) and number not in (0, 1) for number in numbers):
            continue
        above, first = [], node.lineno - 2
        while lines[first].startswith("#"):
            above.append(lines[first])
            first -= 1
        beside = [line.partition("#")[2] for line in lines[node.lineno - 1 : node.end_lineno]]
        after = body[at + 1] if at + 1 < len(body) else None
        if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            beside.append(str(after.value.value))
        name = ast.unparse(target)
        found.append((name, " ".join([name.lower().replace("_", " "), *above, *beside])))
    return found


def without_a_kind() -> list[str]:
    return [
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0].removesuffix(".py") not in SHOWING
        for name, words in constants(path)
        if not re.search(KINDS, words)
    ]


def test_a_number_of_a_module_says_of_which_kind_it_is():
    assert without_a_kind() == []


def numbers_in_expressions() -> dict[str, int]:
    """Return how many numbers other than 0, 1, 2 and 1/2 stand in functions of a module, on lines without words."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.relative_to(PACKAGE).parts[0].removesuffix(".py") in SHOWING:
            continue
        text = path.read_text("utf-8")
        lines, at = text.split("\n"), set[tuple[int, int]]()
        for function in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)):
            for part in (part for line in function.body for part in ast.walk(line)):
                number = part.value if isinstance(part, ast.Constant) and type(part.value) in (int, float) else 0
                if number not in (0, 1, 2, 0.5) and "#" not in lines[part.lineno - 1]:
                    at.add((part.lineno, part.col_offset))
        found[str(path.relative_to(PACKAGE))] = len(at)
    return found


def test_few_numbers_in_expressions_lack_a_name():
    found = numbers_in_expressions()
    assert sum(found.values()) <= 456, sorted(found.items(), key=lambda one: -one[1])[:20]


# ---- Tunings -------------------------------------------------------------------------------------------------------

TUNINGS = [
    pytest.param(path, node, id=node.name)
    for path in sorted(PACKAGE.rglob("*.py"))
    for node in ast.parse(path.read_text("utf-8")).body
    if isinstance(node, ast.ClassDef) and node.name.endswith("Tuning")
]


@pytest.mark.parametrize(("path", "node"), TUNINGS)
def test_a_tuning_says_what_fitted_it_and_each_field_why(path, node):
    text = path.read_text("utf-8")
    told, lines = " ".join(str(ast.get_docstring(part)) for part in (ast.parse(text), node)), text.split("\n")
    scripts = re.findall(r"benchmarks/scripts/\w+\.py", " ".join(told.split()))
    assert all((ROOT / script).exists() for script in scripts)
    assert scripts or re.search(r"\b(?:by hand|docs/explanation/\S+\.md)", told), "neither a script nor a page"
    fields = [part for part in node.body if isinstance(part, ast.AnnAssign)]
    silent = [ast.unparse(part.target) for part in fields if "#" not in lines[part.end_lineno - 1]]
    assert silent == [], "fields without a reason"
    module = importlib.import_module(".".join(("privspan", *path.relative_to(PACKAGE).with_suffix("").parts)))
    assert dataclasses.fields(getattr(module, node.name))
    assert getattr(module, node.name).__dataclass_params__.frozen
