"""Files that appear whole or not at all, whatever happens while they are written."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

__all__ = ["whole_file"]


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Give a handle to a file beside `path`, and move it there when the block ends without an exception.

    Until then a file of that name keeps its content.  What has moved is on the disk, not only on its way there: a
    crash of the machine leaves the old file or the new one.  Links are followed, and the permissions of a file that
    is replaced are kept.

    Parameters
    ----------
    path
        Where the file belongs; its folder must exist.
    """
    target = Path(os.path.realpath(path))
    beside = target.with_name(f".{target.name}.{secrets.token_hex(8)}.tmp")
    try:
        with open(beside, "xb") as handle:
            yield handle
            handle.flush()
            os.fsync(handle.fileno())
        if target.exists():
            shutil.copymode(target, beside)
        os.replace(beside, target)
        _sync_folder(target.parent)
    finally:
        beside.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Bring the new name to the disk too, on systems where a folder can be opened."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
