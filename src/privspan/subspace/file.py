"""The file format of `Subspace.save`: one ``.npz`` archive without pickles.

Members: ``description`` (JSON text as bytes: format, version, whether it is affine, names, exact form, and what
`ledger.release_file` tells about the release, if anything), ``basis`` and, for an affine subspace, ``offset``.
Integers of the exact form are hexadecimal text, which Python reads and writes at any length.
"""

from __future__ import annotations

import json
import os
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from privspan._lib import archive, strict_json
from privspan._lib.errors import ParameterError
from privspan._lib.strict_json import AmbiguousError, fields, flag, listed, mapping, optional, text, whole
from privspan._lib.whole_file import whole_file
from privspan.subspace.relations import ExactForm

_FORMAT = "privspan.Subspace"
_VERSION = 2  # of the format: 1 called what stands out "found", and public units "scale"
_BY_MISTAKE = "allow_pickle"  # what privspan 0.2 stored beside the others with NumPy 2.0, which took it for an array
_HEXADECIMAL = re.compile(r"-?0x[0-9a-f]+")  # what `hex` writes


@dataclass(frozen=True)
class Content:
    """What a file holds: the arguments of `Subspace` and, in JSON's types, how it was made."""

    basis: NDArray[np.float64]
    exact: ExactForm | None
    offset: NDArray[np.float64] | None
    names: tuple[str, ...] | None
    made: Mapping[str, object] | None = None


class Problem(Exception):
    """A file that is not what it should be, with words for a person."""


def write(path: str | os.PathLike[str], content: Content, *, overwrite: bool = True) -> Path:
    """Write the file, whole or not at all; return its path, with the suffix ``.npz`` if it had none."""
    target = Path(path)
    target = target if target.suffix else target.with_name(target.name + ".npz")
    description = {
        "format": _FORMAT,
        "version": _VERSION,
        "affine": content.offset is not None,  # damage to an archive's directory can hide a member
        "names": content.names,
        "exact": None if content.exact is None else _exact_to_json(content.exact),
        "made": content.made,
    }
    written = np.frombuffer(json.dumps(description).encode(), dtype=np.uint8)
    arrays: dict[str, Any] = {"description": written, "basis": content.basis}
    if content.offset is not None:
        arrays["offset"] = content.offset
    with whole_file(target, overwrite=overwrite) as handle:
        np.savez(handle, **arrays)
    return target


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[Content]:
    """Give the content of the file; turn every complaint, the caller's too, into one ValueError."""
    with open(path, "rb") as handle:
        try:
            yield _parse(handle)
        except Exception as error:
            # Damage shows as any of a dozen exceptions of zipfile, zlib, NumPy and json; none of them helps a reader.
            reason = str(error) if isinstance(error, Problem) else f"it is damaged ({type(error).__name__})"
            raise ParameterError(
                "cannot read a subspace from {file!r}: {reason}.", file=os.fspath(path), reason=reason
            ) from None


def _parse(handle: BinaryIO) -> Content:
    arrays = _arrays(handle)
    description = _description(arrays["description"])
    if description["affine"] != ("offset" in arrays):
        raise Problem("its offset is missing or does not belong there")
    exact, names = description["exact"], description["names"]
    return Content(
        basis=_floats(arrays, "basis", 2),
        exact=None if exact is None else _exact_from_json(exact),
        offset=_floats(arrays, "offset", 1) if "offset" in arrays else None,
        names=None if names is None else tuple(names),
        made=description["made"],
    )


def _description(array: np.ndarray) -> dict[str, Any]:
    """Return the description, every field of its kind."""
    if array.dtype != np.uint8 or array.ndim != 1:
        raise Problem("it was not written by Subspace.save")
    try:
        found = strict_json.loads(array.tobytes())
    except AmbiguousError:
        raise Problem("its description names a field twice") from None
    if not isinstance(found, dict) or found.get("format") != _FORMAT:
        raise Problem("it was not written by Subspace.save")
    version = found.get("version")
    if isinstance(version, bool) or version != _VERSION:
        raise Problem(f"its version is {version!r}, and this privspan reads {_VERSION}")
    names, told = optional(listed(text)), optional(mapping)
    return fields(found, format=text, version=whole(1), affine=flag, names=names, exact=told, made=told)


def _arrays(handle: BinaryIO) -> dict[str, np.ndarray]:
    """Return the arrays, none of which is read before it is known that they take no more memory than the file."""
    if handle.read(2) != b"PK":
        raise Problem("it is not an .npz archive")
    try:
        with zipfile.ZipFile(handle) as packed:
            members = packed.infolist()
            names = {member.filename.removesuffix(".npy") for member in members}
            if len(names) != len(members):  # of two members of one name, readers take either
                raise Problem("it has an array twice")
            if not {"description", "basis"} <= names or not names <= {"description", "basis", "offset", _BY_MISTAKE}:
                raise Problem("it was not written by Subspace.save")
            if sum(member.file_size for member in members) > handle.seek(0, os.SEEK_END):
                raise Problem("it would unpack to more than it is, and Subspace.save packs nothing")
            return {name: archive.read(packed, name) for name in names - {_BY_MISTAKE}}
    except Problem:
        raise
    except Exception:
        raise Problem("the archive is truncated or damaged") from None


def _floats(arrays: dict[str, np.ndarray], name: str, dimensions: int) -> NDArray[np.float64]:
    array = arrays[name]
    if array.dtype != np.float64 or array.ndim != dimensions:
        raise Problem(f"its {name} is not an array of 64-bit floats in {dimensions} dimension(s)")
    return array


def _exact_to_json(form: ExactForm) -> dict[str, object]:
    return {
        "numerators": [[hex(value) for value in row] for row in form.numerators],
        "denominators": [hex(value) for value in form.denominators],
        "pivots": list(form.pivots),
        "homogeneous": form.homogeneous,
    }


def _exact_from_json(values: dict[str, Any]) -> ExactForm:
    integers = listed(lambda value: isinstance(value, str) and _HEXADECIMAL.fullmatch(value) is not None)
    fields(values, numerators=listed(integers), denominators=integers, pivots=listed(whole(0)), homogeneous=flag)
    return ExactForm(
        numerators=tuple(tuple(int(value, 16) for value in row) for row in values["numerators"]),
        denominators=tuple(int(value, 16) for value in values["denominators"]),
        pivots=tuple(values["pivots"]),
        homogeneous=values["homogeneous"],
    )
