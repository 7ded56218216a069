"""Importing the package: light, and no room is loaded."""

import statistics
import subprocess
import sys


def python(code: str, *options: str) -> list[str]:
    run = subprocess.run([sys.executable, *options, "-c", code], capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def test_import_stays_light_and_loads_no_room() -> None:
    code = "import sys, time; start = time.perf_counter(); import privspan; print(time.perf_counter() - start); "
    runs = [python(code + "print(*[name for name in sys.modules if name.startswith('privspan')])") for _ in range(5)]
    assert statistics.median(float(seconds) for seconds, _ in runs) < 0.2  # a hundredth or two on an idle machine
    assert set(runs[0][1].split()) == {"privspan", "privspan._lib", "privspan._lib.above", "privspan._lib.version"}
