"""Run the README's first example as printed, and keep its picture for the README and the site.

Run ``python benchmarks/scripts/first_picture.py``: it prints what the example prints and how long it took, picture
included, and replaces ``docs/_static/couples.png``. The noise is drawn afresh each time; ``--quick`` keeps the old
picture.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]
PICTURE = "couples.png"


def first_example() -> str:
    """Return the first block of Python of the README."""
    return re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL).group(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="run it, and leave the stored picture alone")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        environment = {**os.environ, "MPLBACKEND": "Agg"}
        subprocess.run([sys.executable, "-c", first_example()], cwd=folder, env=environment, check=True)
        print(f"{time.perf_counter() - start:.1f} seconds")
        if not arguments.quick:
            shutil.copyfile(Path(folder) / PICTURE, ROOT / "docs" / "_static" / PICTURE)


if __name__ == "__main__":
    main()
