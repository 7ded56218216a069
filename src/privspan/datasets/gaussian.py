"""Normal records near a known subspace: with a flat tail, a decaying spectrum, or tails of very different lengths.

The generators never form a (d, d) matrix, so d = 100,000 is as easy as d = 100.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from privspan._lib import checks
from privspan._lib.errors import ParameterError
from privspan.subspace import Subspace

Array = NDArray[np.float64]

_CHUNK_ENTRIES = 2**24

_TAILS: dict[str, Callable[[np.random.Generator, tuple[int, int]], Array]] = {
    "flat": lambda rng, shape: rng.standard_normal(shape),
    "1/j": lambda rng, shape: rng.standard_normal(shape),
    "student4": lambda rng, shape: rng.standard_t(4, shape) / math.sqrt(2.0),
    "laplace": lambda rng, shape: rng.laplace(scale=math.sqrt(0.5), size=shape),
    "rademacher": lambda rng, shape: np.asarray(rng.integers(0, 2, shape) * 2.0 - 1.0, dtype=np.float64),
    "scale-mixture": lambda rng, shape: rng.standard_normal(shape) * _lognormal_factors(shape[0], 0.5, rng),
}
TAILS = tuple(_TAILS)
"""Names of the tail families that `gaussian_subspace` knows; every one has unit variance per direction."""


def gaussian_subspace(
    n: int,
    d: int,
    k: int,
    gamma: float | None = None,
    *,
    gamma_w: float | None = None,
    condition: float = 1.0,
    tail: str = "flat",
    rng: int | np.random.Generator | None = None,
) -> tuple[Array, Subspace]:
    """Draw records near a random k-dimensional subspace.

    Each record is U z + e. The signal z is normal with k variances spread geometrically from `condition` down
    to 1; e lies in the orthogonal complement of U, so the top-k subspace of the covariance is exactly U.

    Parameters
    ----------
    n, d, k : int
        Records, columns, dimension of the subspace.
    gamma : float, optional
        Standard deviation of the largest direction of the tail; 0 puts every record on the subspace.
        Give exactly one of `gamma` and `gamma_w`.
    gamma_w : float, optional
        Square root of the whole tail energy, i.e. ``gamma * sqrt(d)`` for the flat tail.
    condition : float, default=1
        Ratio of the largest to the smallest signal variance.
    tail : {"flat", "1/j", "student4", "laplace", "rademacher", "scale-mixture"}, default="flat"
        Law of e. "1/j" has variances proportional to 1/j along the coordinate axes, in random order;
        "student4", "laplace" and "rademacher" have independent coordinates with those laws;
        "scale-mixture" multiplies a normal tail by one random factor per record.
    rng : int or numpy.random.Generator, optional
        Source of randomness.

    Returns
    -------
    X : (n, d) array
    truth : Subspace
        The subspace U that the records are near.

    Examples
    --------
    >>> from privspan.datasets import gaussian_subspace
    >>> X, truth = gaussian_subspace(50, 8, 2, gamma=0.0, rng=0)
    >>> X.shape, truth.dimension
    ((50, 8), 2)
    >>> bool(abs(X - truth.project(X)).max() < 1e-12)
    True
    """
    checks.one_of(TAILS, tail=tail)
    if (gamma is None) == (gamma_w is None):
        raise ParameterError("Give exactly one of {gamma} and {gamma_w}.")
    checks.non_negative(**({"gamma": gamma} if gamma_w is None else {"gamma_w": gamma_w}))
    basis, generator = _start(n, d, k, rng)
    signal = generator.standard_normal((n, k)) * np.sqrt(np.geomspace(condition, 1.0, k))  # (n, k)
    scales = _tail_scales(d, gamma, gamma_w, tail, generator)  # (d,)
    residuals = _TAILS[tail](generator, (n, d))
    residuals *= scales
    return _around(basis, signal, residuals)


def spiked_subspace(
    n: int, d: int, k: int, *, gamma_w: float, decay: float = 1.0, rng: int | np.random.Generator | None = None
) -> tuple[Array, Subspace]:
    """Draw normal records whose spectrum decays like a power, before the gap and after it.

    The j-th signal direction has variance j^-decay. The tail has variances proportional to j^-decay as well, along
    the coordinate axes in random order, and the k-th signal direction stands above it by what `gamma_w` says.

    Parameters
    ----------
    n, d, k : int
        Records, columns, dimension of the subspace.
    gamma_w : float
        Square root of the whole tail energy, over the standard deviation of the k-th signal direction.
    decay : float, default=1
        The power.
    rng : int or numpy.random.Generator, optional
        Source of randomness.

    Returns
    -------
    X : (n, d) array
    truth : Subspace
    """
    checks.non_negative(gamma_w=gamma_w, decay=decay)
    basis, generator = _start(n, d, k, rng)
    signal = generator.standard_normal((n, k)) * np.arange(1.0, k + 1.0) ** (-0.5 * decay)
    shape = generator.permutation(np.arange(1.0, d + 1.0) ** (-0.5 * decay))  # (d,)
    energy = gamma_w * k ** (-0.5 * decay)
    return _around(basis, signal, generator.standard_normal((n, d)) * (energy * shape / np.linalg.norm(shape)))


def heavy_tailed_subspace(
    n: int,
    d: int,
    k: int,
    *,
    gamma_w: float,
    law: str = "student",
    shape: float | None = None,
    rng: int | np.random.Generator | None = None,
) -> tuple[Array, Subspace]:
    """Draw records whose distances from the subspace differ widely: one random factor per record scales its tail.

    Parameters
    ----------
    n, d, k : int
        Records, columns, dimension of the subspace.
    gamma_w : float
        Square root of the mean tail energy; the factors have mean square 1.
    law : {"student", "lognormal"}, default="student"
        "student" makes the tail a multivariate Student t, "lognormal" a normal one times a log-normal factor.
    shape : float, optional
        Degrees of freedom above 2 (default 3), or standard deviation of the factor's logarithm (default 1).
    rng : int or numpy.random.Generator, optional
        Source of randomness.

    Returns
    -------
    X : (n, d) array
    truth : Subspace
    """
    checks.one_of(("student", "lognormal"), law=law)
    checks.non_negative(gamma_w=gamma_w)
    basis, generator = _start(n, d, k, rng)
    signal = generator.standard_normal((n, k))
    factors = _student_factors(n, shape, generator) if law == "student" else _lognormal_factors(n, shape, generator)
    return _around(basis, signal, generator.standard_normal((n, d)) * (gamma_w / math.sqrt(d) * factors))


def _student_factors(n: int, degrees: float | None, generator: np.random.Generator) -> Array:
    """Return 1/sqrt(chi²/(degrees - 2)), whose mean square is 1; (n, 1)."""
    degrees = 3.0 if degrees is None else degrees
    if degrees <= 2.0:
        raise ParameterError(
            "{shape} must be above 2 degrees of freedom for a finite tail energy; got {degrees!r}.", degrees=degrees
        )
    return np.asarray(np.sqrt((degrees - 2.0) / generator.chisquare(degrees, (n, 1))))


def _lognormal_factors(n: int, spread: float | None, generator: np.random.Generator) -> Array:
    """Return log-normal factors with mean square 1; (n, 1)."""
    spread = 1.0 if spread is None else spread
    checks.positive(shape=spread)
    return np.asarray(np.exp(spread * generator.standard_normal((n, 1)) - spread**2))


def _start(n: int, d: int, k: int, rng: int | np.random.Generator | None) -> tuple[Array, np.random.Generator]:
    """Return a random basis (d, k), and the generator that goes on from there, after checks on the sizes."""
    checks.integer_at_least(1, n=n)
    checks.dimension(k=k, d=d)
    generator = np.random.default_rng(rng)
    return np.linalg.qr(generator.standard_normal((d, k)))[0], generator


def _around(basis: Array, signal: Array, residuals: Array) -> tuple[Array, Subspace]:
    """Turn residuals (n, d) in place into records: the signal goes in, the residuals' part along the basis out."""
    n, d = residuals.shape
    rows = max(1, _CHUNK_ENTRIES // d)
    for start in range(0, n, rows):
        part = residuals[start : start + rows]
        part += (signal[start : start + rows] - part @ basis) @ basis.T
    return residuals, Subspace(basis)


def _tail_scales(
    d: int, gamma: float | None, gamma_w: float | None, tail: str, generator: np.random.Generator
) -> Array:
    """Return the standard deviation of every coordinate of the tail."""
    shape = np.ones(d)
    if tail == "1/j":
        shape = generator.permutation(1.0 / np.sqrt(np.arange(1.0, d + 1.0)))
    if gamma is not None:
        return gamma * shape
    assert gamma_w is not None
    return np.asarray(gamma_w * shape / np.linalg.norm(shape), dtype=np.float64)
