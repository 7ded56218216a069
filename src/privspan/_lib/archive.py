"""Arrays in ``.npz`` archives, none of which is read before its size is known.

NumPy takes memory for whatever shape a header states and inflates whatever is packed, before anything can be judged.
Here a member must be as long as the shape in its header says.
"""

from __future__ import annotations

import math
import zipfile

import numpy as np


def declared(archive: zipfile.ZipFile, name: str) -> tuple[tuple[int, ...], np.dtype]:
    """Return shape and dtype of an array, reading its header only; ``ValueError`` if its length is another one."""
    with archive.open(f"{name}.npy") as member:
        version = np.lib.format.read_magic(member)
        header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, _, dtype = header(member)
        length = member.tell() + math.prod(shape) * dtype.itemsize
    if length != archive.getinfo(f"{name}.npy").file_size and not dtype.hasobject:  # objects are never read
        raise ValueError("An array must be as long as its header says.")
    return shape, dtype


def read(archive: zipfile.ZipFile, name: str) -> np.ndarray:
    """Return an array of the length that its header says."""
    declared(archive, name)
    with archive.open(f"{name}.npy") as member:
        found: np.ndarray = np.lib.format.read_array(member, allow_pickle=False)
        return found
