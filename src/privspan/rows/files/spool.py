"""Temporary copies of people's data on disk: who may read them, and that they go.

A copy is in a folder of its own, which only its owner may enter (mode 0700, files 0600), and which the process that
made it holds locked.  A file that nobody has to open by its name loses that name before anything is written to it
(`Spool.nameless_file`): the system frees it with the process, however that ends.  What needs a name is removed when
the folder is closed, when nothing refers to it any more, or when Python ends; what a killed process leaves behind is
removed by the next process of the same user that makes a copy, which knows it by the lock that nobody holds.

Folders are made where ``PRIVSPAN_TMPDIR`` says, or else where the system has its temporary files.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
import tempfile
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, Self

from privspan._lib.errors import ParameterError
from privspan.rows.damage import UnreadableFileError

VARIABLE = "PRIVSPAN_TMPDIR"
"""The variable of the environment that says in which folder copies are made."""

_PREFIX, _SUFFIX = "privspan-copy-", ".temporary"  # as nobody calls a folder of their own, which we would remove
_CAN_LOCK = os.name == "posix"  # Windows has neither these locks nor owners of this kind


FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


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

    def nameless_file(self) -> BinaryIO:
        """Return a new file to write and to read; the folder goes with its name, where the system lets go of it.

        Elsewhere (Windows, some network file systems) the file stays until the folder is closed.
        """
        path = self.path / "copy"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
        descriptor = os.open(path, flags, 0o600)  # for its owner alone
        file = os.fdopen(descriptor, "w+b")
        with suppress(OSError):
            path.unlink()
            if not any(self.path.iterdir()):
                self.close()
        return file

    def close(self) -> None:
        """Remove the folder now."""
        self._remove()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def spool_base() -> Path:
    """Return the folder in which copies are made."""
    chosen = os.environ.get(VARIABLE)
    if chosen and not Path(chosen).is_dir():
        raise ParameterError("{variable} must name a folder that exists.", variable=VARIABLE)
    return Path(chosen or tempfile.gettempdir()).absolute()  # wherever the process goes meanwhile


@contextmanager
def room_told() -> Iterator[None]:
    """Say in one sentence that there is no room for a copy, or that none can be written."""
    try:
        yield
    except OSError as failure:
        why = "there is no room for it" if failure.errno in FULL else "it cannot be written there"
        template = "The table needs a temporary copy in {folder!r}, and {why}; name another folder with {variable}."
        raise UnreadableFileError(template, folder=str(spool_base()), why=why, variable=VARIABLE) from None


def remove_leftovers(base: Path) -> int:
    """Remove what processes of this user that are no more have left behind, say so, and return how many it were."""
    if not _CAN_LOCK:
        return 0
    removed = 0
    for folder in base.glob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError):  # another process was faster, or locks do not work here
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid():
                removed += _removed_if_left(folder)
    if removed:
        what = "a temporary copy of a table" if removed == 1 else f"{removed} temporary copies of tables"
        message = f"Removed {what} that a process had left behind when it was killed."
        warnings.warn(message, LeftoverWarning, stacklevel=2)
    return removed


def _removed_if_left(folder: Path) -> bool:
    """Remove a folder that nobody holds; tell whether there was anything in it."""
    lock = _locked(folder)
    if lock is None:
        return False
    try:
        held = any(folder.iterdir())
        shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(lock)
    return held and not folder.exists()


def _new_folder(base: Path) -> tuple[Path, int | None]:
    """Make and lock a folder; whoever looks for leftovers may take one that is not locked yet, so look again."""
    while True:
        path = Path(tempfile.mkdtemp(_SUFFIX, _PREFIX, base))  # mode 0700
        if not _CAN_LOCK:
            return path, None
        try:
            lock = _locked(path)
        except FileNotFoundError:
            continue
        except OSError:  # a file system that cannot lock: nobody can take the folder for a leftover either
            return path, None
        if lock is None:
            continue
        with suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(lock)):
                return path, lock
        os.close(lock)


def _locked(folder: Path) -> int | None:
    """Lock a folder for as long as the descriptor that is returned is open; None if another process has."""
    import fcntl  # which Windows has not

    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as failure:
        os.close(descriptor)
        if isinstance(failure, BlockingIOError):
            return None
        raise
    return descriptor


def _remove(path: Path, lock: int | None, process: int) -> None:
    """Remove a folder, unless this process is a fork of the one that made it."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)
        if lock is not None:
            os.close(lock)
