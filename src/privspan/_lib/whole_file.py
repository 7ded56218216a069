"""Files that appear whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

# What systems say of a folder that they cannot bring to the disk by itself: network and user-space file systems do,
# and one that may be written to but not read.
_CANNOT_SYNC = frozenset(
    {errno.EACCES, errno.EBADF, errno.EINVAL, errno.EISDIR, errno.ENOSYS, errno.ENOTSUP, errno.EPERM}
)


@contextmanager
def whole_file(path: str | os.PathLike[str], *, overwrite: bool = True) -> Iterator[BinaryIO]:
    """Give a handle to a file beside `path`, and move it there when the block ends without an exception.

    Until then a file of that name keeps its content.  What has moved is on the disk, not only on its way there: a
    crash of the machine leaves the old file or the new one.  (Some file systems cannot promise the latter of a
    folder; that is no reason to say that a file which is there was not written.)  The permissions of a file that is
    replaced are kept.  A link of that name is replaced, never followed: what it points to stays as it is.  Without
    `overwrite`, whatever has the name by then stays too: ``FileExistsError``.
    """
    target = Path(path)
    beside = _beside(target)
    try:
        with open(beside, "xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        if overwrite and target.is_file() and not target.is_symlink():
            shutil.copymode(target, beside)
        (os.replace if overwrite else _publish_new)(beside, target)
        _sync_folder(target.parent)
    finally:
        beside.unlink(missing_ok=True)


def try_out(path: str | os.PathLike[str]) -> None:
    """Raise now what `whole_file` would raise later for this name, as far as that can be known.

    The very names are created, where nothing has them, and removed again: a name may be too long, a folder read-only
    or a quota used up in ways that no look at it tells.
    """
    for name in (_beside(Path(path)), Path(path)):
        if not os.path.lexists(name):
            open(name, "xb").close()
            name.unlink()


def _beside(target: Path) -> Path:
    # As short for a long name as for a short one: a name that is possible must not make an impossible one.
    return target.with_name(f".{secrets.token_hex(8)}.tmp")


def _publish_new(beside: Path, target: Path) -> None:
    """Give the file its name in one step that fails if anything has that name, a dangling link too."""
    try:
        os.link(beside, target)
    except FileExistsError:
        raise
    except OSError:  # a file system without hard links: claim the name, then fill it
        open(target, "xb").close()
        os.replace(beside, target)


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk too, on systems where that can be done."""
    if os.name != "posix":
        return
    try:
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        if error.errno not in _CANNOT_SYNC:
            raise
