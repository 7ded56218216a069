"""Print a constraint for every requirement of the package: the oldest version that pyproject.toml allows.

Of a version like 2.0 the newest patch is taken: a first patch is often not to be had any more.
"""

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def oldest() -> dict[str, str]:
    """Return the lower bound of every requirement, extras included."""
    project = tomllib.loads(PROJECT.read_text("utf-8"))["project"]
    lists = [project["dependencies"], *project["optional-dependencies"].values()]
    bounds = (re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)", one) for several in lists for one in several)
    return {bound[1]: bound[2] for bound in bounds if bound is not None}


if __name__ == "__main__":
    for name, version in sorted(oldest().items()):
        print(f"{name}=={version}" if version.count(".") >= 2 else f"{name}=={version}.*")
