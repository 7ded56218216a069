"""Files elsewhere: copied once, so that every pass reads the same rows, whatever becomes of the original."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from privspan._lib.errors import MissingPackageError
from privspan._lib.location import Location
from privspan.rows.damage import UnreadableFileError
from privspan.rows.files.spool import FULL, Spool, room_told
from privspan.rows.limits import LIMITS, Limits

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem

_UNLISTED = ("http", "https")  # where a folder does not say what is in it
_METADATA = ("zarr.json", ".zarray", ".zgroup")
_LOGS = ("aiobotocore", "aiohttp", "botocore", "fsspec", "gcsfs", "google", "s3fs", "urllib3")
_PACKAGES = {"gs": "gcsfs", "http": "aiohttp", "https": "aiohttp", "s3": "s3fs"}


def copied(place: Location, limits: Limits = LIMITS) -> tuple[Path, Spool]:
    """Copy a file, or a folder that is a Zarr store, into a folder that only its owner may enter.

    Returns
    -------
    Path
        The copy, under the name of the original.
    Spool
        Its folder: removed when it is closed, or nothing refers to it any more.
    """
    for package in ("fsspec", *([_PACKAGES[place.scheme]] if place.scheme in _PACKAGES else [])):
        try:
            import_module(package)
        except ImportError:
            raise MissingPackageError(
                "Reading {scheme}:// tables needs {package}: pip install 'privspan[cloud]'.",
                scheme=place.scheme,
                package=package,
            ) from None
    with room_told():
        spool = Spool()
    try:
        with _unlogged():
            _fetch(place, spool.path / place.name, limits)
    except BaseException:
        spool.close()
        raise
    return spool.path / place.name, spool


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep what packages would log to themselves: URLs with passwords, and failures that are told in one sentence."""
    before = {log: log.level for log in map(logging.getLogger, _LOGS)}
    try:
        for log in before:
            log.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for log, level in before.items():
            log.setLevel(level)


def _fetch(place: Location, target: Path, limits: Limits) -> None:
    """Copy in one go; what a package says of a failure may hold the URL, so its kind alone is told."""
    from fsspec.core import url_to_fs

    try:
        # What fsspec knew of the place before may be old.
        system, path = url_to_fs(place.url, skip_instance_cache=True, **_options(place.scheme, limits))
        if target.suffix.lower() != ".zarr":
            system.get_file(path, str(target))
        elif place.scheme in _UNLISTED:
            _fetch_array(system, path, target)
        else:
            system.get(path, str(target), recursive=True)
    except UnreadableFileError:
        raise
    except FileNotFoundError:
        raise UnreadableFileError("{file!r} does not exist, or may not be seen.", file=place.name) from None
    except Exception as failure:
        if getattr(failure, "errno", None) in FULL:
            with room_told():
                raise
        template = "{file!r} cannot be copied from {scheme}:// ({kind}); nothing of it was kept."
        raise UnreadableFileError(
            template, file=place.name, scheme=place.scheme, kind=type(failure).__name__
        ) from None


def _options(scheme: str, limits: Limits) -> dict[str, object]:
    """Return what a file system is opened with; of the web, a limit on silence, none on the time of a large file."""
    if scheme not in _UNLISTED:
        return {}
    from aiohttp import ClientTimeout

    patience = ClientTimeout(total=None, sock_connect=limits.silent_seconds, sock_read=limits.silent_seconds)
    return {"client_kwargs": {"timeout": patience, "trust_env": True}}  # with the proxies of the environment


def _fetch_array(system: AbstractFileSystem, path: str, target: Path) -> None:
    """Copy an array of Zarr whose folder cannot be listed: its metadata say which chunks it may have."""
    import zarr

    target.mkdir()
    found = [_fetched(system, f"{path}/{name}", target / name) for name in _METADATA]
    if not any(found):
        raise FileNotFoundError
    array = zarr.open(str(target), mode="r")
    if isinstance(array, zarr.Group):
        template = "{file!r} is a group of Zarr arrays, and its folder cannot be listed; name one array, or copy it."
        raise UnreadableFileError(template, file=target.name)
    for place in array.metadata.chunk_grid.all_chunk_coords(array.shape):
        key = array.metadata.encode_chunk_key(place)
        (target / key).parent.mkdir(parents=True, exist_ok=True)
        _fetched(system, f"{path}/{key}", target / key)


def _fetched(system: AbstractFileSystem, path: str, target: Path) -> bool:
    """Copy a file if there is one: a chunk that is not stored holds one value throughout."""
    try:
        system.get_file(path, str(target))
    except FileNotFoundError:
        target.unlink(missing_ok=True)
        return False
    return True
