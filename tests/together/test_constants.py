"""Numbers of a module are of three kinds: of a proof, of the machine, and tuned; the last are fields of a tuning.

Tuned numbers, and machine numbers that a test may want smaller, are fields of frozen dataclasses (`EverydayTuning`,
`Limits`), with unit and reason, and are passed on: a test passes others and patches nothing.
"""

import ast
import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "privspan"

SHOWING = ("audit", "cli", "datasets", "demo", "plot", "report")
"""Rooms that show, try out or make up tables: their numbers are sizes on a screen, words and examples."""

KINDS = r"""(?x)\b(?:
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
        numbers = [part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)]
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
    assert len(without_a_kind()) <= 113, without_a_kind()
