"""Run the README's first example as printed, and keep its picture for the README and the site.

Run ``python benchmarks/scripts/first_picture.py``: it prints what the example prints and how long it took, picture
included, and replaces ``docs/_static/couples.png``. The noise is drawn afresh each time; ``--quick`` keeps the old
picture, and ``--others`` fits ten times more and tells how far these lie from the first, in its error bars.
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

ROOT = Path(__file__).parents[2]
PICTURE = "couples.png"


def first_example() -> str:
    """Return the first block of Python of the README."""
    return re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL).group(1)


def others(times: int = 10) -> None:
    """Print how far loadings and shares of other fits lie from the first, in errors of a difference."""
    os.environ["MPLBACKEND"] = "Agg"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        example: dict[str, Any] = {}
        exec(first_example(), example)
    models = [clone(example["model"]).fit(example["couples"]) for _ in range(times)]
    for what, error in (("components_", "components_std_"), ("explained_variance_", "explained_variance_std_")):
        first, std = getattr(example["model"], what), getattr(example["model"], error)
        away = np.array([np.abs(getattr(model, what) - first) for model in models]) / std / math.sqrt(2.0)
        within = [float((away < errors).mean()) for errors in (1.0, 2.0)]
        print(f"{what}: within one error {within[0]:.0%}, within two {within[1]:.0%}; furthest {away.max():.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="run it, and leave the stored picture alone")
    parser.add_argument("--others", action="store_true", help="compare ten other fits with its error bars")
    arguments = parser.parse_args()
    if arguments.others:
        others()
        return
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        subprocess.run([sys.executable, "-c", first_example()], cwd=folder, env=environment, check=True)
        print(f"{time.perf_counter() - start:.1f} seconds")
        if not arguments.quick:
            shutil.copyfile(Path(folder) / PICTURE, ROOT / "docs" / "_static" / PICTURE)


if __name__ == "__main__":
    main()
