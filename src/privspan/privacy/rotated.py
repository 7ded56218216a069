"""Released components rotated to simple structure, with the errors that the noise of the release makes of that.

Loadings are components times the square roots of their variances, as in factor analysis.  A rotation of them depends
on their span and on the second moment within it alone: it does not matter how noise turned components in their span.
The errors come from a simulation: noise of the size that the release tells is added to the released second moment
within the span and to the directions of the span, and what results is rotated again.  Everything here is
post-processing of released values and costs nothing.  docs/explanation/rotation.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privspan._lib import card
from privspan._lib.errors import ParameterError, ParameterTypeError
from privspan._lib.frozen import plain
from privspan._lib.in_words import number, with_noise
from privspan.privacy.reading import Reading, Released
from privspan.privacy.release_card import warnings_of
from privspan.subspace.rotation import CRITERIA, Criterion, correlations, factor_variances, fixed, turn_to

Array = NDArray[np.float64]

_DRAWS, _FEW_DRAWS = 200, 40  # of simulated noise; few for large tables, where each takes time
_LARGE = 20_000  # entries of the loadings
_MOST_COLUMNS = 20  # on a card


@dataclass(frozen=True, eq=False, repr=False)
class Rotated:
    """Rotated loadings and their standard errors due to noise.

    Attributes
    ----------
    criterion : str
    loadings, loadings_std : (d, k) array
        Of every column on every factor, in the units of the columns (with ``scale=True`` correlations, where factors
        are not correlated), and standard errors due to noise; NaN where the release has none.
    variances, variances_std : (k,) array
        The variance that each factor explains, sorted; their sum is the variance of the components.
    correlations, correlations_std : (k, k) array
        Of the factors: the identity but for promax and oblimin.
    communalities, communalities_std : (d,) array
        The part of each column's variance that all factors together explain.
    turn : (k, k) array
        ``loadings`` are those of the components times this.
    variances_are : str
        The unit of the loadings: "variances"; "shares" of the total, where the table was too small to measure the
        total; or "none" for a method without variances, where loadings are entries of an orthonormal basis.
    left_out : int
        The number of components that cannot be distinguished from noise; these are not rotated.
    names : sequence of str
        Of the columns.
    private : bool
        False when a seed was given.
    """

    criterion: str
    loadings: Array
    loadings_std: Array
    variances: Array
    variances_std: Array
    correlations: Array
    correlations_std: Array
    communalities: Array
    communalities_std: Array
    turn: Array
    variances_are: str
    left_out: int
    names: Sequence[str]
    private: bool

    @property
    def oblique(self) -> bool:
        """Whether factors may be correlated."""
        return self.criterion in ("promax", "oblimin")

    @property
    def about(self) -> str:
        """What was left out of the rotation, and what loadings are where there are no variances."""
        said = {
            "variances": "",
            "shares": "The table has variance 1 in all: too few rows to measure it.",
            "none": "Loadings are entries of an orthonormal basis: the release tells no variances.",
        }[self.variances_are]
        left = {0: "", 1: "1 component that cannot be distinguished from noise was left out."}.get(
            self.left_out, f"{self.left_out} components that cannot be distinguished from noise were left out."
        )
        return " ".join(filter(None, (said, left)))

    def leading(self, factor: int, most: int) -> list[tuple[str, float, float]]:
        """Return the largest loadings on a factor: column name, loading, standard error (NaN where unknown)."""
        values, errors = self.loadings[:, factor], self.loadings_std[:, factor]
        order = np.argsort(-np.abs(values), kind="stable")[:most]
        return [(self.names[i], float(values[i]), float(errors[i])) for i in order]

    def between(self) -> list[str]:
        """Return the correlations of the factors in words; none where they have none."""
        if not self.oblique:
            return []
        pairs = zip(*np.triu_indices(len(self.turn), 1), strict=True)
        told = (self.correlations, self.correlations_std)
        return [f"{i + 1} and {j + 1}: {said(*(of[i, j] for of in told))}" for i, j in pairs]

    def to_dict(self) -> dict[str, object]:
        """Return all of it as a dictionary for JSON."""
        return {name: plain(value) for name, value in vars(self).items()}

    def __repr__(self) -> str:
        d, k = self.loadings.shape
        return f"Rotated({self.criterion}, {k} factor{'s' * (k > 1)} of {d} columns, private={self.private})"

    def _repr_html_(self) -> str:
        """Show it as a card in a notebook."""
        k = self.loadings.shape[1]
        order = np.argsort(-self.communalities, kind="stable")[:_MOST_COLUMNS]
        lines = []
        for i in order:
            cells = map(said, self.loadings[i], self.loadings_std[i])
            lines.append((self.names[i], *cells, said(self.communalities[i], self.communalities_std[i])))
        total = ("variance", *map(said, self.variances, self.variances_std), number(float(self.variances.sum()), 4))
        table = card.table(("column", *(f"factor {j + 1}" for j in range(k)), "communality"), [*lines, total])
        notes = [self.about, *(["Correlations of factors " + ", ".join(self.between())] if self.oblique else [])]
        more = [f"… and {len(self.names) - len(order)} more columns."] if len(order) < len(self.names) else []
        words = [card.aside(one) for one in (*more, *notes) if one]
        return card.card("Rotated", *warnings_of(self.private), table, *words, about=f"by {self.criterion}")


def said(value: float, error: float) -> str:
    """Return a number with its error, where that is told."""
    return with_noise(float(value), float(error) if math.isfinite(error) else 0.0)


def rotated(
    release: Released, criterion: Criterion, *, kaiser: bool = True, columns: Sequence[str] | None = None
) -> Rotated:
    """Rotate the components of a release that stand out of the noise: see `privspan.Release.rotate`."""
    if criterion not in CRITERIA:
        raise ParameterError("{criterion} must be one of {known}.", known=", ".join(CRITERIA))
    if not isinstance(kaiser, bool | np.bool_):
        raise ParameterTypeError("{kaiser} must be True or False.")
    reading = Reading(release, columns)
    if release.subspace is None:
        raise ParameterError("There is nothing to rotate: the method abstained.")
    k = release.subspace.dimension if reading.stands_out is None else reading.stands_out
    if k == 0:
        raise ParameterError("There is nothing to rotate: no component stands out of the noise.")
    basis, noise = release.subspace.basis[:, :k], _noise(reading, k)
    released = basis * np.sqrt(noise.values)  # (d, k)
    turn = fixed(released, turn_to(released, criterion, kaiser=kaiser))
    told = _numbers(released, turn)
    errors, shift = tuple(np.full_like(one, np.nan) for one in told), np.zeros(len(released))
    if noise.told:
        draws = [
            _numbers(drawn, _again(drawn, criterion, kaiser, turn))
            for drawn in noise.drawn(basis, _DRAWS if basis.size <= _LARGE else _FEW_DRAWS)
        ]
        off = [np.array(made) - one for made, one in zip(zip(*draws, strict=True), told, strict=True)]
        errors = tuple(np.sqrt((one**2).mean(axis=0)) for one in off)
        shift = off[3].mean(axis=0)  # squares of noise add to communalities
    loadings, variances, between, communalities = told
    return Rotated(
        criterion,
        *(loadings, errors[0], variances, errors[1], between, errors[2]),
        *(np.maximum(communalities - shift, 0.0), errors[3], turn, noise.variances_are),
        *(release.subspace.dimension - k, tuple(reading.names), release.private),
    )


def _numbers(released: Array, turn: Array) -> tuple[Array, Array, Array, Array]:
    """Return what is told of loadings that are turned: themselves, variances, correlations, communalities."""
    pattern, between = released @ turn, correlations(turn)
    return pattern, factor_variances(pattern, between), between, (released**2).sum(axis=1)


def _again(drawn: Array, criterion: Criterion, kaiser: bool, turn: Array) -> Array:
    """Rotate noisy loadings from the turn that was found; factors keep their places and signs."""
    left, _, right = np.linalg.svd(turn)
    return turn_to(drawn, criterion, kaiser=kaiser, start=left @ right)


@dataclass(frozen=True)
class _Noise:
    """Variances along the components, and the noise of the moment within their span and of the span itself."""

    values: Array  # (k,)
    within: Array  # (k, k), standard deviations of the noise of the second moment between the components
    off: Array  # (k, d), standard errors of the components off their span, by column
    variances_are: str

    @property
    def told(self) -> bool:
        return bool(np.isfinite(self.within).all() and np.isfinite(self.off).all())

    def drawn(self, basis: Array, draws: int) -> list[Array]:
        """Return loadings as they might have been released; (d, k) each."""
        public, roots, k = np.random.default_rng(0), np.sqrt(self.values), basis.shape[1]
        made = []
        for _ in range(draws):
            moved = self.off.T * public.standard_normal(basis.shape)
            moved = basis + moved - basis @ (basis.T @ moved)
            normal = np.triu(public.standard_normal((k, k)))
            moment = np.diag(self.values) + self.within * (normal + np.triu(normal, 1).T)
            made.append(moved @ _power(moved.T @ moved, -0.5) @ _power(moment, 0.5, 1e-6 * roots[-1] ** 2))
        return made


def _power(matrix: Array, power: float, floor: float = 0.0) -> Array:
    """Return a power of a symmetric matrix, no eigenvalue below the floor."""
    values, vectors = np.linalg.eigh(matrix)
    return np.asarray((vectors * np.maximum(values, floor) ** power) @ vectors.T)


def _noise(reading: Reading, k: int) -> _Noise:
    """Return the noise of a release, as far as it tells; NaN where it does not."""
    for name, are in (("explained_variance", "variances"), ("explained_variance_ratio", "shares")):
        values, errors = reading.released(name), reading.released(f"{name}_std")
        if values is not None and (values[:k] > 0.0).all():
            stds = np.full(k, np.nan) if errors is None else errors[:k]
            off = _off(reading, stds)
            if reading.is_standardised and are == "variances":  # whose noise is mostly that of the units of columns
                stds = np.minimum(stds, _moment_noise(off, values[:k]))
            return _Noise(values[:k], _between(stds), off, are)
    assert reading.release.subspace is not None
    error, squares = reading.own_error, (reading.release.subspace.basis**2).sum(axis=1)  # (d,)
    d = len(squares)
    evenly = math.nan if error is None else min(error, 1.0) / (math.sqrt(d) + math.sqrt(k))
    return _Noise(np.ones(k), np.zeros((k, k)), np.full((k, d), evenly), "none")


def _between(stds: Array) -> Array:
    """Return the noise between components whose variances have these errors: a diagonal has sqrt(2) times as much."""
    both = np.sqrt(np.outer(stds, stds) / 2.0)
    np.fill_diagonal(both, stds)
    return np.asarray(both)


def _moment_noise(off: Array, values: Array) -> Array:
    """Return the error of variances that belongs to the turns off the span, of a correlation matrix; (k,)."""
    k, d = off.shape
    above = values - max(d - float(values.sum()), 0.0) / max(d - k, 1)
    return np.asarray(np.sqrt(2.0 * (off**2).mean(axis=1)) * np.maximum(above, 0.0)) if d > k else np.full(k, np.inf)


def _off(reading: Reading, stds: Array) -> Array:
    """Return what the errors of the components are once their turning towards each other is taken out; (k, d)."""
    # A squared error is a sum of squared loadings of the other components, times how far it turns towards them, and
    # of what the column has off the span: the parts are told apart by least squares.
    from scipy.optimize import nnls  # takes as long to load as half of the package, and few releases are rotated

    assert reading.release.subspace is not None
    k = len(stds)
    squares = reading.release.subspace.basis[:, :k] ** 2  # (d, k)
    told = [reading.loading_std(i) for i in range(k)]
    if any(one is None for one in told) or not np.isfinite(stds).all():
        return np.full((k, len(squares)), np.nan)
    rest = np.maximum(1.0 - squares.sum(axis=1), 0.0)  # (d,)
    parts = np.column_stack([squares, rest])
    inside = np.array([parts[:, :k] @ nnls(parts, np.asarray(one) ** 2)[0][:k] for one in told])  # (k, d)
    left = np.maximum(np.array(told) ** 2 - inside, 0.0)
    return np.asarray(np.sqrt(left / np.maximum(rest, 0.05)))  # before what lies in the span goes
