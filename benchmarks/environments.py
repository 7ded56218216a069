"""Environments for the libraries we compare with: made on first use, kept in a cache folder, never our own.

diffprivlib needs an older scikit-learn than we do, so it could not be installed beside us.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.cells import NotAvailableError

PEERS = {
    "diffprivlib": ("diffprivlib==0.6.6", "scikit-learn<1.7", "setuptools"),
    "opendp": ("opendp[scikit-learn]==0.16.0",),
}
"""Peers and what to install for each."""

_PATIENCE = 600.0


def cache_folder() -> Path:
    """Return where environments are kept: ``PRIVSPAN_CACHE``, or a folder in the user's cache."""
    chosen = os.environ.get("PRIVSPAN_CACHE") or os.environ.get("XDG_CACHE_HOME")
    return Path(chosen) / "privspan" if chosen else Path.home() / ".cache" / "privspan"


def version(peer: str) -> str:
    """Return the version of a peer that is compared with."""
    return PEERS[peer][0].partition("==")[2]


def _folder(peer: str) -> Path:
    return cache_folder() / f"{peer}-{version(peer)}-python{sys.version_info.major}.{sys.version_info.minor}"


def _python(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def interpreter(peer: str) -> Path:
    """Return the interpreter of a peer's environment.

    Raises
    ------
    NotAvailableError
        If it was not built; the message says why.
    """
    folder = _folder(peer)
    if (folder / "complete").exists():
        return _python(folder)
    reason = folder.with_suffix(".failed")
    why = reason.read_text("utf-8") if reason.exists() else "it was not built"
    raise NotAvailableError(f"no environment for {peer}: {why}")


def build_all() -> None:
    """Build every environment that is not there yet; a failure is written down for the cells to tell."""
    for peer, packages in PEERS.items():
        folder = _folder(peer)
        if (folder / "complete").exists():
            continue
        folder.parent.mkdir(parents=True, exist_ok=True)
        reason = folder.with_suffix(".failed")
        reason.unlink(missing_ok=True)
        print(f"Making an environment for {peer} (once, about a minute).", file=sys.stderr)
        try:
            build(folder, packages)
        except (OSError, subprocess.SubprocessError) as error:
            reason.write_text(_in_one_line(error), "utf-8")


def build(folder: Path, packages: tuple[str, ...]) -> None:
    """Make a virtual environment with these packages; the file ``complete`` is its last step.

    Some systems ship Python without ensurepip; there virtualenv, which brings its own pip, makes the environment.
    """
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _run([sys.executable, "-m", "venv", str(folder)])
    except subprocess.CalledProcessError:
        shutil.rmtree(folder, ignore_errors=True)
        with tempfile.TemporaryDirectory() as tool:
            _run([sys.executable, "-m", "pip", "install", "--quiet", "--target", tool, "virtualenv"])
            _run([sys.executable, "-m", "virtualenv", "--quiet", str(folder)], PYTHONPATH=tool)
    _run([str(_python(folder)), "-m", "pip", "install", "--quiet", *packages])
    (folder / "complete").touch()


def _run(command: list[str], **variables: str) -> None:
    environment = {**os.environ, **variables}
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=_PATIENCE, env=environment)


def _in_one_line(error: Exception) -> str:
    said = (getattr(error, "stderr", None) or "").strip().splitlines()
    return said[-1] if said else str(error)
