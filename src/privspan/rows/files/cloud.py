"""Files elsewhere: copied once, so that every pass reads the same rows, whatever becomes of the original."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from privspan._lib.errors import MissingPackageError
from privspan.rows.damage import UnreadableFileError
from privspan.rows.files.location import Location
from privspan.rows.files.spool import Spool
from privspan.rows.files.stream import FULL, room_told

_PACKAGES = {"gs": "gcsfs", "http": "aiohttp", "https": "aiohttp", "s3": "s3fs"}


def copied(place: Location) -> tuple[Path, Spool]:
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
        _fetch(place, spool.path / place.name)
    except BaseException:
        spool.close()
        raise
    return spool.path / place.name, spool


def _fetch(place: Location, target: Path) -> None:
    """Copy in one go; what a package says of a failure may hold the URL, so its kind alone is told."""
    from fsspec.core import url_to_fs

    try:
        system, path = url_to_fs(place.url, skip_instance_cache=True)  # what it knew of the place may be old
        if target.suffix.lower() == ".zarr":
            system.get(path, str(target), recursive=True)
        else:
            system.get_file(path, str(target))
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
