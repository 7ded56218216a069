"""Temporary copies of people's data on disk: who may read them, and that they go.

Each copy is in a folder of its own, which only its owner may enter (mode 0700), and the folder is locked by the
process that made it for as long as it lives.  A file that nobody needs to open by its name (`nameless_file`) loses
its name before anything is written to it: the system frees it with the process, however that ends.  What needs a
name (`Spool`) is removed when it is closed, when nothing refers to it any more, or when Python ends; what a killed
process leaves behind is removed by the next one, which knows it by its lock.

The folder is that of ``PRIVSPAN_TMPDIR``, or else the system's for temporary files.
"""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
import warnings
import weakref
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

from privspan._lib.errors import ParameterError

FOLDER = "PRIVSPAN_TMPDIR"
"""The variable of the environment that says in which folder copies are made."""

_PREFIX = "privspan-copy-"
_CAN_LOCK = os.name == "posix"  # Windows has neither these locks nor owners of this kind


class LeftoverWarning(UserWarning):
    """Copies that a killed process had left behind have been found and removed."""


class Spool:
    """A folder of one's own for temporary copies, removed with all that is in it.

    Attributes
    ----------
    path : Path
    """

    def __init__(self) -> None:
        base = spool_base()
        remove_leftovers(base)
        self.path, lock = _new_folder(base)
        self._remove = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def close(self) -> None:
        """Remove the folder now."""
        self._remove()

    def __enter__(self) -> Spool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def nameless_file() -> tuple[BinaryIO, Spool]:
    """Return a new file that has no name, to write and to read, and the folder that it was in.

    Where the system does not let go of the name of an open file, it keeps it until the folder is closed.
    """
    spool = Spool()
    path = spool.path / "copy.arrow"
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    file = os.fdopen(descriptor, "w+b")
    with suppress(OSError):  # Windows
        path.unlink()
        if not any(spool.path.iterdir()):  # some network file systems give it another name
            spool.close()
    return file, spool


def spool_base() -> Path:
    """Return the folder in which copies are made."""
    chosen = os.environ.get(FOLDER)
    if chosen and not Path(chosen).is_dir():
        raise ParameterError("{variable} must name a folder that exists.", variable=FOLDER)
    return Path(chosen or tempfile.gettempdir())


def remove_leftovers(base: Path) -> int:
    """Remove what processes of this user that are no more have left behind, say so, and return how many it were."""
    if not _CAN_LOCK:
        return 0
    removed = 0
    for folder in base.glob(f"{_PREFIX}*"):
        with suppress(OSError):  # somebody else's, or another process was faster
            found = folder.lstat()
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
                continue
            lock = _locked(folder)
            if lock is not None:
                held = any(folder.iterdir())
                shutil.rmtree(folder, ignore_errors=True)
                os.close(lock)
                removed += held and not folder.exists()
    if removed:
        what = "copy" if removed == 1 else "copies"
        message = f"Removed {removed} temporary {what} of tables that a killed process had left in {base}."
        warnings.warn(message, LeftoverWarning, stacklevel=2)
    return removed


def _new_folder(base: Path) -> tuple[Path, int | None]:
    """Make and lock a folder; whoever looks for leftovers may take one that is not locked yet, so look again."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=base))  # mode 0700
        if not _CAN_LOCK:
            return path, None
        try:
            lock = _locked(path)
        except FileNotFoundError:
            continue
        except OSError:  # a file system that cannot lock: then it cannot be locked by others either
            return path, None
        if lock is None:
            continue
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(lock)):
                return path, lock
        os.close(lock)


def _locked(folder: Path) -> int | None:
    """Lock a folder, as long as the descriptor that is returned is open; None if another process has."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _remove(path: Path, lock: int | None, process: int) -> None:
    """Remove a folder, unless this is a copy of the process that made it."""
    if os.getpid() != process:
        return
    shutil.rmtree(path, ignore_errors=True)
    if lock is not None:
        os.close(lock)
