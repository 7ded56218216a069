"""Refusals are templates, told in the words of whoever reads them; nothing else is shown."""

import ast
import copy
import inspect
import pickle
import string
from pathlib import Path

import numpy as np
import pytest

import privspan
from privspan._lib.errors import (
    MissingPackageError,
    Parameter,
    ParameterError,
    ParameterTypeError,
    PrivspanError,
    in_functions,
)
from privspan.cli import browser
from privspan.cli._run import in_flags
from privspan.estimators import PrivatePCA
from privspan.exact.exact import _OPTIONS as exact_settings
from privspan.ledger import LockedLedgerError, OverspendError
from privspan.rows import UnreadableFileError

PACKAGE = Path(privspan.__file__).parent
REFUSALS = {
    cls.__name__
    for cls in (
        ParameterError,
        ParameterTypeError,
        MissingPackageError,
        UnreadableFileError,
        OverspendError,
        LockedLedgerError,
    )
} | {"DamagedLedgerError"}

# Raised where a caller of this package catches them all and says something else.
CAUGHT_INSIDE = {"_lib/archive.py", "_lib/strict_json.py", "app/answers.py", "ledger/written.py", "rows/arrays.py"}

# Named in refusals, and a parameter of no public function: of values and steps inside, or an option of a command.
INSIDE = {
    "basis", "bits", "bound", "coefficients", "cost", "delta_rest", "exact", "form", "generator", "grid", "max_bits",
    "mus", "name", "neighbours", "numerator", "offset", "operations", "other", "parts", "person", "plan", "private",
    "release", "sigma", "split", "units", "values", "vectors", "weights", "with_mean",
}  # fmt: skip


def raises():
    """Yield (path, call) for everything that is called by its name in the sources."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                yield path.relative_to(PACKAGE).as_posix(), node


def assignments(path):
    """Return the statements of a file that give `template` a value, from top to bottom."""
    nodes = ast.walk(ast.parse((PACKAGE / path).read_text("utf-8")))
    found = [node for node in nodes if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)]
    named = [node for node in found if node.targets[0].id == "template"]
    return sorted(named, key=lambda node: node.lineno)


def refusals():
    """Yield (place, template, facts) for every refusal; a template may have a line of its own, just above."""
    for path, call in raises():
        if call.func.id not in REFUSALS or not call.args:
            continue
        template = call.args[0]
        if isinstance(template, ast.Name) and template.id == "template":
            above = [line for line in assignments(path) if line.end_lineno < call.lineno]
            template = above[-1].value
        yield f"{path}:{call.lineno}", template, {keyword.arg for keyword in call.keywords}


def test_a_refusal_is_of_the_class_that_may_be_shown():
    plain = {
        f"{path}:{call.lineno}"
        for path, call in raises()
        if call.func.id in ("ValueError", "TypeError", "ImportError") and path not in CAUGHT_INSIDE
    }
    assert plain == set()


def parameters():
    """Return the names of the parameters of everything public."""
    rooms = [privspan, privspan.plot, privspan.baselines, privspan.datasets, privspan.rows, privspan.report]
    rooms += [privspan.privacy, privspan.ledger, privspan.estimators, privspan.audit]
    found = set(INSIDE)
    for room in rooms:
        for name in room.__all__:
            public = getattr(room, name)
            if not callable(public):
                continue
            made = [public, *(method for _, method in inspect.getmembers(public, inspect.isfunction))]
            for each in made:
                try:
                    found |= set(inspect.signature(each).parameters)
                except ValueError:
                    continue
    found |= set(exact_settings) | set(inspect.signature(browser.app).parameters)
    return found | {"columns", "width", "separator", "decimal", "encoding", "quoted_newlines", "categories"}


def test_a_template_names_its_facts_and_parameters_that_exist():
    known, unknown = parameters(), []
    for place, template, facts in refusals():
        fields = {field for _, field, _, _ in string.Formatter().parse(template.value) if field is not None}
        unknown += [f"{place} {name}" for name in fields - facts - known]
        unknown += [f"{place} {name} is not told" for name in facts - fields]
    assert unknown == []


def test_templates_are_literals():
    """An f-string would read what is in braces in a name as a parameter."""
    assert [place for place, template, _ in refusals() if not isinstance(template, ast.Constant)] == []


def test_one_refusal_in_three_vocabularies():
    refusal = ParameterError('{max_components} must be given only with {k:"auto"} or {scale:True}; got {got}.', got=3)
    assert str(refusal) == '`max_components` must be given only with `k="auto"` or `scale=True`; got 3.'
    assert refusal.told(in_flags) == "--max-k must be given only with --k auto or --scale; got 3."
    assert repr(refusal) == f"ParameterError({str(refusal)!r})"


def test_facts_are_taken_at_their_word():
    refusal = ParameterError("{name} must name columns; got {key!r}.", name=Parameter("bounds"), key="{k} `k` {")
    assert refusal.told(in_flags) == "--bounds must name columns; got '{k} `k` {'."


def test_a_refusal_within_another_speaks_the_same_words():
    inner = ParameterError("{k} must be at most 3.")
    outer = ParameterError("For a part: {error}", error=inner)
    assert outer.told(in_flags) == "For a part: --k must be at most 3."
    assert outer.told(in_functions) == "For a part: `k` must be at most 3."


@pytest.mark.parametrize("kind", [ParameterError, ParameterTypeError, MissingPackageError, LockedLedgerError])
def test_refusals_travel(kind):
    refusal = kind("{k} must be {what}.", what="even")
    for same in (pickle.loads(pickle.dumps(refusal)), copy.copy(refusal)):
        assert type(same) is kind
        assert isinstance(same, PrivspanError)
        assert str(same) == "`k` must be even."


def test_estimators_speak_of_their_own_parameters():
    rows = np.zeros((50, 4))
    with pytest.raises(ParameterError, match=r"^`n_components` must be at most 4, .*; got 5\.$") as refused:
        PrivatePCA(5, epsilon=1.0, delta=1e-6).fit(rows)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
