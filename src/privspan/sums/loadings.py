"""What the noise of a release does to eigenvalues, and how far it turns each component: errors of loadings.

The noise N of a second moment is the same in every direction: between any two of them it has deviation s.  To first
order it turns component i towards direction j by N_ij / (l_i - l_j), with l the eigenvalues without noise.  So the
square of the error of loading a of component i is, on average,

    sum over j of  t_ij² v_ja²  +  (1 - cos)² v_ia²,      t_ij = s / (l_i - l_j),

the second term because what is turned away is missing along the component itself.  Two repairs make this honest where
gaps are not large.  Noise pushes eigenvalues apart, the square of a gap by 8 s², which is taken back; and a pair with
no gap at all is turned by any angle, a mean square sine of 1/2, which t² = s² / (gap² + 2 s²) tends to.
Everything here is post-processing of released values.  docs/explanation/everyday-tables.md, section on loadings.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def turns(values: Array, others: Array, noise: float) -> Array:
    """Return by which mean square sine noise turns the directions of one set of eigenvalues towards another's.

    Parameters
    ----------
    values, others : (k,), (m,) arrays
        Eigenvalues of a noisy matrix.
    noise : float
        Standard deviation of its noise off the diagonal.

    Returns
    -------
    (k, m) array
    """
    square = np.maximum(np.subtract.outer(values, others) ** 2 - 8.0 * noise**2, 0.0)
    return np.asarray(noise**2 / np.maximum(square + 2.0 * noise**2, 1e-300))


def spiked_eigenvalues(values: Array, noise: float, d: int) -> Array:
    """Undo the upward pull of the noise on eigenvalues.

    Above the edge 2 noise sqrt(d) of the noise's own spectrum, lambda shows as lambda + noise² d / lambda.
    Values at or below the edge carry no information and are set to half of it.
    """
    edge = 2.0 * noise * math.sqrt(d)
    root = np.sqrt(np.maximum(values * values - edge * edge, 0.0))
    return np.where(values > edge, 0.5 * (values + root), 0.5 * edge)


def above_the_rest(values: Array, noise: float, trace: float, d: int) -> Array:
    """Return by how much the first k of k + 1 eigenvalues exceed the mean of all others, without noise; (k,)."""
    k = len(values) - 1
    inside = float(spiked_eigenvalues(values[:k], noise, d).sum())
    rest = min(max(trace - inside, 0.0) / (d - k), max(float(values[k]), 0.0))
    return spiked_eigenvalues(values[:k] - rest, noise, d)


def separation_errors(values: Array, noise: float, trace: float, d: int) -> Array:
    """Return the error to be expected of each leading direction as one of the leading ones, not as a direction; (k,).

    Noise turns direction i towards j by noise / (lambda_i - lambda_j).  The d - k others are taken to lie at their
    mean, which follows from a public bound on the trace, and the next of the k + 1 `values` where it shows: a gap of
    twice the noise is what the noise makes of none.  Sines, rising; 1 and more where nothing tells a direction from
    the rest.
    """
    k = len(values) - 1
    above = above_the_rest(values, noise, trace, d)
    gaps = np.maximum(values[:k] - values[k], noise)
    return np.asarray(np.hypot(noise * math.sqrt(d) / above, 2.0 * noise / gaps))


def loading_errors(basis: Array, within: Array, off: Array, beside: tuple[Array, Array] | None = None) -> Array:
    """Return the standard error of every loading; (k, d), like the components.

    Parameters
    ----------
    basis : (d, k) array
        Orthonormal, released.
    within : (k, k) array
        Mean square sines by which noise turns component i towards component j; the diagonal is not read.
    off : (k,) array
        The same towards any one direction outside of the span.
    beside : (d,) and (k,) array, optional
        One direction outside of the span that has an eigenvalue near theirs, and the same towards it.
    """
    d, k = basis.shape
    squares, turned = basis**2, within * (1.0 - np.eye(k))  # (d, k), (k, k)
    rest, total = np.maximum(1.0 - squares.sum(axis=1), 0.0), turned.sum(axis=1) + (d - k) * off  # (d,), (k,)
    errors = turned @ squares.T  # (k, d)
    if beside is not None:
        direction, towards = beside
        own = np.minimum(direction**2, rest)
        errors, rest = errors + np.outer(towards, own), rest - own
        total = total + towards - off
    errors += np.outer(off, rest)
    missing = 1.0 - np.sqrt(1.0 - np.minimum(total, 1.0))  # 1 - cos
    return np.asarray(np.sqrt(errors + missing[:, None] ** 2 * squares.T))


def told_errors(parameters: Mapping[str, Any], k: int) -> Array:
    """Return the error that a learnt subspace is told to have, for each direction by falling variance; (k,).

    Where some are guesses, the others have an error of their own; those with the most variance are found.
    """
    error = float(parameters["expected_error"])
    of_found = float(parameters.get("expected_error_of_found", error))
    return np.where(np.arange(k) < int(parameters.get("stands_out", k)), of_found, error)


def errors_after_turning(basis: Array, variances: Array, std: float, errors: Array | float) -> Array:
    """Return the standard errors of the entries of a basis, (k, d), that was turned to private variances along it.

    Parameters
    ----------
    basis : (d, k) array
        By falling variance.
    variances : (k,) array
    std : float
        Standard deviation of their noise, which is sqrt(2) times that off the diagonal.
    errors : (k,) array or float
        Expected sine of the largest angle that noise turns their span by, each; it is shared out evenly.
    """
    d, k = basis.shape
    off = (np.minimum(np.broadcast_to(errors, k), 1.0) / (math.sqrt(d) + math.sqrt(k))) ** 2
    return loading_errors(basis, turns(variances, variances, std / math.sqrt(2.0)), off)
