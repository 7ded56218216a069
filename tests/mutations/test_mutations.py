"""The list of mutations fits the code as it is, so that `make mutate` never asks about what is not there."""

import ast
from collections import Counter
from functools import cache

import pytest
from mutate import PACKAGE, ROOT, listed

MUTATIONS = listed()
ROOMS = {"rows", "sums", "stable", "blocks", "exact", "privacy", "ledger", "pca"}
ROOMS |= {"baselines", "estimators", "subspace", "_lib", "planner", "report", "cli", "standard"}


@cache
def functions_of(file):
    """Names of the tests in a file."""
    tree = ast.parse((ROOT / file).read_text("utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize("mutation", MUTATIONS, ids=[one.fault for one in MUTATIONS])
def test_the_text_stands_in_the_file_once_and_the_tests_exist(mutation):
    text = (ROOT / PACKAGE / mutation.file).read_text("utf-8")
    ast.parse(mutation.mutated(text))  # a file that cannot be read would fail any test
    assert mutation.old != mutation.new
    assert mutation.tests
    for test in mutation.tests:
        file, _, name = test.partition("::")
        assert name.partition("[")[0] in functions_of(file), test


def test_there_are_sixty_in_all_rooms_and_none_twice():
    assert len(MUTATIONS) >= 60
    assert {mutation.file.partition("/")[0] for mutation in MUTATIONS} >= ROOMS
    for told in ([one.fault for one in MUTATIONS], [(one.file, one.old, one.new) for one in MUTATIONS]):
        assert max(Counter(told).values()) == 1
