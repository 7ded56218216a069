"""What a reader must know about where a number was measured."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

_PACKAGES = ("privspan", "numpy", "scipy", "scikit-learn", "python-flint")


def machine_facts(jobs: int) -> dict[str, Any]:
    """Return processor, cores, memory, system, versions, the commit, the date, and how many cells ran at once."""
    return {
        "commit": _commit(),
        "date": time.strftime("%Y-%m-%d"),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": _memory_gb(),
        "system": platform.system(),
        "python": platform.python_version(),
        "versions": {name: version for name in _PACKAGES if (version := _version(name)) is not None},
        "cells_at_once": jobs,
        "threads_per_cell": int(os.environ.get("OPENBLAS_NUM_THREADS", "0")) or "all",
    }


def _commit() -> str | None:
    """Return which code ran; None outside of a checkout, or if it was changed."""
    ask = partial(subprocess.run, cwd=Path(__file__).parent, capture_output=True, check=True)
    try:
        changed = ask(["git", "status", "--porcelain", "../src"])
        named = ask(["git", "rev-parse", "--short=10", "HEAD"])
    except (OSError, subprocess.CalledProcessError):
        return None
    return None if changed.stdout else named.stdout.decode().strip()


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _memory_gb() -> int | None:
    if sys.platform == "win32":
        return None
    return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9)
