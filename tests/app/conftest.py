"""Visitors of the app: at its first page, and before the last button."""

import sys
from pathlib import Path

import numpy as np
import pytest
from app_pages import SLOW, Visitor, desk_in


@pytest.fixture
def visitor(tmp_path: Path) -> Visitor:
    return Visitor(desk_in(tmp_path))


@pytest.fixture
def small(visitor: Visitor) -> Visitor:
    """A visitor with a small table, whose columns are declared."""
    (visitor.desk.folder.root / "a.csv").write_text("x,y\n" + "1,2\n" * 500)
    visitor.to_columns("a.csv")
    visitor.send("/columns")
    return visitor


@pytest.fixture
def slow(tmp_path: Path) -> Visitor:
    """A visitor before the last button, whose release takes a minute once its budget is spent."""
    (tmp_path / "slow.py").write_text(SLOW)
    (tmp_path / "a.csv").write_text("x,y\n" + "1,2\n" * 500)
    visitor = Visitor(desk_in(tmp_path, program=(sys.executable, str(tmp_path / "slow.py"))))
    visitor.to_confirm("a.csv")
    return visitor


@pytest.fixture(scope="module")
def wide(tmp_path_factory) -> Visitor:
    """A visitor who has made a release of 199 columns at epsilon 3, with a limit of 4."""
    folder = tmp_path_factory.mktemp("wide")
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(1_500, 3)) @ rng.normal(size=(3, 200)) + 0.3 * rng.normal(size=(1_500, 200))
    head = ",".join(["person_id", *(f"q{i}" for i in range(199))])
    np.savetxt(folder / "wide.csv", rows, delimiter=",", header=head, comments="", fmt="%.4f")
    visitor = Visitor(desk_in(folder))
    visitor.to_columns("wide.csv")
    visitor.send("/columns", low_AT_5="-10", high_AT_5="10")
    visitor.send("/question", k="3", scale="no", purpose="A test, in one sentence")
    visitor.send("/budget", epsilon="3", limit_epsilon="4", limit_delta="1e-5")
    visitor.send("/confirm")
    visitor.wait("release-1")
    return visitor
